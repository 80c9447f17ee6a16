/* Trend and step worked out by hand, and how often chance or another entry's drift is taken for
 * one. */
#include "stats/drift.h"
#include "stats/random.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-3 * fabs(want) + 1e-9))
        fail_msg("got %.9g, want %.9g", got, want);
}

enum { entries = 4, blocks_max = 240 };

/* Entry 0 lies so far from three steady others, on the log scale; a machine that drifts besides
 * changes nothing. */
struct planted {
    double rate[blocks_max * 11];
    unsigned boot[blocks_max];
};

static struct paired plant(struct planted *t, const double *distance, size_t blocks,
                           size_t blocks_per_boot)
{
    for (size_t k = 0; k < blocks; k++) {
        double machine = 10 + 0.3 * sin((double)k);
        t->boot[k] = (unsigned)(k / blocks_per_boot);
        t->rate[k * entries] = exp(machine + distance[k]);
        for (size_t j = 1; j < entries; j++)
            t->rate[k * entries + j] = exp(machine + (double)j);
    }
    return (struct paired){blocks, entries, t->rate, t->boot};
}

/* Means 0.05 and 0.55, squares 0.005 each: t = 0.5 / sqrt(0.01/2 * 2/2) = 7.071 with 2 degrees of
 * freedom, p = 1 - t/sqrt(t^2 + 2) = 0.01942. The trend's: slope 0.22, rest 0.018, t = 5.185,
 * p = 0.0353. Two tests: twice the least. */
static void halves_by_hand(void **state)
{
    static struct planted t;
    const double distance[] = {0, 0.1, 0.5, 0.6};
    struct paired p = plant(&t, distance, 4, 1);
    struct drift drift;
    (void)state;
    assert_int_equal(drift_test(&p, 0, &drift), 0);
    assert_near(drift.p, 0.03884);
    assert_near(drift.change, exp(0.5));
    assert_false(drift.within_boots);
}

/* 0, 0.1, 0.2, 0.4 is nearer to a line than to a step: slope 0.13, rest 0.003, t = 7.506,
 * p = 0.01729, against 0.0742 by halves. */
static void a_trend_by_hand(void **state)
{
    static struct planted t;
    const double distance[] = {0, 0.1, 0.2, 0.4};
    struct paired p = plant(&t, distance, 4, 1);
    struct drift drift;
    (void)state;
    assert_int_equal(drift_test(&p, 0, &drift), 0);
    assert_near(drift.p, 2 * 0.017293);
    assert_near(drift.change, exp(0.25));
}

/* Differences 0.1, 0.2, 0.3 of three boots: t = 0.2 / (0.1/sqrt(3)) = 3.464, 2 degrees of freedom,
 * p = 0.07418; the only test of three boots. */
static void within_boots_by_hand(void **state)
{
    static struct planted t;
    const double distance[] = {0, 0.1, 0, 0.2, 0, 0.3};
    struct paired p = plant(&t, distance, 6, 2);
    struct drift drift;
    (void)state;
    assert_int_equal(drift_test(&p, 0, &drift), 0);
    assert_near(drift.p, 0.07418);
    assert_near(drift.change, exp(0.2));
    assert_true(drift.within_boots);
}

static void one_boot_is_tested_by_its_blocks(void **state)
{
    static struct planted t;
    const double distance[] = {0, 0.1, 0.5, 0.6};
    struct paired p = plant(&t, distance, 4, 4);
    struct drift drift;
    (void)state;
    assert_int_equal(drift_test(&p, 0, &drift), 0);
    assert_near(drift.p, 0.03884);
    assert_false(drift.within_boots);
}

static void what_can_t_be_tested_is_not(void **state)
{
    static struct planted t;
    const double distance[] = {0, 0.1, 0.5, 0.6};
    struct drift drift;
    (void)state;
    struct paired p = plant(&t, distance, 3, 1);
    assert_int_equal(drift_test(&p, 0, &drift), -ENODATA);
    p = plant(&t, distance, 4, 2);
    assert_int_equal(drift_test(&p, 0, &drift), -ENODATA);
    p = plant(&t, distance, 4, 1);
    assert_int_equal(drift_test(&p, entries, &drift), -EINVAL);
    p.blocks = 0;
    assert_int_equal(drift_test(&p, 0, &drift), -ENODATA);
    const double alone[] = {10, 20, 30, 40, 50};
    const unsigned boot[] = {0, 1, 2, 3, 4};
    p = (struct paired){5, 1, alone, boot};
    assert_int_equal(drift_test(&p, 0, &drift), -ENODATA);
}

static void no_change_is_p_1(void **state)
{
    const double rate[] = {1, 2, 1, 2, 1, 2, 1, 2};
    const unsigned boot[] = {0, 1, 2, 3};
    const struct paired p = {4, 2, rate, boot};
    struct drift drift;
    (void)state;
    assert_int_equal(drift_test(&p, 0, &drift), 0);
    assert_near(drift.p, 1);
    assert_near(drift.change, 1);
}

/* ---- simulated runs: 11 entries, 12 boots of 6 blocks, a machine that walks by 2% a block */

enum { many = 11, boots = 12, per_boot = 6, runs = 2000 };

static double gauss(struct random *r)
{
    double radius = sqrt(-2 * log(1 - random_unit(r)));
    return radius * cos(2 * M_PI * random_unit(r));
}

/* `step` is what entry 0 gains in the second half of the run, `age` what it gains by the end of
 * each boot. */
static struct paired simulate(struct planted *t, double step, double age, struct random *r)
{
    double machine = 10, process[many];
    for (size_t k = 0; k < boots * per_boot; k++) {
        t->boot[k] = (unsigned)(k / per_boot);
        machine += 0.02 * gauss(r);
        for (size_t e = 0; e < many; e++) {
            if (k % per_boot == 0)
                process[e] = 0.01 * gauss(r);
            double burst = random_unit(r) < 0.03 ? -0.3 * random_unit(r) : 0;
            t->rate[k * many + e] = exp(machine + process[e] + 0.02 * gauss(r) + burst);
        }
        double gained =
            (k >= boots * per_boot / 2 ? step : 0) + age * (double)(k % per_boot) / (per_boot - 1);
        t->rate[k * many] *= exp(gained);
    }
    return (struct paired){boots * per_boot, many, t->rate, t->boot};
}

/* Whether the entry is named in a run of 11 tests at 5% in all, as report/verdict.h does. */
static bool named(const struct paired *p, size_t entry, bool *within)
{
    struct drift drift;
    assert_int_equal(drift_test(p, entry, &drift), 0);
    *within = drift.within_boots;
    return drift.p * many < 0.05;
}

static void chance_is_taken_for_drift_in_one_run_of_20_at_most(void **state)
{
    static struct planted t;
    struct random r;
    unsigned with_any = 0;
    (void)state;
    random_seed(&r, 11);
    for (unsigned run = 0; run < runs; run++) {
        struct paired p = simulate(&t, 0, 0, &r);
        bool any = false, within;
        for (size_t e = 0; e < many; e++)
            any |= named(&p, e, &within);
        with_any += any;
    }
    print_message("steady servers: any named in %.1f%% of runs\n", 100.0 * with_any / runs);
    assert_true(with_any <= runs * 6 / 100);
    assert_true(with_any >= runs / 100); /* a test that never errs has no power either */
}

static void planted_drift_is_found_and_blames_nobody_else(void **state)
{
    static const struct {
        double step, age;
        bool within;
    } plants[] = {{0.10, 0, false}, {0, -0.15, true}, {-0.5, 0, false}};
    static struct planted t;
    struct random r;
    (void)state;
    random_seed(&r, 12);
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        unsigned found = 0, others = 0;
        for (unsigned run = 0; run < 200; run++) {
            struct paired p = simulate(&t, plants[i].step, plants[i].age, &r);
            bool any = false, within = false;
            if (named(&p, 0, &within) && within == plants[i].within)
                found++;
            for (size_t e = 1; e < many; e++)
                any |= named(&p, e, &within);
            others += any;
        }
        print_message("step %+.2f, age %+.2f: found in %.1f%%, another named in %.1f%% of runs\n",
                      plants[i].step, plants[i].age, found / 2.0, others / 2.0);
        assert_true(found >= 190);
        assert_true(others <= 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_by_hand),
        cmocka_unit_test(a_trend_by_hand),
        cmocka_unit_test(within_boots_by_hand),
        cmocka_unit_test(one_boot_is_tested_by_its_blocks),
        cmocka_unit_test(what_can_t_be_tested_is_not),
        cmocka_unit_test(no_change_is_p_1),
        cmocka_unit_test(chance_is_taken_for_drift_in_one_run_of_20_at_most),
        cmocka_unit_test(planted_drift_is_found_and_blames_nobody_else),
    };
    return cmocka_run_group_tests_name("drift", tests, NULL, NULL);
}
