/* What a record says, entry by entry: the one place where figures are made from slices. The views
 * (table, JSON, Markdown, CSV) only lay them out. The same record gives the same figures, to the
 * bit.
 */
#ifndef REPORT_SUMMARY_H
#define REPORT_SUMMARY_H

#include "base/err.h"
#include "record/record.h"
#include "report/costs.h"
#include "report/ranks.h"
#include "report/verdict.h"
#include "report/workers.h"
#include "stats/paired.h"

#include <stdbool.h>
#include <stddef.h>

/* Of every interval in a report. */
#define SUMMARY_DRAWS      4000
#define SUMMARY_CONFIDENCE 0.95

/* A figure that is not known is NAN here, absent in JSON, empty in a table; never 0. */
struct row {
    const char *name;       /* strings are borrowed from the record */
    const char *status;     /* ranked workers reference skipped failed broken */
    const char *reason;     /* of skipped, failed, broken; "" otherwise */
    const char *output;     /* last output of one that failed; "" otherwise */
    const char *verdict;    /* what limited it: the first of those that hold (report/verdict.h); ""
                               unknown */
    unsigned verdicts;      /* all that hold: verdict_holds() */
    unsigned rank;          /* from 1; 0: none */
    bool rank_tied;         /* another has the same rank */
    size_t column;          /* its place among the record's entries */
    unsigned workers;       /* it was started with; 1 but for rows of the status workers */
    const char *workers_of; /* whose second row, with several workers, it is; else NULL */
    unsigned server_cores;  /* it could use; 0: not measured */
    const char *twin_of;    /* NULL in all rows of a summary: the twin is no row */
    struct interval rate_per_s;
    struct interval share_of_limit; /* of the fastest reference, 1.0 is all of it; none of
                                       workers, which may have more cores */
    double latency_p50_us, latency_p99_us, latency_max_us; /* closed-loop, raw */
    double cpu_us, cpu_user_us, cpu_system_us;             /* per request */
    double cost[COST_KINDS];                               /* per request */
    double bytes_per_response;
    double rss_peak_bytes;
    double requests;                /* valid answers in measured windows */
    double errors;                  /* wrong, lost and timed out, in and outside of windows */
    double server_busy;             /* share of its cores that the server used, 0..1 */
    double hammer_busy;             /* share of their cores that the hammer used */
    double steal;                   /* share of both cores' time that the hypervisor took */
    double foreign;                 /* share of both cores that other processes used */
    double idle_cpu;                /* CPU share it used while it should sit idle */
    double http_passed, http_total; /* cases of the contract */
    const json_t *http_failed;      /* ids of those failed and not waived, or NULL */
    const json_t *http_waivers;     /* id to reason of those failed and waived, or NULL */
    unsigned slices, blocks, boots;
    unsigned spoilt;          /* slices that the machine took away; repeated, and in no figure */
    struct evidence evidence; /* what the verdicts are made of */
};

struct summary {
    struct row
        *rows; /* ranked by rank and req/s, workers, references, then those without figures */
    size_t count;
    struct ranking ranking;
    struct scaling scaling; /* what several workers do against one */
    const char *limit; /* name of the reference that share_of_limit is of; NULL: none measured */
    unsigned boots, blocks;
    unsigned repeated; /* lines of slices and costs that came twice, and count once */
    bool interrupted;
    bool complete;     /* the plan was carried out to its end */
    const json_t *end; /* the record's last line of type "end", or NULL */
};

/* A row that has figures, unless it failed: neither skipped nor broken. */
bool row_is_measured(const struct row *row);

/* -EINVAL if the record lacks what a summary needs. Strings live as long as `data`. */
int summary_make(const struct record_data *data, struct summary *summary, struct err *err);
void summary_free(struct summary *summary);

#endif
