#include "host/callgrind.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_MAX 1000000 /* names a file may have; real ones have some thousands */

struct names { /* by the number that a file gives them */
    char **items;
    size_t count;
};

struct reader {
    const char *path;
    unsigned line;
    struct callgrind *profile;
    struct names objects, functions;
    size_t object, function; /* whose costs come now */
    size_t callee;
    size_t place;   /* of those two in the profile; SIZE_MAX: not looked up */
    bool inclusive; /* the next cost is that of a call */
    bool total_known;
    int64_t total, sum;
    struct err *err;
};

static int refuse(struct reader *reader, const char *what)
{
    return err_set(reader->err, EINVAL, "%s:%u: %s", reader->path, reader->line, what);
}

static const char *name_of(const struct names *names, size_t id)
{
    return id < names->count && names->items[id] != NULL ? names->items[id] : "???";
}

/* "(12) name" gives a name to a number, "(12)" uses it. */
static int read_name(struct reader *reader, const char *text, struct names *names, size_t *id)
{
    char *end;
    if (text[0] != '(')
        return refuse(reader, "a name without its number");
    unsigned long number = strtoul(text + 1, &end, 10);
    if (end == text + 1 || *end != ')' || number >= ID_MAX)
        return refuse(reader, "a name's number is none");
    *id = number;
    if (end[1] != ' ')
        return 0;
    while (names->count <= number) {
        if (names->count % 1024 == 0)
            names->items = mem_grow(names->items, names->count + 1024, sizeof(*names->items));
        names->items[names->count++] = NULL;
    }
    if (names->items[number] == NULL)
        names->items[number] = mem_copy_string(end + 2);
    return 0;
}

static bool allocates(const char *name)
{
    static const char *const names[] = {"malloc",        "calloc",         "realloc", "memalign",
                                        "aligned_alloc", "posix_memalign", "valloc"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static size_t find(const struct callgrind *profile, const char *object, const char *name)
{
    for (size_t i = 0; i < profile->count; i++)
        if (strcmp(profile->functions[i].name, name) == 0 &&
            strcmp(profile->functions[i].object, object) == 0)
            return i;
    return SIZE_MAX;
}

static size_t find_or_add(struct callgrind *profile, const char *object, const char *name)
{
    size_t place = find(profile, object, name);
    if (place != SIZE_MAX)
        return place;
    if (profile->count % 256 == 0)
        profile->functions =
            mem_grow(profile->functions, profile->count + 256, sizeof *profile->functions);
    profile->functions[profile->count] = (struct callgrind_function){
        .object = mem_copy_string(object), .name = mem_copy_string(name)};
    return profile->count++;
}

/* "position cost"; after a calls= line the cost is that of the callee and all below it. */
static int read_cost(struct reader *reader, const char *line)
{
    char *end;
    const char *at = line + strcspn(line, " ");
    long long cost = strtoll(at, &end, 10);
    if (end == at) /* no instruction was executed at this line */
        cost = 0;
    else if (*end != '\0' || cost < 0)
        return refuse(reader, "a cost that is no number; one event was asked for");
    if (reader->inclusive) {
        reader->inclusive = false;
        return 0;
    }
    if (reader->place == SIZE_MAX)
        reader->place = find_or_add(reader->profile, name_of(&reader->objects, reader->object),
                                    name_of(&reader->functions, reader->function));
    reader->profile->functions[reader->place].instructions += cost;
    reader->sum += cost;
    return 0;
}

static int read_call(struct reader *reader, const char *text)
{
    char *end;
    long long calls = strtoll(text, &end, 10);
    if (end == text || calls < 0)
        return refuse(reader, "calls without a number");
    if (allocates(name_of(&reader->functions, reader->callee)))
        reader->profile->allocations += calls;
    reader->inclusive = true;
    return 0;
}

static int read_line(struct reader *reader, const char *line)
{
    size_t other;
    if (isdigit((unsigned char)line[0]) || line[0] == '+' || line[0] == '-' || line[0] == '*')
        return read_cost(reader, line);
    if (strncmp(line, "fn=", 3) == 0) {
        reader->place = SIZE_MAX;
        return read_name(reader, line + 3, &reader->functions, &reader->function);
    }
    if (strncmp(line, "ob=", 3) == 0) {
        reader->place = SIZE_MAX;
        return read_name(reader, line + 3, &reader->objects, &reader->object);
    }
    if (strncmp(line, "cfn=", 4) == 0)
        return read_name(reader, line + 4, &reader->functions, &reader->callee);
    if (strncmp(line, "cob=", 4) == 0)
        return read_name(reader, line + 4, &reader->objects, &other);
    if (strncmp(line, "calls=", 6) == 0)
        return read_call(reader, line + 6);
    if (strncmp(line, "events:", 7) == 0 && strcmp(line, "events: Ir") != 0)
        return refuse(reader, "other events than Ir");
    if (strncmp(line, "totals:", 7) == 0) {
        reader->total_known = true;
        reader->total += strtoll(line + 7, NULL, 10);
    }
    return 0;
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

int callgrind_add(struct callgrind *profile, const char *path, struct err *err)
{
    struct reader reader = {.path = path, .profile = profile, .place = SIZE_MAX, .err = err};
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return err_set(err, errno, "%s: %s", path, strerror(errno));
    char *line = NULL;
    size_t size = 0;
    ssize_t got;
    int status = 0;
    while (status == 0 && (got = getline(&line, &size, file)) > 0) {
        reader.line++;
        if (line[got - 1] == '\n')
            line[got - 1] = '\0';
        status = read_line(&reader, line);
    }
    if (status == 0 && !reader.total_known)
        status = refuse(&reader, "no totals: the file is cut off");
    else if (status == 0 && reader.sum != reader.total)
        status = err_set(err, EINVAL, "%s: its functions sum up to %lld, not to the total, %lld",
                         path, (long long)reader.sum, (long long)reader.total);
    profile->instructions += reader.total;
    free(line);
    fclose(file);
    free_names(&reader.objects);
    free_names(&reader.functions);
    return status;
}

void callgrind_subtract(struct callgrind *profile, const struct callgrind *less)
{
    profile->instructions -= less->instructions;
    profile->allocations -= less->allocations;
    for (size_t i = 0; i < less->count; i++) {
        const struct callgrind_function *f = &less->functions[i];
        size_t place = find_or_add(profile, f->object, f->name);
        profile->functions[place].instructions -= f->instructions;
    }
}

static int order(const void *left, const void *right)
{
    const struct callgrind_function *a = left;
    const struct callgrind_function *b = right;
    if (a->instructions != b->instructions)
        return a->instructions > b->instructions ? -1 : 1;
    int by_name = strcmp(a->name, b->name);
    return by_name != 0 ? by_name : strcmp(a->object, b->object);
}

void callgrind_sort(struct callgrind *profile)
{
    if (profile->count > 0)
        qsort(profile->functions, profile->count, sizeof *profile->functions, order);
}

void callgrind_free(struct callgrind *profile)
{
    for (size_t i = 0; i < profile->count; i++) {
        free(profile->functions[i].object);
        free(profile->functions[i].name);
    }
    free(profile->functions);
    *profile = (struct callgrind){0};
}
