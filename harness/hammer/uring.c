#include "hammer/engine.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A ring a thread (IORING_SETUP_SINGLE_ISSUER, 6.0; _DEFER_TASKRUN, 6.1): completions are run when
 * this thread waits, not when the network pleases. Each socket sits in the ring's file table and
 * has one multishot receive (6.0) that fills buffers from a provided ring (5.19), which go back at
 * once, since answers are judged where they lie. A batch of answers makes a batch of sends, handed
 * over by the next wait. Sends of at most SEND_SMALL_BYTES outstanding on a connection always fit
 * the socket, and report failure only (IOSQE_CQE_SKIP_SUCCESS, 5.17; with MSG_WAITALL a short send
 * is a failure).
 */

#define SQ_ENTRIES       512
#define CQ_ENTRIES_MAX   65536 /* Linux's IORING_MAX_CQ_ENTRIES is twice its SQ limit of 32768 */
#define BUFFER_BYTES     4160  /* 65 cache lines: at 4096, all beginnings would share a cache set */
#define PAGE_BYTES       4096
#define BUFFERS_MIN      64
#define BUFFERS_MAX      2048
#define BUFFER_GROUP     0
#define SEND_SMALL_BYTES 8192
#define CQE_BATCH        64

enum op { OP_CONNECT, OP_RECV, OP_SEND };

struct uring_state {
    struct io_uring ring;
    struct io_uring_buf_ring *buffers;
    size_t buffers_bytes; /* of the ring and the buffers behind it, one mapping */
    unsigned buffer_count;
    char *buffer;
    bool fixed;        /* sockets are in the file table */
    bool quiet_sends;  /* sends report failure only */
    unsigned returned; /* buffers put back, not yet told */
};

/* -- the ring and its parts, also what the probe tries */

static const struct {
    int code;
    const char *text;
} refusals[] = {
    {EPERM, "io_uring is not allowed here (kernel.io_uring_disabled or a seccomp filter such as "
            "Docker's default profile)"},
    {EACCES, "io_uring is not allowed here (a security module refuses it)"},
    {ENOSYS, "this kernel has no io_uring, or a seccomp filter hides it"},
    {EINVAL, "io_uring lacks single issuer with deferred task work (Linux 6.1)"},
};

static int refuse(struct err *err, int code, const char *what)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].code == code)
            return err_set(err, code, "%s", refusals[i].text);
    return err_set(err, code, "%s: %s", what, strerror(code));
}

static int ring_open(struct io_uring *ring, unsigned sq_entries, unsigned cq_entries,
                     struct err *err)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE |
                 IORING_SETUP_CLAMP,
        .cq_entries = cq_entries,
    };
    int status = io_uring_queue_init_params(sq_entries, ring, &params);
    if (status < 0)
        return refuse(err, -status, "io_uring_setup");
    const unsigned need = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP;
    if ((params.features & need) != need) {
        io_uring_queue_exit(ring);
        return err_set(err, EINVAL, "io_uring lacks features of Linux 5.17");
    }
    return 0;
}

static void buffer_give(struct uring_state *state, unsigned id)
{
    io_uring_buf_ring_add(state->buffers, state->buffer + (size_t)id * BUFFER_BYTES, BUFFER_BYTES,
                          (unsigned short)id, io_uring_buf_ring_mask(state->buffer_count),
                          (int)state->returned++);
}

static void buffers_tell(struct uring_state *state)
{
    if (state->returned > 0)
        io_uring_buf_ring_advance(state->buffers, (int)state->returned);
    state->returned = 0;
}

static int buffers_open(struct uring_state *state, unsigned count, struct err *err)
{
    size_t ring_bytes = count * sizeof(struct io_uring_buf);
    ring_bytes = (ring_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    state->buffer_count = count;
    state->buffers_bytes = ring_bytes + (size_t)count * BUFFER_BYTES;
    void *map = mmap(NULL, state->buffers_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (map == MAP_FAILED)
        return err_set(err, errno, "buffers for io_uring: %s", strerror(errno));
    struct io_uring_buf_reg reg = {
        .ring_addr = (uintptr_t)map, .ring_entries = count, .bgid = BUFFER_GROUP};
    int status = io_uring_register_buf_ring(&state->ring, &reg, 0);
    if (status < 0) {
        munmap(map, state->buffers_bytes);
        return err_set(err, -status, "io_uring can't provide a ring of buffers (Linux 5.19): %s",
                       strerror(-status));
    }
    state->buffers = map;
    io_uring_buf_ring_init(state->buffers);
    state->buffer = (char *)map + ring_bytes;
    for (unsigned id = 0; id < count; id++)
        buffer_give(state, id);
    buffers_tell(state);
    return 0;
}

static void state_close(struct uring_state *state)
{
    io_uring_queue_exit(&state->ring);
    munmap(state->buffers, state->buffers_bytes);
}

static int state_open(struct uring_state *state, unsigned sq_entries, unsigned cq_entries,
                      unsigned buffers, struct err *err)
{
    int status = ring_open(&state->ring, sq_entries, cq_entries, err);
    if (status != 0)
        return status;
    status = buffers_open(state, buffers, err);
    if (status != 0)
        io_uring_queue_exit(&state->ring);
    return status;
}

/* -- the probe: a multishot receive on a socket pair must deliver twice */

static int probe_receive(struct uring_state *state, int pair[2], struct err *err)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&state->ring);
    io_uring_prep_recv_multishot(sqe, 0, NULL, 0, 0);
    sqe->flags = (__u8)(IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE);
    sqe->buf_group = BUFFER_GROUP;
    for (int i = 0; i < 2; i++) {
        struct __kernel_timespec limit = {.tv_sec = 1};
        struct io_uring_cqe *cqe = NULL;
        if (write(pair[1], "x", 1) != 1)
            return err_set(err, EIO, "the probe of io_uring can't write to its socket pair");
        int status = io_uring_submit_and_wait_timeout(&state->ring, &cqe, 1, &limit, NULL);
        if (status < 0 || !cqe)
            return err_set(err, EOPNOTSUPP, "io_uring does not wait as the engine needs it");
        bool good =
            cqe->res == 1 && (cqe->flags & IORING_CQE_F_MORE) && (cqe->flags & IORING_CQE_F_BUFFER);
        io_uring_cqe_seen(&state->ring, cqe);
        if (!good)
            return err_set(err, EOPNOTSUPP,
                           "io_uring has no multishot receive into provided buffers (Linux 6.0)");
    }
    return 0;
}

int hammer_uring_probe(struct err *err)
{
    struct uring_state state = {0};
    int pair[2];
    int status = state_open(&state, 8, 16, 8, err);
    if (status != 0)
        return status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        status = err_set(err, errno, "socketpair: %s", strerror(errno));
        state_close(&state);
        return status;
    }
    status = io_uring_register_files_sparse(&state.ring, 1);
    if (status == 0)
        status = io_uring_register_files_update(&state.ring, 0, &pair[0], 1) == 1 ? 0 : -EBADF;
    if (status < 0)
        status = err_set(err, -status, "io_uring can't register files: %s", strerror(-status));
    else
        status = probe_receive(&state, pair, err);
    close(pair[0]);
    close(pair[1]);
    state_close(&state);
    return status;
}

/* -- the engine */

static unsigned power_of_two(unsigned value, unsigned low, unsigned high)
{
    unsigned power = low;
    while (power < value && power < high)
        power *= 2;
    return power;
}

static int start(struct worker *w)
{
    struct uring_state *state = mem_alloc(1, sizeof *state);
    unsigned buffers = power_of_two(w->count, BUFFERS_MIN, BUFFERS_MAX);
    /* A connection has at most a receive that ended, a connect or a send to report, and the buffers
     * bound what receives deliver: room for all of it, so that nothing overflows. */
    unsigned completions = power_of_two(2 * w->count + buffers, BUFFERS_MIN, CQ_ENTRIES_MAX);
    completions = completions < 2 * SQ_ENTRIES ? 2 * SQ_ENTRIES : completions;
    int status = state_open(state, SQ_ENTRIES, completions, buffers, &w->err);
    if (status != 0) {
        free(state);
        return status;
    }
    /* A socket that serves one request is not worth its place in the table. */
    state->fixed = !w->config->close_each;
    state->quiet_sends = w->load->block_bytes <= SEND_SMALL_BYTES;
    if (state->fixed) {
        status = io_uring_register_files_sparse(&state->ring, w->count);
        if (status < 0) {
            state_close(state);
            free(state);
            return err_set(&w->err, -status, "io_uring can't register %u files: %s", w->count,
                           strerror(-status));
        }
    }
    w->engine_state = state;
    return 0;
}

static void stop(struct worker *w)
{
    struct uring_state *state = w->engine_state;
    state_close(state);
    free(state);
}

static uint64_t tag(const struct worker *w, const struct conn *c, enum op op)
{
    return (uint64_t)op << 48 | (uint64_t)c->generation << 32 | worker_conn_index(w, c);
}

/* -EBUSY and -EAGAIN, which old kernels give while completions overflow, pass once these have been
 * moved to their queue. */
static void submit(struct worker *w)
{
    struct uring_state *state = w->engine_state;
    int status = io_uring_submit(&state->ring);
    if (status == -EBUSY || status == -EAGAIN)
        io_uring_get_events(&state->ring);
}

/* A place in the submission queue for something on this socket. */
static struct io_uring_sqe *sqe_get(struct worker *w, struct conn *c)
{
    struct uring_state *state = w->engine_state;
    struct io_uring_sqe *sqe;
    while (!(sqe = io_uring_get_sqe(&state->ring)))
        submit(w);
    c->queued = true;
    return sqe;
}

static void sqe_finish(struct worker *w, struct conn *c, struct io_uring_sqe *sqe, enum op op)
{
    const struct uring_state *state = w->engine_state;
    if (state->fixed)
        sqe->flags |= (__u8)IOSQE_FIXED_FILE;
    io_uring_sqe_set_data64(sqe, tag(w, c, op));
}

static int file_of(const struct worker *w, const struct conn *c)
{
    const struct uring_state *state = w->engine_state;
    return state->fixed ? (int)worker_conn_index(w, c) : c->fd;
}

static int begin_connect(struct worker *w, struct conn *c)
{
    struct uring_state *state = w->engine_state;
    int fd = worker_socket(w, c, 0);
    if (fd < 0)
        return fd;
    c->fd = fd;
    c->sending = false;
    if (state->fixed) {
        int status = io_uring_register_files_update(&state->ring, worker_conn_index(w, c), &fd, 1);
        if (status < 0)
            return status;
    }
    struct io_uring_sqe *sqe = sqe_get(w, c);
    io_uring_prep_connect(sqe, file_of(w, c), (const struct sockaddr *)&w->config->address,
                          sizeof w->config->address);
    sqe_finish(w, c, sqe, OP_CONNECT);
    return 0;
}

static void begin_receive(struct worker *w, struct conn *c)
{
    struct io_uring_sqe *sqe = sqe_get(w, c);
    io_uring_prep_recv_multishot(sqe, file_of(w, c), NULL, 0, 0);
    sqe->flags |= (__u8)IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    sqe_finish(w, c, sqe, OP_RECV);
}

/* Quiet sends are as good as done once queued: the ring keeps their order, and the socket has room.
 * Otherwise one is under way at a time, since a second could overtake one that waits for room. */
static void begin_send(struct worker *w, struct conn *c)
{
    const struct uring_state *state = w->engine_state;
    if (c->sending)
        return;
    struct io_uring_sqe *sqe = sqe_get(w, c);
    io_uring_prep_send(sqe, file_of(w, c), worker_unsent(w, c), c->unsent_bytes,
                       MSG_NOSIGNAL | MSG_WAITALL);
    if (state->quiet_sends) {
        sqe->flags |= (__u8)IOSQE_CQE_SKIP_SUCCESS;
        c->unsent_bytes = 0;
    } else {
        c->sending = true;
    }
    sqe_finish(w, c, sqe, OP_SEND);
}

/* What is queued names the socket by a number that is about to mean another: it goes first. A
 * shutdown ends the multishot receive, which would keep the socket open otherwise. */
static void end(struct worker *w, struct conn *c, bool abort)
{
    struct uring_state *state = w->engine_state;
    const struct linger none = {.l_onoff = 1, .l_linger = 0};
    while (c->queued && io_uring_sq_ready(&state->ring) > 0)
        submit(w);
    c->queued = false;
    int nothing = -1;
    if (state->fixed)
        io_uring_register_files_update(&state->ring, worker_conn_index(w, c), &nothing, 1);
    if (abort)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    shutdown(c->fd, SHUT_RDWR);
    close(c->fd);
}

static void received(struct worker *w, struct conn *c, const struct io_uring_cqe *cqe,
                     const char *bytes)
{
    uint16_t generation = c->generation;
    int got = cqe->res;
    if (got > 0)
        worker_received(w, c, bytes, (size_t)got);
    else if (got == 0)
        worker_peer_closed(w, c);
    else if (got != -ENOBUFS && got != -EINTR && got != -EAGAIN)
        worker_failed(w, c, HAMMER_ERROR_READ, -got);
    if (c->generation == generation && c->fd >= 0 && !(cqe->flags & IORING_CQE_F_MORE))
        begin_receive(w, c);
}

static void sent(struct worker *w, struct conn *c, int result)
{
    const struct uring_state *state = w->engine_state;
    c->sending = false;
    if (result < 0) {
        worker_failed(w, c, HAMMER_ERROR_WRITE, -result);
        return;
    }
    if (state->quiet_sends) {
        worker_failed(w, c, HAMMER_ERROR_WRITE, EMSGSIZE);
        return;
    }
    c->unsent_bytes -= (size_t)result;
    if (c->unsent_bytes > 0)
        begin_send(w, c);
}

static void connected(struct worker *w, struct conn *c, int result)
{
    if (result < 0) {
        worker_connect_failed(w, c, -result);
        return;
    }
    begin_receive(w, c);
    worker_connected(w, c);
}

static void handle(struct worker *w, const struct io_uring_cqe *cqe)
{
    struct uring_state *state = w->engine_state;
    uint64_t data = io_uring_cqe_get_data64(cqe);
    struct conn *c = &w->conns[(uint32_t)data];
    bool current = c->generation == (uint16_t)(data >> 32);
    unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
    switch ((enum op)(data >> 48)) {
    case OP_CONNECT:
        if (current)
            connected(w, c, cqe->res);
        break;
    case OP_RECV:
        if (current)
            received(w, c, cqe, state->buffer + (size_t)id * BUFFER_BYTES);
        if (cqe->flags & IORING_CQE_F_BUFFER)
            buffer_give(state, id);
        break;
    case OP_SEND:
        if (current)
            sent(w, c, cqe->res);
        break;
    }
}

static void wait_completions(struct worker *w, uint64_t limit_ns)
{
    struct uring_state *state = w->engine_state;
    struct io_uring_cqe *cqes[CQE_BATCH];
    struct __kernel_timespec limit = {.tv_sec = (long long)(limit_ns / NS_PER_S),
                                      .tv_nsec = (long long)(limit_ns % NS_PER_S)};
    io_uring_submit_and_wait_timeout(&state->ring, cqes, 1, &limit, NULL);
    worker_batch(w);
    unsigned count;
    while ((count = io_uring_peek_batch_cqe(&state->ring, cqes, CQE_BATCH)) > 0) {
        for (unsigned i = 0; i < count; i++)
            handle(w, cqes[i]);
        io_uring_cq_advance(&state->ring, count);
        buffers_tell(state);
    }
}

const struct engine engine_uring = {
    .id = HAMMER_URING,
    .start = start,
    .stop = stop,
    .connect = begin_connect,
    .send = begin_send,
    .close = end,
    .wait = wait_completions,
};
