/* What io_uring on one core can do at most: the same canned work as limit-epoll, another kernel
 * interface. A yardstick only.
 *
 * One io_uring_enter() submits all the answers of a turn and waits for the next requests. Accepting
 * and receiving are multishot: armed once, they report for as long as the connection lives. What is
 * received lies in a ring of buffers that the kernel picks from. Connections are direct
 * descriptors, which spares each operation a look-up in the process's file table.
 */
#include "../common/canned.h"
#include "../common/server.h"

#include <errno.h>
#include <liburing.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
    SQ_ENTRIES = 4096,
    CQ_ENTRIES = 32768,
    MAX_FILES = 65536,
    BUFFERS = 1024, /* a power of two, as the kernel wants */
    BUFFER_BYTES = 2048,
    /* Not a power of two, so that the first lines of all buffers do not share few cache sets. */
    BUFFER_STRIDE = BUFFER_BYTES + 64,
    BUFFER_GROUP = 0,
    /* Requests in wait of an answer at which a client that does not read is read no more. */
    MAX_OWED = CANNED_COPIES,
};

/* What a completion belongs to: a connection's pointer with one of these in its low bits. */
enum { TAG_RECV, TAG_SEND, TAG_ACCEPT, TAG_ACCEPT_TIMER, TAG_IGNORED, TAG_MASK = 7 };

struct connection {
    unsigned file; /* index of the direct descriptor */
    uint8_t matched;
    bool receiving, sending; /* in the kernel's hands; freed when neither is */
    bool paused;             /* receiving is being cancelled until the client has read */
    bool closing;            /* a request said close: end when the answer is sent */
    bool closed;
    enum reply_connection wish;
    size_t owed; /* answers not yet handed to a send */
    size_t send_bytes;
    char *rest; /* what a short send left, copied so that its Date is not torn */
    size_t rest_sent;
};

static struct io_uring ring;
static struct io_uring_buf_ring *buffer_ring;
static char buffers[BUFFERS][BUFFER_STRIDE];
static int listen_fd;
static struct __kernel_timespec accept_pause = {.tv_nsec = 100000000}; /* after ENFILE and such */

static _Noreturn void fail(const char *what, int error)
{
    fprintf(stderr, "limit-uring: %s: %s\n", what, strerror(error));
    exit(1);
}

/* Not a failure of this server: the status is the one that the collection takes for "skipped". */
static _Noreturn void lack(const char *what, int error)
{
    fprintf(stderr, "limit-uring: %s: %s\n", what, strerror(error));
    exit(77);
}

static struct io_uring_sqe *entry_get(void)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    if (entry)
        return entry;
    io_uring_submit(&ring);
    entry = io_uring_get_sqe(&ring);
    if (!entry)
        fail("the submission queue stays full", EBUSY);
    return entry;
}

static void tag_set(struct io_uring_sqe *entry, struct connection *c, uintptr_t tag)
{
    io_uring_sqe_set_data64(entry, (uintptr_t)c | tag);
}

static void accept_arm(void)
{
    struct io_uring_sqe *entry = entry_get();
    io_uring_prep_multishot_accept_direct(entry, listen_fd, NULL, NULL, 0);
    tag_set(entry, NULL, TAG_ACCEPT);
}

static void recv_arm(struct connection *c)
{
    struct io_uring_sqe *entry = entry_get();
    io_uring_prep_recv_multishot(entry, (int)c->file, NULL, 0, 0);
    entry->flags |= IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
    entry->buf_group = BUFFER_GROUP;
    tag_set(entry, c, TAG_RECV);
    c->receiving = true;
    c->paused = false;
}

static void recv_cancel(struct connection *c)
{
    struct io_uring_sqe *entry = entry_get();
    io_uring_prep_cancel64(entry, (uintptr_t)c | TAG_RECV, 0);
    entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
    tag_set(entry, NULL, TAG_IGNORED);
}

static void send_start(struct connection *c, const char *text, size_t bytes)
{
    struct io_uring_sqe *entry = entry_get();
    io_uring_prep_send(entry, (int)c->file, text, bytes, 0);
    entry->flags |= IOSQE_FIXED_FILE;
    tag_set(entry, c, TAG_SEND);
    c->send_bytes = bytes;
    c->sending = true;
}

/* Hands the answers owed to one send, if none is on its way: two could overtake each other. */
static void answers_send(struct connection *c)
{
    if (c->sending || c->owed == 0 || c->closed)
        return;
    size_t count = c->owed < CANNED_COPIES ? c->owed : CANNED_COPIES;
    c->owed -= count;
    send_start(c, canned_answers[c->wish], count * canned_answer_bytes[c->wish]);
}

static void connection_free(struct connection *c)
{
    if (c->receiving || c->sending)
        return;
    free(c->rest);
    free(c);
}

static void connection_close(struct connection *c)
{
    if (!c->closed) {
        c->closed = true;
        if (c->receiving)
            recv_cancel(c); /* which would keep the socket open */
        struct io_uring_sqe *entry = entry_get();
        io_uring_prep_close_direct(entry, c->file);
        entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
        tag_set(entry, NULL, TAG_IGNORED);
    }
    connection_free(c);
}

static void input_take(struct connection *c, const char *in, size_t bytes)
{
    struct canned_verdict verdict = canned_judge(&c->matched, in, bytes);
    if (verdict.requests == 0 || c->closing)
        return;
    c->wish = verdict.wish;
    c->closing = verdict.wish == REPLY_CLOSE;
    c->owed = c->closing ? 1 : c->owed + verdict.requests;
    answers_send(c);
    if (c->owed > MAX_OWED && !c->paused) {
        c->paused = true;
        recv_cancel(c);
    }
}

/* Gives a buffer back to the kernel. */
static void buffer_return(unsigned id)
{
    io_uring_buf_ring_add(buffer_ring, buffers[id], BUFFER_BYTES, (unsigned short)id,
                          io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(buffer_ring, 1);
}

static void on_recv(struct connection *c, const struct io_uring_cqe *result)
{
    if (!(result->flags & IORING_CQE_F_MORE))
        c->receiving = false;
    if (result->flags & IORING_CQE_F_BUFFER) {
        unsigned id = result->flags >> IORING_CQE_BUFFER_SHIFT;
        if (result->res > 0 && !c->closed)
            input_take(c, buffers[id], (size_t)result->res);
        buffer_return(id);
    }
    if (c->closed)
        connection_free(c);
    else if (result->res == 0 || (result->res < 0 && result->res != -ENOBUFS &&
                                  result->res != -ECANCELED && result->res != -EINTR))
        connection_close(c);
    else if (!c->receiving && !c->paused)
        recv_arm(c);
}

static void rest_send(struct connection *c, size_t done)
{
    size_t left = c->send_bytes - done;
    if (!c->rest) {
        c->rest = malloc(left);
        if (!c->rest) {
            connection_close(c);
            return;
        }
        memcpy(c->rest, canned_answers[c->wish] + done, left);
    } else {
        c->rest_sent += done;
    }
    send_start(c, c->rest + c->rest_sent, left);
}

static void on_send(struct connection *c, const struct io_uring_cqe *result)
{
    c->sending = false;
    if (c->closed || (result->res < 0 && result->res != -EINTR && result->res != -EAGAIN)) {
        connection_close(c);
        return;
    }
    size_t done = result->res < 0 ? 0 : (size_t)result->res;
    if (done < c->send_bytes) {
        rest_send(c, done);
        return;
    }
    free(c->rest);
    c->rest = NULL;
    c->rest_sent = 0;
    if (c->owed > 0)
        answers_send(c);
    else if (c->closing)
        connection_close(c);
    else if (!c->receiving)
        recv_arm(c);
}

static void on_accept(const struct io_uring_cqe *result)
{
    struct connection *c = result->res >= 0 ? calloc(1, sizeof *c) : NULL;
    if (c) {
        c->file = (unsigned)result->res;
        recv_arm(c);
    }
    if (result->flags & IORING_CQE_F_MORE)
        return;
    if (result->res >= 0 || result->res == -ECONNABORTED || result->res == -EINTR) {
        accept_arm();
        return;
    }
    struct io_uring_sqe *entry = entry_get();
    io_uring_prep_timeout(entry, &accept_pause, 0, 0);
    tag_set(entry, NULL, TAG_ACCEPT_TIMER);
}

static void completion_handle(const struct io_uring_cqe *result)
{
    uintptr_t data = (uintptr_t)io_uring_cqe_get_data64(result);
    struct connection *c = (struct connection *)(data & ~(uintptr_t)TAG_MASK);
    switch (data & TAG_MASK) {
    case TAG_RECV:
        on_recv(c, result);
        break;
    case TAG_SEND:
        on_send(c, result);
        break;
    case TAG_ACCEPT:
        on_accept(result);
        break;
    case TAG_ACCEPT_TIMER:
        accept_arm();
        break;
    }
}

static void serve(void)
{
    accept_arm();
    for (;;) {
        int error = io_uring_submit_and_wait(&ring, 1);
        if (error < 0 && error != -EINTR && error != -EBUSY && error != -EAGAIN)
            fail("io_uring_enter", -error);
        canned_refresh();
        struct io_uring_cqe *result;
        unsigned head, count = 0;
        io_uring_for_each_cqe(&ring, head, result)
        {
            completion_handle(result);
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
}

static void buffers_register(void)
{
    struct io_uring_buf_reg registration = {.ring_entries = BUFFERS, .bgid = BUFFER_GROUP};
    buffer_ring = aligned_alloc(4096, BUFFERS * sizeof(struct io_uring_buf));
    if (!buffer_ring)
        fail("buffer ring", ENOMEM);
    registration.ring_addr = (uintptr_t)buffer_ring;
    int error = io_uring_register_buf_ring(&ring, &registration, 0);
    if (error < 0)
        fail("the kernel takes no buffer ring (Linux 5.19 and newer do)", -error);
    io_uring_buf_ring_init(buffer_ring);
    for (unsigned id = 0; id < BUFFERS; id++)
        buffer_return(id);
}

static void ring_open(void)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
                 IORING_SETUP_DEFER_TASKRUN,
        .cq_entries = CQ_ENTRIES,
    };
    int error = io_uring_queue_init_params(SQ_ENTRIES, &ring, &params);
    if (error == -EINVAL)
        lack("the kernel has no deferred task work (Linux 6.1 and newer do)", -error);
    if (error < 0)
        lack("the kernel refuses io_uring (kernel.io_uring_disabled, or a seccomp profile such as "
             "Docker's)",
             -error);
    io_uring_register_ring_fd(&ring); /* spares a look-up a turn; does without where it must */

    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    unsigned files = limit.rlim_cur < MAX_FILES ? (unsigned)limit.rlim_cur : MAX_FILES;
    error = io_uring_register_files_sparse(&ring, files);
    if (error < 0)
        fail("cannot register a table of direct descriptors", -error);
    buffers_register();
}

/* The kernel takes a ring down in its own time, some of it after the process has ended, and the
 * accept in it holds the listener: shutting that down frees the port at once. */
static void end(int signal_number)
{
    (void)signal_number;
    shutdown(listen_fd, SHUT_RDWR);
    _exit(0);
}

int main(int argc, char **argv)
{
    struct utsname kernel;
    char version[sizeof kernel.release + 32];
    uname(&kernel);
    snprintf(version, sizeof version, "Linux %s", kernel.release);

    struct server_args args;
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    listen_fd = server_listen(&args);
    struct sigaction term = {.sa_handler = end};
    sigaction(SIGTERM, &term, NULL);

    canned_init();
    ring_open();
    serve();
}
