#include "record/rates.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static size_t column_of(const json_t *entries, const char *name)
{
    size_t i = 0;
    while (i < json_array_size(entries) &&
           strcmp(text(json_array_get(entries, i), "name"), name) != 0)
        i++;
    return i;
}

static int compare_blocks(const struct rates *rates, size_t place, unsigned boot, unsigned block)
{
    if (rates->boot[place] != boot)
        return rates->boot[place] < boot ? -1 : 1;
    if (rates->block[place] != block)
        return rates->block[place] < block ? -1 : 1;
    return 0;
}

static void insert_block(struct rates *rates, size_t place, unsigned boot, unsigned block)
{
    size_t entries = rates->table.entries;
    size_t after = rates->table.blocks++ - place;
    size_t blocks = rates->table.blocks;
    rates->boot = mem_grow(rates->boot, blocks, sizeof *rates->boot);
    rates->block = mem_grow(rates->block, blocks, sizeof *rates->block);
    rates->rate = mem_grow(rates->rate, blocks * entries, sizeof *rates->rate);
    memmove(rates->boot + place + 1, rates->boot + place, after * sizeof *rates->boot);
    memmove(rates->block + place + 1, rates->block + place, after * sizeof *rates->block);
    memmove(rates->rate + (place + 1) * entries, rates->rate + place * entries,
            after * entries * sizeof *rates->rate);
    rates->boot[place] = boot;
    rates->block[place] = block;
    for (size_t i = 0; i < entries; i++)
        rates->rate[place * entries + i] = NAN;
}

/* The block's row, made when it is new. Lines mostly come in order: the search is from the end. */
static double *row_for(struct rates *rates, unsigned boot, unsigned block)
{
    size_t place = rates->table.blocks;
    while (place > 0 && compare_blocks(rates, place - 1, boot, block) > 0)
        place--;
    if (place > 0 && compare_blocks(rates, place - 1, boot, block) == 0)
        place--;
    else
        insert_block(rates, place, boot, block);
    return rates->rate + place * rates->table.entries;
}

void rates_begin(const json_t *entries, struct rates *rates)
{
    *rates = (struct rates){
        .table = {.entries = json_array_size(entries)}, .entries = entries, .seen = json_object()};
}

bool rates_is_repeated(struct rates *rates, const json_t *line)
{
    char *key = mem_format("%s %g %g %s", text(line, "type"), number(line, "boot"),
                           number(line, "block"), text(line, "entry"));
    bool repeated = json_object_get(rates->seen, key) != NULL;
    json_object_set_new(rates->seen, key, json_true());
    free(key);
    rates->repeated += repeated;
    return repeated;
}

bool rates_take(struct rates *rates, const json_t *line)
{
    size_t i = column_of(rates->entries, text(line, "entry"));
    if (i == rates->table.entries || rates_is_repeated(rates, line))
        return false;
    double *row = row_for(rates, (unsigned)number(line, "boot"), (unsigned)number(line, "block"));
    if (number(line, "window_ns") > 0 && number(line, "valid") > 0)
        row[i] = number(line, "valid") / number(line, "window_ns") * 1e9;
    return true;
}

void rates_end(struct rates *rates)
{
    rates->table.rate = rates->rate;
    rates->table.boot = rates->boot;
    for (size_t b = 0; b < rates->table.blocks; b++)
        rates->boots += b == 0 || rates->boot[b] != rates->boot[b - 1];
}

void rates_read(const struct record_data *data, struct rates *rates)
{
    size_t index;
    json_t *line;
    rates_begin(json_object_get(data->run, "entries"), rates);
    json_array_foreach(data->lines, index, line)
    {
        if (strcmp(text(line, "type"), "slice") == 0)
            rates_take(rates, line);
    }
    rates_end(rates);
}

void rates_free(struct rates *rates)
{
    free(rates->rate);
    free(rates->boot);
    free(rates->block);
    json_decref(rates->seen);
    *rates = (struct rates){0};
}
