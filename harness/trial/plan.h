/* The plan of a run: what is measured, how long, in which order. It is written to run.json and read
 * back from there, so that a resumed run follows the plan it began with.
 */
#ifndef TRIAL_PLAN_H
#define TRIAL_PLAN_H

#include "hammer/hammer.h"
#include "host/cpu.h"
#include "trial/workload.h"

#include <jansson.h>

#define PLAN_BOOTS_MAX   1000
#define PLAN_WORKERS_MAX 64
#define PLAN_TWIN_DRAWN  "*" /* as no entry can be named */

struct plan {
    const struct workload *workload;
    unsigned connections;
    unsigned boots;      /* each starts a fresh process of every entry; with a precision, at most */
    uint64_t seed;       /* of every order and draw */
    uint64_t budget_ns;  /* of measuring, shared evenly by the boots */
    uint64_t slice_ns;   /* the measured part of a slice */
    uint64_t settle_ns;  /* after each connection was answered once */
    uint64_t timeout_ns; /* for an answer */
    uint64_t ready_ns;   /* for a server to answer rightly the first time */
    uint64_t warm_max_ns; /* of load before the first block of a boot */
    double precision; /* half-width of every interval at which the run may end (sure.h); 0: none */
    char twin[256];   /* the entry to measure twice (twin.h), PLAN_TWIN_DRAWN, or "" for none */
    unsigned workers; /* of the second row of each entry that takes them (crew.h); 0, 1: none */
    enum hammer_engine engine;
    uint64_t burn_ns; /* of the load generator before each request; for calibration alone */
    struct host_cpu_plan cpus;
};

/* 100 ms and 0.2 ms more a connection: opening takes about 45 us a connection, and set-up should
 * stay a small share of a slice. */
uint64_t plan_slice_ns(unsigned connections);

/* 20 ms and 0.05 ms more a connection: at 100,000 answers a second each connection is answered five
 * times and more before the window opens. Time that is settled is not measured. */
uint64_t plan_settle_ns(unsigned connections);

/* A new JSON object. */
json_t *plan_to_json(const struct plan *plan);
/* -EINVAL when a key is missing or a number is out of range. */
int plan_from_json(const json_t *json, struct plan *plan, struct err *err);

/* The order of `count` items in a block; the same for the same plan, boot and block. */
void plan_order(const struct plan *plan, unsigned boot, unsigned block, size_t *order,
                size_t count);

#endif
