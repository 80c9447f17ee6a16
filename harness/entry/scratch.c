#include "entry/scratch.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEVELS_MOST = 16 };

int scratch_make(char **path, struct err *err)
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] != '/')
        base = "/tmp";
    *path = mem_format("%s/showdown-XXXXXX", base);
    if (mkdtemp(*path) != NULL)
        return 0;
    int code = errno;
    free(*path);
    *path = NULL;
    return err_set(err, code,
                   "cannot make a folder below %s: %s; set TMPDIR to one that can be "
                   "written to",
                   base, strerror(code));
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static void remove_at(int parent, const char *name, int level);

static void empty(int folder, int level)
{
    _Alignas(struct dirent64) char bytes[4096];
    ssize_t got;
    while ((got = getdents64(folder, bytes, sizeof bytes)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *item = (const void *)(bytes + at);
            if (!is_dots(item->d_name))
                remove_at(folder, item->d_name, level + 1);
            at += item->d_reclen;
        }
    }
}

static void remove_at(int parent, const char *name, int level)
{
    if (unlinkat(parent, name, 0) == 0 || level == LEVELS_MOST)
        return;
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    empty(folder, level);
    close(folder);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void scratch_remove(const char *path)
{
    if (path != NULL)
        remove_at(AT_FDCWD, path, 0);
}
