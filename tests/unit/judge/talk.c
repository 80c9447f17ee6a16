/* Expectations held against a peer that sends what a test tells it to. */
#include "judge/talk.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HELLO                                                                                      \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello World\n"
#define REFUSAL "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"

/* What the peer sends at its nth read of a connection; NULL: nothing. It closes after the last if
 * `closes`, else when the client does. */
static struct {
    int fd;
    const char *answers[4];
    unsigned count;
    bool closes;
} peer;

static void serve(int fd)
{
    char bytes[4096];
    for (unsigned i = 0; recv(fd, bytes, sizeof bytes, 0) > 0; i++) {
        const char *answer = i < peer.count ? peer.answers[i] : NULL;
        if (answer != NULL && send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
            break;
        if (peer.closes && i + 1 >= peer.count)
            break;
    }
    close(fd);
}

static void *accept_all(void *context)
{
    (void)context;
    for (int fd; (fd = accept(peer.fd, NULL, NULL)) >= 0;)
        serve(fd);
    return NULL;
}

static struct talk_peer meet(void)
{
    struct talk_peer met;
    struct sockaddr_in address;
    struct err err = {0};
    socklen_t size = sizeof address;
    peer.answers[0] = HELLO;
    peer.count = 1;
    peer.closes = false;
    getsockname(peer.fd, (struct sockaddr *)&address, &size);
    if (talk_meet(&met, &address, &err) != 0)
        fail_msg("%s", err.text);
    return met;
}

static struct talk_outcome carry_out(const char *blocks)
{
    static struct talk_peer met;
    struct page page;
    struct err err = {0};
    struct talk_outcome outcome;
    char text[2048];
    const struct sockaddr_in none = {0};
    if (memcmp(&met.address, &none, sizeof none) == 0) {
        const char *answers[4];
        unsigned count = peer.count;
        bool closes = peer.closes;
        memcpy(answers, peer.answers, sizeof answers);
        met = meet();
        memcpy(peer.answers, answers, sizeof answers);
        peer.count = count;
        peer.closes = closes;
    }
    snprintf(text, sizeof text, "# Z01: t\n- level: MUST\n- source: s\n- gate: no\n\nWhy.\n\n%s",
             blocks);
    if (page_read("Z01.md", text, &page, &err) != 0)
        fail_msg("%s", err.text);
    talk_carry_out(&met, &page.variants[0], 1, 0, &outcome);
    page_free(&page);
    return outcome;
}

#define GET "```send\nGET / HTTP/1.1\\r\\n\n\\r\\n\n```\n"

/* One send and an expectation against one answer. */
static void check(const char *answer, bool closes, const char *expected, const char *problem)
{
    char blocks[512];
    peer.answers[0] = answer;
    peer.count = 1;
    peer.closes = closes;
    snprintf(blocks, sizeof blocks, GET "```expect\n%s\n```\n", expected);
    struct talk_outcome outcome = carry_out(blocks);
    if (problem == NULL && !outcome.passed)
        fail_msg("'%s' not met: %s", expected, outcome.problem);
    if (problem != NULL && (outcome.passed || strstr(outcome.problem, problem) == NULL))
        fail_msg("'%s': expected '%s', came '%s'", expected, problem,
                 outcome.passed ? "passed" : outcome.problem);
    if (problem != NULL)
        assert_true(outcome.sent != NULL && outcome.came != NULL && outcome.expected != NULL);
    talk_outcome_clear(&outcome);
}

static void test_statuses(void **state)
{
    (void)state;
    check(HELLO, false, "200", NULL);
    check(HELLO, false, "2xx", NULL);
    check(HELLO, false, "any", NULL);
    check(REFUSAL, false, "200|400", NULL);
    check(REFUSAL, false, "200", "expected status 200, came 400");
    check(HELLO HELLO, false, "200, 200", NULL);
    check(HELLO HELLO, false, "200", "bytes more");
    check(HELLO, true, "200, 200", "the server closed");
    check("HTTP/1.1 banana", true, "any", "no answer");
    check(HELLO "a body more", true, "200, 200", "behind an answer is none (a body");
}

static void test_words(void **state)
{
    (void)state;
    check(HELLO, false, "200 hello text sized framed single http/1.1", NULL);
    check("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello Mars!\n",
          false, "200 hello", "Hello Mars");
    check(HELLO, false, "200 close", "Connection: close");
    check("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", true,
          "200 close, closed", NULL);
    check("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", false,
          "200 keep-alive", NULL);
    check(HELLO, false, "200 keep-alive", "keep-alive");
    check(HELLO, false, "200 dated", "Date");
    check("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n", false, "any allow", "Allow");
    check("HTTP/1.1 405 No\r\nAllow: GET\r\nContent-Length: 0\r\n\r\n", false, "any allow", NULL);
    check("HTTP/1.1 200 OK\r\nServer: a\r\nServer: b\r\nContent-Length: 0\r\n\r\n", false,
          "200 single", "Server on two lines");
    check("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", true, "200 http/1.1, closed", "HTTP/1.0");
    check("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\n", false,
          "200 hello head", NULL);
    check("HTTP/1.1 200 OK\r\n\r\nHello", true, "200 sized, closed", "no Content-Length");
}

static void test_ends(void **state)
{
    (void)state;
    check(NULL, true, "closed", NULL);
    check(NULL, false, "closed", "nothing came");
    check(HELLO, true, "closed", "an answer came, status 200");
    check(HELLO, false, "200, open", NULL);
    check(HELLO, true, "200, open", "the server closed");
    check(NULL, false, "nothing 50ms", NULL);
    uint64_t began_ns = clock_now_ns();
    check(NULL, false, "nothing 2200ms", NULL); /* longer than an answer is waited for */
    assert_true(clock_now_ns() - began_ns >= 2200 * NS_PER_MS);
    check(HELLO, false, "nothing 50ms", "an answer came");
    check(NULL, true, "nothing 50ms", "the server closed");
    check(REFUSAL, true, "no 2xx", NULL);
    check(NULL, false, "no 2xx", NULL);
    check(HELLO, false, "no 2xx", "status 200");
}

static void test_alternatives(void **state)
{
    (void)state;
    check(REFUSAL, true, "400, closed\nor 200 hello", NULL);
    check(HELLO, false, "400, closed\nor 200 hello", NULL);
    check(REFUSAL, false, "400, closed\nor 200 hello", "expected closed, but nothing came");
    check("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", false, "400, closed\nor 200",
          "expected status 400");
    peer.answers[0] = HELLO;
    struct talk_outcome outcome = carry_out(GET "```expect\n400\nor noted: 200\n```\n");
    assert_true(outcome.passed && outcome.noted);
    talk_outcome_clear(&outcome);
    outcome = carry_out(GET "```expect\n200\nor noted: 200\n```\n");
    assert_true(outcome.passed && !outcome.noted);
    talk_outcome_clear(&outcome);
}

static void in_sync(const char *probe_answer, bool closes, const char *expected,
                    const char *problem)
{
    char blocks[256];
    peer.answers[0] = REFUSAL;
    peer.answers[1] = probe_answer;
    peer.count = 2;
    peer.closes = closes;
    snprintf(blocks, sizeof blocks, GET "```expect\n%s\n```\n", expected);
    struct talk_outcome outcome = carry_out(blocks);
    if (outcome.passed != (problem == NULL))
        fail_msg("'%s': %s", expected, outcome.passed ? "passed" : outcome.problem);
    if (problem != NULL && strstr(outcome.problem, problem) == NULL)
        fail_msg("'%s' does not name '%s'", outcome.problem, problem);
    talk_outcome_clear(&outcome);
}

static void test_in_sync(void **state)
{
    (void)state;
    in_sync(HELLO, true, "400, in sync", NULL);
    in_sync(HELLO, false, "400, in sync", NULL);
    in_sync(HELLO, true, "400, closed\nor 400, in sync", NULL);
    in_sync(HELLO HELLO, true, "400, in sync", "more than one answer");
    in_sync(REFUSAL, true, "400, in sync", "out of sync");
    in_sync(NULL, true, "400, in sync", "out of sync");
    check(REFUSAL, true, "400, in sync", "out of sync");
}

static void test_100(void **state)
{
    (void)state;
    check("HTTP/1.1 100 Continue\r\n\r\n", false, "100", NULL);
    check("HTTP/1.1 100 Continue\r\n\r\n" HELLO, false, "200 after-100", NULL);
    check("HTTP/1.1 100 Continue\r\n\r\n" HELLO, false, "200 no-100", "a 1xx came");
    check(HELLO, false, "200 after-100", "no 100 came");
    check(HELLO, false, "100\nor any", NULL);
    check("HTTP/1.1 100 Continue\r\n\r\n", false, "nothing 50ms", "a 1xx came");
}

static void test_times(void **state)
{
    (void)state;
    peer.answers[0] = HELLO HELLO HELLO;
    peer.count = 1;
    peer.closes = false;
    struct talk_outcome outcome =
        carry_out("```send times 3\nGET\n```\n```expect\n200 hello as-often\n```\n");
    assert_true(outcome.passed);
    talk_outcome_clear(&outcome);
    outcome = carry_out("```send times 2\nGET\n```\n```expect\n200 hello as-often\n```\n");
    assert_false(outcome.passed);
    talk_outcome_clear(&outcome);
}

static int start(void **state)
{
    static pthread_t thread;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)state;
    peer.fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(peer.fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(peer.fd, 16) != 0)
        return -1;
    return pthread_create(&thread, NULL, accept_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses), cmocka_unit_test(test_words),
        cmocka_unit_test(test_ends),     cmocka_unit_test(test_alternatives),
        cmocka_unit_test(test_in_sync),  cmocka_unit_test(test_100),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests_name("judge/talk", tests, start, NULL);
}
