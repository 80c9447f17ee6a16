/* How a report looks: what a foreign record can do to it, what it must say, and how wide it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "made.h"

#include <stdbool.h>

static const struct row *row_named(const struct summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->rows[i].name, name) == 0)
            return &summary->rows[i];
    fail();
    return NULL;
}

static bool holds_control(const char *text)
{
    for (; *text != '\0'; text++)
        if (((unsigned char)*text < ' ' && *text != '\n') || *text == 0x7f ||
            ((unsigned char)*text == 0xc2 && ((unsigned char)text[1] & 0xe0) == 0x80))
            return true;
    return false;
}

static void print_csv(FILE *out, const struct record_data *data, const struct summary *summary)
{
    (void)data;
    view_csv(out, summary);
}

/* Names, reasons, waivers, the machine, the workload: whatever the record holds. U+009B is CSI. */
static void test_a_foreign_record_drives_no_terminal(void **state)
{
    (void)state;
    struct record_data data = made_record();
    const char *evil = "e\033]0;v\007\xc2\x9b"
                       "2Jil\rx\177";
    json_object_set_new(json_object_get(data.run, "plan"), "workload", json_string(evil));
    json_object_set_new(json_object_get(data.run, "machine"), "kernel", json_string(evil));
    json_object_set_new(data.run, "started", json_string(evil));
    made_add(&data, made_entry(evil, "active"));
    made_add(&data, made_entry("limit\033[2J", "reference"));
    made_slices(&data, evil, 2, 100, NULL);
    made_slices(&data, "limit\033[2J", 2, 50, NULL);
    made_line(&data, json_pack("{s:s, s:s, s:b}", "type", "boot", "entry", evil, "warm_steady", 0));
    made_line(&data, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "type", "gate", "entry", evil,
                               "passed", 1, "total", 2, "waivers", "G\033[m", "w\033[2Jhy"));
    made_view *const views[] = {view_table, view_markdown, print_csv, view_json};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        char *text = made_print(views[i], &data);
        if (views[i] != view_json && holds_control(text))
            fail_msg("view %zu: %s", i, text);
        assert_true(strchr(text, '\033') == NULL && strchr(text, '\xc2') == NULL);
        free(text);
    }
    record_data_free(&data);
}

/* A name of two lines makes no line of its own. */
static void test_a_name_is_one_line(void **state)
{
    (void)state;
    struct record_data data = made_record();
    made_add(&data, made_entry("two\nlines", "skipped"));
    json_object_set_new(json_array_get(json_object_get(data.run, "entries"), 0), "reason",
                        json_string("why\nnot"));
    char *text = made_print(view_table, &data);
    assert_null(strstr(text, "\nlines"));
    assert_null(strstr(text, "\nnot"));
    assert_non_null(strstr(text, "two?lines skipped: why?not\n"));
    free(text);
    record_data_free(&data);
}

static void test_markdown_is_escaped(void **state)
{
    (void)state;
    struct record_data data = made_record();
    made_add(&data, made_entry("a|b", "active"));
    made_add(&data, made_entry("c", "skipped"));
    json_object_set_new(json_array_get(json_object_get(data.run, "entries"), 1), "reason",
                        json_string("<b> *x* [l](u) `q`"));
    made_slices(&data, "a|b", 2, 100, NULL);
    char *text = made_print(view_markdown, &data);
    assert_non_null(strstr(text, "| a\\|b |"));
    assert_non_null(strstr(text, "- c skipped: \\<b> \\*x\\* \\[l](u) \\`q\\`\n"));
    /* Every line of the table has the same number of bars that are none of its text. */
    size_t bars_wanted = 0;
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        size_t bars = 0;
        for (const char *at = line; *at != '\n'; at++)
            bars += *at == '|' && (at == line || at[-1] != '\\');
        if (*line != '|')
            continue;
        bars_wanted = bars_wanted > 0 ? bars_wanted : bars;
        assert_int_equal(bars, bars_wanted);
    }
    assert_true(bars_wanted > 10);
    free(text);
    record_data_free(&data);
}

static void test_csv_quotes(void **state)
{
    (void)state;
    struct record_data data = made_record();
    made_add(&data, made_entry("a,\"b", "skipped"));
    char *text = made_print(print_csv, &data);
    assert_non_null(strstr(text, "\n,\"a,\"\"b\",skipped,"));
    free(text);
    record_data_free(&data);
}

static void test_one_is_no_plural(void **state)
{
    (void)state;
    struct record_data data = made_record();
    made_add(&data, made_entry("a", "active"));
    made_line(&data, made_slice("a", 0, 1, 100));
    made_line(&data, json_pack("{s:s, s:s}", "type", "spoilt", "entry", "a"));
    char *text = made_print(view_table, &data);
    assert_non_null(strstr(text, "1 boot, 1 block of"));
    assert_non_null(strstr(text, "1 slice spoilt"));
    free(text);
    made_slices(&data, "a", 3, 100, NULL);
    made_line(&data, json_pack("{s:s, s:s}", "type", "spoilt", "entry", "a"));
    text = made_print(view_table, &data);
    assert_non_null(strstr(text, "3 boots, 6 blocks of"));
    assert_non_null(strstr(text, "2 slices spoilt"));
    free(text);
    record_data_free(&data);
}

/* Two copies of the lines, one behind the other: the same figures as of one, and a word about it.
 */
static void test_repeated_lines_count_once(void **state)
{
    (void)state;
    struct record_data data = made_record();
    struct summary once, twice;
    struct err err;
    const double noise[] = {0.01, -0.02, 0.03};
    made_add(&data, made_entry("a", "active"));
    made_slices(&data, "a", 3, 100, noise);
    made_line(&data, json_pack("{s:s, s:s, s:i, s:i, s:i}", "type", "cost", "entry", "a", "boot", 0,
                               "valid", 10, "syscalls", 20));
    assert_int_equal(summary_make(&data, &once, &err), 0);
    json_t *copy = json_deep_copy(data.lines);
    json_array_extend(data.lines, copy);
    json_decref(copy);
    assert_int_equal(summary_make(&data, &twice, &err), 0);
    assert_int_equal(once.repeated, 0);
    assert_int_equal(twice.repeated, 7);
    assert_int_equal(twice.boots, 3);
    assert_int_equal(twice.blocks, 6);
    assert_int_equal(twice.rows[0].slices, 6);
    assert_true(twice.rows[0].requests == once.rows[0].requests);
    assert_true(twice.rows[0].rate_per_s.low == once.rows[0].rate_per_s.low);
    char *text = made_print(view_table, &data);
    assert_non_null(strstr(text, "7 lines of the record came twice"));
    free(text);
    summary_free(&once);
    summary_free(&twice);
    record_data_free(&data);
}

/* Boots in another order give the same figures. */
static void test_lines_in_another_order(void **state)
{
    (void)state;
    struct record_data data = made_record(), turned = made_record();
    struct summary summary, other;
    struct err err;
    const double noise[] = {0.01, -0.02, 0.03};
    made_add(&data, made_entry("a", "active"));
    made_add(&turned, made_entry("a", "active"));
    made_slices(&data, "a", 3, 100, noise);
    for (size_t i = json_array_size(data.lines); i > 0; i--)
        json_array_append(turned.lines, json_array_get(data.lines, i - 1));
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    assert_int_equal(summary_make(&turned, &other, &err), 0);
    assert_int_equal(other.boots, 3);
    assert_true(summary.rows[0].rate_per_s.value == other.rows[0].rate_per_s.value);
    assert_true(summary.rows[0].rate_per_s.low == other.rows[0].rate_per_s.low);
    summary_free(&summary);
    summary_free(&other);
    record_data_free(&data);
    record_data_free(&turned);
}

static void test_more_than_the_limit_is_explained(void **state)
{
    (void)state;
    struct record_data data = made_record();
    made_add(&data, made_entry("quick", "active"));
    made_add(&data, made_entry("slow", "active"));
    made_add(&data, made_entry("limit", "reference"));
    made_slices(&data, "quick", 2, 120, NULL);
    made_slices(&data, "slow", 2, 90, NULL);
    made_slices(&data, "limit", 2, 100, NULL);
    char *text = made_print(view_table, &data);
    assert_non_null(strstr(text, "Over 100% of the limit: quick."));
    free(text);
    record_data_free(&data);

    data = made_record();
    made_add(&data, made_entry("slow", "active"));
    made_add(&data, made_entry("limit", "reference"));
    made_slices(&data, "slow", 2, 90, NULL);
    made_slices(&data, "limit", 2, 100, NULL);
    text = made_print(view_table, &data);
    assert_null(strstr(text, "Over 100%"));
    assert_non_null(strstr(text, "a canned reply, no HTTP parsing; fails HTTP cases by design"));
    free(text);
    record_data_free(&data);
}

static void test_a_quick_run_explains_its_totals(void **state)
{
    (void)state;
    struct record_data data = made_record();
    char *text = made_print(view_table, &data);
    assert_null(strstr(text, "quick"));
    free(text);
    json_array_append_new(json_object_get(data.run, "argv"), json_string("--quick"));
    text = made_print(view_table, &data);
    assert_non_null(strstr(text, "A quick run tries only the cases that gate"));
    free(text);
    record_data_free(&data);
}

/* The widest figures that our servers give, and a name as long as libmicrohttpd's. */
static void test_a_table_is_at_most_120_columns(void **state)
{
    (void)state;
    struct record_data data = made_record();
    const char *name = "libmicrohttpd";
    made_add(&data, made_entry(name, "active"));
    made_add(&data, made_entry("limit-epoll", "reference"));
    made_slices(&data, name, 12, 23456.7, NULL);
    made_slices(&data, "limit-epoll", 12, 876543.2, NULL);
    made_line(&data, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "type", "gate", "entry", name,
                               "passed", 106, "total", 107, "waivers", "G1", "why"));
    made_line(&data, json_pack("{s:s, s:s, s:i, s:i, s:i}", "type", "cost", "entry", name, "boot",
                               0, "valid", 10, "syscalls", 1000));
    made_end(&data);
    char *text = made_print(view_table, &data);
    unsigned lines = 0;
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1, lines++) {
        size_t length = strcspn(line, "\n");
        if (length > 120)
            fail_msg("%zu columns: %.*s", length, (int)length, line);
    }
    assert_true(lines > 8);
    assert_non_null(strstr(text, "  40.5=8.1+32.4  "));
    assert_non_null(strstr(text, "  106/107*  "));
    assert_non_null(strstr(text, "2026-11-30T20:07:32Z"));
    free(text);
    record_data_free(&data);
}

/* Per request, of the lines that hold the kind; absent where none does. */
static void test_costs_are_read_and_shown(void **state)
{
    (void)state;
    struct record_data data = made_record();
    struct summary summary;
    struct err err;
    made_add(&data, made_entry("a", "active"));
    made_add(&data, made_entry("b", "active"));
    made_slices(&data, "a", 2, 100, NULL);
    made_slices(&data, "b", 2, 90, NULL);
    made_line(&data, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "type", "cost", "entry", "a",
                               "boot", 0, "valid", 100, "syscalls", 300, "instructions_user", 5000,
                               "instructions_kernel", 20000));
    made_line(&data, json_pack("{s:s, s:s, s:i, s:i, s:i}", "type", "cost", "entry", "a", "boot", 1,
                               "valid", 300, "syscalls", 620));
    json_object_set_new(json_array_get(data.lines, 0), "switches_voluntary", json_integer(250000));
    assert_int_equal(summary_make(&data, &summary, &err), 0);
    const struct row *a = row_named(&summary, "a"), *b = row_named(&summary, "b");
    assert_true(fabs(a->cost[COST_SYSCALLS] - 2.3) < 1e-12);
    assert_true(fabs(a->cost[COST_INSTRUCTIONS_USER] - 50) < 1e-12);
    assert_true(fabs(a->cost[COST_SWITCHES_VOLUNTARY] - 0.25) < 1e-12);
    assert_true(isnan(a->cost[COST_CYCLES_USER]) && isnan(b->cost[COST_SYSCALLS]));
    summary_free(&summary);

    char *text = made_print(view_table, &data);
    assert_non_null(strstr(text, "  2.30  "));
    assert_non_null(strstr(text, "sys/req: system calls"));
    free(text);
    text = made_print(view_json, &data);
    json_t *json = json_loads(text, 0, NULL);
    const json_t *first = json_array_get(json_object_get(json, "entries"), 0);
    const json_t *second = json_array_get(json_object_get(json, "entries"), 1);
    assert_true(json_number_value(json_object_get(first, "syscalls_per_req")) == 2.3);
    assert_true(json_number_value(json_object_get(first, "instructions_per_req")) == 250);
    assert_null(json_object_get(first, "cycles_per_req"));
    assert_null(json_object_get(second, "syscalls_per_req"));
    json_decref(json);
    free(text);
    record_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_foreign_record_drives_no_terminal),
        cmocka_unit_test(test_a_name_is_one_line),
        cmocka_unit_test(test_markdown_is_escaped),
        cmocka_unit_test(test_csv_quotes),
        cmocka_unit_test(test_one_is_no_plural),
        cmocka_unit_test(test_repeated_lines_count_once),
        cmocka_unit_test(test_lines_in_another_order),
        cmocka_unit_test(test_more_than_the_limit_is_explained),
        cmocka_unit_test(test_a_quick_run_explains_its_totals),
        cmocka_unit_test(test_a_table_is_at_most_120_columns),
        cmocka_unit_test(test_costs_are_read_and_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
