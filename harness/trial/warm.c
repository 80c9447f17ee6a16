#include "trial/warm.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* A JIT's first answers come so slowly that opening the connections would take most of a short
 * window's time. */
enum { WINDOW_MS = 10, JIT_WINDOW_MS = 50, CONNECTIONS_MOST = 256, WINDOWS_LEAST = 8 };

static double mean(const double *values, unsigned count)
{
    double sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

bool warm_is_steady(const double *cpu_ns_per_request, unsigned count)
{
    if (count < WINDOWS_LEAST)
        return false;
    unsigned quarter = count / 4;
    const double *at = cpu_ns_per_request + count - quarter;
    double last = mean(at, quarter);
    return last >= 0.97 * mean(at - quarter, quarter) &&
           last >= 0.85 * mean(at - 2 * quarter, quarter);
}

bool warm_is_over(const double *cpu_ns_per_request, unsigned count, uint64_t answers,
                  uint64_t answers_least)
{
    return answers >= answers_least && warm_is_steady(cpu_ns_per_request, count);
}

int warm_until_steady(const struct plan *plan, const struct slice_target *target,
                      uint64_t answers_least, const volatile sig_atomic_t *stop,
                      struct slice *scratch, struct warm *warm, struct err *err)
{
    double cost[WARM_WINDOWS_MAX];
    unsigned costs = 0;
    uint64_t answers = 0;
    const struct slice_shape shape = {
        .connections = plan->connections < CONNECTIONS_MOST ? plan->connections : CONNECTIONS_MOST,
        .duration_ns = (answers_least > 0 ? JIT_WINDOW_MS : WINDOW_MS) * NS_PER_MS,
    };
    uint64_t began = clock_now_ns();
    memset(warm, 0, sizeof *warm);
    while (warm->windows < WARM_WINDOWS_MAX && !warm->steady && !(stop != NULL && *stop) &&
           clock_now_ns() - began < plan->warm_max_ns) {
        char why[768];
        int status = slice_measure(plan, target, &shape, stop, scratch, err);
        if (status != 0)
            return status;
        if (slice_is_spoilt(&shape, scratch))
            continue;
        if (!slice_is_sound(plan, scratch, why, sizeof why))
            return err_set(err, EPROTO, "%s", why);
        warm->windows++;
        if (scratch->usage_known && scratch->load.valid > 0)
            cost[costs++] = (double)scratch->usage.cpu_ns / (double)scratch->load.valid;
        answers += scratch->load.valid;
        warm->steady = warm_is_over(cost, costs, answers, answers_least);
    }
    warm->took_ns = clock_now_ns() - began;
    if (costs >= 4) {
        warm->first_cpu_ns = mean(cost, costs / 4);
        warm->last_cpu_ns = mean(cost + costs - costs / 4, costs / 4);
    }
    return 0;
}
