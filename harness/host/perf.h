/* What a process tree costs the machine, by perf_event_open(2): system calls through the tracepoint
 * raw_syscalls:sys_enter, context switches, and instructions and cycles where the CPU counts them
 * and the hypervisor lets it. Counters hold still where rates do not: the same code on the same
 * load makes the same system calls on a noisy machine.
 *
 * Counting is not free. While the tracepoint is open every process of the machine takes the slower
 * way into the kernel, so nothing is measured at the same time.
 */
#ifndef HOST_PERF_H
#define HOST_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum host_perf_counter {
    HOST_PERF_SYSCALLS,
    HOST_PERF_SWITCHES,
    HOST_PERF_INSTRUCTIONS_USER,
    HOST_PERF_INSTRUCTIONS_KERNEL,
    HOST_PERF_CYCLES_USER,
    HOST_PERF_CYCLES_KERNEL,
    HOST_PERF_COUNTERS
};

/* "syscalls", "instructions_user", …: also its key in a record. */
const char *host_perf_name(enum host_perf_counter counter);

/* Tries the counter on the calling thread. False with the reason, and what would help, in `why`:
 * kernel.perf_event_paranoid (Documentation/admin-guide/sysctl/kernel.rst), tracefs that is not
 * mounted or not to be read, a CPU or a virtual machine without such counters, a seccomp filter. */
bool host_perf_probe(enum host_perf_counter counter, char *why, size_t why_bytes);

struct host_perf; /* opaque: counters that run */

struct host_perf_counts {
    bool known[HOST_PERF_COUNTERS];
    double count[HOST_PERF_COUNTERS]; /* since the opening; a counter that had to share the CPU's is
                                         scaled by the time it ran */
};

/* Counts every thread of these processes from now on, and what they start (inherit). A counter
 * that is refused for any of them is known of none. NULL if none can be had, or no process lives. A
 * thread that starts while this opens may be missed: call it when the processes are at rest. */
struct host_perf *host_perf_open(const pid_t *pids, int count);
void host_perf_read(const struct host_perf *perf, struct host_perf_counts *counts);
void host_perf_close(struct host_perf *perf); /* NULL is fine */

#endif
