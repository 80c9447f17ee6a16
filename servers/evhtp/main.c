/* Hello World on libevhtp: a general callback that is called when a request is whole, and a hook on
 * its headers that looks at what the parser lets pass.
 */
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include <event2/bufferevent.h>
#include <evhtp/evhtp.h>

#include "../common/host.h"
#include "../common/server.h"

enum {
    BODY_MAX_BYTES = 1 << 20,
    SILENCE_MAX_S = 60,
    ACCEPT_BACKLOG = 4096,
    ACCEPT_PAUSE_MS = 100,
};

static struct event_base *base;
static struct event *accept_again;

static const char *date(void)
{
    static time_t made_at = -1;
    static char text[sizeof "Sun, 06 Nov 1994 08:49:37 GMT"];
    struct timeval now;
    event_base_gettimeofday_cached(base, &now);
    if (now.tv_sec != made_at) {
        struct tm utc;
        gmtime_r(&now.tv_sec, &utc);
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
        made_at = now.tv_sec;
    }
    return text;
}

static void add_header(evhtp_request_t *req, const char *name, const char *value)
{
    evhtp_headers_add_header(req->headers_out, evhtp_header_new(name, value, 0, 0));
}

static void reply(evhtp_request_t *req, evhtp_res status, const char *body)
{
    char length[24];
    snprintf(length, sizeof length, "%zu", strlen(body));
    add_header(req, "Content-Type", "text/plain");
    evhtp_headers_add_header(req->headers_out, evhtp_header_new("Content-Length", length, 0, 1));
    add_header(req, "Date", date());
    if (status == EVHTP_RES_METHNALLOWED)
        add_header(req, "Allow", "GET, HEAD");
    if (evhtp_request_get_method(req) != htp_method_HEAD)
        evbuffer_add_reference(req->buffer_out, body, strlen(body), NULL, NULL);
    evhtp_send_reply(req, status);
    /* No more is read until the answer is out: a client that never reads would fill the memory, and
     * the end of input would cost one that has sent ten requests its answers. */
    bufferevent_disable(evhtp_connection_get_bev(evhtp_request_get_connection(req)), EV_READ);
}

struct fields {
    int host, content_length, transfer_encoding;
    bool valid;
};

static int note_field(evhtp_header_t *field, void *arg)
{
    struct fields *seen = arg;
    if (strcasecmp(field->key, "Host") == 0) {
        seen->host++;
        seen->valid = seen->valid && host_is_valid(field->val, field->vlen);
    } else if (strcasecmp(field->key, "Content-Length") == 0) {
        seen->content_length++;
        seen->valid = seen->valid && field->val[strspn(field->val, "0123456789")] == '\0';
    } else if (strcasecmp(field->key, "Transfer-Encoding") == 0) {
        seen->transfer_encoding++;
        seen->valid = seen->valid && strcasecmp(field->val, "chunked") == 0;
    }
    return 0;
}

/* RFC 9112: Host once (3.2), one length at most and no chunks beside it (6.1, 6.3). */
static bool head_is_valid(evhtp_request_t *req)
{
    struct fields seen = {.valid = true};
    bool http_1_0 = evhtp_request_get_proto(req) == EVHTP_PROTO_10;
    evhtp_headers_for_each(req->headers_in, note_field, &seen);
    return seen.valid && seen.host <= 1 && (seen.host == 1 || http_1_0) &&
           seen.content_length + seen.transfer_encoding <= 1 &&
           !(seen.transfer_encoding > 0 && http_1_0);
}

static void on_request(evhtp_request_t *req, void *arg)
{
    (void)arg;
    htp_method method = evhtp_request_get_method(req);
    const char *path = req->uri->path->full;

    if (!head_is_valid(req)) {
        req->flags &= (uint16_t)~EVHTP_REQ_FLAG_KEEPALIVE;
        reply(req, EVHTP_RES_BADREQ, "Bad Request\n");
    } else if (method != htp_method_GET && method != htp_method_HEAD) {
        reply(req, EVHTP_RES_METHNALLOWED, "Method Not Allowed\n");
    } else if (strcmp(path, "/") == 0) {
        reply(req, EVHTP_RES_OK, "Hello World\n");
    } else {
        reply(req, EVHTP_RES_NOTFOUND, "Not Found\n");
    }
}

/* libevhtp stops reading at the end of a request, and looks no more at what it has read behind it.
 */
static evhtp_res on_write(evhtp_connection_t *connection, void *arg)
{
    (void)arg;
    struct bufferevent *bev = evhtp_connection_get_bev(connection);
    bufferevent_enable(bev, EV_READ);
    if (evbuffer_get_length(bufferevent_get_input(bev)) > 0)
        bufferevent_trigger(bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
    return EVHTP_RES_OK;
}

/* A client of HTTP/1.0 would take 100 for the answer (RFC 9110, 10.1.1). */
static evhtp_res on_headers(evhtp_request_t *req, evhtp_headers_t *headers, void *arg)
{
    (void)arg;
    evhtp_header_t *expect = evhtp_headers_find_header(headers, "Expect");
    if (expect != NULL && evhtp_request_get_proto(req) != EVHTP_PROTO_11)
        evhtp_header_rm_and_free(headers, expect);
    return EVHTP_RES_OK;
}

static evhtp_res on_accept(evhtp_connection_t *connection, void *arg)
{
    (void)arg;
    evhtp_connection_set_hook(connection, evhtp_hook_on_write, (evhtp_hook)(uintptr_t)on_write,
                              NULL);
    evhtp_connection_set_hook(connection, evhtp_hook_on_headers, (evhtp_hook)(uintptr_t)on_headers,
                              NULL);
    return EVHTP_RES_OK;
}

/* Out of descriptors or memory: the listener stays readable, and would spin. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
    (void)arg;
    const struct timeval pause = {.tv_usec = ACCEPT_PAUSE_MS * 1000};
    evconnlistener_disable(listener);
    event_add(accept_again, &pause);
}

static void on_accept_pause_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    evconnlistener_enable(arg);
}

static void on_sigterm(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    event_base_loopbreak(base);
}

/* Out of descriptors libevent would write a line each turn. */
static void drop_log(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

static struct event_base *make_base(void)
{
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
    struct event_base *made = event_base_new_with_config(config);
    event_config_free(config);
    return made;
}

int main(int argc, char **argv)
{
    struct server_args args;
    char version[96];
    snprintf(version, sizeof version, "libevhtp %s, libevent %s", EVHTP_VERSION,
             event_get_version());
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    int fd = server_listen(&args);

    event_set_log_callback(drop_log);
    base = make_base();
    evhtp_t *http = base == NULL ? NULL : evhtp_new(base, NULL);
    if (http == NULL) {
        fputs("cannot make an event loop\n", stderr);
        return 1;
    }
    const struct timeval silence = {.tv_sec = SILENCE_MAX_S};
    evhtp_set_timeouts(http, &silence, &silence);
    evhtp_set_max_body_size(http, BODY_MAX_BYTES);
    evhtp_enable_flag(http, EVHTP_FLAG_ENABLE_NODELAY);
    evhtp_set_post_accept_cb(http, on_accept, NULL);
    evhtp_set_gencb(http, on_request, NULL);
    if (evhtp_accept_socket(http, fd, ACCEPT_BACKLOG) != 0) {
        fputs("cannot accept connections\n", stderr);
        return 1;
    }
    accept_again = evtimer_new(base, on_accept_pause_over, http->server);
    evconnlistener_set_error_cb(http->server, on_accept_error);
    struct event *sigterm = evsignal_new(base, SIGTERM, on_sigterm, NULL);
    event_add(sigterm, NULL);

    /* Nothing is freed: to take twenty thousand connections apart one by one takes a second. */
    return event_base_dispatch(base) == 0 ? 0 : 1;
}
