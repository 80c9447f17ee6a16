/* A paired permutation test: do two entries differ, by the boots' mean log ratios?
 *
 * If they do not, each boot's mean could as well have come out with the other sign: which of two
 * equal programs is called the first is a matter of names. So the sum of the means is compared with
 * the sums under all 2^n patterns of signs. p is the share of patterns whose sum lies as far from 0
 * as the observed one or farther, the observed one among them (Good, Permutation, Parametric and
 * Bootstrap Tests of Hypotheses, 3rd ed., 2005, on one-sample tests by sign changes; the idea is
 * Fisher's, The Design of Experiments, 1935, section 21). No shape of the noise is assumed, but
 * that each mean is as likely to fall on either side of 0 by the same amount. That holds for two
 * entries that are alike whatever their noise is, as long as the noise of the boots is independent.
 *
 * A pattern and its opposite lie equally far from 0, so that p is never below 2^(1-n): 0.5 for 2
 * values, 0.031 for 6, 0.00049 for 12. One value, or none, has p = 1.
 */
#ifndef STATS_SIGNFLIP_H
#define STATS_SIGNFLIP_H

#include <stddef.h>
#include <stdint.h>

/* Up to so many values all patterns are counted: the sums of the first half's and of the second
 * half's patterns are listed and sorted, and pairs of the two are counted, which takes 2^(n/2)
 * steps where going through all patterns takes 2^n (Horowitz and Sahni, Computing Partitions with
 * Applications to the Knapsack Problem, Journal of the ACM 21, 1974). */
#define SIGNFLIP_EXACT_MAX 24

/* Above it, so many patterns are drawn, and p = (k + 1)/(draws + 1) for k of them as far out: never
 * 0, and never too small on average (Phipson and Smyth, Permutation P-values Should Never Be Zero,
 * Statistical Applications in Genetics and Molecular Biology 9, 2010). The least p is 0.00005,
 * which is low enough for Holm's first step over 999 tests at 0.05. */
#define SIGNFLIP_DRAWS 19999

/* Fills *p for `count` values on the log scale. Sums nearer to each other than rounding can tell
 * (a 1e-9 of the sum of the sizes, and 1e-13 a value for logarithms that were subtracted) count as
 * equal: a tie is as far out as the observed sum. `seed` matters only above SIGNFLIP_EXACT_MAX; the
 * same arguments give the same p. -EINVAL, and *p left alone, if a value is not finite. */
int signflip_p(const double *values, size_t count, uint64_t seed, double *p);

/* The least p that so many values can give. */
double signflip_p_min(size_t count);

/* The fewest values that can give a p below `p`; `p` > 0.000001. */
size_t signflip_count_for(double p);

#endif
