/* Counters of a process tree where they are allowed, and reasons where not; quotas by hand. */
#include "host/perf.h"
#include "host/throttle.h"
#include "host/usage.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CALLS = 1000 };

static void *call_often(void *argument)
{
    for (int i = 0; i < CALLS; i++)
        syscall(SYS_getppid);
    return argument;
}

static void each_counter_works_or_says_why_not(void **state)
{
    (void)state;
    for (int c = 0; c < HOST_PERF_COUNTERS; c++) {
        char why[256];
        bool can = host_perf_probe((enum host_perf_counter)c, why, sizeof why);
        assert_int_equal(can, why[0] == '\0');
        print_message("%s: %s\n", host_perf_name((enum host_perf_counter)c), can ? "yes" : why);
    }
}

/* What is counted between two readings, given who makes the calls. */
static double counted_during(void (*work)(void))
{
    pid_t me = getpid();
    struct host_perf_counts before, after;
    struct host_perf *perf = host_perf_open(&me, 1);
    assert_non_null(perf);
    host_perf_read(perf, &before);
    work();
    host_perf_read(perf, &after);
    host_perf_close(perf);
    assert_true(before.known[HOST_PERF_SYSCALLS] && after.known[HOST_PERF_SYSCALLS]);
    return after.count[HOST_PERF_SYSCALLS] - before.count[HOST_PERF_SYSCALLS];
}

static void in_this_thread(void)
{
    call_often(NULL);
}

static void in_a_new_thread(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, call_often, NULL), 0);
    pthread_join(thread, NULL);
}

static void in_a_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        call_often(NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void system_calls_of_threads_and_children_count(void **state)
{
    static void (*const works[])(void) = {in_this_thread, in_a_new_thread, in_a_child};
    char why[256];
    (void)state;
    if (!host_perf_probe(HOST_PERF_SYSCALLS, why, sizeof why))
        skip();
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        double count = counted_during(works[i]);
        assert_true(count >= CALLS);
        assert_true(count < CALLS + 300);
    }
}

static void nobody_has_no_counters(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    assert_null(host_perf_open(&child, 1));
    assert_null(host_perf_open(NULL, 0));
    host_perf_close(NULL);
}

static void a_quota_s_counters_are_read_in_both_versions(void **state)
{
    struct host_throttle t = {0};
    (void)state;
    assert_true(host_throttle_add("usage_usec 5\nnr_periods 10\nnr_throttled 3\n"
                                  "throttled_usec 250\n",
                                  &t));
    assert_int_equal(t.times, 3);
    assert_int_equal(t.ns, 250000);
    assert_true(host_throttle_add("nr_periods 0\nnr_throttled 2\nthrottled_time 70\n", &t));
    assert_int_equal(t.times, 5);
    assert_int_equal(t.ns, 250070);
    assert_false(host_throttle_add("usage_usec 5\nuser_usec 2\n", &t)); /* the root of version 2 */
    assert_false(host_throttle_add("", &t));
    assert_int_equal(t.times, 5);
}

static void a_wait_only_grows(void **state)
{
    uint64_t before, after;
    (void)state;
    if (!host_thread_wait_ns(&before))
        skip();
    sched_yield();
    assert_true(host_thread_wait_ns(&after));
    assert_true(after >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_counter_works_or_says_why_not),
        cmocka_unit_test(system_calls_of_threads_and_children_count),
        cmocka_unit_test(nobody_has_no_counters),
        cmocka_unit_test(a_quota_s_counters_are_read_in_both_versions),
        cmocka_unit_test(a_wait_only_grows),
    };
    return cmocka_run_group_tests_name("perf", tests, NULL, NULL);
}
