/* libev: an ev_io for each connection, llhttp for the parsing.
 *
 * A request costs recv() and send(), both straight from the read callback; libev is asked to wait
 * for writing only when a client does not read, and then does not wait for reading.
 */
#include "../common/http1.h"
#include "../common/reply.h"
#include "../common/server.h"

#include <errno.h>
#include <ev.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IN_BYTES = 16384,
    ACCEPT_BATCH = 128, /* then the connections already open get their turn */
};

static const double accept_pause_s = 0.1; /* after EMFILE and the like */
static const double sweep_s = 5;          /* how often the slow ones are looked for */
static const double patience_s = 50;      /* without progress */
static const double linger_s = 5;         /* for a client to read its last answer and close */

struct connection {
    ev_io io;
    struct connection *next, **link; /* the list of all, for the sweep */
    ev_tstamp active_s;              /* when it last made progress, on the loop's clock */
    bool lingering;                  /* writing is shut down; what comes in is thrown away */
    char *rest;                      /* answers the socket had no room for; NULL nearly always */
    size_t rest_bytes, rest_sent;
    struct http1 http;
};

static struct connection *connections;
static ev_io listener;
static ev_timer accept_timer;

static void on_readable(struct ev_loop *loop, ev_io *io, int events);
static void on_writable(struct ev_loop *loop, ev_io *io, int events);

static void connection_close(struct ev_loop *loop, struct connection *c)
{
    ev_io_stop(loop, &c->io);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    close(c->io.fd);
    free(c->rest);
    free(c);
}

static void on_draining(struct ev_loop *loop, ev_io *io, int events)
{
    (void)events;
    char waste[IN_BYTES];
    ssize_t got = recv(io->fd, waste, sizeof waste, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        connection_close(loop, io->data);
}

static void connection_watch(struct ev_loop *loop, struct connection *c,
                             void (*callback)(struct ev_loop *, ev_io *, int), int events)
{
    ev_io_stop(loop, &c->io);
    ev_set_cb(&c->io, callback);
    ev_io_set(&c->io, c->io.fd, events);
    ev_io_start(loop, &c->io);
}

/* The last answer is sent. Closing with input unread would reset the connection, and the reset
 * could overtake the answer. */
static void connection_finish(struct ev_loop *loop, struct connection *c)
{
    if (!c->http.linger) {
        connection_close(loop, c);
        return;
    }
    shutdown(c->io.fd, SHUT_WR);
    c->lingering = true;
    c->active_s = ev_now(loop);
    connection_watch(loop, c, on_draining, EV_READ);
}

/* Keeps what did not fit, and reads no more from this client until it has taken it. */
static void rest_keep(struct ev_loop *loop, struct connection *c, const char *text, size_t bytes)
{
    c->rest = malloc(bytes);
    if (!c->rest) {
        connection_close(loop, c);
        return;
    }
    memcpy(c->rest, text, bytes);
    c->rest_bytes = bytes;
    c->rest_sent = 0;
    connection_watch(loop, c, on_writable, EV_WRITE);
}

static void on_writable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)events;
    struct connection *c = io->data;
    ssize_t sent = send(io->fd, c->rest + c->rest_sent, c->rest_bytes - c->rest_sent, 0);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR)
            connection_close(loop, c);
        return;
    }
    c->active_s = ev_now(loop);
    c->rest_sent += (size_t)sent;
    if (c->rest_sent < c->rest_bytes)
        return;
    free(c->rest);
    c->rest = NULL;
    if (c->http.closing)
        connection_finish(loop, c);
    else
        connection_watch(loop, c, on_readable, EV_READ);
}

static void answers_send(struct ev_loop *loop, struct connection *c, const char *text, size_t bytes)
{
    ssize_t sent = send(c->io.fd, text, bytes, 0);
    if (sent == (ssize_t)bytes) {
        if (c->http.closing)
            connection_finish(loop, c);
    } else if (sent >= 0 || errno == EAGAIN || errno == EINTR) {
        size_t done = sent < 0 ? 0 : (size_t)sent;
        rest_keep(loop, c, text + done, bytes - done);
    } else {
        connection_close(loop, c);
    }
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    static char in[IN_BYTES], out[HTTP1_OUT_BYTES(IN_BYTES)];
    struct connection *c = io->data;
    (void)events;
    ssize_t got = recv(io->fd, in, sizeof in, 0);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            connection_close(loop, c);
        return;
    }
    size_t bytes = http1_feed(&c->http, in, (size_t)got, out);
    if (c->http.progress)
        c->active_s = ev_now(loop);
    if (bytes > 0)
        answers_send(loop, c, out, bytes);
}

static void connection_open(struct ev_loop *loop, int fd)
{
    struct connection *c = malloc(sizeof *c);
    if (!c) {
        close(fd);
        return;
    }
    c->active_s = ev_now(loop);
    c->lingering = false;
    c->rest = NULL;
    http1_init(&c->http);
    c->next = connections;
    c->link = &connections;
    if (c->next)
        c->next->link = &c->next;
    connections = c;
    ev_io_init(&c->io, on_readable, fd, EV_READ);
    c->io.data = c;
    ev_io_start(loop, &c->io);
}

static void on_connections(struct ev_loop *loop, ev_io *io, int events)
{
    (void)events;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            connection_open(loop, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The listener stays readable, so look away for a while. */
            ev_io_stop(loop, io);
            ev_timer_set(&accept_timer, accept_pause_s, 0.);
            ev_timer_start(loop, &accept_timer);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}

static void on_accept_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)timer;
    (void)events;
    ev_io_start(loop, &listener);
}

static void on_sweep(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)timer;
    (void)events;
    struct connection *next;
    for (struct connection *c = connections; c; c = next) {
        next = c->next;
        if (ev_now(loop) - c->active_s > (c->lingering ? linger_s : patience_s))
            connection_close(loop, c);
    }
}

/* Runs after each wait and before the callbacks of what it found. */
static void on_wake(struct ev_loop *loop, ev_check *check, int events)
{
    (void)loop;
    (void)check;
    (void)events;
    reply_refresh();
}

static void on_term(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)watcher;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

int main(int argc, char **argv)
{
    char version[64];
    snprintf(version, sizeof version, "libev %d.%d, %s", ev_version_major(), ev_version_minor(),
             http1_version);
    struct server_args args;
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    int fd = server_listen(&args);
    reply_init();

    struct ev_loop *loop = ev_default_loop(EVBACKEND_EPOLL);
    if (!loop) {
        fputs("libev: no epoll here\n", stderr);
        return 1;
    }
    ev_check wake;
    ev_timer sweep_timer;
    ev_signal term;
    ev_check_init(&wake, on_wake);
    ev_set_priority(&wake, EV_MAXPRI);
    ev_check_start(loop, &wake);
    ev_timer_init(&sweep_timer, on_sweep, sweep_s, sweep_s);
    ev_timer_start(loop, &sweep_timer);
    ev_timer_init(&accept_timer, on_accept_timer, 0., 0.);
    ev_signal_init(&term, on_term, SIGTERM);
    ev_signal_start(loop, &term);
    ev_io_init(&listener, on_connections, fd, EV_READ);
    ev_io_start(loop, &listener);
    ev_run(loop, 0);

    while (connections)
        connection_close(loop, connections);
    close(listener.fd);
    ev_loop_destroy(loop);
    return 0;
}
