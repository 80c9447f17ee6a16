#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "report/compare.h"
#include "report/settings.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_close(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want) + 1e-12))
        fail_msg("got %.12g, want %.12g", got, want);
}

static json_t *entry(const char *name, const char *status, const char *hash)
{
    return json_pack("{s:s, s:s, s:s}", "name", name, "status", status, "hash", hash);
}

static struct record_data make_record(json_t *entries)
{
    return (struct record_data){
        .lines = json_array(),
        .run =
            json_pack("{s:i, s:s, s:s, s:{s:i, s:[i], s:i, s:s, s:i}, s:{s:s, s:s}, s:o}", "schema",
                      1, "showdown", "abc", "started", "2026-01-01T00:00:00Z", "plan", "seed", 1,
                      "hammer_cpus", 1, "connections", 64, "workload", "hello", "slice_ns",
                      100000000, "machine", "kernel", "6.1", "cpu_model", "X", "entries", entries)};
}

/* A slice of 1 s, of a server that is the limit. */
static void add(struct record_data *data, const char *name, int boot, int block, double valid,
                double began_s)
{
    json_array_append_new(
        data->lines,
        json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:s}", "type",
                  "slice", "entry", name, "boot", boot, "block", block, "began_ns",
                  (json_int_t)(began_s * 1e9), "window_ns", (json_int_t)1000000000, "valid",
                  (json_int_t)llround(valid), "server_cpu_ns", (json_int_t)990000000,
                  "hammer_user_ns", (json_int_t)500000000, "switches_voluntary", 1, "threads", 1,
                  "processes", 1, "engine", "epoll"));
}

static void end(struct record_data *data)
{
    json_array_append_new(data->lines, json_pack("{s:s, s:b}", "type", "end", "interrupted", 0));
}

static const struct compare_row *find(const struct comparison *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->rows[i].name, name) == 0)
            return &c->rows[i];
    fail();
    return NULL;
}

/* ---- the rule ---- */

static enum compare_outcome judge(double value, double low, double high)
{
    const struct interval i = {value, low, high};
    return compare_judge(i, i, 0.02);
}

static void the_four_outcomes(void **state)
{
    (void)state;
    assert_int_equal(judge(1, 0.99, 1.01), COMPARE_SAME);
    assert_int_equal(judge(0.97, 0.96, 0.98), COMPARE_SLOWER);
    assert_int_equal(judge(1.04, 1.03, 1.05), COMPARE_FASTER);
    assert_int_equal(judge(1, 0.97, 1.03), COMPARE_UNSURE);
    assert_int_equal(judge(0.97, 0.93, 1.01), COMPARE_UNSURE);    /* beyond, and may be chance */
    assert_int_equal(judge(0.985, 0.975, 0.995), COMPARE_UNSURE); /* a difference, maybe small */
    assert_int_equal(judge(0.995, 0.991, 0.999), COMPARE_SAME);   /* surely small */
}

static void what_lies_on_a_bound_is_within(void **state)
{
    (void)state;
    const double low = 1 - 0.02;
    assert_int_equal(judge(1, low, 1 / low), COMPARE_SAME);
    assert_int_equal(judge(1, nextafter(low, 0), 1 / low), COMPARE_UNSURE);
    assert_int_equal(judge(1, low, nextafter(1 / low, 2)), COMPARE_UNSURE);
    assert_int_equal(judge(low, 0.97, 0.99), COMPARE_UNSURE);
    assert_int_equal(judge(nextafter(low, 0), 0.97, 0.99), COMPARE_SLOWER);
    assert_int_equal(judge(0.9, 0.8, 1), COMPARE_UNSURE);
    assert_int_equal(judge(0.9, 0.8, nextafter(1, 0)), COMPARE_SLOWER);
    assert_int_equal(judge(1.1, 1, 1.2), COMPARE_UNSURE);
    assert_int_equal(judge(0.5, NAN, NAN), COMPARE_UNSURE);
}

static void many_rows_ask_for_more(void **state)
{
    (void)state;
    const struct interval ratio = {0.97, 0.95, 0.99};
    const struct interval strict = {0.97, 0.93, 1.01};
    assert_int_equal(compare_judge(ratio, ratio, 0.02), COMPARE_SLOWER);
    assert_int_equal(compare_judge(ratio, strict, 0.02), COMPARE_UNSURE);
}

/* ---- two builds ---- */

/* Boots of one block: the log ratios alternate between +-0.001 around the log of `ratio`. */
static struct record_data make_builds(double ratio, int boots)
{
    struct record_data data = make_record(
        json_pack("[o, o]", entry("x old", "active", "1"), entry("x new", "active", "2")));
    json_object_set_new(data.run, "compare",
                        json_pack("{s:s, s:s, s:s, s:f}", "entry", "x", "old", "/a", "new", "/b",
                                  "threshold", 0.02));
    for (int boot = 0; boot < boots; boot++) {
        double level = 1e6 * (1 + 0.2 * (boot % 5)); /* the machine's mood, shared by both */
        add(&data, "x old", boot, 1, level, boot);
        add(&data, "x new", boot, 1, level * ratio * exp(boot % 2 ? 0.001 : -0.001), boot + 0.5);
    }
    end(&data);
    return data;
}

static enum compare_outcome outcome_of_builds(double ratio, int boots)
{
    struct record_data data = make_builds(ratio, boots);
    struct comparison c;
    struct err err;
    assert_int_equal(compare_builds(&data, 0.02, &c, &err), 0);
    assert_int_equal(c.count, 1);
    assert_string_equal(c.rows[0].name, "x");
    assert_close(c.rows[0].ratio.value, ratio, 2e-3);
    enum compare_outcome outcome = compare_worst(&c);
    assert_int_equal(outcome,
                     c.rows[0].outcome == COMPARE_FASTER ? COMPARE_SAME : c.rows[0].outcome);
    outcome = c.rows[0].outcome;
    compare_free(&c);
    record_data_free(&data);
    return outcome;
}

static void builds_by_hand(void **state)
{
    (void)state;
    assert_int_equal(outcome_of_builds(1, 12), COMPARE_SAME);
    assert_int_equal(outcome_of_builds(0.97, 12), COMPARE_SLOWER);
    assert_int_equal(outcome_of_builds(1.05, 12), COMPARE_FASTER);
    assert_int_equal(outcome_of_builds(0.97, 1), COMPARE_UNSURE); /* one block: no interval */
}

static void a_build_that_failed(void **state)
{
    struct record_data data = make_builds(1, 12);
    struct comparison c;
    struct err err;
    (void)state;
    json_array_append_new(data.lines,
                          json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", "failure", "entry",
                                    "x new", "boot", 0, "reason", "exited", "output", ""));
    assert_int_equal(compare_builds(&data, 0.02, &c, &err), 0);
    assert_int_equal(compare_worst(&c), COMPARE_FAILED);
    assert_string_equal(c.rows[0].problem, "exited");
    compare_free(&c);
    json_array_append_new(data.lines,
                          json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", "failure", "entry",
                                    "x old", "boot", 0, "reason", "gone", "output", ""));
    assert_int_equal(compare_builds(&data, 0.02, &c, &err), -EINVAL);
    assert_non_null(strstr(err.text, "gone"));
    record_data_free(&data);
}

/* Blocks where the load generator was the limit show a ratio of 1 whatever the servers do. */
static void blocks_in_which_a_server_waited(void **state)
{
    struct record_data data = make_record(
        json_pack("[o, o]", entry("x old", "active", "1"), entry("x new", "active", "2")));
    struct comparison c;
    struct err err;
    (void)state;
    json_object_set_new(data.run, "compare",
                        json_pack("{s:s, s:s, s:s}", "entry", "x", "old", "/a", "new", "/b"));
    for (int boot = 0; boot < 4; boot++)
        for (int block = 1; block <= 20; block++) {
            bool waits = block % 2 == 0;
            add(&data, "x old", boot, block, waits ? 9e5 : 1e6, boot * 100 + block);
            json_object_set_new(json_array_get(data.lines, json_array_size(data.lines) - 1),
                                "switches_voluntary", json_integer(waits ? 1001 : 1000));
            add(&data, "x new", boot, block, 9e5 + boot, boot * 100 + block + 0.5);
        }
    end(&data);
    assert_int_equal(compare_builds(&data, 0.02, &c, &err), 0);
    assert_close(c.rows[0].ratio.value, 0.9, 1e-5);
    assert_int_equal(c.rows[0].outcome, COMPARE_SLOWER);
    compare_free(&c);
    /* All wait: nothing is left out, and no `same` is claimed. */
    size_t index;
    json_t *line;
    json_array_foreach(data.lines, index, line)
    {
        json_object_set_new(line, "switches_voluntary", json_integer(1001));
        json_object_set_new(line, "valid", json_integer(900000));
    }
    assert_int_equal(compare_builds(&data, 0.02, &c, &err), 0);
    assert_close(c.rows[0].ratio.value, 1, 1e-9);
    assert_int_equal(c.rows[0].outcome, COMPARE_UNSURE);
    compare_free(&c);
    record_data_free(&data);
}

static void a_run_is_no_comparison_of_builds(void **state)
{
    struct record_data data = make_record(json_pack("[o]", entry("x", "active", "1")));
    struct comparison c;
    struct err err;
    (void)state;
    assert_false(compare_is_of_builds(&data));
    assert_int_equal(compare_builds(&data, 0.02, &c, &err), -EINVAL);
    record_data_free(&data);
}

/* ---- two records ---- */

/* Three entries and the reference, four boots; `machine` is the level of the record as a whole. */
static struct record_data make_run(double machine, double x, double from_s, double step_s)
{
    struct record_data data =
        make_record(json_pack("[o, o, o, o]", entry("limit", "reference", "0"),
                              entry("x", "active", machine == 1 ? "1" : "2"),
                              entry("y", "active", "3"), entry("z", "active", "4")));
    for (int boot = 0; boot < 4; boot++)
        for (int block = 1; block <= 2; block++) {
            double at = from_s + boot * step_s + block;
            double jitter = boot % 2 ? 1.001 : 0.999;
            add(&data, "limit", boot, block, 4e6 * machine, at);
            add(&data, "x", boot, block, 3e6 * machine * x * jitter, at + 0.1);
            add(&data, "y", boot, block, 2e6 * machine, at + 0.2);
            add(&data, "z", boot, block, 1e6 * machine / jitter, at + 0.3);
        }
    end(&data);
    return data;
}

/* Half an hour apart, on a machine that has become 20% faster: x alone has slowed, by 5%. */
static void what_moved_all_alike_is_taken_out(void **state)
{
    struct record_data a = make_run(1, 1, 10, 10);
    struct record_data b = make_run(1.2, 0.95, 2000, 10);
    struct comparison c;
    struct err err;
    (void)state;
    assert_int_equal(compare_records(&a, &b, 0.02, &c, &err), 0);
    assert_int_equal(c.method, COMPARE_LEVELS);
    assert_int_equal(c.count, 4);
    assert_int_equal(c.judged, 3);
    assert_close(find(&c, "x")->ratio.value, 0.95, 1e-6);
    assert_int_equal(find(&c, "x")->outcome, COMPARE_SLOWER);
    assert_int_equal(find(&c, "y")->outcome, COMPARE_SAME); /* x, which changed, is not its base */
    assert_close(find(&c, "y")->ratio.value, 1, 1e-6);
    assert_int_equal(find(&c, "limit")->outcome, COMPARE_NOT_JUDGED);
    assert_close(c.level.value, 1.2, 1e-6);
    assert_int_equal(json_array_size(c.level_of), 3);
    assert_int_equal(compare_worst(&c), COMPARE_SLOWER);
    compare_free(&c);
    assert_int_equal(compare_records(&b, &a, 0.02, &c, &err), 0);
    assert_close(find(&c, "x")->ratio.value, 1 / 0.95, 1e-6);
    assert_int_equal(find(&c, "x")->outcome, COMPARE_FASTER);
    assert_int_equal(compare_worst(&c), COMPARE_SAME);
    compare_free(&c);
    record_data_free(&a);
    record_data_free(&b);
}

/* Boots in turns, A B A B: what differs is the records' own, the whole of it. */
static void boots_that_alternate_are_paired(void **state)
{
    struct record_data a = make_run(1, 1, 10, 20);
    struct record_data b = make_run(0.9, 1, 20, 20);
    struct comparison c;
    struct err err;
    (void)state;
    assert_int_equal(compare_records(&a, &b, 0.02, &c, &err), 0);
    assert_int_equal(c.method, COMPARE_PAIRED_BOOTS);
    assert_close(find(&c, "y")->ratio.value, 0.9, 1e-6);
    assert_int_equal(find(&c, "y")->outcome, COMPARE_SLOWER);
    assert_close(find(&c, "limit")->ratio.value, 0.9, 1e-6);
    assert_true(isnan(c.level.value));
    compare_free(&c);
    /* The clocks of two boots of the kernel say nothing of each other. */
    json_object_set_new(b.run, "started", json_string("2026-01-02T00:00:00Z"));
    assert_int_equal(compare_records(&a, &b, 0.02, &c, &err), 0);
    assert_int_equal(c.method, COMPARE_LEVELS);
    compare_free(&c);
    record_data_free(&a);
    record_data_free(&b);
}

static struct record_data make_single(const char *name, double rate, int boots)
{
    struct record_data data = make_record(json_pack("[o]", entry(name, "active", "1")));
    for (int boot = 0; boot < boots; boot++)
        add(&data, name, boot, 1, rate * (boot % 2 ? 1.001 : 0.999), boot);
    end(&data);
    return data;
}

static void few_or_none_in_common(void **state)
{
    struct record_data a = make_single("x", 1e6, 4);
    struct record_data b = make_single("y", 1e6, 4);
    struct record_data one = make_single("x", 1e6, 1);
    struct record_data later = make_single("x", 9e5, 4);
    struct comparison c;
    struct err err;
    (void)state;
    assert_int_equal(compare_records(&a, &b, 0.02, &c, &err), -EINVAL);
    assert_non_null(strstr(err.text, "no entry"));
    json_object_set_new(later.run, "started", json_string("2026-01-02T00:00:00Z"));
    assert_int_equal(compare_records(&a, &later, 0.02, &c, &err), 0);
    assert_close(c.rows[0].ratio.value, 0.9, 1e-4);
    assert_true(isnan(c.level.value));
    assert_int_equal(json_array_size(c.doubts), 1); /* that nothing could be taken out */
    compare_free(&c);
    assert_int_equal(compare_records(&a, &one, 0.02, &c, &err), 0);
    assert_int_equal(c.rows[0].outcome, COMPARE_UNSURE); /* one boot of one block */
    assert_true(json_array_size(c.doubts) >= 2);
    compare_free(&c);
    record_data_free(&a);
    record_data_free(&b);
    record_data_free(&one);
    record_data_free(&later);
}

static void failed_in_b_alone(void **state)
{
    struct record_data a = make_run(1, 1, 10, 10);
    struct record_data b = make_run(1.2, 1, 2000, 10);
    struct comparison c;
    struct err err;
    (void)state;
    json_array_append_new(b.lines,
                          json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", "failure", "entry", "y",
                                    "boot", 3, "reason", "died", "output", ""));
    assert_int_equal(compare_records(&a, &b, 0.02, &c, &err), 0);
    assert_int_equal(find(&c, "y")->outcome, COMPARE_FAILED);
    assert_int_equal(compare_worst(&c), COMPARE_FAILED);
    compare_free(&c);
    assert_int_equal(compare_records(&b, &a, 0.02, &c, &err), 0);
    assert_string_equal(json_string_value(json_array_get(c.only[1], 0)), "y");
    compare_free(&c);
    record_data_free(&a);
    record_data_free(&b);
}

/* ---- settings ---- */

static void all_that_differs_is_named(void **state)
{
    struct record_data a = make_run(1, 1, 10, 10);
    struct record_data b = make_run(1, 1, 10, 10);
    char kernel[] = "kernel";
    char mitigations[] = "mitigations";
    char *allowed[] = {kernel, mitigations, NULL};
    (void)state;
    json_t *none = settings_differences(&a, &b, NULL);
    assert_int_equal(json_array_size(none), 0);
    json_decref(none);
    json_t *machine = json_object_get(b.run, "machine");
    json_t *plan = json_object_get(b.run, "plan");
    json_object_set_new(machine, "kernel", json_string("6.2"));
    json_object_set_new(machine, "mitigations", json_pack("{s:s}", "spectre", "on"));
    json_object_set_new(json_object_get(a.run, "machine"), "mitigations",
                        json_pack("{s:s, s:s}", "spectre", "off", "mds", "off"));
    json_object_set_new(plan, "connections", json_integer(256));
    json_object_set_new(plan, "seed", json_integer(99));
    json_t *found = settings_differences(&a, &b, NULL);
    assert_int_equal(json_array_size(found), 4);
    const json_t *first = json_array_get(found, 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "kernel");
    assert_string_equal(json_string_value(json_object_get(first, "a")), "6.1");
    assert_string_equal(json_string_value(json_object_get(first, "b")), "6.2");
    const json_t *last = json_array_get(found, 3);
    assert_string_equal(json_string_value(json_object_get(last, "name")), "connections");
    assert_string_equal(json_string_value(json_object_get(last, "b")), "256");
    json_decref(found);
    json_t *rest = settings_differences(&a, &b, allowed);
    assert_int_equal(json_array_size(rest), 1);
    json_decref(rest);
    assert_true(settings_is_known("container"));
    assert_false(settings_is_known("colour"));
    record_data_free(&a);
    record_data_free(&b);
}

/* ---- views ---- */

static void views_name_what_matters(void **state)
{
    struct record_data a = make_run(1, 1, 10, 10);
    struct record_data b = make_run(1.2, 0.95, 2000, 10);
    struct comparison c;
    struct err err;
    char *table = NULL;
    char *text = NULL;
    size_t size;
    (void)state;
    assert_int_equal(compare_records(&a, &b, 0.02, &c, &err), 0);
    FILE *out = open_memstream(&table, &size);
    compare_view_table(out, &c, &a, &b);
    fclose(out);
    assert_non_null(strstr(table, "0.9500"));
    assert_non_null(strstr(table, "slower"));
    assert_non_null(strstr(table, "Level: 1.2000"));
    assert_non_null(strstr(table, "share no block"));
    out = open_memstream(&text, &size);
    compare_view_json(out, &c, &a, &b);
    fclose(out);
    json_t *json = json_loads(text, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "outcome")), "slower");
    assert_int_equal(json_array_size(json_object_get(json, "entries")), 4);
    json_decref(json);
    free(table);
    free(text);
    compare_free(&c);
    record_data_free(&a);
    record_data_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_four_outcomes),
        cmocka_unit_test(what_lies_on_a_bound_is_within),
        cmocka_unit_test(many_rows_ask_for_more),
        cmocka_unit_test(builds_by_hand),
        cmocka_unit_test(a_build_that_failed),
        cmocka_unit_test(blocks_in_which_a_server_waited),
        cmocka_unit_test(a_run_is_no_comparison_of_builds),
        cmocka_unit_test(what_moved_all_alike_is_taken_out),
        cmocka_unit_test(boots_that_alternate_are_paired),
        cmocka_unit_test(few_or_none_in_common),
        cmocka_unit_test(failed_in_b_alone),
        cmocka_unit_test(all_that_differs_is_named),
        cmocka_unit_test(views_name_what_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
