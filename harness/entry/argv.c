#include "base/clock.h"
#include "base/mem.h"
#include "entry/conf.h"
#include "entry/entry.h"
#include "entry/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One word with its placeholders filled. Unknown ones are left; the manifest was checked. */
static char *fill(const struct entry *entry, const char *word, unsigned port, unsigned workers)
{
    char port_text[16];
    char workers_text[16];
    snprintf(port_text, sizeof port_text, "%u", port);
    snprintf(workers_text, sizeof workers_text, "%u", workers);
    const struct {
        const char *name;
        const char *value;
    } known[] = {{"{bin}", entry->binary},
                 {"{dir}", entry->folder},
                 {"{port}", port_text},
                 {"{workers}", workers_text}};

    char *filled = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&filled, &size);
    while (*word != '\0') {
        size_t i = 0;
        while (i < 4 && strncmp(word, known[i].name, strlen(known[i].name)) != 0)
            i++;
        if (i < 4) {
            fputs(known[i].value, out);
            word += strlen(known[i].name);
        } else {
            fputc(*word++, out);
        }
    }
    fclose(out);
    return filled;
}

char **entry_argv(const struct entry *entry, const char *template, unsigned port, unsigned workers)
{
    char **argv = mem_alloc(1, sizeof *argv);
    size_t count = 0;
    char *word;
    while ((word = entry_next_word(&template)) != NULL) {
        argv = mem_grow(argv, count + 2, sizeof *argv);
        argv[count++] = fill(entry, word, port, workers);
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
    char **argv = entry_argv(entry, entry->version, 0, 1);
    struct server_start start = {.argv = argv, .folder = entry->folder, .cpu = -1};
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
