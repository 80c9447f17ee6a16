/* Cases that are not bytes on one connection but faults of many: descriptors running out, resets,
 * crowds, a client that never reads, signals. Each is named by a page (page.h), which says why it
 * is a rule; here it is carried out. They use the server's process where it is ours.
 */
#ifndef JUDGE_FAULTS_H
#define JUDGE_FAULTS_H

#include "entry/server.h"
#include "judge/talk.h"

enum fault_needs {
    FAULT_NEEDS_ANY,  /* any server that is reached */
    FAULT_NEEDS_OURS, /* one whose process we started */
    FAULT_NEEDS_END   /* the same, and it is ended by the case */
};

struct fault_context {
    const struct talk_peer *peer;
    struct server *server; /* NULL: not ours, or ended by the case */
    uint64_t seed;
    char problem[768]; /* where it fell short */
    bool late;         /* because 2 s were too few to end in */
};

struct fault {
    const char *name;
    enum fault_needs needs;
    const char *done;     /* what is done, for a report */
    const char *expected; /* and what must come of it */
    bool (*run)(struct fault_context *context);
};

/* NULL if there is none of that name. */
const struct fault *fault_find(const char *name);

/* Descriptors that the cases want, of this process and of the server. */
#define FAULT_FILES 3300

#endif
