/* The hammer against peers of known behaviour: it must report exactly what was planted, with both
 * engines. Each test ends with the identity of the counts.
 */
#include "hammer/hammer.h"

#include "base/clock.h"
#include "peer.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <stddef.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define OK_ANSWER                                                                                  \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello World\n"
#define REQUEST "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

static struct peer peer;
static struct hammer_result result;
static struct err err;

/* ---- what every test needs */

static struct hammer_config config_make(void **state)
{
    return (struct hammer_config){
        .address = peer.address,
        .engine = *(const enum hammer_engine *)*state,
        .connections = 4,
        .threads = 1,
        .pipeline = 1,
        .requests = 100,
        .timeout_ns = 2 * NS_PER_S,
        .drain_ns = 500 * NS_PER_MS,
        .request = REQUEST,
        .request_bytes = sizeof REQUEST - 1,
        .expect = {.status = 200, .body = "Hello World\n", .body_bytes = 12},
    };
}

static void check_identity(void)
{
    const struct hammer_counts *t = &result.total;
    uint64_t sum = t->valid + t->wrong + t->timed_out + t->in_flight;
    for (int kind = 0; kind < HAMMER_ERROR_KINDS; kind++)
        sum += t->errors[kind];
    assert_int_equal(t->sent, sum);
    assert_int_equal(result.valid, result.latency.count);
}

static void run_ok(const struct hammer_config *config)
{
    int status = hammer_run(config, &result, &err);
    if (status != 0)
        fail_msg("hammer_run: %s", err.text);
    assert_int_equal(result.engine, config->engine);
    check_identity();
}

/* Runs against a peer of this behaviour, and ends it. */
static void run_against(const struct hammer_config *config, void (*serve)(struct talk *))
{
    struct hammer_config own = *config;
    peer_start(&peer, serve);
    own.address = peer.address;
    run_ok(&own);
    peer_stop(&peer);
}

static void check_counts(uint64_t valid, uint64_t wrong, uint64_t timed_out)
{
    assert_int_equal(result.total.valid, valid);
    assert_int_equal(result.total.wrong, wrong);
    assert_int_equal(result.total.timed_out, timed_out);
}

static void check_one_error(enum hammer_error kind, uint64_t count)
{
    for (int other = 0; other < HAMMER_ERROR_KINDS; other++)
        assert_int_equal(result.total.errors[other], other == (int)kind ? count : 0);
}

#define NO_ERROR HAMMER_ERROR_KINDS, 0

/* ---- answers that are right */

static void serve_good(struct talk *t)
{
    while (talk_request(t) && talk_say(t, OK_ANSWER))
        ;
}

static void test_count_is_exact(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 1001;
    run_against(&config, serve_good);
    check_counts(1001, 0, 0);
    check_one_error(NO_ERROR);
    assert_int_equal(result.total.sent, 1001);
    assert_int_equal(result.valid, 1001);
    assert_int_equal(result.status[200], 1001);
    assert_int_equal(result.bytes_read, 1001 * (sizeof OK_ANSWER - 1));
    assert_int_equal(result.connections_established, 4);
    assert_int_equal(atomic_load(&peer.requests), 1001);
    assert_int_equal(atomic_load(&peer.accepted), 4);
    assert_int_equal(result.scanned, 4); /* each connection's first answer */
    assert_string_equal(result.first_wrong, "");
    assert_int_equal(result.reconnects, 0);
}

static void test_fewer_requests_than_connections(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 3;
    config.connections = 9;
    run_against(&config, serve_good);
    check_counts(3, 0, 0);
    assert_int_equal(result.connections_established, 9);
    assert_int_equal(atomic_load(&peer.accepted), 9);
}

static void test_threads_share_the_remainder(void **state)
{
    struct hammer_config config = config_make(state);
    config.connections = 37;
    config.threads = 4;
    config.requests = 1003;
    run_against(&config, serve_good);
    check_counts(1003, 0, 0);
    assert_int_equal(result.connections_established, 37);
    assert_int_equal(atomic_load(&peer.accepted), 37);
    assert_int_equal(atomic_load(&peer.requests), 1003);
}

static void test_pipeline_is_answered_in_full(void **state)
{
    struct hammer_config config = config_make(state);
    config.pipeline = 16;
    config.requests = 1000;
    run_against(&config, serve_good);
    check_counts(1000, 0, 0);
    check_one_error(NO_ERROR);
    assert_int_equal(atomic_load(&peer.requests), 1000);
}

static void test_more_connections_than_the_backlog(void **state)
{
    struct hammer_config config = config_make(state);
    config.connections = 600;
    config.requests = 1200;
    uint64_t begun_ns = clock_now_ns();
    run_against(&config, serve_good);
    check_counts(1200, 0, 0);
    assert_int_equal(result.connections_established, 600);
    assert_int_equal(result.connect_failures, 0);
    assert_true(clock_now_ns() - begun_ns < 10 * NS_PER_S);
}

static void serve_after_5_ms(struct talk *t)
{
    while (talk_request(t)) {
        sleep_ms(5);
        if (!talk_say(t, OK_ANSWER))
            return;
    }
}

static void test_delay_is_found(void **state)
{
    struct hammer_config config = config_make(state);
    uint64_t p50_ns;
    config.requests = 0;
    config.duration_ns = 300 * NS_PER_MS;
    config.settle_ns = 50 * NS_PER_MS;
    run_against(&config, serve_after_5_ms);
    assert_int_equal(histogram_quantile_ns(&result.latency, 0.5, &p50_ns), 0);
    assert_true(result.latency.min_ns >= 5 * NS_PER_MS);
    assert_true(p50_ns < 20 * NS_PER_MS);
    assert_true(fabs(result.little - 1) < 0.15);
    assert_true(result.window_ns >= config.duration_ns);
    assert_true(result.window_ns < config.duration_ns + 100 * NS_PER_MS);
    assert_true(result.valid < result.total.valid); /* ramp and settling are not in the window */
    assert_int_equal(result.total.in_flight, 0);
}

static void serve_chunked(struct talk *t)
{
    while (talk_request(t) && talk_say(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                          "6\r\nHello \r\n6\r\nWorld\n\r\n0\r\n\r\n"))
        ;
}

static void test_chunked(void **state)
{
    struct hammer_config config = config_make(state);
    run_against(&config, serve_chunked);
    check_counts(100, 0, 0);
    assert_int_equal(result.scanned, 100);
}

static void serve_early_hints(struct talk *t)
{
    while (talk_request(t) &&
           talk_say(t, "HTTP/1.1 100 Continue\r\n\r\n"
                       "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" OK_ANSWER))
        ;
}

static void test_informational_is_skipped(void **state)
{
    struct hammer_config config = config_make(state);
    run_against(&config, serve_early_hints);
    check_counts(100, 0, 0);
    assert_int_equal(result.status[200], 100);
    assert_int_equal(result.status[103], 0);
}

static void serve_head(struct talk *t)
{
    while (talk_request(t) && talk_say(t, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"))
        ;
}

static void test_head_has_no_body(void **state)
{
    struct hammer_config config = config_make(state);
    config.expect.head = true;
    config.request = "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    config.request_bytes = strlen(config.request);
    run_against(&config, serve_head);
    check_counts(100, 0, 0);
}

/* Cuts each answer at another place, the first of a connection too. */
static void serve_split(struct talk *t)
{
    size_t cut = t->nth;
    while (talk_request(t)) {
        cut = cut % (sizeof OK_ANSWER - 2) + 1;
        if (!talk_write(t, OK_ANSWER, cut))
            return;
        sleep_ms(1);
        if (!talk_write(t, OK_ANSWER + cut, sizeof OK_ANSWER - 1 - cut))
            return;
    }
}

static void test_split_anywhere(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 4 * sizeof OK_ANSWER;
    run_against(&config, serve_split);
    check_counts(4 * sizeof OK_ANSWER, 0, 0);
    check_one_error(NO_ERROR);
}

static void serve_bytes_one_by_one(struct talk *t)
{
    while (talk_request(t))
        for (size_t i = 0; i < sizeof OK_ANSWER - 1; i++) {
            if (!talk_write(t, OK_ANSWER + i, 1))
                return;
            if (i % 8 == 0)
                sleep_ms(1);
        }
}

static void test_bytes_one_by_one(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 20;
    run_against(&config, serve_bytes_one_by_one);
    check_counts(20, 0, 0);
}

/* As valid as the usual answer, but shorter, longer or with a body of another kind each time, and
 * cut in two, so that what was held for the usual one must go to the scanner. */
static void serve_varied(struct talk *t)
{
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nServer: a\r\nContent-Length: 12\r\n\r\n",
        "HTTP/1.1 200 Fine\r\nContent-Type: text/plain\r\nContent-Length:   12\r\n\r\n",
    };
    for (unsigned i = 0; talk_request(t); i++) {
        const char *head = heads[i / 2 % 4];
        size_t cut = 16 + i % 24;
        if (!talk_write(t, head, cut))
            return;
        sleep_ms(i % 2);
        if (!talk_say(t, head + cut) || !talk_say(t, "Hello World\n"))
            return;
    }
}

static void test_valid_but_different(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 400;
    run_against(&config, serve_varied);
    check_counts(400, 0, 0);
    check_one_error(NO_ERROR);
    assert_true(result.scanned >= 100);
}

static char *large_answer;
#define LARGE_BYTES 1000000

static void serve_large(struct talk *t)
{
    char head[128];
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LARGE_BYTES);
    while (talk_request(t) && talk_say(t, head) && talk_write(t, large_answer, LARGE_BYTES))
        ;
}

static void test_large_answers(void **state)
{
    struct hammer_config config = config_make(state);
    large_answer = malloc(LARGE_BYTES);
    memset(large_answer, 'x', LARGE_BYTES);
    config.expect.body = NULL;
    config.requests = 40;
    run_against(&config, serve_large);
    check_counts(40, 0, 0);
    assert_true(result.bytes_read > UINT64_C(40) * LARGE_BYTES);
    free(large_answer);
}

/* Reads a body of LARGE_BYTES slowly. */
static void serve_upload(struct talk *t)
{
    while (talk_request(t)) {
        size_t left = LARGE_BYTES - t->size;
        t->size = 0;
        sleep_ms(2);
        while (left > 0) {
            ssize_t got = recv(t->fd, t->in, left < 30000 ? left : 30000, 0);
            if (got <= 0)
                return;
            left -= (size_t)got;
        }
        if (!talk_say(t, OK_ANSWER))
            return;
    }
}

static void test_large_requests(void **state)
{
    struct hammer_config config = config_make(state);
    static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    char *request = malloc(sizeof head + LARGE_BYTES);
    memcpy(request, head, sizeof head - 1);
    memset(request + sizeof head - 1, 'x', LARGE_BYTES);
    config.request = request;
    config.request_bytes = sizeof head - 1 + LARGE_BYTES;
    config.requests = 40;
    run_against(&config, serve_upload);
    check_counts(40, 0, 0);
    check_one_error(NO_ERROR);
    assert_int_equal(atomic_load(&peer.requests), 40);
    free(request);
}

/* ---- ends of connections that are no fault */

static void serve_until_close(struct talk *t)
{
    if (talk_request(t))
        talk_say(t, "HTTP/1.1 200 OK\r\n\r\nHello World\n");
}

static void test_end_of_connection_ends_the_body(void **state)
{
    struct hammer_config config = config_make(state);
    run_against(&config, serve_until_close);
    check_counts(100, 0, 0);
    check_one_error(NO_ERROR);
    assert_int_equal(atomic_load(&peer.requests), 100);
    assert_true(result.reconnects >= 96);
}

static void serve_one_and_close(struct talk *t)
{
    if (talk_request(t))
        talk_say(t, "HTTP/1.0 200 OK\r\nContent-Length: 12\r\n\r\nHello World\n");
}

static void test_http_1_0_closes(void **state)
{
    struct hammer_config config = config_make(state);
    run_against(&config, serve_one_and_close);
    check_counts(100, 0, 0);
    check_one_error(NO_ERROR);
}

static void serve_announced_close(struct talk *t)
{
    if (talk_request(t))
        talk_say(t, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\n"
                    "Hello World\n");
}

static void test_close_each(void **state)
{
    struct hammer_config config = config_make(state);
    config.close_each = true;
    config.expect.close = true;
    run_against(&config, serve_announced_close);
    check_counts(100, 0, 0);
    check_one_error(NO_ERROR);
    assert_int_equal(atomic_load(&peer.accepted), 100);
    assert_int_equal(result.reconnects, 0);
    assert_int_equal(result.unclosed, 0);
}

static void test_close_each_for_a_time(void **state)
{
    struct hammer_config config = config_make(state);
    config.close_each = true;
    config.requests = 0;
    config.duration_ns = 100 * NS_PER_MS;
    config.settle_ns = 20 * NS_PER_MS;
    run_against(&config, serve_announced_close);
    assert_true(result.valid > 0);
    check_counts(result.total.sent, 0, 0);
    assert_int_equal(atomic_load(&peer.requests), result.total.sent);
}

static void serve_unkept_promise(struct talk *t)
{
    serve_announced_close(t);
    talk_request(t);
}

static void test_announced_close_that_does_not_come(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 8;
    config.timeout_ns = 100 * NS_PER_MS;
    run_against(&config, serve_unkept_promise);
    check_counts(8, 0, 0);
    assert_true(result.unclosed >= 4);
}

/* ---- faults, by kind */

static void serve_wrong_body(struct talk *t)
{
    while (talk_request(t) &&
           talk_say(t, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHello world\n"))
        ;
}

static void test_wrong_body(void **state)
{
    struct hammer_config config = config_make(state);
    run_against(&config, serve_wrong_body);
    check_counts(0, 100, 0);
    check_one_error(NO_ERROR);
    assert_int_equal(result.failed, 100);
    assert_int_equal(result.latency.count, 0);
    assert_non_null(strstr(result.first_wrong, "body"));
    assert_true(isnan(result.little));
}

/* A pattern has been learnt by then. */
static void serve_every_tenth_wrong(struct talk *t)
{
    static const char wrong[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello Worle\n";
    for (unsigned i = 1; talk_request(t); i++)
        if (!talk_say(t, i % 10 == 0 ? wrong : OK_ANSWER))
            return;
}

static void test_every_tenth_wrong(void **state)
{
    struct hammer_config config = config_make(state);
    config.connections = 1;
    config.requests = 1000;
    run_against(&config, serve_every_tenth_wrong);
    check_counts(900, 100, 0);
    assert_int_equal(result.valid, 900);
}

static void serve_502_and_503(struct talk *t)
{
    for (unsigned i = 0; talk_request(t); i++)
        if (!talk_say(t, i % 4 == 0
                             ? "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
                             : "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"))
            return;
}

static void test_status_by_code(void **state)
{
    struct hammer_config config = config_make(state);
    config.connections = 1;
    run_against(&config, serve_502_and_503);
    check_counts(0, 100, 0);
    assert_int_equal(result.status[503], 25);
    assert_int_equal(result.status[502], 75);
}

static void serve_every_tenth_reset(struct talk *t)
{
    while (talk_request(t)) {
        if (atomic_load(&t->peer->requests) % 10 == 0) {
            talk_reset(t);
            return;
        }
        if (!talk_say(t, OK_ANSWER))
            return;
    }
}

static void test_every_tenth_reset(void **state)
{
    struct hammer_config config = config_make(state);
    config.connections = 1;
    run_against(&config, serve_every_tenth_reset);
    check_counts(90, 0, 0);
    check_one_error(HAMMER_ERROR_RESET, 10);
    assert_int_equal(result.errnos[ECONNRESET], 10);
    assert_int_equal(result.failed, 10);
    assert_int_equal(result.reconnects, 10);
}

static void serve_half_answers(struct talk *t)
{
    if (talk_request(t) && talk_say(t, OK_ANSWER) && talk_request(t))
        talk_write(t, OK_ANSWER, sizeof OK_ANSWER - 5);
}

static void test_closed_in_the_middle(void **state)
{
    struct hammer_config config = config_make(state);
    config.connections = 1;
    run_against(&config, serve_half_answers);
    check_counts(50, 0, 0);
    check_one_error(HAMMER_ERROR_CLOSED, 50);
    assert_non_null(strstr(result.first_wrong, "closed"));
}

static void serve_close_at_request(struct talk *t)
{
    talk_request(t);
}

static void test_closed_without_a_byte(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 20;
    run_against(&config, serve_close_at_request);
    check_counts(0, 0, 0);
    check_one_error(HAMMER_ERROR_CLOSED, 20);
}

static void serve_pipeline_cut_short(struct talk *t)
{
    if (talk_request(t) && talk_request(t))
        talk_say(t, OK_ANSWER);
    while (t->size > 0 && talk_request(t))
        ;
}

static void test_pipeline_dropped(void **state)
{
    struct hammer_config config = config_make(state);
    config.connections = 1;
    config.pipeline = 4;
    config.requests = 4;
    run_against(&config, serve_pipeline_cut_short);
    check_counts(1, 0, 0);
    check_one_error(HAMMER_ERROR_CLOSED, 3);
}

static void serve_not_http(struct talk *t)
{
    while (talk_request(t) && talk_say(t, "220 mail.example.com ESMTP\r\n"))
        ;
}

static void test_malformed(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 12;
    run_against(&config, serve_not_http);
    check_counts(0, 0, 0);
    check_one_error(HAMMER_ERROR_MALFORMED, 12);
    assert_true(result.first_wrong[0] != '\0');
}

static void serve_twice(struct talk *t)
{
    while (talk_request(t) && talk_say(t, OK_ANSWER OK_ANSWER))
        ;
}

static void test_answer_nobody_asked_for(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 12;
    run_against(&config, serve_twice);
    check_counts(0, 0, 0);
    check_one_error(HAMMER_ERROR_MALFORMED, 12);
    assert_non_null(strstr(result.first_wrong, "asked for"));
}

static void serve_nothing(struct talk *t)
{
    while (talk_request(t))
        ;
}

static void test_never_answered(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 8;
    config.timeout_ns = 100 * NS_PER_MS;
    run_against(&config, serve_nothing);
    check_counts(0, 0, 8);
    check_one_error(NO_ERROR);
    assert_non_null(strstr(result.first_wrong, "100 ms"));
    assert_non_null(strstr(result.first_wrong, "not a byte"));
    assert_true(result.window_ns >= 200 * NS_PER_MS);
    assert_true(result.window_ns < 2 * NS_PER_S);
}

static void serve_no_framing(struct talk *t)
{
    while (talk_request(t) && talk_say(t, "HTTP/1.1 200 OK\r\n\r\nHello World\n"))
        ;
}

/* As fast as a peer can write, and slow to scan: the socket is never found empty. */
static void serve_flood(struct talk *t)
{
    static const char hint[] = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
    const size_t hint_bytes = sizeof hint - 1;
    enum { HINTS = 1000 };
    char *hints = malloc(HINTS * hint_bytes);
    for (size_t i = 0; i < HINTS; i++)
        memcpy(hints + i * hint_bytes, hint, hint_bytes);
    if (talk_request(t))
        while (talk_write(t, hints, HINTS * hint_bytes))
            ;
    free(hints);
}

static void test_a_flood_holds_up_nothing(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 12;
    config.timeout_ns = 200 * NS_PER_MS;
    uint64_t began_ns = clock_now_ns();
    run_against(&config, serve_flood);
    check_counts(0, 0, 12);
    assert_in_range(clock_now_ns() - began_ns, 600 * NS_PER_MS, 1500 * NS_PER_MS);
}

static void test_no_framing_says_so(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 4;
    config.timeout_ns = 100 * NS_PER_MS;
    run_against(&config, serve_no_framing);
    check_counts(0, 0, 4);
    assert_non_null(strstr(result.first_wrong, "neither Content-Length nor chunked"));
}

static void serve_after_400_ms(struct talk *t)
{
    if (talk_request(t))
        talk_say(t, OK_ANSWER);
    while (talk_request(t)) {
        sleep_ms(400);
        if (!talk_say(t, OK_ANSWER))
            return;
    }
}

static void test_drain_is_bounded(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 0;
    config.duration_ns = 100 * NS_PER_MS;
    config.drain_ns = 50 * NS_PER_MS;
    uint64_t begun_ns = clock_now_ns();
    run_against(&config, serve_after_400_ms);
    assert_true(clock_now_ns() - begun_ns < NS_PER_S);
    check_counts(4, 0, 0); /* of the ramp */
    assert_int_equal(result.total.in_flight, 4);
    assert_int_equal(result.valid, 0);
}

static void test_drain_collects_what_is_late(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 0;
    config.duration_ns = 100 * NS_PER_MS;
    config.drain_ns = 2 * NS_PER_S;
    run_against(&config, serve_after_400_ms);
    check_counts(8, 0, 0);
    assert_int_equal(result.total.in_flight, 0);
    assert_int_equal(result.valid, 0); /* not in the window */
}

static void serve_death(struct talk *t)
{
    while (talk_request(t) && atomic_load(&t->peer->requests) < 500 && talk_say(t, OK_ANSWER))
        ;
    shutdown(t->peer->fd, SHUT_RDWR);
}

static void test_server_dies_in_the_middle(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 0;
    config.duration_ns = 200 * NS_PER_MS;
    run_against(&config, serve_death);
    assert_true(result.total.valid >= 490);
    assert_true(
        result.total.errors[HAMMER_ERROR_CLOSED] + result.total.errors[HAMMER_ERROR_RESET] >= 1);
    assert_true(result.connect_failures > 0);
    assert_true(result.connect_failures < 500); /* no tight loop */
    assert_true(result.window_ns < NS_PER_S);
}

static void test_count_gives_up_on_a_dead_server(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 1000000;
    config.timeout_ns = 200 * NS_PER_MS;
    run_against(&config, serve_death);
    assert_true(result.total.sent < 1000);
    assert_true(result.window_ns < 3 * NS_PER_S);
}

/* ---- the run itself */

static void test_refused(void **state)
{
    struct hammer_config config = config_make(state);
    peer_start(&peer, serve_good);
    config.address = peer.address;
    peer_stop(&peer);
    assert_int_equal(hammer_run(&config, &result, &err), -ECONNREFUSED);
    assert_non_null(strstr(err.text, "refused"));
    assert_int_equal(result.connect_failures, 4);
    assert_int_equal(result.errnos[ECONNREFUSED], 4);
    check_identity();
}

static volatile sig_atomic_t stop;

static void *stop_soon(void *unused)
{
    sleep_ms(100);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    return unused;
}

static void test_stop(void **state)
{
    struct hammer_config config = config_make(state);
    pthread_t thread;
    config.requests = 0;
    config.duration_ns = 60 * NS_PER_S;
    config.threads = 2;
    config.stop = &stop;
    stop = 0;
    pthread_create(&thread, NULL, stop_soon, NULL);
    run_against(&config, serve_good);
    pthread_join(thread, NULL);
    assert_true(result.interrupted);
    assert_true(result.valid > 0);
    assert_true(result.window_ns < 10 * NS_PER_S);
}

static void test_stop_in_the_ramp(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 0;
    config.duration_ns = 60 * NS_PER_S;
    config.threads = 2;
    config.stop = &stop;
    stop = 1;
    run_against(&config, serve_nothing);
    assert_true(result.interrupted);
    assert_int_equal(result.window_ns, 0);
}

static int edges[8];
static unsigned edge_count;

static void on_edge(void *context, int edge)
{
    assert_ptr_equal(context, &edges);
    edges[edge_count++ % 8] = edge;
}

static void test_edges_come_once_each(void **state)
{
    struct hammer_config config = config_make(state);
    config.at_edge = on_edge;
    config.context = &edges;
    config.threads = 3;
    for (int by_count = 0; by_count < 2; by_count++) {
        config.requests = by_count ? 100 : 0;
        config.duration_ns = by_count ? 0 : 50 * NS_PER_MS;
        edge_count = 0;
        run_against(&config, serve_good);
        assert_int_equal(edge_count, 2);
        assert_int_equal(edges[0], 0);
        assert_int_equal(edges[1], 1);
        assert_true(result.cpu_user_ns + result.cpu_system_ns > 0);
    }
}

static void test_pinned(void **state)
{
    struct hammer_config config = config_make(state);
    cpu_set_t allowed;
    int cpu = 0;
    sched_getaffinity(0, sizeof allowed, &allowed);
    while (!CPU_ISSET((size_t)cpu, &allowed))
        cpu++;
    config.cpus = &cpu;
    run_against(&config, serve_good);
    check_counts(100, 0, 0);
    cpu = HAMMER_CONNECTIONS_MAX; /* no machine has it */
    assert_true(hammer_run(&config, &result, &err) < 0);
}

static void test_many_slices(void **state)
{
    struct hammer_config config = config_make(state);
    config.requests = 0;
    config.duration_ns = 5 * NS_PER_MS;
    config.settle_ns = 2 * NS_PER_MS;
    peer_start(&peer, serve_good);
    config.address = peer.address;
    for (int i = 0; i < 50; i++) {
        run_ok(&config);
        assert_true(result.total.valid >= 4);
        check_one_error(NO_ERROR);
        assert_int_equal(result.total.in_flight, 0);
        assert_int_equal(result.connections_established, 4);
    }
    peer_stop(&peer);
}

/* ---- what needs no peer */

static void check_invalid(struct hammer_config config)
{
    err.text[0] = '\0';
    assert_int_equal(hammer_run(&config, &result, &err), -EINVAL);
    assert_true(err.text[0] != '\0');
}

static void test_config_is_checked(void **state)
{
    struct hammer_config good = config_make(state);
    struct hammer_config bad = good;
    bad.connections = 0;
    check_invalid(bad);
    bad = good, bad.connections = HAMMER_CONNECTIONS_MAX + 1;
    check_invalid(bad);
    bad = good, bad.threads = 0;
    check_invalid(bad);
    bad = good, bad.threads = 5;
    check_invalid(bad);
    bad = good, bad.pipeline = 0;
    check_invalid(bad);
    bad = good, bad.pipeline = HAMMER_PIPELINE_MAX + 1;
    check_invalid(bad);
    bad = good, bad.duration_ns = NS_PER_S;
    check_invalid(bad);
    bad = good, bad.requests = 0;
    check_invalid(bad);
    bad = good, bad.settle_ns = 1;
    check_invalid(bad);
    bad = good, bad.timeout_ns = 0;
    check_invalid(bad);
    bad = good, bad.request_bytes = 0;
    check_invalid(bad);
    bad = good, bad.close_each = true, bad.pipeline = 2;
    check_invalid(bad);
}

static void test_file_limit(void **state)
{
    struct hammer_config config = config_make(state);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit low = {.rlim_cur = 64, .rlim_max = 64};
        setrlimit(RLIMIT_NOFILE, &low);
        config.connections = 65;
        bool good = hammer_run(&config, &result, &err) == -EMFILE && strstr(err.text, "ulimit");
        _exit(good ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_file_limit_is_raised(void **state)
{
    struct hammer_config config = config_make(state);
    peer_start(&peer, serve_good);
    config.address = peer.address;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit low;
        getrlimit(RLIMIT_NOFILE, &low);
        low.rlim_cur = 24;
        setrlimit(RLIMIT_NOFILE, &low);
        config.connections = 100;
        _exit(hammer_run(&config, &result, &err) == 0 && result.total.valid == 100 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    peer_stop(&peer);
}

/* Refuses io_uring_setup as a container's seccomp profile does. */
static void refuse_uring(int code)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = 4, .filter = filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void check_fallback(struct hammer_config config, int code)
{
    pid_t child = fork();
    if (child == 0) {
        refuse_uring(code);
        config.engine = HAMMER_URING;
        bool refused = hammer_run(&config, &result, &err) == -code && err.text[0] != '\0';
        config.engine = HAMMER_AUTO;
        bool fallen = hammer_run(&config, &result, &err) == 0 && result.engine == HAMMER_EPOLL &&
                      result.engine_reason[0] != '\0' && result.total.valid == 100;
        _exit(refused && fallen ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_fallback(void **state)
{
    peer_start(&peer, serve_good);
    check_fallback(config_make(state), EPERM);
    check_fallback(config_make(state), ENOSYS);
    peer_stop(&peer);
}

/* ---- both engines */

static enum hammer_engine engines[] = {HAMMER_EPOLL, HAMMER_URING};

static int setup(void **state)
{
    memset(&peer.address, 0, sizeof peer.address);
    if (*(const enum hammer_engine *)*state == HAMMER_URING && hammer_uring_probe(&err) != 0) {
        print_message("io_uring is not to be had: %s\n", err.text);
        *state = &engines[0];
    }
    return 0;
}

#define BOTH(test)                                                                                 \
    {#test ", epoll", test, setup, NULL, &engines[0]},                                             \
    {                                                                                              \
#test ", io_uring", test, setup, NULL, &engines[1]                                         \
    }
#define ONCE(test)                                                                                 \
    {                                                                                              \
#test, test, setup, NULL, &engines[0]                                                      \
    }

/* The peer's ends are this process's too, and a login shell's soft limit is often 1,024. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(void)
{
    raise_file_limit();
    const struct CMUnitTest tests[] = {
        BOTH(test_count_is_exact),
        BOTH(test_fewer_requests_than_connections),
        BOTH(test_threads_share_the_remainder),
        BOTH(test_pipeline_is_answered_in_full),
        BOTH(test_more_connections_than_the_backlog),
        BOTH(test_delay_is_found),
        BOTH(test_chunked),
        BOTH(test_informational_is_skipped),
        BOTH(test_head_has_no_body),
        BOTH(test_split_anywhere),
        BOTH(test_bytes_one_by_one),
        BOTH(test_valid_but_different),
        BOTH(test_large_answers),
        BOTH(test_large_requests),
        BOTH(test_end_of_connection_ends_the_body),
        BOTH(test_http_1_0_closes),
        BOTH(test_close_each),
        BOTH(test_close_each_for_a_time),
        BOTH(test_announced_close_that_does_not_come),
        BOTH(test_wrong_body),
        BOTH(test_every_tenth_wrong),
        BOTH(test_status_by_code),
        BOTH(test_every_tenth_reset),
        BOTH(test_closed_in_the_middle),
        BOTH(test_closed_without_a_byte),
        BOTH(test_pipeline_dropped),
        BOTH(test_malformed),
        BOTH(test_answer_nobody_asked_for),
        BOTH(test_never_answered),
        BOTH(test_a_flood_holds_up_nothing),
        BOTH(test_no_framing_says_so),
        BOTH(test_drain_is_bounded),
        BOTH(test_drain_collects_what_is_late),
        BOTH(test_server_dies_in_the_middle),
        BOTH(test_count_gives_up_on_a_dead_server),
        BOTH(test_refused),
        BOTH(test_stop),
        BOTH(test_stop_in_the_ramp),
        BOTH(test_edges_come_once_each),
        BOTH(test_pinned),
        BOTH(test_many_slices),
        ONCE(test_config_is_checked),
        ONCE(test_file_limit),
        BOTH(test_file_limit_is_raised),
        ONCE(test_fallback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
