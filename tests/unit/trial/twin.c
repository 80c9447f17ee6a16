#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "trial/trial.h"
#include "trial/twin.h"

#include <stdio.h>
#include <string.h>

static struct plan asking_for(const char *twin, uint64_t seed)
{
    struct plan plan = {.seed = seed};
    snprintf(plan.twin, sizeof plan.twin, "%s", twin);
    return plan;
}

static void draws_are_even_and_repeat(void **state)
{
    char names[3][2] = {"a", "b", "c"};
    struct entry entries[3] = {{.name = names[0]}, {.name = names[1]}, {.name = names[2]}};
    const struct entry *fit[3] = {&entries[0], &entries[1], &entries[2]};
    unsigned counts[3] = {0};
    (void)state;
    for (unsigned seed = 0; seed < 900; seed++) {
        struct plan plan = asking_for(PLAN_TWIN_DRAWN, seed);
        const struct entry *drawn = twin_choose(&plan, fit, 3);
        assert_ptr_equal(drawn, twin_choose(&plan, fit, 3));
        counts[drawn - entries]++;
    }
    for (int i = 0; i < 3; i++) /* 300 expected; 6 standard deviations are 85 */
        assert_true(counts[i] > 215 && counts[i] < 385);
}

static void what_is_asked_for_is_chosen_if_it_is_fit(void **state)
{
    char names[2][2] = {"a", "b"};
    struct entry entries[2] = {{.name = names[0]}, {.name = names[1]}};
    const struct entry *fit[2] = {&entries[0], &entries[1]};
    struct plan b = asking_for("b", 1), gone = asking_for("gone", 1), none = asking_for("", 1);
    struct plan drawn = asking_for(PLAN_TWIN_DRAWN, 1);
    (void)state;
    assert_ptr_equal(twin_choose(&b, fit, 2), &entries[1]);
    assert_null(twin_choose(&gone, fit, 2));
    assert_null(twin_choose(&none, fit, 2));
    assert_null(twin_choose(&drawn, fit, 0));
}

static void its_object_is_its_entry_s(void **state)
{
    (void)state;
    json_t *entry = json_pack("{s:s, s:s, s:s}", "name", "a", "hash", "12", "status", "active");
    json_t *twin = twin_describe(entry);
    json_t *wanted = json_pack("{s:s, s:s, s:s, s:s}", "name", "a twin", "hash", "12", "status",
                               "twin", "twin_of", "a");
    assert_true(json_equal(twin, wanted));
    json_t *run = json_pack("{s:[o, o]}", "entries", entry, twin);
    assert_string_equal(twin_find(run), "a");
    json_array_remove(json_object_get(run, "entries"), 1);
    assert_null(twin_find(run));
    json_decref(run);
    json_decref(wanted);
}

/* Boots planned: 3. */
static bool is_complete(const char *lines, unsigned *boots)
{
    const struct plan plan = {.boots = 3};
    struct record_data data = {.lines = json_loads(lines, 0, NULL)};
    assert_non_null(data.lines);
    bool complete = trial_is_complete(&plan, &data, boots);
    json_decref(data.lines);
    return complete;
}

static void a_run_is_complete_when_it_ended_as_planned(void **state)
{
    unsigned boots;
    (void)state;
    assert_false(is_complete("[]", &boots));
    assert_false(is_complete("[{\"type\":\"slice\"}]", &boots));
    assert_true(is_complete("[{\"type\":\"end\",\"interrupted\":false,\"boots\":3}]", &boots));
    assert_int_equal(boots, 3);
    assert_false(is_complete("[{\"type\":\"end\",\"interrupted\":true,\"boots\":2}]", &boots));
    assert_false(is_complete("[{\"type\":\"end\",\"interrupted\":false,\"ended_by\":\"boots\","
                             "\"boots\":2}]",
                             &boots));
    assert_true(is_complete("[{\"type\":\"end\",\"interrupted\":false,\"ended_by\":\"precision\","
                            "\"boots\":2}]",
                            &boots));
    assert_false(is_complete("[{\"type\":\"end\",\"interrupted\":false,\"boots\":3},"
                             "{\"type\":\"slice\"}]",
                             &boots));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_even_and_repeat),
        cmocka_unit_test(what_is_asked_for_is_chosen_if_it_is_fit),
        cmocka_unit_test(its_object_is_its_entry_s),
        cmocka_unit_test(a_run_is_complete_when_it_ended_as_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
