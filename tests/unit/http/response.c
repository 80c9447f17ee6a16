/* The scanner, by hand-worked responses. Each is fed whole, in two parts at every byte, and byte by
 * byte; each way must come to the same verdict, and a whole response must end where it ends though
 * the next one follows.
 */
#include "http/response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct http_scanner scanner;
static const struct http_response *const response = &scanner.response;

/* Feeds `size` bytes in parts: the first of `first` bytes, each later one of `step`. Each part is a
 * heap block of its exact size, so that a sanitizer sees a read beyond it. */
static enum http_scan feed(const char *bytes, size_t size, size_t first, size_t step, size_t *total)
{
    enum http_scan result = HTTP_SCAN_MORE;
    *total = 0;
    for (size_t at = 0, part = first; at < size && result == HTTP_SCAN_MORE; part = step) {
        size_t given = part < size - at ? part : size - at;
        size_t used = 0;
        char *copy = malloc(given + (given == 0));
        memcpy(copy, bytes + at, given);
        result = http_scanner_feed(&scanner, copy, given, &used);
        free(copy);
        assert_true(used <= given);
        if (result == HTTP_SCAN_MORE)
            assert_int_equal(used, given);
        at += given;
        *total += used;
    }
    return result;
}

static void expect_once(const char *bytes, size_t size, size_t behind, size_t first, size_t step,
                        bool head, enum http_scan expected)
{
    size_t total;
    memset(&scanner, 0xa5, sizeof scanner); /* the start must set all that counts */
    http_scanner_start(&scanner, head);
    assert_true(http_scanner_untouched(&scanner));
    enum http_scan result = feed(bytes, size + behind, first, step, &total);
    if (result != expected)
        fail_msg("parts of %zu, then %zu: verdict %d (%s), expected %d", first, step, (int)result,
                 scanner.problem != NULL ? scanner.problem : "no problem", (int)expected);
    assert_false(http_scanner_untouched(&scanner));
    assert_int_equal(response->total_bytes, total);
    if (result == HTTP_SCAN_BAD) {
        assert_non_null(scanner.problem);
    } else {
        assert_null(scanner.problem);
        assert_int_equal(total, size);
    }
}

static const char next[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

static void expect_scan_bytes(const char *bytes, size_t size, bool head, enum http_scan expected)
{
    size_t behind = expected == HTTP_SCAN_DONE ? sizeof next - 1 : 0;
    char *all = malloc(size + behind + 1);
    memcpy(all, bytes, size);
    memcpy(all + size, next, behind);
    for (size_t first = 1; first < size; first++)
        expect_once(all, size, behind, first, size + behind, head, expected);
    expect_once(all, size, behind, 1, 1, head, expected);
    expect_once(all, size, 0, size, 1, head, expected);
    expect_once(all, size, behind, size + behind, 1, head, expected);
    free(all);
}

static void expect_done(const char *bytes)
{
    expect_scan_bytes(bytes, strlen(bytes), false, HTTP_SCAN_DONE);
}

static void expect_done_head(const char *bytes)
{
    expect_scan_bytes(bytes, strlen(bytes), true, HTTP_SCAN_DONE);
}

static void expect_more(const char *bytes)
{
    expect_scan_bytes(bytes, strlen(bytes), false, HTTP_SCAN_MORE);
}

static void expect_bad_bytes(const char *bytes, size_t size, const char *problem)
{
    expect_scan_bytes(bytes, size, false, HTTP_SCAN_BAD);
    if (strstr(scanner.problem, problem) == NULL)
        fail_msg("problem '%s' does not name '%s'", scanner.problem, problem);
}

static void expect_bad(const char *bytes, const char *problem)
{
    expect_bad_bytes(bytes, strlen(bytes), problem);
}

static void expect_end(enum http_scan expected, const char *problem)
{
    assert_int_equal(http_scanner_end(&scanner), expected);
    if (expected == HTTP_SCAN_BAD)
        assert_non_null(strstr(scanner.problem, problem));
}

static void expect_body(const char *body)
{
    assert_int_equal(response->body_bytes, strlen(body));
    assert_memory_equal(response->body, body, strlen(body));
}

static void expect_field(const char *name, unsigned nth, const char *value)
{
    const struct http_field *f = http_response_field(response, name, nth);
    assert_non_null(f);
    assert_int_equal(f->value_bytes, strlen(value));
    assert_memory_equal(response->head + f->value, value, strlen(value));
}

#define CL0 "Content-Length: 0\r\n"

/* ---- status line */

static void hello_is_framed(void **state)
{
    (void)state;
    expect_done("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\n"
                "Hello World\n");
    assert_int_equal(response->status, 200);
    assert_int_equal(response->minor, 1);
    assert_int_equal(response->framing, HTTP_FRAMING_LENGTH);
    assert_true(response->keep_alive);
    assert_false(response->close);
    assert_int_equal(response->informational, 0);
    assert_true(response->has_content_length);
    assert_int_equal(response->content_length, 12);
    assert_int_equal(response->field_count, 2);
    assert_int_equal(response->head_bytes, 65);
    assert_int_equal(response->total_bytes, 77);
    expect_body("Hello World\n");
}

static void status_line_forms(void **state)
{
    (void)state;
    expect_done("HTTP/1.1 200 \r\n" CL0 "\r\n");
    expect_done("HTTP/1.0 404 Not\tFound \xe9 here\r\n" CL0 "\r\n");
    assert_int_equal(response->status, 404);
    assert_int_equal(response->minor, 0);
    expect_done("HTTP/1.1 200  two spaces are a reason\r\n" CL0 "\r\n");
    expect_done("HTTP/1.1 599 x\r\n" CL0 "\r\n");
    assert_int_equal(response->status, 599);
}

static void version_must_be_1_0_or_1_1(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "HTTP/1.2 200 OK\r\n",
        "HTTP/2.0 200 OK\r\n",
        "HTTP/0.9 200 OK\r\n",
        "HTTP/2 200\r\n",
        "http/1.1 200 OK\r\n",
        "HTTP/1.11 200 OK\r\n",
        "HTTP/1 200 OK\r\n",
        "HTTP 200 OK\r\n",
        " HTTP/1.1 200 OK\r\n",
        "\r\n",
        "ICY 200 OK\r\n",
        "SSH-2.0-OpenSSH\r\n",
        "<html>",
        "HTTP/1.\r\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        expect_bad(lines[i], "RFC 9112 4");
}

static void other_protocol_shows_in_the_first_byte(void **state)
{
    (void)state;
    expect_bad("S", "status line");
    expect_bad("HTTP/2", "status line");
    expect_more("HTTP/1.");
}

static void status_must_be_three_digits_between_spaces(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "HTTP/1.1 200\r\n",    "HTTP/1.1\r\n",          "HTTP/1.1 \r\n",
        "HTTP/1.1 20 OK\r\n",  "HTTP/1.1 2000 OK\r\n",  "HTTP/1.1  200 OK\r\n",
        "HTTP/1.1 2x0 OK\r\n", "HTTP/1.1\t200 OK\r\n",  "HTTP/1.1 200\tOK\r\n",
        "HTTP/1.1 -20 OK\r\n", "HTTP/1.1 +20 OK\r\n",   "HTTP/1.1 200OK\r\n",
        "HTTP/1.1200 OK\r\n",  "HTTP/1.1 0x2 OKOK\r\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        expect_bad(lines[i], "RFC 9112 4");
    expect_bad("HTTP/1.1 099 x\r\n", "100 to 599");
    expect_bad("HTTP/1.1 000 x\r\n", "100 to 599");
    expect_bad("HTTP/1.1 600 x\r\n", "100 to 599");
    expect_bad("HTTP/1.1 999 x\r\n", "100 to 599");
}

static void reason_must_hold_no_controls(void **state)
{
    (void)state;
    expect_bad("HTTP/1.1 200 O\rK\r\n", "reason");
    expect_bad("HTTP/1.1 200 \x01K\r\n", "reason");
    expect_bad("HTTP/1.1 200 O\x7fK\r\n", "reason");
    expect_bad("HTTP/1.1 200 O\x01K\r\n", "reason");
    expect_bad_bytes("HTTP/1.1 200 O\0K\r\n", 18, "reason");
}

/* ---- lines and fields */

static void bare_lf_is_an_error(void **state)
{
    (void)state;
    expect_bad("HTTP/1.1 200 OK\n", "LF without CR");
    expect_bad("HTTP/1.1 200 OK\r\nA: b\n", "LF without CR");
    expect_bad("HTTP/1.1 200 OK\r\n" CL0 "\n", "LF without CR");
    expect_bad("HTTP/1.1 200 OK\r\nA: b\rc: d\r\n", "control");
    expect_bad("HTTP/1.1 200 OK\r\nA: b\r\r\n", "control");
}

static void fields_are_kept_and_trimmed(void **state)
{
    (void)state;
    expect_done("HTTP/1.1 200 OK\r\nEmpty:\r\nBlank: \t \r\nA:b\r\na: \t c d\t \r\n" CL0
                "O!#$%&'*+-.^_`|~9: \xff\x80\r\n\r\n");
    assert_int_equal(response->field_count, 6);
    expect_field("empty", 0, "");
    expect_field("BLANK", 0, "");
    expect_field("a", 0, "b");
    expect_field("A", 1, "c d");
    expect_field("o!#$%&'*+-.^_`|~9", 0, "\xff\x80");
    assert_null(http_response_field(response, "a", 2));
    assert_null(http_response_field(response, "ab", 0));
    assert_null(http_response_field(response, "xmpty", 0));
    assert_null(http_response_field(response, "", 0));
}

static void field_names_are_tokens(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "A : b\r\n",   "A\t: b\r\n",  ": b\r\n",     "A b: c\r\n", "X[]: b\r\n",   "no colon\r\n",
        "nocolon\r\n", "\xe9: b\r\n", "A\"b: c\r\n", "A/b: c\r\n", "A\x01: b\r\n", "\r: b\r\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[128] = "HTTP/1.1 200 OK\r\n";
        expect_bad(strcat(text, lines[i]), "field name");
    }
    expect_bad_bytes("HTTP/1.1 200 OK\r\nA\0b: c\r\n", 25, "field name");
}

static void obs_fold_is_an_error(void **state)
{
    (void)state;
    expect_bad("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n", "white space");
    expect_bad("HTTP/1.1 200 OK\r\nA: b\r\n\tc: d\r\n", "white space");
    expect_bad("HTTP/1.1 200 OK\r\n A: b\r\n", "white space");
    expect_bad("HTTP/1.1 200 OK\r\nA: b\r\n \r\n", "white space");
}

static void controls_in_a_value_are_errors(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: b?d\r\n\r\n";
        *strchr(text, '?') = (char)c;
        bool bad = (c < ' ' && c != '\t') || c == 0x7f;
        if (c == '\n')
            expect_bad_bytes(text, sizeof text - 1, "LF without CR");
        else if (bad)
            expect_bad_bytes(text, sizeof text - 1, "control");
        else
            expect_scan_bytes(text, sizeof text - 1, false, HTTP_SCAN_DONE);
    }
}

/* A head of exactly `head_bytes`, padded in one field. */
static char *padded_head(size_t head_bytes)
{
    static const char start[] = "HTTP/1.1 200 OK\r\n" CL0 "Pad: ";
    char *text = malloc(head_bytes + 1);
    memset(text, 'x', head_bytes);
    memcpy(text, start, sizeof start - 1);
    memcpy(text + head_bytes - 4, "\r\n\r\n", 5);
    return text;
}

static enum http_scan scan_padded(size_t head_bytes, size_t step)
{
    char *text = padded_head(head_bytes);
    size_t total;
    http_scanner_start(&scanner, false);
    enum http_scan result = feed(text, head_bytes, step, step, &total);
    free(text);
    return result;
}

static void head_is_bounded(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 7, 4096, 100000};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(scan_padded(HTTP_HEAD_MAX, steps[i]), HTTP_SCAN_DONE);
        assert_int_equal(response->head_bytes, HTTP_HEAD_MAX);
        assert_int_equal(scan_padded(HTTP_HEAD_MAX + 1, steps[i]), HTTP_SCAN_BAD);
        assert_non_null(strstr(scanner.problem, "16384"));
        assert_int_equal(scan_padded(100000, steps[i]), HTTP_SCAN_BAD);
        assert_non_null(strstr(scanner.problem, "16384"));
    }
}

static void fields_are_bounded(void **state)
{
    (void)state;
    char text[2048] = "HTTP/1.1 200 OK\r\n" CL0;
    for (int i = 1; i < HTTP_FIELDS_MAX; i++)
        strcat(text, "A: b\r\n");
    size_t full = strlen(text);
    strcat(text, "\r\n");
    expect_done(text);
    assert_int_equal(response->field_count, HTTP_FIELDS_MAX);
    strcpy(text + full, "A: b\r\n\r\n");
    expect_bad(text, "64 field lines");
}

/* ---- Content-Length */

static void content_length_is_a_number(void **state)
{
    (void)state;
    static const char *const values[] = {"",
                                         "x",
                                         "-1",
                                         "+1",
                                         "1x",
                                         "0x1",
                                         "1 2",
                                         "1.0",
                                         "1;2",
                                         "\"1\"",
                                         "18446744073709551616",
                                         "99999999999999999999",
                                         "184467440737095516150",
                                         ",",
                                         "5,",
                                         ",5",
                                         "5,,5",
                                         "5 5"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[128] = "HTTP/1.1 200 OK\r\nContent-Length: ";
        expect_bad(strcat(strcat(text, values[i]), "\r\n\r\n"), "RFC 9110 8.6");
    }
}

static void content_length_up_to_64_bits(void **state)
{
    (void)state;
    expect_more("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n");
    assert_true(response->content_length == UINT64_MAX);
    expect_done(
        "HTTP/1.1 200 OK\r\ncONTENT-lENGTH:\t00000000000000000000000000000005 \r\n\r\nhello");
    assert_int_equal(response->content_length, 5);
    expect_body("hello");
}

static void equal_content_lengths_count_as_one(void **state)
{
    (void)state;
    expect_done("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello");
    expect_done("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\nContent-Length: 05\r\n\r\nhello");
    assert_int_equal(response->content_length, 5);
}

static void differing_content_lengths_are_an_error(void **state)
{
    (void)state;
    expect_bad("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", "differ");
    expect_bad("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "differ");
    expect_bad("HTTP/1.1 200 OK\r\n" CL0 "Content-Length: 6\r\n\r\n", "differ");
}

static void short_body_is_no_response(void **state)
{
    (void)state;
    expect_more("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell");
    expect_end(HTTP_SCAN_BAD, "closed before Content-Length");
}

/* ---- Transfer-Encoding */

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void chunks_are_joined(void **state)
{
    (void)state;
    expect_done(CHUNKED "5\r\nhello\r\n1\r\n \r\n0006\r\nworld\n\r\n0\r\n\r\n");
    assert_int_equal(response->framing, HTTP_FRAMING_CHUNKED);
    assert_false(response->has_content_length);
    assert_true(response->keep_alive);
    expect_body("hello world\n");
    expect_done(CHUNKED "0\r\n\r\n");
    expect_body("");
    expect_done(CHUNKED "a\r\n0123456789\r\nA\r\n0123456789\r\n00\r\n\r\n");
    expect_body("01234567890123456789");
    expect_done("HTTP/1.1 200 OK\r\nTransfer-Encoding:\tCHUNKED \r\n\r\n0\r\n\r\n");
    expect_done(CHUNKED "2\r\n\r\n\r\n0\r\n\r\n");
    expect_body("\r\n");
}

static void other_codings_are_errors(void **state)
{
    (void)state;
    static const char *const values[] = {
        "gzip",     "gzip, chunked",    "chunked, gzip", "identity",
        "",         "chunked, chunked", "chunked;q=1",   "xchunked",
        "chunked,", "\"chunked\"",      "chunked\x0b",   "chunke",
        "chunkedd"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[128] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: ";
        strcat(strcat(text, values[i]), "\r\n\r\n");
        expect_bad(text, strchr(values[i], 0x0b) != NULL ? "control" : "Transfer-Encoding");
    }
    expect_bad(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "Transfer-Encoding");
    expect_bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
               "Transfer-Encoding");
}

static void transfer_encoding_excludes_content_length_and_http_1_0(void **state)
{
    (void)state;
    expect_bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" CL0 "\r\n", "beside");
    expect_bad("HTTP/1.1 200 OK\r\n" CL0 "Transfer-Encoding: chunked\r\n\r\n", "beside");
    expect_bad("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0");
}

static void chunk_size_is_hexadecimal(void **state)
{
    (void)state;
    static const char *const lines[] = {"Z\r\n",  "0x5\r\n", "-1\r\n", "+5\r\n",
                                        "_5\r\n", "\r\n",    " 5\r\n", ";a\r\n",
                                        "5g\r\n", "\t5\r\n", "5.\r\n", "5\"\r\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[128] = CHUNKED;
        expect_bad(strcat(text, lines[i]), "chunk size");
    }
    expect_bad(CHUNKED "5 \r\n", "extension");
    expect_bad(CHUNKED "5\n", "chunk size");
    expect_bad(CHUNKED "5\rx", "CR without LF");
}

static void chunk_size_fits_64_bits(void **state)
{
    (void)state;
    expect_more(CHUNKED "FFFFFFFFFFFFFFFF\r\nabc");
    expect_more(CHUNKED "00000000ffffffffFFFFFFFF\r\nabc");
    expect_bad(CHUNKED "10000000000000000\r\n", "2^64");
    expect_bad(CHUNKED "FFFFFFFFFFFFFFFF0\r\n", "2^64");
    expect_bad(CHUNKED "123456789abcdef01\r\n", "2^64");
}

static void chunk_extensions_are_parsed(void **state)
{
    (void)state;
    static const char *const lines[] = {
        ";a",       ";a=b",      ";a=b;c=d;e",   ";a=\"b c\"",   ";a=\"x\\\"y\\\\\"",
        " ;a",      " ; a",      ";a =b",        ";a= b",        "\t;\ta\t=\t\"\"",
        ";a ;b",    ";a=\"\";b", ";a=b ;c",      ";a=\"b\" ; c", ";a=\"\xff\\\xff\"",
        ";a=\";\"", ";a=\"\t\"", ";!#$=%&'*+-.", ";a=\"0\\0\"",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[192] = CHUNKED "5";
        strcat(text, lines[i]);
        strcat(text, "\r\nhello\r\n0");
        strcat(text, lines[i]);
        expect_done(strcat(text, "\r\n\r\n"));
        expect_body("hello");
    }
}

static void malformed_chunk_extensions_are_errors(void **state)
{
    (void)state;
    static const char *const lines[] = {
        ";\r\n",       ";;a\r\n",       ";=b\r\n",    ";a=\r\n",    ";a=;b\r\n",
        ";a=b=c\r\n",  ";a b\r\n",      ";a=b c\r\n", ";a=\"b\r\n", ";a=\"b\"c\r\n",
        ";a=\"\x7f\"", ";a=\"\\\r\n",   ";a \r\n",    ";a=b \r\n",  ";a=\"b\" \r\n",
        " a\r\n",      ";a=\"\\\x01\"", ";a/b\r\n",   ";a=b/c\r\n", ";a\n",
        ";a=b\n",      ";a=\"b\n",      ";a=\"b\"\n", "; \r\n",     ";a= \r\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[192] = CHUNKED "5";
        expect_bad(strcat(text, lines[i]), "extension");
    }
}

static void chunk_data_ends_in_crlf(void **state)
{
    (void)state;
    expect_bad(CHUNKED "5\r\nhelloX", "after the data");
    expect_bad(CHUNKED "5\r\nhello\n", "after the data");
    expect_bad(CHUNKED "5\r\nhello\rX", "after the data");
    expect_bad(CHUNKED "5\r\nhello!\r\n0\r\n\r\n", "after the data");
    expect_bad(CHUNKED "5\r\nhell\r\n0\r\n\r\n", "after the data");
    expect_bad(CHUNKED "5\r\nhello0\r\n\r\n", "after the data");
}

static void trailers_are_checked(void **state)
{
    (void)state;
    expect_done(CHUNKED "0\r\nA: b\r\nC:\r\nD: \xff\t \r\n\r\n");
    assert_int_equal(response->field_count, 1);
    assert_null(http_response_field(response, "A", 0));
    expect_bad(CHUNKED "0\r\nA : b\r\n\r\n", "field name");
    expect_bad(CHUNKED "0\r\n: b\r\n\r\n", "field name");
    expect_bad(CHUNKED "0\r\nA\r\n\r\n", "field name");
    expect_bad(CHUNKED "0\r\nA: b\r\n c\r\n\r\n", "white space");
    expect_bad(CHUNKED "0\r\n\tA: b\r\n\r\n", "white space");
    expect_bad(CHUNKED "0\r\nA: b\x01\r\n\r\n", "control");
    expect_bad(CHUNKED "0\r\nA: b\n\r\n", "control");
    expect_bad(CHUNKED "0\r\n\n", "field name");
    expect_bad(CHUNKED "0\r\nA: b\rC", "CR without LF");
    expect_bad(CHUNKED "0\r\n\rX", "CR without LF");
    expect_bad(CHUNKED "0\r\nHTTP/1.1 200 OK\r\n", "field name");
}

/* A chunked response whose last chunk line (`in_line`) or trailer is padded to `padding` bytes. */
static enum http_scan scan_padded_chunk(bool in_line, size_t padding, size_t step)
{
    static const char line[] = CHUNKED "0;a=", section[] = CHUNKED "0\r\nA: ";
    const char *start = in_line ? line : section;
    size_t start_bytes = strlen(start), size = start_bytes + padding + 4;
    char *text = malloc(size);
    memset(text, 'x', size);
    memcpy(text, start, start_bytes);
    memcpy(text + size - 4, "\r\n\r\n", 4);
    size_t total;
    http_scanner_start(&scanner, false);
    enum http_scan result = feed(text, size, step, step, &total);
    free(text);
    return result;
}

static void chunk_lines_and_trailers_are_bounded(void **state)
{
    (void)state;
    /* "0;a=" and CRLF beside the padding; "A: ", CRLF and the last CRLF. */
    for (size_t step = 1; step < 100000; step = step * 9 + 1) {
        assert_int_equal(scan_padded_chunk(true, HTTP_HEAD_MAX - 6, step), HTTP_SCAN_DONE);
        assert_int_equal(scan_padded_chunk(true, HTTP_HEAD_MAX - 5, step), HTTP_SCAN_BAD);
        assert_non_null(strstr(scanner.problem, "size line of more"));
        assert_int_equal(scan_padded_chunk(false, HTTP_HEAD_MAX - 7, step), HTTP_SCAN_DONE);
        assert_int_equal(scan_padded_chunk(false, HTTP_HEAD_MAX - 6, step), HTTP_SCAN_BAD);
        assert_non_null(strstr(scanner.problem, "trailer section of more"));
    }
}

static void many_chunks_are_not_bounded(void **state)
{
    (void)state;
    size_t total;
    http_scanner_start(&scanner, false);
    assert_int_equal(feed(CHUNKED, strlen(CHUNKED), 1, 1, &total), HTTP_SCAN_MORE);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(feed("1;x=y\r\nb\r\n", 10, 10, 1, &total), HTTP_SCAN_MORE);
    assert_int_equal(feed("0\r\n\r\n", 5, 5, 1, &total), HTTP_SCAN_DONE);
    assert_int_equal(response->body_bytes, 20000);
}

/* ---- 1xx, and responses without a body */

static void informational_responses_are_skipped(void **state)
{
    (void)state;
    expect_done("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_int_equal(response->informational, 1);
    assert_int_equal(response->status, 200);
    expect_body("ok");
    expect_done("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: close\r\n\r\n"
                "HTTP/1.1 100 \r\n\r\nHTTP/1.1 199 x\r\nLink: </b>\r\n\r\n"
                "HTTP/1.1 404 Not Found\r\n" CL0 "\r\n");
    assert_int_equal(response->informational, 3);
    assert_int_equal(response->status, 404);
    assert_int_equal(response->field_count, 1);
    assert_null(http_response_field(response, "Link", 0));
    assert_true(response->keep_alive);
    expect_more("HTTP/1.1 103 Early Hints\r\n\r\n");
    expect_end(HTTP_SCAN_BAD, "closed after a 1xx");
    expect_bad("HTTP/1.1 100 Continue\r\n\r\nHello", "status line");
    expect_bad("HTTP/1.0 100 Continue\r\n\r\n", "1xx in HTTP/1.0");
}

static void head_bound_is_per_head(void **state)
{
    (void)state;
    size_t total;
    http_scanner_start(&scanner, false);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(feed("HTTP/1.1 100 Continue\r\n\r\n", 25, 25, 1, &total), HTTP_SCAN_MORE);
    assert_int_equal(feed(next, sizeof next - 1, 100, 1, &total), HTTP_SCAN_DONE);
    assert_int_equal(response->informational, 1000);
    assert_int_equal(response->total_bytes, 25000 + sizeof next - 1);
}

static void switching_protocols_is_an_error(void **state)
{
    (void)state;
    expect_bad("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "101");
}

static void informational_and_204_have_no_framing_fields(void **state)
{
    (void)state;
    expect_bad("HTTP/1.1 100 Continue\r\n" CL0 "\r\n", "1xx or 204");
    expect_bad("HTTP/1.1 103 x\r\nTransfer-Encoding: chunked\r\n\r\n", "1xx or 204");
    expect_bad("HTTP/1.1 204 No Content\r\n" CL0 "\r\n", "1xx or 204");
    expect_bad("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", "1xx or 204");
}

static void head_204_and_304_have_no_body(void **state)
{
    (void)state;
    expect_done_head("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n");
    assert_int_equal(response->framing, HTTP_FRAMING_NONE);
    assert_true(response->has_content_length);
    assert_int_equal(response->content_length, 12);
    assert_int_equal(response->body_bytes, 0);
    assert_true(response->keep_alive);
    expect_done_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    expect_done_head("HTTP/1.1 200 OK\r\n\r\n");
    assert_true(response->keep_alive);
    expect_done("HTTP/1.1 204 No Content\r\n\r\n");
    assert_int_equal(response->framing, HTTP_FRAMING_NONE);
    assert_true(response->keep_alive);
    expect_done("HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n");
    assert_int_equal(response->framing, HTTP_FRAMING_NONE);
    assert_int_equal(response->content_length, 12);
    expect_done("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static void the_next_response_starts_anew(void **state)
{
    (void)state;
    static const char two[] = "HTTP/1.0 404 a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"
                              "HTTP/1.1 204 b\r\n\r\n";
    size_t used, more;
    http_scanner_start(&scanner, false);
    assert_int_equal(http_scanner_feed(&scanner, two, sizeof two - 1, &used), HTTP_SCAN_DONE);
    assert_true(response->close);
    assert_int_equal(http_scanner_feed(&scanner, two, sizeof two - 1, &more), HTTP_SCAN_DONE);
    assert_int_equal(more, 0);
    http_scanner_start(&scanner, false);
    assert_int_equal(http_scanner_feed(&scanner, two + used, sizeof two - 1 - used, &more),
                     HTTP_SCAN_DONE);
    assert_int_equal(used + more, sizeof two - 1);
    assert_int_equal(response->status, 204);
    assert_int_equal(response->minor, 1);
    assert_false(response->close);
    assert_true(response->keep_alive);
    assert_false(response->has_content_length);
    assert_int_equal(response->body_bytes, 0);
    assert_int_equal(response->field_count, 0);
}

/* ---- the end of the connection */

static void close_frames_a_body(void **state)
{
    (void)state;
    static const char *const heads[] = {"HTTP/1.1 200 OK\r\n\r\n",
                                        "HTTP/1.0 200 OK\r\nA: b\r\n\r\n",
                                        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char text[128];
        strcat(strcpy(text, heads[i]), "Hello World\n");
        expect_more(text);
        assert_int_equal(response->framing, HTTP_FRAMING_EOF);
        assert_false(response->keep_alive);
        expect_body("Hello World\n");
        expect_end(HTTP_SCAN_DONE, NULL);
        expect_more(heads[i]);
        expect_end(HTTP_SCAN_DONE, NULL);
        assert_int_equal(response->body_bytes, 0);
    }
}

static void close_elsewhere_is_an_error(void **state)
{
    (void)state;
    http_scanner_start(&scanner, false);
    assert_true(http_scanner_untouched(&scanner));
    expect_end(HTTP_SCAN_BAD, "closed before a response");
    expect_end(HTTP_SCAN_BAD, "closed before a response");
    expect_more("HTTP");
    expect_end(HTTP_SCAN_BAD, "closed before the end of the head");
    expect_more("HTTP/1.1 200 OK\r\n" CL0 "\r");
    expect_end(HTTP_SCAN_BAD, "closed before the end of the head");
    static const char *const parts[] = {"",         "5",          "5\r",          "5\r\n",
                                        "5\r\nhel", "5\r\nhello", "5\r\nhello\r", "5\r\nhello\r\n",
                                        "0",        "0\r\n",      "0\r\nA",       "0\r\nA: b\r\n",
                                        "0\r\n\r"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char text[128] = CHUNKED;
        expect_more(strcat(text, parts[i]));
        expect_end(HTTP_SCAN_BAD, "closed before the last chunk");
    }
}

static void end_after_a_verdict_changes_nothing(void **state)
{
    (void)state;
    expect_done("HTTP/1.1 204 x\r\n\r\n");
    expect_end(HTTP_SCAN_DONE, NULL);
    expect_bad("HTTP/1.1 600 x\r\n", "100 to 599");
    expect_end(HTTP_SCAN_BAD, "100 to 599");
}

/* ---- keep-alive */

static void keep_alive_by_version_and_options(void **state)
{
    (void)state;
    static const struct {
        const char *version, *fields;
        bool keep_alive, close;
    } cases[] = {
        {"1", "", true, false},
        {"0", "", false, false},
        {"1", "Connection: close\r\n", false, true},
        {"1", "cONNECTION:\tCLOSE \r\n", false, true},
        {"1", "Connection: keep-alive\r\n", true, false},
        {"0", "Connection: keep-alive\r\n", true, false},
        {"0", "Connection: Keep-Alive\r\n", true, false},
        {"0", "Connection: close\r\n", false, true},
        {"0", "Connection: keep-alive, close\r\n", false, true},
        {"0", "Connection: keep-alive, x\r\n", true, false},
        {"1", "Connection: close, x\r\n", false, true},
        {"1", "Connection: x, close , y\r\n", false, true},
        {"1", "Connection: x,,\tclose,\r\n", false, true},
        {"1", "Connection: x\r\nA: b\r\nConnection: y, close\r\n", false, true},
        {"0", "Connection: x\r\nConnection: keep-alive\r\n", true, false},
        {"1", "Connection: closed\r\n", true, false},
        {"1", "Connection: not close\r\n", true, false},
        {"1", "X-Connection: close\r\n", true, false},
        {"1", "Connection:\r\n", true, false},
        {"0", "Keep-Alive: timeout=5\r\n", false, false},
        {"0", "Proxy-Connection: keep-alive\r\n", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[192] = "HTTP/1.";
        strcat(strcat(strcat(text, cases[i].version), " 200 OK\r\n" CL0), cases[i].fields);
        expect_done(strcat(text, "\r\n"));
        if (response->keep_alive != cases[i].keep_alive || response->close != cases[i].close)
            fail_msg("HTTP/1.%s with '%s': keep_alive %d, close %d", cases[i].version,
                     cases[i].fields, response->keep_alive, response->close);
    }
}

/* ---- bodies larger than what is kept */

static void large_bodies_are_counted_and_their_start_kept(void **state)
{
    (void)state;
    enum { SIZE = 300000 };
    char *body = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        body[i] = (char)('a' + i % 23);
    for (size_t step = 1; step <= SIZE; step = step * 7 + 3) {
        static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n";
        size_t total;
        http_scanner_start(&scanner, false);
        assert_int_equal(feed(head, sizeof head - 1, 1000, 1, &total), HTTP_SCAN_MORE);
        assert_int_equal(feed(body, SIZE, step, step, &total), HTTP_SCAN_DONE);
        assert_int_equal(total, SIZE);
        assert_int_equal(response->body_bytes, SIZE);
        assert_memory_equal(response->body, body, HTTP_BODY_KEEP);
    }
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_is_framed),
        cmocka_unit_test(status_line_forms),
        cmocka_unit_test(version_must_be_1_0_or_1_1),
        cmocka_unit_test(other_protocol_shows_in_the_first_byte),
        cmocka_unit_test(status_must_be_three_digits_between_spaces),
        cmocka_unit_test(reason_must_hold_no_controls),
        cmocka_unit_test(bare_lf_is_an_error),
        cmocka_unit_test(fields_are_kept_and_trimmed),
        cmocka_unit_test(field_names_are_tokens),
        cmocka_unit_test(obs_fold_is_an_error),
        cmocka_unit_test(controls_in_a_value_are_errors),
        cmocka_unit_test(head_is_bounded),
        cmocka_unit_test(fields_are_bounded),
        cmocka_unit_test(content_length_is_a_number),
        cmocka_unit_test(content_length_up_to_64_bits),
        cmocka_unit_test(equal_content_lengths_count_as_one),
        cmocka_unit_test(differing_content_lengths_are_an_error),
        cmocka_unit_test(short_body_is_no_response),
        cmocka_unit_test(chunks_are_joined),
        cmocka_unit_test(other_codings_are_errors),
        cmocka_unit_test(transfer_encoding_excludes_content_length_and_http_1_0),
        cmocka_unit_test(chunk_size_is_hexadecimal),
        cmocka_unit_test(chunk_size_fits_64_bits),
        cmocka_unit_test(chunk_extensions_are_parsed),
        cmocka_unit_test(malformed_chunk_extensions_are_errors),
        cmocka_unit_test(chunk_data_ends_in_crlf),
        cmocka_unit_test(trailers_are_checked),
        cmocka_unit_test(chunk_lines_and_trailers_are_bounded),
        cmocka_unit_test(many_chunks_are_not_bounded),
        cmocka_unit_test(informational_responses_are_skipped),
        cmocka_unit_test(head_bound_is_per_head),
        cmocka_unit_test(switching_protocols_is_an_error),
        cmocka_unit_test(informational_and_204_have_no_framing_fields),
        cmocka_unit_test(head_204_and_304_have_no_body),
        cmocka_unit_test(the_next_response_starts_anew),
        cmocka_unit_test(close_frames_a_body),
        cmocka_unit_test(close_elsewhere_is_an_error),
        cmocka_unit_test(end_after_a_verdict_changes_nothing),
        cmocka_unit_test(keep_alive_by_version_and_options),
        cmocka_unit_test(large_bodies_are_counted_and_their_start_kept),
    };
    return cmocka_run_group_tests_name("http response", tests, NULL, NULL);
}
