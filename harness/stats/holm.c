#include "stats/holm.h"

#include "base/mem.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

void holm_adjust(const double *p, size_t count, double *adjusted)
{
    size_t *order = mem_alloc(count + 1, sizeof *order);
    double least = 0;
    gsl_sort_index(order, p, 1, count);
    for (size_t i = 0; i < count; i++) {
        least = fmax(least, fmin(1, p[order[i]] * (double)(count - i)));
        adjusted[order[i]] = least;
    }
    free(order);
}
