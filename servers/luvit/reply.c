#include "reply.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "connection.h"

/* Whether `name` is the literal, letter case aside. */
#define IS(name, length, literal)                                                                  \
    ((length) == sizeof(literal) - 1 && strncasecmp(name, literal, sizeof(literal) - 1) == 0)

/* "Date: ..." in IMF-fixdate (RFC 9110 5.6.7), made when a second has begun since the last one. */
static void append_date(struct connection *c)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    static time_t made_s;
    static char line[64];
    static size_t length;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec != made_s) {
        struct tm utc;
        gmtime_r(&now.tv_sec, &utc);
        length = (size_t)snprintf(line, sizeof line, "Date: %s, %02d %s %d %02d:%02d:%02d GMT\r\n",
                                  days[utc.tm_wday], utc.tm_mday, months[utc.tm_mon],
                                  utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
        made_s = now.tv_sec;
    }
    buffer_add(&c->out, line, length);
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

void reply_refusal(struct connection *c, int status)
{
    const char *line = reason(status);
    char head[128];
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n",
                          line, strlen(line) + 1);
    buffer_add(&c->out, head, (size_t)length);
    append_date(c);
    BUFFER_ADD_LITERAL(&c->out, "Connection: close\r\n\r\n");
    if (c->request.head_done && c->parser.method == HTTP_HEAD)
        return;
    buffer_add(&c->out, line, strlen(line));
    BUFFER_ADD_LITERAL(&c->out, "\n");
}

void reply_reset(struct connection *c)
{
    luvit_remove_all(c);
    c->reply.chunked = c->reply.no_body = c->reply.head_written = false;
    c->reply.done = c->reply.sent = false;
}

/* Returns the field's line in c->reply.fields, or NULL. */
static char *field_find(struct connection *c, const char *name, size_t length)
{
    char *end = c->reply.fields.data + c->reply.fields.length;
    for (char *line = c->reply.fields.data; line != end;
         line = (char *)memchr(line, '\n', (size_t)(end - line)) + 1) {
        if ((size_t)(end - line) > length && line[length] == ':' &&
            strncasecmp(line, name, length) == 0)
            return line;
    }
    return NULL;
}

static void field_cut(struct connection *c, char *line)
{
    char *end = c->reply.fields.data + c->reply.fields.length;
    char *next = (char *)memchr(line, '\n', (size_t)(end - line)) + 1;
    memmove(line, next, (size_t)(end - next));
    c->reply.fields.length -= (size_t)(next - line);
}

/* RFC 9110 5.6.2: the bytes of a token. */
static bool is_token(const char *at, size_t length)
{
    static const bool good[256] = {
        ['0' ... '9'] = true,  ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['!'] = true,
        ['#' ... '\''] = true, ['*' ... '+'] = true, ['-' ... '.'] = true, ['^' ... '`'] = true,
        ['|'] = true,          ['~'] = true,
    };
    for (size_t i = 0; i < length; i++) {
        if (!good[(unsigned char)at[i]])
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
    c->reply.body_left = total;
    c->reply.counted = length > 0;
    return length > 0;
}

int luvit_set(struct connection *c, const char *name, size_t name_length, const char *value,
              size_t value_length)
{
    if (!is_token(name, name_length) || !is_value(value, value_length))
        return 0;
    switch (name_length) {
    case sizeof "Content-Length" - 1:
        if (IS(name, name_length, "Content-Length"))
            return set_length(c, value, value_length);
        break;
    case sizeof "Connection" - 1:
        if (IS(name, name_length, "Connection")) {
            c->reply.wants_close = value_length == 5 && strncasecmp(value, "close", 5) == 0;
            return 1;
        }
        break;
    case sizeof "Transfer-Encoding" - 1:
        if (IS(name, name_length, "Transfer-Encoding")) {
            c->reply.wants_chunks = value_length == 7 && strncasecmp(value, "chunked", 7) == 0;
            return c->reply.wants_chunks;
        }
        break;
    case sizeof "Date" - 1:
        if (IS(name, name_length, "Date"))
            c->reply.has_date = true;
        break;
    default:
        break;
    }
    char *old = field_find(c, name, name_length);
    if (old != NULL)
        field_cut(c, old);
    buffer_reserve(&c->reply.fields, name_length + value_length + 4);
    char *to = c->reply.fields.data + c->reply.fields.length;
    memcpy(to, name, name_length);
    memcpy(to + name_length, ": ", 2);
    memcpy(to + name_length + 2, value, value_length);
    memcpy(to + name_length + 2 + value_length, "\r\n", 2);
    c->reply.fields.length += name_length + value_length + 4;
    return 1;
}

int luvit_set_number(struct connection *c, const char *name, size_t name_length, double value)
{
    if (value >= 0 && value < 1e15 && IS(name, name_length, "Content-Length")) {
        c->reply.body_left = (uint64_t)value;
        c->reply.counted = (double)c->reply.body_left == value;
        return c->reply.counted;
    }
    char text[32];
    int length = snprintf(text, sizeof text, "%.14g", value);
    return luvit_set(c, name, name_length, text, (size_t)length);
}

int luvit_get(struct connection *c, const char *name, size_t name_length, char *to, size_t size)
{
    if (c->reply.counted && IS(name, name_length, "Content-Length"))
        return snprintf(to, size, "%llu", (unsigned long long)c->reply.body_left);
    if (c->reply.wants_chunks && IS(name, name_length, "Transfer-Encoding"))
        return snprintf(to, size, "chunked");
    if (c->reply.wants_close && IS(name, name_length, "Connection"))
        return snprintf(to, size, "close");
    char *line = field_find(c, name, name_length);
    if (line == NULL)
        return -1;
    char *value = line + name_length + 2;
    char *end =
        memchr(value, '\r', (size_t)(c->reply.fields.data + c->reply.fields.length - value));
    size_t length = (size_t)(end - value);
    memcpy(to, value, length < size ? length : size);
    return (int)length;
}

void luvit_remove(struct connection *c, const char *name, size_t name_length)
{
    if (IS(name, name_length, "Content-Length"))
        c->reply.counted = false;
    if (IS(name, name_length, "Transfer-Encoding"))
        c->reply.wants_chunks = false;
    if (IS(name, name_length, "Connection"))
        c->reply.wants_close = false;
    if (IS(name, name_length, "Date"))
        c->reply.has_date = false;
    char *line = field_find(c, name, name_length);
    if (line != NULL)
        field_cut(c, line);
}

void luvit_remove_all(struct connection *c)
{
    c->reply.fields.length = 0;
    c->reply.counted = c->reply.wants_chunks = c->reply.wants_close = c->reply.has_date = false;
}

void luvit_no_date(struct connection *c)
{
    c->reply.has_date = true;
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
    c->reply.no_body = (c->parser.method == HTTP_HEAD) || status == 204 || status == 304;
    if (status == 204)
        return;
    if (c->reply.counted && !c->reply.wants_chunks) {
        char digits[20];
        char *start = decimal(digits, c->reply.body_left);
        BUFFER_ADD_LITERAL(&c->out, "Content-Length: ");
        buffer_add(&c->out, start, (size_t)(digits + 20 - start));
        BUFFER_ADD_LITERAL(&c->out, "\r\n");
        return;
    }
    c->reply.counted = false;
    if (status == 304)
        return;
    if (c->parser.http_minor == 0) {
        c->keep_alive = false;
    } else {
        BUFFER_ADD_LITERAL(&c->out, "Transfer-Encoding: chunked\r\n");
        c->reply.chunked = !c->reply.no_body;
    }
}

static void append_head(struct connection *c, int status, const char *line, size_t line_length)
{
    c->reply.head_written = true;
    buffer_add(&c->out, line, line_length);
    buffer_add(&c->out, c->reply.fields.data, c->reply.fields.length);
    if (!c->reply.has_date)
        append_date(c);
    if (c->reply.wants_close)
        c->keep_alive = false;
    append_framing(c, status);
    if (!c->keep_alive)
        BUFFER_ADD_LITERAL(&c->out, "Connection: close\r\n");
    else if (c->parser.http_minor == 0)
        BUFFER_ADD_LITERAL(&c->out, "Connection: keep-alive\r\n");
    BUFFER_ADD_LITERAL(&c->out, "\r\n");
}

static void append_body(struct connection *c, const char *data, size_t length)
{
    if (c->reply.counted)
        c->reply.body_left -= length;
    if (c->reply.no_body || length == 0)
        return;
    if (c->reply.chunked) {
        char size[24];
        int n = snprintf(size, sizeof size, "%zx\r\n", length);
        buffer_add(&c->out, size, (size_t)n);
    }
    buffer_add(&c->out, data, length);
    if (c->reply.chunked)
        BUFFER_ADD_LITERAL(&c->out, "\r\n");
}

static int next_step(struct connection *c)
{
    bool full = c->writing || c->out.length >= CONNECTION_OUT_HIGH;
    c->wants_drain |= full && !c->reply.done;
    return (c->busy ? 0 : LUVIT_RESUME) | (full ? LUVIT_FULL : 0);
}

int luvit_head(struct connection *c, int status, const char *line, size_t line_length)
{
    append_head(c, status, line, line_length);
    return next_step(c);
}

int luvit_body(struct connection *c, const char *data, size_t length)
{
    if (c->reply.counted && length > c->reply.body_left)
        return LUVIT_TOO_LONG;
    append_body(c, data, length);
    return next_step(c);
}

int luvit_finish(struct connection *c, int status, const char *line, size_t line_length,
                 const char *data, size_t length)
{
    if (!c->reply.head_written && !c->reply.counted && !c->reply.wants_chunks) {
        c->reply.counted = true;
        c->reply.body_left = length;
    }
    if (c->reply.counted && length > c->reply.body_left)
        return LUVIT_TOO_LONG;
    if (!c->reply.head_written)
        append_head(c, status, line, line_length);
    append_body(c, data, length);
    if (c->reply.chunked)
        BUFFER_ADD_LITERAL(&c->out, "0\r\n\r\n");
    if (c->reply.counted && c->reply.body_left > 0 && !c->reply.no_body)
        c->keep_alive = false;
    c->reply.done = true;
    c->wants_drain = false;
    return next_step(c);
}
