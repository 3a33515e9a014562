// The part of the HTML report that shows each trial: its prompt with the constraints marked, and
// its reply with the verdicts.
#ifndef LACUNA_REPORTS_HTML_TRIALS_H
#define LACUNA_REPORTS_HTML_TRIALS_H

#include "reports/summary.h"

// Beyond this many bytes of prompts only the surroundings of each constraint are shown, and the
// page says so; `lacuna prompt RUN KEY` has the rest.
#define HTML_PROMPT_BYTES_MOST (6u << 20)
#define HTML_TRIALS_MOST 5000

int html_trials(const struct record *r, const struct summary *s, struct buf *out, struct err *e);

// The parts of it, for other pages. The prompt is folded, whole or around its constraints.
int html_prompt(const struct record *r, const struct record_trial *t, bool whole, struct buf *out,
                struct err *e);
void html_reply(const struct record_outcome *o, struct buf *out); // NULL: nothing

#endif
