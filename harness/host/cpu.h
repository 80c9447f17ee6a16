/* Which cores there are, which to use, and pinning. From sched_getaffinity(2) and
 * /sys/devices/system/cpu/cpuN/topology (Documentation/admin-guide/cputopology.rst); the first
 * honours a container's cpuset, so both work inside one and without privileges.
 */
#ifndef HOST_CPU_H
#define HOST_CPU_H

#include "base/err.h"

#include <stdbool.h>

#define HOST_CPUS_MAX    1024 /* as CPU_SETSIZE in glibc */
#define HOST_HAMMERS_MAX 64
#define HOST_SERVERS_MAX 64

struct host_cpu { /* what can't be read: core = number, package = 0, speed = 0 */
    int number;
    int core;    /* lowest number among its hyperthreads: equal for siblings */
    int package; /* socket */
    long speed;  /* cpu_capacity, or the highest frequency in kHz; to tell fast cores from slow */
};

struct host_topology { /* of the CPUs that this thread may use */
    int count;
    struct host_cpu cpus[HOST_CPUS_MAX]; /* by number */
};

struct host_cpu_plan {
    int server;                   /* core for the server under load */
    int more[HOST_SERVERS_MAX];   /* cores that a server with several workers may use as well */
    int more_count;               /* 0..HOST_SERVERS_MAX - 1 */
    int hammer[HOST_HAMMERS_MAX]; /* cores for the load generator */
    int hammer_count;             /* 1..HOST_HAMMERS_MAX */
    int allowed_count;            /* CPUs this thread may use */
    bool shared;   /* one CPU only: hammer[0] is the server's; nothing may be ranked */
    bool siblings; /* server and a hammer core are hyperthreads of one core: no other choice */
};

/* What the calling thread may use: call it before pinning the thread. */
int host_topology_read(struct host_topology *topology, struct err *err);

/* `server` and `hammer_count` as asked for; server -1 chooses the last of the fastest CPUs (the
 * first ones take most interrupts). Hammer cores are chosen to share no core with the server, then
 * none with each other, then to lie in the server's package, then to be fast. -EINVAL with the
 * allowed list when `server` is not allowed, or when there are not so many CPUs beside it; one CPU
 * in all is no error but `shared`. */
int host_cpu_choose(const struct host_topology *topology, int server, int hammer_count,
                    struct host_cpu_plan *plan, struct err *err);

/* The same for hammer cores that were chosen by name; server -1 chooses beside them. -EINVAL when
 * one is not allowed, named twice or the server's (unless it is the only CPU), or none is left. */
int host_cpu_assign(const struct host_topology *topology, int server, const int *hammer,
                    int hammer_count, struct host_cpu_plan *plan, struct err *err);

struct host_cpu_wish { /* cores by name; no server: chosen; no hammer: one is chosen */
    const int *servers;
    int server_count;
    const int *hammers;
    int hammer_count;
};

/* Either of the two, and several cores for servers with several workers; the first is the one of
 * all others. -EINVAL as above, and when a core is named twice or for both. */
int host_cpu_meet(const struct host_topology *topology, const struct host_cpu_wish *wish,
                  struct host_cpu_plan *plan, struct err *err);

/* Reading and choosing in one. */
int host_cpu_plan(int server, int hammer_count, struct host_cpu_plan *plan, struct err *err);
int host_cpu_plan_for(const struct host_cpu_wish *wish, struct host_cpu_plan *plan,
                      struct err *err);

/* All cores that servers may use, the first of them plan->server. Returns the number. */
int host_cpu_servers(const struct host_cpu_plan *plan, int cpus[HOST_SERVERS_MAX]);

/* Pins the calling thread. */
int host_cpu_pin(int cpu, struct err *err);

#endif
