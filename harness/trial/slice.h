/* One slice: one entry under load for a moment, with the counters that say what it cost and what
 * limited it. Opening, settling, draining and closing lie outside of the measured window.
 */
#ifndef TRIAL_SLICE_H
#define TRIAL_SLICE_H

#include "entry/server.h"
#include "hammer/hammer.h"
#include "host/perf.h"
#include "host/throttle.h"
#include "host/usage.h"
#include "trial/plan.h"

#include <jansson.h>

struct slice_target {
    struct server *server;
    int cores; /* that it may use, the first of host_cpu_servers(); 0 counts as 1 */
    unsigned port;
    const char *request;
    size_t request_bytes;
};

struct slice_shape { /* what differs between a measured slice and a warm-up window */
    unsigned connections;
    uint64_t duration_ns;
    uint64_t settle_ns;
    const struct host_perf *perf; /* read at both edges of the window; NULL: nothing is counted */
};

struct slice {
    struct hammer_result load;
    uint64_t began_ns;            /* clock_now_ns() before the connections were opened */
    bool usage_known;             /* the server lived at both edges of the window */
    struct host_usage usage;      /* of the server's tree, within the window; peaks as they stood */
    int server_cores;             /* that the server may use */
    struct host_core server_core; /* ticks within the window, summed over them */
    struct host_core hammer_cores; /* the same, summed over the load generator's cores */
    bool throttle_known;
    struct host_throttle throttle; /* of this process's cgroups, within the window */
    struct host_perf_counts perf;  /* within the window; all unknown without shape->perf */
};

/* Fills *slice (large: allocate it once). Faults of the server are results; -errno is the hammer's
 * refusal to run, or a server that took no connection. */
int slice_measure(const struct plan *plan, const struct slice_target *target,
                  const struct slice_shape *shape, const volatile sig_atomic_t *stop,
                  struct slice *slice, struct err *err);

/* True if no request of the slice went wrong; else the reason in `why`. A slice in which nothing
 * came (load.valid 0) may be sound: the server may be slower than the slice is long. */
bool slice_is_sound(const struct plan *plan, const struct slice *slice, char *why,
                    size_t why_bytes);

/* True if the machine took the load generator's core for over a fifth of the window, and 20 ms:
 * what came late or not at all is then not the server's doing; what came wrong is. Whether the
 * server's own core was taken can't be told apart from a slow server. */
bool slice_is_spoilt(const struct slice_shape *shape, const struct slice *slice);

/* A new JSON object of type "slice", without entry, boot and block. */
json_t *slice_to_json(const struct slice *slice);

#endif
