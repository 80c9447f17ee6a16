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

/* Answers that a server with a JIT compiler gives before it can count as steady. Such a compiler
 * counts calls (V8's tiers, LuaJIT's hot loops), so its stages come by answers given, not by time:
 * a Node 20 server fell from 27 to 21 us a request after about 16,000 answers, having been flat for
 * 14,000 before. */
#define WARM_JIT_ANSWERS 25000

/* Loads `target` until it is steady and has given answers_least answers. -EPROTO with the reason in
 * err for a slice that is not sound; scratch is any slice. */
int warm_until_steady(const struct plan *plan, const struct slice_target *target,
                      uint64_t answers_least, const volatile sig_atomic_t *stop,
                      struct slice *scratch, struct warm *warm, struct err *err);

/* The rule of steadiness by itself: of `count` windows' CPU time per request, the last quarter is
 * not more than 3% below the third quarter, nor more than 15% below the second. False for fewer
 * than 8. A rule relative to the whole length: a server that fell for long must be flat for as long
 * as it fell. */
bool warm_is_steady(const double *cpu_ns_per_request, unsigned count);

/* Both rules: steady, and `answers` given of the answers_least asked for. */
bool warm_is_over(const double *cpu_ns_per_request, unsigned count, uint64_t answers,
                  uint64_t answers_least);

#endif
