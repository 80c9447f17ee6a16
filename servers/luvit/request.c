#include "request.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "connection.h"
#include "reply.h"
#include "script.h"

enum {
    HEAD_MAX = 64 * 1024,   /* target and fields; more gets 431; the same for trailers */
    TARGET_MAX = 16 * 1024, /* more gets 414; RFC 9112 3 asks for 8000 at least */
};

static int refuse(struct connection *c, int status)
{
    c->request.error_status = status;
    return HPE_USER;
}

static int on_message_begin(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->request.head.length = 0;
    c->request.trailer_bytes = 0;
    c->request.hosts = 0;
    c->request.begun = true;
    c->request.begun_ms = c->active_ms;
    c->request.says_close = c->request.says_keep_alive = c->request.expects_continue = false;
    c->request.head_done = c->request.called = c->request.done = false;
    reply_reset(c);
    return 0;
}

static int on_target(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    if (c->request.head.length + length > TARGET_MAX)
        return refuse(c, 414);
    buffer_add(&c->request.head, at, length);
    return 0;
}

static int on_target_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->request.target_length = c->request.name_start = c->request.head.length;
    return 0;
}

/* Trailers are read and dropped (RFC 9110 6.5.1), but count. */
static int on_field_bytes(struct connection *c, const char *at, size_t length)
{
    if (c->request.head_done)
        c->request.trailer_bytes += length;
    if (c->request.head.length + length > HEAD_MAX || c->request.trailer_bytes > HEAD_MAX)
        return refuse(c, 431);
    if (!c->request.head_done)
        buffer_add(&c->request.head, at, length);
    return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    size_t start = c->request.head.length;
    int error = on_field_bytes(c, at, length);
    for (size_t i = start; i < c->request.head.length; i++) {
        char byte = c->request.head.data[i];
        if (byte >= 'A' && byte <= 'Z')
            c->request.head.data[i] = (char)(byte | 0x20);
    }
    return error;
}

static int on_name_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    return c->request.head_done ? 0 : on_field_bytes(c, "", 1);
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
    return on_field_bytes(parser->data, at, length);
}

struct span {
    const char *at;
    size_t length;
};

static bool span_is(struct span s, const char *lower)
{
    return s.length == strlen(lower) && strncasecmp(s.at, lower, s.length) == 0;
}

static struct span span_trim(struct span s)
{
    while (s.length > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
        s = (struct span){s.at + 1, s.length - 1};
    while (s.length > 0 && (s.at[s.length - 1] == ' ' || s.at[s.length - 1] == '\t'))
        s.length--;
    return s;
}

/* A percent stands before two hexadecimal digits (RFC 3986 2.1). */
static bool percents_are_right(struct span s)
{
    for (size_t i = 0; i < s.length; i++)
        if (s.at[i] == '%' && (s.length - i < 3 || !isxdigit((unsigned char)s.at[i + 1]) ||
                               !isxdigit((unsigned char)s.at[i + 2])))
            return false;
    return true;
}

/* RFC 3986 3.2.2 and 3.2.3: `uri-host [":" port]`, the host as a set of bytes or in brackets. */
static bool is_host(struct span s)
{
    static const bool good[256] = {
        ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
        ['!'] = true,         ['$' ... '.'] = true, [';'] = true,
        ['='] = true,         ['_'] = true,         ['~'] = true,
    };
    size_t i = 0;
    bool literal = s.length > 0 && s.at[0] == '[';
    if (literal)
        i = 1;
    while (i < s.length && (good[(unsigned char)s.at[i]] || (literal && s.at[i] == ':')))
        i++;
    if (literal && (i == 1 || i == s.length || s.at[i++] != ']'))
        return false;
    if (i < s.length && s.at[i++] != ':')
        return false;
    while (i < s.length && s.at[i] >= '0' && s.at[i] <= '9')
        i++;
    return i == s.length && percents_are_right(s);
}

/* RFC 9110 7.6.1: a list; llhttp 8.1 knows no HTAB in it. */
static void note_connection(struct connection *c, struct span list)
{
    const char *end = list.at + list.length;
    while (list.at < end) {
        const char *comma = memchr(list.at, ',', (size_t)(end - list.at));
        const char *stop = comma != NULL ? comma : end;
        struct span option = span_trim((struct span){list.at, (size_t)(stop - list.at)});
        c->request.says_close |= span_is(option, "close");
        c->request.says_keep_alive |= span_is(option, "keep-alive");
        list.at = stop + 1;
    }
}

/* The fields that the host itself must understand. Returns 0 or HPE_USER. */
static int note_field(struct connection *c, struct span name, struct span value)
{
    if (name.length == 0)
        return refuse(c, 400);
    if (span_is(name, "host")) {
        if (++c->request.hosts > 1 || !is_host(value))
            return refuse(c, 400);
    } else if (span_is(name, "connection")) {
        note_connection(c, value);
    } else if (span_is(name, "expect")) {
        c->request.expects_continue = span_is(value, "100-continue");
    } else if (span_is(name, "transfer-encoding") && !span_is(value, "chunked")) {
        return refuse(c, 501); /* RFC 9112 6.1; llhttp 8.1 takes "x, chunked" for chunked */
    }
    return 0;
}

static int on_value_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    if (c->request.head_done)
        return 0;
    struct span name = {c->request.head.data + c->request.name_start, 0};
    name.length = strnlen(name.at, c->request.head.length - c->request.name_start);
    const char *start = name.at + name.length + 1;
    struct span value = span_trim(
        (struct span){start, (size_t)(c->request.head.data + c->request.head.length - start)});
    c->request.head.length = (size_t)(value.at + value.length - c->request.head.data);
    int error = note_field(c, name, value);
    if (error == 0)
        error = on_field_bytes(c, "", 1);
    c->request.name_start = c->request.head.length;
    return error;
}

/* RFC 9112 3.2.2: a target in absolute form. The handler is given its path, as if it had come in
 * origin form, and its authority, as a last Host. Returns false if the authority is no host. */
static bool split_target(struct connection *c, struct span *path)
{
    struct buffer *head = &c->request.head;
    *path = (struct span){head->data, c->request.target_length};
    if (path->length < 7 || strncasecmp(head->data, "http://", 7) != 0)
        return true;
    size_t end = 7;
    while (end < c->request.target_length && strchr("/?", head->data[end]) == NULL)
        end++;
    struct span authority = {head->data + 7, end - 7};
    if (authority.length == 0 || !is_host(authority))
        return false;
    buffer_reserve(head, sizeof "host" + authority.length + 1);
    BUFFER_ADD_LITERAL(head, "host\0");
    buffer_add(head, head->data + 7, authority.length);
    buffer_add(head, "", 1);
    if (end == c->request.target_length || head->data[end] == '?')
        head->data[--end] = '/';
    *path = (struct span){head->data + end, c->request.target_length - end};
    return true;
}

/* Returns 0, or HPE_USER if there will be no more of this connection. */
static int call_handler(struct connection *c)
{
    struct span path;
    if (!split_target(c, &path))
        return refuse(c, 400);
    c->request.called = true;
    c->reply.start = c->out.length;
    const struct buffer *head = &c->request.head;
    lua_State *L = script_begin(c, SCRIPT_REQUEST);
    lua_pushinteger(L, c->parser.method);
    lua_pushlstring(L, path.at, path.length);
    lua_pushlstring(L, head->data + c->request.target_length,
                    head->length - c->request.target_length);
    lua_pushinteger(L, c->parser.http_minor > 0);
    lua_pushboolean(L, c->request.done);
    if (!script_end(5))
        connection_fail(c, 500);
    return c->closing || c->finishing ? HPE_USER : 0;
}

static int check_head(struct connection *c)
{
    const llhttp_t *parser = &c->parser;
    if (parser->http_major != 1)
        return refuse(c, parser->http_major == 0 ? 400 : 505);
    if (c->request.hosts == 0 && parser->http_minor > 0)
        return refuse(c, 400);
    /* RFC 9112 6.1: the framing of an HTTP/1.0 message that has Transfer-Encoding is faulty. */
    if (parser->http_minor == 0 && (parser->flags & F_TRANSFER_ENCODING))
        return refuse(c, 400);
    return 0;
}

/* A handler is called when the head has come, if there is a body to follow, and else when the
 * request has ended. */
static int on_headers_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->request.head_done = true; /* from here on a refusal of HEAD goes without a body */
    if (check_head(c) != 0)
        return HPE_USER;
    parser->upgrade = 0; /* no other protocol is offered */
    c->keep_alive = !c->request.says_close &&
                    (parser->http_minor > 0 || c->request.says_keep_alive) &&
                    !(parser->flags & F_CONNECTION_CLOSE); /* llhttp reads Proxy-Connection too */
    if (!(parser->flags & F_CHUNKED) && parser->content_length == 0)
        return 0;
    if (c->request.expects_continue && parser->http_minor > 0) {
        BUFFER_ADD_LITERAL(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
        connection_send(c);
        if (c->closing)
            return HPE_USER;
    }
    return call_handler(c);
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *c = parser->data;
    lua_pushlstring(script_begin(c, SCRIPT_DATA), at, length);
    if (!script_end(1))
        connection_fail(c, 500);
    return c->closing || c->finishing ? HPE_USER : 0;
}

static int on_message_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->request.done = true;
    if (!c->request.called) {
        int error = call_handler(c);
        if (error != 0)
            return error;
    } else if (!script_call(c, SCRIPT_DONE)) {
        connection_fail(c, 500);
    }
    c->request.begun = false;
    connection_settle(c);
    return connection_is_blocked(c) || c->out.length >= CONNECTION_OUT_HIGH ? HPE_PAUSED : 0;
}

void request_settings(llhttp_settings_t *settings)
{
    llhttp_settings_init(settings);
    settings->on_message_begin = on_message_begin;
    settings->on_url = on_target;
    settings->on_url_complete = on_target_complete;
    settings->on_header_field = on_name;
    settings->on_header_field_complete = on_name_complete;
    settings->on_header_value = on_value;
    settings->on_header_value_complete = on_value_complete;
    settings->on_headers_complete = on_headers_complete;
    settings->on_body = on_body;
    settings->on_message_complete = on_message_complete;
}
