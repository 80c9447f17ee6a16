/* A log-linear histogram of durations in nanoseconds, after HdrHistogram (Tene): 128 buckets for
 * each power of two. Values below 256 ns are kept exactly; above, a bucket is at most 1/128 of its
 * values wide and its midpoint stands for it, so a quantile is within 1/256 (0.4%) of the value
 * recorded. Adding is a dozen instructions, no allocation, no loop; threads keep one each and
 * merge. Values of HISTOGRAM_LIMIT_NS (68.7 s) and more are counted in `overflow`, and in count,
 * sum, min and max: nothing is dropped or clamped. A histogram is 30 KiB and must be reset before
 * its first use (all zeros is not empty: min_ns would be 0).
 */
#ifndef STATS_HISTOGRAM_H
#define STATS_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SUB_BITS 7
#define HISTOGRAM_MAX_BITS 36
#define HISTOGRAM_LIMIT_NS (UINT64_C(1) << HISTOGRAM_MAX_BITS)
#define HISTOGRAM_BUCKETS  ((HISTOGRAM_MAX_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
    uint64_t count;
    uint64_t sum_ns; /* stays at UINT64_MAX once it would pass it (584 years) */
    uint64_t min_ns; /* UINT64_MAX while empty */
    uint64_t max_ns; /* 0 while empty */
    uint64_t overflow;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_reset(struct histogram *h);

/* Adds all of `from`, which is left as it was; the two must not be the same. The result is that of
 * adding every value to one histogram, in any order. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/* The bucket of a value below HISTOGRAM_LIMIT_NS. A value with its top bit at k >= 7 is shifted
 * until 8 bits are left: 128..255, which is the place in the octave, offset by 128 an octave. The
 * `| 255` gives small values a shift of 0, and so a bucket each. */
static inline unsigned histogram_bucket(uint64_t value_ns)
{
    const uint64_t small = (UINT64_C(2) << HISTOGRAM_SUB_BITS) - 1;
    unsigned shift = 63u - HISTOGRAM_SUB_BITS - (unsigned)__builtin_clzll(value_ns | small);
    return (shift << HISTOGRAM_SUB_BITS) + (unsigned)(value_ns >> shift);
}

/* The midpoint of a bucket (rounded up), for a bucket below HISTOGRAM_BUCKETS. */
uint64_t histogram_value_ns(unsigned bucket);

/* Inline, since the hammer calls it for every response. */
static inline void histogram_add(struct histogram *h, uint64_t value_ns)
{
    h->count++;
    if (__builtin_add_overflow(h->sum_ns, value_ns, &h->sum_ns))
        h->sum_ns = UINT64_MAX;
    h->min_ns = value_ns < h->min_ns ? value_ns : h->min_ns;
    h->max_ns = value_ns > h->max_ns ? value_ns : h->max_ns;
    if (value_ns < HISTOGRAM_LIMIT_NS)
        h->buckets[histogram_bucket(value_ns)]++;
    else
        h->overflow++;
}

/* The value at quantile q (0..1): the smallest recorded value such that at least q*count values
 * are no greater (the inverse of the empirical distribution, type 1 of Hyndman and Fan, Sample
 * Quantiles in Statistical Packages, 1996), never outside min_ns..max_ns; the first and the last
 * value are exact. q*count is taken as whole if it is within a few rounding errors of it, so that
 * q = 0.07 of 100 values is the 7th. Returns 0 and fills *value_ns; -ENODATA for an empty
 * histogram; -EINVAL for q outside 0..1 or NAN. A quantile that falls among the overflow is
 * max_ns. */
int histogram_quantile_ns(const struct histogram *h, double q, uint64_t *value_ns);

/* sum/count. -ENODATA when empty. */
int histogram_mean_ns(const struct histogram *h, double *mean_ns);

#endif
