// How one token is drawn from the logits behind a row (NUMERICS.md, "Choice of a token").
#ifndef LACUNA_KERNELS_DRAW_H
#define LACUNA_KERNELS_DRAW_H

struct token_draw {
    double temperature; // 0: the largest logit is taken, the lowest id on a tie
    double top_p;       // (0, 1]
    double u;           // [0, 1), 53 bits
};

#endif
