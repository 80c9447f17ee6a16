#include "base/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_open(const char *path, const char *name, const char *hint, struct err *err)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(err, errno, "%s: %s", name, strerror(errno));
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode))
        return fd;
    int code = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
    close(fd);
    if (code == EISDIR)
        return err_set(err, code, "%s: %s", name, strerror(code));
    return err_set(err, code, "%s: not a regular file; %s", name, hint);
}

int file_read(const char *path, const char *name, const char *hint, size_t most, char **text,
              size_t *size, struct err *err)
{
    int fd = file_open(path, name, hint, err);
    if (fd < 0)
        return fd;
    FILE *file = fdopen(fd, "r");
    if (file == NULL) {
        int code = errno;
        close(fd);
        return err_set(err, code, "%s: %s", name, strerror(code));
    }
    char *bytes = mem_alloc(most + 2, 1);
    size_t got = fread(bytes, 1, most + 1, file);
    int code = ferror(file) ? errno : 0;
    fclose(file);
    if (code == 0 && got <= most) {
        *text = bytes;
        if (size != NULL)
            *size = got;
        return 0;
    }
    free(bytes);
    if (code != 0)
        return err_set(err, code, "%s: %s", name, strerror(code));
    return err_set(err, EINVAL, "%s: larger than %zu bytes", name, most);
}
