/* A new entry at a glance: what someone who adds a server wants told, each with its remedy. Starts
 * the entry, holds it against the contract, loads it for some seconds and looks at what it leaves
 * behind. A first look: `run` is what measures.
 */
#ifndef TRIAL_VET_H
#define TRIAL_VET_H

#include "entry/entry.h"
#include "judge/page.h"

#include <signal.h>

enum vet_verdict { VET_PASS, VET_WARN, VET_FAIL };

struct vet_finding {
    const char *what; /* manifest, version, readiness, contract, load, memory, output, files,
                         SIGTERM, README, licence, status */
    enum vet_verdict verdict;
    char text[1024]; /* what was seen; for what falls short, then the remedy */
};

#define VET_FINDINGS_MAX 16

struct vet {
    struct vet_finding findings[VET_FINDINGS_MAX];
    size_t count;
    bool failed; /* at least one VET_FAIL; of an entry with status broken: none */
};

/* Looks at `entry`, which is ready, about 10 s long. `licence` is the collection's own LICENSE
 * file. Findings come through `tell`, if not NULL, as they are made, and are kept in *vet. */
void vet_entry(const struct entry *entry, const struct page_list *pages, const char *licence,
               const volatile sig_atomic_t *stop, void (*tell)(const struct vet_finding *finding),
               struct vet *vet);

#endif
