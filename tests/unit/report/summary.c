#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "record/latency.h"
#include "report/summary.h"
#include "report/views.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A record by hand: in every slice of about 1 s `limit` answers 10,000,
 * `fast` 8,000, `slow` 4,000, so
 * that every figure can be worked out on paper. */
static json_t *entry(const char *name, const char *status)
{
    return json_pack("{s:s, s:s, s:s}", "name", name, "status", status, "hash", "0");
}

static json_t *slice(const char *name, int boot, int block, int valid, double drift)
{
    static struct histogram h;
    json_int_t window = (json_int_t)(1e9 / drift);
    int ticks = (int)(window / 10000000);
    histogram_reset(&h);
    for (int i = 0; i < 98; i++)
        histogram_add(&h, 100000);
    histogram_add(&h, 900000);
    histogram_add(&h, 1000000);
    return json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, "
                     "s:{s:i, s:i, s:i}, s:{s:i, s:i, s:i}, s:i, s:i, s:o}",
                     "type", "slice", "entry", name, "boot", boot, "block", block, "window_ns",
                     window, "valid", valid, "bytes_read", valid * 120, "wrong", 0, "timed_out", 0,
                     "errors_total", 0, "hammer_user_ns", window / 5, "hammer_system_ns",
                     window / 2, "server_cpu_ns", window * 95 / 100, "rss_peak_bytes",
                     (json_int_t)2000000 + boot, "idle_ns", (json_int_t)1000000000, "server_core",
                     "busy", ticks, "idle", 0, "steal", 0, "hammer_cores", "busy", ticks * 7 / 10,
                     "idle", ticks * 3 / 10, "steal", 0, "server_user_ticks", 2,
                     "server_system_ticks", 8, "latency", latency_to_json(&h));
}

static struct record_data make_record(bool one_cpu)
{
    struct record_data data = {.lines = json_array()};
    data.run = json_pack("{s:i, s:{s:i, s:[i], s:b, s:s}, s:[o, o, o, o, o]}", "schema", 1, "plan",
                         "seed", 1, "hammer_cpus", 1, "one_cpu", one_cpu, "workload", "hello",
                         "entries", entry("slow", "active"), entry("limit", "reference"),
                         entry("fast", "active"), entry("gone", "skipped"), entry("bad", "active"));
    json_object_set_new(json_array_get(json_object_get(data.run, "entries"), 3), "reason",
                        json_string("needs apt packages: libgone-dev"));
    for (int boot = 0; boot < 4; boot++)
        for (int block = 1; block <= 3; block++) {
            double drift = 1 + 0.3 * boot + 0.1 * block; /* the machine's speed, shared by all */
            json_array_append_new(data.lines, slice("fast", boot, block, 8000, drift));
            json_array_append_new(data.lines, slice("limit", boot, block, 10000, drift));
            json_array_append_new(data.lines, slice("slow", boot, block, 4000, drift));
        }
    json_array_append_new(data.lines,
                          json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", "failure", "entry", "bad",
                                    "boot", 0, "reason", "exited with status 3", "output", "oh\n"));
    json_array_append_new(data.lines, json_pack("{s:s, s:b}", "type", "end", "interrupted", 0));
    return data;
}

static const struct row *find(const struct summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->rows[i].name, name) == 0)
            return &summary->rows[i];
    fail();
    return NULL;
}

static void test_figures_by_hand(void **state)
{
    struct record_data data = make_record(false);
    struct summary summary;
    struct err err;
    (void)state;
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    assert_string_equal(summary.limit, "limit");
    assert_int_equal(summary.boots, 4);
    assert_int_equal(summary.blocks, 12);
    assert_true(summary.complete);
    const struct row *fast = find(&summary, "fast");
    assert_true(fabs(fast->share_of_limit.value - 0.8) < 1e-9);
    assert_true(fabs(fast->share_of_limit.low - 0.8) < 1e-9); /* drift widens no interval */
    assert_true(fabs(fast->rate_per_s.value / find(&summary, "slow")->rate_per_s.value - 2) < 1e-9);
    assert_true((fast->rate_per_s.high - fast->rate_per_s.low) / fast->rate_per_s.value < 1e-9);
    assert_true(fabs(fast->latency_p50_us - 100) < 1);
    assert_true(fabs(fast->latency_p99_us - 900) < 8);
    assert_true(fabs(fast->latency_max_us - 1000) < 1e-9);
    assert_true(fabs(fast->bytes_per_response - 120) < 1e-9);
    assert_true(fabs(fast->rss_peak_bytes - 2000003) < 1e-9);
    assert_true(fabs(fast->cpu_user_us / fast->cpu_us - 0.2) < 1e-9);
    assert_true(fabs(fast->server_busy - 0.95) < 1e-6);
    assert_string_equal(fast->verdict, "server");
    assert_true(fabs(fast->requests - 96000) < 1e-9);
    assert_int_equal(fast->rank, 1);
    assert_int_equal(find(&summary, "slow")->rank, 2);
    assert_int_equal(find(&summary, "limit")->rank, 0);
    summary_free(&summary);
    record_data_free(&data);
}

static void test_rows_without_figures_say_why(void **state)
{
    struct record_data data = make_record(false);
    struct summary summary;
    struct err err;
    (void)state;
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    const struct row *gone = find(&summary, "gone");
    assert_string_equal(gone->status, "skipped");
    assert_string_equal(gone->reason, "needs apt packages: libgone-dev");
    assert_true(isnan(gone->rate_per_s.value));
    assert_true(isnan(gone->errors));
    const struct row *bad = find(&summary, "bad");
    assert_string_equal(bad->status, "failed");
    assert_string_equal(bad->reason, "exited with status 3");
    assert_string_equal(bad->output, "oh\n");
    assert_int_equal(bad->rank, 0);
    summary_free(&summary);
    record_data_free(&data);
}

static void test_one_cpu_ranks_nothing(void **state)
{
    struct record_data data = make_record(true);
    struct summary summary;
    struct err err;
    (void)state;
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    for (size_t i = 0; i < summary.count; i++)
        assert_int_equal(summary.rows[i].rank, 0);
    summary_free(&summary);
    record_data_free(&data);
}

static char *print(void (*view)(FILE *, const struct record_data *, const struct summary *),
                   const struct record_data *data)
{
    struct summary summary;
    struct err err;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(summary_make(data, &summary, &err), 0);
    view(out, data, &summary);
    fclose(out);
    summary_free(&summary);
    return text;
}

static void test_json_leaves_out_what_is_not_known(void **state)
{
    struct record_data data = make_record(false);
    (void)state;
    char *text = print(view_json, &data);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    const json_t *entries = json_object_get(json, "entries");
    assert_int_equal(json_array_size(entries), 5);
    const json_t *first = json_array_get(entries, 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "fast");
    assert_int_equal(json_integer_value(json_object_get(first, "errors")), 0);
    assert_true(json_number_value(json_object_get(first, "req_per_s")) > 0);
    for (size_t i = 3; i < 5; i++) {
        const json_t *last = json_array_get(entries, i);
        assert_null(json_object_get(last, "req_per_s"));
        assert_null(json_object_get(last, "errors"));
        assert_null(json_object_get(last, "rank"));
        assert_non_null(json_object_get(last, "reason"));
    }
    json_decref(json);
    free(text);
    record_data_free(&data);
}

static void test_views_are_the_same_every_time(void **state)
{
    struct record_data data = make_record(false);
    (void)state;
    char *once = print(view_table, &data);
    char *twice = print(view_table, &data);
    assert_string_equal(once, twice);
    assert_non_null(strstr(once, "needs apt packages: libgone-dev"));
    assert_non_null(strstr(once, "| oh"));
    free(once);
    free(twice);
    char *markdown = print(view_markdown, &data);
    assert_non_null(strstr(markdown, "| 1? | fast |"));
    free(markdown);
    record_data_free(&data);
}

static void test_what_a_server_printed_drives_no_terminal(void **state)
{
    struct record_data data = make_record(false);
    (void)state;
    json_array_append_new(data.lines,
                          json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", "failure", "entry", "bad",
                                    "boot", 0, "reason", "lost\r\033[2J", "output",
                                    "\033]0;title\007\tna\303\257ve\n"));
    char *text = print(view_table, &data);
    assert_non_null(strstr(text, "bad failed: lost??[2J\n"));
    assert_non_null(strstr(text, "| ?]0;title?\tna\303\257ve\n"));
    assert_null(strchr(text, '\033'));
    free(text);
    record_data_free(&data);
}

static void test_a_record_without_a_plan_is_refused(void **state)
{
    struct record_data data = {.run = json_object(), .lines = json_array()};
    struct summary summary;
    struct err err;
    (void)state;
    assert_int_equal(summary_make(&data, &summary, &err), -EINVAL);
    record_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_by_hand),
        cmocka_unit_test(test_rows_without_figures_say_why),
        cmocka_unit_test(test_one_cpu_ranks_nothing),
        cmocka_unit_test(test_json_leaves_out_what_is_not_known),
        cmocka_unit_test(test_views_are_the_same_every_time),
        cmocka_unit_test(test_what_a_server_printed_drives_no_terminal),
        cmocka_unit_test(test_a_record_without_a_plan_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
