#include "report/compare.h"
#include "base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY, RATE_A, RATE_B, RATIO, INTERVAL, CPU_A, CPU_B, OUTCOME, COLUMNS };

struct cells {
    char text[COLUMNS][80];
};

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

static const char *side_name(const struct comparison *c, int side)
{
    static const char *const names[2][2] = {{"A", "B"}, {"old", "new"}};
    return names[c->method == COMPARE_BUILDS][side];
}

static void put(struct cells *cells, int column, double value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A figure that is not known leaves its cell empty. */
static void put(struct cells *cells, int column, double value, const char *format, ...)
{
    va_list arguments;
    if (!isfinite(value))
        return;
    va_start(arguments, format);
    vsnprintf(cells->text[column], sizeof cells->text[column], format, arguments);
    va_end(arguments);
}

static void fill_titles(struct cells *cells, const struct comparison *c)
{
    const char *a = side_name(c, 0);
    const char *b = side_name(c, 1);
    *cells = (struct cells){{"entry", "", "", "", "95% interval", "", "", "verdict"}};
    put(cells, RATE_A, 0, "%s req/s", a);
    put(cells, RATE_B, 0, "%s req/s", b);
    put(cells, RATIO, 0, "%s/%s", b, a);
    put(cells, CPU_A, 0, "%s CPU us", a);
    put(cells, CPU_B, 0, "%s CPU us", b);
}

static void fill(struct cells *cells, const struct compare_row *row)
{
    memset(cells, 0, sizeof *cells);
    snprintf(cells->text[ENTRY], sizeof cells->text[ENTRY], "%s", row->name);
    put(cells, RATE_A, row->side[0].req_per_s, "%.0f", row->side[0].req_per_s);
    put(cells, RATE_B, row->side[1].req_per_s, "%.0f", row->side[1].req_per_s);
    put(cells, RATIO, row->ratio.value, "%.4f", row->ratio.value);
    put(cells, INTERVAL, row->ratio.low, "%.4f..%.4f", row->ratio.low, row->ratio.high);
    put(cells, CPU_A, row->side[0].cpu_us, "%.2f", row->side[0].cpu_us);
    put(cells, CPU_B, row->side[1].cpu_us, "%.2f", row->side[1].cpu_us);
    snprintf(cells->text[OUTCOME], sizeof cells->text[OUTCOME], "%s",
             row->reference ? "(reference)" : compare_outcome_name(row->outcome));
}

static void print_cells(FILE *out, const struct cells *cells, const size_t *widths)
{
    for (int i = 0; i < COLUMNS; i++) {
        int width = (int)widths[i];
        if (i == OUTCOME)
            fprintf(out, "%s\n", cells->text[i]);
        else
            fprintf(out, i == ENTRY ? "%-*s  " : "%*s  ", width, cells->text[i]);
    }
}

static void print_rows(FILE *out, const struct comparison *c)
{
    struct cells *cells = mem_alloc(c->count + 1, sizeof *cells);
    size_t widths[COLUMNS] = {0};
    fill_titles(&cells[0], c);
    for (size_t r = 0; r < c->count; r++)
        fill(&cells[r + 1], &c->rows[r]);
    for (size_t r = 0; r <= c->count; r++)
        for (int i = 0; i < COLUMNS; i++)
            if (strlen(cells[r].text[i]) > widths[i])
                widths[i] = strlen(cells[r].text[i]);
    for (size_t r = 0; r <= c->count; r++)
        print_cells(out, &cells[r], widths);
    free(cells);
}

/* Text of a server or of a foreign record: what would drive the terminal is shown as '?'. */
static void print_plain(FILE *out, const char *line)
{
    for (; *line != '\0'; line++)
        fputc(((unsigned char)*line < ' ' && *line != '\t') || *line == 0x7f ? '?' : *line, out);
}

static void print_names(FILE *out, const json_t *names)
{
    size_t index;
    json_t *name;
    json_array_foreach(names, index, name)
    {
        if (index > 0)
            fputs(", ", out);
        print_plain(out, json_string_value(name));
    }
}

static void print_side(FILE *out, const struct comparison *c, int side,
                       const struct record_data *data)
{
    fprintf(out, "%s: ", side_name(c, side));
    if (c->method == COMPARE_BUILDS) {
        print_plain(out, text(json_object_get(data->run, "compare"), side_name(c, side)));
    } else {
        fputs("of ", out);
        print_plain(out, text(data->run, "started"));
    }
    if (c->count > 0)
        fprintf(out, ", %u boots, %u blocks", c->rows[0].side[side].boots,
                c->rows[0].side[side].blocks);
    fputc('\n', out);
}

static void print_head(FILE *out, const struct comparison *c, const struct record_data *a,
                       const struct record_data *b)
{
    const json_t *plan = json_object_get(a->run, "plan");
    const json_t *machine = json_object_get(a->run, "machine");
    if (c->entry != NULL)
        fprintf(out, "%s, two builds; ", c->entry);
    print_plain(out, text(plan, "workload"));
    fprintf(out, ": %lld connections, slices of %.3g s; ",
            json_integer_value(json_object_get(plan, "connections")),
            json_number_value(json_object_get(plan, "slice_ns")) / 1e9);
    print_plain(out, text(machine, "cpu_model"));
    fputs(", ", out);
    print_plain(out, text(machine, "kernel"));
    fputc('\n', out);
    print_side(out, c, 0, a);
    print_side(out, c, 1, b);
}

static void print_foot(FILE *out, const struct comparison *c)
{
    static const char *const sides[] = {"A", "B"};
    fprintf(out,
            "slower, faster: by over %.3g%%, beyond doubt. same: within %.3g%%. unsure: neither is "
            "shown.\n",
            c->threshold * 100, c->threshold * 100);
    if (c->judged > 1)
        fprintf(out,
                "Of %u verdicts together, at 95%%, none calls equals slower or faster: each needs "
                "%.4g%%.\n",
                c->judged, 100 - 5.0 / c->judged);
    if (c->method == COMPARE_PAIRED_BOOTS)
        fputs("The boots of the two records alternate in time and are compared pair by pair.\n",
              out);
    if (isfinite(c->level.value)) {
        fprintf(out, "Level: %.4f, %.4f..%.4f is what moved all alike, and is taken out; of ",
                c->level.value, c->level.low, c->level.high);
        print_names(out, c->level_of);
        fputc('\n', out);
    }
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].problem[0] != '\0') {
            fprintf(out, "%s failed in %s: ", c->rows[i].name, side_name(c, 1));
            print_plain(out, c->rows[i].problem);
            fputc('\n', out);
        }
    for (int side = 0; side < 2; side++)
        if (json_array_size(c->only[side]) > 0) {
            fprintf(out, "Only in %s: ", sides[side]);
            print_names(out, c->only[side]);
            fputc('\n', out);
        }
    size_t index;
    json_t *sentence;
    json_array_foreach(c->doubts, index, sentence)
    {
        print_plain(out, json_string_value(sentence));
        fputc('\n', out);
    }
}

void compare_view_table(FILE *out, const struct comparison *comparison, const struct record_data *a,
                        const struct record_data *b)
{
    print_head(out, comparison, a, b);
    fputc('\n', out);
    print_rows(out, comparison);
    fputc('\n', out);
    print_foot(out, comparison);
}

static void set_number(json_t *object, const char *key, const char *suffix, double value)
{
    char *name = mem_format("%s%s", key, suffix);
    if (isfinite(value))
        json_object_set_new(object, name, json_real(value));
    free(name);
}

static void set_interval(json_t *object, const char *key, struct interval interval)
{
    set_number(object, key, "", interval.value);
    set_number(object, key, "_low", interval.low);
    set_number(object, key, "_high", interval.high);
}

static json_t *row_to_json(const struct compare_row *row)
{
    static const char *const suffixes[] = {"_a", "_b"};
    json_t *object = json_pack("{s:s, s:b}", "name", row->name, "reference", row->reference);
    if (row->outcome != COMPARE_NOT_JUDGED)
        json_object_set_new(object, "outcome", json_string(compare_outcome_name(row->outcome)));
    if (row->problem[0] != '\0')
        json_object_set_new(object, "problem", json_string(row->problem));
    set_interval(object, "ratio", row->ratio);
    set_interval(object, "ratio_of_all", row->of_all);
    for (int side = 0; side < 2; side++) {
        const struct compare_side *s = &row->side[side];
        set_number(object, "req_per_s", suffixes[side], s->req_per_s);
        set_number(object, "cpu_us_per_req", suffixes[side], s->cpu_us);
        const struct {
            const char *key;
            json_t *value;
        } more[] = {{"boots", json_integer(s->boots)},
                    {"blocks", json_integer(s->blocks)},
                    {"verdict", json_string(s->verdict)}};
        for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
            char *name = mem_format("%s%s", more[i].key, suffixes[side]);
            json_object_set_new(object, name, more[i].value);
            free(name);
        }
    }
    return object;
}

static json_t *side_to_json(const struct comparison *c, int side, const struct record_data *data)
{
    static const char *const copied[] = {"started", "showdown", "argv"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        if (json_object_get(data->run, copied[i]) != NULL)
            json_object_set(object, copied[i], json_object_get(data->run, copied[i]));
    if (c->method == COMPARE_BUILDS)
        json_object_set(object, "folder",
                        json_object_get(json_object_get(data->run, "compare"), side_name(c, side)));
    return object;
}

void compare_view_json(FILE *out, const struct comparison *comparison, const struct record_data *a,
                       const struct record_data *b)
{
    static const char *const methods[] = {"builds in turns", "boots in pairs", "levels"};
    json_t *entries = json_array();
    for (size_t i = 0; i < comparison->count; i++)
        json_array_append_new(entries, row_to_json(&comparison->rows[i]));
    json_t *report = json_pack(
        "{s:i, s:s, s:f, s:s, s:o, s:o, s:O, s:O, s:O, s:o}", "schema", RECORD_SCHEMA, "method",
        methods[comparison->method], "threshold", comparison->threshold, "outcome",
        compare_outcome_name(compare_worst(comparison)), "a", side_to_json(comparison, 0, a), "b",
        side_to_json(comparison, 1, b), "only_a", comparison->only[0], "only_b",
        comparison->only[1], "doubts", comparison->doubts, "entries", entries);
    if (isfinite(comparison->level.value)) {
        json_t *level = json_pack("{s:O}", "of", comparison->level_of);
        set_interval(level, "ratio", comparison->level);
        json_object_set_new(report, "level", level);
    }
    json_dumpf(report, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(report);
}
