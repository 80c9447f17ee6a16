/* Two sets of costs held against each other. */
#include "report/tally.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *costs(double instructions, double allocations, double calls)
{
    return json_pack("{s:i, s:i, s:i, s:s, s:[{s:s, s:s, s:f, s:f, s:f, s:{s:f}}]}", "schema", 1,
                     "connections", 1, "pipeline", 1, "valgrind", "valgrind-3.19.0", "entries",
                     "name", "x", "status", "counted", "instructions_per_req", instructions,
                     "allocations_per_req", allocations, "syscalls_per_req", calls, "syscalls",
                     "read", calls);
}

static json_t *first(json_t *set)
{
    return json_array_get(json_object_get(set, "entries"), 0);
}

/* What growth of `now` over `then` prints, and how often it grew. */
static unsigned growth(json_t *now, json_t *then, double threshold, char text[1000])
{
    FILE *out = fmemopen(text, 1000, "w");
    unsigned grown = tally_print_growth(out, now, then, threshold);
    fclose(out);
    json_decref(now);
    json_decref(then);
    return grown;
}

static void growth_counts_beyond_the_threshold(void **state)
{
    (void)state;
    char text[1000] = "";
    assert_int_equal(growth(costs(1000, 1, 3), costs(1000, 1, 3), 0.01, text), 0);
    assert_int_equal(growth(costs(1010, 1, 3), costs(1000, 1, 3), 0.01, text), 0);
    assert_int_equal(growth(costs(900, 0, 2), costs(1000, 1, 3), 0.01, text), 0);
    assert_string_equal(text, "");
    assert_int_equal(growth(costs(1011, 1, 3), costs(1000, 1, 3), 0.01, text), 1);
    assert_string_equal(text,
                        "x: instr/req grew from 1000.00 to 1011.00, by 1.10%; 1% is allowed\n");
    assert_int_equal(growth(costs(1011, 1, 3), costs(1000, 1, 3), 0.02, text), 0);
    assert_int_equal(growth(costs(2000, 2, 4), costs(1000, 1, 3), 0.01, text), 3);
}

static void a_first_call_is_a_growth_and_a_timers_is_none(void **state)
{
    (void)state;
    char text[1000] = "";
    assert_int_equal(growth(costs(1000, 1, 3), costs(1000, 0, 3), 0.01, text), 1);
    assert_string_equal(text, "x: alloc/req grew from 0.00 to 1.00; 1% is allowed\n");
    assert_int_equal(growth(costs(1000, 0.009, 3.009), costs(1000, 0, 3), 0, text), 0);
}

static void what_can_not_be_had_any_more_fails_but_what_was_not_asked_does_not(void **state)
{
    (void)state;
    char text[1000] = "";
    json_t *now = costs(1000, 1, 3);
    json_object_del(first(now), "instructions_per_req");
    json_object_del(first(now), "allocations_per_req");
    json_t *gone = json_deep_copy(now);
    assert_int_equal(growth(now, costs(1000, 1, 3), 0.01, text), 0); /* --only syscalls */
    json_object_set_new(first(gone), "absent", json_pack("{s:s}", "instructions", "crashed"));
    assert_int_equal(growth(gone, costs(1000, 1, 3), 0.01, text), 2);
    assert_non_null(strstr(text, "x: instr/req was 1000.00 and can't be had now\n"));
}

static void an_entry_that_is_new_has_not_grown(void **state)
{
    (void)state;
    char text[1000] = "";
    json_t *then = costs(1, 0, 1);
    json_object_set_new(first(then), "name", json_string("y"));
    assert_int_equal(growth(costs(1000, 1, 3), then, 0.01, text), 0);
}

static void shapes_must_be_the_same(void **state)
{
    (void)state;
    struct err err;
    json_t *now = costs(1, 1, 1);
    json_t *then = costs(1, 1, 1);
    assert_int_equal(tally_comparable(now, then, &err), 0);
    json_object_set_new(then, "pipeline", json_integer(16));
    assert_int_equal(tally_comparable(now, then, &err), -EINVAL);
    assert_non_null(strstr(err.text, "pipeline 16"));
    json_decref(now);
    json_decref(then);
}

static void the_table_has_changes_beside_figures(void **state)
{
    (void)state;
    char text[1000] = "";
    json_t *now = costs(1010, 1, 3);
    json_t *then = costs(1000, 0, 3);
    json_object_set_new(first(now), "absent", json_pack("{s:s}", "syscalls", "refused\x1b[1m"));
    FILE *out = fmemopen(text, sizeof text, "w");
    tally_print(out, now, then, 0);
    tally_print_differences(out, now, then);
    fclose(out);
    assert_non_null(strstr(text, "1010.0   +1.00%"));
    assert_non_null(strstr(text, "1.00      new"));
    assert_non_null(strstr(text, "3.00   +0.00%  read 3.00"));
    assert_non_null(strstr(text, "x without syscalls: refused?[1m"));
    assert_null(strstr(text, "may be its doing"));
    json_object_set_new(then, "valgrind", json_string("valgrind-3.20.0"));
    out = fmemopen(text, sizeof text, "w");
    tally_print_differences(out, now, then);
    fclose(out);
    assert_non_null(strstr(text, "valgrind was valgrind-3.20.0 and is valgrind-3.19.0"));
    json_decref(now);
    json_decref(then);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_counts_beyond_the_threshold),
        cmocka_unit_test(a_first_call_is_a_growth_and_a_timers_is_none),
        cmocka_unit_test(what_can_not_be_had_any_more_fails_but_what_was_not_asked_does_not),
        cmocka_unit_test(an_entry_that_is_new_has_not_grown),
        cmocka_unit_test(shapes_must_be_the_same),
        cmocka_unit_test(the_table_has_changes_beside_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
