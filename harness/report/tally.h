/* Costs per request as `showdown cost` counts them: how they are laid out, and how two sets
 * compare. The document (also what --save writes) is
 *   {"schema": 1, "showdown": commit, "valgrind": version or absent, "connections", "pipeline",
 *    "requests", "machine": fingerprint, "entries": [...]}
 * and an entry is {"name", "version", "status": "counted" | "skipped" | "broken" | "failed",
 * "reason"}, with, where known, "instructions_per_req", "allocations_per_req", "syscalls_per_req",
 * "syscalls": {name: per request}, "objects": {file: instructions per request}, "functions":
 * [{"name", "object", "instructions_per_req"}], and "absent": {"instructions" | "syscalls": why}.
 */
#ifndef REPORT_TALLY_H
#define REPORT_TALLY_H

#include "base/err.h"

#include <jansson.h>
#include <stdio.h>

#define TALLY_SCHEMA 1

/* Reads a document that was saved; NULL with the reason in err. json_decref() it. */
json_t *tally_read(const char *path, struct err *err);

/* 0 if what was saved may be held against `costs`: same schema, connections and pipeline; else
 * -EINVAL, naming the difference. */
int tally_comparable(const json_t *costs, const json_t *saved, struct err *err);

/* Differences of machine and tools that may be behind a growth, one line each; nothing if none. */
void tally_print_differences(FILE *out, const json_t *costs, const json_t *saved);

/* The table; `saved` may be NULL, else each figure has its change beside it. `functions` of each
 * entry are listed below it, and its shares by object. */
void tally_print(FILE *out, const json_t *costs, const json_t *saved, unsigned functions);

/* Prints a line for each figure that grew beyond the share `threshold` (0.01 is 1%), and for each
 * that can no longer be had, of the entries that both hold; returns how many. */
unsigned tally_print_growth(FILE *out, const json_t *costs, const json_t *saved, double threshold);

#endif
