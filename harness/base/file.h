/* Text files that others wrote: manifests, pages, configs, records. Only regular files are read: a
 * FIFO in their place would be waited for without end, a device read without end.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/err.h"

#include <stddef.h>

/* A descriptor to read from. `name` is the file as messages name it; `hint` says what it ought to
 * be. -EINVAL "name: not a regular file; hint", -EISDIR, and what open(2) says. */
int file_open(const char *path, const char *name, const char *hint, struct err *err);

/* The whole file as a new string, ended by NUL; `size` (may be NULL) its bytes, which may hold NULs
 * of their own. -EINVAL as above, and "name: larger than MOST bytes". */
int file_read(const char *path, const char *name, const char *hint, size_t most, char **text,
              size_t *size, struct err *err);

#endif
