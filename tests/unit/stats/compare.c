#include "stats/random.h"
#include "stats/trimmed.h"
#include "stats/welch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum { draws = 400 };

/* Student's 0.975 quantiles, from a printed table. */
static const double student_1 = 12.7062, student_2 = 4.30265, student_4 = 2.77645;

static void assert_close(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want) + 1e-12))
        fail_msg("got %.12g, want %.12g", got, want);
}

/* ---- trimmed ---- */

static void a_quarter_goes_at_either_end(void **state)
{
    (void)state;
    double eight[] = {1000, 4, 2, 1, 3, -1000, 5, 6};
    double four[] = {100, 2, 1, -100};
    double three[] = {1, 100, 4};
    double one[] = {7};
    assert_close(trimmed_mean(eight, 8), 2.5 + 1, 1e-12); /* 2 3 4 5 */
    assert_close(trimmed_mean(four, 4), 1.5, 1e-12);
    assert_close(trimmed_mean(three, 3), 35, 1e-12); /* too few to cut */
    assert_close(trimmed_mean(one, 1), 7, 1e-12);
    assert_true(isnan(trimmed_mean(one, 0)));
}

/* Two boots of four blocks with log ratios 0.01 and 0.03 in their middle and something wild at
 * either end: 0.02 +- t * 0.01. */
static void wild_blocks_move_nothing(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 0, 0, 0, 4, 4, 4, 4};
    const double logs[] = {3, 0.01, 0.01, -2, 0.03, -9, 0.03, 1};
    double rate[16];
    for (int i = 0; i < 8; i++) {
        rate[2 * i] = 100;
        rate[2 * i + 1] = 100 * exp(logs[i]);
    }
    const struct paired data = {.blocks = 8, .entries = 2, .rate = rate, .boot = boot};
    struct interval ratio;
    assert_int_equal(trimmed_ratio(&data, 1, 0, 0.95, draws, 1, &ratio), 0);
    assert_close(log(ratio.value), 0.02, 1e-9);
    assert_close(log(ratio.high / ratio.low) / 2, 0.01 * student_1, 1e-4);
    assert_int_equal(paired_ratio(&data, 1, 0, 0.95, draws, 1, &ratio), 0);
    assert_true(log(ratio.value) < -0.5); /* the mean over all blocks is (-9 + 2.08) / 8 */
}

static void boots_without_a_shared_block_do_not_count(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 1, 2, 3};
    const double rate[] = {10, 10 * exp(0.01), NAN, 10, 10, 10 * exp(0.03), 10, NAN};
    const struct paired data = {.blocks = 4, .entries = 2, .rate = rate, .boot = boot};
    struct interval ratio;
    assert_int_equal(trimmed_ratio(&data, 1, 0, 0.95, draws, 1, &ratio), 0);
    assert_close(log(ratio.value), 0.02, 1e-9);
    assert_close(log(ratio.high / ratio.low) / 2, 0.01 * student_1, 1e-4);
}

static void one_boot_is_judged_by_its_blocks(void **state)
{
    (void)state;
    const unsigned boot[] = {2, 2, 2, 2};
    const double rate[] = {10, 10, 10, 11, 10, 9, 10, 10};
    const struct paired data = {.blocks = 4, .entries = 2, .rate = rate, .boot = boot};
    struct interval trimmed, mean;
    assert_int_equal(trimmed_ratio(&data, 1, 0, 0.95, draws, 1, &trimmed), 0);
    assert_int_equal(paired_ratio(&data, 1, 0, 0.95, draws, 1, &mean), 0);
    assert_memory_equal(&trimmed, &mean, sizeof mean);
}

static void nothing_to_judge_is_said(void **state)
{
    (void)state;
    const unsigned boot[] = {0};
    const double apart[] = {10, NAN};
    const double both[] = {10, 20};
    const struct paired none = {.blocks = 1, .entries = 2, .rate = apart, .boot = boot};
    const struct paired single = {.blocks = 1, .entries = 2, .rate = both, .boot = boot};
    struct interval ratio;
    assert_int_equal(trimmed_ratio(&none, 1, 0, 0.95, draws, 1, &ratio), -ENODATA);
    assert_int_equal(trimmed_ratio(&single, 2, 0, 0.95, draws, 1, &ratio), -EINVAL);
    assert_int_equal(trimmed_ratio(&single, 1, 0, 0.95, draws, 1, &ratio), 0);
    assert_close(ratio.value, 2, 1e-12);
    assert_true(isnan(ratio.low) && isnan(ratio.high));
}

/* ---- Welch ---- */

/* Equal spread and size: Student's two-sample interval with 2n-2 degrees of freedom. Both have
 * variance 1, of their means 1/3; so sqrt(2/3) and 4 degrees. */
static void equal_spreads_are_students(void **state)
{
    (void)state;
    const double a[] = {1, 2, 3};
    const double b[] = {12, 11, 13};
    struct interval d;
    assert_int_equal(welch_difference(a, 3, b, 3, 0.95, &d), 0);
    assert_close(d.value, 10, 1e-12);
    assert_close(d.high - d.value, sqrt(2.0 / 3) * student_4, 1e-5);
    assert_close(d.value - d.low, d.high - d.value, 1e-9);
}

/* A sample without spread gives nothing to the error and nothing to the degrees of freedom: the
 * other's n-1. */
static void a_still_sample_leaves_the_other(void **state)
{
    (void)state;
    const double a[] = {5, 5, 5, 5};
    const double b[] = {1, 2, 3};
    struct interval d;
    assert_int_equal(welch_difference(a, 4, b, 3, 0.95, &d), 0);
    assert_close(d.value, -3, 1e-12);
    assert_close(d.high - d.value, sqrt(1.0 / 3) * student_2, 1e-5);
    assert_int_equal(welch_difference(a, 4, a, 4, 0.95, &d), 0);
    assert_close(d.high - d.low, 0, 1e-12);
}

static void few_values(void **state)
{
    (void)state;
    const double a[] = {1, 2};
    struct interval d;
    assert_int_equal(welch_difference(a, 0, a, 2, 0.95, &d), -ENODATA);
    assert_int_equal(welch_difference(a, 2, a, 0, 0.95, &d), -ENODATA);
    assert_int_equal(welch_difference(a, 2, a, 2, 1, &d), -EINVAL);
    assert_int_equal(welch_difference(a, 1, a, 2, 0.95, &d), 0);
    assert_close(d.value, 0.5, 1e-12);
    assert_true(isnan(d.low) && isnan(d.high));
}

/* ---- simulated ---- */

static double normal(struct random *r)
{
    double u = 1 - random_unit(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * random_unit(r));
}

/* Of samples with unlike sizes and spreads, 95 of 100 intervals hold the truth. */
static void welch_covers(void **state)
{
    enum { runs = 4000 };
    struct random r;
    unsigned held = 0;
    (void)state;
    random_seed(&r, 5);
    for (int run = 0; run < runs; run++) {
        double a[12], b[6];
        struct interval d;
        for (int i = 0; i < 12; i++)
            a[i] = 0.01 * normal(&r);
        for (int i = 0; i < 6; i++)
            b[i] = 0.02 + 0.03 * normal(&r);
        assert_int_equal(welch_difference(a, 12, b, 6, 0.95, &d), 0);
        held += d.low <= 0.02 && 0.02 <= d.high;
    }
    printf("# welch: %.1f%%\n", 100.0 * held / runs);
    assert_true(held > 0.94 * runs && held < 0.96 * runs);
}

#define SIM_BOOTS  24
#define SIM_BLOCKS 45

/* Noise of a block's log ratio as it was seen in turns of 10 ms: a normal core, a wider share, and
 * one in thirteen struck hard; quartiles at -4% and +4%, 5% beyond 22%, 1% beyond 50%. */
static double noise(struct random *r)
{
    double kind = random_unit(r);
    double deviation = kind < 0.68 ? 0.045 : kind < 0.925 ? 0.11 : 0.38;
    return deviation * normal(r);
}

struct power {
    unsigned held, same, slower, mean_held;
    double width, mean_width;
};

static struct power simulate(double ratio, double boot_noise, unsigned runs, uint64_t seed)
{
    static double rate[SIM_BOOTS * SIM_BLOCKS * 2];
    static unsigned boot[SIM_BOOTS * SIM_BLOCKS];
    const struct paired data = {
        .blocks = SIM_BOOTS * SIM_BLOCKS, .entries = 2, .rate = rate, .boot = boot};
    struct power power = {0};
    struct random r;
    random_seed(&r, seed);
    for (unsigned run = 0; run < runs; run++) {
        struct interval i, mean;
        for (size_t k = 0, b = 0; b < SIM_BOOTS; b++) {
            double own = boot_noise * normal(&r);
            for (size_t n = 0; n < SIM_BLOCKS; n++, k++) {
                rate[2 * k] = 170000;
                rate[2 * k + 1] = 170000 * ratio * exp(own + noise(&r));
                boot[k] = (unsigned)b;
            }
        }
        assert_int_equal(trimmed_ratio(&data, 1, 0, 0.95, 200, run, &i), 0);
        assert_int_equal(paired_ratio(&data, 1, 0, 0.95, 100, run, &mean), 0);
        power.held += i.low <= ratio && ratio <= i.high;
        power.mean_held += mean.low <= ratio && ratio <= mean.high;
        power.same += i.low >= 0.98 && i.high <= 1 / 0.98;
        power.slower += i.value < 0.98 && i.high < 1;
        power.width += (i.high - i.low) / 2 / runs;
        power.mean_width += (mean.high - mean.low) / 2 / runs;
    }
    printf(
        "# ratio %.2f, boots differ by %.1f%%: held %.1f%%, half-width %.2f%% (of the mean %.1f%%, "
        "%.2f%%); same %.1f%%, slower %.1f%%\n",
        ratio, boot_noise * 100, 100.0 * power.held / runs, 100 * power.width,
        100.0 * power.mean_held / runs, 100 * power.mean_width, 100.0 * power.same / runs,
        100.0 * power.slower / runs);
    return power;
}

/* What `compare --entry` is to do: an unchanged build is called the same and one 3% slower is
 * called slower, each 19 times in 20 and more; and the interval keeps its promise. */
static void two_builds_are_told_apart(void **state)
{
    enum { runs = 1000 };
    (void)state;
    struct power same = simulate(1, 0.005, runs, 11);
    assert_true(same.held > 0.93 * runs && same.held < 0.97 * runs);
    assert_true(same.same > 0.99 * runs);
    assert_int_equal(same.slower, 0);
    struct power slower = simulate(0.97, 0.005, runs, 12);
    assert_true(slower.held > 0.93 * runs && slower.held < 0.97 * runs);
    assert_true(slower.slower > 0.99 * runs);
    assert_int_equal(slower.same, 0);
    /* 1% is less than the threshold of 2%: never a regression, and mostly the same. */
    struct power little = simulate(0.99, 0.005, runs, 13);
    assert_true(little.slower < 0.01 * runs);
    assert_true(little.same > 0.8 * runs);
    /* Processes that differ by 2% leave less to be said, and nothing false. */
    struct power restless = simulate(1, 0.02, runs, 14);
    assert_true(restless.held > 0.93 * runs && restless.held < 0.97 * runs);
    assert_true(restless.slower < 0.025 * runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quarter_goes_at_either_end),
        cmocka_unit_test(wild_blocks_move_nothing),
        cmocka_unit_test(boots_without_a_shared_block_do_not_count),
        cmocka_unit_test(one_boot_is_judged_by_its_blocks),
        cmocka_unit_test(nothing_to_judge_is_said),
        cmocka_unit_test(equal_spreads_are_students),
        cmocka_unit_test(a_still_sample_leaves_the_other),
        cmocka_unit_test(few_values),
        cmocka_unit_test(welch_covers),
        cmocka_unit_test(two_builds_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
