/* A seeded generator, so that every schedule and every interval can be repeated: xoshiro256**
 * seeded by splitmix64 (Blackman and Vigna, 2018). Not for secrets.
 */
#ifndef STATS_RANDOM_H
#define STATS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_seed(struct random *r, uint64_t seed);
uint64_t random_next(struct random *r);
uint64_t random_below(struct random *r, uint64_t bound); /* 0..bound-1 without bias; bound > 0 */
double random_unit(struct random *r);                    /* [0, 1), 53 bits */
void random_shuffle(struct random *r, size_t *items, size_t count);

#endif
