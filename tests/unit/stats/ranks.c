/* Sign-flip tests, Holm's correction and ranks with ties: small cases by hand, and simulated runs.
 */
#include "stats/holm.h"
#include "stats/order.h"
#include "stats/paired.h"
#include "stats/random.h"
#include "stats/signflip.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

static void assert_close(double got, double want, double absolute)
{
    if (!(fabs(got - want) <= absolute))
        fail_msg("got %.12g, want %.12g", got, want);
}

static double p_of(const double *values, size_t count)
{
    double p = NAN;
    assert_int_equal(signflip_p(values, count, 1, &p), 0);
    return p;
}

/* ---- the sign-flip test */

static void none_one_or_two_boots_show_nothing(void **state)
{
    (void)state;
    const double values[] = {0.5, 0.7};
    assert_close(p_of(values, 0), 1, 0);
    assert_close(p_of(values, 1), 1, 0);
    assert_close(p_of(values, 2), 0.5, 0); /* ++ and --, of four */
    const double apart[] = {0.5, -0.7};
    assert_close(p_of(apart, 2), 1, 0); /* all four sums are 0.2 or 1.2 */
}

/* 1, 2, 3: sums of the eight patterns are +-6, +-4, +-2, 0, 0. Against 6: two of eight. 1, 2, -3:
 * the sum is 0, and all are as far. -1, 2, 3: the sum is 4, and four are as far. */
static void three_boots_by_hand(void **state)
{
    (void)state;
    const double all_up[] = {1, 2, 3}, even[] = {1, 2, -3}, most_up[] = {-1, 2, 3};
    assert_close(p_of(all_up, 3), 2.0 / 8, 0);
    assert_close(p_of(even, 3), 1, 0);
    assert_close(p_of(most_up, 3), 4.0 / 8, 0);
}

/* The sum is 12: of the pattern with 9, 3, 1 up and -1, which is 12 as well as the observed with
 * 9, 3, -1, 1. Sums of 14 and 12, 12: three of sixteen, and as many below. */
static void ties_count_as_far(void **state)
{
    (void)state;
    const double values[] = {9, 3, -1, 1};
    assert_close(p_of(values, 4), 6.0 / 16, 0);
}

/* The same with numbers that no double holds, and that are sums: 0.1 + 0.2 is not 0.3. */
static void ties_that_rounding_tells_apart(void **state)
{
    (void)state;
    const double values[] = {0.9, 0.3, -0.1, 0.1}, others[] = {0.9, 0.1 + 0.2, -0.1, 0.3 - 0.2};
    assert_true(others[1] != 0.3 && others[3] != 0.1);
    assert_close(p_of(values, 4), 6.0 / 16, 0);
    assert_close(p_of(others, 4), 6.0 / 16, 0);
    /* Ratios that are equal at rates that are not: logarithms differ in their last digits. */
    double logs[8];
    for (unsigned i = 0; i < 8; i++) {
        double base = 1000 * exp(i);
        logs[i] = i == 7 ? log(base) - log(base * 1.001) : log(base * 1.001) - log(base);
    }
    /* Any one of eight down is as far as the observed: nine of 256 up to that, and as many below.
     */
    assert_close(p_of(logs, 8), 18.0 / 256, 0);
    /* But what differs by more than rounding is told apart. */
    logs[7] *= 1.0001;
    assert_close(p_of(logs, 8), 18.0 / 256, 0);
    logs[7] *= 0.999;
    assert_close(p_of(logs, 8), 4.0 / 256, 0);
}

static void equal_entries_have_p_of_one(void **state)
{
    (void)state;
    const double zeros[12] = {0};
    assert_close(p_of(zeros, 12), 1, 0);
    double noise[12]; /* what subtracted logarithms leave of equal rates */
    for (unsigned i = 0; i < 12; i++)
        noise[i] = 1.8e-15 * (i % 3);
    assert_close(p_of(noise, 12), 1, 0);
    double one_way[12];
    for (unsigned i = 0; i < 12; i++)
        one_way[i] = 0.01;
    assert_close(p_of(one_way, 12), 2.0 / 4096, 0);
}

static void the_least_p(void **state)
{
    (void)state;
    const double want[] = {1, 1, 0.5, 0.25, 0.125};
    for (size_t n = 0; n < 5; n++)
        assert_close(signflip_p_min(n), want[n], 0);
    assert_close(signflip_p_min(12), 1.0 / 2048, 0);
    assert_close(signflip_p_min(25), 1.0 / 20000, 0);
    /* 2^-5 < 0.05 <= 2^-4; for 45 pairs 2^-10 = 0.00098 < 0.00111 <= 2^-9. */
    assert_int_equal(signflip_count_for(0.05), 6);
    assert_int_equal(signflip_count_for(0.05 / 45), 11);
    assert_int_equal(signflip_count_for(0.5), 3); /* below 0.5, not at it */
    assert_int_equal(signflip_count_for(2), 0);
}

static void what_is_not_finite_is_refused(void **state)
{
    (void)state;
    const double values[] = {1, NAN}, far[] = {INFINITY, 1};
    double p = 7;
    assert_int_equal(signflip_p(values, 2, 1, &p), -EINVAL);
    assert_int_equal(signflip_p(far, 2, 1, &p), -EINVAL);
    assert_true(p == 7);
    assert_int_equal(signflip_p(values, 1, 1, &p), 0);
}

/* All patterns one by one, as the definition says it. */
static double plain_p(const double *values, unsigned count)
{
    double observed = 0, sizes = 0, as_far = 0;
    for (unsigned i = 0; i < count; i++) {
        observed += values[i];
        sizes += fabs(values[i]);
    }
    for (unsigned pattern = 0; pattern < 1u << count; pattern++) {
        double sum = 0;
        for (unsigned i = 0; i < count; i++)
            sum += pattern >> i & 1 ? values[i] : -values[i];
        as_far += fabs(sum) >= fabs(observed) - 1e-9 * sizes;
    }
    return as_far / (1u << count);
}

static double gauss(struct random *r)
{
    double radius = sqrt(-2 * log(1 - random_unit(r)));
    return radius * cos(2 * M_PI * random_unit(r));
}

static void counting_by_halves_counts_all(void **state)
{
    (void)state;
    struct random r;
    random_seed(&r, 11);
    for (unsigned run = 0; run < 400; run++) {
        double values[13], shift = random_unit(&r);
        unsigned count = 1 + run % 13;
        for (unsigned i = 0; i < count; i++) /* whole numbers, so that sums often tie */
            values[i] = run % 2 ? gauss(&r) + shift : round(4 * gauss(&r) + 4 * shift);
        assert_close(p_of(values, count), plain_p(values, count), 1e-12);
    }
}

/* Above 24 values patterns are drawn. 25 values of one size: the sum of s of them down is 25 - 2s,
 * so p of 18 up and 7 down is twice the binomial's P(at most 7 of 25) = 2 * 0.021643. 20,000 draws
 * know it to 0.0014. Without a difference p is 1 and with a plain one the least there is. */
static void many_boots_are_drawn(void **state)
{
    (void)state;
    double values[40], again;
    for (unsigned i = 0; i < 40; i++)
        values[i] = i < 7 ? -0.01 : 0.01;
    assert_close(p_of(values, 25), 0.043286, 0.005);
    assert_int_equal(signflip_p(values, 25, 1, &again), 0);
    assert_true(again == p_of(values, 25));
    assert_close(p_of(values + 7, 33), 1.0 / 20000, 0);
    const double zeros[40] = {0};
    assert_close(p_of(zeros, 40), 1, 0);
}

/* ---- boots' means */

/* Boot 0: ratios 2 and 8, mean ln 4. Boot 1: they never met. Boot 2: one block of two, ratio 1/2.
 */
static void boots_without_a_shared_block_are_left_out(void **state)
{
    (void)state;
    const unsigned boot[] = {0, 0, 1, 1, 2, 2};
    const double rate[] = {20, 10, 80, 10, NAN, 10, 10, NAN, 5, 10, NAN, 10};
    const struct paired p = {6, 2, rate, boot};
    double means[6];
    size_t count = 7;
    assert_int_equal(paired_boot_means(&p, 0, 1, means, &count), 0);
    assert_int_equal(count, 2);
    assert_close(means[0], log(4), 1e-12);
    assert_close(means[1], -log(2), 1e-12);
    const struct paired none = {0, 2, rate, boot};
    assert_int_equal(paired_boot_means(&none, 0, 1, means, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(paired_boot_means(&p, 0, 2, means, &count), -EINVAL);
    assert_int_equal(paired_boot_means(&p, 2, 0, means, &count), -EINVAL);
    const double bad[] = {0, 1};
    const struct paired zero = {1, 2, bad, boot};
    assert_int_equal(paired_boot_means(&zero, 0, 1, means, &count), -EINVAL);
}

/* ---- Holm */

/* Holm's rule on four: 0.01 * 4, 0.02 * 3, then 0.03 * 2 = 0.06, and 0.04 * 1 is raised to 0.06. */
static void holm_by_hand(void **state)
{
    (void)state;
    const double p[] = {0.03, 0.01, 0.04, 0.02}, want[] = {0.06, 0.04, 0.06, 0.06};
    double adjusted[4];
    holm_adjust(p, 4, adjusted);
    for (size_t i = 0; i < 4; i++)
        assert_close(adjusted[i], want[i], 1e-15);
    double same[] = {0.02, 0.5, 0.02};
    holm_adjust(same, 3, same);
    assert_close(same[0], 0.06, 1e-15);
    assert_close(same[2], 0.06, 1e-15);
    assert_close(same[1], 0.5, 1e-15);
    double one = 0.04, high[] = {0.9, 0.8};
    holm_adjust(&one, 1, &one);
    assert_close(one, 0.04, 0);
    holm_adjust(high, 2, high);
    assert_close(high[0], 1, 0);
    assert_close(high[1], 1, 0);
    holm_adjust(NULL, 0, NULL);
}

/* ---- ranks */

static void check_ranks(bool *outranks, size_t count, const unsigned *want, const bool *tied_want)
{
    unsigned rank[4];
    bool tied[4];
    order_ranks(outranks, count, rank, tied);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rank[i], want[i]);
        assert_int_equal(tied[i], tied_want[i]);
    }
}

static void ranks_by_hand(void **state)
{
    (void)state;
    order_ranks(NULL, 0, NULL, NULL);
    bool alone[] = {0};
    check_ranks(alone, 1, (unsigned[]){1}, (bool[]){0});
    bool chain[] = {0, 1, 1, 0, 0, 1, 0, 0, 0};
    check_ranks(chain, 3, (unsigned[]){1, 2, 3}, (bool[]){0, 0, 0});
    bool nothing[9] = {0};
    check_ranks(nothing, 3, (unsigned[]){1, 1, 1}, (bool[]){1, 1, 1});
    bool two_lead[] = {0, 0, 1, 0, 0, 1, 0, 0, 0};
    check_ranks(two_lead, 3, (unsigned[]){1, 1, 3}, (bool[]){1, 1, 0});
    bool one_leads[] = {0, 1, 1, 0, 0, 0, 0, 0, 0};
    check_ranks(one_leads, 3, (unsigned[]){1, 2, 2}, (bool[]){0, 1, 1});
}

/* a is told from c, b between them from neither: a tie with b is not handed on. */
static void a_tie_that_is_not_handed_on(void **state)
{
    (void)state;
    bool outranks[] = {0, 0, 1, 0, 0, 0, 0, 0, 0};
    check_ranks(outranks, 3, (unsigned[]){1, 1, 2}, (bool[]){1, 1, 0});
}

/* a before b and b before c were shown, a before c was not: it follows, and c is not level with b.
 */
static void what_follows_is_claimed(void **state)
{
    (void)state;
    bool outranks[] = {0, 1, 0, 0, 0, 1, 0, 0, 0};
    check_ranks(outranks, 3, (unsigned[]){1, 2, 3}, (bool[]){0, 0, 0});
}

static void a_circle_is_a_tie(void **state)
{
    (void)state;
    bool outranks[] = {0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0};
    check_ranks(outranks, 4, (unsigned[]){1, 1, 1, 4}, (bool[]){1, 1, 1, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_one_or_two_boots_show_nothing),
        cmocka_unit_test(three_boots_by_hand),
        cmocka_unit_test(ties_count_as_far),
        cmocka_unit_test(ties_that_rounding_tells_apart),
        cmocka_unit_test(equal_entries_have_p_of_one),
        cmocka_unit_test(the_least_p),
        cmocka_unit_test(what_is_not_finite_is_refused),
        cmocka_unit_test(counting_by_halves_counts_all),
        cmocka_unit_test(many_boots_are_drawn),
        cmocka_unit_test(boots_without_a_shared_block_are_left_out),
        cmocka_unit_test(holm_by_hand),
        cmocka_unit_test(ranks_by_hand),
        cmocka_unit_test(a_tie_that_is_not_handed_on),
        cmocka_unit_test(what_follows_is_claimed),
        cmocka_unit_test(a_circle_is_a_tie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
