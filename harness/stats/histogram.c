#include "stats/histogram.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

void histogram_reset(struct histogram *h)
{
    memset(h, 0, sizeof *h);
    h->min_ns = UINT64_MAX;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    into->count += from->count;
    if (__builtin_add_overflow(into->sum_ns, from->sum_ns, &into->sum_ns))
        into->sum_ns = UINT64_MAX;
    if (from->min_ns < into->min_ns)
        into->min_ns = from->min_ns;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
    into->overflow += from->overflow;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t histogram_value_ns(unsigned bucket)
{
    const unsigned per_octave = 1u << HISTOGRAM_SUB_BITS;
    if (bucket < 2 * per_octave)
        return bucket;
    unsigned shift = (bucket >> HISTOGRAM_SUB_BITS) - 1;
    uint64_t lowest = (uint64_t)(bucket - (shift << HISTOGRAM_SUB_BITS)) << shift;
    return lowest + (UINT64_C(1) << shift >> 1);
}

/* The 1-based place of quantile q among count sorted values. */
static uint64_t rank_of(double q, uint64_t count)
{
    double place = ceil(q * (double)count * (1.0 - 4.0 * DBL_EPSILON));
    if (place < 1.0)
        return 1;
    return place >= (double)count ? count : (uint64_t)place;
}

int histogram_quantile_ns(const struct histogram *h, double q, uint64_t *value_ns)
{
    if (!(q >= 0.0 && q <= 1.0))
        return -EINVAL;
    if (h->count == 0)
        return -ENODATA;

    uint64_t rank = rank_of(q, h->count);
    if (rank == 1) {
        *value_ns = h->min_ns;
        return 0;
    }
    *value_ns = h->max_ns;
    if (rank == h->count)
        return 0;

    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen < rank)
            continue;
        uint64_t middle = histogram_value_ns(i);
        middle = middle < h->min_ns ? h->min_ns : middle;
        *value_ns = middle > h->max_ns ? h->max_ns : middle;
        break;
    }
    return 0;
}

int histogram_mean_ns(const struct histogram *h, double *mean_ns)
{
    if (h->count == 0)
        return -ENODATA;
    *mean_ns = (double)h->sum_ns / (double)h->count;
    return 0;
}
