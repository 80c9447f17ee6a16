#include "trial/slice.h"
#include "base/clock.h"
#include "record/latency.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Counters at one edge of the window. */
struct edge {
    bool usage_known;
    struct host_usage usage;
    struct host_core server_core;
    struct host_core hammer_cores;
    bool throttle_known;
    struct host_throttle throttle;
    struct host_perf_counts perf;
};

struct edges {
    const struct plan *plan;
    const struct host_perf *perf;
    int server_cpus[HOST_SERVERS_MAX];
    int server_cores;
    pid_t pids[HOST_TREE_MAX];
    int pid_count;
    struct edge edge[2];
};

static void core_add(struct host_core *into, const struct host_core *more)
{
    into->user += more->user;
    into->nice += more->nice;
    into->system += more->system;
    into->idle += more->idle;
    into->iowait += more->iowait;
    into->irq += more->irq;
    into->softirq += more->softirq;
    into->steal += more->steal;
}

static struct host_core core_since(const struct host_core *after, const struct host_core *before)
{
    return (struct host_core){
        .user = after->user - before->user,
        .nice = after->nice - before->nice,
        .system = after->system - before->system,
        .idle = after->idle - before->idle,
        .iowait = after->iowait - before->iowait,
        .irq = after->irq - before->irq,
        .softirq = after->softirq - before->softirq,
        .steal = after->steal - before->steal,
    };
}

static void read_cores(const int *cpus, int count, struct host_core *sum)
{
    for (int i = 0; i < count; i++) {
        struct host_core core;
        if (host_core_read(cpus[i], &core, NULL) == 0)
            core_add(sum, &core);
    }
}

/* Runs on the loading thread, outside of the window. */
static void read_edge(void *context, int which)
{
    struct edges *edges = context;
    const struct host_cpu_plan *cpus = &edges->plan->cpus;
    struct edge *edge = &edges->edge[which];
    memset(edge, 0, sizeof *edge);
    edge->usage_known = host_usage_read(edges->pids, edges->pid_count, &edge->usage, NULL) == 0;
    edge->throttle_known = host_throttle_read(&edge->throttle);
    read_cores(edges->server_cpus, edges->server_cores, &edge->server_core);
    read_cores(cpus->hammer, cpus->hammer_count, &edge->hammer_cores);
    if (edges->perf != NULL)
        host_perf_read(edges->perf, &edge->perf);
}

/* Sums over living threads and visible groups may shrink. */
static uint64_t since(uint64_t after, uint64_t before)
{
    return after > before ? after - before : 0;
}

static void take_difference(const struct edges *edges, struct slice *slice)
{
    const struct edge *before = &edges->edge[0];
    const struct edge *after = &edges->edge[1];
    slice->usage_known = before->usage_known && after->usage_known;
    slice->usage = after->usage; /* processes, threads and memory as they stood at the end */
    slice->usage.cpu_ns -= before->usage.cpu_ns;
    slice->usage.user_ticks -= before->usage.user_ticks;
    slice->usage.system_ticks -= before->usage.system_ticks;
    slice->usage.switches_voluntary -= before->usage.switches_voluntary;
    slice->usage.switches_involuntary -= before->usage.switches_involuntary;
    slice->usage.wait_known = before->usage.wait_known && after->usage.wait_known;
    slice->usage.wait_ns = since(after->usage.wait_ns, before->usage.wait_ns);
    slice->throttle_known = before->throttle_known && after->throttle_known;
    slice->throttle.times = since(after->throttle.times, before->throttle.times);
    slice->throttle.ns = since(after->throttle.ns, before->throttle.ns);
    slice->server_core = core_since(&after->server_core, &before->server_core);
    slice->hammer_cores = core_since(&after->hammer_cores, &before->hammer_cores);
    for (int i = 0; i < HOST_PERF_COUNTERS; i++) {
        slice->perf.known[i] = before->perf.known[i] && after->perf.known[i];
        slice->perf.count[i] = after->perf.count[i] - before->perf.count[i];
    }
}

int slice_measure(const struct plan *plan, const struct slice_target *target,
                  const struct slice_shape *shape, const volatile sig_atomic_t *stop,
                  struct slice *slice, struct err *err)
{
    struct edges edges = {
        .plan = plan, .perf = shape->perf, .server_cores = target->cores > 1 ? target->cores : 1};
    host_cpu_servers(&plan->cpus, edges.server_cpus);
    edges.pid_count = server_pids(target->server, edges.pids, HOST_TREE_MAX);
    unsigned threads = plan->cpus.hammer_count > 0 ? (unsigned)plan->cpus.hammer_count : 1;
    const struct hammer_config config = {
        .address = {.sin_family = AF_INET,
                    .sin_port = htons((uint16_t)target->port),
                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
        .engine = plan->engine,
        .connections = shape->connections,
        .threads = threads < shape->connections ? threads : shape->connections,
        .cpus = plan->cpus.hammer_count > 0 ? plan->cpus.hammer : NULL,
        .pipeline = plan->workload->pipeline,
        .close_each = plan->workload->close_each,
        .settle_ns = shape->settle_ns,
        .duration_ns = shape->duration_ns,
        .timeout_ns = plan->timeout_ns,
        .drain_ns = plan->timeout_ns,
        .burn_ns = plan->burn_ns,
        .request = target->request,
        .request_bytes = target->request_bytes,
        .expect = *plan->workload->expect,
        .at_edge = read_edge,
        .context = &edges,
        .stop = stop,
    };
    slice->server_cores = edges.server_cores;
    slice->began_ns = clock_now_ns();
    int status = hammer_run(&config, &slice->load, err);
    if (status == 0)
        take_difference(&edges, slice);
    return status;
}

static uint64_t errors_of(const struct hammer_counts *counts)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < HAMMER_ERROR_KINDS; kind++)
        sum += counts->errors[kind];
    return sum;
}

bool slice_is_spoilt(const struct slice_shape *shape, const struct slice *slice)
{
    uint64_t gap_ns = slice->load.longest_gap_ns;
    const struct hammer_counts *total = &slice->load.total;
    if (total->wrong > 0 || errors_of(total) > 0)
        return false;
    return gap_ns > 20 * NS_PER_MS && gap_ns > shape->duration_ns / 5;
}

bool slice_is_sound(const struct plan *plan, const struct slice *slice, char *why, size_t why_bytes)
{
    const struct hammer_result *load = &slice->load;
    const struct hammer_counts *total = &load->total;
    size_t used = 0;
    why[0] = '\0';
#define SAY(...)                                                                                   \
    (used < why_bytes ? used += (size_t)snprintf(why + used, why_bytes - used, __VA_ARGS__) : used)
    const char *comma = "";
    if (total->wrong > 0) {
        SAY("%" PRIu64 " wrong answers", total->wrong);
        comma = ", ";
    }
    for (int kind = 0; kind < HAMMER_ERROR_KINDS; kind++)
        if (total->errors[kind] > 0) {
            SAY("%s%" PRIu64 " errors of kind %s", comma, total->errors[kind],
                hammer_error_name((enum hammer_error)kind));
            comma = ", ";
        }
    if (total->timed_out > 0) {
        SAY("%s%" PRIu64 " requests not answered within %.3g s", comma, total->timed_out,
            (double)plan->timeout_ns / 1e9);
        comma = ", ";
    }
    if (load->connect_failures > 0) {
        SAY("%s%" PRIu64 " connections refused or not made", comma, load->connect_failures);
        comma = ", ";
    }
    if (load->first_wrong[0] != '\0')
        SAY("%s%s", comma[0] != '\0' ? "; the first: " : "", load->first_wrong);
#undef SAY
    return why[0] == '\0';
}

static json_t *core_to_json(const struct host_core *core)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I}", "busy",
        (json_int_t)(core->user + core->nice + core->system + core->irq + core->softirq), "idle",
        (json_int_t)(core->idle + core->iowait), "irq", (json_int_t)core->irq, "softirq",
        (json_int_t)core->softirq, "steal", (json_int_t)core->steal);
}

static json_t *errors_to_json(const struct hammer_result *load)
{
    json_t *errors = json_object();
    for (int kind = 0; kind < HAMMER_ERROR_KINDS; kind++)
        if (load->total.errors[kind] > 0)
            json_object_set_new(errors, hammer_error_name((enum hammer_error)kind),
                                json_integer((json_int_t)load->total.errors[kind]));
    return errors;
}

static void add_usage(json_t *line, const struct slice *slice)
{
    const struct host_usage *usage = &slice->usage;
    json_object_update_new(line,
                           json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i}", "server_cpu_ns",
                                     (json_int_t)usage->cpu_ns, "server_user_ticks",
                                     (json_int_t)usage->user_ticks, "server_system_ticks",
                                     (json_int_t)usage->system_ticks, "switches_voluntary",
                                     (json_int_t)usage->switches_voluntary, "switches_involuntary",
                                     (json_int_t)usage->switches_involuntary, "rss_peak_bytes",
                                     (json_int_t)usage->rss_peak_bytes, "processes",
                                     usage->processes, "threads", usage->threads));
}

/* Time in which the server or the load generator could have run and had no core. */
static void add_waits(json_t *line, const struct slice *slice)
{
    if (slice->usage_known && slice->usage.wait_known)
        json_object_set_new(line, "server_wait_ns", json_integer((json_int_t)slice->usage.wait_ns));
    if (slice->load.wait_known)
        json_object_set_new(line, "hammer_wait_ns", json_integer((json_int_t)slice->load.wait_ns));
    if (!slice->throttle_known)
        return;
    json_object_set_new(line, "throttled", json_integer((json_int_t)slice->throttle.times));
    json_object_set_new(line, "throttled_ns", json_integer((json_int_t)slice->throttle.ns));
}

json_t *slice_to_json(const struct slice *slice)
{
    const struct hammer_result *load = &slice->load;
    json_t *line = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:i, s:I, s:s, s:I, s:I, s:o, s:o}",
        "type", "slice", "began_ns", (json_int_t)slice->began_ns, "window_ns",
        (json_int_t)load->window_ns, "valid", (json_int_t)load->valid, "bytes_read",
        (json_int_t)load->bytes_read, "sent_total", (json_int_t)load->total.sent, "valid_total",
        (json_int_t)load->total.valid, "wrong", (json_int_t)load->total.wrong, "timed_out",
        (json_int_t)load->total.timed_out, "errors", errors_to_json(load), "connections",
        (int)load->connections_established, "reconnects", (json_int_t)load->reconnects, "engine",
        hammer_engine_name(load->engine), "hammer_user_ns", (json_int_t)load->cpu_user_ns,
        "hammer_system_ns", (json_int_t)load->cpu_system_ns, "server_core",
        core_to_json(&slice->server_core), "hammer_cores", core_to_json(&slice->hammer_cores));
    json_object_set_new(line, "in_flight", json_integer((json_int_t)load->total.in_flight));
    json_object_set_new(line, "errors_total", json_integer((json_int_t)errors_of(&load->total)));
    json_object_set_new(line, "longest_gap_ns", json_integer((json_int_t)load->longest_gap_ns));
    if (isfinite(load->little)) /* rounded, so that what is read back is the same number */
        json_object_set_new(line, "little", json_real(round(load->little * 1e6) / 1e6));
    if (slice->server_cores > 1)
        json_object_set_new(line, "server_cores", json_integer(slice->server_cores));
    if (slice->usage_known)
        add_usage(line, slice);
    add_waits(line, slice);
    if (load->latency.count > 0)
        json_object_set_new(line, "latency", latency_to_json(&load->latency));
    return line;
}
