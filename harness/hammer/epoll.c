#include "hammer/engine.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Each socket is registered once, edge-triggered and for both directions: a level-triggered one
 * would be put back on the ready list and polled again by every wait. The next request is written
 * from the handler that read the answer. */

#define EVENTS        128
#define EVENTS_WANTED (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)
#define BUFFER_BYTES  65536

struct epoll_state {
    int fd;
    struct epoll_event events[EVENTS];
    char buffer[BUFFER_BYTES];
};

static int start(struct worker *w)
{
    struct epoll_state *state = mem_alloc(1, sizeof *state);
    state->fd = epoll_create1(EPOLL_CLOEXEC);
    if (state->fd < 0) {
        int code = errno;
        free(state);
        return err_set(&w->err, code, "epoll_create1: %s", strerror(code));
    }
    w->engine_state = state;
    return 0;
}

static void stop(struct worker *w)
{
    struct epoll_state *state = w->engine_state;
    close(state->fd);
    free(state);
}

static int begin_connect(struct worker *w, struct conn *c)
{
    struct epoll_state *state = w->engine_state;
    int fd = worker_socket(w, c, SOCK_NONBLOCK);
    if (fd < 0)
        return fd;
    c->fd = fd;
    struct epoll_event event = {.events = EVENTS_WANTED, .data.u32 = worker_conn_index(w, c)};
    const struct sockaddr *address = (const struct sockaddr *)&w->config->address;
    if (connect(fd, address, sizeof w->config->address) != 0 && errno != EINPROGRESS)
        return -errno;
    if (epoll_ctl(state->fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return -errno;
    return 0;
}

static void write_unsent(struct worker *w, struct conn *c)
{
    while (c->unsent_bytes > 0) {
        ssize_t sent =
            send(c->fd, worker_unsent(w, c), c->unsent_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) {
            c->unsent_bytes -= (size_t)sent;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            worker_failed(w, c, HAMMER_ERROR_WRITE, errno);
            return;
        }
    }
}

static void end(struct worker *w, struct conn *c, bool abort)
{
    (void)w;
    const struct linger none = {.l_onoff = 1, .l_linger = 0};
    if (abort)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(c->fd);
}

/* Brings back the edge of a socket that was left before it was empty (epoll_ctl(2)). */
static void arm_again(struct worker *w, const struct conn *c)
{
    struct epoll_state *state = w->engine_state;
    struct epoll_event event = {.events = EVENTS_WANTED, .data.u32 = worker_conn_index(w, c)};
    epoll_ctl(state->fd, EPOLL_CTL_MOD, c->fd, &event);
}

/* A read shorter than the buffer has emptied the socket; what comes later is another edge. Only
 * where the peer has hung up is it read on, to the end of the file. A peer that writes faster than
 * its answer can be scanned never leaves it empty: it is left when a tick is due, since timeouts
 * and the end of the window wait for no answer. */
static void read_all(struct worker *w, struct conn *c, uint32_t events)
{
    struct epoll_state *state = w->engine_state;
    bool hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    uint16_t generation = c->generation;
    while (c->generation == generation) {
        ssize_t got = recv(c->fd, state->buffer, sizeof state->buffer, MSG_DONTWAIT);
        w->now_ns = clock_now_ns();
        if (got > 0) {
            worker_received(w, c, state->buffer, (size_t)got);
            if ((size_t)got < sizeof state->buffer && !hung_up)
                return;
            if (w->now_ns >= w->next_tick_ns && c->generation == generation) {
                arm_again(w, c);
                return;
            }
        } else if (got == 0) {
            worker_peer_closed(w, c);
            return;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            worker_failed(w, c, HAMMER_ERROR_READ, errno);
            return;
        }
    }
}

static void connect_done(struct worker *w, struct conn *c)
{
    int code = 0;
    socklen_t size = sizeof code;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0)
        worker_connect_failed(w, c, code);
    else
        worker_connected(w, c);
}

static void handle(struct worker *w, struct conn *c, uint32_t events)
{
    if (c->state == CONN_CONNECTING) {
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
            connect_done(w, c);
        if (c->state != CONN_OPEN)
            return;
    }
    if (c->unsent_bytes > 0 && (events & EPOLLOUT)) {
        uint16_t generation = c->generation;
        write_unsent(w, c);
        if (c->generation != generation)
            return;
    }
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        read_all(w, c, events);
}

static void wait_events(struct worker *w, uint64_t limit_ns)
{
    struct epoll_state *state = w->engine_state;
    int limit_ms = (int)((limit_ns + NS_PER_MS - 1) / NS_PER_MS);
    int count = epoll_wait(state->fd, state->events, EVENTS, limit_ms);
    worker_batch(w);
    for (int i = 0; i < count; i++)
        handle(w, &w->conns[state->events[i].data.u32], state->events[i].events);
}

const struct engine engine_epoll = {
    .id = HAMMER_EPOLL,
    .start = start,
    .stop = stop,
    .connect = begin_connect,
    .send = write_unsent,
    .close = end,
    .wait = wait_events,
};
