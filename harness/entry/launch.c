#include "entry/launch.h"

#include "base/file.h"
#include "base/mem.h"
#include "entry/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MAX_BYTES = 1 << 20 };

static int write_config(const char *path, const char *text, struct err *err)
{
    FILE *file = fopen(path, "wxe");
    bool written = file != NULL && fputs(text, file) != EOF;
    int code = errno;
    if (file != NULL && fclose(file) != 0) {
        written = false;
        code = errno;
    }
    return written ? 0 : err_set(err, code, "cannot write %s: %s", path, strerror(code));
}

static int read_config(const struct entry *entry, char **text, struct err *err)
{
    char *path = mem_format("%s/%s", entry->folder, entry->config);
    int status = file_read(path, path, "config names a text", CONFIG_MAX_BYTES, text, NULL, err);
    free(path);
    return status;
}

static int make_config(const struct entry *entry, const struct entry_fill *fill, struct err *err)
{
    char *template;
    int status = read_config(entry, &template, err);
    if (status != 0)
        return status;
    char *text = entry_text(entry, template, fill);
    status = write_config(fill->config, text, err);
    free(text);
    free(template);
    return status;
}

bool entry_takes_workers(const struct entry *entry)
{
    char *template;
    struct err err;
    if (strstr(entry->run, "{workers}") != NULL)
        return true;
    if (entry->config[0] == '\0' || read_config(entry, &template, &err) != 0)
        return false;
    bool takes = strstr(template, "{workers}") != NULL;
    free(template);
    return takes;
}

static bool wants_scratch(const struct entry *entry)
{
    return entry->config[0] != '\0' || strstr(entry->run, "{tmp}") != NULL;
}

/* Both NULL-terminated, `before` may be NULL. The words stay those of their owners. */
static char **join(char *const *before, char **command)
{
    size_t count = 0;
    size_t own = 0;
    while (before != NULL && before[count] != NULL)
        count++;
    while (command[own] != NULL)
        own++;
    char **all = mem_alloc(count + own + 1, sizeof(*all));
    for (size_t i = 0; i < count; i++)
        all[i] = before[i];
    memcpy(all + count, command, own * sizeof(*all));
    return all;
}

int entry_launch(const struct entry *entry, const struct entry_launch *launch,
                 struct server **server, struct err *err)
{
    char *tmp = NULL;
    int status = wants_scratch(entry) ? scratch_make(&tmp, err) : 0;
    if (status != 0)
        return status;
    char *config = mem_format("%s/config", tmp != NULL ? tmp : "");
    const struct entry_fill fill = {.port = launch->port,
                                    .workers = launch->workers > 0 ? launch->workers : 1,
                                    .tmp = tmp != NULL ? tmp : "",
                                    .config = config};
    if (entry->config[0] != '\0')
        status = make_config(entry, &fill, err);
    if (status == 0) {
        char **argv = entry_argv(entry, entry->run, &fill);
        char **all = join(launch->before, argv);
        const struct server_start start = {.argv = all,
                                           .folder = entry->folder,
                                           .cpus = launch->cpus,
                                           .cpu_count = launch->cpu_count,
                                           .port = launch->port,
                                           .files = launch->files,
                                           .inherit_output = launch->inherit_output,
                                           .scratch = tmp};
        status = server_start(&start, server, err);
        free(all);
        entry_argv_free(argv);
    }
    if (status != 0)
        scratch_remove(tmp);
    free(config);
    free(tmp);
    return status;
}
