// What the verbs' --json share.
#include "evals/cli.h"

#include "engine/base/str.h"
#include "reports/summary.h"

#include <stdio.h>

void cli_print_json(json_t *value) {
    struct buf line = {0};
    json_compact(value, &line);
    puts(line.p);
    buf_free(&line);
    json_decref(value);
}

json_t *cli_gates_json(const struct summary_gate *gates, int count) {
    static const char *const results[] = {"passed", "failed", "undecided"};
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        json_t *o = json_object();
        json_put(o, "id", json_text_c(gates[i].id));
        json_put(o, "result", json_text_c(results[gates[i].result]));
        json_put(o, "measured", json_text_c(gates[i].measured));
        json_put(o, "why", json_text_c(gates[i].why));
        json_array_append_new(list, o);
    }
    return list;
}
