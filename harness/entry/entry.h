/* Entries: the folders under servers/. Reads their manifests (entry.conf), strictly, and says which
 * can run. The manifest is `key = value` lines that make(1) reads as well: comments (#) and empty
 * lines are skipped; an unknown or repeated key, a `$`, a missing value or key, a trailing
 * backslash, a name that is not the folder's is an error naming file and line.
 */
#ifndef ENTRY_ENTRY_H
#define ENTRY_ENTRY_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum entry_status { ENTRY_ACTIVE, ENTRY_REFERENCE, ENTRY_BROKEN };

struct entry {
    char *name;   /* [a-z0-9][a-z0-9-]*, the folder's */
    char *folder; /* absolute path */
    char *title, *language, *library, *layer, *parser, *model, *tuning;
    char *sources, *pkgs, *needs, *apt, *run, *workloads, *version, *notes; /* "" where not given */
    enum entry_status status;
    char *status_reason; /* for broken; else "" */
    char *binary;        /* <build>/servers/<name>, whether it exists or not */
    bool ready;          /* can be started */
    char *missing; /* why not: "needs apt packages: …" or "not built: run make"; "" when ready */
};

struct entry_list {
    struct entry *items; /* by name */
    size_t count;
};

/* Reads all manifests under root/servers. A bad manifest is an error for the whole list, naming
 * file:line. */
int entry_list_read(const char *root, const char *build, struct entry_list *list, struct err *err);
void entry_list_free(struct entry_list *list);

/* The entry of that name, or NULL with err naming the nearest ("unknown entry 'libub'; did you mean
 * 'libuv'? …"). */
const struct entry *entry_find(const struct entry_list *list, const char *name, struct err *err);

/* Splits the run (or version) template on blanks and fills {bin} {dir} {port} {workers}. A
 * NULL-terminated vector, free with entry_argv_free. */
char **entry_argv(const struct entry *entry, const char *template, unsigned port, unsigned workers);
void entry_argv_free(char **argv);

/* First line that the version template prints within 5 s, or NULL; free(). */
char *entry_version(const struct entry *entry);

/* SHA-256 or the like is not needed: a 64-bit FNV-1a over names and bytes of the entry's folder, as
 * 16 hex digits. */
void entry_hash(const struct entry *entry, char hex[17]);

#endif
