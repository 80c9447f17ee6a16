#include "stats/paired.h"

#include "base/mem.h"
#include "stats/random.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* One number a block, grouped by boot: those of boot b are value[first[b]] to value[first[b+1]-1],
 * at least one. */
struct effects {
    size_t boots;
    size_t *first;
    double *value;
};

/* Takes the blocks' numbers, without those that are NAN and without the boots that have none. */
static void effects_init(struct effects *e, const struct paired *data, const double *by_block)
{
    size_t used = 0;
    e->boots = 0;
    e->first = mem_alloc(data->blocks + 1, sizeof *e->first);
    e->value = mem_alloc(data->blocks + 1, sizeof *e->value);
    for (size_t k = 0; k < data->blocks; k++) {
        if (!isnan(by_block[k]))
            e->value[used++] = by_block[k];
        bool boot_ends = k + 1 == data->blocks || data->boot[k + 1] != data->boot[k];
        if (boot_ends && used > e->first[e->boots])
            e->first[++e->boots] = used;
    }
}

static void effects_free(struct effects *e)
{
    free(e->first);
    free(e->value);
}

static double boot_mean(const struct effects *e, size_t boot)
{
    double sum = 0;
    for (size_t i = e->first[boot]; i < e->first[boot + 1]; i++)
        sum += e->value[i];
    return sum / (double)(e->first[boot + 1] - e->first[boot]);
}

static double mean_of_boots(const struct effects *e)
{
    double sum = 0;
    for (size_t b = 0; b < e->boots; b++)
        sum += boot_mean(e, b);
    return sum / (double)e->boots;
}

/* The units of the statistics are the boots' means, or with one boot its blocks. */
static size_t unit_count(const struct effects *e)
{
    return e->boots > 1 ? e->boots : e->first[1];
}

/* Of the mean of the units; there must be two. */
static double standard_error(const struct effects *e, double mean)
{
    size_t units = unit_count(e);
    double squares = 0;
    for (size_t u = 0; u < units; u++) {
        double apart = (e->boots > 1 ? boot_mean(e, u) : e->value[u]) - mean;
        squares += apart * apart;
    }
    return sqrt(squares / (double)(units - 1) / (double)units);
}

static double draw_mean(const struct effects *e, struct random *r)
{
    double sum = 0;
    for (size_t i = 0; i < e->boots; i++) {
        size_t boot = (size_t)random_below(r, e->boots);
        const double *value = e->value + e->first[boot];
        size_t count = e->first[boot + 1] - e->first[boot];
        double within = 0;
        for (size_t k = 0; k < count; k++)
            within += value[random_below(r, count)];
        sum += within / (double)count;
    }
    return sum / (double)e->boots;
}

/* Sorted distances of the bootstrap's means from the mean; returns their root mean square. */
static double draw_distances(const struct effects *e, double mean, uint64_t seed, double *distance,
                             size_t draws)
{
    struct random r;
    double squares = 0;
    random_seed(&r, seed);
    for (size_t i = 0; i < draws; i++) {
        distance[i] = draw_mean(e, &r) - mean;
        squares += distance[i] * distance[i];
    }
    gsl_sort(distance, 1, draws);
    return sqrt(squares / (double)draws);
}

/* The interval of the effects' mean, on the log scale. */
static struct interval interval_of_mean(const struct effects *e, double confidence, unsigned draws,
                                        uint64_t seed)
{
    double mean = mean_of_boots(e);
    size_t units = unit_count(e);
    if (units < 2)
        return (struct interval){mean, NAN, NAN};

    double *distance = mem_alloc(draws, sizeof *distance);
    double spread = draw_distances(e, mean, seed, distance, draws);
    double tail = (1 - confidence) / 2;
    double scale = 0; /* no spread: all units are equal */
    if (spread > 0)
        scale = standard_error(e, mean) / spread * gsl_cdf_tdist_Qinv(tail, (double)(units - 1)) /
                gsl_cdf_ugaussian_Qinv(tail);
    double below = gsl_stats_quantile_from_sorted_data(distance, 1, draws, tail);
    double above = gsl_stats_quantile_from_sorted_data(distance, 1, draws, 1 - tail);
    free(distance);
    return (struct interval){mean, mean + scale * below, mean + scale * above};
}

/* From a log value a block to the interval of exp(mean + shift). */
static int interval_of_blocks(const struct paired *data, const double *by_block, double shift,
                              double confidence, unsigned draws, uint64_t seed,
                              struct interval *out)
{
    struct effects e;
    int rc = -ENODATA;
    effects_init(&e, data, by_block);
    if (e.boots > 0) {
        struct interval logs = interval_of_mean(&e, confidence, draws, seed);
        *out = (struct interval){exp(logs.value + shift), exp(logs.low + shift),
                                 exp(logs.high + shift)};
        rc = 0;
    }
    effects_free(&e);
    return rc;
}

static bool is_sound(const struct paired *data, double confidence, unsigned draws)
{
    if (!(confidence > 0 && confidence < 1) || draws < PAIRED_DRAWS_MIN)
        return false;
    for (size_t k = 1; k < data->blocks; k++)
        if (data->boot[k] < data->boot[k - 1])
            return false;
    for (size_t i = 0; i < data->blocks * data->entries; i++)
        if (data->rate[i] <= 0 || isinf(data->rate[i]))
            return false;
    return true;
}

int paired_ratio(const struct paired *data, size_t entry, size_t base, double confidence,
                 unsigned draws, uint64_t seed, struct interval *ratio)
{
    if (!is_sound(data, confidence, draws) || entry >= data->entries || base >= data->entries)
        return -EINVAL;

    double *by_block = mem_alloc(data->blocks + 1, sizeof *by_block);
    for (size_t k = 0; k < data->blocks; k++) {
        const double *row = data->rate + k * data->entries;
        by_block[k] = log(row[entry]) - log(row[base]);
    }
    int rc = interval_of_blocks(data, by_block, 0, confidence, draws, seed, ratio);
    free(by_block);
    return rc;
}

/* An additive fit of log rates, block's level + entry's level, by the entries but one. */
struct fit {
    size_t blocks;
    size_t entries;
    size_t entry;   /* the one left out */
    double *y;      /* [block * entries + entry], NAN where there is no slice */
    double *others; /* a level an entry; that of `entry` is not used */
    double *level;  /* a level a block; NAN where no other entry has a slice */
};

static void fit_init(struct fit *f, const struct paired *data, size_t entry)
{
    size_t slices = data->blocks * data->entries;
    f->blocks = data->blocks;
    f->entries = data->entries;
    f->entry = entry;
    f->y = mem_alloc(slices + 1, sizeof *f->y);
    f->others = mem_alloc(data->entries, sizeof *f->others);
    f->level = mem_alloc(data->blocks + 1, sizeof *f->level);
    for (size_t i = 0; i < slices; i++)
        f->y[i] = log(data->rate[i]);
}

static void fit_free(struct fit *f)
{
    free(f->y);
    free(f->others);
    free(f->level);
}

/* One half step: each block's level, given the others' levels. */
static void fit_blocks(struct fit *f)
{
    for (size_t k = 0; k < f->blocks; k++) {
        double sum = 0;
        size_t count = 0;
        for (size_t j = 0; j < f->entries; j++) {
            double y = f->y[k * f->entries + j];
            if (j == f->entry || isnan(y))
                continue;
            sum += y - f->others[j];
            count++;
        }
        f->level[k] = count ? sum / (double)count : NAN;
    }
}

/* The other half step; returns the largest change. */
static double fit_others(struct fit *f)
{
    double changed = 0;
    for (size_t j = 0; j < f->entries; j++) {
        double sum = 0;
        size_t count = 0;
        for (size_t k = 0; k < f->blocks; k++) {
            double y = f->y[k * f->entries + j];
            if (j == f->entry || isnan(y))
                continue;
            sum += y - f->level[k];
            count++;
        }
        double fitted = count ? sum / (double)count : 0;
        changed = fmax(changed, fabs(fitted - f->others[j]));
        f->others[j] = fitted;
    }
    return changed;
}

/* Alternating least squares: done after a round where nothing is missing, and else nearer by a
 * factor each round. The others start at their means, so that two that share no block, even by way
 * of others, are taken to have met the same level on average. */
static void fit_levels(struct fit *f)
{
    const int rounds_max = 1000;
    fit_others(f);
    for (int round = 0; round < rounds_max; round++) {
        fit_blocks(f);
        if (fit_others(f) < 1e-12)
            break;
    }
}

/* The entry's effects against the levels, NAN where either is missing; false if all are. */
static bool take_effects(const struct fit *f, double *by_block)
{
    bool found = false;
    for (size_t k = 0; k < f->blocks; k++) {
        by_block[k] = f->y[k * f->entries + f->entry] - f->level[k];
        found = found || !isnan(by_block[k]);
    }
    return found;
}

static double level_of_run(const struct fit *f, const struct paired *data)
{
    struct effects e;
    effects_init(&e, data, f->level);
    double mean = mean_of_boots(&e);
    effects_free(&e);
    return mean;
}

int paired_rate(const struct paired *data, size_t entry, double confidence, unsigned draws,
                uint64_t seed, struct interval *rate)
{
    if (!is_sound(data, confidence, draws) || entry >= data->entries)
        return -EINVAL;

    struct fit f;
    double shift = 0;
    double *by_block = mem_alloc(data->blocks + 1, sizeof *by_block);
    fit_init(&f, data, entry);
    fit_levels(&f);
    if (take_effects(&f, by_block)) {
        shift = level_of_run(&f, data);
    } else {
        /* Nothing was measured beside it: the level is taken as constant. */
        memset(f.level, 0, f.blocks * sizeof *f.level);
        take_effects(&f, by_block);
    }
    int rc = interval_of_blocks(data, by_block, shift, confidence, draws, seed, rate);
    fit_free(&f);
    free(by_block);
    return rc;
}
