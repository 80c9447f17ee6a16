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

/* How long the tail of the bootstrap's distribution is: the distance from the mean that the share
 * `confidence` of the draws keeps within, in root mean squares of all distances. 1.96 at 0.95 for a
 * normal distribution; 0 if all draws are equal. */
static double tail_of_draws(const struct effects *e, double mean, double confidence, unsigned draws,
                            uint64_t seed)
{
    struct random r;
    double squares = 0;
    double *distance = mem_alloc(draws, sizeof *distance);
    random_seed(&r, seed);
    for (unsigned i = 0; i < draws; i++) {
        distance[i] = fabs(draw_mean(e, &r) - mean);
        squares += distance[i] * distance[i];
    }
    gsl_sort(distance, 1, draws);
    double within = gsl_stats_quantile_from_sorted_data(distance, 1, draws, confidence);
    free(distance);
    return squares > 0 ? within / sqrt(squares / draws) : 0;
}

/* The interval of the effects' mean, on the log scale. */
static struct interval interval_of_mean(const struct effects *e, double confidence, unsigned draws,
                                        uint64_t seed)
{
    double mean = mean_of_boots(e);
    size_t units = unit_count(e);
    if (units < 2)
        return (struct interval){mean, NAN, NAN};

    double upper_tail = (1 - confidence) / 2;
    double normal = gsl_cdf_ugaussian_Qinv(upper_tail);
    double student = gsl_cdf_tdist_Qinv(upper_tail, (double)(units - 1));
    double widening = fmax(1, tail_of_draws(e, mean, confidence, draws, seed) / normal);
    double half = standard_error(e, mean) * student * widening;
    return (struct interval){mean, mean - half, mean + half};
}

/* From a log value a block, on the log scale. */
static int interval_of_blocks(const struct paired *data, const double *by_block, double confidence,
                              unsigned draws, uint64_t seed, struct interval *logs)
{
    struct effects e;
    int rc = -ENODATA;
    effects_init(&e, data, by_block);
    if (e.boots > 0) {
        *logs = interval_of_mean(&e, confidence, draws, seed);
        rc = 0;
    }
    effects_free(&e);
    return rc;
}

static struct interval exp_interval(struct interval logs)
{
    return (struct interval){exp(logs.value), exp(logs.low), exp(logs.high)};
}

static bool is_sound(const struct paired *data)
{
    for (size_t k = 1; k < data->blocks; k++)
        if (data->boot[k] < data->boot[k - 1])
            return false;
    for (size_t i = 0; i < data->blocks * data->entries; i++)
        if (data->rate[i] <= 0 || isinf(data->rate[i]))
            return false;
    return true;
}

static bool is_asked_well(double confidence, unsigned draws)
{
    return confidence > 0 && confidence < 1 && draws >= PAIRED_DRAWS_MIN;
}

/* log(rate of entry/rate of base) a block, NAN where either has no slice; to be freed. */
static double *log_ratios(const struct paired *data, size_t entry, size_t base)
{
    double *by_block = mem_alloc(data->blocks + 1, sizeof *by_block);
    for (size_t k = 0; k < data->blocks; k++) {
        const double *row = data->rate + k * data->entries;
        by_block[k] = log(row[entry]) - log(row[base]);
    }
    return by_block;
}

int paired_boot_means(const struct paired *data, size_t entry, size_t base, double *means,
                      size_t *count)
{
    if (!is_sound(data) || entry >= data->entries || base >= data->entries)
        return -EINVAL;

    struct effects e;
    double *by_block = log_ratios(data, entry, base);
    effects_init(&e, data, by_block);
    *count = e.boots;
    for (size_t b = 0; b < e.boots; b++)
        means[b] = boot_mean(&e, b);
    effects_free(&e);
    free(by_block);
    return 0;
}

int paired_ratio(const struct paired *data, size_t entry, size_t base, double confidence,
                 unsigned draws, uint64_t seed, struct interval *ratio)
{
    if (!is_sound(data) || !is_asked_well(confidence, draws) || entry >= data->entries ||
        base >= data->entries)
        return -EINVAL;

    struct interval logs;
    double *by_block = log_ratios(data, entry, base);
    int rc = interval_of_blocks(data, by_block, confidence, draws, seed, &logs);
    free(by_block);
    if (rc == 0)
        *ratio = exp_interval(logs);
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

/* The entry's log rates; returns of how many blocks. */
static size_t take_rates(const struct fit *f, double *rates)
{
    size_t found = 0;
    for (size_t k = 0; k < f->blocks; k++) {
        rates[k] = f->y[k * f->entries + f->entry];
        if (!isnan(rates[k]))
            found++;
    }
    return found;
}

static size_t count_shared_blocks(const struct fit *f, const double *rates)
{
    size_t shared = 0;
    for (size_t k = 0; k < f->blocks; k++)
        if (!isnan(rates[k]) && !isnan(f->level[k]))
            shared++;
    return shared;
}

/* The mean of the entry's log rates, where it has none the block's level and its mean effect. */
static double mean_with_gaps_filled(const struct fit *f, const struct paired *data,
                                    const double *rates, double effect)
{
    struct effects e;
    double *filled = mem_alloc(f->blocks + 1, sizeof *filled);
    for (size_t k = 0; k < f->blocks; k++)
        filled[k] = isnan(rates[k]) ? f->level[k] + effect : rates[k];
    effects_init(&e, data, filled);
    double mean = mean_of_boots(&e);
    effects_free(&e);
    free(filled);
    return mean;
}

/* The interval of the entry's effects against the levels, put around the mean of its log rates. */
static int interval_by_effects(const struct fit *f, const struct paired *data, const double *rates,
                               double confidence, unsigned draws, uint64_t seed,
                               struct interval *logs)
{
    double *effects = mem_alloc(f->blocks + 1, sizeof *effects);
    for (size_t k = 0; k < f->blocks; k++)
        effects[k] = rates[k] - f->level[k];
    int rc = interval_of_blocks(data, effects, confidence, draws, seed, logs);
    free(effects);
    if (rc == 0) {
        double mean = mean_with_gaps_filled(f, data, rates, logs->value);
        double shift = mean - logs->value;
        *logs = (struct interval){mean, logs->low + shift, logs->high + shift};
    }
    return rc;
}

int paired_rate(const struct paired *data, size_t entry, double confidence, unsigned draws,
                uint64_t seed, struct interval *rate)
{
    if (!is_sound(data) || !is_asked_well(confidence, draws) || entry >= data->entries)
        return -EINVAL;

    struct fit f;
    struct interval logs;
    double *rates = mem_alloc(data->blocks + 1, sizeof *rates);
    fit_init(&f, data, entry);
    fit_levels(&f);
    size_t blocks = take_rates(&f, rates);
    size_t shared = count_shared_blocks(&f, rates);
    bool mostly_alone = blocks == data->blocks && shared < blocks - shared;
    int rc = shared == 0 || mostly_alone
                 ? interval_of_blocks(data, rates, confidence, draws, seed, &logs)
                 : interval_by_effects(&f, data, rates, confidence, draws, seed, &logs);
    if (rc == 0)
        *rate = exp_interval(logs);
    fit_free(&f);
    free(rates);
    return rc;
}
