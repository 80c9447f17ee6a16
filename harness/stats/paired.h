/* What a run of interleaved slices says: per-block log ratios and a hierarchical bootstrap.
 *
 * The data is a table of rates: in each block every entry has one slice, in shuffled order, so a
 * noisy minute hits all of them alike and falls out of ratios taken inside a block. Blocks belong
 * to boots; two processes of one server differ for as long as they live, so the boot is the unit
 * of the statistics: each boot gives one mean, and each boot weighs the same however many blocks
 * it has.
 *
 * The interval, on the log scale, is the estimate plus and minus
 *
 *     standard error  x  Student's quantile, n-1 degrees of freedom  x  widening
 *
 * for n boots. The standard error is that of the mean of the boots' means, s/sqrt(n), which holds
 * the differences between processes and the noise of blocks alike. The widening is by bootstrap:
 * boots are drawn with replacement, then blocks within each drawn boot; the distance that 95% of
 * the draws keep within, in the draws' own standard deviations, is divided by the normal's 1.96,
 * and counts where it is above 1: bursts lengthen the tails, and the interval with them. That is a
 * symmetric bootstrap interval (Hall, On Symmetric Bootstrap Confidence Intervals, 1988), scaled.
 *
 * Why not the draws' own 2.5% and 97.5% quantiles: with few boots they are too narrow, by
 * sqrt((n-1)/n) and by the normal's quantile in place of Student's (Hesterberg, What Teachers
 * Should Know About the Bootstrap, The American Statistician 69, 2015); and drawing at both levels
 * counts the noise of blocks twice, too wide where boots differ little (Davison and Hinkley,
 * Bootstrap Methods and their Application, 1997, section 3.8). Simulated, their 95% was between 75%
 * and 99% (docs/METHOD.md). Why not bootstrap-t: of 3 boots, one draw in nine is of a single boot
 * whose deviation is 0, and the interval has no bound.
 *
 * Few boots cost what they must: Student's quantile is 2.2 for 12 boots, 4.3 for 3, 12.7 for 2.
 * With one boot the blocks are the n, and the interval covers no difference between processes.
 */
#ifndef STATS_PAIRED_H
#define STATS_PAIRED_H

#include <stddef.h>
#include <stdint.h>

/* Fewer draws than this are refused: the quantiles of so few mean nothing. */
#define PAIRED_DRAWS_MIN 100

struct interval {
    double value;
    double low;
    double high;
};

/* Row-major: rate[block * entries + entry], requests per second, > 0; NAN where the entry has no
 * valid slice in that block. boot[block] is the number of the block's boot, not decreasing. The
 * caller owns both arrays; nothing here keeps or changes them. */
struct paired {
    size_t blocks;
    size_t entries;
    const double *rate;
    const unsigned *boot;
};

/* paired_ratio and paired_rate return 0 and fill their interval, or
 *   -EINVAL  entry out of range, a rate that is 0, negative or infinite (a slice without a valid
 *            answer has no rate: whether it is left out or fails the entry is for the caller to
 *            say), boots out of order, confidence not between 0 and 1, fewer than PAIRED_DRAWS_MIN
 *            draws
 *   -ENODATA no block to judge by
 * and then leave it alone. With one block in all, low and high are NAN. The same arguments give
 * the same result to the last bit. */

/* The ratio entry/base: exp of the mean over boots of the mean over blocks of log(rate/rate), over
 * blocks in which both have a slice (boots without such a block do not count), with its interval
 * at `confidence` (0.95) from `draws` bootstrap draws (4000) seeded by `seed`. */
int paired_ratio(const struct paired *data, size_t entry, size_t base, double confidence,
                 unsigned draws, uint64_t seed, struct interval *ratio);

/* What the ratio's estimate is the mean of: for each boot in which both have a slice in one block,
 * the mean over these blocks of log(rate of entry/rate of base). `means` has room for data->blocks.
 * Returns 0 and fills *count, which may be 0, or -EINVAL as above. */
int paired_boot_means(const struct paired *data, size_t entry, size_t base, double *means,
                      size_t *count);

/* The entry's rate at the level the machine had over the run: exp of the mean over boots of the
 * mean over blocks of its log rates. Each block's level is fitted from the other entries alone, by
 * the least squares of log rate = block's level + entry's level, so an entry that lacks blocks
 * moves no level. Where the entry lacks a block it is put where it would have stood: at the block's
 * level and its own mean distance from the levels of the blocks it has. The interval is that of
 * this mean distance, so drift shared by all does not widen it. It says nothing of another day, on
 * which the machine's level is another.
 *
 * The entry is left out of the levels because a mean that holds it follows it, and would make the
 * interval too narrow, by sqrt((n-1)/n) over n equally noisy entries. Left out, the others' noise
 * is added to its own, and the interval is too wide by sqrt(n/(n-1)): 5% over 11, 41% over 2.
 *
 * Where nothing was measured beside the entry, or in less than half of the blocks and the entry in
 * all, the interval is that of its log rates as they are, drift and all: another entry's failure
 * leaves it few boots to compare in, but all of its own. (Taking the narrower of the two in every
 * case would claim too much: 93% at 3 boots, simulated without drift.) */
int paired_rate(const struct paired *data, size_t entry, double confidence, unsigned draws,
                uint64_t seed, struct interval *rate);

#endif
