#include "stats/welch.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* Of the mean: the squared standard error. */
static double variance_of_mean(const double *values, size_t count, double mean)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return squares / (double)(count - 1) / (double)count;
}

int welch_difference(const double *a, size_t a_count, const double *b, size_t b_count,
                     double confidence, struct interval *difference)
{
    if (!(confidence > 0 && confidence < 1))
        return -EINVAL;
    if (a_count == 0 || b_count == 0)
        return -ENODATA;
    double a_mean = mean_of(a, a_count);
    double b_mean = mean_of(b, b_count);
    double value = b_mean - a_mean;
    *difference = (struct interval){value, NAN, NAN};
    if (a_count < 2 || b_count < 2)
        return 0;
    double va = variance_of_mean(a, a_count, a_mean);
    double vb = variance_of_mean(b, b_count, b_mean);
    double half = 0;
    if (va + vb > 0) {
        double freedom = (va + vb) * (va + vb) /
                         (va * va / (double)(a_count - 1) + vb * vb / (double)(b_count - 1));
        half = sqrt(va + vb) * gsl_cdf_tdist_Qinv((1 - confidence) / 2, freedom);
    }
    *difference = (struct interval){value, value - half, value + half};
    return 0;
}
