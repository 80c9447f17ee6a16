/* A throwaway root with servers/NAME folders, for tests.
 */
#ifndef TESTS_ENTRY_FOLDER_H
#define TESTS_ENTRY_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline char *folder_make(void)
{
    const char *above = getenv("TMPDIR");
    char *root = NULL;
    if (asprintf(&root, "%s/showdown-test-XXXXXX", above != NULL ? above : "/tmp") < 0 ||
        mkdtemp(root) == NULL)
        abort();
    return root;
}

static inline int folder_remove_one(const char *path, const struct stat *about, int kind,
                                    struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static inline void folder_remove(char *root)
{
    nftw(root, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(root);
}

/* Writes root/path, with the folders above it. */
static inline void folder_write(const char *root, const char *path, const char *bytes, size_t size)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
    FILE *file = fopen(whole, "we");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static inline void folder_print(const char *root, const char *path, const char *text)
{
    folder_write(root, path, text, strlen(text));
}

#endif
