#include "stats/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The first outputs of the reference xoshiro256** from the state 1, 2, 3, 4, as several ports of
 * it publish them in their tests (Rust's rand_xoshiro among them). */
static void known_answers(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
        UINT64_C(8476171486693032832),
        UINT64_C(10595114339597558777),
        UINT64_C(2904607092377533576),
    };
    struct random r = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(random_next(&r) == expected[i]);
}

/* The first outputs of the reference splitmix64 from 1234567, as its ports publish them. */
static void seeding_is_splitmix64(void **state)
{
    (void)state;
    struct random r;
    random_seed(&r, 1234567);
    assert_true(r.state[0] == UINT64_C(6457827717110365317));
    assert_true(r.state[1] == UINT64_C(3203168211198807973));
    assert_true(r.state[2] == UINT64_C(9817491932198370423));
    assert_true(r.state[3] == UINT64_C(4593380528125082431));
}

static void same_seed_same_sequence(void **state)
{
    (void)state;
    struct random a, b, c;
    random_seed(&a, 0);
    random_seed(&b, 0);
    random_seed(&c, 1);
    unsigned differ = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = random_next(&a);
        assert_true(x == random_next(&b));
        differ += x != random_next(&c);
    }
    assert_int_equal(differ, 1000);
}

/* Counts per result against the chi-squared limit that chance passes once in 10,000 (6 degrees of
 * freedom: 27.9); the seed is fixed, so this passes always or never. */
static void below_is_even_for_a_small_bound(void **state)
{
    (void)state;
    struct random r;
    random_seed(&r, 7);
    double seen[7] = {0}, chi_squared = 0;
    for (int i = 0; i < 70000; i++) {
        uint64_t x = random_below(&r, 7);
        assert_true(x < 7);
        seen[x]++;
    }
    for (int i = 0; i < 7; i++)
        chi_squared += (seen[i] - 10000) * (seen[i] - 10000) / 10000;
    assert_true(chi_squared < 27.9);
}

/* With a bound of 3 * 2^62, a product without rejection gives every third result twice the chance
 * of the others: 50% instead of 33%. */
static void below_is_even_for_a_huge_bound(void **state)
{
    (void)state;
    struct random r;
    random_seed(&r, 8);
    unsigned thirds[3] = {0};
    for (int i = 0; i < 30000; i++) {
        uint64_t x = random_below(&r, UINT64_C(3) << 62);
        assert_true(x < UINT64_C(3) << 62);
        thirds[x % 3]++;
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(thirds[i], 9700, 10300);
}

static void below_one_is_zero(void **state)
{
    (void)state;
    struct random r;
    random_seed(&r, 9);
    for (int i = 0; i < 100; i++)
        assert_true(random_below(&r, 1) == 0);
}

static void unit_fills_its_interval(void **state)
{
    (void)state;
    struct random r;
    random_seed(&r, 10);
    double low = 1, high = 0, sum = 0;
    for (int i = 0; i < 100000; i++) {
        double x = random_unit(&r);
        assert_true(x >= 0 && x < 1);
        low = x < low ? x : low;
        high = x > high ? x : high;
        sum += x;
    }
    assert_true(low < 0.0002 && high > 0.9998);
    assert_true(sum > 49600 && sum < 50400); /* 4 standard deviations */
}

static void unit_reaches_neither_end(void **state)
{
    (void)state;
    /* The output depends on state[1] alone: this one gives all ones, by running it backwards. */
    struct random r = {{1, 0, 0, 0}};
    assert_true(random_unit(&r) == 0);
    uint64_t ninth = UINT64_C(0x8e38e38e38e38e39); /* 9 * ninth = 1 mod 2^64 */
    uint64_t fifth = UINT64_C(0xcccccccccccccccd); /* 5 * fifth = 1 mod 2^64 */
    uint64_t x = UINT64_MAX * ninth;
    r.state[1] = (x >> 7 | x << 57) * fifth;
    assert_true(random_unit(&r) == 1 - 0x1p-53);
}

static void shuffle_keeps_every_item(void **state)
{
    (void)state;
    struct random r;
    random_seed(&r, 11);
    size_t items[50], sum = 0;
    for (size_t i = 0; i < 50; i++)
        items[i] = i;
    random_shuffle(&r, items, 50);
    unsigned moved = 0;
    uint64_t seen = 0;
    for (size_t i = 0; i < 50; i++) {
        sum += items[i];
        seen |= UINT64_C(1) << items[i];
        moved += items[i] != i;
    }
    assert_true(sum == 49 * 50 / 2 && seen == (UINT64_C(1) << 50) - 1);
    assert_true(moved > 40);
    random_shuffle(&r, items, 1);
    random_shuffle(&r, NULL, 0);
}

/* All 24 orders of four items come equally often: chi-squared of 23 degrees, once in 10,000 beyond
 * 56. A swap with any item rather than with those left would show here. */
static void shuffle_favours_no_order(void **state)
{
    (void)state;
    struct random r;
    random_seed(&r, 12);
    double seen[256] = {0}, chi_squared = 0;
    for (int i = 0; i < 24000; i++) {
        size_t items[4] = {0, 1, 2, 3};
        random_shuffle(&r, items, 4);
        seen[items[0] << 6 | items[1] << 4 | items[2] << 2 | items[3]]++;
    }
    unsigned orders = 0;
    for (int i = 0; i < 256; i++) {
        if (seen[i] == 0)
            continue;
        orders++;
        chi_squared += (seen[i] - 1000) * (seen[i] - 1000) / 1000;
    }
    assert_int_equal(orders, 24);
    assert_true(chi_squared < 56);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(seeding_is_splitmix64),
        cmocka_unit_test(same_seed_same_sequence),
        cmocka_unit_test(below_is_even_for_a_small_bound),
        cmocka_unit_test(below_is_even_for_a_huge_bound),
        cmocka_unit_test(below_one_is_zero),
        cmocka_unit_test(unit_fills_its_interval),
        cmocka_unit_test(unit_reaches_neither_end),
        cmocka_unit_test(shuffle_keeps_every_item),
        cmocka_unit_test(shuffle_favours_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
