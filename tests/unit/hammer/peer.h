/* A server played by threads of the test: one thread a connection, so that its behaviour is a plain
 * function that reads and writes as a story is told.
 */
#ifndef PEER_H
#define PEER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PEER_CONNECTIONS_MAX 4096

struct peer;

struct talk { /* one connection, as its behaviour sees it */
    struct peer *peer;
    int fd;
    unsigned nth; /* connections accepted before */
    size_t size;  /* bytes in `in` that belong to later requests */
    char in[65536];
};

struct peer {
    void (*serve)(struct talk *talk); /* returns to close the connection */
    struct sockaddr_in address;
    int fd;
    pthread_t thread;
    atomic_uint accepted, requests;
    atomic_bool dead; /* accepts what is queued, then stops and closes what is open */
    pthread_t threads[PEER_CONNECTIONS_MAX];
    int fds[PEER_CONNECTIONS_MAX]; /* duplicates, to end a thread that reads */
};

static inline void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Waits for one request (no body); false at the end of the connection. */
static inline bool talk_request(struct talk *t)
{
    for (;;) {
        t->in[t->size] = '\0';
        char *blank = strstr(t->in, "\r\n\r\n");
        if (blank) {
            size_t used = (size_t)(blank + 4 - t->in);
            t->size -= used;
            memmove(t->in, t->in + used, t->size);
            atomic_fetch_add(&t->peer->requests, 1);
            return true;
        }
        ssize_t got = recv(t->fd, t->in + t->size, sizeof t->in - 1 - t->size, 0);
        if (got <= 0)
            return false;
        t->size += (size_t)got;
    }
}

static inline bool talk_write(struct talk *t, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(t->fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static inline bool talk_say(struct talk *t, const char *text)
{
    return talk_write(t, text, strlen(text));
}

static inline void talk_reset(struct talk *t)
{
    const struct linger none = {.l_onoff = 1, .l_linger = 0};
    setsockopt(t->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

static void *peer_talk(void *argument)
{
    struct talk *t = argument;
    t->peer->serve(t);
    int fd = t->fd;
    int *copy = &t->peer->fds[t->nth];
    free(t);
    /* The duplicate would keep the connection open. */
    close(__atomic_exchange_n(copy, -1, __ATOMIC_ACQ_REL));
    close(fd);
    return NULL;
}

static void *peer_accept(void *argument)
{
    struct peer *peer = argument;
    for (;;) {
        struct pollfd ready = {.fd = peer->fd, .events = POLLIN};
        if (poll(&ready, 1, 5) == 0 && !atomic_load(&peer->dead))
            continue;
        int fd = accept4(peer->fd, NULL, NULL, SOCK_CLOEXEC);
        unsigned nth = atomic_load(&peer->accepted);
        if (fd < 0 || nth == PEER_CONNECTIONS_MAX)
            return NULL;
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct talk *t = calloc(1, sizeof *t);
        t->peer = peer;
        t->fd = fd;
        t->nth = nth;
        peer->fds[nth] = dup(fd);
        pthread_create(&peer->threads[nth], NULL, peer_talk, t);
        atomic_fetch_add(&peer->accepted, 1);
    }
}

static inline void peer_start(struct peer *peer, void (*serve)(struct talk *talk))
{
    memset(peer, 0, sizeof *peer);
    peer->serve = serve;
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    peer->address.sin_family = AF_INET;
    peer->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof peer->address;
    if (bind(peer->fd, (struct sockaddr *)&peer->address, size) != 0 ||
        getsockname(peer->fd, (struct sockaddr *)&peer->address, &size) != 0 ||
        listen(peer->fd, 128) != 0)
        abort();
    pthread_create(&peer->thread, NULL, peer_accept, peer);
}

/* Nothing listens any more, every connection is shut. */
static inline void peer_kill(struct peer *peer)
{
    if (atomic_exchange(&peer->dead, true))
        return;
    pthread_join(peer->thread, NULL);
    close(peer->fd);
    for (unsigned i = 0; i < atomic_load(&peer->accepted); i++) {
        int fd = __atomic_exchange_n(&peer->fds[i], -1, __ATOMIC_ACQ_REL);
        if (fd >= 0) {
            shutdown(fd, SHUT_RDWR);
            close(fd);
        }
    }
}

static inline void peer_stop(struct peer *peer)
{
    peer_kill(peer);
    for (unsigned i = 0; i < atomic_load(&peer->accepted); i++)
        pthread_join(peer->threads[i], NULL);
}

#endif
