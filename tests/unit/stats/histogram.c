#include "stats/histogram.h"
#include "stats/random.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct histogram h;
static struct histogram other;

static uint64_t quantile(const struct histogram *from, double q)
{
    uint64_t value = 0;
    assert_int_equal(histogram_quantile_ns(from, q, &value), 0);
    return value;
}

static int reset(void **state)
{
    (void)state;
    /* Garbage first: reset must not rely on what was there. */
    memset(&h, 0xa5, sizeof h);
    memset(&other, 0xa5, sizeof other);
    histogram_reset(&h);
    histogram_reset(&other);
    return 0;
}

static void empty_has_no_quantile(void **state)
{
    (void)state;
    uint64_t value = 7;
    double mean = 7;
    assert_int_equal(histogram_quantile_ns(&h, 0.5, &value), -ENODATA);
    assert_int_equal(histogram_mean_ns(&h, &mean), -ENODATA);
    assert_int_equal(value, 7);
    assert_true(mean == 7);
    assert_int_equal(h.count, 0);
    assert_true(h.min_ns == UINT64_MAX && h.max_ns == 0);
}

static void quantile_outside_0_to_1_is_refused(void **state)
{
    (void)state;
    uint64_t value = 7;
    histogram_add(&h, 1);
    assert_int_equal(histogram_quantile_ns(&h, -0.01, &value), -EINVAL);
    assert_int_equal(histogram_quantile_ns(&h, 1.01, &value), -EINVAL);
    assert_int_equal(histogram_quantile_ns(&h, NAN, &value), -EINVAL);
    assert_int_equal(value, 7);
}

static void one_value_is_every_quantile(void **state)
{
    (void)state;
    const uint64_t values[] = {0, 1, 255, 256, 257, 123457, HISTOGRAM_LIMIT_NS, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        histogram_reset(&h);
        histogram_add(&h, values[i]);
        for (double q = 0; q <= 1; q += 0.25)
            assert_true(quantile(&h, q) == values[i]);
        assert_int_equal(h.overflow, values[i] >= HISTOGRAM_LIMIT_NS);
    }
}

/* Ten values; the places of Hyndman and Fan's type 1 worked out by hand. */
static void quantiles_of_ten(void **state)
{
    (void)state;
    const uint64_t values[] = {30, 10, 20, 100, 50, 40, 80, 60, 90, 70};
    for (size_t i = 0; i < 10; i++)
        histogram_add(&h, values[i]);
    assert_int_equal(quantile(&h, 0), 10);
    assert_int_equal(quantile(&h, 0.05), 10);
    assert_int_equal(quantile(&h, 0.1), 10);
    assert_int_equal(quantile(&h, 0.11), 20);
    assert_int_equal(quantile(&h, 0.5), 50);
    assert_int_equal(quantile(&h, 0.51), 60);
    assert_int_equal(quantile(&h, 0.9), 90);
    assert_int_equal(quantile(&h, 0.99), 100);
    assert_int_equal(quantile(&h, 1), 100);
    double mean;
    assert_int_equal(histogram_mean_ns(&h, &mean), 0);
    assert_true(mean == 55);
}

/* 0.07 * 100 is 7.000000000000001 in binary; the 7th of 100 is meant. */
static void rounding_moves_no_quantile(void **state)
{
    (void)state;
    for (uint64_t v = 1; v <= 100; v++)
        histogram_add(&h, v);
    for (unsigned percent = 1; percent <= 100; percent++)
        assert_int_equal(quantile(&h, percent / 100.0), percent);
}

static void small_values_are_exact(void **state)
{
    (void)state;
    for (uint64_t v = 0; v < 256; v++) {
        assert_int_equal(histogram_bucket(v), v);
        assert_int_equal(histogram_value_ns((unsigned)v), v);
    }
}

/* From 256 on, buckets of 2, then of 4 from 512, 8 from 1024. */
static void bucket_edges(void **state)
{
    (void)state;
    assert_int_equal(histogram_bucket(255), 255);
    assert_int_equal(histogram_bucket(256), 256);
    assert_int_equal(histogram_bucket(257), 256);
    assert_int_equal(histogram_bucket(258), 257);
    assert_int_equal(histogram_bucket(511), 383);
    assert_int_equal(histogram_bucket(512), 384);
    assert_int_equal(histogram_bucket(515), 384);
    assert_int_equal(histogram_bucket(516), 385);
    assert_int_equal(histogram_bucket(1023), 511);
    assert_int_equal(histogram_bucket(1024), 512);
    assert_int_equal(histogram_value_ns(256), 257);
    assert_int_equal(histogram_value_ns(384), 514);
    assert_int_equal(histogram_bucket(HISTOGRAM_LIMIT_NS - 1), HISTOGRAM_BUCKETS - 1);
}

/* Every bucket holds its own middle, follows the one before without a gap, and is narrow. */
static void buckets_tile_the_range(void **state)
{
    (void)state;
    uint64_t lowest = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t middle = histogram_value_ns(i);
        assert_int_equal(histogram_bucket(middle), i);
        assert_int_equal(histogram_bucket(lowest), i);
        uint64_t width = 2 * (middle - lowest);
        if (width == 0)
            width = 1;
        assert_int_equal(histogram_bucket(lowest + width - 1), i);
        assert_true(128 * (width - 1) <= lowest);
        lowest += width;
    }
    assert_true(lowest == HISTOGRAM_LIMIT_NS);
}

static void overflow_is_counted_not_clamped(void **state)
{
    (void)state;
    histogram_add(&h, 1000);
    histogram_add(&h, HISTOGRAM_LIMIT_NS - 1);
    histogram_add(&h, HISTOGRAM_LIMIT_NS);
    histogram_add(&h, HISTOGRAM_LIMIT_NS + 5);
    assert_int_equal(h.count, 4);
    assert_int_equal(h.overflow, 2);
    assert_true(h.max_ns == HISTOGRAM_LIMIT_NS + 5);
    assert_true(h.sum_ns == 1000 + 3 * HISTOGRAM_LIMIT_NS + 4);
    assert_true(quantile(&h, 0.5) < HISTOGRAM_LIMIT_NS);
    assert_true(quantile(&h, 0.75) == h.max_ns);
    assert_true(quantile(&h, 1) == h.max_ns);
}

static void sum_stops_at_the_top(void **state)
{
    (void)state;
    histogram_add(&h, UINT64_MAX);
    histogram_add(&h, 3);
    assert_true(h.sum_ns == UINT64_MAX);
    assert_true(h.min_ns == 3 && h.max_ns == UINT64_MAX);
    histogram_add(&other, UINT64_MAX);
    histogram_merge(&h, &other);
    assert_true(h.sum_ns == UINT64_MAX);
    assert_int_equal(h.count, 3);
    assert_int_equal(h.overflow, 2);
}

/* The middle of a bucket is never shown beyond the values that were there: 257 stands for 256. */
static void quantile_stays_within_min_and_max(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        histogram_add(&h, 256);
    assert_int_equal(quantile(&h, 0.5), 256);
    histogram_reset(&h);
    for (int i = 0; i < 3; i++)
        histogram_add(&h, 519); /* of 516..519, whose middle is 518 */
    assert_int_equal(quantile(&h, 0.5), 519);
    histogram_add(&h, 516);
    assert_int_equal(quantile(&h, 0), 516);
    assert_int_equal(quantile(&h, 0.5), 518);
    assert_int_equal(quantile(&h, 1), 519);
}

static void merge_is_the_same_as_adding_to_one(void **state)
{
    (void)state;
    static struct histogram all;
    struct random r;
    histogram_reset(&all);
    random_seed(&r, 4);
    for (int i = 0; i < 5000; i++) {
        uint64_t value = random_next(&r) >> (20 + random_below(&r, 40));
        histogram_add(&all, value);
        histogram_add(i % 3 ? &h : &other, value);
    }
    assert_true(all.overflow > 0);
    histogram_merge(&h, &other);
    assert_memory_equal(&h, &all, sizeof h);
}

static void merge_with_an_empty_one(void **state)
{
    (void)state;
    histogram_merge(&h, &other);
    assert_int_equal(h.count, 0);
    assert_true(h.min_ns == UINT64_MAX);
    histogram_add(&h, 42);
    histogram_merge(&h, &other);
    histogram_merge(&other, &h);
    assert_memory_equal(&h, &other, sizeof h);
    assert_int_equal(quantile(&h, 0.5), 42);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void check_against_sorted(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    uint64_t before = 0;
    for (unsigned permille = 0; permille <= 1000; permille++) {
        size_t place = (permille * count + 999) / 1000; /* ceiling, in whole numbers */
        uint64_t want = values[place ? place - 1 : 0];
        uint64_t got = quantile(&h, permille / 1000.0);
        uint64_t apart = got > want ? got - want : want - got;
        assert_true(apart <= want / 256);
        assert_true(got >= before);
        before = got;
    }
}

/* Every quantile within 1/256 of the sorted sample's (the contract; 1/128 is what is needed), for
 * samples of 1 to 3000 values spread over a random number of octaves, and for narrow ones. */
static void quantiles_match_a_sorted_sample(void **state)
{
    (void)state;
    static uint64_t values[3000];
    struct random r;
    random_seed(&r, 1);
    for (int sample = 0; sample < 200; sample++) {
        size_t count = 1 + (size_t)random_below(&r, 3000);
        uint64_t octaves = 1 + random_below(&r, 36);
        histogram_reset(&h);
        for (size_t i = 0; i < count; i++) {
            uint64_t top = UINT64_C(1) << random_below(&r, octaves);
            values[i] = sample % 2 ? top + random_below(&r, top) : 500000 + random_below(&r, top);
            histogram_add(&h, values[i]);
        }
        check_against_sorted(values, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(empty_has_no_quantile, reset),
        cmocka_unit_test_setup(quantile_outside_0_to_1_is_refused, reset),
        cmocka_unit_test_setup(one_value_is_every_quantile, reset),
        cmocka_unit_test_setup(quantiles_of_ten, reset),
        cmocka_unit_test_setup(rounding_moves_no_quantile, reset),
        cmocka_unit_test_setup(small_values_are_exact, reset),
        cmocka_unit_test_setup(bucket_edges, reset),
        cmocka_unit_test_setup(buckets_tile_the_range, reset),
        cmocka_unit_test_setup(overflow_is_counted_not_clamped, reset),
        cmocka_unit_test_setup(sum_stops_at_the_top, reset),
        cmocka_unit_test_setup(quantile_stays_within_min_and_max, reset),
        cmocka_unit_test_setup(merge_is_the_same_as_adding_to_one, reset),
        cmocka_unit_test_setup(merge_with_an_empty_one, reset),
        cmocka_unit_test_setup(quantiles_match_a_sorted_sample, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
