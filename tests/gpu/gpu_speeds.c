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

static void put_rate(const char *name, double rate, const char *unit) {
    if (rate > 0)
        printf("%-28s %9.3f %s\n", name, 1e-12 * rate, unit);
    else
        printf("%-28s %9s\n", name, "-");
}

// Shares of copy bandwidth and of the products' rate: of the library's where it was measured.
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
    const json_t *test;
    struct err e = {0};
    size_t i;
    if (json_read_file(bench_path, 16 << 20, &bench, &e) != 0 ||
        json_read_file(rates_path, 1 << 20, &rates, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        json_decref(bench);
        return 1;
    }
    double own = number(rates, "own_matmul_flop_per_s");
    double library = number(rates, "cublaslt_matmul_flop_per_s");
    double copy = number(rates, "copy_bytes_per_s"), matmul = library > 0 ? library : own;
    put_rate("products, own kernel", own, "TFLOP/s");
    put_rate("products, cuBLASLt", library, "TFLOP/s");
    put_rate("copies, read + written", copy, "TB/s");
    printf("\n%-28s %10s %10s %9s %8s %7s %7s\n", "test", "ms", "tokens/s", "TFLOP/s", "TB/s",
           "of matm", "of copy");
    json_array_foreach(json_object_get(bench, "tests"), i, test) put_test(test, matmul, copy);
    json_decref(bench);
    json_decref(rates);
    return 0;
}
