#include "base/clock.h"
#include "base/mem.h"
#include "entry/conf.h"
#include "entry/entry.h"
#include "entry/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *entry_text(const struct entry *entry, const char *text, const struct entry_fill *fill)
{
    char port[16];
    char workers[16];
    snprintf(port, sizeof port, "%u", fill->port);
    snprintf(workers, sizeof workers, "%u", fill->workers);
    const struct {
        const char *name;
        const char *value;
    } known[] = {{"{bin}", entry->binary}, {"{dir}", entry->folder}, {"{port}", port},
                 {"{workers}", workers},   {"{tmp}", fill->tmp},     {"{config}", fill->config}};
    const size_t count = sizeof known / sizeof known[0];

    char *filled = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&filled, &size);
    while (*text != '\0') {
        size_t i = 0;
        while (i < count && strncmp(text, known[i].name, strlen(known[i].name)) != 0)
            i++;
        if (i < count) {
            fputs(known[i].value, out);
            text += strlen(known[i].name);
        } else {
            fputc(*text++, out);
        }
    }
    fclose(out);
    return filled;
}

char **entry_argv(const struct entry *entry, const char *template, const struct entry_fill *fill)
{
    char **argv = mem_alloc(1, sizeof *argv);
    size_t count = 0;
    char *word;
    while ((word = entry_next_word(&template)) != NULL) {
        argv = mem_grow(argv, count + 2, sizeof *argv);
        argv[count++] = entry_text(entry, word, fill);
        argv[count] = NULL;
        free(word);
    }
    return argv;
}

void entry_argv_free(char **argv)
{
    for (size_t i = 0; argv != NULL && argv[i] != NULL; i++)
        free(argv[i]);
    free(argv);
}

#define VERSION_LIMIT_NS (5 * NS_PER_S)

/* As a server that is not waited for to listen: so nothing that it starts can be left behind. */
char *entry_version(const struct entry *entry)
{
    if (entry->version[0] == '\0')
        return NULL;
    char **argv = entry_argv(entry, entry->version,
                             &(struct entry_fill){.workers = 1, .tmp = "", .config = ""});
    struct server_start start = {.argv = argv, .folder = entry->folder};
    struct server *process;
    int status = server_start(&start, &process, NULL);
    entry_argv_free(argv);
    if (status != 0)
        return NULL;
    char text[SERVER_OUTPUT_KEEP];
    char detail[128];
    uint64_t now = clock_now_ns();
    uint64_t deadline = now + VERSION_LIMIT_NS;
    while (server_poll(process, detail, sizeof detail) == SERVER_RUNNING && now < deadline) {
        clock_sleep_until_ns(now + NS_PER_MS);
        now = clock_now_ns();
    }
    bool ended = server_poll(process, detail, sizeof detail) == SERVER_EXITED;
    server_output(process, text, sizeof text);
    struct server_stop stop;
    server_stop(process, &stop);
    text[strcspn(text, "\n")] = '\0';
    return ended && stop.exit_status == 0 && text[0] != '\0' ? mem_copy_string(text) : NULL;
}
