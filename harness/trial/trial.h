/* The experiment. Each entry is held against the contract (gate.h), once. A run is several boots; a
 * boot starts a fresh process of every entry and warms each, and then runs blocks until its share
 * of the budget is spent; a block gives every entry one slice, in a shuffled order, while the
 * others sit idle. Every slice is recorded as soon as it is over.
 *
 * With plan.twin one entry is measured a second time (twin.h): drawn once it is known who passed,
 * and kept by a run that goes on. With plan.precision a run ends as soon as it is sure (sure.h).
 *
 * With plan.workers each entry that can be told so is measured with several workers as well, as a
 * contender of its own (crew.h). Entries that take no part in the workload (part.h) are left out.
 *
 * An entry's own failure is its result: it is recorded, the entry is measured no more, and the
 * others go on.
 */
#ifndef TRIAL_TRIAL_H
#define TRIAL_TRIAL_H

#include "entry/entry.h"
#include "judge/page.h"
#include "record/record.h"
#include "trial/plan.h"

struct trial_progress {
    const char *doing; /* "judging", "starting", "warming", "counting", "measuring", "stopping" */
    const char *entry;
    unsigned boot, boots; /* from 1 */
    unsigned block;       /* of this boot, from 1; 0 before the first */
    uint64_t spent_ns;
    uint64_t budget_ns;
    size_t judged, to_judge; /* while judging: how many are done, `entry` the last of them */
    double precision;        /* wanted; 0: none */
    double widest;           /* half-width after the last boot; NAN: not known yet */
};

struct trial_options {
    struct plan plan;
    const struct entry **entries; /* those to measure; one that can't run is left out */
    size_t entry_count;
    const struct page_list *pages; /* the contract: who fails a case that gates is not measured */
    bool gate_only;                /* only those cases, and no score of the others */
    const volatile sig_atomic_t *stop; /* set by a signal: stop soon, and keep what there is */
    /* Called one at a time, while judging from other threads than trial_run's. */
    unsigned stop_after; /* boots to run now, the rest is for another day; 0: all */
    void (*progress)(void *context, const struct trial_progress *progress);
    void *context;
};

/* Writes what is known before the first slice into a new JSON object: plan, machine, entries with
 * versions and hashes, argv. It becomes run.json. */
json_t *trial_describe(const struct trial_options *options, int argc, char **argv,
                       const char *version);

/* Whether the run that `data` holds ended as planned, so that there is nothing to go on with; the
 * boots it had in *boots. */
bool trial_is_complete(const struct plan *plan, const struct record_data *data, unsigned *boots);

/* Runs until the plan is done, `stop_after` boots are, or *stop is set. `data` holds run.json's
 * object and the lines so far (none, or those of a run to go on with); new lines are appended to
 * both. No server lives when it returns. -ENOSPC and the like when the record can't be written:
 * what was measured before it is in `data`. */
int trial_run(const struct trial_options *options, struct record *record, struct record_data *data,
              struct err *err);

#endif
