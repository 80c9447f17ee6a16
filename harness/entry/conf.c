#include "entry/conf.h"

#include "base/file.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONF_MAX_BYTES 65536 /* a manifest is a page; more is a mistake */

struct key {
    const char *name;
    size_t offset; /* of its char * in struct entry */
    bool needed;
};

#define KEY(field, needed)                                                                         \
    {                                                                                              \
#field, offsetof(struct entry, field), needed                                              \
    }
/* status is kept in status_reason until it has been understood. */
static const struct key keys[] = {
    KEY(name, true),       KEY(title, true),
    KEY(language, true),   KEY(library, true),
    KEY(layer, true),      KEY(parser, false),
    KEY(model, false),     KEY(tuning, false),
    KEY(jit, false),       KEY(config, false),
    KEY(sources, false),   KEY(pkgs, false),
    KEY(needs, false),     KEY(apt, false),
    KEY(run, true),        KEY(version, false),
    KEY(workloads, false), {"status", offsetof(struct entry, status_reason), false},
    KEY(waive, false),     KEY(notes, false),
    KEY(set, false),       KEY(headers, false),
    KEY(build, false),
};
#define KEY_COUNT (sizeof keys / sizeof keys[0])

struct reader {
    char file[300]; /* as messages name it: servers/NAME/entry.conf */
    unsigned line;
    unsigned line_of[KEY_COUNT]; /* where each key was given; 0: not */
    struct entry *entry;
    struct err *err;
};

#define REFUSE(reader, format, ...)                                                                \
    err_set((reader)->err, EINVAL, "%s:%u: " format, (reader)->file, (reader)->line, __VA_ARGS__)

static char **field_of(struct entry *entry, size_t key)
{
    return (char **)((char *)entry + keys[key].offset);
}

static size_t find_key(const char *name)
{
    size_t key = 0;
    while (key < KEY_COUNT && strcmp(keys[key].name, name) != 0)
        key++;
    return key;
}

static int refuse_unknown_key(struct reader *reader, const char *name)
{
    char known[400] = "";
    for (size_t i = 0; i < KEY_COUNT; i++) {
        strcat(known, i > 0 ? " " : "");
        strcat(known, keys[i].name);
    }
    return REFUSE(reader, "unknown key '%.40s'; known keys: %s", name, known);
}

static void trim_end(char *text)
{
    size_t size = strlen(text);
    while (size > 0 && isblank((unsigned char)text[size - 1]))
        text[--size] = '\0';
}

/* What make(1) would read differently, or what no table can print. */
static int check_line(struct reader *reader, const char *line)
{
    size_t size = strlen(line);
    if (isblank((unsigned char)line[0]))
        return REFUSE(reader, "%s", "a leading blank; start the line with its key");
    if (size > 0 && line[size - 1] == '\r')
        return REFUSE(reader, "%s",
                      "a carriage return at the line's end; save with Unix line ends");
    if (size > 0 && line[size - 1] == '\\')
        return REFUSE(reader, "%s", "a backslash at the line's end; a value is one line");
    if (strchr(line, '$') != NULL)
        return REFUSE(reader, "%s", "a '$'; values are plain text, nothing is expanded");
    for (const char *c = line; *c != '\0'; c++)
        if ((iscntrl((unsigned char)*c) && *c != '\t'))
            return REFUSE(reader, "a control character (0x%02x)", (unsigned char)*c);
    json_t *utf8 = json_stringn(line, size);
    if (utf8 == NULL)
        return REFUSE(reader, "%s", "not UTF-8");
    json_decref(utf8);
    return 0;
}

static int read_line(struct reader *reader, char *line)
{
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    int status = check_line(reader, line);
    if (status != 0)
        return status;
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return REFUSE(reader, "'%.40s' is not of the form key = value", line);
    *equals = '\0';
    trim_end(line);
    char *value = equals + 1 + strspn(equals + 1, " \t");
    trim_end(value);

    size_t key = find_key(line);
    if (key == KEY_COUNT)
        return refuse_unknown_key(reader, line);
    if (reader->line_of[key] != 0)
        return REFUSE(reader, "'%s' is given again; first on line %u", line, reader->line_of[key]);
    if (*value == '\0')
        return REFUSE(reader, "'%s' has no value; leave the line out if there is none", line);
    if (strchr(value, '#') != NULL)
        return REFUSE(reader, "%s", "a '#' within a value; a comment needs a line of its own");
    reader->line_of[key] = reader->line;
    *field_of(reader->entry, key) = mem_copy_string(value);
    return 0;
}

static int read_lines(struct reader *reader, char *text)
{
    char *line = text;
    while (line != NULL) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        reader->line++;
        int status = read_line(reader, line);
        if (status != 0)
            return status;
        line = end != NULL ? end + 1 : NULL;
    }
    return 0;
}

/* Points messages at the line of a key that was given. */
static void at_key(struct reader *reader, const char *name)
{
    reader->line = reader->line_of[find_key(name)];
}

static int check_needed(struct reader *reader)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (keys[i].needed && reader->line_of[i] == 0)
            return err_set(reader->err, EINVAL, "%s: the key '%s' is missing", reader->file,
                           keys[i].name);
    return 0;
}

static int check_name(struct reader *reader, const char *folder)
{
    const char *name = reader->entry->name;
    at_key(reader, "name");
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name) || name[0] == '-')
        return REFUSE(reader, "name '%s' may hold a-z, 0-9 and, not at its start, -", name);
    if (strcmp(name, folder) != 0)
        return REFUSE(reader, "name '%s' is not the folder's, '%s'", name, folder);
    if (strcmp(name, ENTRY_ALL) == 0)
        return REFUSE(reader, "name '%s' stands for every entry; take another", name);
    return 0;
}

static int check_layer(struct reader *reader)
{
    static const char *const layers[] = {"loop", "loop+parser", "server", "framework"};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        if (strcmp(reader->entry->layer, layers[i]) == 0)
            return 0;
    at_key(reader, "layer");
    return REFUSE(reader, "layer '%s' is none of: loop loop+parser server framework",
                  reader->entry->layer);
}

static int check_tuning(struct reader *reader)
{
    const char *tuning = reader->entry->tuning;
    if (tuning == NULL || ((strncmp(tuning, "stock", 5) == 0 || strncmp(tuning, "tuned", 5) == 0) &&
                           (tuning[5] == '\0' || tuning[5] == ':')))
        return 0;
    at_key(reader, "tuning");
    return REFUSE(reader, "tuning '%s' is neither 'stock' nor 'tuned', with ': why' after it",
                  tuning);
}

static int check_set(struct reader *reader)
{
    const char *set = reader->entry->set;
    if (set == NULL || strcmp(set, "default") == 0 || strcmp(set, "extra") == 0)
        return 0;
    at_key(reader, "set");
    return REFUSE(reader, "set '%s' is none of: default, extra", set);
}

/* Leaves in status_reason only the reason. */
static int take_status(struct reader *reader)
{
    struct entry *entry = reader->entry;
    const char *text = entry->status_reason != NULL ? entry->status_reason : "active";
    const char *reason = "";
    if (strcmp(text, "active") == 0) {
        entry->status = ENTRY_ACTIVE;
    } else if (strcmp(text, "reference") == 0) {
        entry->status = ENTRY_REFERENCE;
    } else if (strncmp(text, "broken:", 7) == 0 && text[7 + strspn(text + 7, " \t")] != '\0') {
        entry->status = ENTRY_BROKEN;
        reason = text + 7 + strspn(text + 7, " \t");
    } else {
        at_key(reader, "status");
        return REFUSE(reader, "status '%s' is none of: active, reference, broken: REASON", text);
    }
    char *copy = mem_copy_string(reason);
    free(entry->status_reason);
    entry->status_reason = copy;
    return 0;
}

static bool is_placeholder(const char *text)
{
    static const char *const known[] = {"{bin}",     "{dir}",    "{port}",
                                        "{workers}", "{config}", "{tmp}"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(text, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

static int check_placeholders(struct reader *reader, const char *text)
{
    for (const char *open = strpbrk(text, "{}"); open != NULL; open = strpbrk(open, "{}")) {
        size_t size = strcspn(open, "} \t") + 1;
        if (strncmp(open, "{bin}", 5) == 0 && reader->entry->sources == NULL &&
            reader->entry->build == NULL)
            return REFUSE(reader, "%s", "{bin} without sources or build: nothing is built");
        if (strncmp(open, "{config}", 8) == 0 && reader->entry->config == NULL)
            return REFUSE(reader, "%s", "{config} without the key config: no file is made");
        if (!is_placeholder(open))
            return REFUSE(reader,
                          "unknown placeholder '%.*s'; known: {bin} {dir} {port} {workers} "
                          "{config} {tmp}",
                          size > 40 ? 40 : (int)size, open);
        open += size;
    }
    return 0;
}

static int check_template(struct reader *reader, const char *key, const char *text, bool needs_port)
{
    if (text == NULL)
        return 0;
    at_key(reader, key);
    if (strpbrk(text, "'\"`") != NULL)
        return REFUSE(reader, "%s holds a quote; it is split on blanks and nothing else", key);
    int status = check_placeholders(reader, text);
    if (status == 0 && needs_port && strstr(text, "{port}") == NULL &&
        strstr(text, "{config}") == NULL)
        return REFUSE(reader, "%s has no {port}: the server could not be told where to listen",
                      key);
    return status;
}

static bool ends_in(const char *word, const char *end)
{
    size_t size = strlen(word);
    return size > strlen(end) && strcmp(word + size - strlen(end), end) == 0;
}

static int check_sources(struct reader *reader)
{
    char *word;
    int status = 0;
    const char *at = reader->entry->sources != NULL ? reader->entry->sources : "";
    at_key(reader, "sources");
    for (; status == 0 && (word = entry_next_word(&at)) != NULL; free(word))
        if (!ends_in(word, ".c") && !ends_in(word, ".cc"))
            status =
                REFUSE(reader,
                       "sources: '%s' is neither .c nor .cc; another language has a command of "
                       "its own: build = … {bin} …",
                       word);
    return status;
}

/* Make runs it, so it knows nothing of a start: no port, no folder for it. */
static int check_build(struct reader *reader)
{
    const char *build = reader->entry->build;
    if (build == NULL)
        return 0;
    at_key(reader, "build");
    if (reader->entry->sources != NULL)
        return REFUSE(reader, "%s", "build beside sources: one of them makes {bin}");
    if (strpbrk(build, "'\"`") != NULL)
        return REFUSE(reader, "%s", "build holds a quote; it is a command and its words");
    if (strstr(build, "{bin}") == NULL)
        return REFUSE(reader, "%s", "build has no {bin}: where the program is to be put");
    for (const char *open = strpbrk(build, "{}"); open != NULL; open = strpbrk(open + 5, "{}"))
        if (strncmp(open, "{bin}", 5) != 0 && strncmp(open, "{dir}", 5) != 0)
            return REFUSE(reader, "%s", "build may hold {bin} and {dir}, and no other placeholder");
    return 0;
}

/* A plain name within the folder: what the entry is lies there and nowhere else. */
static int check_config(struct reader *reader)
{
    const char *config = reader->entry->config;
    if (config == NULL || (config[0] != '/' && strstr(config, "..") == NULL))
        return 0;
    at_key(reader, "config");
    return REFUSE(reader, "config '%s' is not a file within the entry's folder", config);
}

static int check_workloads(struct reader *reader)
{
    const char *text = reader->entry->workloads;
    at_key(reader, "workloads");
    reader->entry->workloads_line = reader->line;
    if (text == NULL || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789- \t") == strlen(text))
        return 0;
    return REFUSE(reader, "workloads '%s' may hold names of a-z, 0-9 and -, split on blanks", text);
}

static bool is_case(const char *text)
{
    return text[0] >= 'A' && text[0] <= 'Z' && isdigit((unsigned char)text[1]) &&
           isdigit((unsigned char)text[2]) && text[3] == ':';
}

static int check_waive(struct reader *reader)
{
    bool seen['Z' - 'A' + 1][100] = {{false}};
    const char *text = reader->entry->waive;
    at_key(reader, "waive");
    while (text != NULL) {
        text += strspn(text, " \t");
        if (!is_case(text) || strspn(text + 4, " \t") == strcspn(text + 4, ";"))
            return REFUSE(reader, "waive '%.40s' is not of the form CASE: WHY; CASE: WHY", text);
        bool *twice = &seen[text[0] - 'A'][(text[1] - '0') * 10 + text[2] - '0'];
        if (*twice)
            return REFUSE(reader, "%.3s is waived twice", text);
        *twice = true;
        text = strchr(text, ';');
        text += text != NULL;
    }
    return 0;
}

char *entry_next_waiver(const char **at, char id[ENTRY_CASE_BYTES])
{
    const char *start = *at + strspn(*at, " \t;");
    if (*start == '\0')
        return NULL;
    snprintf(id, ENTRY_CASE_BYTES, "%s", start);
    start += ENTRY_CASE_BYTES + strspn(start + ENTRY_CASE_BYTES, " \t");
    size_t size = strcspn(start, ";");
    *at = start + size;
    while (size > 0 && (start[size - 1] == ' ' || start[size - 1] == '\t'))
        size--;
    return mem_format("%.*s", (int)size, start);
}

static int check_all(struct reader *reader, const char *folder)
{
    int status = check_needed(reader);
    if (status == 0)
        status = check_name(reader, folder);
    if (status == 0)
        status = check_layer(reader);
    if (status == 0)
        status = check_tuning(reader);
    if (status == 0)
        status = check_set(reader);
    if (status == 0)
        status = take_status(reader);
    if (status == 0)
        status = check_sources(reader);
    if (status == 0)
        status = check_build(reader);
    if (status == 0)
        status = check_config(reader);
    if (status == 0)
        status = check_template(reader, "run", reader->entry->run, true);
    if (status == 0)
        status = check_template(reader, "version", reader->entry->version, false);
    if (status == 0)
        status = check_workloads(reader);
    if (status == 0)
        status = check_waive(reader);
    return status;
}

static int read_file(struct reader *reader, const char *path, char **text)
{
    size_t size;
    int status = file_read(path, reader->file, "a manifest is a text of key = value lines",
                           CONF_MAX_BYTES - 1, text, &size, reader->err);
    if (status != 0)
        return status;
    for (size_t i = 0; i < size; i++) {
        reader->line += (*text)[i] == '\n';
        if ((*text)[i] == '\0') {
            reader->line++;
            return REFUSE(reader, "%s", "a NUL byte; this is no text");
        }
    }
    reader->line = 0;
    return 0;
}

int entry_conf_read(const char *root, const char *name, struct entry *entry, struct err *err)
{
    struct reader reader = {.entry = entry, .err = err};
    *entry = (struct entry){.folder = mem_format("%s/servers/%s", root, name)};
    snprintf(reader.file, sizeof reader.file, "servers/%.255s/entry.conf", name);
    char *path = mem_format("%s/entry.conf", entry->folder);
    char *text = NULL;
    int status = read_file(&reader, path, &text);
    if (status == 0)
        status = read_lines(&reader, text);
    if (status == 0)
        status = check_all(&reader, name);
    free(text);
    free(path);
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (*field_of(entry, i) == NULL)
            *field_of(entry, i) = mem_copy_string("");
    return status;
}

void entry_conf_free(struct entry *entry)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        free(*field_of(entry, i));
    free(entry->folder);
    free(entry->binary);
    free(entry->missing);
    *entry = (struct entry){0};
}

char *entry_next_word(const char **at)
{
    const char *start = *at + strspn(*at, " \t");
    size_t size = strcspn(start, " \t");
    *at = start + size;
    return size > 0 ? mem_format("%.*s", (int)size, start) : NULL;
}
