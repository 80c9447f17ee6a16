#include "connection.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lauxlib.h>
#include <llhttp.h>
#include <uv.h>

#include <lua5.1/luv/lhandle.h>

enum {
    READ_BYTES = 64 * 1024,
    IN_MAX = 64 * 1024,       /* received and waiting for a reply to be finished */
    OUT_HIGH = 64 * 1024,     /* gathered replies; sent before more is parsed */
    HELD_MAX = 64 * 1024,     /* of a reply whose request has not ended */
    HEAD_MAX = 64 * 1024,     /* target and header fields; more gets 431 */
    TARGET_MAX = 16 * 1024,   /* more gets 414; RFC 9112 3 asks for 8000 at least */
    LINGER_MAX = 1024 * 1024, /* drained after the last reply before the connection is cut */
    SPARE_BUFFERS = 8,
    SPARE_MAX = 256 * 1024, /* a buffer that has grown larger is not kept */
    DATE_BYTES = sizeof "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" - 1,
};

struct buffer {
    char *data;
    size_t length;
    size_t capacity;
};

struct connection {
    llhttp_t parser;
    uv_tcp_t *tcp;
    int socket;         /* registry reference of the Lua table */
    struct buffer head; /* of the request being parsed: target, then name\0value\0 pairs */
    struct buffer in;   /* received, not parsed yet */
    struct buffer out;  /* replies not given to the kernel yet */
    struct buffer sending;
    struct buffer fields; /* of the reply to come, as lines */
    size_t target_length;
    size_t name_start;  /* in head */
    size_t reply_start; /* in out */
    size_t trailer_bytes;
    size_t linger_bytes;
    uint64_t body_left; /* of the declared length of the reply */
    uv_write_t write;
    uv_shutdown_t shutdown;
    uint16_t error_status;
    uint8_t hosts;
    bool host_bad;
    bool expects_continue;
    bool in_message;
    bool in_trailers;
    bool request_called;
    bool request_done;
    bool reply_done;
    bool reply_sent; /* some of it has left */
    bool reply_chunked;
    bool reply_counted; /* body_left holds */
    bool head_written;
    bool has_date;
    bool wants_close;
    bool wants_chunks;
    bool no_body;
    bool head_only;
    bool keep_alive;
    bool wants_drain;
    bool busy; /* inside connection_advance, which will send what is appended */
    bool held; /* the handler does not want more body now */
    bool reading;
    bool writing;
    bool ended; /* the client has sent its FIN */
    bool finishing;
    bool unread; /* input was dropped: linger, lest a reset eats the last reply */
    bool lingering;
    bool closing;
};

/* The functions of Lua that are called from here, each with the socket first. */
enum callback {
    ON_REQUEST,  /* method, target, headers, minor, ended */
    ON_DATA,     /* a part of the body */
    ON_DONE,     /* the body has ended */
    ON_DRAIN,    /* a handler that was told to wait may go on */
    ON_FAILED,   /* the host has answered in the handler's place */
    ON_SCHEDULE, /* call resume from the loop */
    ON_LINGER,   /* close after a while */
    ON_CLOSED,   /* close the handle and forget the connection */
    CALLBACKS,
};

static const char *const callback_names[CALLBACKS] = {"request", "data",     "done",   "drain",
                                                      "failed",  "schedule", "linger", "closed"};

/* One process, one thread, one Lua state. */
static struct {
    lua_State *L;
    int callbacks[CALLBACKS];
    int traceback;
    bool stopped;
    llhttp_settings_t settings;
    struct buffer spare[SPARE_BUFFERS];
    unsigned spares;
    time_t date_s;
    char date[DATE_BYTES + 1];
    char input[READ_BYTES];
} host;

static void connection_advance(struct connection *c, const char *data, size_t length);

/* Buffers. Connections are mostly idle: one holds a buffer only while there is something in it. */

static void buffer_reserve(struct buffer *b, size_t more)
{
    if (b->capacity - b->length >= more)
        return;
    if (b->data == NULL && host.spares > 0)
        *b = host.spare[--host.spares];
    size_t capacity = b->capacity != 0 ? b->capacity : 4096;
    while (capacity - b->length < more)
        capacity *= 2;
    if (capacity == b->capacity)
        return;
    b->data = realloc(b->data, capacity);
    if (b->data == NULL)
        abort();
    b->capacity = capacity;
}

static void buffer_add(struct buffer *b, const void *data, size_t length)
{
    buffer_reserve(b, length);
    memcpy(b->data + b->length, data, length);
    b->length += length;
}

static void buffer_drop(struct buffer *b, size_t length)
{
    b->length -= length;
    memmove(b->data, b->data + length, b->length);
}

static void buffer_release(struct buffer *b)
{
    if (b->data == NULL)
        return;
    b->length = 0;
    if (host.spares < SPARE_BUFFERS && b->capacity <= SPARE_MAX)
        host.spare[host.spares++] = *b;
    else
        free(b->data);
    *b = (struct buffer){0};
}

/* Calls into Lua */

static int traceback(lua_State *L)
{
    const char *message = lua_tostring(L, 1);
    if (message == NULL)
        message = luaL_typename(L, 1);
    luaL_traceback(L, L, message, 1);
    return 1;
}

/* Pushes the traceback function, the callback and the socket. */
static void call_begin(struct connection *c, enum callback which)
{
    lua_rawgeti(host.L, LUA_REGISTRYINDEX, host.traceback);
    lua_rawgeti(host.L, LUA_REGISTRYINDEX, host.callbacks[which]);
    lua_rawgeti(host.L, LUA_REGISTRYINDEX, c->socket);
}

/* Calls with `arguments` pushed since call_begin. Returns false, the error shown, if it failed. */
static bool call_end(int arguments)
{
    lua_State *L = host.L;
    bool ok = lua_pcall(L, arguments + 1, 0, -(arguments + 3)) == 0;
    if (!ok) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return ok;
}

static bool call(struct connection *c, enum callback which)
{
    if (host.stopped)
        return true;
    call_begin(c, which);
    return call_end(0);
}

/* Closing */

static void release_buffers(struct connection *c)
{
    buffer_release(&c->head);
    buffer_release(&c->in);
    buffer_release(&c->out);
    buffer_release(&c->fields);
}

static void connection_close(struct connection *c)
{
    if (c->closing)
        return;
    c->closing = true;
    /* The Lua side closes the luv handle; the memory goes when luv collects that. */
    call(c, ON_CLOSED);
    luaL_unref(host.L, LUA_REGISTRYINDEX, c->socket);
    c->socket = LUA_NOREF;
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

/* Replies */

#define APPEND(c, literal) buffer_add(&(c)->out, literal, sizeof literal - 1)

static void append_date(struct connection *c)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec != host.date_s) {
        struct tm utc;
        gmtime_r(&now.tv_sec, &utc);
        strftime(host.date, sizeof host.date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
        host.date_s = now.tv_sec;
    }
    buffer_add(&c->out, host.date, DATE_BYTES);
}

static const char *reason(int status)
{
    switch (status) {
    case 400:
        return "400 Bad Request";
    case 414:
        return "414 URI Too Long";
    case 431:
        return "431 Request Header Fields Too Large";
    case 501:
        return "501 Not Implemented";
    case 505:
        return "505 HTTP Version Not Supported";
    default:
        return "500 Internal Server Error";
    }
}

/* Ends the connection with a reply of the host's own, in place of what the handler has begun; if
 * that has partly left, the client can only be told by the cut. */
static void connection_fail(struct connection *c, int status)
{
    if (c->closing || c->finishing)
        return;
    const char *line = reason(status);
    if (c->request_called && !c->reply_done)
        call(c, ON_FAILED);
    if (c->request_called && c->reply_sent) {
        connection_close(c);
        return;
    }
    if (c->request_called)
        c->out.length = c->reply_start;
    char head[128];
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n",
                          line, strlen(line) + 1);
    buffer_add(&c->out, head, (size_t)length);
    append_date(c);
    APPEND(c, "Connection: close\r\n\r\n");
    if (!c->head_only) {
        buffer_add(&c->out, line, strlen(line));
        APPEND(c, "\n");
    }
    c->request_done = c->reply_done = true;
    c->in_message = c->request_called = false;
    c->keep_alive = false;
    c->finishing = c->unread = true;
}

/* The header of the reply: "name: value\r\n" lines in c->fields, which hold no other line ends. */

static bool same_name(const char *a, size_t length, const char *b)
{
    return strncasecmp(a, b, length) == 0 && b[length] == '\0';
}

/* Returns the field's line in c->fields, or NULL. */
static char *field_find(struct connection *c, const char *name, size_t length)
{
    char *end = c->fields.data + c->fields.length;
    for (char *line = c->fields.data; line != end;
         line = (char *)memchr(line, '\n', (size_t)(end - line)) + 1) {
        if ((size_t)(end - line) > length && line[length] == ':' &&
            strncasecmp(line, name, length) == 0)
            return line;
    }
    return NULL;
}

static void field_cut(struct connection *c, char *line)
{
    char *end = c->fields.data + c->fields.length;
    char *next = (char *)memchr(line, '\n', (size_t)(end - line)) + 1;
    memmove(line, next, (size_t)(end - next));
    c->fields.length -= (size_t)(next - line);
}

/* RFC 9110 5.6.2: the bytes of a token. */
static bool is_token(const char *at, size_t length)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)at[i];
        bool alnum = (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
        if (!alnum && (byte == 0 || strchr(others, byte) == NULL))
            return false;
    }
    return length > 0;
}

/* RFC 9110 5.5: no control bytes but HTAB. */
static bool is_value(const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)at[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f)
            return false;
    }
    return true;
}

static bool set_length(struct connection *c, const char *value, size_t length)
{
    uint64_t total = 0;
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9' || total > INT64_MAX / 10 - 9)
            return false;
        total = total * 10 + (uint64_t)(value[i] - '0');
    }
    c->body_left = total;
    c->reply_counted = length > 0;
    return length > 0;
}

int luvit_set(struct connection *c, const char *name, size_t name_length, const char *value,
              size_t value_length)
{
    if (!is_token(name, name_length) || !is_value(value, value_length))
        return 0;
    switch (name_length) {
    case sizeof "Content-Length" - 1:
        if (same_name(name, name_length, "Content-Length"))
            return set_length(c, value, value_length);
        break;
    case sizeof "Connection" - 1:
        if (same_name(name, name_length, "Connection")) {
            c->wants_close = value_length == 5 && strncasecmp(value, "close", 5) == 0;
            return 1;
        }
        break;
    case sizeof "Transfer-Encoding" - 1:
        if (same_name(name, name_length, "Transfer-Encoding")) {
            c->wants_chunks = value_length == 7 && strncasecmp(value, "chunked", 7) == 0;
            return c->wants_chunks;
        }
        break;
    case sizeof "Date" - 1:
        if (same_name(name, name_length, "Date"))
            c->has_date = true;
        break;
    default:
        break;
    }
    char *old = field_find(c, name, name_length);
    if (old != NULL)
        field_cut(c, old);
    buffer_reserve(&c->fields, name_length + value_length + 4);
    char *to = c->fields.data + c->fields.length;
    memcpy(to, name, name_length);
    memcpy(to + name_length, ": ", 2);
    memcpy(to + name_length + 2, value, value_length);
    memcpy(to + name_length + 2 + value_length, "\r\n", 2);
    c->fields.length += name_length + value_length + 4;
    return 1;
}

int luvit_set_number(struct connection *c, const char *name, size_t name_length, double value)
{
    if (value >= 0 && value < 1e15 && same_name(name, name_length, "Content-Length")) {
        c->body_left = (uint64_t)value;
        c->reply_counted = (double)c->body_left == value;
        return c->reply_counted;
    }
    char text[32];
    int length = snprintf(text, sizeof text, "%.14g", value);
    return luvit_set(c, name, name_length, text, (size_t)length);
}

int luvit_get(struct connection *c, const char *name, size_t name_length, char *to, size_t size)
{
    if (c->reply_counted && same_name(name, name_length, "Content-Length"))
        return snprintf(to, size, "%llu", (unsigned long long)c->body_left);
    if (c->wants_chunks && same_name(name, name_length, "Transfer-Encoding"))
        return snprintf(to, size, "chunked");
    if (c->wants_close && same_name(name, name_length, "Connection"))
        return snprintf(to, size, "close");
    char *line = field_find(c, name, name_length);
    if (line == NULL)
        return -1;
    char *value = line + name_length + 2;
    char *end = memchr(value, '\r', (size_t)(c->fields.data + c->fields.length - value));
    size_t length = (size_t)(end - value);
    memcpy(to, value, length < size ? length : size);
    return (int)length;
}

void luvit_remove(struct connection *c, const char *name, size_t name_length)
{
    if (same_name(name, name_length, "Content-Length"))
        c->reply_counted = false;
    if (same_name(name, name_length, "Transfer-Encoding"))
        c->wants_chunks = false;
    if (same_name(name, name_length, "Connection"))
        c->wants_close = false;
    if (same_name(name, name_length, "Date"))
        c->has_date = false;
    char *line = field_find(c, name, name_length);
    if (line != NULL)
        field_cut(c, line);
}

void luvit_remove_all(struct connection *c)
{
    c->fields.length = 0;
    c->reply_counted = c->wants_chunks = c->wants_close = c->has_date = false;
}

void luvit_no_date(struct connection *c)
{
    c->has_date = true;
}

/* The digits of `value`, right-aligned in `digits`; returns where they start. */
static char *decimal(char digits[20], uint64_t value)
{
    char *at = digits + 20;
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return at;
}

/* RFC 9110 8.6, 15.3.5 and 15.4.5: 204 has neither body nor Content-Length, 304 no body. */
static void append_framing(struct connection *c, int status)
{
    c->no_body = c->head_only || status == 204 || status == 304;
    if (status == 204)
        return;
    if (c->reply_counted && !c->wants_chunks) {
        char digits[20];
        char *start = decimal(digits, c->body_left);
        APPEND(c, "Content-Length: ");
        buffer_add(&c->out, start, (size_t)(digits + 20 - start));
        APPEND(c, "\r\n");
        return;
    }
    c->reply_counted = false;
    if (status == 304)
        return;
    if (c->parser.http_minor == 0) {
        c->keep_alive = false;
    } else {
        APPEND(c, "Transfer-Encoding: chunked\r\n");
        c->reply_chunked = !c->no_body;
    }
}

static void append_head(struct connection *c, int status, const char *line, size_t line_length)
{
    c->head_written = true;
    buffer_add(&c->out, line, line_length);
    buffer_add(&c->out, c->fields.data, c->fields.length);
    if (!c->has_date)
        append_date(c);
    if (c->wants_close)
        c->keep_alive = false;
    append_framing(c, status);
    if (!c->keep_alive)
        APPEND(c, "Connection: close\r\n");
    else if (c->parser.http_minor == 0)
        APPEND(c, "Connection: keep-alive\r\n");
    APPEND(c, "\r\n");
}

static void append_body(struct connection *c, const char *data, size_t length)
{
    if (c->reply_counted)
        c->body_left -= length;
    if (c->no_body || length == 0)
        return;
    if (c->reply_chunked) {
        char size[24];
        int n = snprintf(size, sizeof size, "%zx\r\n", length);
        buffer_add(&c->out, size, (size_t)n);
    }
    buffer_add(&c->out, data, length);
    if (c->reply_chunked)
        APPEND(c, "\r\n");
}

static int next_step(struct connection *c)
{
    bool full = c->writing || c->out.length >= OUT_HIGH;
    c->wants_drain |= full && !c->reply_done;
    return (c->busy ? 0 : LUVIT_RESUME) | (full ? LUVIT_FULL : 0);
}

int luvit_head(struct connection *c, int status, const char *line, size_t line_length)
{
    append_head(c, status, line, line_length);
    return next_step(c);
}

int luvit_body(struct connection *c, const char *data, size_t length)
{
    if (c->reply_counted && length > c->body_left)
        return LUVIT_TOO_LONG;
    append_body(c, data, length);
    return next_step(c);
}

int luvit_finish(struct connection *c, int status, const char *line, size_t line_length,
                 const char *data, size_t length)
{
    if (!c->head_written && !c->reply_counted && !c->wants_chunks) {
        c->reply_counted = true;
        c->body_left = length;
    }
    if (c->reply_counted && length > c->body_left)
        return LUVIT_TOO_LONG;
    if (!c->head_written)
        append_head(c, status, line, line_length);
    append_body(c, data, length);
    if (c->reply_chunked)
        APPEND(c, "0\r\n\r\n");
    if (c->reply_counted && c->body_left > 0 && !c->no_body)
        c->keep_alive = false;
    c->reply_done = true;
    return next_step(c);
}

/* Sending */

/* Tells a handler that was told to wait that it may go on. */
static void connection_drain(struct connection *c)
{
    if (!c->wants_drain || c->writing || c->closing || c->out.length >= OUT_HIGH)
        return;
    c->wants_drain = false;
    c->busy = true;
    if (!call(c, ON_DRAIN))
        connection_fail(c, 500);
    c->busy = false;
}

static void on_written(uv_write_t *request, int status)
{
    struct connection *c = request->data;
    c->writing = false;
    free(c->sending.data);
    c->sending = (struct buffer){0};
    if (c->closing || host.stopped)
        return;
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
    bool hold = c->request_called && !c->request_done && !c->reply_sent &&
                c->out.length - c->reply_start < HELD_MAX;
    return hold ? c->reply_start : c->out.length;
}

/* What the kernel does not take at once waits in a buffer of its own, and nothing is read or
 * parsed meanwhile: a client that does not read costs OUT_HIGH and one reply at most. */
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

static void connection_send(struct connection *c)
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
    size_t done = sent > 0 ? (size_t)sent : 0;
    if (done < length)
        send_later(c, done, length);
    if (c->request_called && length > c->reply_start)
        c->reply_sent = true;
    c->reply_start -= length < c->reply_start ? length : c->reply_start;
    buffer_drop(&c->out, length);
}

/* Receiving */

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct connection *c = request->data;
    if (status != 0 && !host.stopped)
        connection_close(c);
}

/* RFC 9112 9.6: a close with unread input resets the connection, and the reset may overtake the
 * last reply. So send FIN, then read and drop for a while; the Lua side keeps the time. */
static void connection_linger(struct connection *c)
{
    c->lingering = true;
    c->shutdown.data = c;
    if (uv_shutdown(&c->shutdown, (uv_stream_t *)c->tcp, on_shutdown) != 0 || !call(c, ON_LINGER))
        connection_close(c);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)handle;
    (void)suggested;
    *buffer = uv_buf_init(host.input, sizeof host.input);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct connection *c = ((luv_handle_t *)stream->data)->extra;
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

/* An exchange is over when both its request and its reply have ended, in either order. */
static void exchange_settle(struct connection *c)
{
    if (!c->request_called || !c->request_done || !c->reply_done)
        return;
    c->request_called = false;
    c->fields.length = 0;
    if (!c->keep_alive)
        c->finishing = true;
}

/* Whether the parser must wait, or is not needed any more. */
static bool is_blocked(const struct connection *c)
{
    return c->closing || c->finishing || c->writing || (c->request_done && !c->reply_done);
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
    while (done < length && !is_blocked(c)) {
        llhttp_errno_t error = llhttp_execute(&c->parser, data + done, length - done);
        if (error == HPE_PAUSED) {
            done = (size_t)(llhttp_get_error_pos(&c->parser) - data);
            llhttp_resume(&c->parser);
            if (c->out.length >= OUT_HIGH)
                connection_send(c);
        } else {
            done = length;
            if (error != HPE_OK)
                connection_fail(c, c->error_status != 0 ? c->error_status : 400);
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
    if (c->in_message && c->request_called && !c->reply_sent)
        c->out.length = c->reply_start;
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
    exchange_settle(c);
    connection_parse(c, data, length);
    connection_send(c);
    c->busy = false;
    if (c->ended && (c->in_message || !is_blocked(c)))
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
    if (c->fields.length == 0)
        buffer_release(&c->fields);
    if (c->out.length == 0)
        buffer_release(&c->out);
    if (c->request_called || !c->in_message)
        buffer_release(&c->head);
    if (c->wants_drain && !c->writing)
        call(c, ON_SCHEDULE);
    connection_adjust_reading(c);
}

/* Parsing */

static int refuse(struct connection *c, uint16_t status)
{
    c->error_status = status;
    return HPE_USER;
}

static int on_message_begin(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->head.length = 0;
    c->trailer_bytes = 0;
    c->hosts = 0;
    c->in_message = true;
    c->host_bad = c->expects_continue = c->in_trailers = false;
    c->request_called = c->request_done = c->reply_done = c->reply_sent = false;
    c->reply_chunked = c->reply_counted = c->no_body = c->head_only = false;
    c->head_written = c->has_date = c->wants_close = c->wants_chunks = false;
    return 0;
}

static int on_target(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    if (c->head.length + length > TARGET_MAX)
        return refuse(c, 414);
    buffer_add(&c->head, at, length);
    return 0;
}

static int on_target_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->target_length = c->name_start = c->head.length;
    return 0;
}

/* Trailers are read and dropped (RFC 9110 6.5.1), but count. */
static int on_field_bytes(struct connection *c, const char *at, size_t length)
{
    if (c->in_trailers)
        c->trailer_bytes += length;
    if (c->head.length + length > HEAD_MAX || c->trailer_bytes > HEAD_MAX)
        return refuse(c, 431);
    if (!c->in_trailers)
        buffer_add(&c->head, at, length);
    return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    size_t start = c->head.length;
    int error = on_field_bytes(c, at, length);
    for (size_t i = start; i < c->head.length; i++) {
        char byte = c->head.data[i];
        if (byte >= 'A' && byte <= 'Z')
            c->head.data[i] = (char)(byte | 0x20);
    }
    return error;
}

static int on_name_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    return c->in_trailers ? 0 : on_field_bytes(c, "", 1);
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
    return on_field_bytes(parser->data, at, length);
}

/* RFC 3986 3.2.2 and 3.2.3, as a set of bytes: what may stand in `uri-host [":" port]`. */
static bool is_host(const char *at, size_t length)
{
    static const char others[] = "-._~%!$&'()*+,;=:[]";
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)at[i];
        bool alnum = (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
        if (!alnum && (byte == 0 || strchr(others, byte) == NULL))
            return false;
    }
    return true;
}

static int on_value_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    if (c->in_trailers)
        return 0;
    const char *name = c->head.data + c->name_start;
    size_t name_length = strnlen(name, c->head.length - c->name_start);
    const char *value = name + name_length + 1;
    size_t value_length = (size_t)(c->head.data + c->head.length - value);
    if (name_length == 4 && memcmp(name, "host", 4) == 0) {
        if (c->hosts < 2)
            c->hosts++;
        c->host_bad |= !is_host(value, value_length);
    } else if (name_length == 6 && memcmp(name, "expect", 6) == 0) {
        c->expects_continue = value_length == 12 && strncasecmp(value, "100-continue", 12) == 0;
    }
    int error = on_field_bytes(c, "", 1);
    c->name_start = c->head.length;
    return error;
}

/* RFC 9112 3.2.2: a target in absolute form. The handler sees the path as if it had been in origin
 * form, and the authority takes the place of Host. */
static const char *origin_form(struct connection *c, size_t *length)
{
    const char *target = c->head.data;
    *length = c->target_length;
    if (*length < 7 || strncasecmp(target, "http://", 7) != 0)
        return target;
    const char *end = target + *length;
    const char *path = target + 7;
    while (path < end && *path != '/' && *path != '?')
        path++;
    size_t authority = (size_t)(path - target) - 7;
    size_t offset = (size_t)(path - target);
    buffer_add(&c->head, "host", 5);
    buffer_reserve(&c->head, authority + 1);
    buffer_add(&c->head, c->head.data + 7, authority);
    buffer_add(&c->head, "", 1);
    if (offset == c->target_length || c->head.data[offset] == '?')
        c->head.data[--offset] = '/';
    *length = c->target_length - offset;
    return c->head.data + offset;
}

static void call_request(struct connection *c, bool ended)
{
    size_t headers_start = c->target_length;
    size_t target_length;
    const char *target = origin_form(c, &target_length);
    lua_State *L = host.L;
    c->request_called = true;
    c->reply_start = c->out.length;
    call_begin(c, ON_REQUEST);
    lua_pushinteger(L, c->parser.method);
    lua_pushlstring(L, target, target_length);
    lua_pushlstring(L, c->head.data + headers_start, c->head.length - headers_start);
    lua_pushinteger(L, c->parser.http_minor);
    lua_pushboolean(L, ended);
    if (!call_end(5))
        connection_fail(c, 500);
}

static int on_headers_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    if (parser->http_major != 1)
        return refuse(c, 505);
    if (c->hosts > 1 || c->host_bad || (c->hosts == 0 && parser->http_minor > 0))
        return refuse(c, 400);
    /* RFC 9112 6.1: the framing of an HTTP/1.0 message that has Transfer-Encoding is faulty. */
    if (parser->http_minor == 0 && (parser->flags & F_TRANSFER_ENCODING))
        return refuse(c, 400);
    parser->upgrade = 0; /* no other protocol is offered */
    c->in_trailers = true;
    c->head_only = parser->method == HTTP_HEAD;
    c->keep_alive = llhttp_should_keep_alive(parser);
    if (!(parser->flags & F_CHUNKED) && parser->content_length == 0)
        return 0;
    if (c->expects_continue && parser->http_minor > 0) {
        APPEND(c, "HTTP/1.1 100 Continue\r\n\r\n");
        connection_send(c);
    }
    call_request(c, false);
    return c->closing || c->finishing ? HPE_USER : 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    call_begin(c, ON_DATA);
    lua_pushlstring(host.L, at, length);
    if (!call_end(1))
        connection_fail(c, 500);
    return c->closing || c->finishing ? HPE_USER : 0;
}

static int on_message_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->request_done = true;
    if (!c->request_called)
        call_request(c, true);
    else if (!call(c, ON_DONE))
        connection_fail(c, 500);
    c->in_message = false;
    exchange_settle(c);
    return is_blocked(c) || c->out.length >= OUT_HIGH ? HPE_PAUSED : 0;
}

/* The Lua module */

static int lua_start(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    for (int i = 0; i < CALLBACKS; i++) {
        lua_getfield(L, 1, callback_names[i]);
        luaL_checktype(L, -1, LUA_TFUNCTION);
        host.callbacks[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
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
    lua_pushvalue(L, 2);
    c->socket = luaL_ref(L, LUA_REGISTRYINDEX);
    llhttp_init(&c->parser, HTTP_REQUEST, &host.settings);
    c->parser.data = c;
    c->reply_done = true;
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
    connection_fail(c, 500);
    connection_advance(c, NULL, 0);
    return 0;
}

static int lua_close_connection(lua_State *L)
{
    connection_close(check_connection(L));
    return 0;
}

int connection_open_module(lua_State *L)
{
    host.L = L;
    lua_pushcfunction(L, traceback);
    host.traceback = luaL_ref(L, LUA_REGISTRYINDEX);
    llhttp_settings_init(&host.settings);
    host.settings.on_message_begin = on_message_begin;
    host.settings.on_url = on_target;
    host.settings.on_url_complete = on_target_complete;
    host.settings.on_header_field = on_name;
    host.settings.on_header_field_complete = on_name_complete;
    host.settings.on_header_value = on_value;
    host.settings.on_header_value_complete = on_value_complete;
    host.settings.on_headers_complete = on_headers_complete;
    host.settings.on_body = on_body;
    host.settings.on_message_complete = on_message_complete;
    static const luaL_Reg functions[] = {
        {"start", lua_start}, {"attach", lua_attach}, {"resume", lua_resume_connection},
        {"hold", lua_hold},   {"fail", lua_fail},     {"close", lua_close_connection},
        {NULL, NULL}};
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

void connection_stop_all(void)
{
    host.stopped = true;
}
