#include "report/series.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the last line told, to see where a boot or a block ends. */
struct place {
    double boot, block;
};

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void begin_boot(struct series *s)
{
    s->boots++;
    s->begin_ns = mem_grow(s->begin_ns, s->boots, sizeof *s->begin_ns);
    s->end_ns = mem_grow(s->end_ns, s->boots, sizeof *s->end_ns);
    s->begin_ns[s->boots - 1] = UINT64_MAX;
    s->end_ns[s->boots - 1] = 0;
}

static void begin_block(struct series *s)
{
    s->blocks++;
    s->boot = mem_grow(s->boot, s->blocks, sizeof *s->boot);
    s->rate = mem_grow(s->rate, s->blocks * s->entries, sizeof *s->rate);
    s->waited = mem_grow(s->waited, s->blocks * s->entries, sizeof *s->waited);
    s->boot[s->blocks - 1] = (unsigned)s->boots - 1;
    for (size_t i = 0; i < s->entries; i++) {
        s->rate[(s->blocks - 1) * s->entries + i] = NAN;
        s->waited[(s->blocks - 1) * s->entries + i] = false;
    }
}

static bool waited(const json_t *line)
{
    return number(line, "threads") == 1 && number(line, "processes") == 1 &&
           number(line, "switches_voluntary") >
               SERIES_WAITS_PER_S * number(line, "window_ns") / 1e9;
}

static void take(struct series *s, struct place *last, size_t entry, const json_t *line)
{
    const struct place here = {number(line, "boot"), number(line, "block")};
    uint64_t began_ns = (uint64_t)json_integer_value(json_object_get(line, "began_ns"));
    if (s->blocks == 0 || here.boot != last->boot)
        begin_boot(s);
    if (s->blocks == 0 || here.boot != last->boot || here.block != last->block)
        begin_block(s);
    *last = here;
    size_t boot = s->boots - 1;
    if (began_ns < s->begin_ns[boot])
        s->begin_ns[boot] = began_ns;
    if (began_ns > s->end_ns[boot])
        s->end_ns[boot] = began_ns;
    s->waited[(s->blocks - 1) * s->entries + entry] = waited(line);
    if (number(line, "valid") > 0 && number(line, "window_ns") > 0)
        s->rate[(s->blocks - 1) * s->entries + entry] =
            number(line, "valid") / number(line, "window_ns") * 1e9;
}

void series_read(const struct record_data *data, const char *const *names, size_t count,
                 struct series *series)
{
    struct place last = {0, 0};
    size_t index;
    json_t *line;
    *series = (struct series){.entries = count};
    json_array_foreach(data->lines, index, line)
    {
        const char *type = json_string_value(json_object_get(line, "type"));
        const char *name = json_string_value(json_object_get(line, "entry"));
        if (type == NULL || name == NULL || strcmp(type, "slice") != 0)
            continue;
        for (size_t i = 0; i < count; i++)
            if (strcmp(names[i], name) == 0)
                take(series, &last, i, line);
    }
}

void series_free(struct series *series)
{
    free(series->rate);
    free(series->waited);
    free(series->boot);
    free(series->begin_ns);
    free(series->end_ns);
    *series = (struct series){0};
}

struct paired series_paired(const struct series *series)
{
    return (struct paired){.blocks = series->blocks,
                           .entries = series->entries,
                           .rate = series->rate,
                           .boot = series->boot};
}
