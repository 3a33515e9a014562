// Simulated subjects: a provider whose chance to honour each constraint is planted in a file, so
// that what a report says can be compared with the truth. It writes real reply texts, which the
// experiment's own checks then judge.
//
// The subject file is one JSON object:
//
//   {"lacuna_simulated": 1,
//    "seed": 1,                   of all its draws
//    "context_tokens": 8192,      0: not limited
//    "in_flight": 64,
//    "curve": CURVE,              for all constraints that do not say otherwise
//    "agreement": 0.2,            correlation of two trials of one repeat that have equal chances
//    "prompt_agreement": 0,       of two samples of one prompt, beyond that
//    "cut": [[512, 0], [4096, 0.1]],  share of replies that are cut short, by length
//    "cut_reply": "Thank you for",    what such a reply says
//    "begin": "Dear customer,", "end": "Kind regards",  around what the constraints say
//    "constraints": [CONSTRAINT, ...]}   in the order in which a reply speaks of them
//
// A CURVE says with which chance a constraint is honoured:
//   "by_depth": [[0, 0.95], [50, 0.6], [100, 0.9]]   per cent and chance, straight lines between
//   "by_place": {"in_system": 0.97}   for places that have no depth, or instead of the depth's;
//                                     "start+end" without an entry of its own has the better one
//   "by_length": [[512, 1], [4096, 0.5]]   prompt tokens and a factor, straight lines between
//   "half_length": 4096               or the factor 1 / (1 + length / half_length)
//   "elsewhere": 0.9                  in rows that do not move it; the length's factor applies
//   "short": 1                        in the arm `short`
//   "absent": 0                       in the arm `absent`
// Left of the first point of a list the first value holds, right of the last one the last.
//
// A CONSTRAINT:
//   "id": "order"
//   "curve": CURVE                    keys that differ for this constraint
//   "rows": ["order-moves"]           placements that move it; without it all do
//   "find": "order number is"         or its depth is where this text stands in the prompt, in per
//                                     cent of its bytes; "absent" holds where it does not stand
//   "copy_after": ["number is "]      for {{0}} and {{wrong 0}} (engine/provider_copy.h)
//   "met": "Order {{0}}."             or a list, one of which is drawn; likewise the next three
//   "omitted": ""                     what it says instead
//   "violated": "Order {{wrong 0}}."
//   "violated_share": 0.3             of the trials that do not honour it; 0
//   "said_anyway": ["Order 12345."]   what it says in the arm `absent` when it honours there,
//                                     where nothing can be copied
//
// Arm, length, row, place and repeat are read from the trial's key. Each draw is from (seed, key,
// constraint) alone, and the one that trials of a repeat share from (seed, repeat or case,
// constraint), models included. With the same seed, subjects with two curves therefore differ in
// just those trials whose chance lies on the other side of the draw.
#ifndef LACUNA_ENGINE_PROVIDER_SIMULATED_H
#define LACUNA_ENGINE_PROVIDER_SIMULATED_H

#include "engine/provider.h"

int provider_simulated_open(const struct provider_options *options, struct provider **out,
                            struct err *e);

#endif
