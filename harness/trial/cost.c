#include "trial/cost.h"

#include <errno.h>

enum { TRIES = 3, SHARE_OF_SLICE = 5 };

uint64_t cost_window_ns(const struct plan *plan)
{
    return plan->slice_ns / SHARE_OF_SLICE;
}

static json_t *counts_to_json(const struct slice *slice)
{
    json_t *json = json_pack("{s:I, s:I}", "valid", (json_int_t)slice->load.valid, "window_ns",
                             (json_int_t)slice->load.window_ns);
    for (int i = 0; i < HOST_PERF_COUNTERS; i++)
        if (slice->perf.known[i])
            json_object_set_new(json, host_perf_name((enum host_perf_counter)i),
                                json_integer((json_int_t)slice->perf.count[i]));
    if (slice->usage_known)
        json_object_update_new(json, json_pack("{s:I, s:I}", "switches_voluntary",
                                               (json_int_t)slice->usage.switches_voluntary,
                                               "switches_involuntary",
                                               (json_int_t)slice->usage.switches_involuntary));
    return json;
}

int cost_count(const struct plan *plan, const struct slice_target *target,
               const volatile sig_atomic_t *stop, struct slice *scratch, json_t **counts,
               struct err *err)
{
    pid_t pids[HOST_TREE_MAX];
    int pid_count = server_pids(target->server, pids, HOST_TREE_MAX);
    struct host_perf *perf = host_perf_open(pids, pid_count);
    *counts = NULL;
    if (perf == NULL)
        return 0;
    const struct slice_shape shape = {
        .connections = plan->connections,
        .duration_ns = cost_window_ns(plan),
        .settle_ns = plan->settle_ns,
        .perf = perf,
    };
    int status = 0;
    bool spoilt = true;
    for (int i = 0; i < TRIES && spoilt && status == 0; i++) {
        status = slice_measure(plan, target, &shape, stop, scratch, err);
        spoilt = status == 0 && slice_is_spoilt(&shape, scratch);
    }
    char why[768];
    host_perf_close(perf);
    if (status != 0 || spoilt)
        return status;
    if (!slice_is_sound(plan, scratch, why, sizeof why))
        return err_set(err, EPROTO, "%s", why);
    *counts = counts_to_json(scratch);
    return 0;
}
