#include "stats/random.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

void random_seed(struct random *r, uint64_t seed)
{
    for (unsigned i = 0; i < 4; i++)
        r->state[i] = splitmix64(&seed);
}

uint64_t random_next(struct random *r)
{
    uint64_t *s = r->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t random_below(struct random *r, uint64_t bound)
{
    unsigned __int128 product = (unsigned __int128)random_next(r) * bound;
    if ((uint64_t)product < bound) {
        /* 2^64 mod bound: so many low halves would give some results one chance too many. */
        uint64_t surplus = -bound % bound;
        while ((uint64_t)product < surplus)
            product = (unsigned __int128)random_next(r) * bound;
    }
    return (uint64_t)(product >> 64);
}

double random_unit(struct random *r)
{
    return (double)(random_next(r) >> 11) * 0x1p-53;
}

void random_shuffle(struct random *r, size_t *items, size_t count)
{
    for (size_t left = count; left > 1; left--) {
        size_t pick = (size_t)random_below(r, left);
        size_t held = items[left - 1];
        items[left - 1] = items[pick];
        items[pick] = held;
    }
}
