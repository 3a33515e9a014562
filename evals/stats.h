// Statistics of the reports, of comparisons and of `lacuna plan`: one file each, with its formula
// and source in its header.
#ifndef LACUNA_EVALS_STATS_H
#define LACUNA_EVALS_STATS_H

#include "evals/stats_base.h"
// intervals
#include "evals/stats_wilson.h"
#include "evals/stats_exact.h"
#include "evals/stats_clustered.h"
#include "evals/stats_shares.h"
#include "evals/stats_paired.h"
// tests
#include "evals/stats_mcnemar.h"
#include "evals/stats_sign_flip.h"
#include "evals/stats_places.h"
#include "evals/stats_two.h"
#include "evals/stats_holm.h"
// agreement
#include "evals/stats_agreement.h"
// summaries
#include "evals/stats_area.h"
#include "evals/stats_effective.h"
#include "evals/stats_samples.h"
// planning
#include "evals/stats_binomial.h"
#include "evals/stats_normal.h"
#include "evals/stats_power.h"

#endif
