/* The ratio of two contenders that alone take turns in very short slices: many blocks a boot, a few
 * of them struck hard. On a virtual machine whose neighbours come and go, the log ratios of 10 ms
 * slices of one server had quartiles of -4% and +4%, and one in a hundred was beyond 50%. A mean
 * pays for each of those; the interquartile mean gives up little where noise is normal (84% of the
 * mean's efficiency) and needed less than half of the time there (docs/METHOD.md, Compare).
 *
 * Each boot gives one number: the mean of the middle half of its blocks' log ratios. Both
 * contenders being treated alike and put in random order, noise alone is as likely to favour the
 * one as the other, so cutting both ends alike moves nothing. What it can't see is a difference
 * that shows in less than a quarter of the blocks: the mean over all blocks (paired_ratio) is to be
 * given beside it.
 *
 * Source: the trimmed mean and its efficiency, Huber and Ronchetti, Robust Statistics, 2009, 1.3.
 */
#ifndef STATS_TRIMMED_H
#define STATS_TRIMMED_H

#include "stats/paired.h"

/* The mean without the lowest quarter and the highest quarter of `count` values, rounded down, so
 * that of fewer than four none goes. Sorts the values. NAN for none. */
double trimmed_mean(double *values, size_t count);

/* As paired_ratio (stats/paired.h), with the boots' trimmed means in the place of their means, and
 * the boots alone drawn for the widening. With one boot its blocks are the units, none is trimmed,
 * and it is paired_ratio. */
int trimmed_ratio(const struct paired *data, size_t entry, size_t base, double confidence,
                  unsigned draws, uint64_t seed, struct interval *ratio);

#endif
