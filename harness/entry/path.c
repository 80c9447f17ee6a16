#include "entry/path.h"

#include "base/mem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

char *entry_program_find(const char *program)
{
    if (strchr(program, '/') != NULL)
        return mem_copy_string(program);
    const char *folders = getenv("PATH");
    if (folders == NULL)
        folders = "/usr/local/bin:/usr/bin:/bin";
    while (*program != '\0') {
        size_t size = strcspn(folders, ":");
        char *path = mem_format("%.*s/%s", size > 0 ? (int)size : 1, size > 0 ? folders : ".",
                                program); /* an empty folder is the current one (execvp(3)) */
        if (is_program(path))
            return path;
        free(path);
        if (folders[size] == '\0')
            break;
        folders += size + 1;
    }
    return NULL;
}
