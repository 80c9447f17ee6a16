/* CPU bandwidth control: a cgroup with a quota (docker run --cpus, a CI runner's limit) stops all
 * its threads until the period of 100 ms is over. To a measurement that is a neighbour who takes
 * every core at once, though no tick and no steal shows it. Counters from cpu.stat of the group
 * that this process is in and of every group above it that can be seen, as any of them may hold a
 * quota: version 2 (Documentation/admin-guide/cgroup-v2.rst, throttled_usec) or version 1
 * (Documentation/scheduler/sched-bwc.rst, throttled_time in ns).
 */
#ifndef HOST_THROTTLE_H
#define HOST_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

struct host_throttle { /* since the groups were made; only differences mean anything */
    uint64_t times;    /* nr_throttled: periods in which a group was stopped */
    uint64_t ns;       /* how long it was stopped, summed over its cores */
};

/* False, and zeros, where no group has such counters. */
bool host_throttle_read(struct host_throttle *throttle);

/* The same for the group files' texts, for tests: adds a cpu.stat's counters. False if it has
 * none. */
bool host_throttle_add(const char *cpu_stat, struct host_throttle *throttle);

#endif
