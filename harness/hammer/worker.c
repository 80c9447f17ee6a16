#include "hammer/worker.h"

#include "base/clock.h"
#include "hammer/engine.h"
#include "host/cpu.h"
#include "host/usage.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections of all threads that have not been seen alive yet while ramping or reconnecting. An
 * accept queue that overflows drops the SYN, which comes again after 1 s (tcp(7)), and many
 * libraries listen with a backlog of 128. */
#define WAVE 96

/* A server that has not answered after so long has had the time to accept. */
#define WAVE_PATIENCE_NS (20 * NS_PER_MS)

/* Timeouts, connections to open again and the wall clock are looked at so often. */
#define TICK_MAX_NS      (10 * NS_PER_MS)
#define TICK_MIN_NS      (1 * NS_PER_MS)
#define TICK_PER_CONN_NS (2 * NS_PER_US) /* keeps the sweep below 1% of the time */

static uint64_t thread_cpu_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_usec * NS_PER_US;
}

static void cpu_read(uint64_t *user_ns, uint64_t *system_ns)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    *user_ns = thread_cpu_ns(usage.ru_utime);
    *system_ns = thread_cpu_ns(usage.ru_stime);
}

static uint64_t lost_total(const struct hammer_counts *counts)
{
    uint64_t lost = counts->timed_out;
    for (int kind = 0; kind < HAMMER_ERROR_KINDS; kind++)
        lost += counts->errors[kind];
    return lost;
}

static uint64_t unanswered(const struct hammer_counts *counts)
{
    return counts->sent - counts->valid - counts->wrong - lost_total(counts);
}

/* *stop is set by a signal handler, or by another thread. */
static bool load_stop_asked(const struct load *load)
{
    const volatile sig_atomic_t *stop = load->config->stop;
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED);
}

static bool stop_asked(const struct worker *w)
{
    return load_stop_asked(w->load);
}

static enum load_phase phase_now(const struct worker *w)
{
    return (enum load_phase)atomic_load_explicit(&w->load->phase, memory_order_acquire);
}

void worker_note(struct worker *w, const char *format, ...)
{
    char *text = w->sum->first_wrong;
    if (text[0] != '\0')
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof w->sum->first_wrong, format, arguments);
    va_end(arguments);
}

/* ---- the window's edges */

static void window_open(struct worker *w)
{
    w->measuring = true;
    w->sum->connections_established = w->open + (w->config->close_each ? w->connecting : 0);
    cpu_read(&w->cpu_user_ns, &w->cpu_system_ns);
    w->wait_known = host_thread_wait_ns(&w->wait_ns);
}

static void window_close(struct worker *w)
{
    uint64_t user_ns, system_ns, wait_ns;
    w->measuring = false;
    w->refill = false;
    cpu_read(&user_ns, &system_ns);
    w->sum->cpu_user_ns = user_ns - w->cpu_user_ns;
    w->sum->cpu_system_ns = system_ns - w->cpu_system_ns;
    w->sum->wait_known = w->wait_known && host_thread_wait_ns(&wait_ns);
    w->sum->wait_ns = w->sum->wait_known ? wait_ns - w->wait_ns : 0;
}

static void edge_tell(const struct worker *w, int edge)
{
    if (w->index == 0 && w->config->at_edge)
        w->config->at_edge(w->config->context, edge);
}

/* The first thread moves the phase on by the clock. */
static void phase_advance(struct worker *w)
{
    struct load *load = w->load;
    enum load_phase phase = phase_now(w);
    if (phase == LOAD_SETTLE && w->now_ns >= atomic_load(&load->open_ns)) {
        edge_tell(w, 0);
        w->now_ns = clock_now_ns();
        atomic_store(&load->open_ns, w->now_ns);
        atomic_store_explicit(&load->phase, LOAD_WINDOW, memory_order_release);
    } else if (phase == LOAD_WINDOW && w->quota == UINT64_MAX &&
               (w->now_ns >= atomic_load(&load->open_ns) + w->config->duration_ns ||
                stop_asked(w))) {
        atomic_store(&load->close_ns, w->now_ns);
        atomic_store_explicit(&load->phase, LOAD_DRAIN, memory_order_release);
        edge_tell(w, 1);
    }
}

void worker_batch(struct worker *w)
{
    w->now_ns = clock_now_ns();
    uint64_t gap_ns = w->now_ns - w->batch_ns;
    if (w->batch_ns > 0 && gap_ns > w->sum->longest_gap_ns)
        w->sum->longest_gap_ns = gap_ns;
    w->batch_ns = w->now_ns;
    if (w->open > 0)
        w->alive_ns = w->now_ns;
    if (w->index == 0)
        phase_advance(w);
    enum load_phase phase = phase_now(w);
    if (phase == LOAD_WINDOW && !w->measuring && w->refill)
        window_open(w);
    else if (phase == LOAD_DRAIN && w->refill) {
        if (w->measuring)
            window_close(w);
        w->refill = false;
    }
}

/* ---- requests */

static void burn(const struct worker *w, unsigned requests)
{
    uint64_t until_ns = clock_now_ns() + requests * w->config->burn_ns;
    while (clock_now_ns() < until_ns)
        ;
}

/* Sends as many requests as the pipeline has room for, as if written at `stamp_ns`. */
static void fill(struct worker *w, struct conn *c, uint64_t stamp_ns)
{
    unsigned pipeline = w->config->pipeline;
    unsigned count = pipeline - c->outstanding;
    if (count > w->quota)
        count = (unsigned)w->quota;
    if (count == 0)
        return;
    if (w->config->burn_ns > 0)
        burn(w, count);
    if (w->quota != UINT64_MAX)
        w->quota -= count;
    uint64_t *stamps = w->stamps + (size_t)worker_conn_index(w, c) * pipeline;
    unsigned place = c->oldest + c->outstanding;
    for (unsigned i = 0; i < count; i++, place++)
        stamps[place >= pipeline ? place - pipeline : place] = stamp_ns;
    c->outstanding = (uint16_t)(c->outstanding + count);
    c->unsent_bytes += count * w->config->request_bytes;
    w->sum->total.sent += count;
    w->engine->send(w, c);
}

static void ramp_done(struct worker *w, struct conn *c)
{
    if (c->ramped)
        return;
    c->ramped = true;
    w->ramped++;
}

/* ---- connections */

int worker_socket(struct worker *w, const struct conn *c, int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        return -errno;
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* The system's choice may pace and sample, as BBR does; on loopback there is nothing to learn.
     * Reno is always there (tcp(7)). */
    if (load_is_loopback(w->config))
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", sizeof "reno" - 1);
    const struct load *load = w->load;
    if (load->source_count == 0)
        return fd;
    /* The port is left to connect(2), which may use one that is taken towards other addresses
     * (ip(7), IP_BIND_ADDRESS_NO_PORT). */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    unsigned nth = (worker_conn_index(w, c) + c->generation) % load->source_count;
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr = load->sources[nth]};
    if (bind(fd, (const struct sockaddr *)&source, sizeof source) != 0) {
        int code = errno;
        close(fd);
        return -code;
    }
    return fd;
}

static void conn_start(struct worker *w, struct conn *c)
{
    c->generation++;
    c->since_ns = w->now_ns;
    c->state = CONN_CONNECTING;
    c->checked = false;
    w->connecting++;
    int status = w->engine->connect(w, c);
    if (status < 0)
        worker_connect_failed(w, c, -status);
}

static void conn_close(struct worker *w, struct conn *c, bool abort)
{
    w->open -= c->state == CONN_OPEN || c->state == CONN_ENDING;
    w->connecting -= c->state == CONN_CONNECTING;
    answers_forget(w, c);
    if (c->fd >= 0)
        w->engine->close(w, c, abort);
    c->fd = -1;
    c->state = CONN_IDLE;
    c->outstanding = 0;
    c->oldest = 0;
    c->unsent_bytes = 0;
    c->generation++;
}

/* Whether one more connection would find a request left: each that is connecting takes one. */
static bool wanted(const struct worker *w)
{
    return w->refill && w->quota > w->connecting;
}

/* A connection that had carried an answer is opened again at once; another waits for the next
 * tick, so that a server that refuses or resets is not asked in a tight loop. */
static void conn_restart(struct worker *w, struct conn *c, bool abort)
{
    bool carried = c->checked;
    conn_close(w, c, abort);
    ramp_done(w, c);
    if (carried && wanted(w))
        conn_start(w, c);
}

void worker_connected(struct worker *w, struct conn *c)
{
    c->state = CONN_OPEN;
    w->connecting--;
    w->open++;
    if (!atomic_load_explicit(&w->load->ever_open, memory_order_relaxed))
        atomic_store(&w->load->ever_open, true);
    if (w->refill || (phase_now(w) == LOAD_RAMP && w->quota == UINT64_MAX))
        fill(w, c, w->config->close_each ? c->since_ns : w->now_ns);
    else
        ramp_done(w, c);
}

static void count_errno(struct worker *w, int code)
{
    const unsigned places = sizeof w->sum->errnos / sizeof w->sum->errnos[0];
    if (code > 0)
        w->sum->errnos[(unsigned)code < places ? (unsigned)code : 0]++;
}

void worker_connect_failed(struct worker *w, struct conn *c, int code)
{
    w->sum->connect_failures++;
    w->connect_errno = code;
    count_errno(w, code);
    conn_close(w, c, true);
    ramp_done(w, c);
}

void worker_lose(struct worker *w, struct conn *c, enum hammer_error kind, int code)
{
    w->sum->total.errors[kind] += c->outstanding;
    if (w->measuring)
        w->sum->failed += c->outstanding;
    count_errno(w, code);
    w->sum->reconnects += w->refill;
    conn_restart(w, c, true);
}

void worker_failed(struct worker *w, struct conn *c, enum hammer_error other, int code)
{
    bool reset = code == ECONNRESET || code == EPIPE;
    if (c->state == CONN_ENDING)
        conn_restart(w, c, false);
    else
        worker_lose(w, c, reset ? HAMMER_ERROR_RESET : other, code);
}

void worker_finish(struct worker *w, struct conn *c)
{
    if (c->outstanding > 0) {
        worker_note(w, "the server closed with %u pipelined requests unanswered", c->outstanding);
        w->sum->total.errors[HAMMER_ERROR_CLOSED] += c->outstanding;
        if (w->measuring)
            w->sum->failed += c->outstanding;
        c->outstanding = 0;
    }
    c->unsent_bytes = 0;
    c->state = CONN_ENDING;
    c->since_ns = w->now_ns;
}

void worker_peer_closed(struct worker *w, struct conn *c)
{
    bool asked = w->config->close_each;
    if (c->state == CONN_OPEN)
        answers_end(w, c);
    if (c->state == CONN_ENDING || c->outstanding == 0) {
        w->sum->reconnects += w->refill && !asked;
        conn_restart(w, c, false);
        return;
    }
    worker_note(w, "the server closed the connection before the answer was whole");
    worker_lose(w, c, HAMMER_ERROR_CLOSED, 0);
}

void worker_received(struct worker *w, struct conn *c, const char *bytes, size_t size)
{
    uint16_t generation = c->generation;
    answers_take(w, c, bytes, size);
    if (c->generation != generation || c->state != CONN_OPEN)
        return;
    if (w->refill) {
        if (c->outstanding < w->config->pipeline)
            fill(w, c, w->now_ns);
    } else if (c->outstanding == 0)
        ramp_done(w, c);
}

/* ---- the tick */

static void conn_time_out(struct worker *w, struct conn *c)
{
    char seen[300];
    answers_describe(c, seen, sizeof seen);
    worker_note(w, "no answer within %.3g ms: %s", (double)w->config->timeout_ns / 1e6, seen);
    w->sum->total.timed_out += c->outstanding;
    if (w->measuring)
        w->sum->failed += c->outstanding;
    w->sum->reconnects += w->refill;
    conn_restart(w, c, true);
}

static void conn_check(struct worker *w, struct conn *c)
{
    uint64_t timeout_ns = w->config->timeout_ns;
    switch ((enum conn_state)c->state) {
    case CONN_IDLE:
        if (!wanted(w))
            break;
        if (w->connecting < WAVE)
            conn_start(w, c);
        else
            w->hurried = true;
        break;
    case CONN_CONNECTING:
        if (w->now_ns - c->since_ns > timeout_ns)
            worker_connect_failed(w, c, ETIMEDOUT);
        break;
    case CONN_OPEN:
        if (c->outstanding > 0 &&
            w->now_ns -
                    w->stamps[(size_t)worker_conn_index(w, c) * w->config->pipeline + c->oldest] >
                timeout_ns)
            conn_time_out(w, c);
        break;
    case CONN_ENDING:
        if (w->now_ns - c->since_ns > timeout_ns) {
            w->sum->unclosed++;
            conn_restart(w, c, true);
        }
        break;
    }
}

/* With a request count: nothing can be sent any more, and nothing comes. */
static bool given_up(const struct worker *w)
{
    return w->quota != UINT64_MAX && w->open == 0 &&
           w->now_ns - w->alive_ns > w->config->timeout_ns;
}

static void tick(struct worker *w)
{
    if (w->now_ns < w->next_tick_ns)
        return;
    w->wall_s = time(NULL);
    w->hurried = false;
    for (unsigned i = 0; i < w->count; i++)
        conn_check(w, &w->conns[i]);
    w->next_tick_ns = w->now_ns + (w->hurried ? TICK_MIN_NS : w->tick_ns);
}

static void wait_until(struct worker *w, uint64_t deadline_ns)
{
    uint64_t until_ns = deadline_ns < w->next_tick_ns ? deadline_ns : w->next_tick_ns;
    w->engine->wait(w, until_ns > w->now_ns ? until_ns - w->now_ns : 0);
    tick(w);
}

/* ---- the phases */

/* Starts what the wave allows. One connection not seen alive for a while holds up no other. */
static void ramp_start_some(struct worker *w, unsigned wave)
{
    while (w->ramp_waiting < w->ramp_started) {
        const struct conn *c = &w->conns[w->ramp_waiting];
        if (!c->ramped && w->now_ns - c->since_ns < WAVE_PATIENCE_NS)
            break;
        w->ramp_waiting++;
    }
    while (w->ramp_started < w->count && w->ramp_started - w->ramp_waiting < wave)
        conn_start(w, &w->conns[w->ramp_started++]);
}

static void ramp(struct worker *w)
{
    unsigned wave = WAVE / w->config->threads + 1;
    w->now_ns = clock_now_ns();
    while (w->ramped < w->count && !stop_asked(w)) {
        ramp_start_some(w, wave);
        uint64_t patience_ns = w->ramp_started < w->count ? NS_PER_MS : TICK_MAX_NS;
        wait_until(w, w->now_ns + patience_ns);
    }
}

/* Waits for the other threads. The last to come runs `last`. */
static void gate(struct worker *w, void (*last)(struct load *))
{
    struct load *load = w->load;
    pthread_mutex_lock(&load->mutex);
    unsigned passed = load->passed;
    if (++load->arrived == load->threads) {
        load->arrived = 0;
        load->passed++;
        if (last)
            last(load);
        pthread_cond_broadcast(&load->gate);
    }
    while (load->passed == passed)
        pthread_cond_wait(&load->gate, &load->mutex);
    pthread_mutex_unlock(&load->mutex);
}

static void gate_settle(struct load *load)
{
    if (!atomic_load(&load->ever_open) || load_stop_asked(load))
        atomic_store(&load->cancelled, true);
    atomic_store(&load->open_ns, clock_now_ns() + load->config->settle_ns);
    atomic_store_explicit(&load->phase, LOAD_SETTLE, memory_order_release);
}

/* With a request count the window opens for all threads at once, before any has sent. */
static void gate_open(struct load *load)
{
    atomic_store(&load->open_ns, clock_now_ns());
    atomic_store_explicit(&load->phase, LOAD_WINDOW, memory_order_release);
}

static void fire(struct worker *w)
{
    w->refill = true;
    w->batch_ns = 0; /* the wait for the other threads is no gap */
    worker_batch(w);
    w->alive_ns = w->now_ns;
    w->next_tick_ns = w->now_ns + w->tick_ns;
    for (unsigned i = 0; i < w->count; i++) {
        struct conn *c = &w->conns[i];
        if (c->state == CONN_IDLE && wanted(w) && w->connecting < WAVE)
            conn_start(w, c);
        else if (c->state == CONN_OPEN && c->outstanding < w->config->pipeline)
            fill(w, c, w->now_ns);
    }
}

/* At full load until the first thread says that the window has closed. */
static void run_duration(struct worker *w)
{
    while (w->refill) {
        uint64_t edge_ns = atomic_load(&w->load->open_ns);
        if (w->measuring)
            edge_ns += w->config->duration_ns;
        if (stop_asked(w) && w->index == 0 && phase_now(w) == LOAD_SETTLE)
            atomic_store(&w->load->open_ns, w->now_ns);
        wait_until(w, edge_ns);
    }
}

/* Until this thread's share of the requests is answered; the window closes with the last. */
static void run_count(struct worker *w)
{
    while ((w->quota > 0 || unanswered(&w->sum->total) > 0) && !stop_asked(w) && !given_up(w))
        wait_until(w, w->now_ns + TICK_MAX_NS);
    if (w->measuring)
        window_close(w);
    w->refill = false;
    uint64_t close_ns = atomic_load(&w->load->close_ns);
    while (close_ns < w->now_ns &&
           !atomic_compare_exchange_weak(&w->load->close_ns, &close_ns, w->now_ns))
        ;
    gate(w, NULL);
    if (w->index == 0) {
        atomic_store_explicit(&w->load->phase, LOAD_DRAIN, memory_order_release);
        edge_tell(w, 1);
    }
}

static void drain(struct worker *w)
{
    uint64_t deadline_ns = w->now_ns + w->config->drain_ns;
    while (unanswered(&w->sum->total) > 0 && w->now_ns < deadline_ns)
        wait_until(w, deadline_ns);
}

static void load_run(struct worker *w)
{
    if (w->quota == UINT64_MAX) {
        fire(w);
        run_duration(w);
    } else {
        edge_tell(w, 0);
        gate(w, gate_open);
        fire(w);
        run_count(w);
    }
    drain(w);
}

static void end(struct worker *w)
{
    uint64_t in_flight = 0;
    for (unsigned i = 0; i < w->count; i++) {
        struct conn *c = &w->conns[i];
        in_flight += c->outstanding;
        if (c->state != CONN_IDLE)
            conn_close(w, c, c->state == CONN_CONNECTING || c->outstanding > 0);
    }
    w->sum->total.in_flight = in_flight;
    w->sum->interrupted = stop_asked(w);
    assert(unanswered(&w->sum->total) == in_flight);
}

static void free_lists(struct worker *w)
{
    while (w->free_scans) {
        struct scan *scan = w->free_scans;
        w->free_scans = scan->next_free;
        free(scan);
    }
    while (w->free_holds) {
        struct hold *hold = w->free_holds;
        w->free_holds = hold->next_free;
        free(hold);
    }
}

void *worker_main(void *argument)
{
    struct worker *w = argument;
    w->tick_ns = w->config->timeout_ns / 16;
    uint64_t tick_max_ns = TICK_MAX_NS + w->count * TICK_PER_CONN_NS;
    w->tick_ns = w->tick_ns > tick_max_ns ? tick_max_ns : w->tick_ns;
    w->tick_ns = w->tick_ns < TICK_MIN_NS ? TICK_MIN_NS : w->tick_ns;
    w->wall_s = time(NULL);
    w->status = w->config->cpus ? host_cpu_pin(w->config->cpus[w->index], &w->err) : 0;
    bool started = w->status == 0 && (w->status = w->engine->start(w)) == 0;
    if (started)
        ramp(w);
    else
        atomic_store(&w->load->cancelled, true);
    gate(w, gate_settle);
    if (!atomic_load(&w->load->cancelled))
        load_run(w);
    if (started) {
        end(w);
        w->engine->stop(w);
    }
    free_lists(w);
    return NULL;
}
