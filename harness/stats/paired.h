/* What a run of interleaved slices says: per-block log ratios and a hierarchical bootstrap.
 *
 * The data is a table of rates: in each block every entry has one slice, in shuffled order, so a
 * noisy minute hits all of them alike and falls out of ratios taken inside a block. Blocks belong
 * to boots; two processes of one server differ for as long as they live, so the boot is a unit of
 * its own: the bootstrap draws boots with replacement, then blocks within each drawn boot
 * (Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8).
 */
#ifndef STATS_PAIRED_H
#define STATS_PAIRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    double value;
    double low;
    double high;
};

/* Row-major: rate[block * entries + entry], requests per second, > 0; NAN where the entry has no
 * valid slice in that block. boot[block] is the number of the block's boot, not decreasing. */
struct paired {
    size_t blocks;
    size_t entries;
    const double *rate;
    const unsigned *boot;
};

/* The ratio entry/base: exp of the mean over boots of the mean over blocks of log(rate/rate), over
 * blocks in which both have a slice, with its percentile interval at `confidence` (0.95) from
 * `draws` bootstrap draws seeded by `seed`. With one boot the blocks alone are drawn and the
 * interval covers no difference between processes. Returns -ENODATA if no block has both, -EINVAL
 * for an entry out of range; with one block in all low and high are NAN. */
int paired_ratio(const struct paired *data, size_t entry, size_t base, double confidence,
                 unsigned draws, uint64_t seed, struct interval *ratio);

/* The entry's rate: its mean effect against the block means of the entries that have a slice in
 * every block, put back at the level of the run's geometric mean, so that drift shared by all
 * widens no interval. Same errors. */
int paired_rate(const struct paired *data, size_t entry, double confidence, unsigned draws,
                uint64_t seed, struct interval *rate);

#endif
