// What `lacuna bench --json` measured on the GPU, beside what the device can do at most.
#include "tests/gpu/gpu.h"

#include "engine/base/json.h"

#include <stdio.h>
#include <string.h>

static double number(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

static double median(const json_t *o, const char *key) {
    return number(json_object_get(o, key), "median");
}

static const char *word(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return text != NULL ? text : "";
}

static void put_rate(double rate) {
    if (rate > 0)
        printf(" %9.2f", 1e-12 * rate);
    else
        printf(" %9s", "-");
}

// How many algorithms of the library give the own kernels' bits, and what refused the others.
static void put_choice(const json_t *choice) {
    const char *probe, *separator = "; refused: ";
    const json_t *count;
    printf("   %.0f of %.0f", number(choice, "equal"), number(choice, "offered"));
    json_object_foreach(json_object_get(choice, "refused"), probe, count) {
        if (json_integer_value(count) == 0) continue;
        printf("%s%s %.0f", separator, probe, json_number_value(count));
        separator = ", ";
    }
    if (number(choice, "failed") > 0) printf("; failed: %.0f", number(choice, "failed"));
    printf("\n");
}

// A shape's products, by what served them. Returns the fastest.
static double put_product(const json_t *product) {
    static const char *const served[] = {"own_flop_per_s", "admitted_flop_per_s", "any_flop_per_s"};
    char name[64];
    double best = 0;
    snprintf(name, sizeof name, "%.0f x %.0f x %.0f", number(product, "rows"),
             number(product, "outputs"), number(product, "depth"));
    printf("%-28s", name);
    for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
        double rate = number(product, served[i]);
        put_rate(rate);
        if (rate > best) best = rate;
    }
    put_choice(json_object_get(product, "choice"));
    return best;
}

static void put_draws(const json_t *rates) {
    const json_t *draw;
    size_t i;
    printf("\n%-28s %10s %10s\n", "tokens at once, ms", "likeliest", "drawn");
    json_array_foreach(json_object_get(rates, "draws"), i, draw) {
        char name[64];
        snprintf(name, sizeof name, "%.0f of %.0f logits", number(draw, "rows"),
                 number(draw, "logits"));
        printf("%-28s %10.3f %10.3f\n", name, number(draw, "greedy_ms"), number(draw, "drawn_ms"));
    }
}

// Shares of copy bandwidth and of the fastest product.
static void put_test(const json_t *test, double matmul, double copy) {
    double seconds = median(test, "seconds");
    if (!(seconds > 0)) return;
    double flop = number(test, "flop") / seconds, bytes = number(test, "bytes") / seconds;
    double speed = median(test, "tokens_per_s");
    printf("%-28s %10.3f ", word(test, "test"), 1e3 * seconds);
    if (speed > 0)
        printf("%10.1f", speed);
    else
        printf("%10s", "-");
    printf(" %9.2f %8.3f", 1e-12 * flop, 1e-12 * bytes);
    printf(" %6.1f%% %6.1f%%\n", matmul > 0 ? 100 * flop / matmul : 0,
           copy > 0 ? 100 * bytes / copy : 0);
}

int gpu_speeds(const char *bench_path, const char *rates_path) {
    json_t *bench = NULL, *rates = NULL;
    const json_t *test, *product;
    struct err e = {0};
    size_t i;
    if (json_read_file(bench_path, 16 << 20, &bench, &e) != 0 ||
        json_read_file(rates_path, 1 << 20, &rates, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        json_decref(bench);
        return 1;
    }
    double copy = number(rates, "copy_bytes_per_s"), matmul = 0;
    printf("copies %.3f TB/s, read and written\n\n", 1e-12 * copy);
    printf("%-28s %9s %9s %9s   algorithms\n", "products, TFLOP/s", "own", "admitted", "any");
    json_array_foreach(json_object_get(rates, "products"), i, product) {
        double best = put_product(product);
        if (best > matmul) matmul = best;
    }
    put_draws(rates);
    printf("\n%-28s %10s %10s %9s %8s %7s %7s\n", "test", "ms", "tokens/s", "TFLOP/s", "TB/s",
           "of matm", "of copy");
    json_array_foreach(json_object_get(bench, "tests"), i, test) put_test(test, matmul, copy);
    json_decref(bench);
    json_decref(rates);
    return 0;
}
