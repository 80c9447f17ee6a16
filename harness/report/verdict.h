/* What limited a row, judged by recorded counters. Several verdicts may hold of one row; the first
 * in the order below is the row's, and JSON lists all. docs/METHOD.md gives the reason of the order
 * and of each threshold.
 */
#ifndef REPORT_VERDICT_H
#define REPORT_VERDICT_H

#include "record/record.h"
#include "stats/drift.h"

#include <stdbool.h>
#include <stdio.h>

enum verdict {                     /* in order of precedence */
               VERDICT_ERRORS,     /* wrong, lost or late answers, or the entry failed */
               VERDICT_NEIGHBOURS, /* others took time from the server or the load generator */
               VERDICT_UNSTEADY,   /* a trend, a step, or a warm-up that was not over */
               VERDICT_HAMMER,     /* the load generator had no room: the server can do more */
               VERDICT_SERVER,     /* its cores were full, and the load generator had room */
               VERDICT_WAITING,    /* neither was full */
               VERDICTS            /* none: nothing is known */
};

/* More of a core's time than this lost to others is `neighbours`. Time that a thread
 * waited is exact; ticks are samples of the time, and are taken for less. */
#define VERDICT_LOST  0.05
#define VERDICT_TICKS 0.10
/* A core is full from here on, time lost to others included. */
#define VERDICT_SERVER_FULL 0.90
#define VERDICT_HAMMER_FULL 0.95
/* A server that used so much of its core itself has too little left for a faster load generator to
 * matter, however full that one was. */
#define VERDICT_SERVER_SPENT 0.95
/* A change of the rate that counts, and how rarely chance may name any row of a run. */
#define VERDICT_CHANGE 0.02
#define VERDICT_CHANCE 0.05
/* How far req/s times mean latency may be from the connections, beside what the window's edges do.
 */
#define VERDICT_LITTLE 0.05

/* What the verdict is made of, for one row. Shares of the measured time; NAN is not known. */
struct evidence {
    bool
        shared; /* one CPU for both: they wait for each other, and no wait is held against others */
    double server_waited, hammer_waited;   /* could have run, and something else had the core */
    double server_foreign, hammer_foreign; /* of each core, used by neither */
    double server_missing, hammer_missing; /* of a full core's ticks, how many never came */
    double throttled;                      /* a CPU quota stopped the run */
    double gaps;   /* beyond what was asked for, in a loading thread's longest sleep */
    double spoilt; /* of all slices tried, those that were repeated */
    double little; /* req/s times mean latency over requests outstanding; NAN for connections that
                      close, whose closing time is in it */
    double
        little_edge; /* mean latency over the window: so much of the requests straddle its edge */
    unsigned boots_cold; /* whose warm-up ended before it was steady */
    bool drift_known;
    struct drift drift; /* with p of all rows' tests together */
};

/* Sums over an entry's slices, to begin with all zero. */
struct evidence_sums {
    struct core_sums {
        double busy, idle, steal, irqs, irq; /* ticks; irqs are irq and softirq */
        double cpu_ns;                       /* of what belongs there */
        double wait_ns, wait_window_ns;      /* in slices in which the wait is known */
    } server, hammer;
    double window_ns, slices, valid, latency_ns;
    double server_window_ns; /* of each core that the server may use */
    double throttled_ns, throttle_window_ns;
    double gap_ns;
    double little, little_window_ns;
    bool threads; /* a server with several, or processes: they wait for each other as well */
};

struct row;
struct summary;

/* Cores that the server of a slice may use: several only where it has workers. */
double evidence_server_cores(const json_t *line);

/* Adds a line of type "slice" of a run with this plan. */
void evidence_add(struct evidence_sums *sums, const json_t *line, const json_t *plan);

/* Fills row->evidence but for spoilt, boots_cold and drift, and row->hammer_busy, steal and
 * foreign. */
void evidence_set(const struct evidence_sums *sums, const json_t *plan, struct row *row);

/* Sets the drifts' p together (each is multiplied by the number of rows that have one), and each
 * row's verdicts. */
void verdict_set_all(struct summary *summary);

const char *verdict_name(enum verdict verdict); /* "server"; "" for VERDICTS */
bool verdict_holds(const struct row *row, enum verdict verdict);

/* True if Little's law is broken: rate and latencies of the row can't both be right. */
bool verdict_little_broken(const struct row *row);

/* A line for each verdict that a row has: the cause with its figures, and what to do. */
void verdict_explain(FILE *out, const struct summary *summary);

#endif
