/* Load before the first block, until a server is steady: page faults, caches and above all a JIT
 * make the first requests dearer (a Node server went from 4,000 to 15,000 requests a second in 3 s
 * of load). Steadiness is judged by CPU time per request, which neither a stolen core nor a busy
 * neighbour moves as they move the rate.
 */
#ifndef TRIAL_WARM_H
#define TRIAL_WARM_H

#include "trial/slice.h"

#define WARM_WINDOWS_MAX 400

struct warm {
    unsigned windows; /* how many were loaded */
    bool steady;      /* false: plan->warm_max_ns ended before it was */
    uint64_t took_ns;
    double first_cpu_ns; /* per request, in the first and the last quarter */
    double last_cpu_ns;
};

/* Loads `target` until steady. -EPROTO with the reason in err for a slice that is not sound;
 * scratch is any slice. */
int warm_until_steady(const struct plan *plan, const struct slice_target *target,
                      const volatile sig_atomic_t *stop, struct slice *scratch, struct warm *warm,
                      struct err *err);

/* The rule by itself: of `count` windows' CPU time per request, the last quarter is not more than
 * 3% below the third quarter, nor more than 15% below the second. False for fewer than 8. A rule
 * relative to the whole length: a server that fell for long must be flat for as long as it fell. */
bool warm_is_steady(const double *cpu_ns_per_request, unsigned count);

#endif
