/* Requests as bytes, compared with what goes on the wire. */
#include "http/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct http_request get = {.method = "GET", .target = "/", .host = "a:80"};

static void expect_bytes(const struct http_request *request, const char *expected)
{
    struct err err = {0};
    char *bytes = NULL;
    size_t size = 0;
    if (http_request_build(request, &bytes, &size, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(bytes, expected, size);
    free(bytes);
}

static void expect_error(const struct http_request *request, const char *part)
{
    struct err err = {0};
    char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(http_request_build(request, &bytes, &size, &err), -22); /* EINVAL */
    assert_int_equal(err.code, 22);
    if (strstr(err.text, part) == NULL)
        fail_msg("'%s' does not name '%s'", err.text, part);
    assert_null(bytes);
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(http_request_build(request, &bytes, &size, NULL), -22);
}

static struct http_request with(const char *const *headers, size_t count)
{
    struct http_request request = get;
    request.headers = headers;
    request.header_count = count;
    return request;
}

static void get_has_a_host(void **state)
{
    (void)state;
    expect_bytes(&get, "GET / HTTP/1.1\r\nHost: a:80\r\n\r\n");
    struct http_request request = get;
    request.host = "";
    expect_bytes(&request, "GET / HTTP/1.1\r\nHost: \r\n\r\n");
    request.host = NULL;
    expect_error(&request, "host");
}

static void headers_follow_in_order(void **state)
{
    (void)state;
    const char *const headers[] = {"Accept: */*", "X:", "x:y: z"};
    struct http_request request = with(headers, 3);
    request.method = "OPTIONS";
    request.target = "*";
    expect_bytes(&request,
                 "OPTIONS * HTTP/1.1\r\nHost: a:80\r\nAccept: */*\r\nX:\r\nx:y: z\r\n\r\n");
}

static void a_host_of_the_callers_replaces(void **state)
{
    (void)state;
    const char *const headers[] = {"A: b", "hOST: c"};
    struct http_request request = with(headers, 2);
    expect_bytes(&request, "GET / HTTP/1.1\r\nA: b\r\nhOST: c\r\n\r\n");
    request.host = NULL;
    expect_bytes(&request, "GET / HTTP/1.1\r\nA: b\r\nhOST: c\r\n\r\n");
    const char *const near[] = {"Hosts: c", "Hos: c"};
    request = with(near, 2);
    expect_bytes(&request, "GET / HTTP/1.1\r\nHost: a:80\r\nHosts: c\r\nHos: c\r\n\r\n");
}

static void a_body_has_its_length(void **state)
{
    (void)state;
    struct http_request request = get;
    request.method = "POST";
    request.body = "a\r\nb";
    request.body_bytes = 4;
    expect_bytes(&request, "POST / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 4\r\n\r\na\r\nb");
    request.method = "GET";
    expect_bytes(&request, "GET / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 4\r\n\r\na\r\nb");
    request.body = "a";
    request.body_bytes = 1;
    expect_bytes(&request, "GET / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 1\r\n\r\na");
    request.body = "";
    request.body_bytes = 0;
    expect_bytes(&request, "GET / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\n\r\n");
}

static void a_body_may_hold_nul(void **state)
{
    (void)state;
    struct http_request request = get;
    request.body = "a\0b";
    request.body_bytes = 3;
    char *bytes;
    size_t size;
    assert_int_equal(http_request_build(&request, &bytes, &size, NULL), 0);
    static const char expected[] = "GET / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 3\r\n\r\na\0b";
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(bytes, expected, size);
    free(bytes);
}

static void methods_with_a_body_say_that_it_is_empty(void **state)
{
    (void)state;
    struct http_request request = get;
    request.method = "POST";
    expect_bytes(&request, "POST / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\n\r\n");
    request.method = "PUT";
    expect_bytes(&request, "PUT / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\n\r\n");
    request.method = "PATCH";
    expect_bytes(&request, "PATCH / HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\n\r\n");
    request.method = "post";
    expect_bytes(&request, "post / HTTP/1.1\r\nHost: a:80\r\n\r\n");
    request.method = "DELETE";
    expect_bytes(&request, "DELETE / HTTP/1.1\r\nHost: a:80\r\n\r\n");
}

static void framing_of_the_callers_replaces(void **state)
{
    (void)state;
    const char *const length[] = {"content-length: 9"};
    struct http_request request = with(length, 1);
    request.body = "hello";
    request.body_bytes = 5;
    expect_bytes(&request, "GET / HTTP/1.1\r\nHost: a:80\r\ncontent-length: 9\r\n\r\nhello");
    const char *const chunked[] = {"Transfer-Encoding: chunked"};
    request = with(chunked, 1);
    request.method = "POST";
    request.body = "0\r\n\r\n";
    request.body_bytes = 5;
    expect_bytes(&request, "POST / HTTP/1.1\r\nHost: a:80\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "0\r\n\r\n");
    const char *const both[] = {"Transfer-Encoding: chunked", "Content-Length: 5"};
    request = with(both, 2);
    expect_error(&request, "Transfer-Encoding");
}

static void headers_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *header, *part;
    } cases[] = {
        {"no colon", "colon"},    {"", "colon"},
        {": x", "header name"},   {"a b: x", "header name"},
        {"a : x", "header name"}, {" a: x", "header name"},
        {"a\r\n: x", "0x0d"},     {"a: x\r\nb: y", "header"},
        {"a: x\n", "header"},     {"a: x\r", "header"},
        {"a: \x7f", "header"},    {"a: \x01", "header"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_request request = with(&cases[i].header, 1);
        expect_error(&request, cases[i].part);
    }
    const char *const hosts[] = {"Host: a", "host: b"};
    struct http_request request = with(hosts, 2);
    expect_error(&request, "Host");
    const char *const lengths[] = {"Content-Length: 0", "Content-Length: 0"};
    request = with(lengths, 2);
    expect_error(&request, "Content-Length");
    const char *const three[] = {"Host: a", "Content-Length: 0", "Content-Length: 0"};
    request = with(three, 3);
    expect_error(&request, "Content-Length");
}

static void methods_are_tokens(void **state)
{
    (void)state;
    static const char *const methods[] = {"", "G T", "GET ", "GET\r\n", "GÉT", "G/T", "G:"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct http_request request = get;
        request.method = methods[i];
        expect_error(&request, "method");
    }
    struct http_request request = get;
    request.method = "M-SEARCH";
    expect_bytes(&request, "M-SEARCH / HTTP/1.1\r\nHost: a:80\r\n\r\n");
}

static void targets_hold_no_space_or_control(void **state)
{
    (void)state;
    static const char *const targets[] = {"", "/a b", " /", "/ ", "/\t", "/\r\n", "/\x7f", "/a\nb"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct http_request request = get;
        request.target = targets[i];
        expect_error(&request, "target");
    }
    struct http_request request = get;
    request.target = "http://b/?c=d";
    expect_bytes(&request, "GET http://b/?c=d HTTP/1.1\r\nHost: a:80\r\n\r\n");
}

static void hosts_hold_no_line_end(void **state)
{
    (void)state;
    static const char *const hosts[] = {"a\r\nb: c", "a\n", "a\r", "\x01"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct http_request request = get;
        request.host = hosts[i];
        expect_error(&request, "host");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_has_a_host),
        cmocka_unit_test(headers_follow_in_order),
        cmocka_unit_test(a_host_of_the_callers_replaces),
        cmocka_unit_test(a_body_has_its_length),
        cmocka_unit_test(a_body_may_hold_nul),
        cmocka_unit_test(methods_with_a_body_say_that_it_is_empty),
        cmocka_unit_test(framing_of_the_callers_replaces),
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(methods_are_tokens),
        cmocka_unit_test(targets_hold_no_space_or_control),
        cmocka_unit_test(hosts_hold_no_line_end),
    };
    return cmocka_run_group_tests_name("http request", tests, NULL, NULL);
}
