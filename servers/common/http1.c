#include "http1.h"

#include <ctype.h>
#include <string.h>

#define STRINGIFY(x) #x
#define EXPAND(x)    STRINGIFY(x)

const char http1_version[] = "llhttp " EXPAND(LLHTTP_VERSION_MAJOR) "." EXPAND(
    LLHTTP_VERSION_MINOR) "." EXPAND(LLHTTP_VERSION_PATCH);

/* What is known of the target so far. */
enum {
    TARGET_NONE,
    TARGET_ROOT,                       /* "/" */
    TARGET_ROOT_QUERY,                 /* "/?…", and the same in absolute form */
    TARGET_OTHER,                      /* any other path */
    TARGET_STAR,                       /* "*" */
    TARGET_AUTHORITY,                  /* "http://x": its empty path stands for "/" */
    TARGET_INCOMPLETE,                 /* from here on: no target if it ends here */
    TARGET_SCHEME = TARGET_INCOMPLETE, /* "http" of the absolute form, up to the colon */
    TARGET_SLASH1,                     /* "http:" */
    TARGET_SLASH2,                     /* "http:/" */
    TARGET_AUTHORITY0,                 /* "http://" */
    TARGET_BAD
};

enum { FIELD_OTHER, FIELD_HOST, FIELD_CONNECTION, FIELD_EXPECT, FIELD_CODING };

/* What is known of a Host value: uri-host [ ":" port ] (RFC 9110, 7.2), white space around it. */
enum {
    HOST_START,
    HOST_NAME,
    HOST_LITERAL_END,
    HOST_PORT,
    HOST_END,
    HOST_INCOMPLETE,                /* from here on: no host if it ends here */
    HOST_BRACKET = HOST_INCOMPLETE, /* "[" */
    HOST_LITERAL,
    HOST_PERCENT,
    HOST_PERCENT_DIGIT,
    HOST_BAD
};

/* What is known of Transfer-Encoding. */
enum { CODINGS_NONE, CODINGS_CHUNKED, CODINGS_UNKNOWN };

static const char close_option[] = "close";
static const char chunked[] = "chunked";
static const char expectation[] = "100-continue";
static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

static struct http1 *http_of(llhttp_t *parser)
{
    return parser->data;
}

static void answer(struct http1 *http, enum reply_status status)
{
    bool seen = http->target != TARGET_NONE;
    const struct reply *reply = reply_get(status, http->connection);
    unsigned bytes = seen && http->parser.method == HTTP_HEAD ? reply->head_bytes : reply->bytes;
    memcpy(http->out, reply->text, bytes);
    http->out += bytes;
}

/* Answers an error that leaves no way to tell where the next request would start. */
static int fail(struct http1 *http, enum reply_status status)
{
    http->connection = REPLY_CLOSE;
    http->closing = http->linger = true;
    answer(http, status);
    return HPE_USER;
}

static uint8_t target_next(uint8_t state, char ch)
{
    if (ch == '#')
        return TARGET_BAD;
    switch (state) {
    case TARGET_NONE:
        return ch == '/' ? TARGET_ROOT : ch == '*' ? TARGET_STAR : TARGET_SCHEME;
    case TARGET_ROOT:
        return ch == '?' ? TARGET_ROOT_QUERY : TARGET_OTHER;
    case TARGET_SCHEME:
        return ch == ':' ? TARGET_SLASH1 : TARGET_SCHEME;
    case TARGET_SLASH1:
        return ch == '/' ? TARGET_SLASH2 : TARGET_BAD;
    case TARGET_SLASH2:
        return ch == '/' ? TARGET_AUTHORITY0 : TARGET_BAD;
    case TARGET_AUTHORITY0:
        return ch == '/' || ch == '?' ? TARGET_BAD : TARGET_AUTHORITY;
    case TARGET_AUTHORITY:
        return ch == '/' ? TARGET_ROOT : ch == '?' ? TARGET_ROOT_QUERY : TARGET_AUTHORITY;
    case TARGET_STAR:
        return TARGET_BAD;
    default: /* the rest changes nothing */
        return state;
    }
}

/* What may stand in a reg-name by itself: unreserved and sub-delims (RFC 3986). */
static const bool host_chars[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['-'] = true, ['.'] = true,
    ['_'] = true,         ['~'] = true,         ['!'] = true,         ['$'] = true, ['&'] = true,
    ['\''] = true,        ['('] = true,         [')'] = true,         ['*'] = true, ['+'] = true,
    [','] = true,         [';'] = true,         ['='] = true,
};

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

/* For what is not part of a run. */
static uint8_t host_next(uint8_t state, char ch)
{
    bool space = ch == ' ' || ch == '\t';
    switch (state) {
    case HOST_START:
        if (ch == '[')
            return HOST_BRACKET;
        __attribute__((fallthrough));
    case HOST_NAME:
        if (ch == '%')
            return HOST_PERCENT;
        __attribute__((fallthrough));
    case HOST_LITERAL_END:
        return ch == ':' ? HOST_PORT : space ? HOST_END : HOST_BAD;
    case HOST_PERCENT:
        return isxdigit((unsigned char)ch) ? HOST_PERCENT_DIGIT : HOST_BAD;
    case HOST_PERCENT_DIGIT:
        return isxdigit((unsigned char)ch) ? HOST_NAME : HOST_BAD;
    case HOST_BRACKET:
    case HOST_LITERAL:
        if (ch == ']' && state == HOST_LITERAL)
            return HOST_LITERAL_END;
        return isxdigit((unsigned char)ch) || ch == ':' || ch == '.' ? HOST_LITERAL : HOST_BAD;
    case HOST_PORT:
    case HOST_END:
        return space ? HOST_END : HOST_BAD;
    default:
        return HOST_BAD;
    }
}

static const char *skip_host_chars(const char *at, const char *end)
{
    while (at < end && host_chars[(uint8_t)*at])
        at++;
    return at;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at))
        at++;
    return at;
}

/* Nearly all of a Host is a run of name characters and one of digits. */
static uint8_t host_scan(uint8_t state, const char *at, size_t bytes)
{
    const char *end = at + bytes;
    if (at < end && state == HOST_START && host_chars[(uint8_t)*at])
        state = HOST_NAME;
    for (;;) {
        if (state == HOST_NAME)
            at = skip_host_chars(at, end);
        else if (state == HOST_PORT)
            at = skip_digits(at, end);
        if (at == end)
            return state;
        state = host_next(state, *at++);
    }
}

/* Compares a value that comes in pieces with a word, case aside. `matched` is the bytes that agree
 * so far, or more than the word has once they do not. */
static uint8_t word_match(uint8_t matched, const char *word, size_t word_bytes, const char *at,
                          size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (matched < word_bytes && tolower((unsigned char)at[i]) == word[matched])
            matched++;
        else if (matched != word_bytes || (at[i] != ' ' && at[i] != '\t'))
            return (uint8_t)(word_bytes + 1);
    }
    return matched;
}

/* The same for a comma-separated list. llhttp looks for Connection options itself, but 8.1.0 misses
 * one with a tab beside it. */
static uint8_t list_match(uint8_t matched, const char *word, size_t word_bytes, const char *at,
                          size_t bytes, bool *found)
{
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] == ',') {
            *found |= matched == word_bytes;
            matched = 0;
        } else if (matched != 0 || (at[i] != ' ' && at[i] != '\t')) {
            matched = word_match(matched, word, word_bytes, at + i, 1);
        }
    }
    return matched;
}

static int head_grows(struct http1 *http, size_t bytes)
{
    http->head_bytes += (uint32_t)bytes;
    return http->head_bytes > HTTP1_MAX_HEAD_BYTES ? fail(http, REPLY_FIELDS_TOO_LARGE) : 0;
}

static int on_message_begin(llhttp_t *parser)
{
    struct http1 *http = http_of(parser);
    http->progress = true;
    http->target = TARGET_NONE;
    http->hosts = 0;
    http->codings = CODINGS_NONE;
    http->expect = false;
    http->close = false;
    http->connection = REPLY_IMPLIED;
    http->head_done = false;
    http->name_bytes = 0;
    http->head_bytes = 0;
    return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t bytes)
{
    struct http1 *http = http_of(parser);
    http->head_bytes += (uint32_t)bytes;
    if (http->head_bytes > HTTP1_MAX_TARGET_BYTES)
        return fail(http, REPLY_URI_TOO_LONG);
    for (size_t i = 0; i < bytes; i++)
        http->target = target_next(http->target, at[i]);
    return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t bytes)
{
    struct http1 *http = http_of(parser);
    size_t room = sizeof http->name - http->name_bytes;
    size_t kept = bytes < room ? bytes : room;
    /* In lower case, as far as the names looked for go: letters and hyphens. Of what else may stand
     * in a name, the bit turns nothing into one of these. */
    for (size_t i = 0; i < kept; i++)
        http->name[http->name_bytes + i] = (char)(at[i] | 0x20);
    http->name_bytes = (uint8_t)(http->name_bytes + kept);
    return head_grows(http, bytes);
}

static bool name_is(const struct http1 *http, const char *name, size_t bytes)
{
    return http->name_bytes == bytes && memcmp(http->name, name, bytes) == 0;
}

static int on_header_field_complete(llhttp_t *parser)
{
    struct http1 *http = http_of(parser);
    http->field = FIELD_OTHER;
    if (http->name_bytes == 0) /* llhttp 8.1.0 lets a line begin with its colon */
        return fail(http, REPLY_BAD_REQUEST);
    if (http->head_done) /* a trailer says nothing about framing or routing (RFC 9110, 6.5.1) */
        ;
    else if (name_is(http, "host", 4)) {
        http->field = FIELD_HOST;
        http->host = HOST_START;
        http->hosts = (uint8_t)(http->hosts < 2 ? http->hosts + 1 : 2);
    } else if (name_is(http, "connection", 10)) {
        http->field = FIELD_CONNECTION;
    } else if (name_is(http, "expect", 6)) {
        http->field = FIELD_EXPECT;
    } else if (name_is(http, "transfer-encoding", 17)) {
        http->field = FIELD_CODING;
    }
    http->matched = 0;
    http->name_bytes = 0;
    return head_grows(http, sizeof ": \r\n" - 1);
}

static int on_header_value(llhttp_t *parser, const char *at, size_t bytes)
{
    struct http1 *http = http_of(parser);
    if (http->field == FIELD_HOST) {
        http->host = host_scan(http->host, at, bytes);
    } else if (http->field == FIELD_CONNECTION) {
        http->matched = list_match(http->matched, close_option, sizeof close_option - 1, at, bytes,
                                   &http->close);
    } else if (http->field == FIELD_EXPECT) {
        http->matched = word_match(http->matched, expectation, sizeof expectation - 1, at, bytes);
    } else if (http->field == FIELD_CODING) {
        http->matched = word_match(http->matched, chunked, sizeof chunked - 1, at, bytes);
    }
    return head_grows(http, bytes);
}

static int on_header_value_complete(llhttp_t *parser)
{
    struct http1 *http = http_of(parser);
    if (http->field == FIELD_HOST) {
        if (http->host >= HOST_INCOMPLETE || http->hosts > 1)
            return fail(http, REPLY_BAD_REQUEST);
    } else if (http->field == FIELD_CONNECTION) {
        http->close |= http->matched == sizeof close_option - 1;
    } else if (http->field == FIELD_EXPECT) {
        http->expect = http->matched == sizeof expectation - 1;
    } else if (http->field == FIELD_CODING) {
        bool known = http->matched == sizeof chunked - 1 && http->codings == CODINGS_NONE;
        http->codings = known ? CODINGS_CHUNKED : CODINGS_UNKNOWN;
    }
    return 0;
}

/* llhttp takes no further message after one that it says ends the connection, be it by a trailer.
 */
static enum reply_connection connection_of(const struct http1 *http)
{
    if (http->close || (http->parser.flags & F_CONNECTION_CLOSE) ||
        !llhttp_should_keep_alive(&http->parser))
        return REPLY_CLOSE;
    return http->parser.http_minor == 0 ? REPLY_KEEP_ALIVE : REPLY_IMPLIED;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct http1 *http = http_of(parser);
    bool is_1_0 = parser->http_minor == 0;
    http->head_done = true;
    if (parser->http_major == 0)
        return fail(http, REPLY_BAD_REQUEST);
    if (parser->http_major != 1)
        return fail(http, REPLY_VERSION_NOT_SUPPORTED);
    if (parser->method == HTTP_CONNECT)
        return fail(http, REPLY_METHOD_NOT_ALLOWED);
    if ((http->hosts == 0 && !is_1_0) || http->target >= TARGET_INCOMPLETE ||
        (http->codings != CODINGS_NONE && is_1_0))
        return fail(http, REPLY_BAD_REQUEST);
    if (http->codings == CODINGS_UNKNOWN)
        return fail(http, REPLY_NOT_IMPLEMENTED);

    /* An upgrade may be ignored (RFC 9110, 7.8), and llhttp would stop at one. */
    parser->upgrade = 0;
    bool has_body = (parser->flags & F_CHUNKED) || parser->content_length > 0;
    if (http->expect && has_body && !is_1_0) {
        memcpy(http->out, go_on, sizeof go_on - 1);
        http->out += sizeof go_on - 1;
    }
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t bytes)
{
    (void)at;
    (void)bytes;
    http_of(parser)->progress = true;
    return 0;
}

static enum reply_status status_of(const struct http1 *http)
{
    bool asterisk = http->target == TARGET_STAR;
    if (asterisk && http->parser.method != HTTP_OPTIONS)
        return REPLY_BAD_REQUEST;
    if (http->target == TARGET_OTHER)
        return REPLY_NOT_FOUND;
    switch (http->parser.method) {
    case HTTP_GET:
    case HTTP_HEAD:
    case HTTP_POST:
        return REPLY_OK;
    default:
        return REPLY_METHOD_NOT_ALLOWED;
    }
}

static int on_message_complete(llhttp_t *parser)
{
    struct http1 *http = http_of(parser);
    http->progress = true;
    http->connection = connection_of(http);
    answer(http, status_of(http));
    http->target = TARGET_NONE;
    if (http->connection != REPLY_CLOSE)
        return 0;
    http->closing = true;
    return HPE_PAUSED;
}

static bool is_token_char(char ch)
{
    return isalnum((unsigned char)ch) || (ch != '\0' && strchr("!#$%&'*+-.^_`|~", ch));
}

static enum reply_status status_of_error(const llhttp_t *parser, enum llhttp_errno error)
{
    switch (error) {
    case HPE_INVALID_METHOD:
        return is_token_char(*parser->error_pos) ? REPLY_NOT_IMPLEMENTED : REPLY_BAD_REQUEST;
    case HPE_INVALID_VERSION: /* also said of garbage after a good version */
        return parser->http_major == 1 && parser->http_minor <= 1 ? REPLY_BAD_REQUEST
                                                                  : REPLY_VERSION_NOT_SUPPORTED;
    case HPE_PAUSED_H2_UPGRADE:
        return REPLY_VERSION_NOT_SUPPORTED;
    default:
        return REPLY_BAD_REQUEST;
    }
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_message_begin,
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_field_complete = on_header_field_complete,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

void http1_init(struct http1 *http)
{
    memset(http, 0, sizeof *http);
    llhttp_init(&http->parser, HTTP_REQUEST, &settings);
    http->parser.data = http;
}

size_t http1_feed(struct http1 *http, const char *in, size_t bytes, char *out)
{
    http->out = out;
    http->progress = false;
    enum llhttp_errno error = llhttp_execute(&http->parser, in, bytes);
    if (error == HPE_OK)
        return (size_t)(http->out - out);
    if (!http->closing)
        fail(http, status_of_error(&http->parser, error));
    else if (error == HPE_PAUSED)
        http->linger = http->parser.error_pos != in + bytes;
    return (size_t)(http->out - out);
}
