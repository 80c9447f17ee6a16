#include "stats/trimmed.h"

#include "base/mem.h"

#include <errno.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

double trimmed_mean(double *values, size_t count)
{
    size_t cut = count / 4;
    double sum = 0;
    if (count == 0)
        return NAN;
    gsl_sort(values, 1, count);
    for (size_t i = cut; i < count - cut; i++)
        sum += values[i];
    return sum / (double)(count - 2 * cut);
}

/* One row a boot: the ratio that its trimmed mean stands for, over 1. Returns how many boots have a
 * block with both. */
static size_t reduce_to_boots(const struct paired *data, size_t entry, size_t base, double *rate,
                              unsigned *boot)
{
    double *logs = mem_alloc(data->blocks + 1, sizeof *logs);
    size_t count = 0;
    size_t boots = 0;
    for (size_t k = 0; k < data->blocks; k++) {
        const double *row = data->rate + k * data->entries;
        double ratio = log(row[entry]) - log(row[base]);
        if (!isnan(ratio))
            logs[count++] = ratio;
        bool ends = k + 1 == data->blocks || data->boot[k + 1] != data->boot[k];
        if (!ends || count == 0)
            continue;
        rate[2 * boots] = exp(trimmed_mean(logs, count));
        rate[2 * boots + 1] = 1;
        boot[boots++] = data->boot[k];
        count = 0;
    }
    free(logs);
    return boots;
}

int trimmed_ratio(const struct paired *data, size_t entry, size_t base, double confidence,
                  unsigned draws, uint64_t seed, struct interval *ratio)
{
    struct interval mean;
    int status = paired_ratio(data, entry, base, confidence, draws, seed, &mean);
    if (status != 0)
        return status;
    double *rate = mem_alloc(2 * data->blocks, sizeof *rate);
    unsigned *boot = mem_alloc(data->blocks, sizeof *boot);
    const struct paired boots = {.blocks = reduce_to_boots(data, entry, base, rate, boot),
                                 .entries = 2,
                                 .rate = rate,
                                 .boot = boot};
    if (boots.blocks < 2)
        *ratio = mean;
    else
        status = paired_ratio(&boots, 0, 1, confidence, draws, seed, ratio);
    free(rate);
    free(boot);
    return status;
}
