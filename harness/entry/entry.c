#include "entry/entry.h"

#include "base/mem.h"
#include "base/near.h"
#include "entry/conf.h"
#include "entry/path.h"

#include <dirent.h>
#include <errno.h>
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
    else if ((entry->sources[0] != '\0' || entry->build[0] != '\0') &&
             access(entry->binary, X_OK) != 0)
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

static const char *nearest(const struct entry_list *list, const char *name)
{
    const char **names = mem_alloc(list->count + 1, sizeof(*names));
    for (size_t i = 0; i < list->count; i++)
        names[i] = list->items[i].name;
    const char *near = near_name(name, names, list->count);
    free(names);
    return near;
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
    const char *near = nearest(list, name);
    char *names = all_names(list);
    if (near != NULL)
        err_set(err, ENOENT, "unknown entry '%s'; did you mean '%s'? All: %s", name, near, names);
    else
        err_set(err, ENOENT, "unknown entry '%s'; one of: %s", name, names);
    free(names);
    return NULL;
}
