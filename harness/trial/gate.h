/* Before the first boot: every entry is held against the contract (judge/judge.h), on a process of
 * its own, several entries at once. An entry that fails a case that gates is measured no further;
 * the score of all cases is recorded with every row, the references' too, which are not refused.
 */
#ifndef TRIAL_GATE_H
#define TRIAL_GATE_H

#include "entry/entry.h"
#include "judge/judge.h"

#include <jansson.h>

struct gate_subject {
    const struct entry *entry;
    bool skip; /* judged before, in a run that goes on */
    /* Filled in: */
    json_t *line; /* of type "gate": passed, total, failed and waived ids, waivers; NULL if it could
                     not be judged, or a stop came first. Owned by the caller. */
    bool refused; /* a case that gates failed, or it could not be judged */
    bool lacks;   /* that, since this machine lacks what it needs */
    char *problem; /* why it is refused, or NULL; free() */
};

/* Told as each is judged, from whichever thread judged it, one call at a time: `done` of `count`
 * are, `entry` the last of them. Those to skip are in neither. */
struct gate_watch {
    void (*judged)(void *context, const struct entry *entry, size_t done, size_t count);
    void *context;
};

void gate_run(const struct judge_options *options, const struct gate_watch *watch,
              struct gate_subject *subjects, size_t count);

#endif
