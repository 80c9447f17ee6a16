/* Several workers: an entry that can be told how many to start ({workers} in its manifest) is
 * measured a second time with as many as the plan has, in a process tree and in slices of its own,
 * in the same blocks. It is a contender named "NAME*N" (no entry's name holds a star); it is not
 * judged again, and it is measured only as long as its entry is.
 */
#ifndef TRIAL_CREW_H
#define TRIAL_CREW_H

#include "entry/entry.h"
#include "trial/plan.h"

/* Whether the plan measures a second row of the entry. */
bool crew_wanted(const struct plan *plan, const struct entry *entry);

/* A copy of the entry under the crew's name; all but the name is borrowed. crew_drop frees it. */
struct entry crew_make(const struct entry *entry, unsigned workers);
void crew_drop(struct entry *crew);

/* The crew's own object for run.json's `entries`, made from its entry's (borrowed). */
json_t *crew_describe(const json_t *entry, unsigned workers);

#endif
