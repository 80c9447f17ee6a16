#include "host/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int host_file_read(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t used = 0;
    ssize_t got = 0;
    while (used < size - 1) {
        got = read(fd, text + used, size - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    int code = got < 0 ? -errno : (int)used;
    close(fd);
    text[got < 0 ? 0 : used] = '\0';
    return code;
}

bool host_file_number(const char *text, const char *key, uint64_t *number)
{
    size_t size = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, key, size) != 0 || line[size] != ':')
            continue;
        char *end;
        *number = strtoull(line + size + 1, &end, 10);
        return end != line + size + 1;
    }
    return false;
}
