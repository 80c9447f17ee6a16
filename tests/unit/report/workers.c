/* Two workers against one, on records whose ratio is known to the digit, on one core and on two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "made.h"

enum { BOOTS = 6 };

static json_t *crew_of(const char *of)
{
    char name[64];
    snprintf(name, sizeof name, "%s*2", of);
    json_t *crew = made_entry(name, "workers");
    json_object_set_new(crew, "workers", json_integer(2));
    json_object_set_new(crew, "workers_of", json_string(of));
    return crew;
}

/* `one` at 1000 a second, its two workers at `ratio` times that, using `busy` of one core's time in
 * all; `alone` takes no workers. */
static struct record_data record_of(double ratio, int cores, double busy)
{
    struct record_data data = made_record();
    json_object_set_new(json_object_get(data.run, "plan"), "workers", json_integer(2));
    made_add(&data, made_entry("one", "active"));
    made_add(&data, crew_of("one"));
    made_add(&data, made_entry("alone", "active"));
    made_slices(&data, "one", BOOTS, 1000, NULL);
    made_slices(&data, "alone", BOOTS, 900, NULL);
    for (int boot = 0; boot < BOOTS; boot++)
        for (int block = 1; block <= 2; block++) {
            json_t *line = made_slice_of("one*2", boot, block, 1000 * ratio, busy, 0.7);
            json_object_set_new(line, "processes", json_integer(3));
            if (cores > 1)
                json_object_set_new(line, "server_cores", json_integer(cores));
            made_line(&data, line);
        }
    made_end(&data);
    return data;
}

static struct summary summary_of(const struct record_data *data)
{
    struct summary summary;
    struct err err;
    assert_int_equal(summary_make(data, &summary, &err), 0);
    return summary;
}

static void drop(struct record_data *data, struct summary *summary)
{
    summary_free(summary);
    record_data_free(data);
}

static const struct row *row_named(const struct summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->rows[i].name, name) == 0)
            return &summary->rows[i];
    fail();
    return NULL;
}

static void on_one_core_the_efficiency_is_the_ratio(void **state)
{
    (void)state;
    struct record_data data = record_of(0.98, 1, 0.95);
    struct summary summary = summary_of(&data);
    assert_int_equal(summary.scaling.count, 1);
    const struct workers_pair *pair = &summary.scaling.pairs[0];
    assert_true(fabs(pair->ratio.value - 0.98) < 1e-6);
    assert_true(fabs(pair->efficiency.value - 0.98) < 1e-6);
    assert_int_equal(pair->cores, 1);
    char *text = made_print(view_table, &data);
    assert_non_null(strstr(text, "one: 2 workers on 1 core: 0.980 (0.980 to 0.980) of one, "
                                 "efficiency 98.0% (98.0% to 98.0%).\n"));
    assert_non_null(strstr(text, "take no workers: alone "));
    free(text);
    drop(&data, &summary);
}

static void on_two_cores_it_is_half_of_it_and_both_must_be_full(void **state)
{
    (void)state;
    struct record_data data = record_of(1.6, 2, 1.9);
    struct summary summary = summary_of(&data);
    const struct workers_pair *pair = &summary.scaling.pairs[0];
    assert_true(fabs(pair->ratio.value - 1.6) < 1e-6);
    assert_true(fabs(pair->efficiency.value - 0.8) < 1e-6);
    assert_true(fabs(pair->efficiency.low - pair->ratio.low / 2) < 1e-12);
    assert_true(fabs(row_named(&summary, "one*2")->server_busy - 0.95) < 1e-6);
    assert_string_equal(row_named(&summary, "one*2")->verdict, "server");
    drop(&data, &summary);
    data = record_of(1.6, 2, 1.2); /* 60% of each */
    summary = summary_of(&data);
    assert_true(fabs(row_named(&summary, "one*2")->server_busy - 0.6) < 1e-6);
    assert_string_equal(row_named(&summary, "one*2")->verdict, "waiting");
    drop(&data, &summary);
}

static void its_row_is_not_ranked(void **state)
{
    (void)state;
    struct record_data data = record_of(1.6, 2, 1.9);
    struct summary summary = summary_of(&data);
    const struct row *row = row_named(&summary, "one*2");
    assert_int_equal(row->rank, 0);
    assert_true(isnan(row->share_of_limit.value));
    assert_string_equal(row->status, "workers");
    assert_int_equal(summary.ranking.pair_count, 1); /* one and alone */
    assert_int_equal(row_named(&summary, "one")->rank, 1);
    assert_ptr_equal(row, &summary.rows[2]);
    char *text = made_print(view_json, &data);
    json_t *json = json_loads(text, 0, NULL);
    const json_t *pair = json_array_get(json_object_get(json, "workers"), 0);
    assert_string_equal(json_string_value(json_object_get(pair, "entry")), "one");
    assert_string_equal(json_string_value(json_object_get(pair, "row")), "one*2");
    assert_int_equal(json_integer_value(json_object_get(pair, "cores")), 2);
    json_decref(json);
    free(text);
    drop(&data, &summary);
}

static void one_that_failed_has_no_ratio_but_the_reason(void **state)
{
    (void)state;
    struct record_data data = record_of(1, 1, 0.95);
    made_line(&data, json_pack("{s:s, s:s, s:s, s:s}", "type", "failure", "entry", "one*2",
                               "reason", "worker 7 was killed", "output", ""));
    struct summary summary = summary_of(&data);
    assert_true(isnan(summary.scaling.pairs[0].ratio.value));
    assert_string_equal(row_named(&summary, "one")->status, "ranked");
    char *text = made_print(view_table, &data);
    assert_non_null(strstr(text, "one: 2 workers, no comparison: worker 7 was killed\n"));
    free(text);
    drop(&data, &summary);
}

static void at_the_hammer_s_limit_nothing_is_said_of_them(void **state)
{
    (void)state;
    struct record_data data = made_record();
    json_object_set_new(json_object_get(data.run, "plan"), "workers", json_integer(2));
    made_add(&data, made_entry("one", "active"));
    made_add(&data, crew_of("one"));
    made_slices(&data, "one", BOOTS, 1000, NULL);
    for (int boot = 0; boot < BOOTS; boot++)
        for (int block = 1; block <= 2; block++)
            made_line(&data, made_slice_of("one*2", boot, block, 1000, 0.5, 0.99));
    struct summary summary = summary_of(&data);
    assert_true(summary.scaling.pairs[0].hammer_limited);
    char *text = made_print(view_table, &data);
    assert_non_null(strstr(text, "this says nothing of the workers.\n"));
    free(text);
    drop(&data, &summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_one_core_the_efficiency_is_the_ratio),
        cmocka_unit_test(on_two_cores_it_is_half_of_it_and_both_must_be_full),
        cmocka_unit_test(its_row_is_not_ranked),
        cmocka_unit_test(one_that_failed_has_no_ratio_but_the_reason),
        cmocka_unit_test(at_the_hammer_s_limit_nothing_is_said_of_them),
    };
    return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
