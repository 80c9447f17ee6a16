/* What processes and cores have used so far; differences of two readings are what a slice cost.
 * Process CPU time comes from the process's CPU clock (clock_getcpuclockid(3)) in nanoseconds, or,
 * where that is refused, from /proc/PID/task/TID/schedstat, which forgets threads that ended; its
 * split into user and kernel from /proc/PID/stat, in clock ticks (10 ms), so only sums over many
 * slices carry it. What a child used is in no figure once the child has ended.
 */
#ifndef HOST_USAGE_H
#define HOST_USAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_TREE_MAX 256

/* `root`, first, and all its living descendants, from /proc/PID/task/TID/children (Linux 3.5,
 * CONFIG_PROC_CHILDREN). Returns the number, 0 if root does not live; descendants beyond
 * HOST_TREE_MAX are left out. */
int host_tree(pid_t root, pid_t pids[HOST_TREE_MAX]);

/* The threads of these processes, those beyond HOST_TREE_MAX left out. Returns the number. */
int host_threads(const pid_t *pids, int count, pid_t threads[HOST_TREE_MAX]);

struct host_usage { /* of a process tree */
    uint64_t cpu_ns;
    uint64_t user_ticks, system_ticks;                 /* sysconf(_SC_CLK_TCK) a second */
    uint64_t switches_voluntary, switches_involuntary; /* of living threads */
    uint64_t rss_peak_bytes;                           /* sum of VmHWM */
    uint64_t rss_bytes;                                /* sum of VmRSS */
    int processes, threads;
    /* Time in which living threads could have run and waited for a CPU: another process had it, or
     * another thread of this one. Second number of /proc/PID/task/TID/schedstat
     * (Documentation/scheduler/sched-stats.rst); CONFIG_SCHED_INFO. */
    uint64_t wait_ns;
    bool wait_known;
};

/* Sums over those pids that live. -ESRCH if none does. */
int host_usage_read(const pid_t *pids, int count, struct host_usage *usage, struct err *err);

/* The calling thread's wait_ns. False where the kernel does not tell. */
bool host_thread_wait_ns(uint64_t *wait_ns);

struct host_core { /* since boot, in ticks, /proc/stat (proc(5)) */
    uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
};

/* -ENODEV if there is no such CPU online. */
int host_core_read(int cpu, struct host_core *core, struct err *err);

#endif
