/* Who takes part in a run: entries whose manifest names its workload among others, or names none.
 */
#ifndef TRIAL_PART_H
#define TRIAL_PART_H

#include "entry/entry.h"
#include "trial/workload.h"

bool part_takes(const struct entry *entry, const struct workload *workload);

/* The first workload that the entry takes part in. */
const struct workload *part_first(const struct entry *entry);

/* "takes part in: hello pipelined"; free(). */
char *part_reason(const struct entry *entry);

/* -ENOENT if a manifest names a workload that there is not: "servers/x/entry.conf:7: unknown
 * workload 'helo'; did you mean …". A manifest is read without knowing them. */
int part_check(const struct entry_list *list, struct err *err);

#endif
