/* Which cores there are, which to use, and pinning. From sched_getaffinity(2) and
 * /sys/devices/system/cpu/cpuN/topology/thread_siblings_list; both honour a container's cpuset.
 */
#ifndef HOST_CPU_H
#define HOST_CPU_H

#include "base/err.h"

#include <stdbool.h>

#define HOST_CPUS_MAX 1024

struct host_cpu_plan {
    int server;        /* core for the server under load */
    int hammer[64];    /* cores for the load generator */
    int hammer_count;  /* 0..64 */
    int allowed_count; /* CPUs this process may use */
    bool shared;       /* one CPU only: server and hammer share it; nothing may be ranked */
    bool siblings;     /* server and a hammer core are hyperthreads of one core: no other choice */
};

/* `server` and `hammer_count` as asked for; server -1 chooses. -EINVAL with the allowed list when
 * `server` is not allowed. */
int host_cpu_plan(int server, int hammer_count, struct host_cpu_plan *plan, struct err *err);

/* Pins the calling thread. */
int host_cpu_pin(int cpu, struct err *err);

#endif
