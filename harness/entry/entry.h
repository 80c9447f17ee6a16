/* Entries: the folders under servers/. Reads their manifests (entry.conf), strictly, and says which
 * can run. The manifest is `key = value` lines that make(1) reads as well; what the two would
 * understand differently is an error here.
 *
 *   name       [a-z0-9][a-z0-9-]*, the folder's                                    needed
 *   title      as tables show it                                                   needed
 *   language   of what the user of the library writes                              needed
 *   library    the event library or server                                         needed
 *   layer      loop | loop+parser | server | framework: what the library gives     needed
 *   parser     who parses HTTP
 *   model      how it waits: epoll, io_uring, threads …
 *   jit        the compiler at run time, where there is one: it is loaded for longer before it
 *              counts as warm, and its instructions are not counted
 *   tuning     stock | tuned, then ": why"
 *   sources    files to compile, relative to the folder; none: nothing is built
 *   build      in place of sources: the command that makes {bin}, run by make in the root of the
 *              tree: words, with {bin} {dir}; "go build -o {bin} {dir}/main.go"
 *   pkgs       pkg-config names, and -lNAME for a library without one
 *   headers    of a library that is nothing else, such as boost/beast.hpp; looked for by the
 *              compiler, and only when the entry is built
 *   needs      programs looked for on PATH, and files by their whole path
 *   apt        Debian packages that bring all of it
 *   run        argv template: words split on blanks, with {bin} {dir} {port} {workers}
 *              {config} {tmp}; {port} is needed, here or in the config; quotes mean nothing and
 *              are an error                                                       needed
 *   config     a file of the folder, in which {dir} {port} {workers} {tmp} are filled in anew for
 *              each start; {config} is the result's path, in {tmp}, an empty folder of the
 *              server's own that is removed when it has ended
 *   version    argv template of a command that prints the version
 *   workloads  names of the workloads it takes part in; none: all
 *   status     active (where not given) | reference | broken: why
 *   set        default (where not given) | extra: measured only where it is named, or all are asked
 *              for (ENTRY_ALL)
 *   waive      cases of the contract that the entry may fail, each with why: the library's bug;
 *              "G10: picohttpparser PR 78; F05: …"
 *   notes      anything
 *
 * Lines that are empty or start with # are skipped. An unknown or repeated key, a `$`, a `#` within
 * a value, a missing value or needed key, a trailing backslash, a leading blank (make takes a tab
 * for a recipe), a carriage return, a control character, text that is not UTF-8 is an error, as
 * "servers/x/entry.conf:7: unknown key 'colour'; known keys: …".
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
    char *title, *language, *library, *layer, *parser, *model, *tuning, *jit;
    char *sources, *pkgs, *needs, *apt, *run, *workloads, *version, *notes, *waive, *config, *set,
        *headers, *build; /* "" where not given */
    enum entry_status status;
    unsigned workloads_line; /* of the manifest; 0: it names none */
    char *status_reason;     /* for broken; else "" */
    char *binary;            /* <build>/servers/<name>, whether it exists or not */
    bool ready;              /* can be started */
    /* Why not: "node not found; needs apt packages: nodejs" or "not built; needs apt packages:
     * libuv1-dev; run make". "" when ready. */
    char *missing;
};

struct entry_list {
    struct entry *items; /* by name */
    size_t count;
};

/* Reads all manifests under root/servers, in the order of their names; a folder without entry.conf
 * (servers/common) is none. `root` and `build` are absolute. A bad manifest is an error for the
 * whole list (-EINVAL), naming file:line; then `list` is empty. No manifest at all: -ENOENT. */
int entry_list_read(const char *root, const char *build, struct entry_list *list, struct err *err);
void entry_list_free(struct entry_list *list);

/* In place of a name: every entry, the extra ones too. No entry can be called so. */
#define ENTRY_ALL "all"

bool entry_is_extra(const struct entry *entry);

/* The entry of that name, or NULL with err naming the nearest ("unknown entry 'libub'; did you mean
 * 'libuv'? …") by edit distance (Levenshtein 1966), or all if none is near. */
const struct entry *entry_find(const struct entry_list *list, const char *name, struct err *err);

/* What placeholders stand for in one start. */
struct entry_fill {
    unsigned port;
    unsigned workers;
    const char *tmp; /* "" where there is none */
    const char *config;
};

/* Splits the run (or version) template on blanks and fills its placeholders. A NULL-terminated
 * vector, free with entry_argv_free. */
char **entry_argv(const struct entry *entry, const char *template, const struct entry_fill *fill);
void entry_argv_free(char **argv);

/* `text` with its placeholders filled and all else, other braces too, as it stands; free(). */
char *entry_text(const struct entry *entry, const char *text, const struct entry_fill *fill);

/* First line that the version template prints within 5 s, ending with status 0, or NULL; free().
 * Runs the program. */
char *entry_version(const struct entry *entry);

/* The id of the waiver at *at in id[], and its reason as a new string (free()); *at moves on. NULL
 * at the end. */
#define ENTRY_CASE_BYTES 4 /* "G10" */
char *entry_next_waiver(const char **at, char id[ENTRY_CASE_BYTES]);

/* FNV-1a, 64 bits (Fowler, Noll, Vo), over the paths, sizes and bytes of the files in the entry's
 * folder, in the order of their paths, as 16 hex digits. Names that start with a dot, symbolic
 * links and what can't be read count by their name alone. Tells versions apart; no defence against
 * malice. */
void entry_hash(const struct entry *entry, char hex[17]);

#endif
