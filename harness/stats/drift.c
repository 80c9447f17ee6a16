#include "stats/drift.h"

#include "base/mem.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

static double median(double *values, size_t count)
{
    if (count == 0)
        return NAN;
    gsl_sort(values, 1, count);
    return gsl_stats_median_from_sorted_data(values, 1, count);
}

/* The median over the run of each entry's log rates; NAN without any. */
static void take_medians(const struct paired *data, double *medians)
{
    double *logs = mem_alloc(data->blocks + 1, sizeof *logs);
    for (size_t j = 0; j < data->entries; j++) {
        size_t count = 0;
        for (size_t k = 0; k < data->blocks; k++)
            if (!isnan(data->rate[k * data->entries + j]))
                logs[count++] = log(data->rate[k * data->entries + j]);
        medians[j] = median(logs, count);
    }
    free(logs);
}

/* The entry's distance from the level of each block; NAN where there is no rate or no level. */
static void take_distances(const struct paired *data, size_t entry, double *distance)
{
    double *medians = mem_alloc(data->entries, sizeof *medians);
    double *others = mem_alloc(data->entries, sizeof *others);
    take_medians(data, medians);
    for (size_t k = 0; k < data->blocks; k++) {
        const double *rate = data->rate + k * data->entries;
        size_t count = 0;
        for (size_t j = 0; j < data->entries; j++)
            if (j != entry && !isnan(rate[j]))
                others[count++] = log(rate[j]) - medians[j];
        distance[k] = log(rate[entry]) - median(others, count);
    }
    free(medians);
    free(others);
}

/* Two-sided p of a t; nothing varied if the error is 0. */
static double p_of(double estimate, double error, double freedom)
{
    if (error <= 0)
        return fabs(estimate) > 0 ? 0 : 1;
    return 2 * gsl_cdf_tdist_Q(fabs(estimate) / error, freedom);
}

struct series {
    double *value; /* the units in order */
    size_t count;
    double *within; /* of each boot of two blocks and more, second half less first */
    size_t within_count;
};

static double second_less_first(const double *value, size_t count)
{
    size_t half = count / 2;
    return gsl_stats_mean(value + count - half, 1, half) - gsl_stats_mean(value, 1, half);
}

/* Groups the distances by boots: their means, and what happened within each. */
static void series_make(const struct paired *data, const double *distance, struct series *s)
{
    double *in_boot = mem_alloc(data->blocks + 1, sizeof *in_boot);
    size_t boots = 0;
    size_t k = 0;
    s->value = mem_alloc(data->blocks + 1, sizeof *s->value);
    s->within = mem_alloc(data->blocks + 1, sizeof *s->within);
    while (k < data->blocks) {
        unsigned boot = data->boot[k];
        size_t count = 0;
        for (; k < data->blocks && data->boot[k] == boot; k++)
            if (!isnan(distance[k]))
                in_boot[count++] = distance[k];
        if (count == 0)
            continue;
        if (count >= 2)
            s->within[s->within_count++] = second_less_first(in_boot, count);
        s->value[s->count++] = gsl_stats_mean(in_boot, 1, count);
        boots++;
    }
    if (boots == 1) {
        s->count = 0;
        s->within_count = 0;
        for (k = 0; k < data->blocks; k++)
            if (!isnan(distance[k]))
                s->value[s->count++] = distance[k];
    }
    free(in_boot);
}

static double p_of_halves(const struct series *s)
{
    size_t half = s->count / 2;
    const double *last = s->value + s->count - half;
    double freedom = 2.0 * (double)half - 2;
    double squares = gsl_stats_tss(s->value, 1, half) + gsl_stats_tss(last, 1, half);
    double error = sqrt(squares / freedom * 2 / (double)half);
    return p_of(second_less_first(s->value, s->count), error, freedom);
}

static double p_of_trend(const struct series *s)
{
    double products = 0, squares = 0;
    double middle = (double)(s->count - 1) / 2;
    double mean = gsl_stats_mean(s->value, 1, s->count);
    for (size_t i = 0; i < s->count; i++) {
        products += ((double)i - middle) * (s->value[i] - mean);
        squares += ((double)i - middle) * ((double)i - middle);
    }
    double slope = products / squares;
    double rest = fmax(0, gsl_stats_tss(s->value, 1, s->count) - slope * products);
    double freedom = (double)s->count - 2;
    return p_of(slope, sqrt(rest / freedom / squares), freedom);
}

static double p_of_within(const struct series *s, double mean)
{
    double error = gsl_stats_sd_m(s->within, 1, s->within_count, mean);
    return p_of(mean, error / sqrt((double)s->within_count), (double)s->within_count - 1);
}

static int judge(const struct series *s, struct drift *drift)
{
    unsigned tests = 0;
    *drift = (struct drift){.p = INFINITY, .change = 1};
    if (s->count >= DRIFT_UNITS_MIN) {
        drift->p = fmin(p_of_halves(s), p_of_trend(s));
        drift->change = exp(second_less_first(s->value, s->count));
        tests += 2;
    }
    if (s->within_count >= DRIFT_BOOTS_WITHIN_MIN) {
        double mean = gsl_stats_mean(s->within, 1, s->within_count);
        double p = p_of_within(s, mean);
        drift->within_boots = p < drift->p;
        drift->change = drift->within_boots ? exp(mean) : drift->change;
        drift->p = fmin(drift->p, p);
        tests++;
    }
    drift->p = fmin(1, drift->p * tests);
    return tests > 0 ? 0 : -ENODATA;
}

int drift_test(const struct paired *data, size_t entry, struct drift *drift)
{
    if (entry >= data->entries)
        return -EINVAL;
    struct series s = {0};
    double *distance = mem_alloc(data->blocks + 1, sizeof *distance);
    take_distances(data, entry, distance);
    series_make(data, distance, &s);
    int rc = judge(&s, drift);
    free(s.value);
    free(s.within);
    free(distance);
    return rc;
}
