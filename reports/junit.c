#include "reports/junit.h"

#include "reports/escape.h"

void junit_attribute(struct buf *out, const char *name, struct str value) {
    buf_printf(out, " %s=\"", name);
    escape_xml(out, value);
    buf_add_char(out, '"');
}

void junit_case(const char *class_name, const char *name, enum summary_gate_result result,
                const char *why, struct str text, struct buf *out) {
    buf_add_c(out, "  <testcase");
    junit_attribute(out, "classname", str_from(class_name));
    junit_attribute(out, "name", str_from(name));
    buf_add_c(out, " time=\"0\">\n");
    if (result != GATE_PASSED) {
        buf_add_c(out, result == GATE_FAILED ? "    <failure" : "    <skipped");
        junit_attribute(out, "message", str_from(why));
        buf_add_c(out, "/>\n");
    }
    buf_add_c(out, "    <system-out>");
    escape_xml(out, text);
    buf_add_c(out, "</system-out>\n  </testcase>\n");
}

void junit_gate(const char *class_name, const struct summary_gate *g, struct buf *out) {
    struct buf text = {0};
    buf_printf(&text, "%s: %s%s%s", g->text, g->measured, g->detail[0] != '\0' ? "\n" : "",
               g->detail);
    junit_case(class_name, g->id, g->result, g->why, buf_str(&text), out);
    buf_free(&text);
}
