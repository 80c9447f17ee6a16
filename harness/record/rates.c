#include "record/rates.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The table while it grows. */
struct growing {
    size_t blocks, entries;
    double *rate;
    unsigned *boot;
    unsigned block; /* number of the last one in its boot */
};

static size_t column_of(const json_t *entries, const char *name)
{
    size_t i = 0;
    while (i < json_array_size(entries)) {
        const char *other = json_string_value(json_object_get(json_array_get(entries, i), "name"));
        if (name != NULL && other != NULL && strcmp(other, name) == 0)
            break;
        i++;
    }
    return i;
}

/* Lines come in the order of boots and blocks: a line is of the last block or begins the next. */
static double *row_for(struct growing *g, unsigned boot, unsigned block)
{
    if (g->blocks == 0 || g->boot[g->blocks - 1] != boot || g->block != block) {
        g->blocks++;
        g->boot = mem_grow(g->boot, g->blocks, sizeof *g->boot);
        g->rate = mem_grow(g->rate, g->blocks * g->entries, sizeof *g->rate);
        g->boot[g->blocks - 1] = boot;
        g->block = block;
        for (size_t i = 0; i < g->entries; i++)
            g->rate[(g->blocks - 1) * g->entries + i] = NAN;
    }
    return g->rate + (g->blocks - 1) * g->entries;
}

void rates_read(const struct record_data *data, struct rates *rates)
{
    const json_t *entries = json_object_get(data->run, "entries");
    struct growing g = {.entries = json_array_size(entries)};
    size_t index;
    json_t *line;
    json_array_foreach(data->lines, index, line)
    {
        const char *type = json_string_value(json_object_get(line, "type"));
        size_t i = column_of(entries, json_string_value(json_object_get(line, "entry")));
        if (type == NULL || strcmp(type, "slice") != 0 || i == g.entries)
            continue;
        double *row = row_for(&g, (unsigned)json_integer_value(json_object_get(line, "boot")),
                              (unsigned)json_integer_value(json_object_get(line, "block")));
        double window_ns = json_number_value(json_object_get(line, "window_ns"));
        double valid = json_number_value(json_object_get(line, "valid"));
        if (window_ns > 0 && valid > 0)
            row[i] = valid / window_ns * 1e9;
    }
    *rates = (struct rates){
        .table = {.blocks = g.blocks, .entries = g.entries, .rate = g.rate, .boot = g.boot}};
    for (size_t b = 0; b < g.blocks; b++)
        rates->boots += b == 0 || g.boot[b] != g.boot[b - 1];
}

void rates_free(struct rates *rates)
{
    free((double *)(uintptr_t)rates->table.rate);
    free((unsigned *)(uintptr_t)rates->table.boot);
    *rates = (struct rates){0};
}
