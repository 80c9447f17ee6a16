/* Raw epoll under llhttp: what the loop libraries cost over having none.
 *
 * A connection is edge-triggered for reading. A request costs recv() and send(); a short read means
 * the socket is empty, and spares the recv() that would say EAGAIN. When a client does not read,
 * its connection turns to wait for writing only, with what is unsent kept, so that it costs no more
 * than one read's worth of answers.
 */
#include "../common/http1.h"
#include "../common/reply.h"
#include "../common/server.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS = 256,
    IN_BYTES = 16384,
    ACCEPT_BATCH = 128,    /* then the connections already open get their turn */
    READ_BATCH = 16,       /* full buffers from one connection before the others get their turn */
    ACCEPT_PAUSE_MS = 100, /* after EMFILE and the like */
    SWEEP_S = 5,           /* how often the slow ones are looked for */
    PATIENCE_S = 50,       /* without progress; RFC 9112 9.5 leaves the number to the server */
    LINGER_S = 5,          /* for a client to read its last answer and close */
};

static const uint32_t readable = EPOLLIN | EPOLLRDHUP | EPOLLET;
static const uint32_t ended = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

struct connection {
    struct connection *next, **link; /* the list of all, for the sweep */
    int fd;
    bool lingering;  /* writing is shut down; what comes in is thrown away */
    time_t active_s; /* when it last made progress, on the loop's clock */
    char *rest;      /* answers the socket had no room for; NULL nearly always */
    size_t rest_bytes, rest_sent;
    struct http1 http;
};

static int poll_fd, listen_fd, signal_fd;
static bool accept_paused, running = true;
static struct connection *connections;
static time_t now_s, swept_s;

static void watch(int operation, int fd, uint32_t events, void *data)
{
    struct epoll_event event = {.events = events, .data.ptr = data};
    if (epoll_ctl(poll_fd, operation, fd, &event) != 0) {
        perror("epoll_ctl");
        exit(1);
    }
}

static void connection_close(struct connection *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    close(c->fd);
    free(c->rest);
    free(c);
}

/* The last answer is sent. Closing with input unread would reset the connection, and the reset
 * could overtake the answer. */
static void connection_finish(struct connection *c)
{
    if (!c->http.linger) {
        connection_close(c);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    c->lingering = true;
    c->active_s = now_s;
    watch(EPOLL_CTL_MOD, c->fd, EPOLLIN, c);
}

static void connection_drain(struct connection *c)
{
    char waste[IN_BYTES];
    ssize_t got = recv(c->fd, waste, sizeof waste, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        connection_close(c);
}

/* Keeps what did not fit, and reads no more from this client until it has taken it. */
static void rest_keep(struct connection *c, const char *text, size_t bytes)
{
    c->rest = malloc(bytes);
    if (!c->rest) {
        connection_close(c);
        return;
    }
    memcpy(c->rest, text, bytes);
    c->rest_bytes = bytes;
    c->rest_sent = 0;
    watch(EPOLL_CTL_MOD, c->fd, EPOLLOUT, c);
}

static void rest_send(struct connection *c)
{
    ssize_t sent = send(c->fd, c->rest + c->rest_sent, c->rest_bytes - c->rest_sent, 0);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR)
            connection_close(c);
        return;
    }
    c->active_s = now_s;
    c->rest_sent += (size_t)sent;
    if (c->rest_sent < c->rest_bytes)
        return;
    free(c->rest);
    c->rest = NULL;
    if (c->http.closing)
        connection_finish(c);
    else
        watch(EPOLL_CTL_MOD, c->fd, readable, c);
}

/* Returns whether the connection may be read further. */
static bool answers_send(struct connection *c, const char *text, size_t bytes)
{
    ssize_t sent = send(c->fd, text, bytes, 0);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        connection_close(c);
        return false;
    }
    if (sent != (ssize_t)bytes) {
        size_t done = sent < 0 ? 0 : (size_t)sent;
        rest_keep(c, text + done, bytes - done);
        return false;
    }
    if (c->http.closing) {
        connection_finish(c);
        return false;
    }
    return true;
}

/* A short read has emptied the socket, but for an end of stream that was reported with it: that is
 * behind the data, and an edge is not reported twice. */
static void connection_read(struct connection *c, uint32_t reported)
{
    static char in[IN_BYTES], out[HTTP1_OUT_BYTES(IN_BYTES)];
    for (int i = 0; i < READ_BATCH; i++) {
        ssize_t got = recv(c->fd, in, sizeof in, 0);
        if (got <= 0) {
            if (got == 0 || (errno != EAGAIN && errno != EINTR))
                connection_close(c);
            return;
        }
        size_t bytes = http1_feed(&c->http, in, (size_t)got, out);
        if (c->http.progress)
            c->active_s = now_s;
        if (bytes > 0 && !answers_send(c, out, bytes))
            return;
        if ((size_t)got < sizeof in && !(reported & ended))
            return;
    }
    watch(EPOLL_CTL_MOD, c->fd, readable, c); /* reports what is still unread */
}

static void connection_open(int fd)
{
    struct connection *c = malloc(sizeof *c);
    if (!c) {
        close(fd);
        return;
    }
    c->fd = fd;
    c->lingering = false;
    c->active_s = now_s;
    c->rest = NULL;
    http1_init(&c->http);
    c->next = connections;
    c->link = &connections;
    if (c->next)
        c->next->link = &c->next;
    connections = c;
    watch(EPOLL_CTL_ADD, fd, readable, c);
}

static void accept_some(void)
{
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            connection_open(fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The listener stays readable, so look away for a while. */
            watch(EPOLL_CTL_MOD, listen_fd, 0, &listen_fd);
            accept_paused = true;
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}

static void accept_resume(void)
{
    accept_paused = false;
    watch(EPOLL_CTL_MOD, listen_fd, EPOLLIN, &listen_fd);
}

static void sweep(void)
{
    struct connection *next;
    swept_s = now_s;
    for (struct connection *c = connections; c; c = next) {
        next = c->next;
        if (now_s - c->active_s > (c->lingering ? LINGER_S : PATIENCE_S))
            connection_close(c);
    }
}

static int wait_ms(void)
{
    return accept_paused ? ACCEPT_PAUSE_MS : connections ? SWEEP_S * 1000 : -1;
}

static void clock_refresh(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    now_s = now.tv_sec;
}

static void event_handle(const struct epoll_event *event)
{
    struct connection *c = event->data.ptr;
    if ((void *)c == &listen_fd)
        accept_some();
    else if ((void *)c == &signal_fd)
        running = false;
    else if (c->rest)
        rest_send(c);
    else if (c->lingering)
        connection_drain(c);
    else
        connection_read(c, event->events);
}

static void serve(void)
{
    static struct epoll_event events[EVENTS];
    while (running) {
        int count = epoll_wait(poll_fd, events, EVENTS, wait_ms());
        reply_refresh();
        clock_refresh();
        if (accept_paused)
            accept_resume();
        for (int i = 0; i < count; i++)
            event_handle(&events[i]);
        if (now_s - swept_s >= SWEEP_S)
            sweep();
    }
}

static int signal_open(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
    struct server_args args;
    server_args_parse(&args, argc, argv, http1_version);
    server_ignore_sigpipe();
    listen_fd = server_listen(&args);
    reply_init();
    clock_refresh();

    signal_fd = signal_open();
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    watch(EPOLL_CTL_ADD, signal_fd, EPOLLIN, &signal_fd);
    watch(EPOLL_CTL_ADD, listen_fd, EPOLLIN, &listen_fd);
    serve();

    while (connections)
        connection_close(connections);
    close(listen_fd);
    close(poll_fd);
    close(signal_fd);
    return 0;
}
