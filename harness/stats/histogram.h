/* A log-linear histogram of durations in nanoseconds, after HdrHistogram (Tene): 128 buckets for
 * each power of two, so a quantile is within 1/128 (0.8%) of the value recorded. Adding is a few
 * instructions, no allocation, no branch on the data but one; threads keep one each and merge.
 * Values of HISTOGRAM_LIMIT_NS (68.7 s) and more are counted in `overflow`, and in count, sum, min
 * and max: nothing is dropped or clamped.
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
    uint64_t sum_ns;
    uint64_t min_ns; /* UINT64_MAX while empty */
    uint64_t max_ns;
    uint64_t overflow;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_reset(struct histogram *h);
void histogram_add(struct histogram *h, uint64_t value_ns);
void histogram_merge(struct histogram *into, const struct histogram *from);

/* The bucket of a value below HISTOGRAM_LIMIT_NS, and the midpoint that stands for a bucket. */
unsigned histogram_bucket(uint64_t value_ns);
uint64_t histogram_value_ns(unsigned bucket);

/* The value at quantile q (0..1): the smallest recorded value such that at least q*count values
 * are no greater (the inverse of the empirical distribution, Hyndman and Fan type 1), never beyond
 * max_ns. Returns 0 and fills *value_ns, or -ENODATA for an empty histogram. A quantile that falls
 * among the overflow is max_ns. */
int histogram_quantile_ns(const struct histogram *h, double q, uint64_t *value_ns);

/* -ENODATA when empty. */
int histogram_mean_ns(const struct histogram *h, double *mean_ns);

#endif
