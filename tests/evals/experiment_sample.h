// The experiment that the tests of the loader change in one place and load again.
#ifndef LACUNA_TESTS_EXPERIMENT_SAMPLE_H
#define LACUNA_TESTS_EXPERIMENT_SAMPLE_H

#include "engine/provider.h"
#include "evals/experiment.h"

#include <assert.h>
#include <string.h>

// The example of DESIGN section 9.
static const char sample_experiment[] =
    "lacuna: 1\n"
    "name: three-constraints\n"
    "seed: 7\n"
    "models:\n"
    "  - {id: smollm2, path: m.gguf, backend: auto, context_tokens: 8192}\n"
    "generation: {max_tokens: 96, temperature: 0, samples: 1}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: system, text: \"You are a careful assistant.\"}\n"
    "    - {role: user, text: \"{{filler}}\\n\\nWrite a short reply.\"}\n"
    "  filler: {kind: prose}\n"
    "constraints:\n"
    "  - id: order\n"
    "    kind: state\n"
    "    text: \"The order number is {{code}}.\"\n"
    "    vars: {code: {kind: digits, count: 5}}\n"
    "    value: \"{{code}}\"                  # the whole value\n"
    "    violated: '(?<!\\d)\\d{5}(?!\\d)'     # after every right value was taken out\n"
    "    examples: {met: [\"Order {{code}}.\"], not: [\"Order 1{{code}}.\", \"\"]}\n"
    "  - {id: day, kind: state, text: \"The pickup day is {{day}}.\", value: \"{{day}}\",\n"
    "     vars: {day: {kind: choice, choices: [Monday, Friday]}}}\n"
    "  - {id: contact, kind: format, text: \"Name a contact.\", met: '[A-Z][a-z]+'}\n"
    "placements:\n"
    "  - {id: order-moves, move: [order], depths: [start, middle, end],\n"
    "     others: {day: 25%, contact: 75%}}\n"
    "lengths: {tokens: [512, 1024, 2048], tolerance: 0%}\n"
    "repeats: 20\n"
    "arms: [placed, absent, short]\n"
    "tolerate: {errors: 0%, invalid: 0%, unscored: 20%}\n"
    "primary: {metric: met_rate, of: order, contrast: middle_against_ends}\n"
    "gates:\n"
    "  - {metric: met_rate, of: order, at_least: 0.6, where: {depth: middle}, pool: [length]}\n";

// The request of an experiment of which each model computes where it says; `auto` is the CPU.
static inline int sample_request_sha256(const struct experiment *x, char hex[HASH_HEX_SIZE],
                                        struct err *e) {
    struct provider told[4] = {{0}}, *providers[4];
    assert(x->model_count <= 4);
    for (int i = 0; i < x->model_count; i++) {
        const struct experiment_model *m = &x->models[i];
        told[i].what.backend = strcmp(m->backend, "auto") == 0 ? "cpu" : m->backend;
        told[i].what.numerics = m->numerics;
        providers[i] = &told[i];
    }
    return experiment_request_sha256(x, providers, hex, e);
}

#endif
