/* What a request costs the server, counted and not timed: system calls, context switches,
 * instructions and cycles (host/perf.h). Counting slows what it counts, so it has a window of its
 * own, in the first boots, after the warm-up and before the first block; the rate in it is in no
 * figure.
 */
#ifndef TRIAL_COST_H
#define TRIAL_COST_H

#include "trial/slice.h"

/* Boots in which is counted: what a request costs in calls differs little from boot to boot, and a
 * count takes 0.14 s a server, 0.06 s of it in setting the counter of system calls up and taking it
 * away again (2-core VM, Linux 6.18). */
#define COST_BOOTS 2

/* A fifth of a slice, and settling as long as a slice does. */
uint64_t cost_window_ns(const struct plan *plan);

/* Counts `target` for one window. *counts becomes a new JSON object (valid, window_ns, and what can
 * be counted here, by host_perf_name, beside switches_voluntary and switches_involuntary); NULL
 * where no counter can be had, which takes no time, or where the machine took the window away
 * several times in a row. -EPROTO with the reason in err for a window that is not sound; `scratch`
 * is any slice. */
int cost_count(const struct plan *plan, const struct slice_target *target,
               const volatile sig_atomic_t *stop, struct slice *scratch, json_t **counts,
               struct err *err);

#endif
