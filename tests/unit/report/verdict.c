/* Verdicts from records by hand: each kind of evidence just below and just above what is too much,
 * and what comes first when several hold. */
#include "report/summary.h"
#include "report/views.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BOOTS = 6, OTHERS = 3 };

/* Slices of 1 s: a server with 97% of its core, a load generator with 70%. */
static json_t *sound_slice(const char *name, int boot, int valid)
{
    return json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, "
        "s:{s:i, s:i, s:i, s:i, s:i}, s:{s:i, s:i, s:i, s:i, s:i}, s:f, s:i, s:{s:i}}",
        "type", "slice", "entry", name, "boot", boot, "block", 1, "window_ns", 1000000000, "valid",
        valid, "wrong", 0, "timed_out", 0, "errors_total", 0, "hammer_user_ns", 200000000,
        "hammer_system_ns", 500000000, "hammer_wait_ns", 0, "server_cpu_ns", 970000000,
        "server_wait_ns", 0, "throttled_ns", 0, "longest_gap_ns", 9000000, "server_core", "busy",
        97, "idle", 3, "irq", 0, "softirq", 20, "steal", 0, "hammer_cores", "busy", 70, "idle", 30,
        "irq", 0, "softirq", 20, "steal", 0, "little", 1.0, "threads", 1, "latency", "sum_ns",
        valid * 1000);
}

/* The subject's slices are sound but for `changes` (format and arguments of json_pack, an object
 * whose keys take the place of a slice's). Three others are sound throughout. */
static struct record_data make_record(json_t *changes)
{
    static const char *const others[OTHERS] = {"b", "c", "d"};
    struct record_data data = {.lines = json_array()};
    data.run =
        json_pack("{s:i, s:{s:i, s:[i], s:i, s:s}, s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}, "
                  "{s:s, s:s}]}",
                  "schema", 1, "plan", "seed", 1, "hammer_cpus", 0, "connections", 64, "workload",
                  "hello", "entries", "name", "subject", "status", "active", "name", "b", "status",
                  "active", "name", "c", "status", "active", "name", "d", "status", "active");
    for (int boot = 0; boot < BOOTS; boot++) {
        json_t *line = sound_slice("subject", boot, 10000);
        const char *key;
        json_t *value;
        json_object_foreach(changes, key, value)
        {
            json_t *old = json_object_get(line, key);
            if (json_is_object(old))
                json_object_update(old, value);
            else
                json_object_set(line, key, value);
        }
        json_array_append_new(data.lines, line);
        for (int i = 0; i < OTHERS; i++)
            json_array_append_new(data.lines, sound_slice(others[i], boot, 8000));
    }
    json_decref(changes);
    return data;
}

static json_t *plan_of(const struct record_data *data)
{
    return json_object_get(data->run, "plan");
}

static const struct row *subject_of(const struct summary *summary)
{
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->rows[i].name, "subject") == 0)
            return &summary->rows[i];
    fail();
    return NULL;
}

static char *explained(const struct summary *summary)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    verdict_explain(out, summary);
    fclose(out);
    return text;
}

/* Checks the subject's verdict, and that the foot says `text` (NULL: whatever). Frees `data`. */
static void expect(struct record_data data, const char *verdict, const char *text)
{
    struct summary summary;
    struct err err;
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    assert_string_equal(subject_of(&summary)->verdict, verdict);
    char *foot = explained(&summary);
    if (text != NULL && strstr(foot, text) == NULL)
        fail_msg("not in the foot: %s\n%s", text, foot);
    free(foot);
    summary_free(&summary);
    record_data_free(&data);
}

static void expect_change(json_t *changes, const char *verdict, const char *text)
{
    expect(make_record(changes), verdict, text);
}

static json_t *one(const char *key, int value)
{
    return json_pack("{s:i}", key, value);
}

static json_t *core(const char *name, int busy, int idle, int steal)
{
    return json_pack("{s:{s:i, s:i, s:i}}", name, "busy", busy, "idle", idle, "steal", steal);
}

static void a_full_server_is_the_limit(void **state)
{
    (void)state;
    expect_change(json_object(), "server", "server: subject, b, c, d\n");
    expect_change(json_pack("{s:i, s:{s:i, s:i}}", "server_cpu_ns", 900000000, "server_core",
                            "busy", 90, "idle", 10),
                  "server", NULL);
    expect_change(json_pack("{s:i, s:{s:i, s:i}}", "server_cpu_ns", 899999999, "server_core",
                            "busy", 90, "idle", 10),
                  "waiting", "waiting: subject (90%)\n");
}

static json_t *busy(int server_cpu_ns, int hammer_system_ns)
{
    return json_pack("{s:i, s:i, s:{s:i, s:i}}", "server_cpu_ns", server_cpu_ns, "hammer_system_ns",
                     hammer_system_ns, "hammer_cores", "busy", 95, "idle", 5);
}

static void a_full_hammer_is_the_limit_of_a_server_with_room(void **state)
{
    (void)state;
    expect_change(busy(949999999, 749999999), "server", NULL);
    expect_change(busy(949999999, 750000000), "hammer", "hammer: subject (95%)\n");
    expect_change(busy(950000000, 750000000), "server", NULL);
    expect_change(json_pack("{s:i, s:i, s:{s:i, s:i}, s:{s:i, s:i}}", "hammer_system_ns", 790000000,
                            "server_cpu_ns", 300000000, "server_core", "busy", 30, "idle", 70,
                            "hammer_cores", "busy", 99, "idle", 1),
                  "hammer", "no row is claimed to be faster");
}

static void time_lost_to_others_is_neighbours(void **state)
{
    (void)state;
    /* A server with half a core could wait for the other half. */
    json_t *half = json_pack("{s:i, s:i, s:{s:i, s:i}}", "server_cpu_ns", 500000000,
                             "server_wait_ns", 50000000, "server_core", "busy", 55, "idle", 45);
    expect_change(json_copy(half), "waiting", NULL);
    json_object_set_new(half, "server_wait_ns", json_integer(51000000));
    expect_change(half, "neighbours", "its server waited for its core 5% of the time");
    expect_change(one("hammer_wait_ns", 50000000), "server", NULL);
    expect_change(one("hammer_wait_ns", 51000000), "neighbours",
                  "the load generator waited for its core 5% of the time");
    expect_change(one("throttled_ns", 50000000), "server", NULL);
    expect_change(one("throttled_ns", 200000000), "neighbours",
                  "a CPU quota stopped the run 20% of the time.\n  Raise the quota");
    /* It asks to be woken every 10 ms and 2 us a connection: 10.128 ms. */
    expect_change(one("longest_gap_ns", 60128000), "server", NULL);
    expect_change(one("longest_gap_ns", 61128000), "neighbours", "slept 5% of the time too long");
    expect_change(json_pack("{s:{s:i, s:i}, s:{s:i, s:i}}", "server_core", "busy", 92, "steal", 5,
                            "hammer_cores", "busy", 65, "steal", 5),
                  "server", NULL);
    expect_change(json_pack("{s:{s:i, s:i}, s:{s:i, s:i}}", "server_core", "busy", 91, "steal", 6,
                            "hammer_cores", "busy", 64, "steal", 6),
                  "neighbours", "the hypervisor took 6% of the cores");
}

static void what_others_ran_on_our_cores_is_told_from_our_own(void **state)
{
    (void)state;
    expect_change(core("hammer_cores", 79, 21, 0), "server", NULL);
    expect_change(core("hammer_cores", 81, 19, 0), "neighbours",
                  "other processes used 11% of the load generator's core");
    expect_change(json_pack("{s:i, s:{s:i, s:i}}", "server_cpu_ns", 880000000, "server_core",
                            "busy", 100, "idle", 0),
                  "neighbours", "other processes used 12% of the server's core");
    /* A kernel that shows irq ticks keeps interrupts out of the processes' time. */
    expect_change(json_pack("{s:i, s:{s:i, s:i, s:i, s:i}}", "server_cpu_ns", 790000000,
                            "server_core", "busy", 100, "idle", 0, "irq", 1, "softirq", 20),
                  "waiting", NULL);
}

static void a_wait_is_bounded_by_what_can_be_waited(void **state)
{
    (void)state;
    expect_change(one("server_wait_ns", 900000000), "server", NULL); /* it ran for 97% */
    /* Several threads on one core wait for each other while nobody else runs there. */
    expect_change(json_pack("{s:i, s:i, s:i, s:{s:i, s:i}}", "threads", 4, "server_cpu_ns",
                            600000000, "server_wait_ns", 300000000, "server_core", "busy", 60,
                            "idle", 40),
                  "waiting", NULL);
    expect_change(json_pack("{s:i, s:i, s:i, s:{s:i, s:i}}", "threads", 4, "server_cpu_ns",
                            600000000, "server_wait_ns", 300000000, "server_core", "busy", 90,
                            "idle", 10),
                  "neighbours", "waited for its core 30% of the time");
}

static void ticks_that_never_came_tell_on_a_full_core(void **state)
{
    (void)state;
    json_t *full = json_pack("{s:i, s:{s:i, s:i}}", "server_cpu_ns", 1000000000, "server_core",
                             "busy", 91, "idle", 0);
    expect_change(json_copy(full), "server", NULL);
    json_object_set_new(json_object_get(full, "server_core"), "busy", json_integer(89));
    expect_change(full, "neighbours", "11% of the time of the server's core is unaccounted for");
    /* A core that sleeps in between is not sampled evenly. */
    expect_change(json_pack("{s:i, s:{s:i, s:i}}", "server_cpu_ns", 950000000, "server_core",
                            "busy", 80, "idle", 6),
                  "server", NULL);
}

static void one_cpu_for_both_is_nobody_else_s(void **state)
{
    (void)state;
    struct record_data data = make_record(json_pack(
        "{s:i, s:i, s:i, s:i, s:{s:i, s:i}, s:{s:i, s:i}}", "server_cpu_ns", 500000000,
        "server_wait_ns", 500000000, "hammer_system_ns", 300000000, "hammer_wait_ns", 500000000,
        "server_core", "busy", 100, "idle", 0, "hammer_cores", "busy", 100, "idle", 0));
    json_object_set_new(plan_of(&data), "one_cpu", json_true());
    expect(data, "hammer", NULL);
}

static void add_spoilt(struct record_data *data, int count)
{
    for (int i = 0; i < count; i++) {
        json_t *line = sound_slice("subject", 0, 10);
        json_object_set_new(line, "type", json_string("spoilt"));
        json_array_append_new(data->lines, line);
    }
}

static void spoilt_slices_are_neighbours_one_is_bad_luck(void **state)
{
    (void)state;
    struct record_data data = make_record(json_object());
    add_spoilt(&data, 1);
    expect(data, "server", NULL);
    data = make_record(json_object());
    add_spoilt(&data, 2);
    expect(data, "neighbours", "25% of its slices were spoilt");
}

static void a_wrong_answer_comes_first(void **state)
{
    (void)state;
    expect_change(json_pack("{s:i, s:i}", "wrong", 1, "hammer_wait_ns", 300000000), "errors",
                  "errors: subject\n");
    expect_change(one("timed_out", 1), "errors", NULL);
    expect_change(one("errors_total", 1), "errors", NULL);
}

static void add_boot(struct record_data *data, bool steady)
{
    json_array_append_new(data->lines, json_pack("{s:s, s:s, s:i, s:b}", "type", "boot", "entry",
                                                 "subject", "boot", 0, "warm_steady", steady));
}

static void a_server_that_was_not_warm_is_unsteady(void **state)
{
    (void)state;
    struct record_data data = make_record(json_object());
    add_boot(&data, true);
    expect(data, "server", NULL);
    data = make_record(json_object());
    add_boot(&data, false);
    expect(data, "unsteady",
           "unsteady: subject was still warming up when its slices began in 1 of 6 boots.\n");
}

/* The subject's rate takes a step in the middle of the run, with a noise of 0.1%. */
static struct record_data with_step(double step)
{
    struct record_data data = make_record(json_object());
    size_t index;
    json_t *line;
    json_array_foreach(data.lines, index, line)
    {
        json_int_t boot = json_integer_value(json_object_get(line, "boot"));
        if (index % (1 + OTHERS) == 0)
            json_object_set_new(line, "valid",
                                json_integer((json_int_t)((10000 + 10.0 * (double)(boot % 2)) *
                                                          (boot < BOOTS / 2 ? 1 : step))));
    }
    return data;
}

static void a_step_that_counts_is_unsteady(void **state)
{
    (void)state;
    expect(with_step(1), "server", NULL);
    expect(with_step(1.018), "server", NULL); /* moves the mean by less than 1% */
    expect(with_step(1.025), "unsteady", "unsteady: subject was 2.5% faster in the second half of");
    expect(with_step(0.8), "unsteady", "subject was 20.0% slower in the second half of the run (p");
}

/* Whatever holds besides is in JSON, in order of precedence. */
static void all_that_hold_are_listed(void **state)
{
    (void)state;
    struct record_data data =
        make_record(json_pack("{s:i, s:i, s:i, s:i, s:{s:i, s:i}}", "server_cpu_ns", 930000000,
                              "hammer_user_ns", 100000000, "hammer_system_ns", 400000000,
                              "hammer_wait_ns", 460000000, "hammer_cores", "busy", 99, "idle", 1));
    add_boot(&data, false);
    struct summary summary;
    struct err err;
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    const struct row *row = subject_of(&summary);
    assert_string_equal(row->verdict, "neighbours");
    assert_true(verdict_holds(row, VERDICT_NEIGHBOURS));
    assert_true(verdict_holds(row, VERDICT_UNSTEADY));
    assert_true(verdict_holds(row, VERDICT_HAMMER)); /* it had no room, through whosever fault */
    assert_false(verdict_holds(row, VERDICT_SERVER));
    FILE *out = open_memstream(&text, &size);
    view_json(out, &data, &summary);
    fclose(out);
    json_t *json = json_loads(text, 0, NULL);
    json_t *first = json_array_get(json_object_get(json, "entries"), 0);
    json_t *want = json_pack("[s, s, s]", "neighbours", "unsteady", "hammer");
    assert_true(json_equal(json_object_get(first, "verdicts"), want));
    assert_true(fabs(json_number_value(json_object_get(first, "hammer_waited")) - 0.46) < 1e-9);
    json_decref(want);
    json_decref(json);
    free(text);
    summary_free(&summary);
    record_data_free(&data);
}

static bool little_is_broken(struct record_data data)
{
    struct summary summary;
    struct err err;
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    bool broken = verdict_little_broken(subject_of(&summary));
    char *foot = explained(&summary);
    assert_int_equal(strstr(foot, "subject?: req/s times mean latency is") != NULL, broken);
    free(foot);
    summary_free(&summary);
    record_data_free(&data);
    return broken;
}

static void little_s_law_is_held_against_the_row(void **state)
{
    (void)state;
    assert_false(little_is_broken(make_record(json_pack("{s:f}", "little", 0.951))));
    assert_true(little_is_broken(make_record(json_pack("{s:f}", "little", 0.949))));
    assert_true(little_is_broken(make_record(json_pack("{s:f}", "little", 1.051))));
    /* Answers that take 0.1 s: a tenth of the requests straddles an edge of the window. */
    assert_false(little_is_broken(make_record(json_pack(
        "{s:f, s:i, s:{s:i}}", "little", 0.9, "valid", 10, "latency", "sum_ns", 1000000000))));
    struct record_data data = make_record(json_pack("{s:f}", "little", 0.5));
    json_object_set_new(plan_of(&data), "close_each", json_true());
    assert_false(little_is_broken(data));
}

static void what_is_not_known_is_no_evidence(void **state)
{
    (void)state;
    struct record_data data = make_record(json_object());
    size_t index;
    json_t *line;
    json_array_foreach(data.lines, index, line)
    {
        json_object_del(line, "server_wait_ns");
        json_object_del(line, "hammer_wait_ns");
        json_object_del(line, "throttled_ns");
        json_object_del(line, "longest_gap_ns");
        json_object_del(line, "little");
    }
    struct summary summary;
    struct err err;
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    const struct row *row = subject_of(&summary);
    assert_string_equal(row->verdict, "server");
    assert_true(isnan(row->evidence.server_waited));
    assert_true(isnan(row->evidence.throttled));
    assert_false(verdict_little_broken(row));
    summary_free(&summary);
    record_data_free(&data);
}

static void counts_are_given_a_request(void **state)
{
    (void)state;
    struct record_data data = make_record(
        json_pack("{s:i, s:i}", "switches_voluntary", 900, "switches_involuntary", 100));
    for (int boot = 0; boot < 2; boot++)
        json_array_append_new(
            data.lines, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i}", "type", "cost", "entry",
                                  "subject", "boot", boot, "valid", 1000 + 2000 * boot, "syscalls",
                                  2000 + 5000 * boot, "instructions_user", 8000000));
    struct summary summary;
    struct err err;
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    const struct row *row = subject_of(&summary);
    assert_true(fabs(row->cost[COST_SYSCALLS] - 9000.0 / 4000) < 1e-12);
    assert_true(fabs(row->cost[COST_INSTRUCTIONS_USER] - 4000) < 1e-9);
    assert_true(isnan(row->cost[COST_INSTRUCTIONS_KERNEL]));
    assert_true(fabs(row->cost[COST_SWITCHES_VOLUNTARY] - 0.09) < 1e-12);
    summary_free(&summary);
    record_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_server_is_the_limit),
        cmocka_unit_test(a_full_hammer_is_the_limit_of_a_server_with_room),
        cmocka_unit_test(time_lost_to_others_is_neighbours),
        cmocka_unit_test(what_others_ran_on_our_cores_is_told_from_our_own),
        cmocka_unit_test(a_wait_is_bounded_by_what_can_be_waited),
        cmocka_unit_test(ticks_that_never_came_tell_on_a_full_core),
        cmocka_unit_test(one_cpu_for_both_is_nobody_else_s),
        cmocka_unit_test(spoilt_slices_are_neighbours_one_is_bad_luck),
        cmocka_unit_test(a_wrong_answer_comes_first),
        cmocka_unit_test(a_server_that_was_not_warm_is_unsteady),
        cmocka_unit_test(a_step_that_counts_is_unsteady),
        cmocka_unit_test(all_that_hold_are_listed),
        cmocka_unit_test(little_s_law_is_held_against_the_row),
        cmocka_unit_test(what_is_not_known_is_no_evidence),
        cmocka_unit_test(counts_are_given_a_request),
    };
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
