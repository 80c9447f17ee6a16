/* What processes and cores have used so far; differences of two readings are what a slice cost.
 * Process CPU time comes from the process's CPU clock (clock_getcpuclockid(3)) in nanoseconds; its
 * split into user and kernel from /proc/PID/stat, in clock ticks (10 ms), so only sums over many
 * slices carry it.
 */
#ifndef HOST_USAGE_H
#define HOST_USAGE_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

#define HOST_TREE_MAX 256

/* `root` and all its living descendants, from /proc/PID/task/TID/children. Returns the number. */
int host_tree(pid_t root, pid_t pids[HOST_TREE_MAX]);

struct host_usage { /* of a process tree */
    uint64_t cpu_ns;
    uint64_t user_ticks, system_ticks; /* sysconf(_SC_CLK_TCK) a second */
    uint64_t switches_voluntary, switches_involuntary;
    uint64_t rss_peak_bytes; /* sum of VmHWM */
    uint64_t rss_bytes;      /* sum of VmRSS */
    int processes, threads;
};

/* -ESRCH if none of the pids lives. */
int host_usage_read(const pid_t *pids, int count, struct host_usage *usage, struct err *err);

struct host_core { /* since boot, in ticks, /proc/stat (proc(5)) */
    uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
};

int host_core_read(int cpu, struct host_core *core, struct err *err);

#endif
