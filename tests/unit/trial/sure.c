/* The stopping rule of run --precision: by hand, and over simulated runs that it stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "stats/random.h"
#include "trial/sure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void the_widest_that_counts_is_found(void **state)
{
    /* Entry 2 is the noisy one, entry 1 has no slice; 0 and 3 stand still against each other. */
    enum { entries = 4, blocks = 12 };
    double rate[blocks * entries];
    unsigned boot[blocks];
    const struct paired data = {blocks, entries, rate, boot};
    struct sure sure;
    (void)state;
    for (unsigned k = 0; k < blocks; k++) {
        const double row[entries] = {1000, NAN, k % 2 == 0 ? 900 : 1100, 2000};
        memcpy(rate + k * entries, row, sizeof row);
        boot[k] = k;
    }
    sure_look(&data, (const bool[]){true, false, true, true}, 400, 1, &sure);
    assert_int_equal(sure.entry, 2);
    assert_true(sure.widest > 0.05 && sure.widest < 0.1);
    double all = sure.widest;
    sure_look(&data, (const bool[]){true, false, false, true}, 400, 1, &sure);
    assert_int_not_equal(sure.entry, 2);
    assert_true(sure.widest < all);
    /* One that should have slices and has none, and nothing at all: nothing is known. */
    sure_look(&data, (const bool[]){true, true, true, true}, 400, 1, &sure);
    assert_true(isnan(sure.widest));
    sure_look(&data, (const bool[]){false, false, false, false}, 400, 1, &sure);
    assert_true(isnan(sure.widest));
    const struct paired one_block = {1, entries, rate, boot};
    sure_look(&one_block, (const bool[]){true, false, true, true}, 400, 1, &sure);
    assert_true(isnan(sure.widest));
}

static void it_waits_for_twelve_boots(void **state)
{
    const struct sure narrow = {.widest = 0.004}, at_it = {.widest = 0.01}, none = {.widest = NAN};
    (void)state;
    assert_false(sure_is_enough(&narrow, 0, 0.01));
    assert_false(sure_is_enough(&narrow, 11, 0.01));
    assert_true(sure_is_enough(&narrow, 12, 0.01));
    assert_false(sure_is_enough(&at_it, 100, 0.01));
    assert_false(sure_is_enough(&none, 100, 0.01));
}

static void half_the_width_takes_four_times_the_time(void **state)
{
    const struct sure twice = {.widest = 0.02}, narrow = {.widest = 0.004}, none = {.widest = NAN};
    uint64_t more_ns = 7;
    (void)state;
    assert_int_equal(sure_more_ns(&twice, 20, 0.01, 1000, &more_ns), 0);
    assert_int_equal(more_ns, 3000);
    assert_int_equal(sure_more_ns(&narrow, 12, 0.01, 1000, &more_ns), 0);
    assert_int_equal(more_ns, 0);
    assert_int_equal(sure_more_ns(&narrow, 6, 0.01, 1000, &more_ns), 0);
    assert_int_equal(more_ns, 1000); /* the other six boots */
    assert_int_equal(sure_more_ns(&none, 6, 0.01, 1000, &more_ns), -ENODATA);
    assert_int_equal(sure_more_ns(&twice, 0, 0.01, 0, &more_ns), -ENODATA);
}

/* ---- simulated runs */

enum { entries = 4, blocks_per_boot = 3, boots_max = 40, runs = 1000, draws = 100 };

struct noise {
    double boot;  /* standard deviations of log rates: a process against another */
    double block; /* a slice against another of its process */
    double burst; /* the share of slices that lose up to 30% */
};

struct simulated {
    double rate[boots_max * blocks_per_boot * entries];
    unsigned boot[boots_max * blocks_per_boot];
    double drift[boots_max * blocks_per_boot];
};

struct tally {
    double boots, at_least, sure, rate_held, ratio_held, beyond;
};

static double gauss(struct random *r)
{
    double radius = sqrt(-2 * log(1 - random_unit(r)));
    return radius * cos(2 * M_PI * random_unit(r));
}

/* All entries alike, on a machine whose level walks by 2% a block. */
static void simulate(struct simulated *s, const struct noise *n, struct random *r)
{
    double drift = 0, process[entries];
    for (unsigned k = 0; k < boots_max * blocks_per_boot; k++) {
        drift += 0.02 * gauss(r);
        s->drift[k] = drift;
        s->boot[k] = k / blocks_per_boot;
        for (unsigned e = 0; e < entries; e++) {
            if (k % blocks_per_boot == 0)
                process[e] = n->boot * gauss(r);
            double slice = n->block * gauss(r);
            if (random_unit(r) < n->burst)
                slice -= 0.3 * random_unit(r);
            s->rate[k * entries + e] = exp(10 + drift + process[e] + slice);
        }
    }
}

static struct paired first_boots(const struct simulated *s, unsigned boots)
{
    return (struct paired){boots * blocks_per_boot, entries, s->rate, s->boot};
}

/* As trial.c does it: look after each boot from the twelfth on, end at the precision or the last.
 */
static unsigned run_until_sure(const struct simulated *s, double precision, uint64_t seed,
                               bool *reached)
{
    static const bool counts[entries] = {true, true, true, true};
    for (unsigned boots = SURE_BOOTS_MIN;; boots++) {
        struct sure sure;
        struct paired data = first_boots(s, boots);
        sure_look(&data, counts, draws, seed, &sure);
        *reached = sure_is_enough(&sure, boots, precision);
        if (*reached || boots == boots_max)
            return boots;
    }
}

static bool holds(struct interval i, double truth)
{
    return i.low <= truth && truth <= i.high;
}

static void count_run(const struct simulated *s, unsigned boots, const struct noise *n,
                      uint64_t seed, struct tally *tally)
{
    struct interval rate, ratio;
    struct paired data = first_boots(s, boots);
    double level = 0;
    for (size_t k = 0; k < data.blocks; k++)
        level += s->drift[k] / (double)data.blocks;
    assert_int_equal(paired_rate(&data, 0, 0.95, draws, seed, &rate), 0);
    assert_int_equal(paired_ratio(&data, 0, 1, 0.95, draws, seed, &ratio), 0);
    tally->boots += (double)boots / runs;
    tally->at_least += (boots == SURE_BOOTS_MIN) / (double)runs;
    tally->rate_held += holds(rate, exp(10 + level - n->burst * 0.15)) / (double)runs;
    tally->ratio_held += holds(ratio, 1) / (double)runs;
    tally->beyond += (!holds(ratio, 1) && fabs(log(ratio.value)) > 0.01) / (double)runs;
}

/* 1000 runs know a share of 5% to 0.7% (one standard deviation). The seeds are fixed. A share of
 * 92% to 98% is asked for: what stopping early may cost, chance, and that a rate among four is too
 * wide by 15% (METHOD.md). */
static void check(const struct noise *n, double precision)
{
    static struct simulated s;
    struct random r;
    struct tally stopped = {0}, fixed = {0};
    random_seed(&r, 77);
    for (unsigned run = 0; run < runs; run++) {
        bool reached;
        simulate(&s, n, &r);
        unsigned boots = run_until_sure(&s, precision, run, &reached);
        stopped.sure += reached / (double)runs;
        count_run(&s, boots, n, run, &stopped);
        count_run(&s, 20, n, run, &fixed);
    }
    print_message("# boot %.1f%%, block %.1f%%, bursts %.0f%%, precision %.1f%%: %.1f boots, "
                  "%.0f%% of 12, sure %.0f%%; rate %.1f%%, ratio %.1f%%, apart %.1f%%, by 1%% and "
                  "more %.1f%%; of 20 boots: rate %.1f%%, ratio %.1f%%\n",
                  100 * n->boot, 100 * n->block, 100 * n->burst, 100 * precision, stopped.boots,
                  100 * stopped.at_least, 100 * stopped.sure, 100 * stopped.rate_held,
                  100 * stopped.ratio_held, 100 * (1 - stopped.ratio_held), 100 * stopped.beyond,
                  100 * fixed.rate_held, 100 * fixed.ratio_held);
    assert_true(stopped.rate_held > 0.92 && stopped.rate_held < 0.98);
    assert_true(stopped.ratio_held > 0.92 && stopped.ratio_held < 0.98);
}

static void stopping_keeps_coverage_where_blocks_are_the_noise(void **state)
{
    const struct noise n = {0, 0.02, 0};
    (void)state;
    check(&n, 0.008);
    check(&n, 0.006);
}

static void stopping_keeps_coverage_where_boots_are_the_noise(void **state)
{
    const struct noise n = {0.02, 0.01, 0};
    (void)state;
    check(&n, 0.015);
    check(&n, 0.011);
}

static void stopping_keeps_coverage_with_bursts(void **state)
{
    const struct noise n = {0.005, 0.02, 0.03};
    (void)state;
    check(&n, 0.015);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_widest_that_counts_is_found),
        cmocka_unit_test(it_waits_for_twelve_boots),
        cmocka_unit_test(half_the_width_takes_four_times_the_time),
        cmocka_unit_test(stopping_keeps_coverage_where_blocks_are_the_noise),
        cmocka_unit_test(stopping_keeps_coverage_where_boots_are_the_noise),
        cmocka_unit_test(stopping_keeps_coverage_with_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
