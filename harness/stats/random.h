/* A seeded generator, so that every schedule and every interval can be repeated: xoshiro256**
 * seeded by splitmix64 (Blackman and Vigna, Scrambled Linear Pseudorandom Number Generators,
 * 2021, first posted 2018; prng.di.unimi.it). The same seed gives the same sequence on every
 * machine. Not for secrets. One generator belongs to one thread.
 */
#ifndef STATS_RANDOM_H
#define STATS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state[4]; /* not all zero */
};

/* Any seed will do, 0 included: four outputs of splitmix64 are never all zero. */
void random_seed(struct random *r, uint64_t seed);
uint64_t random_next(struct random *r);

/* 0..bound-1, each equally likely; bound > 0. A 128-bit product, and another draw in the few cases
 * that would favour some results (Lemire, Fast Random Integer Generation in an Interval, 2019). */
uint64_t random_below(struct random *r, uint64_t bound);

/* [0, 1), a multiple of 2^-53. */
double random_unit(struct random *r);

/* Every order equally likely (Fisher and Yates). */
void random_shuffle(struct random *r, size_t *items, size_t count);

#endif
