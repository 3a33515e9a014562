// The table of one instruction set. Include after the bodies.
#define TABLE(symbol, label, id)                                                                   \
    const struct cpu_ops symbol = {                                                                \
        .name = (label),                                                                           \
        .numerics = (id),                                                                          \
        .operand_bytes = sizeof(OPERAND),                                                          \
        .pack_row = pack_row,                                                                      \
        .matmul = matmul,                                                                          \
        .rmsnorm = rmsnorm,                                                                        \
        .rope = rope,                                                                              \
        .round = round_rows,                                                                       \
        .kv_append = kv_append,                                                                    \
        .attention = attention,                                                                    \
        .gate = gate,                                                                              \
        .log_sum_exp = log_sum_exp,                                                                \
        .argmax = argmax,                                                                          \
    }
