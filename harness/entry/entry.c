#include "entry/entry.h"

#include "base/mem.h"
#include "entry/conf.h"
#include "entry/path.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_there(const char *need)
{
    if (need[0] == '/')
        return access(need, F_OK) == 0;
    char *path = entry_program_find(need);
    free(path);
    return path != NULL;
}

/* The words of `needs` that are not there, split by blanks, or NULL. */
static char *absent_needs(const struct entry *entry)
{
    char *absent = NULL;
    char *word;
    for (const char *at = entry->needs; (word = entry_next_word(&at)) != NULL; free(word)) {
        if (is_there(word))
            continue;
        char *longer = absent == NULL ? mem_copy_string(word) : mem_format("%s %s", absent, word);
        free(absent);
        absent = longer;
    }
    return absent;
}

static void look_if_ready(struct entry *entry)
{
    const char *needs = entry->apt[0] != '\0' ? "; needs apt packages: " : "";
    char *absent = absent_needs(entry);
    if (absent != NULL)
        entry->missing = mem_format("%s not found%s%s", absent, needs, entry->apt);
    else if (entry->sources[0] != '\0' && access(entry->binary, X_OK) != 0)
        entry->missing = mem_format("not built%s%s; make showdown builds it", needs, entry->apt);
    else
        entry->missing = mem_copy_string("");
    entry->ready = entry->missing[0] == '\0';
    free(absent);
}

static int read_one(const char *root, const char *build, const char *name, struct entry_list *list,
                    struct err *err)
{
    struct entry entry;
    int status = entry_conf_read(root, name, &entry, err);
    if (status != 0) {
        entry_conf_free(&entry);
        return status;
    }
    entry.binary = mem_format("%s/servers/%s", build, name);
    look_if_ready(&entry);
    list->items = mem_grow(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = entry;
    return 0;
}

/* servers/common is a folder without a manifest, servers/entry.mk no folder at all. */
static bool holds_manifest(const char *folder, const char *name)
{
    char *path = mem_format("%s/%s/entry.conf", folder, name);
    bool holds = name[0] != '.' && access(path, F_OK) == 0;
    free(path);
    return holds;
}

bool entry_is_extra(const struct entry *entry)
{
    return strcmp(entry->set, "extra") == 0;
}

static int order_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int entry_list_read(const char *root, const char *build, struct entry_list *list, struct err *err)
{
    *list = (struct entry_list){0};
    char *folder = mem_format("%s/servers", root);
    struct dirent **names = NULL;
    int count = scandir(folder, &names, NULL, order_names);
    int status = 0;
    if (count < 0)
        status = err_set(err, errno, "%s: %s; --root names the folder that holds servers/", folder,
                         strerror(errno));
    for (int i = 0; i < count; i++) {
        if (status == 0 && holds_manifest(folder, names[i]->d_name))
            status = read_one(root, build, names[i]->d_name, list, err);
        free(names[i]);
    }
    free(names);
    if (status == 0 && list->count == 0)
        status = err_set(err, ENOENT, "no folder in %s holds an entry.conf", folder);
    if (status != 0)
        entry_list_free(list);
    free(folder);
    return status;
}

void entry_list_free(struct entry_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        entry_conf_free(&list->items[i]);
    free(list->items);
    *list = (struct entry_list){0};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

#define NAME_MAX_COMPARED 64

/* Levenshtein's distance, by rows; names longer than the rows are as far as can be. */
static size_t distance(const char *a, const char *b)
{
    size_t width = strlen(b);
    if (width >= NAME_MAX_COMPARED)
        return SIZE_MAX;
    size_t row[NAME_MAX_COMPARED];
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t above = row[j];
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = least(replaced, least(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[width];
}

/* Near is: at most a third of the letters differ (but one always may), or one holds the other. */
static const struct entry *nearest(const struct entry_list *list, const char *name)
{
    const struct entry *best = NULL;
    size_t best_distance = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *other = list->items[i].name;
        size_t d = distance(name, other);
        bool holds =
            strlen(name) >= 2 && (strstr(other, name) != NULL || strstr(name, other) != NULL);
        if ((d <= 1 || d * 3 <= strlen(other) || holds) && (best == NULL || d < best_distance)) {
            best = &list->items[i];
            best_distance = d;
        }
    }
    return best;
}

static char *all_names(const struct entry_list *list)
{
    char *names = mem_copy_string("");
    for (size_t i = 0; i < list->count; i++) {
        char *longer = mem_format("%s%s%s", names, i > 0 ? " " : "", list->items[i].name);
        free(names);
        names = longer;
    }
    return names;
}

const struct entry *entry_find(const struct entry_list *list, const char *name, struct err *err)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    const struct entry *near = nearest(list, name);
    char *names = all_names(list);
    if (near != NULL)
        err_set(err, ENOENT, "unknown entry '%s'; did you mean '%s'? All: %s", name, near->name,
                names);
    else
        err_set(err, ENOENT, "unknown entry '%s'; one of: %s", name, names);
    free(names);
    return NULL;
}
