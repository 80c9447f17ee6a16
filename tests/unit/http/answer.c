/* The expected answer and the learnt pattern, by hand-worked cases. */
#include "http/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110 5.6.7 */

static struct http_scanner scanner;
static char why[512];

static const struct http_expect hello = {
    .status = 200,
    .content_type = "text/plain",
    .body = "Hello World\n",
    .body_bytes = 12,
    .date = true,
};

static void scan(const char *wire, bool head)
{
    size_t used;
    http_scanner_start(&scanner, head);
    enum http_scan result = http_scanner_feed(&scanner, wire, strlen(wire), &used);
    if (result == HTTP_SCAN_MORE)
        result = http_scanner_end(&scanner);
    if (result != HTTP_SCAN_DONE)
        fail_msg("the test's response is not whole: %s", scanner.problem);
}

static void expect_right(const struct http_expect *expect, const char *wire)
{
    scan(wire, expect->head);
    if (!http_answer_check(expect, &scanner.response, NOW, why, sizeof why))
        fail_msg("%s", why);
}

static void expect_wrong(const struct http_expect *expect, const char *wire, const char *reason)
{
    scan(wire, expect->head);
    assert_false(http_answer_check(expect, &scanner.response, NOW, why, sizeof why));
    assert_string_equal(why, reason);
}

#define DATE   "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define TYPE   "Content-Type: text/plain\r\n"
#define LENGTH "Content-Length: 12\r\n"
#define OK     "HTTP/1.1 200 OK\r\n"
#define BODY   "\r\nHello World\n"

/* ---- the check */

static void right_answers_pass(void **state)
{
    (void)state;
    expect_right(&hello, OK DATE TYPE LENGTH BODY);
    expect_right(&hello, OK "dAtE:Sun, 06 Nov 1994 08:49:37 GMT \r\n" TYPE LENGTH BODY);
    expect_right(&hello, OK DATE TYPE BODY);
    expect_right(&hello, OK DATE TYPE "Transfer-Encoding: chunked\r\n\r\n"
                                      "6\r\nHello \r\n6\r\nWorld\n\r\n0\r\n\r\n");
    expect_right(&hello, "HTTP/1.1 103 x\r\n\r\n" OK DATE TYPE LENGTH BODY);
    expect_right(&hello, OK DATE TYPE LENGTH "Connection: close\r\n" BODY);
    expect_right(&hello, "HTTP/1.0 200 OK\r\n" DATE TYPE LENGTH BODY);
}

static void status_is_compared(void **state)
{
    (void)state;
    expect_wrong(&hello, "HTTP/1.1 404 Not Found\r\n" DATE TYPE LENGTH BODY,
                 "expected status 200, came 404");
    expect_wrong(&hello, "HTTP/1.1 206 x\r\n" DATE TYPE LENGTH BODY,
                 "expected status 200, came 206");
    const struct http_expect missing = {.status = 404};
    expect_right(&missing, "HTTP/1.1 404 x\r\n\r\nwhatever");
    expect_wrong(&missing, OK "\r\n", "expected status 404, came 200");
}

static void any_2xx_where_no_status_is_given(void **state)
{
    (void)state;
    const struct http_expect any = {0};
    expect_right(&any, OK "\r\n");
    expect_right(&any, "HTTP/1.1 204 x\r\n\r\n");
    expect_right(&any, "HTTP/1.1 299 x\r\nDate: never\r\nDate: never\r\n\r\n");
    expect_wrong(&any, "HTTP/1.1 300 x\r\n\r\n", "expected a status of 200 to 299, came 300");
    expect_wrong(&any, "HTTP/1.1 503 x\r\n\r\n", "expected a status of 200 to 299, came 503");
}

static void content_type_is_compared_without_parameters(void **state)
{
    (void)state;
    expect_right(&hello, OK DATE LENGTH "Content-Type: TEXT/Plain;charset=utf-8\r\n" BODY);
    expect_right(&hello, OK DATE LENGTH "Content-Type:\ttext/plain \t; charset=utf-8\r\n" BODY);
    expect_wrong(&hello, OK DATE LENGTH BODY, "expected Content-Type text/plain, came none");
    expect_wrong(&hello, OK DATE LENGTH "Content-Type: text/html\r\n" BODY,
                 "expected Content-Type text/plain, came \"text/html\"");
    expect_wrong(&hello, OK DATE LENGTH "Content-Type: text/plai\r\n" BODY,
                 "expected Content-Type text/plain, came \"text/plai\"");
    expect_wrong(&hello, OK DATE LENGTH "Content-Type: next/plain\r\n" BODY,
                 "expected Content-Type text/plain, came \"next/plain\"");
    expect_wrong(&hello, OK DATE LENGTH "Content-Type: text/plains\r\n" BODY,
                 "expected Content-Type text/plain, came \"text/plains\"");
    expect_wrong(&hello, OK DATE LENGTH "Content-Type:\r\n" BODY,
                 "expected Content-Type text/plain, came \"\"");
    expect_wrong(&hello, OK DATE LENGTH "Content-Type: ;text/plain\r\n" BODY,
                 "expected Content-Type text/plain, came \";text/plain\"");
}

static void fields_asked_for_stand_once(void **state)
{
    (void)state;
    expect_wrong(&hello, OK DATE DATE TYPE LENGTH BODY,
                 "expected one Date line, came several (RFC 9110 5.3)");
    expect_wrong(&hello, OK DATE TYPE LENGTH TYPE BODY,
                 "expected one Content-Type line, came several (RFC 9110 5.3)");
    expect_wrong(&hello, OK LENGTH DATE TYPE LENGTH BODY,
                 "expected one Content-Length line, came several (RFC 9110 5.3)");
    expect_wrong(&hello, OK DATE TYPE "Content-Length: 12, 12\r\n" BODY,
                 "expected one number as Content-Length, came \"12, 12\" (RFC 9110 8.6)");
}

static void body_is_compared(void **state)
{
    (void)state;
    expect_wrong(&hello, OK DATE TYPE LENGTH "\r\nHello World!",
                 "expected a body of 12 bytes \"Hello World\\n\", came 12 bytes \"Hello World!\"");
    expect_wrong(&hello, OK DATE TYPE "Content-Length: 11\r\n\r\nHello World",
                 "expected a body of 12 bytes \"Hello World\\n\", came 11 bytes \"Hello World\"");
    expect_wrong(&hello, OK DATE TYPE "Content-Length: 13\r\n\r\nHello World\n\n",
                 "expected a body of 12 bytes \"Hello World\\n\", came 13 bytes "
                 "\"Hello World\\n\\n\"");
    expect_wrong(&hello, OK DATE TYPE "Content-Length: 0\r\n\r\n",
                 "expected a body of 12 bytes \"Hello World\\n\", came 0 bytes \"\"");
    const struct http_expect empty = {.status = 200, .body = "", .body_bytes = 0};
    expect_right(&empty, OK "Content-Length: 0\r\n\r\n");
    expect_wrong(&empty, OK "Content-Length: 1\r\n\r\nx",
                 "expected a body of 0 bytes \"\", came 1 bytes \"x\"");
}

static void reasons_are_one_printable_line(void **state)
{
    (void)state;
    expect_wrong(&hello, OK "\r\na\r\n\t\"\\\x01\x7f\xff",
                 "expected a body of 12 bytes \"Hello World\\n\", came 9 bytes "
                 "\"a\\r\\n\\t\\\"\\\\\\x01\\x7f\\xff\"");
    expect_wrong(&hello, OK "\r\n0123456789012345678901234567890123456789012345678",
                 "expected a body of 12 bytes \"Hello World\\n\", came 49 bytes "
                 "\"012345678901234567890123456789012345678901234567\"...");
    expect_wrong(&hello, OK "\r\n ~2345678901234567890123456789012345678901234567",
                 "expected a body of 12 bytes \"Hello World\\n\", came 48 bytes "
                 "\" ~2345678901234567890123456789012345678901234567\"");
}

static void the_longest_reason_fits(void **state)
{
    (void)state;
    char wire[100] = OK "\r\n", shown[256] = "";
    memset(wire + strlen(wire), 0xff, 49);
    for (int i = 0; i < 48; i++)
        strcat(shown, "\\xff");
    char reason[512];
    snprintf(reason, sizeof reason,
             "expected a body of 12 bytes \"Hello World\\n\", came 49 bytes \"%s\"...", shown);
    expect_wrong(&hello, wire, reason);
}

static void reasons_are_cut_to_the_buffer(void **state)
{
    (void)state;
    scan("HTTP/1.1 404 x\r\n\r\n", false);
    memset(why, '#', sizeof why);
    assert_false(http_answer_check(&hello, &scanner.response, NOW, why, 9));
    assert_string_equal(why, "expected");
    assert_int_equal(why[9], '#');
}

static void large_bodies_are_compared_by_length_and_start(void **state)
{
    (void)state;
    enum { SIZE = HTTP_BODY_KEEP + 500 };
    char body[SIZE + 1], wire[SIZE + 100];
    memset(body, 'x', SIZE);
    body[SIZE] = '\0';
    const struct http_expect large = {.status = 200, .body = body, .body_bytes = SIZE};
    snprintf(wire, sizeof wire, OK "\r\n%s", body);
    expect_right(&large, wire);
    wire[strlen(OK "\r\n") + HTTP_BODY_KEEP - 1] = 'y';
    scan(wire, false);
    assert_false(http_answer_check(&large, &scanner.response, NOW, why, sizeof why));
    snprintf(wire, sizeof wire, OK "\r\n%s", body + 1);
    scan(wire, false);
    assert_false(http_answer_check(&large, &scanner.response, NOW, why, sizeof why));
    assert_non_null(strstr(why, "came 1523 bytes"));
}

static void date_is_required_and_well_formed(void **state)
{
    (void)state;
    expect_wrong(&hello, OK TYPE LENGTH BODY, "expected a Date, came none (RFC 9110 6.6.1)");
    expect_wrong(&hello, OK TYPE LENGTH "Date: Sunday, 06-Nov-94 08:49:37 GMT\r\n" BODY,
                 "expected a Date in IMF-fixdate (RFC 9110 5.6.7), came "
                 "\"Sunday, 06-Nov-94 08:49:37 GMT\"");
    expect_wrong(&hello, OK TYPE LENGTH "Date:\r\n" BODY,
                 "expected a Date in IMF-fixdate (RFC 9110 5.6.7), came \"\"");
    struct http_expect undated = hello;
    undated.date = false;
    expect_right(&undated, OK TYPE LENGTH BODY);
    expect_right(&undated, OK TYPE LENGTH "Date: x\r\n" BODY);
}

static void date_is_at_most_two_seconds_from_now(void **state)
{
    (void)state;
    scan(OK DATE TYPE LENGTH BODY, false);
    for (int apart = -2; apart <= 2; apart++)
        assert_true(http_answer_check(&hello, &scanner.response, NOW + apart, why, sizeof why));
    assert_false(http_answer_check(&hello, &scanner.response, NOW + 3, why, sizeof why));
    assert_string_equal(why, "expected a Date at most 2 s from now, came one 3 s old: "
                             "\"Sun, 06 Nov 1994 08:49:37 GMT\"");
    assert_false(http_answer_check(&hello, &scanner.response, NOW - 3, why, sizeof why));
    assert_string_equal(why, "expected a Date at most 2 s from now, came one 3 s in the future: "
                             "\"Sun, 06 Nov 1994 08:49:37 GMT\"");
}

static void close_is_required_where_expected(void **state)
{
    (void)state;
    const struct http_expect closing = {.status = 200, .close = true};
    expect_right(&closing, OK "Connection: close\r\n\r\n");
    expect_right(&closing, OK "Connection: a, Close\r\nContent-Length: 0\r\n\r\n");
    expect_right(&closing, "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n");
    expect_wrong(&closing, OK "\r\n",
                 "expected Connection: close, came no Connection (RFC 9112 9.6)");
    expect_wrong(&closing, OK "Connection: keep-alive\r\nContent-Length: 0\r\n\r\n",
                 "expected Connection: close, came \"keep-alive\" (RFC 9112 9.6)");
    expect_wrong(&closing, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
                 "expected Connection: close, came \"keep-alive\" (RFC 9112 9.6)");
}

static void head_has_the_length_of_get(void **state)
{
    (void)state;
    struct http_expect head = hello;
    head.head = true;
    expect_right(&head, OK DATE TYPE LENGTH "\r\n");
    expect_right(&head, OK DATE TYPE "\r\n");
    expect_wrong(&head, OK DATE TYPE "Content-Length: 0\r\n\r\n",
                 "expected Content-Length 12 as for GET, came \"0\" (RFC 9110 8.6)");
    expect_wrong(&head, OK TYPE LENGTH "\r\n", "expected a Date, came none (RFC 9110 6.6.1)");
}

/* ---- dates */

static void dates_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        time_t seconds; /* as date(1) -u -d has them */
    } cases[] = {
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
        {"Tue, 29 Feb 2000 23:59:59 GMT", 951868799},
        {"Wed, 01 Mar 2000 00:00:00 GMT", 951868800},
        {"Fri, 31 Dec 1999 23:59:59 GMT", 946684799},
        {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800}, /* a leap second */
        {"Tue, 19 Jan 2038 03:14:08 GMT", 2147483648},
        {"Mon, 01 Mar 2100 00:00:00 GMT", 4107542400},
        {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (http_date_parse(cases[i].text, strlen(cases[i].text)) != cases[i].seconds)
            fail_msg("%s: %lld", cases[i].text,
                     (long long)http_date_parse(cases[i].text, strlen(cases[i].text)));
}

/* Each day from 1970 to 2400 against gmtime_r(3). */
static void days_fit_the_calendar(void **state)
{
    (void)state;
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (time_t t = 3661; t < 13569465600; t += 86400) {
        struct tm tm;
        char text[64];
        gmtime_r(&t, &tm);
        snprintf(text, sizeof text, "%.3s, %02d %.3s %d 01:01:01 GMT", days + 3 * tm.tm_wday,
                 tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900);
        if (http_date_parse(text, strlen(text)) != t)
            fail_msg("%s: %lld", text, (long long)http_date_parse(text, strlen(text)));
    }
}

/* The day after the last of each month, with the name of the day that follows. */
static void months_have_their_lengths(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Wed, 32 Jan 1995 00:00:00 GMT", "Wed, 29 Feb 1995 00:00:00 GMT",
        "Sat, 32 Mar 1995 00:00:00 GMT", "Mon, 31 Apr 1995 00:00:00 GMT",
        "Thu, 32 May 1995 00:00:00 GMT", "Sat, 31 Jun 1995 00:00:00 GMT",
        "Tue, 32 Jul 1995 00:00:00 GMT", "Fri, 32 Aug 1995 00:00:00 GMT",
        "Sun, 31 Sep 1995 00:00:00 GMT", "Wed, 32 Oct 1995 00:00:00 GMT",
        "Fri, 31 Nov 1995 00:00:00 GMT", "Mon, 32 Dec 1995 00:00:00 GMT",
        "Fri, 30 Feb 1996 00:00:00 GMT",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (http_date_parse(texts[i], strlen(texts[i])) != (time_t)-1)
            fail_msg("'%s' was taken", texts[i]);
}

static void malformed_dates_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37+GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Mon, 06 Nov 1994 08:49:37 GMT", /* it was a Sunday */
        "sun, 06 Nov 1994 08:49:37 GMT",
        "unM, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 NOV 1994 08:49:37 GMT",
        "Sun, 06 anF 1994 08:49:37 GMT",
        "Sun; 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06-Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov-1994 08:49:37 GMT",
        "Sun, 0: Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 0::49:37 GMT",
        "Sun, 06 Nov 1994-08:49:37 GMT",
        "Sun, 06 Nov 1994 08-49:37 GMT",
        "Sun, 06 Nov 1994 08:49-37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Thu, 31 Nov 1994 08:49:37 GMT", /* 1 December was a Thursday */
        "Mon, 29 Feb 2100 00:00:00 GMT", /* no leap year; 1 March is a Monday */
        "Wed, 29 Feb 1995 00:00:00 GMT",
        "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:60 GMT",
        "Sun, 06 Nov 1994 08:59:60 GMT",
        "Sun, 06 Nov 1994 23:49:60 GMT",
        "Sun, 06 Nov 1994 23:59:61 GMT",
        "Sun, 06 Nov 1994 -8:49:37 GMT",
        "Sun, 06 Nov 1994 08:+9:37 GMT",
        "Sun, 06 Nov 1994 08:49: 7 GMT",
        "Sun, 06 Nov +994 08:49:37 GMT",
        "Sun, 06 Nov 19 4 08:49:37 GMT",
        "Wed, 31 Dec 1969 23:59:58 GMT",
        "Sat, 01 Jan 0000 00:00:00 GMT",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (http_date_parse(texts[i], strlen(texts[i])) != (time_t)-1)
            fail_msg("'%s' was taken", texts[i]);
}

/* ---- the pattern */

static struct http_pattern pattern;

static bool learn(const char *wire, bool head)
{
    scan(wire, head);
    return http_pattern_learn(&pattern, &scanner.response, wire, strlen(wire));
}

/* Matches a heap block of exactly the pattern's size: a sanitizer sees a read beyond it. */
static bool matches(const char *wire, time_t now)
{
    assert_int_equal(strlen(wire), pattern.size);
    char *copy = malloc(pattern.size);
    memcpy(copy, wire, pattern.size);
    bool same = http_pattern_match(&pattern, copy, now);
    free(copy);
    return same;
}

static const char *dated(const char *date)
{
    static char wire[512];
    snprintf(wire, sizeof wire, OK "Date: %s\r\n" TYPE LENGTH BODY, date);
    return wire;
}

#define AT_37 "Sun, 06 Nov 1994 08:49:37 GMT"
#define AT_38 "Sun, 06 Nov 1994 08:49:38 GMT"
#define AT_40 "Sun, 06 Nov 1994 08:49:40 GMT"

static void equal_bytes_match(void **state)
{
    (void)state;
    assert_true(learn(dated(AT_37), false));
    assert_int_equal(pattern.size, strlen(dated(AT_37)));
    assert_int_equal(pattern.date, strlen(OK "Date: "));
    assert_int_equal(pattern.date_s, NOW);
    assert_true(pattern.keep_alive);
    assert_true(matches(dated(AT_37), NOW));
    assert_true(matches(dated(AT_37), NOW + 1));
}

static void any_other_byte_does_not_match(void **state)
{
    (void)state;
    assert_true(learn(dated(AT_37), false));
    char wire[512];
    for (size_t i = 0; i < pattern.size; i++) {
        strcpy(wire, dated(AT_37));
        wire[i] ^= 0x01;
        time_t date = http_date_parse(wire + pattern.date, HTTP_DATE_BYTES);
        bool fresh = i >= pattern.date && i < pattern.date + HTTP_DATE_BYTES && date >= NOW - 2 &&
                     date <= NOW + 2;
        assert_int_equal(matches(wire, NOW), fresh);
        assert_true(matches(dated(AT_37), NOW));
    }
}

static void the_date_advances(void **state)
{
    (void)state;
    assert_true(learn(dated(AT_37), false));
    assert_true(matches(dated(AT_38), NOW + 1));
    assert_int_equal(pattern.date_s, NOW + 1);
    assert_memory_equal(pattern.bytes + pattern.date, AT_38, HTTP_DATE_BYTES);
    assert_true(matches(dated(AT_38), NOW + 1));
    assert_true(matches(dated(AT_37), NOW + 1)); /* another worker's clock, a second behind */
    assert_int_equal(pattern.date_s, NOW);
    assert_true(matches(dated(AT_40), NOW + 3)); /* after idle time */
    assert_true(matches(dated(AT_40), NOW + 5));
}

static void a_frozen_date_fails(void **state)
{
    (void)state;
    assert_true(learn(dated(AT_37), false));
    assert_true(matches(dated(AT_37), NOW + 2));
    assert_false(matches(dated(AT_37), NOW + 3));
    assert_false(matches(dated(AT_37), NOW + 100000));
    assert_false(matches(dated(AT_38), NOW + 4));
    assert_true(matches(dated(AT_40), NOW + 4));
}

static void a_date_from_the_future_fails(void **state)
{
    (void)state;
    assert_true(learn(dated(AT_40), false));
    assert_true(matches(dated(AT_40), NOW + 1));
    assert_false(matches(dated(AT_40), NOW));
    assert_false(matches(dated(AT_40), 0));
    assert_true(matches(dated(AT_37), NOW));
    assert_false(matches(dated(AT_40), NOW));
}

static void a_malformed_date_fails(void **state)
{
    (void)state;
    assert_true(learn(dated(AT_37), false));
    assert_false(matches(dated("Mon, 06 Nov 1994 08:49:37 GMT"), NOW));
    assert_false(matches(dated("Sun, 06 Nov 1994 08:49:37\r\nGM"), NOW));
    assert_true(matches(dated(AT_37), NOW));
}

static void without_a_date_the_bytes_decide(void **state)
{
    (void)state;
    assert_true(learn(OK LENGTH BODY, false));
    assert_int_equal(pattern.date, 0);
    assert_int_equal(pattern.date_s, 0);
    assert_true(matches(OK LENGTH BODY, NOW));
    assert_true(matches(OK LENGTH BODY, NOW + 1000));
    assert_false(matches(OK LENGTH "\r\nHello world\n", NOW));
}

static void a_date_that_cannot_be_masked_is_compared(void **state)
{
    (void)state;
    assert_true(learn(OK "Date: today\r\n" LENGTH BODY, false));
    assert_int_equal(pattern.date, 0);
    assert_true(matches(OK "Date: today\r\n" LENGTH BODY, NOW + 9));
    assert_false(matches(OK "Date: todax\r\n" LENGTH BODY, NOW));
    assert_true(learn(OK DATE DATE LENGTH BODY, false));
    assert_int_equal(pattern.date, 0);
}

static void what_no_pattern_can_stand_for_is_not_learnt(void **state)
{
    (void)state;
    static const char *const wires[] = {
        OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK "\r\nHello World\n",
        "HTTP/1.1 100 x\r\n\r\n" OK LENGTH BODY,
    };
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
        assert_true(learn(dated(AT_37), false));
        assert_false(learn(wires[i], false));
        assert_int_equal(pattern.size, 0);
    }
    scan(dated(AT_37), false);
    assert_false(
        http_pattern_learn(&pattern, &scanner.response, dated(AT_37), strlen(dated(AT_37)) - 1));
}

static void patterns_are_bounded(void **state)
{
    (void)state;
    char wire[HTTP_PATTERN_MAX + 2];
    for (size_t size = HTTP_PATTERN_MAX; size <= HTTP_PATTERN_MAX + 1; size++) {
        int head = snprintf(wire, sizeof wire, OK "Content-Length: %zu\r\n\r\n",
                            size - strlen(OK "Content-Length: 123\r\n\r\n"));
        memset(wire + head, 'x', size - (size_t)head);
        wire[size] = '\0';
        assert_int_equal(learn(wire, false), size == HTTP_PATTERN_MAX);
    }
}

static void head_and_closing_answers_are_learnt(void **state)
{
    (void)state;
    assert_true(learn(OK DATE LENGTH "\r\n", true));
    assert_true(pattern.keep_alive);
    assert_true(matches(OK DATE LENGTH "\r\n", NOW));
    assert_true(learn(OK LENGTH "Connection: close\r\n" BODY, false));
    assert_false(pattern.keep_alive);
    assert_true(learn("HTTP/1.1 204 x\r\n\r\n", false));
    assert_true(pattern.keep_alive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_answers_pass),
        cmocka_unit_test(status_is_compared),
        cmocka_unit_test(any_2xx_where_no_status_is_given),
        cmocka_unit_test(content_type_is_compared_without_parameters),
        cmocka_unit_test(fields_asked_for_stand_once),
        cmocka_unit_test(body_is_compared),
        cmocka_unit_test(reasons_are_one_printable_line),
        cmocka_unit_test(the_longest_reason_fits),
        cmocka_unit_test(reasons_are_cut_to_the_buffer),
        cmocka_unit_test(large_bodies_are_compared_by_length_and_start),
        cmocka_unit_test(date_is_required_and_well_formed),
        cmocka_unit_test(date_is_at_most_two_seconds_from_now),
        cmocka_unit_test(close_is_required_where_expected),
        cmocka_unit_test(head_has_the_length_of_get),
        cmocka_unit_test(dates_are_parsed),
        cmocka_unit_test(days_fit_the_calendar),
        cmocka_unit_test(months_have_their_lengths),
        cmocka_unit_test(malformed_dates_are_refused),
        cmocka_unit_test(equal_bytes_match),
        cmocka_unit_test(any_other_byte_does_not_match),
        cmocka_unit_test(the_date_advances),
        cmocka_unit_test(a_frozen_date_fails),
        cmocka_unit_test(a_date_from_the_future_fails),
        cmocka_unit_test(a_malformed_date_fails),
        cmocka_unit_test(without_a_date_the_bytes_decide),
        cmocka_unit_test(a_date_that_cannot_be_masked_is_compared),
        cmocka_unit_test(what_no_pattern_can_stand_for_is_not_learnt),
        cmocka_unit_test(patterns_are_bounded),
        cmocka_unit_test(head_and_closing_answers_are_learnt),
    };
    return cmocka_run_group_tests_name("http answer", tests, NULL, NULL);
}
