/* The difference of two means whose samples share nothing, not even their spread: two runs at
 * different times. Welch, The Generalization of 'Student's' Problem when Several Different
 * Population Variances are Involved, Biometrika 34, 1947, with the degrees of freedom after
 * Satterthwaite (Biometrics Bulletin 2, 1946).
 */
#ifndef STATS_WELCH_H
#define STATS_WELCH_H

#include "stats/paired.h"

/* mean(b) - mean(a) with its interval at `confidence`. -EINVAL for a confidence that is not between
 * 0 and 1, -ENODATA if either sample is empty. With fewer than two values in either, low and high
 * are NAN. */
int welch_difference(const double *a, size_t a_count, const double *b, size_t b_count,
                     double confidence, struct interval *difference);

#endif
