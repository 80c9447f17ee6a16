/* Hello World on libh2o's own event loop: h2o parses, keeps the connection and writes; the handler
 * below says what to answer, and mends what h2o 2.2.5 is lenient about.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>

#define H2O_USE_LIBUV 0 /* the headers serve both builds of the library; this is its own loop */
#include <h2o.h>

#include "../common/server.h"
#include "head.h"

enum {
    ACCEPTS_PER_TURN = 64,             /* so that a flood of connects does not starve the others */
    REQUEST_TIMEOUT_MS = 60 * 1000,    /* also how long a connection may sit idle */
    BODY_MAX_BYTES = 16 * 1024 * 1024, /* h2o keeps a whole body in memory */
};

static h2o_globalconf_t config;
static h2o_context_t context;
static h2o_accept_ctx_t accept_context;
static h2o_timeout_entry_t accept_pause;
static h2o_socket_t *listener;
static h2o_socket_t *sigterm;
static bool ended;

/* What h2o calls a generator: the source of one answer's body. These have no state, so one of a
 * kind serves all requests. */
struct answer {
    h2o_generator_t generator;
    int status;
    const char *reason;
    h2o_iovec_t body;
};

static struct answer hello = {.status = 200, .reason = "OK", .body = {H2O_STRLIT("Hello World\n")}};
static struct answer not_found = {
    .status = 404, .reason = "Not Found", .body = {H2O_STRLIT("Not Found\n")}};
static struct answer bad_request = {
    .status = 400, .reason = "Bad Request", .body = {H2O_STRLIT("Bad Request\n")}};
static struct answer not_allowed = {
    .status = 405, .reason = "Method Not Allowed", .body = {H2O_STRLIT("Method Not Allowed\n")}};
static struct answer not_implemented = {
    .status = 501, .reason = "Not Implemented", .body = {H2O_STRLIT("Not Implemented\n")}};

static bool is_one_of(h2o_iovec_t word, const h2o_iovec_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (h2o_memis(word.base, word.len, list[i].base, list[i].len))
            return true;
    return false;
}

static bool is_method_of_rfc_9110(h2o_iovec_t method)
{
    static const h2o_iovec_t known[] = {
        {H2O_STRLIT("POST")},    {H2O_STRLIT("PUT")},     {H2O_STRLIT("DELETE")},
        {H2O_STRLIT("OPTIONS")}, {H2O_STRLIT("CONNECT")}, {H2O_STRLIT("TRACE")},
    };
    return is_one_of(method, known, sizeof known / sizeof known[0]);
}

/* Origin-form or absolute-form. A scheme may stand in capitals, which h2o_url_parse does not take.
 */
static bool is_root(h2o_iovec_t target)
{
    static const char scheme[] = "http://";
    size_t scheme_len = sizeof scheme - 1;

    if (target.len > scheme_len && strncasecmp(target.base, scheme, scheme_len) == 0) {
        target.base += scheme_len;
        target.len -= scheme_len;
        while (target.len > 0 && target.base[0] != '/' && target.base[0] != '?') {
            target.base++;
            target.len--;
        }
        if (target.len == 0 || target.base[0] == '?')
            return true;
    }
    return target.len > 0 && target.base[0] == '/' && (target.len == 1 || target.base[1] == '?');
}

/* RFC 9110, 4.2.1: an http URI without a host is invalid. */
static bool lacks_host(h2o_iovec_t target)
{
    static const char scheme[] = "http://";
    size_t scheme_len = sizeof scheme - 1;
    return target.len >= scheme_len && strncasecmp(target.base, scheme, scheme_len) == 0 &&
           (target.len == scheme_len || target.base[scheme_len] == '/' ||
            target.base[scheme_len] == '?');
}

/* Visible ASCII and no fragment: RFC 3986 has no other characters. */
static bool target_is_valid(h2o_iovec_t target)
{
    if (lacks_host(target))
        return false;
    for (size_t i = 0; i < target.len; i++)
        if (target.base[i] <= ' ' || target.base[i] > '~' || target.base[i] == '#')
            return false;
    return target.len > 0;
}

/* h2o goes by the last Connection line, and by "keep-alive" even where "close" stands beside it. */
static bool is_persistent(const h2o_req_t *req)
{
    bool persistent = req->version >= 0x101;
    for (ssize_t at = -1; (at = h2o_find_header(&req->headers, H2O_TOKEN_CONNECTION, at)) != -1;) {
        h2o_iovec_t value = req->headers.entries[at].value;
        if (h2o_contains_token(value.base, value.len, H2O_STRLIT("close"), ','))
            return false;
        if (h2o_contains_token(value.base, value.len, H2O_STRLIT("keep-alive"), ','))
            persistent = true;
    }
    return persistent;
}

/* The same lines for every answer: h2o copies them out, and makes its own list should a filter add
 * to them, as the capacity is used up. */
static h2o_headers_t make_headers(bool with_allow)
{
    static h2o_header_t lines[] = {
        {.name = &H2O_TOKEN_CONTENT_TYPE->buf, .value = {H2O_STRLIT("text/plain")}},
        {.name = &H2O_TOKEN_ALLOW->buf, .value = {H2O_STRLIT("GET, HEAD")}},
    };
    size_t count = with_allow ? 2 : 1;
    return (h2o_headers_t){.entries = lines, .size = count, .capacity = count};
}

static bool is_method(const h2o_req_t *req, const char *name, size_t len)
{
    return h2o_memis(req->method.base, req->method.len, name, len);
}

/* `out` lies right behind the head and has room for at least Content-Length bytes. */
static h2o_send_state_t on_pull(h2o_generator_t *generator, h2o_req_t *req, h2o_iovec_t *out)
{
    const struct answer *answer = (struct answer *)generator;

    out->len = is_method(req, H2O_STRLIT("HEAD")) ? 0 : answer->body.len;
    memcpy(out->base, answer->body.base, out->len);
    return H2O_SEND_STATE_FINAL;
}

/* The body is pulled, as h2o's own file handler has it, not pushed by h2o_send(): so it follows the
 * head in one buffer, and the kernel is handed one piece, not two. Pulling is there where no filter
 * stands between: h2o's only one here is for answers of unknown length. */
static int reply(h2o_req_t *req, struct answer *answer)
{
    req->res.status = answer->status;
    req->res.reason = answer->reason;
    req->res.content_length = answer->body.len;
    req->res.headers = make_headers(answer == &not_allowed);
    h2o_start_response(req, &answer->generator);
    req->_ostr_top->start_pull(req->_ostr_top, on_pull);
    return 0;
}

static int on_request(h2o_handler_t *self, h2o_req_t *req)
{
    (void)self;
    const h2o_socket_t *sock = req->conn->callbacks->get_socket(req->conn);

    if (!head_is_valid(sock->input->bytes, req->version < 0x101) || !target_is_valid(req->path)) {
        req->http1_is_persistent = 0;
        return reply(req, &bad_request);
    }
    req->http1_is_persistent = is_persistent(req);
    if (is_method(req, H2O_STRLIT("GET")) || is_method(req, H2O_STRLIT("HEAD")))
        return reply(req, is_root(req->path) ? &hello : &not_found);
    return reply(req, is_method_of_rfc_9110(req->method) ? &not_allowed : &not_implemented);
}

static void on_accept(h2o_socket_t *sock, const char *err)
{
    (void)err;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        h2o_socket_t *client = h2o_evloop_socket_accept(sock);
        if (client != NULL) {
            h2o_accept(&accept_context, client);
            continue;
        }
        if (errno == ECONNABORTED || errno == EINTR)
            continue;
        if (errno != EAGAIN) {
            /* No descriptor or memory to be had: the listener would stay readable and the loop
             * would spin, so it looks away for a while. */
            h2o_socket_read_stop(sock);
            h2o_timeout_link(context.loop, &context.hundred_ms_timeout, &accept_pause);
        }
        return;
    }
}

static void on_accept_pause_over(h2o_timeout_entry_t *entry)
{
    (void)entry;
    h2o_socket_read_start(listener, on_accept);
}

static void on_sigterm(h2o_socket_t *sock, const char *err)
{
    (void)sock;
    (void)err;
    ended = true;
}

/* A signal handler could only set a flag, and a signal that comes between the test of the flag
 * and the wait would be lost until the next event. */
static void watch_sigterm(h2o_loop_t *loop)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    sigterm = h2o_evloop_socket_create(loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    h2o_socket_read_start(sigterm, on_sigterm);
}

static void configure(void)
{
    config.http1.upgrade_to_http2 = 0;
    config.http1.req_timeout = REQUEST_TIMEOUT_MS;
    config.max_request_entity_size = BODY_MAX_BYTES;
    config.server_name = (h2o_iovec_t){NULL, 0};

    h2o_hostconf_t *host =
        h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_handler_t *handler =
        h2o_create_handler(h2o_config_register_path(host, "/", 0), sizeof *handler);
    handler->on_req = on_request;
}

int main(int argc, char **argv)
{
    struct server_args args;

    h2o_config_init(&config);
    char version[64];
    snprintf(version, sizeof version, "lib%s", config.server_name.base);
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    int fd = server_listen(&args);
    configure();

    h2o_context_init(&context, h2o_evloop_create(), &config);
    accept_context.ctx = &context;
    accept_context.hosts = config.hosts;
    accept_pause.cb = on_accept_pause_over;
    watch_sigterm(context.loop);
    listener = h2o_evloop_socket_create(context.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    h2o_socket_read_start(listener, on_accept);

    /* SIGSTOP and SIGCONT make epoll_wait fail with EINTR (signal(7)), and h2o says so. */
    while (!ended && (h2o_evloop_run(context.loop, INT32_MAX) == 0 || errno == EINTR))
        ;
    h2o_socket_close(listener);
    h2o_socket_close(sigterm);
    return ended ? 0 : 1;
}
