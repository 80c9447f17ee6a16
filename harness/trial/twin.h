/* The twin: one entry is measured a second time, in a process and in slices of its own, as if it
 * were another. How far the two come apart is how far this run tells servers apart that are the
 * same (A/A). It is a contender like any other, named "NAME twin" (no entry's name holds a blank),
 * but it is not judged again, and it is no row of the table.
 */
#ifndef TRIAL_TWIN_H
#define TRIAL_TWIN_H

#include "entry/entry.h"
#include "trial/plan.h"

/* Of the entries that may be ranked and were found fit, the one that plan->twin asks for: NULL if
 * it is not among them, or none is wanted. A draw is by the plan's seed. */
const struct entry *twin_choose(const struct plan *plan, const struct entry *const *fit,
                                size_t count);

/* A copy of the entry under the twin's name; all but the name is borrowed. twin_drop frees it. */
struct entry twin_make(const struct entry *entry);
void twin_drop(struct entry *twin);

/* The twin's own object for run.json's `entries`, made from its entry's (borrowed). */
json_t *twin_describe(const json_t *entry);

/* The name of the entry whose twin run.json holds; NULL if none. */
const char *twin_find(const json_t *run);

#endif
