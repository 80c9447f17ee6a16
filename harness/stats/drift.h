/* Whether an entry went faster or slower in the course of a run, against the others beside it. A
 * machine that drifts takes all along, so what is tested is the entry's distance from the level of
 * each block: the log of its rate less the median, over the other entries, of the log of theirs
 * less its own median over the run. Medians, so that one entry that drifts moves no other's
 * level; with fewer than three others it does, and which of them drifted can't be told.
 *
 * Three tests, each of which sees what the others miss:
 *   halves  the mean of the first half of the boots against that of the second (Student's t with
 *           one variance; the middle one of an odd number is left out): a step
 *   trend   the correlation of the boots' means with their order (t with n-2 degrees of freedom): a
 *           slope, which few boots show better than halves do
 *   within  in each boot the second half of its blocks less the first, whose mean over the boots is
 *           held against 0 (t with n-1): what a process does as it ages, a JIT that is not warm or
 *           a leak, begins anew with each boot and is in neither of the others
 * The unit is the boot, for the reason that stats/paired.h gives. With one boot its blocks take the
 * boots' place, and there is no third test. The least of the p is multiplied by the number of tests
 * made (Bonferroni), so that chance alone gives a p below x in at most the share x of cases.
 */
#ifndef STATS_DRIFT_H
#define STATS_DRIFT_H

#include "stats/paired.h"

#include <stdbool.h>

enum { DRIFT_UNITS_MIN = 4, DRIFT_BOOTS_WITHIN_MIN = 3 };

struct drift {
    double p;      /* of the test with the least p, adjusted for the number of tests; at most 1 */
    double change; /* of the rate, from the first half to the second, 1.0 is none: of the run, or
                      with within_boots of a boot */
    bool within_boots; /* the test with the least p is the third */
};

/* -EINVAL entry out of range; -ENODATA nothing was measured beside the entry, or fewer than
 * DRIFT_UNITS_MIN boots (blocks of one boot) and fewer than DRIFT_BOOTS_WITHIN_MIN of two blocks
 * and more. */
int drift_test(const struct paired *data, size_t entry, struct drift *drift);

#endif
