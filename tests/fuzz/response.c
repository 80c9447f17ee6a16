/* Fuzz target of the response scanner, for libFuzzer. The first byte of an input says how to read
 * it (bit 0: as answers to HEAD; the rest seeds the splits), the others are what a server sent. A
 * stream of responses must come to the same verdicts whole, byte by byte and in parts of any size,
 * and what the scanner says must agree with itself, with the check and with the pattern. abort(3)
 * tells the fuzzer. tests/unit/http/fuzz_replay.c runs the inputs kept in tests/fuzz/response/.
 */
#include "http/answer.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

struct stream {
    const char *bytes;
    size_t size;
    bool head_request;
    uint32_t seed; /* 0: one part; 1: single bytes; else of the sizes it draws */
};

static size_t part_bytes(struct stream *stream)
{
    if (stream->seed < 2)
        return stream->seed == 0 ? SIZE_MAX : 1;
    stream->seed = stream->seed * 1664525 + 1013904223; /* Numerical Recipes, 7.1 */
    if (stream->seed < 2)
        stream->seed = 2;
    return 1 + (stream->seed >> 24) % 40;
}

/* Reads one response from `at` on, in parts that are heap blocks of their exact size. */
static enum http_scan scan_next(struct http_scanner *s, struct stream *stream, size_t *at)
{
    enum http_scan result = HTTP_SCAN_MORE;
    size_t start = *at;
    http_scanner_start(s, stream->head_request);
    while (result == HTTP_SCAN_MORE && *at < stream->size) {
        size_t part = part_bytes(stream), left = stream->size - *at, used = 0;
        size_t given = part < left ? part : left;
        char *copy = malloc(given);
        require(copy != NULL, "malloc");
        memcpy(copy, stream->bytes + *at, given);
        result = http_scanner_feed(s, copy, given, &used);
        free(copy);
        require(used <= given, "more used than given");
        require(result != HTTP_SCAN_MORE || used == given, "bytes left over though more are due");
        *at += used;
    }
    require(s->response.total_bytes == *at - start, "total_bytes is what was used");
    require(http_scanner_untouched(s) == (*at == start), "untouched means no byte");
    if (result == HTTP_SCAN_MORE)
        result = http_scanner_end(s);
    require((result == HTTP_SCAN_BAD) == (s->problem != NULL), "a problem if and only if bad");
    require(result != HTTP_SCAN_MORE, "the end decides");
    return result;
}

static void require_same(const struct http_scanner *a, const struct http_scanner *b)
{
    const struct http_response *x = &a->response, *y = &b->response;
    require(a->problem == b->problem, "same problem");
    if (a->problem != NULL)
        return;
    require(x->status == y->status && x->minor == y->minor && x->framing == y->framing &&
                x->keep_alive == y->keep_alive && x->close == y->close &&
                x->informational == y->informational && x->total_bytes == y->total_bytes,
            "same status line and framing");
    require(x->has_content_length == y->has_content_length &&
                x->content_length == y->content_length && x->body_bytes == y->body_bytes,
            "same lengths");
    require(x->field_count == y->field_count && x->head_bytes == y->head_bytes &&
                memcmp(x->fields, y->fields, x->field_count * sizeof *x->fields) == 0 &&
                memcmp(x->head, y->head, x->head_bytes) == 0,
            "same head");
    size_t kept = x->body_bytes < HTTP_BODY_KEEP ? (size_t)x->body_bytes : HTTP_BODY_KEEP;
    require(memcmp(x->body, y->body, kept) == 0, "same body");
}

static void require_sound(const struct http_response *r)
{
    require(r->status >= 200 && r->status <= 599 && r->minor <= 1, "status and version");
    require(r->head_bytes >= 17 && memcmp(r->head + r->head_bytes - 4, "\r\n\r\n", 4) == 0,
            "the head ends in an empty line");
    for (unsigned i = 0; i < r->field_count; i++) {
        const struct http_field *f = &r->fields[i];
        require(f->name_bytes > 0 && r->head[f->name + f->name_bytes] == ':', "name before colon");
        require(f->name + f->name_bytes < f->value &&
                    f->value + f->value_bytes + 2u <= r->head_bytes,
                "the value after it");
        require(memchr(r->head + f->name, '\r', f->name_bytes) == NULL &&
                    memchr(r->head + f->value, '\r', f->value_bytes) == NULL &&
                    memchr(r->head + f->value, '\0', f->value_bytes) == NULL,
                "no line end or NUL within a field");
    }
    if (r->framing == HTTP_FRAMING_LENGTH)
        require(r->body_bytes == r->content_length, "Content-Length bytes of body");
    if (r->framing == HTTP_FRAMING_NONE)
        require(r->body_bytes == 0, "no body");
    if (r->framing == HTTP_FRAMING_EOF)
        require(!r->keep_alive, "closed means not kept");
    if (r->framing != HTTP_FRAMING_CHUNKED && r->informational == 0)
        require(r->total_bytes == r->head_bytes + r->body_bytes, "head and body are all");
}

static void require_line(const char *why, size_t size)
{
    size_t length = strnlen(why, size);
    require(length > 0 && length < size, "the reason is a string");
    for (size_t i = 0; i < length; i++)
        require(why[i] >= ' ' && why[i] <= '~', "the reason is one printable line");
}

static void check_answer(const struct http_response *r, const char *wire, bool head_request)
{
    static struct http_pattern pattern;
    const time_t now = 784111777;
    char why[160];
    struct http_expect expect = {.status = r->status, .head = head_request};
    require(http_answer_check(&expect, r, now, why, sizeof why), "it has its own status");
    expect = (struct http_expect){.content_type = "text/plain",
                                  .body = "Hello World\n",
                                  .body_bytes = 12,
                                  .date = true,
                                  .head = head_request,
                                  .close = true};
    if (!http_answer_check(&expect, r, now, why, sizeof why))
        require_line(why, sizeof why);
    if (!http_pattern_learn(&pattern, r, wire, (size_t)r->total_bytes))
        return;
    time_t held = pattern.date_s;
    require(http_pattern_match(&pattern, wire, held), "a pattern matches what it was learnt from");
    require(pattern.date == 0 || !http_pattern_match(&pattern, wire, held + 3), "or is too old");
}

static void read_stream(struct stream whole, struct stream parts)
{
    static struct http_scanner a, b;
    enum http_scan result = HTTP_SCAN_DONE;
    memset(&a, 0x5a, sizeof a); /* what a start leaves unset would tell them apart */
    memset(&b, 0xa5, sizeof b);
    for (size_t at = 0, other = 0; at < whole.size && result == HTTP_SCAN_DONE;) {
        size_t start = at;
        result = scan_next(&a, &whole, &at);
        require(scan_next(&b, &parts, &other) == result, "same verdict");
        require_same(&a, &b);
        require(result != HTTP_SCAN_DONE || at == other, "same end");
        if (result != HTTP_SCAN_DONE)
            return;
        require_sound(&a.response);
        check_answer(&a.response, whole.bytes + start, whole.head_request);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct stream stream = {.bytes = (const char *)data + 1,
                            .size = size - 1,
                            .head_request = (data[0] & 1) != 0,
                            .seed = 0};
    struct stream bytes = stream, parts = stream;
    bytes.seed = 1;
    parts.seed = 2 + (uint32_t)(data[0] >> 1);
    read_stream(stream, bytes);
    read_stream(stream, parts);
    return 0;
}
