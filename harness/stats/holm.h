/* Holm's correction for many tests at once (Holm, A Simple Sequentially Rejective Multiple Test
 * Procedure, Scandinavian Journal of Statistics 6, 1979): calling different every pair whose
 * adjusted p is below 0.05 calls a pair of equals different, any of them, in at most 5% of runs. It
 * holds however the tests depend on each other, as those of pairs do that share an entry. It never
 * claims less than Bonferroni's.
 *
 * The smallest of n values of p is multiplied by n, the next by n-1, the greatest by 1; each at
 * least the one before it, and at most 1.
 */
#ifndef STATS_HOLM_H
#define STATS_HOLM_H

#include <stddef.h>

/* Each p in 0..1, in any order; adjusted[i] belongs to p[i]. Equal p come out equal. The arrays may
 * be the same. */
void holm_adjust(const double *p, size_t count, double *adjusted);

#endif
