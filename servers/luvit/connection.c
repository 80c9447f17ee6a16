#include "connection.h"

#include <stdlib.h>

#include <lauxlib.h>
#include <lua5.1/luv/lhandle.h>

#include "reply.h"
#include "request.h"
#include "script.h"

enum {
    READ_BYTES = 64 * 1024,
    IN_MAX = 64 * 1024,       /* received and waiting for a reply to be finished */
    HELD_MAX = 64 * 1024,     /* of a reply whose request has not ended */
    SEND_MAX = 1 << 30,       /* to one write; a uv_buf_t is made from an unsigned */
    LINGER_MAX = 1024 * 1024, /* drained after the last reply before the connection is cut */
    IDLE_MAX_MS = 120 * 1000, /* luvit's own */
    HEAD_MAX_MS = 60 * 1000,  /* from a request's first byte to the end of its head */
};

static void connection_advance(struct connection *c, const char *data, size_t length);

/* Closing */

static void release_buffers(struct connection *c)
{
    buffer_release(&c->request.head);
    buffer_release(&c->in);
    buffer_release(&c->out);
    buffer_release(&c->reply.fields);
}

static void connection_close(struct connection *c)
{
    if (c->closing)
        return;
    c->closing = true;
    /* The Lua side closes the luv handle; the memory goes when luv collects that. */
    script_call(c, SCRIPT_CLOSED);
    script_forget(c);
    if (!c->busy)
        release_buffers(c);
}

static void connection_free(void *pointer)
{
    struct connection *c = pointer;
    release_buffers(c);
    free(c->sending.data);
    free(c);
}

void connection_fail(struct connection *c, int status)
{
    if (c->closing || c->finishing)
        return;
    if (c->request.called && !c->reply.done)
        script_call(c, SCRIPT_FAILED);
    if (c->request.called && c->reply.sent) {
        connection_close(c);
        return;
    }
    if (c->request.called)
        c->out.length = c->reply.start;
    reply_refusal(c, status);
    c->request.done = c->reply.done = true;
    c->request.begun = c->request.called = false;
    c->keep_alive = c->wants_drain = false;
    c->finishing = c->unread = true;
}

/* Sending */

/* Tells a handler that was told to wait that it may go on. */
static void connection_drain(struct connection *c)
{
    if (!c->wants_drain || c->writing || c->closing || c->out.length >= CONNECTION_OUT_HIGH)
        return;
    c->wants_drain = false;
    c->busy = true;
    if (!script_call(c, SCRIPT_DRAIN))
        connection_fail(c, 500);
    c->busy = false;
}

static void on_written(uv_write_t *request, int status)
{
    struct connection *c = request->data;
    c->writing = false;
    free(c->sending.data);
    c->sending = (struct buffer){0};
    if (c->closing || script_is_stopped())
        return;
    c->active_ms = uv_now(c->tcp->loop);
    if (status != 0) {
        connection_close(c);
        return;
    }
    connection_drain(c);
    connection_advance(c, NULL, 0);
}

/* How many bytes of `out` may leave now. */
static size_t sendable(const struct connection *c)
{
    bool hold = c->request.called && !c->request.done && !c->reply.sent &&
                c->out.length - c->reply.start < HELD_MAX;
    size_t length = hold ? c->reply.start : c->out.length;
    return length < SEND_MAX ? length : SEND_MAX;
}

/* What the kernel does not take at once waits in a buffer of its own, and nothing is read or
 * parsed meanwhile: a client that does not read costs CONNECTION_OUT_HIGH and one reply at most. */
static void send_later(struct connection *c, size_t done, size_t length)
{
    c->sending = (struct buffer){0};
    c->sending.data = malloc(length - done);
    if (c->sending.data == NULL)
        abort();
    c->sending.length = c->sending.capacity = length - done;
    memcpy(c->sending.data, c->out.data + done, length - done);
    uv_buf_t chunk = uv_buf_init(c->sending.data, (unsigned)c->sending.length);
    c->write.data = c;
    c->writing = uv_write(&c->write, (uv_stream_t *)c->tcp, &chunk, 1, on_written) == 0;
    if (!c->writing)
        connection_close(c);
}

void connection_send(struct connection *c)
{
    size_t length = sendable(c);
    if (length == 0 || c->writing || c->closing)
        return;
    uv_buf_t chunk = uv_buf_init(c->out.data, (unsigned)length);
    int sent = uv_try_write((uv_stream_t *)c->tcp, &chunk, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        connection_close(c);
        return;
    }
    c->active_ms = uv_now(c->tcp->loop);
    size_t done = sent > 0 ? (size_t)sent : 0;
    if (done < length)
        send_later(c, done, length);
    if (c->request.called && length > c->reply.start)
        c->reply.sent = true;
    c->reply.start -= length < c->reply.start ? length : c->reply.start;
    buffer_drop(&c->out, length);
}

/* Receiving */

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct connection *c = request->data;
    if (status != 0 && !script_is_stopped())
        connection_close(c);
}

/* RFC 9112 9.6: a close with unread input resets the connection, and the reset may overtake the
 * last reply. So send FIN, then read and drop for a while; the Lua side keeps the time. */
static void connection_linger(struct connection *c)
{
    c->lingering = true;
    c->shutdown.data = c;
    if (uv_shutdown(&c->shutdown, (uv_stream_t *)c->tcp, on_shutdown) != 0 ||
        !script_call(c, SCRIPT_LINGER))
        connection_close(c);
}

/* One buffer serves all connections: what is read is parsed before the next read. */
static char input[READ_BYTES];

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)handle;
    (void)suggested;
    *buffer = uv_buf_init(input, sizeof input);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct connection *c = ((luv_handle_t *)stream->data)->extra;
    c->active_ms = uv_now(stream->loop);
    if (got > 0 && c->lingering) {
        c->linger_bytes += (size_t)got;
        if (c->linger_bytes > LINGER_MAX)
            connection_close(c);
    } else if (got > 0) {
        connection_advance(c, buffer->base, (size_t)got);
    } else if (got == UV_EOF && !c->lingering) {
        c->ended = true;
        connection_advance(c, NULL, 0);
    } else if (got < 0) {
        connection_close(c);
    }
}

static void connection_adjust_reading(struct connection *c)
{
    bool want = c->lingering ||
                (!c->ended && !c->finishing && !c->writing && !c->held && c->in.length < IN_MAX);
    if (want == c->reading)
        return;
    c->reading = want;
    if (!want)
        uv_read_stop((uv_stream_t *)c->tcp);
    else if (uv_read_start((uv_stream_t *)c->tcp, on_alloc, on_read) != 0)
        connection_close(c);
}

void connection_settle(struct connection *c)
{
    if (!c->request.called || !c->request.done || !c->reply.done)
        return;
    c->request.called = false;
    c->reply.fields.length = 0;
    if (!c->keep_alive)
        c->finishing = true;
}

bool connection_is_blocked(const struct connection *c)
{
    return c->closing || c->finishing || c->writing || (c->request.done && !c->reply.done);
}

static void connection_parse(struct connection *c, const char *data, size_t length)
{
    bool own = c->in.length > 0;
    if (own && length > 0)
        buffer_add(&c->in, data, length);
    if (own) {
        data = c->in.data;
        length = c->in.length;
    }
    size_t done = 0;
    while (done < length && !connection_is_blocked(c)) {
        llhttp_errno_t error = llhttp_execute(&c->parser, data + done, length - done);
        if (error == HPE_PAUSED) {
            done = (size_t)(llhttp_get_error_pos(&c->parser) - data);
            llhttp_resume(&c->parser);
            if (c->out.length >= CONNECTION_OUT_HIGH)
                connection_send(c);
        } else {
            done = length;
            if (error != HPE_OK)
                connection_fail(c, c->request.error_status != 0 ? c->request.error_status : 400);
        }
    }
    if (c->finishing && done < length)
        c->unread = true;
    if (own)
        buffer_drop(&c->in, done);
    else if (done < length)
        buffer_add(&c->in, data + done, length - done);
}

/* The client will send no more: whatever has not ended by now never will. */
static void connection_end(struct connection *c)
{
    if (c->request.begun && c->request.called && !c->reply.sent)
        c->out.length = c->reply.start;
    connection_send(c);
    if (c->out.length == 0 && !c->writing)
        connection_close(c);
}

/* Parses what has come, answers, sends, and decides what to wait for next. */
static void connection_advance(struct connection *c, const char *data, size_t length)
{
    if (c->closing) {
        release_buffers(c);
        return;
    }
    c->busy = true;
    connection_settle(c);
    connection_parse(c, data, length);
    connection_send(c);
    c->busy = false;
    if (c->ended && (c->request.begun || !connection_is_blocked(c)))
        connection_end(c);
    if (c->finishing && !c->closing && !c->writing && c->out.length == 0) {
        if (c->unread && !c->ended)
            connection_linger(c);
        else
            connection_close(c);
    }
    if (c->closing) {
        release_buffers(c);
        return;
    }
    if (c->in.length == 0)
        buffer_release(&c->in);
    if (c->reply.fields.length == 0)
        buffer_release(&c->reply.fields);
    if (c->out.length == 0)
        buffer_release(&c->out);
    if (c->request.called || !c->request.begun)
        buffer_release(&c->request.head);
    if (c->wants_drain && !c->writing)
        script_call(c, SCRIPT_SCHEDULE);
    connection_adjust_reading(c);
}

/* The Lua module */

static llhttp_settings_t settings;

static int lua_start(lua_State *L)
{
    script_set_functions(L, 1);
    return 0;
}

static int lua_attach(lua_State *L)
{
    uv_tcp_t *tcp = *(uv_tcp_t **)luaL_checkudata(L, 1, "uv_tcp");
    luaL_checktype(L, 2, LUA_TTABLE);
    struct connection *c = calloc(1, sizeof *c);
    if (c == NULL)
        return luaL_error(L, "out of memory");
    luv_handle_t *handle = tcp->data;
    handle->extra = c;
    handle->extra_gc = connection_free;
    c->tcp = tcp;
    c->active_ms = uv_now(tcp->loop);
    lua_pushvalue(L, 2);
    c->socket = luaL_ref(L, LUA_REGISTRYINDEX);
    llhttp_init(&c->parser, HTTP_REQUEST, &settings);
    c->parser.data = c;
    c->reply.done = true;
    lua_pushlightuserdata(L, c);
    connection_adjust_reading(c);
    return 1;
}

static struct connection *check_connection(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TLIGHTUSERDATA);
    return lua_touserdata(L, 1);
}

static int lua_resume_connection(lua_State *L)
{
    struct connection *c = check_connection(L);
    connection_drain(c);
    connection_advance(c, NULL, 0);
    return 0;
}

static int lua_hold(lua_State *L)
{
    struct connection *c = check_connection(L);
    c->held = lua_toboolean(L, 2);
    if (!c->busy && !c->closing)
        connection_adjust_reading(c);
    return 0;
}

static int lua_fail(lua_State *L)
{
    struct connection *c = check_connection(L);
    if (c->request.called)
        connection_fail(c, 500);
    else
        connection_close(c);
    connection_advance(c, NULL, 0);
    return 0;
}

static int lua_is_stale(lua_State *L)
{
    const struct connection *c = check_connection(L);
    uint64_t now_ms = uv_now(c->tcp->loop);
    lua_pushboolean(L, now_ms - c->active_ms > IDLE_MAX_MS ||
                           (c->request.begun && !c->request.called &&
                            now_ms - c->request.begun_ms > HEAD_MAX_MS));
    return 1;
}

static int lua_close_connection(lua_State *L)
{
    connection_close(check_connection(L));
    return 0;
}

int connection_open_module(lua_State *L)
{
    script_open(L);
    request_settings(&settings);
    static const luaL_Reg functions[] = {
        {"start", lua_start},       {"attach", lua_attach}, {"resume", lua_resume_connection},
        {"hold", lua_hold},         {"fail", lua_fail},     {"close", lua_close_connection},
        {"is_stale", lua_is_stale}, {NULL, NULL},
    };
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}
