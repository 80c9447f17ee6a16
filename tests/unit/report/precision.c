#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "report/precision.h"

#include <stdlib.h>

static void check(const char *end, const char *sentence)
{
    json_t *line = json_loads(end, 0, NULL);
    assert_non_null(line);
    char *got = precision_sentence(line);
    if (sentence == NULL)
        assert_null(got);
    else
        assert_string_equal(got, sentence);
    free(got);
    json_decref(line);
}

static void the_sentence_says_what_ended_the_run(void **state)
{
    (void)state;
    check("{\"ended_by\":\"boots\",\"boots\":12}", NULL);
    check("{\"ended_by\":\"precision\",\"boots\":14,\"spent_ns\":182400000000,\"precision\":"
          "{\"wanted\":0.01,\"widest\":0.0093,\"widest_entry\":\"libuv\",\"more_ns\":0}}",
          "Precision: reached after 14 boots and 182 s: every interval is within +-1%, the widest "
          "+-0.93% (libuv).");
    check(
        "{\"ended_by\":\"budget\",\"boots\":26,\"precision\":"
        "{\"wanted\":0.005,\"widest\":0.0161,\"widest_entry\":\"node\",\"more_ns\":470000000000}}",
        "Precision: the budget ended first, after 26 boots: the widest interval is +-1.61% "
        "(node), +-0.5% was wanted. About 8 min more would be needed.");
    check("{\"ended_by\":\"signal\",\"boots\":2,\"precision\":"
          "{\"wanted\":0.01,\"widest\":0.2,\"widest_entry\":\"a\",\"more_ns\":12000000000000}}",
          "Precision: interrupted after 2 boots: the widest interval is +-20.00% (a), +-1% was "
          "wanted. About 3.3 h more would be needed.");
    check("{\"ended_by\":\"failures\",\"boots\":0,\"precision\":{\"wanted\":0.01}}",
          "Precision: nothing was left to measure after 0 boots, too few to know any interval; "
          "+-1% was wanted.");
    assert_null(precision_sentence(NULL));
    assert_null(precision_to_json(NULL));
}

static void json_has_seconds(void **state)
{
    (void)state;
    json_t *end = json_pack("{s:{s:f, s:f, s:s, s:I}}", "precision", "wanted", 0.01, "widest", 0.02,
                            "widest_entry", "a", "more_ns", (json_int_t)3000000000);
    json_t *wanted = json_pack("{s:f, s:f, s:s, s:f}", "wanted", 0.01, "widest", 0.02, "entry", "a",
                               "more_s", 3.0);
    json_t *got = precision_to_json(end);
    assert_true(json_equal(got, wanted));
    json_decref(got);
    json_decref(wanted);
    json_decref(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_sentence_says_what_ended_the_run),
                                       cmocka_unit_test(json_has_seconds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
