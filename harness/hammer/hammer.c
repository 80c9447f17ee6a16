#include "hammer/hammer.h"

#include "base/clock.h"
#include "base/mem.h"
#include "hammer/engine.h"
#include "hammer/ports.h"
#include "host/cpu.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *hammer_engine_name(enum hammer_engine engine)
{
    switch (engine) {
    case HAMMER_AUTO:
        return "auto";
    case HAMMER_EPOLL:
        return "epoll";
    case HAMMER_URING:
        return "io_uring";
    }
    return "unknown";
}

const char *hammer_error_name(enum hammer_error kind)
{
    static const char *const names[HAMMER_ERROR_KINDS] = {
        [HAMMER_ERROR_CONNECT] = "connect", [HAMMER_ERROR_RESET] = "reset",
        [HAMMER_ERROR_CLOSED] = "closed",   [HAMMER_ERROR_MALFORMED] = "malformed",
        [HAMMER_ERROR_READ] = "read",       [HAMMER_ERROR_WRITE] = "write",
    };
    return kind < HAMMER_ERROR_KINDS ? names[kind] : "unknown";
}

static int check(const struct hammer_config *config, struct err *err)
{
    if (config->connections == 0 || config->connections > HAMMER_CONNECTIONS_MAX)
        return err_set(err, EINVAL, "connections must be 1 to %d, not %u", HAMMER_CONNECTIONS_MAX,
                       config->connections);
    if (config->threads == 0 || config->threads > HAMMER_THREADS_MAX ||
        config->threads > config->connections)
        return err_set(err, EINVAL,
                       "threads must be 1 to %d and no more than the %u connections, not %u",
                       HAMMER_THREADS_MAX, config->connections, config->threads);
    if (config->pipeline == 0 || config->pipeline > HAMMER_PIPELINE_MAX)
        return err_set(err, EINVAL, "pipeline depth must be 1 to %d, not %u", HAMMER_PIPELINE_MAX,
                       config->pipeline);
    if (config->close_each && config->pipeline > 1)
        return err_set(err, EINVAL,
                       "a connection that closes after each answer can't be pipelined");
    if ((config->duration_ns == 0) == (config->requests == 0))
        return err_set(err, EINVAL, "either a duration or a number of requests must be given");
    if (config->requests > 0 && config->settle_ns > 0)
        return err_set(err, EINVAL, "a number of requests leaves none for settling");
    if (config->timeout_ns == 0)
        return err_set(err, EINVAL, "the timeout must be above zero");
    if (!config->request || config->request_bytes == 0)
        return err_set(err, EINVAL, "there is no request to send");
    return 0;
}

/* AUTO takes io_uring where the kernel has all that the engine needs. */
static int engine_choose(const struct hammer_config *config, struct hammer_result *result,
                         const struct engine **engine, struct err *err)
{
    struct err reason = {0};
    *engine = &engine_epoll;
    if (config->engine != HAMMER_EPOLL) {
        int status = hammer_uring_probe(&reason);
        if (status == 0)
            *engine = &engine_uring;
        else if (config->engine == HAMMER_URING)
            return err_set(err, -status, "%s", reason.text);
        else
            snprintf(result->engine_reason, sizeof result->engine_reason, "%.*s",
                     (int)sizeof result->engine_reason - 1, reason.text);
    }
    result->engine = (*engine)->id;
    return 0;
}

static void worker_init(struct worker *w, struct load *load, unsigned index)
{
    const struct hammer_config *config = load->config;
    unsigned threads = config->threads;
    w->load = load;
    w->config = config;
    w->engine = load->engine;
    w->index = index;
    w->count = config->connections / threads + (index < config->connections % threads);
    w->quota = UINT64_MAX;
    if (config->requests > 0)
        w->quota = config->requests / threads + (index < config->requests % threads);
    w->conns = mem_alloc(w->count, sizeof *w->conns);
    for (unsigned i = 0; i < w->count; i++)
        w->conns[i].fd = -1;
    w->stamps = mem_alloc((size_t)w->count * config->pipeline, sizeof *w->stamps);
    w->sum = mem_alloc(1, sizeof *w->sum);
    histogram_reset(&w->sum->latency);
}

static void worker_free(struct worker *w)
{
    free(w->conns);
    free(w->stamps);
    free(w->sum);
}

static void counts_merge(struct hammer_counts *into, const struct hammer_counts *from)
{
    into->sent += from->sent;
    into->valid += from->valid;
    into->wrong += from->wrong;
    for (int kind = 0; kind < HAMMER_ERROR_KINDS; kind++)
        into->errors[kind] += from->errors[kind];
    into->timed_out += from->timed_out;
    into->in_flight += from->in_flight;
}

static void result_merge(struct hammer_result *into, const struct hammer_result *from)
{
    counts_merge(&into->total, &from->total);
    into->connect_failures += from->connect_failures;
    into->connections_established += from->connections_established;
    into->reconnects += from->reconnects;
    into->unclosed += from->unclosed;
    for (size_t i = 0; i < sizeof into->errnos / sizeof into->errnos[0]; i++)
        into->errnos[i] += from->errnos[i];
    for (size_t i = 0; i < sizeof into->status / sizeof into->status[0]; i++)
        into->status[i] += from->status[i];
    into->interrupted |= from->interrupted;
    if (from->longest_gap_ns > into->longest_gap_ns)
        into->longest_gap_ns = from->longest_gap_ns;
    if (into->first_wrong[0] == '\0')
        memcpy(into->first_wrong, from->first_wrong, sizeof into->first_wrong);
    into->valid += from->valid;
    into->bytes_read += from->bytes_read;
    into->failed += from->failed;
    into->scanned += from->scanned;
    into->cpu_user_ns += from->cpu_user_ns;
    into->cpu_system_ns += from->cpu_system_ns;
    into->wait_ns += from->wait_ns;
    into->wait_known |= from->wait_known;
    histogram_merge(&into->latency, &from->latency);
}

static void result_finish(struct hammer_result *result, struct load *load)
{
    const struct hammer_config *config = load->config;
    uint64_t open_ns = atomic_load(&load->open_ns);
    uint64_t close_ns = atomic_load(&load->close_ns);
    double mean_ns;
    result->window_ns = close_ns > open_ns ? close_ns - open_ns : 0;
    result->little = NAN;
    if (result->window_ns > 0 && histogram_mean_ns(&result->latency, &mean_ns) == 0)
        result->little = (double)result->valid / (double)result->window_ns * mean_ns /
                         ((double)config->connections * config->pipeline);
}

/* Starts the threads and waits for them. The mutex is held meanwhile, so that none passes the gate
 * before it is known how many there are. */
static int threads_run(struct worker *workers, struct load *load, struct err *err)
{
    unsigned wanted = load->threads;
    int status = 0;
    pthread_mutex_lock(&load->mutex);
    for (load->threads = 0; load->threads < wanted && status == 0;) {
        struct worker *w = &workers[load->threads];
        status = -pthread_create(&w->thread, NULL, worker_main, w);
        load->threads += status == 0;
    }
    atomic_store(&load->cancelled, status != 0);
    pthread_mutex_unlock(&load->mutex);
    for (unsigned i = 0; i < load->threads; i++)
        pthread_join(workers[i].thread, NULL);
    if (status != 0)
        return err_set(err, -status, "a loading thread can't be started: %s", strerror(-status));
    for (unsigned i = 0; i < wanted; i++)
        if (workers[i].status != 0)
            return err_set(err, -workers[i].status, "%s", workers[i].err.text);
    return 0;
}

static int refused(const struct worker *workers, const struct hammer_config *config,
                   struct err *err)
{
    uint64_t failures = 0;
    int code = ECONNREFUSED;
    for (unsigned i = 0; i < config->threads; i++) {
        failures += workers[i].sum->connect_failures;
        if (workers[i].connect_errno)
            code = workers[i].connect_errno;
    }
    if (atomic_load(&workers[0].load->ever_open) || failures == 0)
        return 0;
    uint32_t ip = ntohl(config->address.sin_addr.s_addr);
    return err_set(err, ECONNREFUSED,
                   "no connection to %u.%u.%u.%u:%u could be made (%s): is the server running?",
                   ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255,
                   ntohs(config->address.sin_port), strerror(code));
}

static char *block_make(const struct hammer_config *config)
{
    char *block = mem_alloc(config->pipeline, config->request_bytes);
    for (unsigned i = 0; i < config->pipeline; i++)
        memcpy(block + i * config->request_bytes, config->request, config->request_bytes);
    return block;
}

int hammer_run(const struct hammer_config *config, struct hammer_result *result, struct err *err)
{
    struct load load = {.config = config, .threads = config->threads};
    memset(result, 0, sizeof *result);
    histogram_reset(&result->latency);
    result->little = NAN;
    int status = check(config, err);
    if (status == 0)
        status = ports_reserve_files(config, err);
    if (status == 0)
        status = ports_plan(config, load.sources, LOAD_SOURCES_MAX, &load.source_count, err);
    if (status == 0)
        status = engine_choose(config, result, &load.engine, err);
    if (status != 0)
        return status;

    pthread_mutex_init(&load.mutex, NULL);
    pthread_cond_init(&load.gate, NULL);
    load.block = block_make(config);
    load.block_bytes = config->pipeline * config->request_bytes;
    struct worker *workers = mem_alloc(config->threads, sizeof *workers);
    for (unsigned i = 0; i < config->threads; i++)
        worker_init(&workers[i], &load, i);
    status = threads_run(workers, &load, err);
    for (unsigned i = 0; i < config->threads; i++)
        result_merge(result, workers[i].sum);
    result_finish(result, &load);
    if (status == 0)
        status = refused(workers, config, err);
    for (unsigned i = 0; i < config->threads; i++)
        worker_free(&workers[i]);
    free(workers);
    free(load.block);
    pthread_cond_destroy(&load.gate);
    pthread_mutex_destroy(&load.mutex);
    return status;
}
