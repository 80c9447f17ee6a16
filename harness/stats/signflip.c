#include "stats/signflip.h"

#include "base/mem.h"
#include "stats/random.h"

#include <errno.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

/* The sum of the values, and from which size on a sum counts as no nearer to 0. */
struct observed {
    double sum;
    double threshold;
};

static struct observed observe(const double *values, size_t count)
{
    struct observed o = {0, 0};
    double sizes = 0;
    for (size_t i = 0; i < count; i++) {
        o.sum += values[i];
        sizes += fabs(values[i]);
    }
    o.threshold = fabs(o.sum) - 1e-9 * sizes - 1e-13 * (double)count;
    return o;
}

/* The sums of all 2^count sign patterns, sorted; each is at most `count` additions long, so that no
 * rounding piles up over the patterns. */
static double *list_sums(const double *values, size_t count)
{
    double *sums = mem_alloc((size_t)1 << count, sizeof *sums);
    for (size_t i = 0; i < count; i++) {
        size_t half = (size_t)1 << i;
        for (size_t s = 0; s < half; s++) {
            sums[half + s] = sums[s] - values[i];
            sums[s] += values[i];
        }
    }
    gsl_sort(sums, 1, (size_t)1 << count);
    return sums;
}

/* How many pairs, one of each list, have a sum of at least `threshold`. As the one list's sum
 * grows, the other's may shrink. */
static double count_at_least(const double *left, size_t left_count, const double *right,
                             size_t right_count, double threshold)
{
    double pairs = 0;
    size_t first = right_count;
    for (size_t i = 0; i < left_count; i++) {
        while (first > 0 && left[i] + right[first - 1] >= threshold)
            first--;
        pairs += (double)(right_count - first);
    }
    return pairs;
}

/* The patterns with a sum at or below -threshold mirror those at or above it. A threshold at or
 * below 0 would count a pattern on both sides: there every pattern is as far out. */
static double exact_p(const double *values, size_t count)
{
    struct observed o = observe(values, count);
    if (o.threshold <= 0)
        return 1;
    size_t half = count / 2;
    size_t left_count = (size_t)1 << half;
    size_t right_count = (size_t)1 << (count - half);
    double *left = list_sums(values, half);
    double *right = list_sums(values + half, count - half);
    double above = count_at_least(left, left_count, right, right_count, o.threshold);
    free(left);
    free(right);
    return 2 * above / (double)left_count / (double)right_count;
}

static double draw_sum(const double *values, size_t count, struct random *r)
{
    double sum = 0;
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++, bits >>= 1) {
        if (i % 64 == 0)
            bits = random_next(r);
        sum += values[i] * (double)(2 * (int)(bits & 1) - 1); /* no branch to guess wrong */
    }
    return sum;
}

static double drawn_p(const double *values, size_t count, uint64_t seed)
{
    struct observed o = observe(values, count);
    struct random r;
    unsigned as_far = 0;
    random_seed(&r, seed);
    for (unsigned i = 0; i < SIGNFLIP_DRAWS; i++)
        if (fabs(draw_sum(values, count, &r)) >= o.threshold)
            as_far++;
    return (as_far + 1.0) / (SIGNFLIP_DRAWS + 1.0);
}

int signflip_p(const double *values, size_t count, uint64_t seed, double *p)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return -EINVAL;
    *p = count <= SIGNFLIP_EXACT_MAX ? exact_p(values, count) : drawn_p(values, count, seed);
    return 0;
}

double signflip_p_min(size_t count)
{
    if (count > SIGNFLIP_EXACT_MAX)
        return 1.0 / (SIGNFLIP_DRAWS + 1.0);
    return count > 1 ? ldexp(1, 1 - (int)count) : 1;
}

size_t signflip_count_for(double p)
{
    size_t count = 0;
    while (count < SIGNFLIP_EXACT_MAX && signflip_p_min(count) >= p)
        count++;
    return count;
}
