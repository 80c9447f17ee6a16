#include "http/response.h"

#include "http/chars.h"

#include <string.h>

/* The head is gathered in response.head and read a line at a time. What follows it is read a
 * character at a time, body bytes aside, since none of it is kept. */
enum state {
    IN_HEAD,
    IN_BODY_LENGTH,
    IN_BODY_EOF,
    CHUNK_SIZE_FIRST,
    CHUNK_SIZE,
    EXT_BEFORE_SEMICOLON,
    EXT_NAME_FIRST,
    EXT_NAME,
    EXT_BEFORE_EQUALS,
    EXT_VALUE_FIRST,
    EXT_VALUE,
    EXT_QUOTED,
    EXT_ESCAPE,
    EXT_QUOTED_END,
    CHUNK_LINE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    TRAILER_FIRST,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    DONE,
    BAD
};

static const char problem_bare_lf[] = "a line ends in LF without CR (RFC 9112 2.2)";
static const char problem_fold[] = "a field line begins with white space (RFC 9112 2.2, 5.2)";
static const char problem_name[] = "a field name is empty or no token (RFC 9112 5.1)";
static const char problem_value[] = "a control character in a field value (RFC 9110 5.5)";
static const char problem_length[] = "Content-Length is no number below 2^64 (RFC 9110 8.6)";
static const char problem_chunk_size[] = "a chunk size is no hexadecimal number (RFC 9112 7.1)";
static const char problem_chunk_ext[] = "a malformed chunk extension (RFC 9112 7.1.1)";

static void fail(struct http_scanner *s, const char *problem)
{
    s->problem = problem;
    s->state = BAD;
}

static void head_clear(struct http_scanner *s)
{
    struct http_response *r = &s->response;
    r->framing = HTTP_FRAMING_NONE;
    r->keep_alive = false;
    r->close = false;
    r->content_length = 0;
    r->has_content_length = false;
    r->field_count = 0;
    r->head_bytes = 0;
    s->line_start = 0;
    s->state = IN_HEAD;
}

void http_scanner_start(struct http_scanner *s, bool head_request)
{
    struct http_response *r = &s->response;
    head_clear(s);
    r->status = 0;
    r->minor = 0;
    r->informational = 0;
    r->body_bytes = 0;
    r->total_bytes = 0;
    s->problem = NULL;
    s->head_request = head_request;
    s->left = 0;
    s->section_bytes = 0;
}

/* ---- the head */

static void status_line(struct http_scanner *s, const char *line, size_t size)
{
    struct http_response *r = &s->response;
    if (size < 8 || memcmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1')) {
        fail(s, "no HTTP/1.0 or HTTP/1.1 status line (RFC 9112 4)");
        return;
    }
    if (size < 13 || line[8] != ' ' || !chars_is_digit(line[9]) || !chars_is_digit(line[10]) ||
        !chars_is_digit(line[11]) || line[12] != ' ') {
        fail(s, "the status line has no three digits between two spaces (RFC 9112 4)");
        return;
    }
    r->minor = (unsigned)(line[7] - '0');
    r->status = (unsigned)((line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0'));
    if (r->status < 100 || r->status > 599)
        fail(s, "a status code outside 100 to 599 (RFC 9110 15)");
    for (size_t i = 13; i < size; i++)
        if (!chars_is_text(line[i]))
            fail(s, "a control character in the reason phrase (RFC 9112 4)");
}

static void field_line(struct http_scanner *s, const char *line, size_t size)
{
    struct http_response *r = &s->response;
    size_t name = 0;
    while (name < size && chars_is_token(line[name]))
        name++;
    if (chars_is_blank(line[0])) {
        fail(s, problem_fold);
        return;
    }
    if (name == 0 || name == size || line[name] != ':') {
        fail(s, problem_name);
        return;
    }
    size_t from = name + 1, to = size;
    while (from < to && chars_is_blank(line[from]))
        from++;
    while (to > from && chars_is_blank(line[to - 1]))
        to--;
    for (size_t i = from; i < to; i++)
        if (!chars_is_text(line[i])) {
            fail(s, problem_value);
            return;
        }
    if (r->field_count == HTTP_FIELDS_MAX) {
        fail(s, "more than 64 field lines");
        return;
    }
    size_t start = (size_t)(line - r->head);
    r->fields[r->field_count++] = (struct http_field){
        .name = (uint16_t)start,
        .name_bytes = (uint16_t)name,
        .value = (uint16_t)(start + from),
        .value_bytes = (uint16_t)(to - from),
    };
}

/* Cuts the next member off a comma-separated list (RFC 9110 5.6.1), white space trimmed. */
struct list {
    const char *at, *end;
    const char *member;
    size_t member_bytes;
};

static struct list list_of(const struct http_response *r, const struct http_field *f)
{
    const char *value = r->head + f->value;
    return (struct list){.at = value, .end = value + f->value_bytes};
}

static bool list_next(struct list *list)
{
    if (list->at == NULL)
        return false;
    const char *comma = memchr(list->at, ',', (size_t)(list->end - list->at));
    const char *from = list->at, *to = comma != NULL ? comma : list->end;
    list->at = comma != NULL ? comma + 1 : NULL;
    while (from < to && chars_is_blank(*from))
        from++;
    while (to > from && chars_is_blank(to[-1]))
        to--;
    list->member = from;
    list->member_bytes = (size_t)(to - from);
    return true;
}

static bool number_parse(const char *text, size_t size, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < size; i++)
        if (!chars_is_digit(text[i]) || __builtin_mul_overflow(*number, 10u, number) ||
            __builtin_add_overflow(*number, (unsigned)(text[i] - '0'), number))
            return false;
    return size != 0;
}

static void content_length(struct http_scanner *s, const struct http_field *f)
{
    struct http_response *r = &s->response;
    for (struct list list = list_of(r, f); list_next(&list);) {
        uint64_t number;
        if (!number_parse(list.member, list.member_bytes, &number)) {
            fail(s, problem_length);
            return;
        }
        if (r->has_content_length && number != r->content_length) {
            fail(s, "Content-Lengths that differ (RFC 9112 6.3)");
            return;
        }
        r->content_length = number;
        r->has_content_length = true;
    }
}

/* The fields that frame the body and keep the connection, over all their lines. */
struct framing {
    unsigned chunked;
    bool other_coding;
    bool keep_alive;
};

static void framing_field(struct http_scanner *s, const struct http_field *f,
                          struct framing *framing)
{
    struct http_response *r = &s->response;
    const char *name = r->head + f->name;
    if (chars_equal(name, f->name_bytes, "content-length")) {
        content_length(s, f);
    } else if (chars_equal(name, f->name_bytes, "transfer-encoding")) {
        for (struct list list = list_of(r, f); list_next(&list);) {
            bool chunked = chars_equal(list.member, list.member_bytes, "chunked");
            framing->chunked += chunked;
            framing->other_coding |= !chunked;
        }
    } else if (chars_equal(name, f->name_bytes, "connection")) {
        for (struct list list = list_of(r, f); list_next(&list);) {
            r->close |= chars_equal(list.member, list.member_bytes, "close");
            framing->keep_alive |= chars_equal(list.member, list.member_bytes, "keep-alive");
        }
    }
}

static const char *framing_problem(const struct http_response *r, const struct framing *framing)
{
    bool coded = framing->chunked != 0 || framing->other_coding;
    if (framing->other_coding || framing->chunked > 1)
        return "a Transfer-Encoding other than a single chunked (RFC 9112 6.1, 7.4)";
    if (coded && r->has_content_length)
        return "Content-Length beside Transfer-Encoding (RFC 9112 6.2)";
    if (coded && r->minor == 0)
        return "Transfer-Encoding in HTTP/1.0 (RFC 9112 6.1)";
    if (coded && (r->status < 200 || r->status == 204))
        return "Transfer-Encoding in a 1xx or 204 response (RFC 9112 6.1)";
    if (r->has_content_length && (r->status < 200 || r->status == 204))
        return "Content-Length in a 1xx or 204 response (RFC 9110 8.6)";
    if (r->status < 200 && r->minor == 0)
        return "1xx in HTTP/1.0 (RFC 9110 15.2)";
    if (r->status == 101)
        return "101 without a request to upgrade (RFC 9110 7.8)";
    return NULL;
}

/* RFC 9112 6.3 */
static void body_begin(struct http_scanner *s, const struct framing *framing)
{
    struct http_response *r = &s->response;
    if (s->head_request || r->status == 204 || r->status == 304) {
        s->state = DONE;
    } else if (framing->chunked != 0) {
        r->framing = HTTP_FRAMING_CHUNKED;
        s->state = CHUNK_SIZE_FIRST;
        s->section_bytes = 0;
    } else if (r->has_content_length) {
        r->framing = HTTP_FRAMING_LENGTH;
        s->left = r->content_length;
        s->state = s->left != 0 ? IN_BODY_LENGTH : DONE;
    } else {
        r->framing = HTTP_FRAMING_EOF;
        s->state = IN_BODY_EOF;
    }
    r->keep_alive =
        !r->close && r->framing != HTTP_FRAMING_EOF && (r->minor == 1 || framing->keep_alive);
}

static void head_end(struct http_scanner *s)
{
    struct http_response *r = &s->response;
    struct framing framing = {0};
    for (unsigned i = 0; i < r->field_count && s->state != BAD; i++)
        framing_field(s, &r->fields[i], &framing);
    if (s->state == BAD)
        return;
    const char *problem = framing_problem(r, &framing);
    if (problem != NULL) {
        fail(s, problem);
    } else if (r->status < 200) {
        r->informational++;
        head_clear(s);
    } else {
        body_begin(s, &framing);
    }
}

static void head_line(struct http_scanner *s)
{
    struct http_response *r = &s->response;
    const char *line = r->head + s->line_start;
    size_t size = r->head_bytes - s->line_start;
    if (size < 2 || line[size - 2] != '\r') {
        fail(s, problem_bare_lf);
        return;
    }
    bool first = s->line_start == 0;
    s->line_start = r->head_bytes;
    if (first)
        status_line(s, line, size - 2);
    else if (size > 2)
        field_line(s, line, size - 2);
    else
        head_end(s);
}

static size_t head_feed(struct http_scanner *s, const char *bytes, size_t size)
{
    struct http_response *r = &s->response;
    const char *lf = memchr(bytes, '\n', size);
    size_t wanted = lf != NULL ? (size_t)(lf - bytes) + 1 : size;
    size_t room = HTTP_HEAD_MAX - r->head_bytes;
    size_t taken = wanted < room ? wanted : room;
    memcpy(r->head + r->head_bytes, bytes, taken);
    r->head_bytes += taken;
    /* Another protocol may never send a line: it shows in the first bytes. */
    size_t begun = r->head_bytes < 7 ? r->head_bytes : 7;
    if (s->line_start == 0 && memcmp(r->head, "HTTP/1.", begun) != 0)
        fail(s, "no HTTP/1.0 or HTTP/1.1 status line (RFC 9112 4)");
    else if (taken < wanted)
        fail(s, "a head of more than 16384 bytes");
    else if (lf != NULL)
        head_line(s);
    return taken;
}

/* ---- the body */

static size_t body_feed(struct http_scanner *s, const char *bytes, size_t size)
{
    struct http_response *r = &s->response;
    if (r->body_bytes < HTTP_BODY_KEEP) {
        size_t room = HTTP_BODY_KEEP - (size_t)r->body_bytes;
        memcpy(r->body + r->body_bytes, bytes, size < room ? size : room);
    }
    r->body_bytes += size;
    return size;
}

static size_t sized_feed(struct http_scanner *s, const char *bytes, size_t size, enum state after)
{
    size_t taken = size < s->left ? size : (size_t)s->left;
    body_feed(s, bytes, taken);
    s->left -= taken;
    if (s->left == 0)
        s->state = (int)after;
    return taken;
}

static int hex_value(char c)
{
    if (chars_is_digit(c))
        return c - '0';
    char lower = chars_lower(c);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static void chunk_size(struct http_scanner *s, char c)
{
    int digit = hex_value(c);
    if (digit >= 0) {
        s->left = s->state == CHUNK_SIZE_FIRST ? 0 : s->left;
        if (s->left >> 60 != 0) {
            fail(s, "a chunk size of 2^64 or more (RFC 9112 7.1)");
            return;
        }
        s->left = s->left << 4 | (unsigned)digit;
        s->state = CHUNK_SIZE;
    } else if (s->state == CHUNK_SIZE_FIRST) {
        fail(s, problem_chunk_size);
    } else if (c == ';') {
        s->state = EXT_NAME_FIRST;
    } else if (c == '\r') {
        s->state = CHUNK_LINE_LF;
    } else if (chars_is_blank(c)) {
        s->state = EXT_BEFORE_SEMICOLON;
    } else {
        fail(s, problem_chunk_size);
    }
}

/* What may follow a whole chunk-ext. */
static void ext_after(struct http_scanner *s, char c)
{
    if (c == ';')
        s->state = EXT_NAME_FIRST;
    else if (c == '\r')
        s->state = CHUNK_LINE_LF;
    else if (chars_is_blank(c))
        s->state = EXT_BEFORE_SEMICOLON;
    else
        fail(s, problem_chunk_ext);
}

static void ext_name(struct http_scanner *s, char c)
{
    if (s->state == EXT_NAME_FIRST) {
        if (chars_is_token(c))
            s->state = EXT_NAME;
        else if (!chars_is_blank(c))
            fail(s, problem_chunk_ext);
    } else if (c == '=') {
        s->state = EXT_VALUE_FIRST;
    } else if (s->state == EXT_NAME && chars_is_blank(c)) {
        s->state = EXT_BEFORE_EQUALS;
    } else if (s->state == EXT_NAME && !chars_is_token(c)) {
        ext_after(s, c);
    } else if (s->state == EXT_BEFORE_EQUALS && !chars_is_blank(c)) {
        if (c == ';')
            s->state = EXT_NAME_FIRST;
        else
            fail(s, problem_chunk_ext);
    }
}

static void ext_value(struct http_scanner *s, char c)
{
    switch ((enum state)s->state) {
    case EXT_VALUE_FIRST:
        if (c == '"')
            s->state = EXT_QUOTED;
        else if (chars_is_token(c))
            s->state = EXT_VALUE;
        else if (!chars_is_blank(c))
            fail(s, problem_chunk_ext);
        break;
    case EXT_VALUE:
        if (!chars_is_token(c))
            ext_after(s, c);
        break;
    case EXT_QUOTED: /* quoted-string, RFC 9110 5.6.4 */
        if (c == '"')
            s->state = EXT_QUOTED_END;
        else if (c == '\\')
            s->state = EXT_ESCAPE;
        else if (!chars_is_text(c))
            fail(s, problem_chunk_ext);
        break;
    case EXT_ESCAPE:
        s->state = EXT_QUOTED;
        if (!chars_is_text(c))
            fail(s, problem_chunk_ext);
        break;
    default: /* EXT_QUOTED_END */
        ext_after(s, c);
    }
}

static void trailer(struct http_scanner *s, char c)
{
    switch ((enum state)s->state) {
    case TRAILER_FIRST:
        if (c == '\r')
            s->state = END_LF;
        else if (chars_is_token(c))
            s->state = TRAILER_NAME;
        else
            fail(s, chars_is_blank(c) ? problem_fold : problem_name);
        break;
    case TRAILER_NAME:
        if (c == ':')
            s->state = TRAILER_VALUE;
        else if (!chars_is_token(c))
            fail(s, problem_name);
        break;
    default: /* TRAILER_VALUE */
        if (c == '\r')
            s->state = TRAILER_LF;
        else if (!chars_is_text(c))
            fail(s, problem_value);
    }
}

static void line_end(struct http_scanner *s, char c)
{
    if (c != '\n') {
        fail(s, "a CR without LF after it (RFC 9112 2.2)");
    } else if (s->state == CHUNK_LINE_LF) {
        s->state = s->left != 0 ? CHUNK_DATA : TRAILER_FIRST;
        s->section_bytes = 0;
    } else {
        s->state = s->state == TRAILER_LF ? TRAILER_FIRST : DONE;
    }
}

static void chunk_end(struct http_scanner *s, char c)
{
    if (c != (s->state == CHUNK_DATA_CR ? '\r' : '\n')) {
        fail(s, "no CRLF after the data of a chunk (RFC 9112 7.1)");
    } else if (s->state == CHUNK_DATA_CR) {
        s->state = CHUNK_DATA_LF;
    } else {
        s->state = CHUNK_SIZE_FIRST;
        s->section_bytes = 0;
    }
}

static void chunked_char(struct http_scanner *s, char c)
{
    if (++s->section_bytes > HTTP_HEAD_MAX) {
        fail(s, s->state >= TRAILER_FIRST ? "a trailer section of more than 16384 bytes"
                                          : "a chunk size line of more than 16384 bytes");
        return;
    }
    switch ((enum state)s->state) {
    case CHUNK_SIZE_FIRST:
    case CHUNK_SIZE:
        chunk_size(s, c);
        break;
    case EXT_NAME_FIRST:
    case EXT_NAME:
    case EXT_BEFORE_EQUALS:
        ext_name(s, c);
        break;
    case EXT_BEFORE_SEMICOLON:
        if (c == ';')
            s->state = EXT_NAME_FIRST;
        else if (!chars_is_blank(c))
            fail(s, problem_chunk_ext);
        break;
    case CHUNK_LINE_LF:
    case TRAILER_LF:
    case END_LF:
        line_end(s, c);
        break;
    case CHUNK_DATA_CR:
    case CHUNK_DATA_LF:
        chunk_end(s, c);
        break;
    case TRAILER_FIRST:
    case TRAILER_NAME:
    case TRAILER_VALUE:
        trailer(s, c);
        break;
    default:
        ext_value(s, c);
    }
}

/* ---- the whole */

enum http_scan http_scanner_feed(struct http_scanner *s, const char *bytes, size_t size,
                                 size_t *used)
{
    size_t at = 0;
    while (at < size && s->state != DONE && s->state != BAD) {
        if (s->state == IN_HEAD)
            at += head_feed(s, bytes + at, size - at);
        else if (s->state == IN_BODY_LENGTH)
            at += sized_feed(s, bytes + at, size - at, DONE);
        else if (s->state == CHUNK_DATA)
            at += sized_feed(s, bytes + at, size - at, CHUNK_DATA_CR);
        else if (s->state == IN_BODY_EOF)
            at += body_feed(s, bytes + at, size - at);
        else
            chunked_char(s, bytes[at++]);
    }
    s->response.total_bytes += at;
    *used = at;
    return s->state == DONE ? HTTP_SCAN_DONE : s->state == BAD ? HTTP_SCAN_BAD : HTTP_SCAN_MORE;
}

enum http_scan http_scanner_end(struct http_scanner *s)
{
    const struct http_response *r = &s->response;
    if (s->state == IN_BODY_EOF)
        s->state = DONE;
    if (s->state == DONE)
        return HTTP_SCAN_DONE;
    if (s->state == BAD)
        return HTTP_SCAN_BAD;
    if (s->state == IN_HEAD && r->head_bytes == 0)
        fail(s, r->informational == 0 ? "closed before a response"
                                      : "closed after a 1xx, before the final response");
    else if (s->state == IN_HEAD)
        fail(s, "closed before the end of the head");
    else if (s->state == IN_BODY_LENGTH)
        fail(s, "closed before Content-Length bytes of body (RFC 9112 8)");
    else
        fail(s, "closed before the last chunk and its trailers (RFC 9112 8)");
    return HTTP_SCAN_BAD;
}

bool http_scanner_untouched(const struct http_scanner *s)
{
    return s->response.total_bytes == 0;
}

const struct http_field *http_response_field(const struct http_response *r, const char *name,
                                             unsigned nth)
{
    for (unsigned i = 0; i < r->field_count; i++) {
        const struct http_field *f = &r->fields[i];
        if (chars_equal(r->head + f->name, f->name_bytes, name) && nth-- == 0)
            return f;
    }
    return NULL;
}
