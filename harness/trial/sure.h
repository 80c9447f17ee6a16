/* When a run that was given a precision may end: `run --precision 1%`. After each boot from the
 * SURE_BOOTS_MIN-th on, all intervals are made; if the half-width of each is below the precision,
 * the run is sure. Only widths are looked at, never which entry leads or whether two differ: a rule
 * that looked at differences would stop in the moments when chance shows one.
 *
 * A width that is looked at again and again is a little too narrow when it is first narrow enough;
 * the boots that are waited for keep that small (docs/METHOD.md, "Run until sure"; Stein 1945, Chow
 * and Robbins 1965).
 */
#ifndef TRIAL_SURE_H
#define TRIAL_SURE_H

#include "stats/paired.h"

#include <stdbool.h>

#define SURE_BOOTS_MIN 12

struct sure {
    double widest; /* half-width over rate, of the widest interval; NAN: one has no bounds yet */
    size_t entry;  /* whose */
};

/* Over those entries with counts[i]; none: NAN. Arguments as paired_rate has them, at 95%. */
void sure_look(const struct paired *data, const bool *counts, unsigned draws, uint64_t seed,
               struct sure *sure);

/* The rule. */
bool sure_is_enough(const struct sure *sure, unsigned boots, double precision);

/* How much longer a run of so many boots in spent_ns would have to go on, if the noise stays as it
 * was: widths fall with the root of the time. 0 if it is sure. -ENODATA while widest is NAN. */
int sure_more_ns(const struct sure *sure, unsigned boots, double precision, uint64_t spent_ns,
                 uint64_t *more_ns);

#endif
