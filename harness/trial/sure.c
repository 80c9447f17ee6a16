#include "trial/sure.h"

#include <errno.h>
#include <math.h>

void sure_look(const struct paired *data, const bool *counts, unsigned draws, uint64_t seed,
               struct sure *sure)
{
    *sure = (struct sure){.widest = NAN};
    for (size_t i = 0; i < data->entries; i++) {
        struct interval rate = {NAN, NAN, NAN};
        if (!counts[i])
            continue;
        int status = paired_rate(data, i, 0.95, draws, seed, &rate);
        double half = (rate.high - rate.low) / 2 / rate.value;
        if (status != 0 || isnan(half)) {
            *sure = (struct sure){.widest = NAN, .entry = i};
            return;
        }
        if (isnan(sure->widest) || half > sure->widest)
            *sure = (struct sure){.widest = half, .entry = i};
    }
}

bool sure_is_enough(const struct sure *sure, unsigned boots, double precision)
{
    return boots >= SURE_BOOTS_MIN && sure->widest < precision;
}

int sure_more_ns(const struct sure *sure, unsigned boots, double precision, uint64_t spent_ns,
                 uint64_t *more_ns)
{
    if (isnan(sure->widest) || boots == 0)
        return -ENODATA;
    double ratio = sure->widest / precision;
    double of_width = (double)spent_ns * (ratio * ratio - 1);
    double of_boots = (double)spent_ns * (SURE_BOOTS_MIN / (double)boots - 1);
    double more = fmax(0, fmax(of_width, of_boots));
    *more_ns = more < 1e18 ? (uint64_t)more : UINT64_C(1000000000000000000);
    return 0;
}
