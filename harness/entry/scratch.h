/* A folder of its own for one run of a server: the config made for its port, pid files, spools.
 * Private to entry/.
 */
#ifndef ENTRY_SCRATCH_H
#define ENTRY_SCRATCH_H

#include "base/err.h"

/* Makes an empty folder, mode 0700, below $TMPDIR or /tmp; *path is a new string. */
int scratch_make(char **path, struct err *err);

/* Removes the folder and what is in it, at most 16 levels deep; follows no symbolic link. Calls
 * only what is async-signal-safe (signal-safety(7)), since the keeper calls it. NULL is nothing. */
void scratch_remove(const char *path);

#endif
