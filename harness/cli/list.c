#include "cli/cli.h"
#include "base/mem.h"
#include "entry/entry.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: showdown list [--json]\n"
    "Lists the entries under servers/: library, layer, and whether each can run or what it needs.\n"
    "example: showdown list --json | jq -r '.entries[] | select(.ready) | .name'\n";

static const char *status_name(const struct entry *entry)
{
    switch (entry->status) {
    case ENTRY_BROKEN:
        return "broken";
    case ENTRY_REFERENCE:
        return entry->ready ? "reference" : "skipped";
    case ENTRY_ACTIVE:
        break;
    }
    return entry->ready ? "ready" : "skipped";
}

static const char *status_detail(const struct entry *entry)
{
    return entry->status == ENTRY_BROKEN ? entry->status_reason : entry->missing;
}

static int widest(const struct entry_list *list, size_t offset, const char *title)
{
    size_t width = strlen(title);
    for (size_t i = 0; i < list->count; i++) {
        const char *text = *(char *const *)((const char *)&list->items[i] + offset);
        if (strlen(text) > width)
            width = strlen(text);
    }
    return (int)width;
}

static void print_table(const struct entry_list *list)
{
    int name = widest(list, offsetof(struct entry, name), "NAME");
    int library = widest(list, offsetof(struct entry, library), "LIBRARY");
    int layer = widest(list, offsetof(struct entry, layer), "LAYER");
    printf("%-*s  %-*s  %-*s  STATUS\n", name, "NAME", library, "LIBRARY", layer, "LAYER");
    for (size_t i = 0; i < list->count; i++) {
        const struct entry *entry = &list->items[i];
        const char *detail = status_detail(entry);
        printf("%-*s  %-*s  %-*s  %s%s%s\n", name, entry->name, library, entry->library, layer,
               entry->layer, status_name(entry), detail[0] != '\0' ? ": " : "", detail);
    }
}

/* What is not given is absent. */
static void put(json_t *object, const char *key, const char *text)
{
    if (text[0] != '\0')
        json_object_set_new(object, key, json_string(text));
}

static json_t *entry_to_json(const struct entry *entry)
{
    char hash[17];
    entry_hash(entry, hash);
    json_t *object = json_object();
    put(object, "name", entry->name);
    put(object, "title", entry->title);
    put(object, "language", entry->language);
    put(object, "library", entry->library);
    put(object, "layer", entry->layer);
    put(object, "parser", entry->parser);
    put(object, "model", entry->model);
    put(object, "tuning", entry->tuning);
    put(object, "workloads", entry->workloads);
    put(object, "apt", entry->apt);
    put(object, "notes", entry->notes);
    put(object, "status", status_name(entry));
    put(object, "reason", status_detail(entry));
    put(object, "hash", hash);
    json_object_set_new(object, "reference", json_boolean(entry->status == ENTRY_REFERENCE));
    json_object_set_new(object, "ready", json_boolean(entry->ready));
    return object;
}

static void print_json(const struct entry_list *list)
{
    json_t *entries = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(entries, entry_to_json(&list->items[i]));
    json_t *object = json_pack("{s:i, s:o}", "schema", 1, "entries", entries);
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(object);
}

int cli_list(const struct cli *cli, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    bool json = false;
    int option;
    while ((option = cli_next_option(argc, argv, ":h", options)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (option == '?')
            return CLI_USAGE;
        json = true;
    }
    if (optind < argc)
        return cli_usage(argv[0], "takes no argument, not '%s'", argv[optind]);

    struct entry_list list;
    struct err err;
    if (cli_read_entries(cli, &list, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    if (json)
        print_json(&list);
    else
        print_table(&list);
    entry_list_free(&list);
    return CLI_OK;
}
