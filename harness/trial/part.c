#include "trial/part.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the next word at *at, which moves on behind it. False at the end. */
static bool next_word(const char **at, char *word, size_t bytes)
{
    const char *start = *at + strspn(*at, " \t");
    size_t size = strcspn(start, " \t");
    *at = start + size;
    snprintf(word, bytes, "%.*s", (int)size, start);
    return size > 0;
}

bool part_takes(const struct entry *entry, const struct workload *workload)
{
    char word[64];
    if (entry->workloads[0] == '\0')
        return true;
    for (const char *at = entry->workloads; next_word(&at, word, sizeof word);)
        if (strcmp(word, workload->name) == 0)
            return true;
    return false;
}

const struct workload *part_first(const struct entry *entry)
{
    char word[64];
    const char *at = entry->workloads;
    struct err err;
    return workload_find(next_word(&at, word, sizeof word) ? word : "hello", &err);
}

char *part_reason(const struct entry *entry)
{
    return mem_format("takes part in: %s", entry->workloads);
}

static int check_one(const struct entry *entry, struct err *err)
{
    char word[64];
    for (const char *at = entry->workloads; next_word(&at, word, sizeof word);)
        if (workload_find(word, err) == NULL)
            return err_prefix(err, "servers/%s/entry.conf:%u", entry->name, entry->workloads_line);
    return 0;
}

int part_check(const struct entry_list *list, struct err *err)
{
    int status = 0;
    for (size_t i = 0; i < list->count && status == 0; i++)
        status = check_one(&list->items[i], err);
    return status;
}
