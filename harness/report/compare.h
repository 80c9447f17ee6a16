/* Is B faster or slower than A? Of two records, entry by entry, or of two builds of one entry that
 * were measured in turns (one record, made by `showdown compare --entry`). The same records give
 * the same words, to the bit. docs/METHOD.md, Compare, says why each is done as it is:
 *
 * Two builds          the interquartile mean of each boot's log ratios (stats/trimmed.h)
 * Two records whose   boots taken pair by pair: the machine's level falls out, and what differs is
 * boots alternate     all of it the records' own
 * Two other records   each entry's distance from the others' level in its own record, compared by
 *                     Welch's interval over boots (stats/welch.h): what moved all alike falls out
 */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "base/err.h"
#include "record/record.h"
#include "report/series.h"
#include "report/summary.h"
#include "stats/paired.h"

#include <stdbool.h>
#include <stdio.h>

#define COMPARE_THRESHOLD 0.02

enum compare_outcome {
    COMPARE_SAME,   /* the interval lies within the threshold on both sides */
    COMPARE_FASTER, /* beyond the threshold, and the interval leaves out 1 */
    COMPARE_SLOWER,
    COMPARE_UNSURE, /* none of these */
    COMPARE_FAILED, /* in B, and not in A */
    COMPARE_NOT_JUDGED
};

enum compare_method { COMPARE_BUILDS, COMPARE_PAIRED_BOOTS, COMPARE_LEVELS };

struct compare_side { /* what is not known is NAN */
    double req_per_s, cpu_us;
    const char *verdict; /* what limited it: struct row */
    unsigned boots, blocks;
};

struct compare_row { /* strings are borrowed from the records */
    const char *name;
    bool reference; /* shown, and not judged */
    enum compare_outcome outcome;
    const char *problem;         /* of one that failed; else "" */
    struct interval ratio;       /* B over A, 95% */
    struct interval of_all;      /* builds: by the mean over all blocks, the slow ones too */
    struct compare_side side[2]; /* A or old, B or new */
};

struct comparison {
    enum compare_method method;
    const char *entry; /* builds: whose; else NULL */
    double threshold;
    struct compare_row *rows;
    size_t count;
    unsigned judged;       /* rows, and with them how strict each must be */
    struct interval level; /* B over A of what moved all alike; NAN where it is not taken out */
    json_t *level_of;      /* array: names of the entries it is made of */
    json_t *only[2];       /* arrays: names measured in one record alone */
    json_t *doubts;        /* array of sentences */
};

/* `threshold` is a share: 0.02 for 2%. -EINVAL with the reason if the records hold nothing to
 * compare, or `data` was not made by compare. Settings are not looked at: report/settings.h. On
 * success compare_free is the caller's; strings live as long as the records. */
int compare_records(const struct record_data *a, const struct record_data *b, double threshold,
                    struct comparison *comparison, struct err *err);
int compare_builds(const struct record_data *data, double threshold, struct comparison *comparison,
                   struct err *err);
void compare_free(struct comparison *comparison);

/* True if compare_builds can read it. */
bool compare_is_of_builds(const struct record_data *data);

/* Of two builds, the columns of `series`: where either server waited, the load generator was the
 * limit and the block tells nothing of the servers. It is left out, and so is a boot with few
 * blocks left, whose mean would weigh as much as any other's. If less than half of the boots
 * remain, nothing is left out: what then comes out "same" is no proof. Returns how many blocks are
 * out, or SIZE_MAX for that case. */
size_t compare_leave_out_waits(struct series *series);

/* The rule. The bounds are 1 - threshold and its inverse, so that A to B is the mirror of B to A;
 * what lies on a bound is within. `strict` is the interval that must leave out 1: with several rows
 * it is the wider one that keeps the chance of any false claim at 5% (Bonferroni). */
enum compare_outcome compare_judge(struct interval ratio, struct interval strict, double threshold);

const char *compare_outcome_name(enum compare_outcome outcome);

/* The worst of the rows: FAILED, then SLOWER, UNSURE, and SAME for all else. */
enum compare_outcome compare_worst(const struct comparison *comparison);

/* `a` and `b` name the sides: folders. */
void compare_view_table(FILE *out, const struct comparison *comparison, const struct record_data *a,
                        const struct record_data *b);

/* One object: schema, method, threshold, outcome, a and b (started, showdown, argv; builds:
 * folder), level (ratio, ratio_low, ratio_high, of), only_a, only_b, doubts, and entries; each with
 * name, outcome, and of these what is known: ratio, ratio_low, ratio_high, ratio_of_all with _low
 * and _high, problem, and req_per_s, cpu_us_per_req, boots, blocks, verdict with _a and _b. */
void compare_view_json(FILE *out, const struct comparison *comparison, const struct record_data *a,
                       const struct record_data *b);

#endif
