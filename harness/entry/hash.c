#include "base/mem.h"
#include "entry/entry.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The parameters of 64-bit FNV-1a (draft-eastlake-fnv, section 5). */
#define FNV_BASIS UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * FNV_PRIME;
    return hash;
}

/* The size goes before the bytes, so that no two folders run together to the same stream. */
static uint64_t add_file(uint64_t hash, const char *path, uint64_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return hash;
    char little_endian[8];
    for (int i = 0; i < 8; i++)
        little_endian[i] = (char)(size >> 8 * i);
    hash = add_bytes(hash, little_endian, sizeof little_endian);
    char buffer[16384];
    ssize_t got;
    while ((got = read(fd, buffer, sizeof buffer)) > 0)
        hash = add_bytes(hash, buffer, (size_t)got);
    close(fd);
    return hash;
}

/* Not alphasort(3), whose order is the locale's. */
static int order_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* `name` is the path below the entry's folder: where the folder lies must not matter. */
static uint64_t add_folder(uint64_t hash, const char *path, const char *name)
{
    struct dirent **items = NULL;
    int count = scandir(path, &items, NULL, order_names);
    for (int i = 0; i < count; i++) {
        const char *item = items[i]->d_name;
        struct stat about;
        char *item_path = mem_format("%s/%s", path, item);
        char *item_name = mem_format("%s/%s", name, item);
        if (strcmp(item, ".") != 0 && strcmp(item, "..") != 0) {
            hash = add_bytes(hash, item_name, strlen(item_name) + 1);
            if (item[0] == '.' || lstat(item_path, &about) != 0)
                about.st_mode = 0;
            if (S_ISDIR(about.st_mode))
                hash = add_folder(hash, item_path, item_name);
            else if (S_ISREG(about.st_mode))
                hash = add_file(hash, item_path, (uint64_t)about.st_size);
        }
        free(item_path);
        free(item_name);
        free(items[i]);
    }
    free(items);
    return hash;
}

void entry_hash(const struct entry *entry, char hex[17])
{
    uint64_t hash = add_folder(FNV_BASIS, entry->folder, "");
    snprintf(hex, 17, "%016llx", (unsigned long long)hash);
}
