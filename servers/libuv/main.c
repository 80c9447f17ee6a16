/* libuv: a uv_tcp_t for each connection, llhttp for the parsing.
 *
 * A request costs read() and write(): one static buffer serves all reads, since what is read is
 * parsed before the callback returns, and uv_try_write() answers from the read callback. Only what
 * a client is too slow to take is copied to a uv_write(), and reading stops until that is done.
 */
#include "../common/http1.h"
#include "../common/reply.h"
#include "../common/server.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    IN_BYTES = 16384,
    BACKLOG = 65535,       /* the kernel lowers it to net.core.somaxconn */
    ACCEPT_PAUSE_MS = 100, /* after running out of memory */
    SWEEP_MS = 5000,       /* how often the slow ones are looked for */
    PATIENCE_MS = 50000,   /* without progress */
    LINGER_MS = 5000,      /* for a client to read its last answer and close */
};

struct connection {
    uv_tcp_t tcp;
    struct connection *next, **link; /* the list of all, for the sweep */
    uint64_t active_ms;              /* when it last made progress, on the loop's clock */
    size_t queued_bytes;             /* unsent at the last sweep */
    bool lingering;                  /* writing is shut down; what comes in is thrown away */
    uv_shutdown_t shutdown;
    struct http1 http;
};

/* Answers that the socket had no room for. */
struct rest {
    uv_write_t write;
    struct connection *connection;
    char text[];
};

static uv_loop_t *loop;
static uv_tcp_t listener;
static uv_timer_t accept_timer, sweep_timer;
static uv_signal_t term;
static struct connection *connections;
static char in[IN_BYTES], out[HTTP1_OUT_BYTES(IN_BYTES)];

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer);

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void connection_close(struct connection *c)
{
    if (uv_is_closing((uv_handle_t *)&c->tcp))
        return;
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested_bytes, uv_buf_t *buffer)
{
    (void)handle;
    (void)suggested_bytes;
    buffer->base = in;
    buffer->len = sizeof in;
}

static void connection_read(struct connection *c)
{
    int error = uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    if (error != 0 && error != UV_EALREADY)
        connection_close(c);
}

/* The last answer is sent. Closing with input unread would reset the connection, and the reset
 * could overtake the answer. */
static void connection_finish(struct connection *c)
{
    c->lingering = true;
    c->active_ms = uv_now(loop);
    if (!c->http.linger || uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, NULL) != 0)
        connection_close(c);
    else
        connection_read(c);
}

static void on_rest_written(uv_write_t *write, int status)
{
    struct rest *rest = (struct rest *)write;
    struct connection *c = rest->connection;
    free(rest);
    if (status == UV_ECANCELED)
        return;
    c->active_ms = uv_now(loop);
    if (status != 0)
        connection_close(c);
    else if (c->http.closing)
        connection_finish(c);
    else
        connection_read(c);
}

/* Keeps what did not fit, and reads no more from this client until it has taken it. */
static void rest_write(struct connection *c, const char *text, size_t bytes)
{
    uv_stream_t *stream = (uv_stream_t *)&c->tcp;
    struct rest *rest = malloc(sizeof *rest + bytes);
    if (!rest) {
        connection_close(c);
        return;
    }
    memcpy(rest->text, text, bytes);
    rest->connection = c;
    uv_buf_t buffer = uv_buf_init(rest->text, (unsigned)bytes);
    uv_read_stop(stream);
    if (uv_write(&rest->write, stream, &buffer, 1, on_rest_written) != 0) {
        free(rest);
        connection_close(c);
    }
}

static void answers_write(struct connection *c, size_t bytes)
{
    uv_buf_t buffer = uv_buf_init(out, (unsigned)bytes);
    int sent = uv_try_write((uv_stream_t *)&c->tcp, &buffer, 1);
    if (sent == (int)bytes) {
        if (c->http.closing)
            connection_finish(c);
    } else if (sent >= 0 || sent == UV_EAGAIN) {
        size_t done = sent < 0 ? 0 : (size_t)sent;
        rest_write(c, out + done, bytes - done);
    } else {
        connection_close(c);
    }
}

/* The loop's clock stands still between two waits, so this looks at the time of day once a wait,
 * or less often. */
static void date_refresh(void)
{
    static uint64_t seen_ms;
    if (uv_now(loop) == seen_ms)
        return;
    seen_ms = uv_now(loop);
    reply_refresh();
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct connection *c = stream->data;
    if (got < 0) {
        connection_close(c);
        return;
    }
    if (got == 0 || c->lingering)
        return;
    date_refresh();
    size_t bytes = http1_feed(&c->http, buffer->base, (size_t)got, out);
    if (c->http.progress)
        c->active_ms = uv_now(loop);
    if (bytes > 0)
        answers_write(c, bytes);
}

static void on_connection(uv_stream_t *server, int status);

static void on_accept_timer(uv_timer_t *timer)
{
    (void)timer;
    on_connection((uv_stream_t *)&listener, 0);
}

static void on_connection(uv_stream_t *server, int status)
{
    if (status != 0)
        return;
    struct connection *c = malloc(sizeof *c);
    if (!c) { /* libuv keeps the accepted one, and accepts no other, until uv_accept() */
        uv_timer_start(&accept_timer, on_accept_timer, ACCEPT_PAUSE_MS, 0);
        return;
    }
    uv_tcp_init(loop, &c->tcp);
    c->tcp.data = c;
    c->active_ms = uv_now(loop);
    c->queued_bytes = 0;
    c->lingering = false;
    http1_init(&c->http);
    c->next = connections;
    c->link = &connections;
    if (c->next)
        c->next->link = &c->next;
    connections = c;
    if (uv_accept(server, (uv_stream_t *)&c->tcp) != 0)
        connection_close(c);
    else
        connection_read(c);
}

static void on_sweep(uv_timer_t *timer)
{
    (void)timer;
    struct connection *next;
    for (struct connection *c = connections; c; c = next) {
        next = c->next;
        size_t queued_bytes = uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp);
        if (queued_bytes != c->queued_bytes) {
            c->queued_bytes = queued_bytes;
            c->active_ms = uv_now(loop);
        }
        if (uv_now(loop) - c->active_ms > (c->lingering ? LINGER_MS : PATIENCE_MS))
            connection_close(c);
    }
}

static void on_term(uv_signal_t *handle, int number)
{
    (void)number;
    uv_close((uv_handle_t *)handle, NULL);
    uv_close((uv_handle_t *)&listener, NULL);
    uv_close((uv_handle_t *)&accept_timer, NULL);
    uv_close((uv_handle_t *)&sweep_timer, NULL);
    while (connections)
        connection_close(connections);
}

int main(int argc, char **argv)
{
    char version[64];
    snprintf(version, sizeof version, "libuv %s, %s", uv_version_string(), http1_version);
    struct server_args args;
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    int fd = server_listen(&args);
    reply_init();

    loop = uv_default_loop();
    uv_timer_init(loop, &accept_timer);
    uv_timer_init(loop, &sweep_timer);
    uv_timer_start(&sweep_timer, on_sweep, SWEEP_MS, SWEEP_MS);
    uv_signal_init(loop, &term);
    uv_signal_start(&term, on_term, SIGTERM);
    uv_tcp_init(loop, &listener);
    int error = uv_tcp_open(&listener, fd);
    if (error == 0)
        error = uv_listen((uv_stream_t *)&listener, BACKLOG, on_connection);
    if (error != 0) {
        fprintf(stderr, "libuv: %s\n", uv_strerror(error));
        return 1;
    }
    uv_run(loop, UV_RUN_DEFAULT); /* until on_term() has closed every handle */
    return uv_loop_close(loop) == 0 ? 0 : 1;
}
