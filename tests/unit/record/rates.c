#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "record/rates.h"

#include <math.h>

static void slices_become_a_table(void **state)
{
    struct record_data data = {
        .run = json_loads("{\"entries\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"a twin\"}]}",
                          0, NULL),
        .lines = json_loads(
            "[{\"type\":\"gate\",\"entry\":\"a\"},"
            "{\"type\":\"slice\",\"entry\":\"b\",\"boot\":0,\"block\":1,\"window_ns\":500000000,"
            "\"valid\":100},"
            "{\"type\":\"slice\",\"entry\":\"a twin\",\"boot\":0,\"block\":1,"
            "\"window_ns\":1000000000,\"valid\":300},"
            "{\"type\":\"spoilt\",\"entry\":\"a\",\"boot\":0,\"block\":1,\"window_ns\":1000000000,"
            "\"valid\":3},"
            "{\"type\":\"slice\",\"entry\":\"a\",\"boot\":0,\"block\":1,\"window_ns\":1000000000,"
            "\"valid\":0},"
            "{\"type\":\"slice\",\"entry\":\"unknown\",\"boot\":0,\"block\":2,"
            "\"window_ns\":1000000000,\"valid\":9},"
            "{\"type\":\"slice\",\"entry\":\"a\",\"boot\":0,\"block\":2,\"window_ns\":1000000000,"
            "\"valid\":400},"
            "{\"type\":\"slice\",\"entry\":\"a\",\"boot\":4,\"block\":2,\"window_ns\":1000000000,"
            "\"valid\":500},"
            "{\"type\":\"end\"}]",
            0, NULL)};
    struct rates rates;
    (void)state;
    assert_non_null(data.run);
    assert_non_null(data.lines);
    rates_read(&data, &rates);
    assert_int_equal(rates.boots, 2);
    assert_int_equal(rates.table.entries, 3);
    assert_int_equal(rates.table.blocks, 3);
    const double wanted[] = {NAN, 200, 300, 400, NAN, NAN, 500, NAN, NAN};
    for (int i = 0; i < 9; i++)
        assert_true(isnan(wanted[i]) ? isnan(rates.table.rate[i])
                                     : fabs(rates.table.rate[i] - wanted[i]) < 1e-9);
    assert_int_equal(rates.table.boot[1], 0);
    assert_int_equal(rates.table.boot[2], 4);
    rates_free(&rates);
    json_array_clear(data.lines);
    rates_read(&data, &rates);
    assert_int_equal(rates.boots, 0);
    assert_int_equal(rates.table.blocks, 0);
    rates_free(&rates);
    record_data_free(&data);
}

/* As a record that was put together by hand may have it. */
static void order_and_repeats_do_not_matter(void **state)
{
    struct record_data data = {
        .run = json_loads("{\"entries\":[{\"name\":\"a\"}]}", 0, NULL),
        .lines = json_loads("[{\"type\":\"slice\",\"entry\":\"a\",\"boot\":1,\"block\":1,"
                            "\"window_ns\":1000000000,\"valid\":3},"
                            "{\"type\":\"slice\",\"entry\":\"a\",\"boot\":0,\"block\":2,"
                            "\"window_ns\":1000000000,\"valid\":2},"
                            "{\"type\":\"slice\",\"entry\":\"a\",\"boot\":1,\"block\":1,"
                            "\"window_ns\":1000000000,\"valid\":9},"
                            "{\"type\":\"slice\",\"entry\":\"a\",\"boot\":0,\"block\":1,"
                            "\"window_ns\":1000000000,\"valid\":1}]",
                            0, NULL)};
    struct rates rates;
    (void)state;
    rates_read(&data, &rates);
    assert_int_equal(rates.table.blocks, 3);
    assert_int_equal(rates.boots, 2);
    assert_int_equal(rates.repeated, 1);
    for (int b = 0; b < 3; b++)
        assert_true(fabs(rates.table.rate[b] - (b + 1)) < 1e-9);
    assert_int_equal(rates.table.boot[1], 0);
    assert_int_equal(rates.table.boot[2], 1);
    rates_free(&rates);
    record_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slices_become_a_table),
                                       cmocka_unit_test(order_and_repeats_do_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
