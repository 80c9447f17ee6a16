/* libevent's bufferevent under llhttp; beside the libevent entry it tells what evhttp costs.
 *
 * The read callback parses the input where it lies and sends the answers at once.
 * bufferevent_write() would arm EV_WRITE instead, and cost two epoll_ctl() and one more
 * epoll_wait() a request; so it gets only what a client is too slow to take, and reading stops
 * until that is gone.
 */
#include "../common/http1.h"
#include "../common/reply.h"
#include "../common/server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    READ_BYTES = 16384,  /* libevent takes no more from a socket at once */
    SWEEP_S = 5,         /* how often the slow ones are looked for */
    PATIENCE_SWEEPS = 9, /* without progress, and the one under way */
    LINGER_SWEEPS = 1,   /* for a client to read its last answer and close */
};

static const struct timeval accept_pause = {.tv_usec = 100000}; /* after EMFILE and the like */
static const struct timeval sweep_period = {.tv_sec = SWEEP_S};

struct connection {
    struct bufferevent *events;
    evutil_socket_t fd;
    struct connection *next, **link; /* the list of all, for the sweep */
    unsigned active_sweep;           /* the last sweep before it last made progress */
    size_t unsent_bytes;             /* at the last sweep */
    bool lingering;                  /* writing is shut down; what comes in is thrown away */
    struct http1 http;
};

static struct event_base *base;
static struct evconnlistener *listener;
static struct event *accept_timer;
static struct connection *connections;
static unsigned sweeps;

static void connection_close(struct connection *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    bufferevent_free(c->events);
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
    c->active_sweep = sweeps;
    bufferevent_enable(c->events, EV_READ);
}

static void on_rest_written(struct bufferevent *events, void *data)
{
    struct connection *c = data;
    c->active_sweep = sweeps;
    if (c->http.closing)
        connection_finish(c);
    else
        bufferevent_enable(events, EV_READ);
}

static void answers_send(struct connection *c, const char *text, size_t bytes)
{
    ssize_t sent = send(c->fd, text, bytes, 0);
    if (sent == (ssize_t)bytes) {
        if (c->http.closing)
            connection_finish(c);
    } else if (sent >= 0 || errno == EAGAIN || errno == EINTR) {
        size_t done = sent < 0 ? 0 : (size_t)sent;
        bufferevent_disable(c->events, EV_READ);
        bufferevent_write(c->events, text + done, bytes - done);
    } else {
        connection_close(c);
    }
}

/* Takes all of the input each time, so a read of at most READ_BYTES is all there is. */
static void on_read(struct bufferevent *events, void *data)
{
    static char out[HTTP1_OUT_BYTES(READ_BYTES)];
    struct connection *c = data;
    struct evbuffer *input = bufferevent_get_input(events);
    size_t in_bytes = evbuffer_get_length(input);
    if (c->lingering) {
        evbuffer_drain(input, in_bytes);
        return;
    }
    reply_refresh();
    const char *in = (const char *)evbuffer_pullup(input, -1);
    if (!in) {
        connection_close(c);
        return;
    }
    size_t out_bytes = http1_feed(&c->http, in, in_bytes, out);
    evbuffer_drain(input, in_bytes);
    if (c->http.progress)
        c->active_sweep = sweeps;
    if (out_bytes > 0)
        answers_send(c, out, out_bytes);
}

static void on_event(struct bufferevent *events, short what, void *data)
{
    (void)events;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        connection_close(data);
}

static void on_connection(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer,
                          int peer_bytes, void *data)
{
    (void)from;
    (void)peer;
    (void)peer_bytes;
    (void)data;
    struct connection *c = malloc(sizeof *c);
    struct bufferevent *events = c ? bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!events) {
        free(c);
        evutil_closesocket(fd);
        return;
    }
    c->events = events;
    c->fd = fd;
    c->active_sweep = sweeps;
    c->unsent_bytes = 0;
    c->lingering = false;
    http1_init(&c->http);
    c->next = connections;
    c->link = &connections;
    if (c->next)
        c->next->link = &c->next;
    connections = c;
    bufferevent_set_max_single_read(events, READ_BYTES);
    bufferevent_setcb(events, on_read, on_rest_written, on_event, c);
    bufferevent_enable(events, EV_READ);
}

/* The listener stays readable, so look away for a while. */
static void on_accept_error(struct evconnlistener *from, void *data)
{
    (void)data;
    evconnlistener_disable(from);
    evtimer_add(accept_timer, &accept_pause);
}

static void on_accept_timer(evutil_socket_t fd, short what, void *data)
{
    (void)fd;
    (void)what;
    (void)data;
    evconnlistener_enable(listener);
}

static void on_sweep(evutil_socket_t fd, short what, void *data)
{
    (void)fd;
    (void)what;
    (void)data;
    struct connection *next;
    sweeps++;
    for (struct connection *c = connections; c; c = next) {
        next = c->next;
        size_t unsent_bytes = evbuffer_get_length(bufferevent_get_output(c->events));
        if (unsent_bytes != c->unsent_bytes) {
            c->unsent_bytes = unsent_bytes;
            c->active_sweep = sweeps;
        }
        if (sweeps - c->active_sweep > (c->lingering ? LINGER_SWEEPS : PATIENCE_SWEEPS))
            connection_close(c);
    }
}

static void on_term(evutil_socket_t number, short what, void *data)
{
    (void)number;
    (void)what;
    (void)data;
    event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
    char version[64];
    snprintf(version, sizeof version, "libevent %s, %s", event_get_version(), http1_version);
    struct server_args args;
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    int fd = server_listen(&args);
    reply_init();

    base = event_base_new();
    listener = base ? evconnlistener_new(base, on_connection, NULL,
                                         LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd)
                    : NULL;
    if (!base || !listener) {
        fputs("libevent: cannot start\n", stderr);
        return 1;
    }
    evconnlistener_set_error_cb(listener, on_accept_error);
    accept_timer = evtimer_new(base, on_accept_timer, NULL);
    struct event *sweep_timer = event_new(base, -1, EV_PERSIST, on_sweep, NULL);
    struct event *term = evsignal_new(base, SIGTERM, on_term, NULL);
    evtimer_add(sweep_timer, &sweep_period);
    evsignal_add(term, NULL);
    event_base_dispatch(base);

    while (connections)
        connection_close(connections);
    event_free(term);
    event_free(sweep_timer);
    event_free(accept_timer);
    evconnlistener_free(listener);
    event_base_free(base);
    libevent_global_shutdown();
    return 0;
}
