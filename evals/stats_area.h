// The area under the rate over depth, divided by the span of depths: the mean rate that a
// constraint has when it may stand anywhere between the shallowest and the deepest place, with
// straight lines between the places that ran (the trapezoid rule). Unlike the mean of the places it
// does not depend on how densely they were chosen.
#ifndef LACUNA_EVALS_STATS_AREA_H
#define LACUNA_EVALS_STATS_AREA_H

#include <stdint.h>

// depths[count], ascending and different, count >= 2, any unit. weights[count] sum to 1; the area
// is their sum product with the rates.
void stats_area_weights(const int32_t *depths, int count, double *weights);

#endif
