/* What epoll on one core can do at most: each blank line in the input is taken for the end of a
 * request and answered with the same bytes. No HTTP is parsed, so this serves as a yardstick only.
 *
 * A request costs recv() and send(), and its share of epoll_wait(). Edge-triggered, so that a
 * served connection leaves the kernel's ready list for good and is not polled again on the next
 * wait; a short read means the socket is empty, and spares the recv() that would say EAGAIN.
 */
#include "../common/canned.h"
#include "../common/server.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
    EVENTS = 512,
    ACCEPT_BATCH = 128,    /* then the connections already open get their turn */
    READ_BATCH = 16,       /* full buffers from one connection before the others get their turn */
    ACCEPT_PAUSE_MS = 100, /* after EMFILE and the like */
};

static const uint32_t readable = EPOLLIN | EPOLLRDHUP | EPOLLET;
static const uint32_t ended = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

struct connection {
    int fd;
    uint8_t matched; /* bytes of the CR LF CR LF that ends a request seen so far */
    bool closing;    /* a request said close: end when the rest is sent */
    unsigned rest_bytes, rest_sent;
    char *rest; /* answers the socket had no room for; NULL nearly always, and then not reading */
};

static int poll_fd;
static int listen_fd;
static bool accept_paused;

static void watch(int operation, int fd, uint32_t events, void *data)
{
    struct epoll_event event = {.events = events, .data.ptr = data};
    if (epoll_ctl(poll_fd, operation, fd, &event) != 0) {
        perror("epoll_ctl");
        exit(1);
    }
}

static void connection_end(struct connection *c)
{
    close(c->fd);
    free(c->rest);
    free(c);
}

/* Keeps what did not fit, and reads no more from this client until it has taken it. */
static void rest_keep(struct connection *c, const char *text, size_t bytes)
{
    c->rest = malloc(bytes);
    if (!c->rest) {
        connection_end(c);
        return;
    }
    memcpy(c->rest, text, bytes);
    c->rest_bytes = (unsigned)bytes;
    c->rest_sent = 0;
    watch(EPOLL_CTL_MOD, c->fd, EPOLLOUT, c);
}

static void rest_send(struct connection *c)
{
    ssize_t sent = send(c->fd, c->rest + c->rest_sent, c->rest_bytes - c->rest_sent, 0);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR)
            connection_end(c);
        return;
    }
    c->rest_sent += (unsigned)sent;
    if (c->rest_sent < c->rest_bytes)
        return;
    free(c->rest);
    c->rest = NULL;
    if (c->closing)
        connection_end(c);
    else
        watch(EPOLL_CTL_MOD, c->fd, readable, c);
}

/* Returns whether the connection may be read further. */
static bool answer(struct connection *c, enum reply_connection wish, size_t requests)
{
    const char *text = canned_answers[wish];
    c->closing = wish == REPLY_CLOSE;
    size_t bytes = (c->closing ? 1 : requests) * canned_answer_bytes[wish];
    ssize_t sent = send(c->fd, text, bytes, 0);
    if (sent == (ssize_t)bytes) {
        if (!c->closing)
            return true;
        connection_end(c);
        return false;
    }
    if (sent >= 0 || errno == EAGAIN || errno == EINTR)
        rest_keep(c, text + (sent > 0 ? sent : 0), bytes - (size_t)(sent > 0 ? sent : 0));
    else
        connection_end(c);
    return false;
}

/* A short read has emptied the socket, but for an end of stream that was reported with it: that is
 * behind the data, and an edge is not reported twice. */
static void connection_read(struct connection *c, uint32_t reported)
{
    static char in[CANNED_MAX_IN_BYTES];
    for (int i = 0; i < READ_BATCH; i++) {
        ssize_t got = recv(c->fd, in, sizeof in, 0);
        if (got <= 0) {
            if (got == 0 || (errno != EAGAIN && errno != EINTR))
                connection_end(c);
            return;
        }
        struct canned_verdict verdict = canned_judge(&c->matched, in, (size_t)got);
        if (verdict.requests > 0 && !answer(c, verdict.wish, verdict.requests))
            return;
        if ((size_t)got < sizeof in && !(reported & ended))
            return;
    }
    watch(EPOLL_CTL_MOD, c->fd, readable, c);
}

static void accept_some(void)
{
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
                return;
            /* EMFILE, ENFILE, ENOBUFS, ENOMEM: the listener stays readable, so look away. */
            watch(EPOLL_CTL_MOD, listen_fd, 0, &listen_fd);
            accept_paused = true;
            return;
        }
        struct connection *c = calloc(1, sizeof *c);
        if (!c) {
            close(fd);
            return;
        }
        c->fd = fd;
        watch(EPOLL_CTL_ADD, fd, readable, c);
    }
}

static void serve(void)
{
    static struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(poll_fd, events, EVENTS, accept_paused ? ACCEPT_PAUSE_MS : -1);
        canned_refresh();
        if (accept_paused) {
            accept_paused = false;
            watch(EPOLL_CTL_MOD, listen_fd, EPOLLIN, &listen_fd);
        }
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if ((void *)c == &listen_fd)
                accept_some();
            else if (c->rest)
                rest_send(c);
            else
                connection_read(c, events[i].events);
        }
    }
}

static void end(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

int main(int argc, char **argv)
{
    struct utsname system;
    char version[sizeof system.release + 16];
    uname(&system);
    snprintf(version, sizeof version, "Linux %s", system.release);

    struct server_args args;
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    listen_fd = server_listen(&args);
    struct sigaction term = {.sa_handler = end};
    sigaction(SIGTERM, &term, NULL);

    canned_init();
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (poll_fd < 0) {
        perror("epoll_create1");
        return 1;
    }
    watch(EPOLL_CTL_ADD, listen_fd, EPOLLIN, &listen_fd);
    serve();
}
