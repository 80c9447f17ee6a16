/* Hello World on libevent's evhttp: evhttp parses, keeps the connection and writes; the entry says
 * what to answer and sets the limits that evhttp leaves open.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "../common/server.h"
#include "request.h"

enum {
    HEAD_MAX_BYTES = 64 * 1024,
    BODY_MAX_BYTES = 1024 * 1024,
    IDLE_TIMEOUT_S = 60,
    REQUEST_TIMEOUT_S = 55, /* from a request's first byte to its last */
    ACCEPT_PAUSE_MS = 100,
    ANY_METHOD = 0xffff, /* those that evhttp has no name for, too */
};

struct server {
    struct event_base *base;
    struct evhttp *http;
    struct evconnlistener *listener;
    struct event *accept_again;
    struct event *sigterm;
    time_t *begun_s; /* by descriptor: when the request that is coming in began, or 0 */
    size_t begun_room;
    time_t date_made_at;
    char date[sizeof "Sun, 06 Nov 1994 08:49:37 GMT"];
};

/* Static, because evhttp_bind_listener puts evhttp in the place of the listener's own argument. */
static struct server server;

static time_t now_s(void)
{
    struct timeval now;
    event_base_gettimeofday_cached(server.base, &now);
    return now.tv_sec;
}

static const char *date(void)
{
    time_t now = now_s();
    if (now != server.date_made_at) {
        struct tm utc;
        gmtime_r(&now, &utc);
        evutil_date_rfc1123(server.date, sizeof server.date, &utc);
        server.date_made_at = now;
    }
    return server.date;
}

/* evhttp gives up on a client that is silent, but not on one that sends a byte now and then. What
 * it reads is seen here first. */
static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *bev)
{
    (void)input;
    if (info->n_added == 0)
        return;
    int fd = bufferevent_getfd(bev);
    time_t *begun_s = &server.begun_s[fd];
    if (*begun_s == 0)
        *begun_s = now_s();
    else if (now_s() - *begun_s > REQUEST_TIMEOUT_S)
        shutdown(fd, SHUT_RDWR); /* evhttp reads the end, and closes */
}

/* Makes room for the descriptor, which may have been another client's before. */
static void on_first_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *bev)
{
    size_t fd = (size_t)bufferevent_getfd(bev);
    if (fd >= server.begun_room) {
        size_t room = 2 * fd + 64;
        server.begun_s = realloc(server.begun_s, room * sizeof *server.begun_s);
        if (server.begun_s == NULL)
            abort();
        server.begun_room = room;
    }
    server.begun_s[fd] = 0;
    evbuffer_remove_cb(input, on_first_input, bev);
    evbuffer_add_cb(input, on_input, bev);
    on_input(input, info, bev);
}

/* evhttp would make the same by itself; it sets the descriptor later, and closes it. */
static struct bufferevent *make_bufferevent(struct event_base *base, void *arg)
{
    (void)arg;
    struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
    if (bev != NULL)
        evbuffer_add_cb(bufferevent_get_input(bev), on_first_input, bev);
    return bev;
}

/* evhttp would go on reading while it writes: a client that sends and never reads would fill the
 * memory, and one that sends ten requests and then FIN would lose its answers, since evhttp drops
 * what it holds at the end of input. It reads again by itself when the answer is out. */
static void send_and_stop_reading(struct evhttp_request *req, int status, const char *reason)
{
    struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
    server.begun_s[bufferevent_getfd(bev)] = 0;
    evhttp_send_reply(req, status, reason, NULL);
    bufferevent_disable(bev, EV_READ);
}

static void reply(struct evhttp_request *req, int status, const char *reason, const char *body,
                  size_t body_len)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    char length[24];

    snprintf(length, sizeof length, "%zu", body_len);
    evhttp_add_header(headers, "Content-Type", "text/plain");
    evhttp_add_header(headers, "Content-Length", length);
    evhttp_add_header(headers, "Date", date());
    if (evhttp_request_get_command(req) != EVHTTP_REQ_HEAD)
        evbuffer_add_reference(evhttp_request_get_output_buffer(req), body, body_len, NULL, NULL);
    send_and_stop_reading(req, status, reason);
}

static void on_request(struct evhttp_request *req, void *arg)
{
    (void)arg;
    static const char hello[] = "Hello World\n";
    static const char not_found[] = "Not Found\n";
    static const char bad_request[] = "Bad Request\n";
    static const char not_allowed[] = "Method Not Allowed\n";
    static const char not_implemented[] = "Not Implemented\n";
    struct request_view view;

    request_view_read(&view, req);
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    switch (method) {
    case EVHTTP_REQ_GET:
    case EVHTTP_REQ_POST:
    case EVHTTP_REQ_PUT:
    case EVHTTP_REQ_DELETE:
    case EVHTTP_REQ_OPTIONS:
    case EVHTTP_REQ_PATCH:
    case EVHTTP_REQ_CONNECT:
        break;
    default:
        /* evhttp leaves the body of these in the input, where it would pass for a request. */
        if (view.has_body)
            view.persistence = PERSISTENCE_CLOSE;
    }
    request_set_persistence(req, view.valid ? view.persistence : PERSISTENCE_CLOSE);

    if (!view.valid) {
        reply(req, HTTP_BADREQUEST, "Bad Request", bad_request, sizeof bad_request - 1);
    } else if (method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD) {
        if (request_target_is_root(req))
            reply(req, HTTP_OK, "OK", hello, sizeof hello - 1);
        else
            reply(req, HTTP_NOTFOUND, "Not Found", not_found, sizeof not_found - 1);
    } else if (method <= EVHTTP_REQ_PATCH) {
        evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", "GET, HEAD");
        reply(req, HTTP_BADMETHOD, "Method Not Allowed", not_allowed, sizeof not_allowed - 1);
    } else {
        reply(req, HTTP_NOTIMPLEMENTED, "Not Implemented", not_implemented,
              sizeof not_implemented - 1);
    }
}

/* Out of descriptors or memory: the listener stays readable, and without a pause the loop would
 * spin, a line of log each turn. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
    (void)arg;
    const struct timeval pause = {.tv_usec = ACCEPT_PAUSE_MS * 1000};
    evconnlistener_disable(listener);
    event_add(server.accept_again, &pause);
}

static void on_accept_pause_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    evconnlistener_enable(server.listener);
}

static void on_sigterm(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    event_base_loopbreak(server.base);
}

static struct event_base *make_base(void)
{
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static void start_http(int fd)
{
    int one = 1;

    /* Accepted sockets inherit it; evhttp writes each pipelined answer by itself, and each would
     * wait for the client to acknowledge the one before. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    server.http = evhttp_new(server.base);
    evhttp_set_max_headers_size(server.http, HEAD_MAX_BYTES);
    evhttp_set_max_body_size(server.http, BODY_MAX_BYTES);
    evhttp_set_allowed_methods(server.http, ANY_METHOD);
    evhttp_set_timeout(server.http, IDLE_TIMEOUT_S);
    evhttp_set_bevcb(server.http, make_bufferevent, NULL);
    evhttp_set_gencb(server.http, on_request, NULL);

    server.listener = evconnlistener_new(server.base, NULL, NULL,
                                         LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    evconnlistener_set_error_cb(server.listener, on_accept_error);
    evhttp_bind_listener(server.http, server.listener);
}

int main(int argc, char **argv)
{
    struct server_args args;
    char version[64];
    snprintf(version, sizeof version, "libevent %s", event_get_version());
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    int fd = server_listen(&args);

    server.base = make_base();
    if (server.base == NULL) {
        fputs("cannot make an event loop\n", stderr);
        return 1;
    }
    start_http(fd);
    server.accept_again = evtimer_new(server.base, on_accept_pause_over, NULL);
    server.sigterm = evsignal_new(server.base, SIGTERM, on_sigterm, NULL);
    event_add(server.sigterm, NULL);

    int failed = event_base_dispatch(server.base);

    /* Nothing is freed: to take twenty thousand connections apart one by one takes a second. */
    return failed == 0 ? 0 : 1;
}
