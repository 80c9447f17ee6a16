#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "trial/plan.h"
#include "trial/warm.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct plan sample(void)
{
    struct err err;
    return (struct plan){.workload = workload_find("pipelined", &err),
                         .connections = 7,
                         .boots = 3,
                         .seed = 4000000000,
                         .budget_ns = 25000000000,
                         .slice_ns = 123456789,
                         .settle_ns = 50000000,
                         .timeout_ns = 2000000000,
                         .ready_ns = 10000000000,
                         .warm_max_ns = 5000000000,
                         .precision = 0.01,
                         .twin = "libev",
                         .engine = HAMMER_EPOLL,
                         .cpus = {.server = 3,
                                  .hammer = {1, 2},
                                  .hammer_count = 2,
                                  .allowed_count = 4,
                                  .siblings = true}};
}

static void test_a_plan_survives_the_way_through_json(void **state)
{
    struct plan plan = sample();
    struct plan again;
    struct err err;
    (void)state;
    json_t *json = plan_to_json(&plan);
    assert_int_equal(plan_from_json(json, &again, &err), 0);
    assert_ptr_equal(again.workload, plan.workload);
    assert_int_equal(again.connections, 7);
    assert_int_equal(again.boots, 3);
    assert_int_equal(again.seed, 4000000000);
    assert_int_equal(again.budget_ns, 25000000000);
    assert_int_equal(again.slice_ns, 123456789);
    assert_int_equal(again.settle_ns, 50000000);
    assert_int_equal(again.timeout_ns, 2000000000);
    assert_int_equal(again.ready_ns, 10000000000);
    assert_int_equal(again.warm_max_ns, 5000000000);
    assert_int_equal(again.engine, HAMMER_EPOLL);
    assert_int_equal(again.cpus.server, 3);
    assert_int_equal(again.cpus.hammer_count, 2);
    assert_int_equal(again.cpus.hammer[1], 2);
    assert_int_equal(again.cpus.allowed_count, 4);
    assert_true(again.cpus.siblings);
    assert_false(again.cpus.shared);
    assert_true(fabs(again.precision - 0.01) < 1e-12);
    assert_string_equal(again.twin, "libev");
    json_object_del(json, "precision"); /* as in a record of a run without them */
    json_object_del(json, "twin");
    assert_int_equal(plan_from_json(json, &again, &err), 0);
    assert_true(again.precision == 0);
    assert_string_equal(again.twin, "");
    assert_int_equal(again.workers, 1);
    json_object_del(json, "slice_ns");
    assert_int_equal(plan_from_json(json, &again, &err), -EINVAL);
    assert_non_null(strstr(err.text, "slice_ns"));
    json_decref(json);
}

static void test_workers_and_their_cores_survive_too(void **state)
{
    struct plan plan = sample();
    struct plan again;
    struct err err;
    (void)state;
    plan.workers = 4;
    plan.cpus.more[plan.cpus.more_count++] = 0;
    json_t *json = plan_to_json(&plan);
    assert_int_equal(plan_from_json(json, &again, &err), 0);
    assert_int_equal(again.workers, 4);
    assert_int_equal(again.cpus.server, 3);
    assert_int_equal(again.cpus.more_count, 1);
    assert_int_equal(again.cpus.more[0], 0);
    for (int i = 0; i < HOST_SERVERS_MAX; i++)
        json_array_append_new(json_object_get(json, "server_cpus"), json_integer(i));
    assert_int_equal(plan_from_json(json, &again, &err), -EINVAL);
    json_decref(json);
    plan.workers = 65;
    json = plan_to_json(&plan);
    assert_int_equal(plan_from_json(json, &again, &err), -EINVAL);
    json_decref(json);
}

static void test_a_plan_that_no_run_had_is_refused(void **state)
{
    static const struct {
        const char *key;
        json_int_t value;
    } bad[] = {{"boots", 0},        {"boots", -1},     {"boots", 1001},    {"connections", 0},
               {"connections", -1}, {"slice_ns", 0},   {"slice_ns", -1},   {"timeout_ns", 0},
               {"budget_ns", 0},    {"settle_ns", -1}, {"warm_max_ns", -1}};
    struct plan plan = sample();
    struct plan again;
    struct err err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *json = plan_to_json(&plan);
        json_object_set_new(json, bad[i].key, json_integer(bad[i].value));
        assert_int_equal(plan_from_json(json, &again, &err), -EINVAL);
        json_decref(json);
    }
    json_t *json = plan_to_json(&plan);
    json_object_set_new(json, "hammer_cpus", json_array());
    assert_int_equal(plan_from_json(json, &again, &err), -EINVAL);
    json_decref(json);
}

static void test_orders_are_shuffles_that_repeat(void **state)
{
    struct plan plan = sample();
    size_t order[11];
    size_t again[11];
    size_t first_counts[11] = {0};
    (void)state;
    for (unsigned block = 0; block < 1100; block++) {
        unsigned seen = 0;
        plan_order(&plan, 2, block, order, 11);
        plan_order(&plan, 2, block, again, 11);
        assert_memory_equal(order, again, sizeof order);
        for (size_t i = 0; i < 11; i++)
            seen |= 1U << order[i];
        assert_int_equal(seen, (1U << 11) - 1);
        first_counts[order[0]]++;
    }
    for (size_t i = 0; i < 11; i++) { /* 100 expected; 6 standard deviations are 57 */
        assert_true(first_counts[i] > 43);
        assert_true(first_counts[i] < 157);
    }
    plan.seed++;
    plan_order(&plan, 2, 5, again, 11);
    plan.seed--;
    plan_order(&plan, 2, 5, order, 11);
    assert_memory_not_equal(order, again, sizeof order);
}

static void test_slices_grow_with_connections(void **state)
{
    (void)state;
    assert_int_equal(plan_slice_ns(1), 100200000);
    assert_int_equal(plan_slice_ns(64), 112800000);
    assert_int_equal(plan_slice_ns(10000), 2100000000);
    assert_int_equal(plan_settle_ns(64), 23200000);
    assert_int_equal(plan_settle_ns(10000), 520000000);
}

static void test_flat_is_steady_falling_is_not(void **state)
{
    double flat[8] = {10, 10, 10, 10, 10, 10, 10, 10};
    double falling[40];
    (void)state;
    assert_false(warm_is_steady(flat, 0));
    assert_false(warm_is_steady(flat, 7));
    assert_true(warm_is_steady(flat, 8));
    for (int i = 0; i < 40; i++)
        falling[i] = 60 - i;
    for (unsigned n = 8; n <= 40; n++)
        assert_false(warm_is_steady(falling, n));
}

/* A JIT whose cost falls from 400 to 100 with a time constant of 25 windows: at 140 it is within 1%
 * of its end. */
static void test_what_fell_for_long_must_be_flat_for_long(void **state)
{
    double cost[400];
    unsigned steady = 0;
    (void)state;
    for (unsigned i = 0; i < 400; i++)
        cost[i] = 100 + 300 * exp(-(double)i / 25);
    for (unsigned n = 8; n <= 400 && steady == 0; n++)
        if (warm_is_steady(cost, n))
            steady = n;
    assert_true(steady >= 140);
    assert_true(steady <= 250);
}

/* Windows of 10 ms of a Node 20 server from its start, CPU time a request in us, on a 2-core
 * virtual machine, 2026-11-30. Its first 8 windows pass for steady; it fell until the 40th. */
static void test_a_jit_is_not_warm_before_it_has_answered_enough(void **state)
{
    static const double node[] = {
        299, 145, 142, 377, 165, 117, 655, 393, 138, 938, 86, 52, 53, 63, 36, 40, 60, 61, 31, 38,
        69,  55,  21,  31,  37,  26,  43,  32,  40,  36,  28, 30, 34, 30, 21, 36, 48, 29, 18, 22,
        28,  42,  35,  27,  28,  31,  26,  34,  59,  42,  32, 33, 26, 35, 38, 30, 37, 21, 24, 28,
        33,  38,  25,  24,  27,  30,  28,  30,  34,  50,  58, 62, 54, 60, 43, 55, 40, 47, 39, 57,
        65,  51,  27,  35,  34,  39,  40,  22,  41,  28,  46, 37, 39, 22, 25, 26, 29, 39, 37, 34,
    };
    const unsigned count = sizeof node / sizeof node[0];
    double answers = 0;
    unsigned over = 0;
    (void)state;
    for (unsigned n = 1; n <= count && over == 0; n++) {
        answers += 10000 / node[n - 1];
        if (warm_is_over(node, n, (uint64_t)answers, WARM_JIT_ANSWERS))
            over = n;
    }
    assert_true(warm_is_over(node, 8, (uint64_t)answers, 0));
    assert_true(over > 80);
}

static void test_workloads_are_found_by_name(void **state)
{
    struct err err;
    char *bytes;
    size_t size;
    (void)state;
    assert_null(workload_find("helo", &err));
    assert_non_null(strstr(err.text, "hello, pipelined, close"));
    const struct workload *hello = workload_find("hello", &err);
    assert_int_equal(workload_request(hello, 8080, &bytes, &size, &err), 0);
    assert_int_equal(size, strlen("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"));
    assert_memory_equal(bytes, "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", size);
    free(bytes);
    const struct workload *close_each = workload_find("close", &err);
    assert_int_equal(workload_request(close_each, 1, &bytes, &size, &err), 0);
    assert_non_null(memmem(bytes, size, "\r\nConnection: close\r\n", 21));
    free(bytes);
    assert_int_equal(workload_find("pipelined", &err)->pipeline, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plan_survives_the_way_through_json),
        cmocka_unit_test(test_workers_and_their_cores_survive_too),
        cmocka_unit_test(test_a_plan_that_no_run_had_is_refused),
        cmocka_unit_test(test_orders_are_shuffles_that_repeat),
        cmocka_unit_test(test_slices_grow_with_connections),
        cmocka_unit_test(test_flat_is_steady_falling_is_not),
        cmocka_unit_test(test_what_fell_for_long_must_be_flat_for_long),
        cmocka_unit_test(test_a_jit_is_not_warm_before_it_has_answered_enough),
        cmocka_unit_test(test_workloads_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
