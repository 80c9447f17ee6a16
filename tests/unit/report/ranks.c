/* Ranks, ties, the twin and what follows from it, on records whose tests can be worked out by hand:
 * over 12 boots a difference of one sign in all of them has p = 2/4096. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "made.h"

#include <stdbool.h>

enum { BOOTS = 12 };

/* Sums of signs: a boot up, a boot down. */
static const double to_and_fro[BOOTS] = {0.02, -0.02, 0.02, -0.02, 0.02, -0.02,
                                         0.02, -0.02, 0.02, -0.02, 0.02, -0.02};

static struct summary summary_of(const struct record_data *data)
{
    struct summary summary;
    struct err err;
    assert_int_equal(summary_make(data, &summary, &err), 0);
    return summary;
}

static const struct row *row_named(const struct summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->rows[i].name, name) == 0)
            return &summary->rows[i];
    fail();
    return NULL;
}

static void check_rank(const struct summary *summary, const char *name, unsigned rank, bool tied)
{
    const struct row *row = row_named(summary, name);
    assert_int_equal(row->rank, rank);
    assert_int_equal(row->rank_tied, tied);
}

static struct record_data record_of(const char *const *names, size_t count)
{
    struct record_data data = made_record();
    for (size_t i = 0; i < count; i++)
        made_add(&data, made_entry(names[i], "active"));
    return data;
}

#define RECORD_OF(...)                                                                             \
    record_of((const char *const[]){__VA_ARGS__},                                                  \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static json_t *json_of(const struct record_data *data)
{
    char *text = made_print(view_json, data);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

static void assert_says(made_view *view, const struct record_data *data, const char *words)
{
    char *text = made_print(view, data);
    if (strstr(text, words) == NULL)
        fail_msg("not said: %s\n%s", words, text);
    free(text);
}

static void assert_silent(made_view *view, const struct record_data *data, const char *words)
{
    char *text = made_print(view, data);
    if (strstr(text, words) != NULL)
        fail_msg("said: %s\n%s", words, text);
    free(text);
}

static void print_pairs(FILE *out, const struct record_data *data, const struct summary *summary)
{
    (void)data;
    view_pairs(out, summary, false);
}

static void print_pairs_csv(FILE *out, const struct record_data *data,
                            const struct summary *summary)
{
    (void)data;
    view_pairs_csv(out, summary);
}

static void print_csv(FILE *out, const struct record_data *data, const struct summary *summary)
{
    (void)data;
    view_csv(out, summary);
}

/* Three pairs at p = 2/4096, times three: 0.0015. */
static void test_what_was_shown_is_ranked(void **state)
{
    (void)state;
    struct record_data data = RECORD_OF("c", "a", "b");
    made_slices(&data, "a", BOOTS, 1000, NULL);
    made_slices(&data, "b", BOOTS, 950, NULL);
    made_slices(&data, "c", BOOTS, 900, NULL);
    struct summary summary = summary_of(&data);
    check_rank(&summary, "a", 1, false);
    check_rank(&summary, "b", 2, false);
    check_rank(&summary, "c", 3, false);
    assert_string_equal(summary.rows[0].name, "a");
    assert_false(summary.ranking.provisional);
    assert_int_equal(summary.ranking.boots_needed, 7); /* 2^-6 * 3 < 0.05 <= 2^-5 * 3 */
    assert_int_equal(summary.ranking.pair_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(fabs(summary.ranking.pairs[i].p - 2.0 / 4096) < 1e-12);
        assert_true(fabs(summary.ranking.pairs[i].p_adjusted - 6.0 / 4096) < 1e-12);
    }
    const struct ranks_pair *last = &summary.ranking.pairs[2];
    assert_string_equal(last->upper, "b");
    assert_string_equal(last->lower, "c");
    assert_true(fabs(last->ratio.value - 950.0 / 900) < 1e-8);
    summary_free(&summary);
    record_data_free(&data);
}

/* a and b take turns to lead; c is behind both. */
static void test_ties_share_a_rank(void **state)
{
    (void)state;
    struct record_data data = RECORD_OF("a", "b", "c");
    made_slices(&data, "a", BOOTS, 1001, to_and_fro);
    made_slices(&data, "b", BOOTS, 1000, NULL);
    made_slices(&data, "c", BOOTS, 900, NULL);
    struct summary summary = summary_of(&data);
    check_rank(&summary, "a", 1, true);
    check_rank(&summary, "b", 1, true);
    check_rank(&summary, "c", 3, false);
    summary_free(&summary);
    assert_says(view_table, &data, "\n1=    a ");
    assert_says(view_table, &data, "\n3     c ");
    assert_says(view_markdown, &data, "| 1= | b |");
    assert_says(print_csv, &data, "\n1,b,ranked,");
    assert_says(print_csv, &data, ",true,false,false,1\n3,c,ranked,");
    json_t *json = json_of(&data);
    const json_t *rows = json_object_get(json, "entries");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 1), "rank")), 1);
    assert_true(json_is_true(json_object_get(json_array_get(rows, 1), "rank_tied")));
    assert_true(json_is_false(json_object_get(json_array_get(rows, 2), "rank_tied")));
    assert_true(json_is_false(json_object_get(json, "ranks_provisional")));
    assert_int_equal(json_array_size(json_object_get(json, "pairs")), 3);
    assert_null(json_object_get(json, "twin"));
    json_decref(json);
    record_data_free(&data);
}

/* 0.9% is as sure as can be and below what counts; 1.1% is not. */
static void test_less_than_a_percent_is_a_tie(void **state)
{
    (void)state;
    struct record_data data = RECORD_OF("a", "b");
    made_slices(&data, "a", BOOTS, 1009, NULL);
    made_slices(&data, "b", BOOTS, 1000, NULL);
    struct summary summary = summary_of(&data);
    assert_true(summary.ranking.pairs[0].p_adjusted < 0.001);
    check_rank(&summary, "b", 1, true);
    summary_free(&summary);
    record_data_free(&data);
    data = RECORD_OF("a", "b");
    made_slices(&data, "a", BOOTS, 1011, NULL);
    made_slices(&data, "b", BOOTS, 1000, NULL);
    summary = summary_of(&data);
    check_rank(&summary, "b", 2, false);
    summary_free(&summary);
    record_data_free(&data);
}

/* a is told from c, and b, whose noise is large, from neither: b outranks none and none outranks b,
 * though its rate is below c's; c is second. */
static void test_a_relation_that_is_not_transitive(void **state)
{
    (void)state;
    double noise[BOOTS];
    for (size_t i = 0; i < BOOTS; i++)
        noise[i] = i % 2 ? 0.5 : -0.5;
    struct record_data data = RECORD_OF("a", "b", "c");
    made_slices(&data, "a", BOOTS, 1000, NULL);
    made_slices(&data, "b", BOOTS, 940, noise);
    made_slices(&data, "c", BOOTS, 950, NULL);
    struct summary summary = summary_of(&data);
    check_rank(&summary, "a", 1, true);
    check_rank(&summary, "b", 1, true);
    check_rank(&summary, "c", 2, false);
    assert_string_equal(summary.rows[0].name, "a");
    assert_string_equal(summary.rows[1].name, "b");
    assert_string_equal(summary.rows[2].name, "c");
    summary_free(&summary);
    record_data_free(&data);
}

/* Nobody was shown to be faster than an entry that the load generator held back. */
static void test_none_is_ranked_above_the_hammers_limit(void **state)
{
    (void)state;
    struct record_data data = RECORD_OF("a", "held", "c");
    made_slices(&data, "a", BOOTS, 1000, NULL);
    for (int boot = 0; boot < BOOTS; boot++)
        made_line(&data, made_slice_of("held", boot, 1, 900, 0.5, 0.99));
    made_slices(&data, "c", BOOTS, 800, NULL);
    struct summary summary = summary_of(&data);
    assert_string_equal(row_named(&summary, "held")->verdict, "hammer");
    check_rank(&summary, "a", 1, true);
    check_rank(&summary, "held", 1, true);
    check_rank(&summary, "c", 3, false);
    summary_free(&summary);
    assert_says(view_table, &data, "held: the load generator was its limit, so none is ranked");
    record_data_free(&data);
}

/* One pair needs six boots: 2^-5 is below 0.05 and 2^-4 is not. */
static void test_few_boots_rank_provisionally(void **state)
{
    (void)state;
    for (int boots = 1; boots <= 7; boots++) {
        struct record_data data = RECORD_OF("a", "b");
        made_slices(&data, "a", boots, 1001, to_and_fro);
        made_slices(&data, "b", boots, 800, NULL);
        struct summary summary = summary_of(&data);
        assert_int_equal(summary.ranking.boots_needed, 6);
        assert_int_equal(summary.ranking.provisional, boots < 6);
        check_rank(&summary, "a", 1, false);
        check_rank(&summary, "b", 2, false);
        assert_int_equal(summary.ranking.pairs[0].outranks, boots >= 6);
        summary_free(&summary);
        (boots < 6 ? assert_says : assert_silent)(view_table, &data, "provisional (?)");
        (boots < 6 ? assert_says : assert_silent)(view_table, &data, "\n2?    b ");
        (boots < 6 ? assert_says : assert_silent)(view_json, &data, "\"ranks_provisional\": true");
        record_data_free(&data);
    }
}

static void test_one_entry_or_none(void **state)
{
    (void)state;
    struct record_data data = made_record();
    struct summary summary = summary_of(&data);
    assert_int_equal(summary.count, 0);
    summary_free(&summary);
    assert_says(print_pairs, &data, "No pairs");
    made_add(&data, made_entry("a", "active"));
    made_slices(&data, "a", 1, 100, NULL);
    summary = summary_of(&data);
    check_rank(&summary, "a", 1, false);
    assert_false(summary.ranking.provisional);
    assert_int_equal(summary.ranking.pair_count, 0);
    summary_free(&summary);
    record_data_free(&data);
}

/* b was there in one boot of twelve: it is told from nobody, and the others from each other. Who
 * never met is no pair, and tied. */
static void test_an_entry_with_few_boots_is_tied(void **state)
{
    (void)state;
    struct record_data data = RECORD_OF("a", "b", "c", "never");
    made_slices(&data, "a", BOOTS, 1000, NULL);
    made_slices(&data, "b", 1, 900, NULL);
    made_slices(&data, "c", BOOTS, 800, NULL);
    made_line(&data, made_slice("never", 20, 1, 500));
    struct summary summary = summary_of(&data);
    assert_int_equal(summary.ranking.pair_count, 3);
    check_rank(&summary, "a", 1, true);
    check_rank(&summary, "b", 1, true);
    check_rank(&summary, "never", 1, true);
    check_rank(&summary, "c", 2, false);
    summary_free(&summary);
    record_data_free(&data);
}

static void test_one_cpu_has_pairs_and_no_ranks(void **state)
{
    (void)state;
    struct record_data data = RECORD_OF("a", "b");
    json_object_set_new(json_object_get(data.run, "plan"), "one_cpu", json_true());
    made_slices(&data, "a", BOOTS, 1000, NULL);
    made_slices(&data, "b", BOOTS, 800, NULL);
    struct summary summary = summary_of(&data);
    check_rank(&summary, "a", 0, false);
    assert_false(summary.ranking.pairs[0].outranks);
    assert_false(summary.ranking.provisional);
    summary_free(&summary);
    assert_silent(view_table, &data, "rank: ");
    record_data_free(&data);
}

/* ---- the twin */

static struct record_data record_with_twin(int boots, double twin_rate, const double *noise)
{
    struct record_data data = RECORD_OF("a", "b");
    made_add(&data, made_twin("a"));
    made_slices(&data, "a", boots, 1000, NULL);
    made_slices(&data, "a twin", boots, twin_rate, noise);
    made_slices(&data, "b", boots, 970, NULL);
    made_end(&data);
    return data;
}

/* Its ratio swings by 2% and comes out 2% above 1: 0.04 in six boots, 0 in six. Of the patterns of
 * signs those with all six up are as far out, and all six down: 2/64. Above 1%, so it differs. */
static void test_a_twin_that_differs(void **state)
{
    (void)state;
    struct record_data data = record_with_twin(BOOTS, 1000 * exp(0.02), to_and_fro);
    struct summary summary = summary_of(&data);
    const struct twin *twin = &summary.ranking.twin;
    assert_int_equal(summary.count, 2);
    assert_string_equal(twin->entry, "a");
    assert_true(fabs(twin->ratio.value - exp(0.02)) < 1e-6);
    assert_true(fabs(twin->p - 2.0 / 64) < 1e-12);
    assert_true(twin->differs);
    assert_true(ranks_inconclusive(&summary.ranking));
    assert_true(fabs(summary.ranking.delta - (exp(0.02) - 1)) < 1e-6);
    check_rank(&summary, "b", 2, false); /* 3.1% is beyond 2.02% */
    summary_free(&summary);

    char *text = made_print(view_table, &data);
    assert_true(strncmp(text, "INCONCLUSIVE: a, measured twice", 31) == 0);
    assert_non_null(strstr(text, "2.0% (p 0.031)"));
    assert_non_null(strstr(text, "\nA/A: a, measured twice: twin/entry 1.0202 (95%: "));
    assert_non_null(strstr(text, "p 0.031: it differs from itself.\n"));
    assert_null(strstr(text, "a twin"));
    free(text);
    text = made_print(view_markdown, &data);
    assert_true(strncmp(text, "## INCONCLUSIVE\n", 16) == 0);
    assert_non_null(strstr(text, "- A/A: a, measured twice"));
    free(text);
    assert_says(print_csv, &data, "\n1,a,ranked,");
    assert_says(print_csv, &data, ",false,false,true,1\n");
    assert_silent(print_csv, &data, "twin");

    json_t *json = json_of(&data);
    const json_t *object = json_object_get(json, "twin");
    assert_true(json_is_true(json_object_get(json, "inconclusive")));
    assert_non_null(json_string_value(json_object_get(json, "inconclusive_reason")));
    assert_int_equal(json_array_size(json_object_get(json, "entries")), 2);
    assert_string_equal(json_string_value(json_object_get(object, "entry")), "a");
    static const char *const numbers[] = {"ratio", "ratio_low", "ratio_high", "p", "delta"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(json_is_number(json_object_get(object, numbers[i])));
    assert_true(json_is_true(json_object_get(object, "differs")));
    json_decref(json);
    record_data_free(&data);
}

/* The same swing around 1: nothing to see, and the line is there all the same. */
static void test_a_twin_that_does_not_differ(void **state)
{
    (void)state;
    struct record_data data = record_with_twin(BOOTS, 1000, to_and_fro);
    struct summary summary = summary_of(&data);
    assert_false(ranks_inconclusive(&summary.ranking));
    assert_true(summary.ranking.delta == RANKS_DELTA_MIN);
    summary_free(&summary);
    assert_silent(view_table, &data, "INCONCLUSIVE");
    assert_says(view_table, &data, "\nA/A: a, measured twice: twin/entry 1.0000 (95%: ");
    assert_says(view_table, &data, "p 1.000: no more than chance allows.\n");
    assert_says(view_json, &data, "\"inconclusive\": false");
    record_data_free(&data);
}

/* In every boot, but by less than anything that is claimed. Below 1 as well as above. */
static void test_a_twin_within_a_percent(void **state)
{
    (void)state;
    const double rates[] = {1009, 1000 / 1.009, 1011, 1000 / 1.011};
    for (size_t i = 0; i < 4; i++) {
        struct record_data data = record_with_twin(BOOTS, rates[i], NULL);
        struct summary summary = summary_of(&data);
        assert_true(summary.ranking.twin.p < 0.001);
        assert_int_equal(ranks_inconclusive(&summary.ranking), i >= 2);
        assert_true(fabs(summary.ranking.delta - (i >= 2 ? 0.011 : 0.01)) < 1e-8);
        summary_free(&summary);
        record_data_free(&data);
    }
}

/* What the twin showed is what no pair may be claimed by: b is 3.1% behind, and the twin 4%. */
static void test_the_twin_raises_the_delta(void **state)
{
    (void)state;
    struct record_data data = record_with_twin(BOOTS, 960, to_and_fro);
    struct summary summary = summary_of(&data);
    assert_true(fabs(summary.ranking.delta - (1000.0 / 960 - 1)) < 1e-6);
    check_rank(&summary, "a", 1, true);
    check_rank(&summary, "b", 1, true);
    summary_free(&summary);
    assert_says(view_table, &data, "more than 4.2% (what the twin showed)");
    record_data_free(&data);
}

static void test_a_twin_of_few_boots_shows_nothing(void **state)
{
    (void)state;
    struct record_data data = record_with_twin(3, 1100, NULL);
    struct summary summary = summary_of(&data);
    assert_true(fabs(summary.ranking.twin.p - 0.25) < 1e-12);
    assert_false(ranks_inconclusive(&summary.ranking));
    summary_free(&summary);
    assert_says(view_table, &data, "p 0.250: too few boots to find a difference.\n");
    record_data_free(&data);
    data = record_with_twin(1, 1100, NULL);
    assert_says(view_table, &data, "A/A: a, measured twice: twin/entry 1.1000 (95%: 1.1000 to");
    record_data_free(&data);
}

static void test_a_twin_without_a_comparison(void **state)
{
    (void)state;
    struct record_data data = record_with_twin(BOOTS, 1000, NULL);
    made_line(&data, json_pack("{s:s, s:s, s:s}", "type", "failure", "entry", "a twin", "reason",
                               "exited with\033 status 3"));
    struct summary summary = summary_of(&data);
    assert_true(summary.ranking.twin.failed);
    assert_false(ranks_inconclusive(&summary.ranking));
    assert_int_equal(summary.count, 2);
    summary_free(&summary);
    assert_says(view_table, &data,
                "A/A: a, measured twice: no comparison: exited with? status 3\n");
    assert_says(view_json, &data, "\"reason\": \"exited with");
    record_data_free(&data);

    data = record_with_twin(BOOTS, 1000, NULL);
    made_line(&data,
              json_pack("{s:s, s:s, s:s}", "type", "failure", "entry", "a", "reason", "gone"));
    assert_says(view_table, &data, "no comparison: its entry is not ranked\n");
    record_data_free(&data);

    data = RECORD_OF("a");
    made_add(&data, made_twin("a"));
    made_slices(&data, "a", 2, 1000, NULL);
    assert_says(view_table, &data, "no comparison: the run ended before it was measured\n");
    made_line(&data, made_slice("a twin", 7, 1, 1000));
    assert_says(view_table, &data, "no comparison: no block holds both\n");
    record_data_free(&data);
}

static void test_pairs_are_printed(void **state)
{
    (void)state;
    struct record_data data = record_with_twin(BOOTS, 1000, to_and_fro);
    assert_says(print_pairs, &data, "a / b  1.0309    1.0309  1.0309  0.00049   0.00049  faster\n");
    assert_says(print_pairs_csv, &data, "\na,b,1.0309278");
    assert_says(print_pairs_csv, &data, ",0.00048828125,0.00048828125,true,12\n");
    assert_silent(print_pairs_csv, &data, "twin");
    record_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_shown_is_ranked),
        cmocka_unit_test(test_ties_share_a_rank),
        cmocka_unit_test(test_less_than_a_percent_is_a_tie),
        cmocka_unit_test(test_a_relation_that_is_not_transitive),
        cmocka_unit_test(test_none_is_ranked_above_the_hammers_limit),
        cmocka_unit_test(test_few_boots_rank_provisionally),
        cmocka_unit_test(test_one_entry_or_none),
        cmocka_unit_test(test_an_entry_with_few_boots_is_tied),
        cmocka_unit_test(test_one_cpu_has_pairs_and_no_ranks),
        cmocka_unit_test(test_a_twin_that_differs),
        cmocka_unit_test(test_a_twin_that_does_not_differ),
        cmocka_unit_test(test_a_twin_within_a_percent),
        cmocka_unit_test(test_the_twin_raises_the_delta),
        cmocka_unit_test(test_a_twin_of_few_boots_shows_nothing),
        cmocka_unit_test(test_a_twin_without_a_comparison),
        cmocka_unit_test(test_pairs_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
