/* What a run of interleaved slices says: per-block log ratios and a hierarchical bootstrap.
 *
 * The data is a table of rates: in each block every entry has one slice, in shuffled order, so a
 * noisy minute hits all of them alike and falls out of ratios taken inside a block. Blocks belong
 * to boots; two processes of one server differ for as long as they live, so the boot is the unit
 * of the statistics: each boot gives one mean, and each boot weighs the same however many blocks
 * it has.
 *
 * The interval. The bootstrap draws boots with replacement, then blocks within each drawn boot
 * with replacement. The 2.5% and 97.5% quantiles of these draws are not the interval yet, for two
 * reasons: with few boots the draws are too narrow, by sqrt((n-1)/n) and by the normal's quantile
 * in place of Student's (Hesterberg, What Teachers Should Know About the Bootstrap, 2015, section
 * 4.1); and drawing at both levels counts the noise of blocks twice, which makes them too wide
 * where boots differ little (Davison and Hinkley, Bootstrap Methods and their Application, 1997,
 * section 3.8). So each quantile's distance from the estimate is scaled: by the standard error
 * over the draws' own deviation, and by Student's quantile with n-1 degrees of freedom over the
 * normal's. The standard error is that of the mean of the n boot means, s/sqrt(n), which holds
 * both the differences between processes and the noise of blocks, unbiased. The draws thus give
 * the interval its shape and the boots its width. Few boots cost what they must: the factor over
 * the normal's 1.96 is 1.12 for 12 boots, 2.2 for 3, 6.5 for 2. With one boot the blocks are the
 * units, and the interval covers no difference between processes.
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

/* Both functions below return 0 and fill their interval, or
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

/* The entry's rate at the level the machine had over the run. Each block's level is fitted from
 * the other entries alone: the block effects of an additive two-way least-squares fit of log rates
 * (level of the block + level of the entry), so an entry that lacks some blocks moves no level.
 * The entry's effect is its log rate less the block's level; the value is exp of the effects' mean
 * (over boots of the mean over blocks) plus the levels' mean over all blocks. For an entry with a
 * slice in every block that is the geometric mean of its rates; one that lacks some is put where
 * it would have stood in them. The interval is that of the effects' mean, so drift shared by all
 * does not widen it. It says nothing of another day, on which the machine's level is another.
 *
 * The entry is left out of its own blocks' levels because a mean that holds it follows it, and
 * would make the interval too narrow by (n-1)/n over n entries, to nothing for n = 1. Left out, the
 * others' noise adds to its own: a little too wide (5% over 11 equally noisy entries, 41% over 2),
 * never too narrow. Blocks in which only this entry has a slice are not used; if there are no
 * others, or none shares a block with it, the level is taken as constant and the interval holds the
 * drift. */
int paired_rate(const struct paired *data, size_t entry, double confidence, unsigned draws,
                uint64_t seed, struct interval *rate);

#endif
