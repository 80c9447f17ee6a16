/* @NAME@: a small HTTP server on epoll, level-triggered, to be replaced piece by piece.
 *
 * Your library replaces the loop (serve, watch), the accepting and the connections' reading and
 * writing. If it brings a parser, http1.h goes too; it is what turns request bytes into answer
 * bytes here. What must stay true meanwhile is docs/CONTRACT.md; `make check-entry ENTRY=@NAME@`
 * says what is not.
 */
#include "../common/http1.h"
#include "../common/reply.h"
#include "../common/server.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
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
    PAUSE_MS = 100,  /* of accepting, when there are no more files */
    PATIENCE_S = 50, /* with a client that makes no progress */
    SWEEP_S = 5,     /* how often those are looked for */
};

struct connection {
    struct connection *next, **link; /* list of all */
    int fd;
    time_t active_s;
    bool lingering; /* answered for the last time: read to the end, then close */
    char *rest;     /* answers the socket had no room for, or NULL */
    size_t rest_bytes;
    struct http1 http;
};

static int loop_fd, listen_fd, signal_fd;
static bool running = true;
static struct connection *connections;
static time_t now_s;

static void watch(int operation, int fd, uint32_t events, void *data)
{
    struct epoll_event event = {.events = events, .data.ptr = data};
    if (epoll_ctl(loop_fd, operation, fd, &event) != 0) {
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

/* Closing with input unread resets the connection, and the answer may be lost (RFC 9112, 9.6). */
static void connection_end(struct connection *c)
{
    if (!c->http.linger) {
        connection_close(c);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    c->lingering = true;
    watch(EPOLL_CTL_MOD, c->fd, EPOLLIN, c);
}

/* Sends what it can. What is left is kept, and the client is read no further until it took it. */
static void connection_send(struct connection *c, const char *text, size_t bytes)
{
    ssize_t sent = send(c->fd, text, bytes, 0);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        connection_close(c);
        return;
    }
    size_t done = sent < 0 ? 0 : (size_t)sent;
    char *before = c->rest;
    bool waited = before != NULL;
    c->rest_bytes = bytes - done;
    c->rest = NULL;
    if (c->rest_bytes > 0) {
        c->rest = malloc(c->rest_bytes);
        if (c->rest)
            memcpy(c->rest, text + done, c->rest_bytes);
    }
    free(before);
    if (c->rest_bytes > 0 && !c->rest)
        connection_close(c);
    else if (c->rest)
        watch(EPOLL_CTL_MOD, c->fd, EPOLLOUT, c);
    else if (c->http.closing)
        connection_end(c);
    else if (waited)
        watch(EPOLL_CTL_MOD, c->fd, EPOLLIN, c);
}

static void connection_read(struct connection *c)
{
    static char in[IN_BYTES], out[HTTP1_OUT_BYTES(IN_BYTES)];
    ssize_t got = recv(c->fd, in, sizeof in, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        connection_close(c);
        return;
    }
    if (got < 0 || c->lingering)
        return;
    size_t bytes = http1_feed(&c->http, in, (size_t)got, out);
    if (c->http.progress)
        c->active_s = now_s;
    if (bytes > 0)
        connection_send(c, out, bytes);
}

static void connection_open(int fd)
{
    struct connection *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return;
    }
    c->fd = fd;
    c->active_s = now_s;
    http1_init(&c->http);
    c->next = connections;
    c->link = &connections;
    if (c->next)
        c->next->link = &c->next;
    connections = c;
    watch(EPOLL_CTL_ADD, fd, EPOLLIN, c);
}

/* Returns false when the process has no more files: the listener stays readable and must rest. */
static bool accept_all(void)
{
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            connection_open(fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            return false;
        else if (errno != ECONNABORTED && errno != EINTR)
            return true;
    }
}

static void sweep(void)
{
    static time_t swept_s;
    struct connection *next;
    if (now_s - swept_s < SWEEP_S)
        return;
    swept_s = now_s;
    for (struct connection *c = connections; c; c = next) {
        next = c->next;
        if (now_s - c->active_s > PATIENCE_S)
            connection_close(c);
    }
}

static void handle(const struct epoll_event *event, bool *resting)
{
    struct connection *c = event->data.ptr;
    if (event->data.ptr == &signal_fd)
        running = false;
    else if (event->data.ptr == &listen_fd && !accept_all()) {
        *resting = true;
        watch(EPOLL_CTL_MOD, listen_fd, 0, &listen_fd);
    } else if (event->data.ptr == &listen_fd)
        return;
    else if (c->rest)
        connection_send(c, c->rest, c->rest_bytes);
    else
        connection_read(c);
}

static void serve(void)
{
    static struct epoll_event events[EVENTS];
    bool resting = false;
    while (running) {
        int count = epoll_wait(loop_fd, events, EVENTS, resting ? PAUSE_MS : SWEEP_S * 1000);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        now_s = now.tv_sec;
        reply_refresh(); /* the Date */
        if (resting)
            watch(EPOLL_CTL_MOD, listen_fd, EPOLLIN, &listen_fd);
        resting = false;
        for (int i = 0; i < count; i++)
            handle(&events[i], &resting);
        sweep();
    }
}

int main(int argc, char **argv)
{
    struct server_args args;
    server_args_parse(&args, argc, argv, http1_version);
    server_ignore_sigpipe();
    listen_fd = server_listen(&args);
    reply_init();

    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    signal_fd = signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK);
    loop_fd = epoll_create1(EPOLL_CLOEXEC);
    watch(EPOLL_CTL_ADD, signal_fd, EPOLLIN, &signal_fd);
    watch(EPOLL_CTL_ADD, listen_fd, EPOLLIN, &listen_fd);
    serve();
    while (connections)
        connection_close(connections);
    return 0;
}
