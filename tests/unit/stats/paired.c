#include "stats/paired.h"
#include "stats/random.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

enum { draws = 4000 };

/* Student's 0.975 quantiles, from a printed table. */
static const double student_1 = 12.7062, student_2 = 4.30265, student_3 = 3.18245;

static void assert_close(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("got %.12g, want %.12g", got, want);
}

static struct interval ratio_of(const struct paired *p, size_t entry, size_t base)
{
    struct interval i = {0};
    assert_int_equal(paired_ratio(p, entry, base, 0.95, draws, 1, &i), 0);
    return i;
}

static struct interval rate_of(const struct paired *p, size_t entry)
{
    struct interval i = {0};
    assert_int_equal(paired_rate(p, entry, 0.95, draws, 1, &i), 0);
    return i;
}

/* How far the interval reaches on the log scale. */
static double half_width(struct interval i)
{
    return log(i.high / i.low) / 2;
}

#define TABLE(p, entry_count, boots, rates)                                                        \
    const struct paired p = {sizeof boots / sizeof *boots, entry_count, rates, boots};             \
    _Static_assert(sizeof rates / sizeof *rates == (entry_count) * (sizeof boots / sizeof *boots), \
                   "a rate for each block and entry")

/* Ratios 2 and 8 in two boots: mean ln 4, standard error (ln 8 - ln 2)/2 = ln 2. Of the draws half
 * lie at the mean and half at ln 2 from it, 1.41 deviations: no widening. */
static void two_boots_by_hand(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 1};
    const double rate[] = {20, 10, 80, 10};
    TABLE(p, 2, boot, rate);
    struct interval i = ratio_of(&p, 0, 1);
    assert_close(i.value, 4, 1e-12);
    assert_close(half_width(i), student_1 * log(2), 1e-5);
    assert_close(i.low * i.high, 16, 1e-9);
}

/* Ratios 1, e^0.01, e^0.02: mean 0.01, s = 0.01, standard error 0.01/sqrt(3). Of the 27 draws two
 * are of one outer boot thrice, at 0.01: 7.4%, so 95% of the draws need 0.01. Their deviation is
 * 0.01 * sqrt(2/3/3) = 0.004714, so the tail is 2.1213 deviations and widens by 2.1213/1.95996.
 * The draws' deviation is itself drawn: 4000 draws know it to about 1%. */
static void three_boots_by_hand(void **state)
{
    (void)state;
    const unsigned boot[] = {3, 7, 8};
    const double rate[] = {100, 100, 100 * exp(0.01), 100, 100 * exp(0.02), 100};
    TABLE(p, 2, boot, rate);
    struct interval i = ratio_of(&p, 0, 1);
    assert_close(log(i.value), 0.01, 1e-9);
    assert_close(half_width(i), 0.01 / sqrt(3) * student_2 * 2.1213 / 1.95996, 0.03);
}

/* One boot: its four blocks are the units. Logs 0, 0, 0.02, 0.02: mean 0.01, s = 0.011547, standard
 * error 0.0057735. The draws are 0.02 * binomial(4, 1/2) / 4: one in eight lies 0.01 out, which is
 * 2 deviations, and widens by 2/1.95996. */
static void one_boot_takes_its_blocks(void **state)
{
    (void)state;
    const unsigned boot[] = {5, 5, 5, 5};
    const double rate[] = {1, 1, 1, 1, exp(0.02), 1, exp(0.02), 1};
    TABLE(p, 2, boot, rate);
    struct interval i = ratio_of(&p, 0, 1);
    assert_close(log(i.value), 0.01, 1e-9);
    assert_close(half_width(i), 0.0057735 * student_3 * 2 / 1.95996, 0.03);
}

/* One boot of two blocks, both ways: ratios 2 and 8 again. */
static void one_boot_of_two_blocks(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 0};
    const double rate[] = {20, 10, 80, 10};
    TABLE(p, 2, boot, rate);
    assert_close(half_width(ratio_of(&p, 0, 1)), student_1 * log(2), 1e-5);
}

/* Boot 0 has ratio 2 in three blocks, boot 1 has 8 in one: each boot counts once, so 4 and not
 * 2^(6/4) = 2.83. */
static void boots_weigh_the_same(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 0, 0, 1};
    const double rate[] = {20, 10, 40, 20, 2, 1, 80, 10};
    TABLE(p, 2, boot, rate);
    struct interval i = ratio_of(&p, 0, 1);
    assert_close(i.value, 4, 1e-12);
    assert_close(half_width(i), student_1 * log(2), 1e-5);
}

static void one_block_has_no_interval(void **state)
{
    (void)state;
    const unsigned boot[] = {0};
    const double rate[] = {30, 10};
    TABLE(p, 2, boot, rate);
    struct interval i = ratio_of(&p, 0, 1);
    assert_close(i.value, 3, 1e-12);
    assert_true(isnan(i.low) && isnan(i.high));
    i = rate_of(&p, 0);
    assert_close(i.value, 30, 1e-12);
    assert_true(isnan(i.low) && isnan(i.high));
}

static void equal_blocks_have_no_width(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 0, 1, 1};
    const double rate[] = {2, 1, 4, 2, 8, 4, 2, 1};
    TABLE(p, 2, boot, rate);
    struct interval i = ratio_of(&p, 0, 1);
    assert_close(i.value, 2, 1e-12);
    assert_close(i.low, 2, 1e-12);
    assert_close(i.high, 2, 1e-12);
    i = ratio_of(&p, 1, 1);
    assert_true(i.value == 1 && i.low == 1 && i.high == 1);
}

static void nothing_to_judge_by(void **state)
{
    (void)state;
    struct interval i = {1, 2, 3};
    const unsigned boot[] = {0, 1};
    const double apart[] = {10, NAN, NAN, 10};
    TABLE(p, 2, boot, apart);
    const struct paired none = {0, 2, apart, boot};
    const struct paired nobody = {2, 0, apart, boot};
    const double gone_rates[] = {10, NAN, 10, NAN};
    TABLE(gone, 2, boot, gone_rates);
    assert_int_equal(paired_ratio(&p, 0, 1, 0.95, draws, 1, &i), -ENODATA);
    assert_int_equal(paired_ratio(&none, 0, 1, 0.95, draws, 1, &i), -ENODATA);
    assert_int_equal(paired_rate(&none, 0, 0.95, draws, 1, &i), -ENODATA);
    assert_int_equal(paired_ratio(&gone, 0, 1, 0.95, draws, 1, &i), -ENODATA);
    assert_int_equal(paired_rate(&gone, 1, 0.95, draws, 1, &i), -ENODATA);
    assert_int_equal(paired_rate(&nobody, 0, 0.95, draws, 1, &i), -EINVAL);
    assert_true(i.value == 1 && i.low == 2 && i.high == 3);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    struct interval i = {1, 2, 3};
    const unsigned boot[] = {0, 1};
    double rate[] = {10, 20, 30, 40};
    TABLE(p, 2, boot, rate);
    assert_int_equal(paired_ratio(&p, 2, 0, 0.95, draws, 1, &i), -EINVAL);
    assert_int_equal(paired_ratio(&p, 0, 2, 0.95, draws, 1, &i), -EINVAL);
    assert_int_equal(paired_rate(&p, 2, 0.95, draws, 1, &i), -EINVAL);
    const double confidences[] = {0, 1, -0.5, NAN};
    for (size_t c = 0; c < 4; c++)
        assert_int_equal(paired_ratio(&p, 0, 1, confidences[c], draws, 1, &i), -EINVAL);
    assert_int_equal(paired_rate(&p, 0, 0.95, PAIRED_DRAWS_MIN - 1, 1, &i), -EINVAL);
    assert_int_equal(paired_rate(&p, 0, 0.95, PAIRED_DRAWS_MIN, 1, &(struct interval){0}), 0);
    const double bad_rates[] = {0, -1, INFINITY};
    for (size_t b = 0; b < 3; b++) {
        rate[3] = bad_rates[b];
        assert_int_equal(paired_rate(&p, 0, 0.95, draws, 1, &i), -EINVAL);
        assert_int_equal(paired_ratio(&p, 0, 1, 0.95, draws, 1, &i), -EINVAL);
    }
    rate[3] = 40;
    const unsigned back[] = {1, 0};
    const struct paired disordered = {2, 2, rate, back};
    assert_int_equal(paired_ratio(&disordered, 0, 1, 0.95, draws, 1, &i), -EINVAL);
    assert_true(i.value == 1 && i.low == 2 && i.high == 3);
}

/* Boots in which the two never met do not count: the boots with ratios 2 and 8 are left. */
static void missing_slices_drop_out_of_the_ratio(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 0, 1, 1, 2};
    const double rate[] = {20, 10, NAN, 10, NAN, 10, 10, NAN, 80, 10};
    TABLE(p, 2, boot, rate);
    struct interval i = ratio_of(&p, 0, 1);
    assert_close(i.value, 4, 1e-12);
    assert_close(half_width(i), student_1 * log(2), 1e-5);
}

/* The second boot's machine is four times as fast. A: 100, 400, geometric mean 200. B: 50 and 200 *
 * e^0.02, so 100 * e^0.01. A and B hold their places but for 0.02, so both have the interval of
 * their ratio: effects of A against B are ln 2 and ln 2 - 0.02, standard error 0.01. */
static void drift_shared_by_all_widens_nothing(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 1};
    const double rate[] = {100, 50, 400, 200 * exp(0.02)};
    TABLE(p, 2, boot, rate);
    struct interval a = rate_of(&p, 0), b = rate_of(&p, 1);
    assert_close(a.value, 200, 1e-12);
    assert_close(b.value, 100 * exp(0.01), 1e-12);
    assert_close(half_width(a), student_1 * 0.01, 1e-5);
    assert_close(half_width(b), student_1 * 0.01, 1e-5);
}

/* With no other beside it, the drift is all that is known of the noise: rates 100 and 400, standard
 * error ln 2. */
static void one_entry_keeps_the_drift(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 1};
    const double alone[] = {100, 400};
    TABLE(p, 1, boot, alone);
    struct interval i = rate_of(&p, 0);
    assert_close(i.value, 200, 1e-12);
    assert_close(half_width(i), student_1 * log(2), 1e-5);

    const double beside_nobody[] = {100, NAN, 400, NAN};
    TABLE(q, 2, boot, beside_nobody);
    struct interval j = rate_of(&q, 0);
    assert_memory_equal(&i, &j, sizeof i);

    const double never_together[] = {100, NAN, NAN, 400};
    TABLE(apart, 2, boot, never_together);
    i = rate_of(&apart, 1);
    assert_close(i.value, 400, 1e-12);
    assert_true(isnan(i.low) && isnan(i.high));
}

/* B was there in the slow block only: it would have made 200 in the fast one, 100 in all. A plain
 * mean would say 50. One block of B's gives no interval. */
static void an_entry_that_missed_the_fast_block(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 1};
    const double rate[] = {100, 50, 400, NAN};
    TABLE(p, 2, boot, rate);
    struct interval b = rate_of(&p, 1);
    assert_close(b.value, 100, 1e-12);
    assert_true(isnan(b.low) && isnan(b.high));
    /* A was always there and has its own mean, but was compared in one block. */
    struct interval a = rate_of(&p, 0);
    assert_close(a.value, 200, 1e-12);
    assert_true(isnan(a.low) && isnan(a.high));
}

/* B was beside A in one block of three. A has its own interval: logs 0, 0.01, 0.02 above ln 100, as
 * in three_boots_by_hand. */
static void an_entry_left_alone(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 1, 2};
    const double rate[] = {100, 50, 100 * exp(0.01), NAN, 100 * exp(0.02), NAN};
    TABLE(p, 2, boot, rate);
    struct interval a = rate_of(&p, 0);
    assert_close(a.value, 100 * exp(0.01), 1e-12);
    assert_close(half_width(a), 0.01 / sqrt(3) * student_2 * 2.1213 / 1.95996, 0.03);
}

/* Every entry misses a block; levels 1, 2, 4, 8 and entries 100, 50, 20 without noise. The
 * geometric mean of the levels is 2^1.5. */
static void no_entry_was_in_every_block(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 1, 2, 3};
    const double rate[] = {NAN, 50, 20, 200, NAN, 40, 400, 200, NAN, 800, 400, 160};
    TABLE(p, 3, boot, rate);
    const double want[] = {100, 50, 20};
    for (size_t e = 0; e < 3; e++) {
        struct interval i = rate_of(&p, e);
        assert_close(i.value, want[e] * pow(2, 1.5), 1e-9);
        assert_true(half_width(i) < 1e-9);
    }
}

/* An entry that failed after the first block moves nobody else's rate: B is ten times slower than
 * the others, and a mean of those present would jump when it goes. */
static void an_entry_that_dies_moves_no_level(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 1, 2};
    const double rate[] = {100, 10, 200, 100, NAN, 200, 100, NAN, 200};
    TABLE(p, 3, boot, rate);
    struct interval i = rate_of(&p, 0);
    assert_close(i.value, 100, 1e-12);
    assert_true(half_width(i) < 1e-9);
    assert_close(rate_of(&p, 1).value, 10, 1e-9);
}

/* ---- simulated runs */

enum { entries = 11, blocks_per_boot = 6, boots_max = 20 };

struct simulated {
    double rate[boots_max * blocks_per_boot * entries];
    unsigned boot[boots_max * blocks_per_boot];
    double level; /* mean log level of the machine over the blocks */
};

struct noise {
    double boot;  /* standard deviations of log rates: a process against another */
    double block; /* a slice against another of its process */
    double drift; /* a step of the machine's random walk, a block */
    double burst; /* the share of slices that lose up to 30% */
    double gap;   /* the share of slices that are missing */
};

static double gauss(struct random *r)
{
    double radius = sqrt(-2 * log(1 - random_unit(r)));
    return radius * cos(2 * M_PI * random_unit(r));
}

static double slice_noise(const struct noise *n, struct random *r)
{
    double noise = n->block * gauss(r);
    return random_unit(r) < n->burst ? noise - 0.3 * random_unit(r) : noise;
}

/* All entries alike: log rate 10 + the machine's level + the process + the slice. */
static struct paired simulate(struct simulated *s, size_t boots, const struct noise *n,
                              struct random *r)
{
    double drift = 0, process[entries];
    s->level = 0;
    for (size_t k = 0; k < boots * blocks_per_boot; k++) {
        if (k % blocks_per_boot == 0)
            for (size_t e = 0; e < entries; e++)
                process[e] = n->boot * gauss(r);
        drift += n->drift * gauss(r);
        s->level += drift / (double)(boots * blocks_per_boot);
        s->boot[k] = (unsigned)(k / blocks_per_boot);
        for (size_t e = 0; e < entries; e++)
            s->rate[k * entries + e] =
                random_unit(r) < n->gap ? NAN : exp(10 + drift + process[e] + slice_noise(n, r));
    }
    return (struct paired){boots * blocks_per_boot, entries, s->rate, s->boot};
}

static bool covers(struct interval i, double truth)
{
    return i.low <= truth && truth <= i.high;
}

static void same_seed_same_interval(void **state)
{
    (void)state;
    static struct simulated s;
    const struct noise n = {0.01, 0.02, 0.02, 0, 0};
    struct random r;
    random_seed(&r, 3);
    struct paired p = simulate(&s, 12, &n, &r);
    struct interval one, again, other;
    assert_int_equal(paired_ratio(&p, 0, 1, 0.95, 500, 42, &one), 0);
    assert_int_equal(paired_ratio(&p, 0, 1, 0.95, 500, 42, &again), 0);
    assert_memory_equal(&one, &again, sizeof one);
    assert_int_equal(paired_rate(&p, 4, 0.95, 500, 42, &one), 0);
    assert_int_equal(paired_rate(&p, 4, 0.95, 500, 42, &again), 0);
    assert_memory_equal(&one, &again, sizeof one);
    /* Another seed draws others; the interval moves by the noise of 500 draws and no more. */
    assert_int_equal(paired_rate(&p, 4, 0.95, 500, 43, &other), 0);
    assert_true(one.value == other.value);
    assert_close(half_width(other), half_width(one), 0.15);
}

static void swapped_entries_give_the_inverse(void **state)
{
    (void)state;
    static struct simulated s;
    const struct noise n = {0.01, 0.02, 0.02, 0.1, 0};
    struct random r;
    random_seed(&r, 4);
    struct paired p = simulate(&s, 12, &n, &r);
    struct interval ab = ratio_of(&p, 0, 1), ba = ratio_of(&p, 1, 0);
    assert_close(ab.value, 1 / ba.value, 1e-12);
    assert_close(ab.low, 1 / ba.high, 1e-12);
    assert_close(ab.high, 1 / ba.low, 1e-12);
}

/* A burst that hits one slice of twelve lengthens the tails of the draws: the interval is wider
 * than Student's, which is worked out here anew. Twelve boots of a block or one boot of twelve
 * blocks: the one is found by drawing boots, the other by drawing blocks. */
static void bursts_widen(void **state)
{
    (void)state;
    const double student_11 = 2.20099;
    const unsigned boots[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, one_boot[12] = {0};
    double rate[24];
    for (size_t i = 0; i < 24; i++)
        rate[i] = i == 10 ? exp(-0.3) : 1;
    TABLE(by_boot, 2, boots, rate);
    TABLE(by_block, 2, one_boot, rate);
    /* Mean -0.025; squares 11 * 0.025^2 + 0.275^2 = 0.0825; standard error sqrt(0.0825/11/12). */
    double student = sqrt(0.0825 / 11 / 12) * student_11;
    struct interval i = ratio_of(&by_boot, 0, 1), j = ratio_of(&by_block, 0, 1);
    assert_close(log(i.value), -0.025, 1e-9);
    assert_close(log(j.value), -0.025, 1e-9);
    assert_true(half_width(i) > 1.03 * student && half_width(i) < 1.6 * student);
    assert_true(half_width(j) > 1.03 * student && half_width(j) < 1.6 * student);
}

static void confidence_orders_the_widths(void **state)
{
    (void)state;
    static struct simulated s;
    const struct noise n = {0.01, 0.02, 0.02, 0, 0};
    struct random r;
    random_seed(&r, 5);
    struct paired p = simulate(&s, 12, &n, &r);
    struct interval narrow, middle, wide;
    assert_int_equal(paired_ratio(&p, 0, 1, 0.5, draws, 1, &narrow), 0);
    assert_int_equal(paired_ratio(&p, 0, 1, 0.95, draws, 1, &middle), 0);
    assert_int_equal(paired_ratio(&p, 0, 1, 0.99, draws, 1, &wide), 0);
    /* Student's 11 degrees: 0.697, 2.201, 3.106. */
    assert_close(half_width(middle) / half_width(narrow), 2.201 / 0.697, 0.1);
    assert_close(half_width(wide) / half_width(middle), 3.106 / 2.201, 0.1);
}

/* The share of runs whose 95% interval holds the truth, for a ratio and for a rate. 2000 runs know
 * it to 0.5% (one standard deviation); the seeds are fixed. */
static void check_coverage(size_t boots, const struct noise *n, double low, double high)
{
    enum { runs = 2000, few_draws = 400 };
    static struct simulated s;
    struct random r;
    random_seed(&r, 20 + boots);
    double ratio_held = 0, rate_held = 0, ratio_width = 0, rate_width = 0;
    for (unsigned run = 0; run < runs; run++) {
        struct paired p = simulate(&s, boots, n, &r);
        struct interval ratio, rate;
        assert_int_equal(paired_ratio(&p, 0, 1, 0.95, few_draws, run, &ratio), 0);
        assert_int_equal(paired_rate(&p, 0, 0.95, few_draws, run, &rate), 0);
        ratio_held += covers(ratio, 1);
        rate_held += covers(rate, exp(10 + s.level - n->burst * 0.15));
        ratio_width += half_width(ratio);
        rate_width += half_width(rate);
    }
    print_message("# %2zu boots, noise of boot %.1f%%, block %.1f%%, drift %.1f%%, bursts %.0f%%, "
                  "gaps %.0f%%: ratio %.1f%% (±%.2f%%), rate %.1f%% (±%.2f%%)\n",
                  boots, 100 * n->boot, 100 * n->block, 100 * n->drift, 100 * n->burst,
                  100 * n->gap, 100 * ratio_held / runs, 100 * ratio_width / runs,
                  100 * rate_held / runs, 100 * rate_width / runs);
    assert_true(ratio_held / runs >= low && ratio_held / runs <= high);
    assert_true(rate_held / runs >= low && rate_held / runs <= high);
}

static void coverage_where_blocks_are_the_noise(void **state)
{
    (void)state;
    const struct noise n = {0, 0.02, 0.02, 0, 0};
    const size_t boots[] = {3, 6, 12, 20};
    for (size_t i = 0; i < 4; i++)
        check_coverage(boots[i], &n, 0.93, 0.97);
}

static void coverage_where_boots_are_the_noise(void **state)
{
    (void)state;
    const struct noise n = {0.02, 0.01, 0.02, 0, 0};
    const size_t boots[] = {3, 6, 12, 20};
    for (size_t i = 0; i < 4; i++)
        check_coverage(boots[i], &n, 0.93, 0.97);
}

static void coverage_without_drift(void **state)
{
    (void)state;
    const struct noise n = {0.005, 0.02, 0, 0, 0};
    const size_t boots[] = {3, 6, 12, 20};
    for (size_t i = 0; i < 4; i++)
        check_coverage(boots[i], &n, 0.93, 0.97);
}

/* A tenth of all slices failed: the level is fitted around the gaps. */
static void coverage_with_gaps(void **state)
{
    (void)state;
    const struct noise n = {0.005, 0.02, 0.02, 0, 0.1};
    const size_t boots[] = {3, 12};
    for (size_t i = 0; i < 2; i++)
        check_coverage(boots[i], &n, 0.93, 0.97);
}

/* Rates have bursts on one side only, which no symmetric interval likes: a point less is allowed.
 */
static void coverage_with_bursts(void **state)
{
    (void)state;
    const struct noise n = {0.005, 0.02, 0.02, 0.03, 0};
    const size_t boots[] = {3, 6, 12, 20};
    for (size_t i = 0; i < 4; i++)
        check_coverage(boots[i], &n, 0.92, 0.975);
}

/* A whole table, 11 rates and 10 ratios at 4000 draws of 12 boots by 6 blocks: 0.1 s of CPU time
 * where this was written, without sanitizers. */
static void a_table_takes_less_than_a_second(void **state)
{
    (void)state;
    static struct simulated s;
    const struct noise n = {0.01, 0.02, 0.02, 0, 0};
    struct random r;
    random_seed(&r, 6);
    struct paired p = simulate(&s, 12, &n, &r);
    clock_t before = clock();
    for (size_t e = 0; e < entries; e++) {
        rate_of(&p, e);
        ratio_of(&p, e, 0);
    }
    double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    print_message("# a table of %d entries: %.3f s\n", entries, seconds);
#ifdef __SANITIZE_ADDRESS__
    assert_true(seconds < 10);
#else
    assert_true(seconds < 1);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_boots_by_hand),
        cmocka_unit_test(three_boots_by_hand),
        cmocka_unit_test(one_boot_takes_its_blocks),
        cmocka_unit_test(one_boot_of_two_blocks),
        cmocka_unit_test(boots_weigh_the_same),
        cmocka_unit_test(one_block_has_no_interval),
        cmocka_unit_test(equal_blocks_have_no_width),
        cmocka_unit_test(nothing_to_judge_by),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(missing_slices_drop_out_of_the_ratio),
        cmocka_unit_test(drift_shared_by_all_widens_nothing),
        cmocka_unit_test(one_entry_keeps_the_drift),
        cmocka_unit_test(an_entry_that_missed_the_fast_block),
        cmocka_unit_test(an_entry_left_alone),
        cmocka_unit_test(no_entry_was_in_every_block),
        cmocka_unit_test(an_entry_that_dies_moves_no_level),
        cmocka_unit_test(same_seed_same_interval),
        cmocka_unit_test(swapped_entries_give_the_inverse),
        cmocka_unit_test(bursts_widen),
        cmocka_unit_test(confidence_orders_the_widths),
        cmocka_unit_test(coverage_where_blocks_are_the_noise),
        cmocka_unit_test(coverage_where_boots_are_the_noise),
        cmocka_unit_test(coverage_without_drift),
        cmocka_unit_test(coverage_with_gaps),
        cmocka_unit_test(coverage_with_bursts),
        cmocka_unit_test(a_table_takes_less_than_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
