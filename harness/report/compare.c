#include "report/compare.h"
#include "base/mem.h"
#include "report/series.h"
#include "stats/trimmed.h"
#include "stats/welch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DRAWS = 4000, BOOTS_WANTED = 12, BLOCKS_LEAST = 8 };
static const double confidence = 0.95;
static const struct interval unknown = {NAN, NAN, NAN};

/* Two started within one boot of the kernel have clocks that agree: this is what judging may take
 * between the start of a record and its first slice. */
static const double clocks_apart_s = 300;

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

static void doubt(struct comparison *c, char *sentence)
{
    json_array_append_new(c->doubts, json_string(sentence));
    free(sentence);
}

/* ---- the rule ---- */

enum compare_outcome compare_judge(struct interval ratio, struct interval strict, double threshold)
{
    double low = 1 - threshold;
    double high = 1 / low;
    if (isnan(ratio.low) || isnan(ratio.high))
        return COMPARE_UNSURE;
    if (ratio.low >= low && ratio.high <= high)
        return COMPARE_SAME;
    if (ratio.value < low && strict.high < 1)
        return COMPARE_SLOWER;
    if (ratio.value > high && strict.low > 1)
        return COMPARE_FASTER;
    return COMPARE_UNSURE;
}

const char *compare_outcome_name(enum compare_outcome outcome)
{
    static const char *const names[] = {"same", "faster", "slower", "unsure", "failed", ""};
    return names[outcome];
}

enum compare_outcome compare_worst(const struct comparison *comparison)
{
    static const enum compare_outcome order[] = {COMPARE_FAILED, COMPARE_SLOWER, COMPARE_UNSURE};
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (size_t i = 0; i < comparison->count; i++)
            if (comparison->rows[i].outcome == order[k])
                return order[k];
    return COMPARE_SAME;
}

/* ---- what both kinds share ---- */

static void start(struct comparison *c, enum compare_method method, double threshold)
{
    *c = (struct comparison){.method = method,
                             .threshold = threshold,
                             .level = unknown,
                             .level_of = json_array(),
                             .only = {json_array(), json_array()},
                             .doubts = json_array()};
}

void compare_free(struct comparison *comparison)
{
    free(comparison->rows);
    json_decref(comparison->level_of);
    json_decref(comparison->only[0]);
    json_decref(comparison->only[1]);
    json_decref(comparison->doubts);
    *comparison = (struct comparison){0};
}

static const struct row *find_row(const struct summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->rows[i].name, name) == 0)
            return &summary->rows[i];
    return NULL;
}

static bool is_measured(const struct row *row)
{
    return row != NULL && isfinite(row->rate_per_s.value);
}

static bool is_failed(const struct row *row)
{
    return row != NULL && strcmp(row->status, "failed") == 0;
}

static struct compare_side side_of(const struct row *row)
{
    return (struct compare_side){.req_per_s = row->rate_per_s.value,
                                 .cpu_us = row->cpu_us,
                                 .verdict = row->verdict,
                                 .boots = row->boots,
                                 .blocks = row->blocks};
}

static struct compare_row *add_row(struct comparison *c, const struct row *a, const struct row *b)
{
    c->rows = mem_grow(c->rows, c->count + 1, sizeof *c->rows);
    struct compare_row *row = &c->rows[c->count++];
    *row = (struct compare_row){.name = a->name,
                                .reference = strcmp(a->status, "reference") == 0,
                                .outcome = COMPARE_NOT_JUDGED,
                                .problem = "",
                                .ratio = unknown,
                                .of_all = unknown,
                                .side = {side_of(a), side_of(b)}};
    if (is_failed(b)) {
        row->outcome = COMPARE_FAILED;
        row->problem = b->reason;
    }
    return row;
}

/* Where the load generator was the limit, two servers are as fast as it is. */
static void doubt_limits(struct comparison *c, struct compare_row *row)
{
    static const char *const limits[] = {"hammer", "neighbours"};
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(row->side[0].verdict, limits[i]) != 0 &&
            strcmp(row->side[1].verdict, limits[i]) != 0)
            continue;
        if (i == 1) {
            doubt(c, mem_format("%s: other work took over 5%% of the cores.", row->name));
            continue;
        }
        doubt(c, mem_format("%s: the load generator was the limit, which hides a difference.",
                            row->name));
        if (row->outcome == COMPARE_SAME)
            row->outcome = COMPARE_UNSURE;
    }
}

static void doubt_end(struct comparison *c, const struct summary *summary, const char *whose)
{
    if (!summary->complete)
        doubt(c, mem_format("%s did not come to its end.", whose));
    if (summary->boots == 1)
        doubt(c, mem_format("%s has one boot: how two processes of one server differ is in no "
                            "interval.",
                            whose));
}

/* ---- two builds ---- */

bool compare_is_of_builds(const struct record_data *data)
{
    return json_is_object(json_object_get(data->run, "compare"));
}

/* Differences that show in few blocks are cut off by the interquartile mean; the mean over all
 * blocks holds them. Said when it is beyond the threshold and the other is not. */
static void doubt_rare(struct comparison *c, const struct compare_row *row)
{
    if (compare_judge(row->of_all, row->of_all, c->threshold) == row->outcome ||
        isnan(row->of_all.low) ||
        (row->of_all.low <= row->ratio.value && row->ratio.value <= row->of_all.high))
        return;
    doubt(c, mem_format("The mean over all blocks is %.4f, %.4f to %.4f: it differs in some of the "
                        "blocks more than in most.",
                        row->of_all.value, row->of_all.low, row->of_all.high));
}

size_t compare_leave_out_waits(struct series *s)
{
    size_t *left = mem_alloc(s->boots + 1, sizeof *left);
    size_t out = 0;
    size_t boots = 0;
    for (size_t k = 0; k < s->blocks; k++)
        left[s->boot[k]] += !s->waited[2 * k] && !s->waited[2 * k + 1];
    for (size_t i = 0; i < s->boots; i++)
        boots += left[i] >= BLOCKS_LEAST;
    for (size_t k = 0; k < s->blocks && 2 * boots >= s->boots; k++) {
        if (left[s->boot[k]] >= BLOCKS_LEAST && !s->waited[2 * k] && !s->waited[2 * k + 1])
            continue;
        s->rate[2 * k] = NAN;
        out++;
    }
    for (size_t k = 0; k < s->blocks && 2 * boots < s->boots; k++)
        if (s->waited[2 * k] || s->waited[2 * k + 1])
            out = SIZE_MAX;
    free(left);
    return out;
}

static void doubt_waits(struct comparison *c, struct compare_row *row, const struct series *series,
                        size_t out)
{
    if (out == SIZE_MAX) {
        doubt(c, mem_copy_string("In most blocks a server waited for load, so req/s hides what it "
                                 "could do: `same` is not claimed."));
        if (row->outcome == COMPARE_SAME)
            row->outcome = COMPARE_UNSURE;
    } else if (out > 0) {
        doubt(c, mem_format("%zu of %zu blocks are left out, a server having waited for load in "
                            "them.",
                            out, series->blocks));
    }
}

static void set_builds(struct comparison *c, struct compare_row *row, struct series *series,
                       uint64_t seed)
{
    const size_t out = compare_leave_out_waits(series);
    const struct paired paired = series_paired(series);
    if (row->outcome == COMPARE_FAILED ||
        trimmed_ratio(&paired, 1, 0, confidence, DRAWS, seed, &row->ratio) != 0 ||
        paired_ratio(&paired, 1, 0, confidence, DRAWS, seed, &row->of_all) != 0)
        return;
    c->judged = 1;
    row->outcome = compare_judge(row->ratio, row->ratio, c->threshold);
    doubt_rare(c, row);
    doubt_waits(c, row, series, out);
    if (series->boots > 1 && series->boots < BOOTS_WANTED)
        doubt(c, mem_format("%zu boots: fewer than %d know little of how processes differ.",
                            series->boots, BOOTS_WANTED));
}

static int fill_builds(const struct record_data *data, const struct summary *summary,
                       struct comparison *c, struct err *err)
{
    const json_t *entries = json_object_get(data->run, "entries");
    const char *names[] = {text(json_array_get(entries, 0), "name"),
                           text(json_array_get(entries, 1), "name")};
    const struct row *a = find_row(summary, names[0]);
    const struct row *b = find_row(summary, names[1]);
    if (json_array_size(entries) != 2 || a == NULL || b == NULL)
        return err_set(err, EINVAL, "run.json names no two builds");
    if (is_failed(a))
        return err_set(err, EINVAL, "the old build failed, so nothing can be compared: %s",
                       a->reason);
    struct series series;
    struct compare_row *row = add_row(c, a, b);
    row->name = c->entry;
    series_read(data, names, 2, &series);
    set_builds(
        c, row, &series,
        (uint64_t)json_integer_value(json_object_get(json_object_get(data->run, "plan"), "seed")));
    doubt_limits(c, row);
    doubt_end(c, summary, "The session");
    series_free(&series);
    return 0;
}

int compare_builds(const struct record_data *data, double threshold, struct comparison *comparison,
                   struct err *err)
{
    struct summary summary;
    if (!compare_is_of_builds(data))
        return err_set(err, EINVAL, "the record was not made by compare --entry");
    int status = summary_make(data, &summary, err);
    if (status != 0)
        return status;
    start(comparison, COMPARE_BUILDS, threshold);
    comparison->entry = text(json_object_get(data->run, "compare"), "entry");
    status = fill_builds(data, &summary, comparison, err);
    if (status != 0)
        compare_free(comparison);
    summary_free(&summary);
    return status;
}

/* ---- two records ---- */

struct match {
    const struct record_data *data[2];
    struct summary summary[2];
    struct series series[2];
    const char **names; /* of those measured in both: the columns of both series */
    size_t *row;        /* of the comparison, of each */
    bool *unchanged;    /* the folder's hash and the version are the same */
    size_t count;
    uint64_t seed;
};

static const json_t *entry_in(const struct record_data *data, const char *name)
{
    size_t index;
    json_t *entry;
    json_array_foreach(json_object_get(data->run, "entries"), index,
                       entry) if (strcmp(text(entry, "name"), name) == 0) return entry;
    return NULL;
}

static bool is_unchanged(const struct match *pair, const char *name)
{
    const json_t *a = entry_in(pair->data[0], name);
    const json_t *b = entry_in(pair->data[1], name);
    return strcmp(text(a, "hash"), text(b, "hash")) == 0 &&
           strcmp(text(a, "version"), text(b, "version")) == 0;
}

/* A twin is no entry: it is the A/A control of its own run. */
static bool is_twin(const struct record_data *data, const char *name)
{
    return strcmp(text(entry_in(data, name), "status"), "twin") == 0;
}

static void add_column(struct match *pair, const char *name, size_t row)
{
    pair->names = mem_grow(pair->names, pair->count + 1, sizeof *pair->names);
    pair->row = mem_grow(pair->row, pair->count + 1, sizeof *pair->row);
    pair->unchanged = mem_grow(pair->unchanged, pair->count + 1, sizeof *pair->unchanged);
    pair->names[pair->count] = name;
    pair->row[pair->count] = row;
    pair->unchanged[pair->count++] = is_unchanged(pair, name);
}

static void match_entries(struct match *pair, struct comparison *c)
{
    for (size_t i = 0; i < pair->summary[0].count; i++) {
        const struct row *a = &pair->summary[0].rows[i];
        const struct row *b = find_row(&pair->summary[1], a->name);
        if (!is_measured(a) || is_twin(pair->data[0], a->name))
            continue;
        if (!is_measured(b) && !is_failed(b)) {
            json_array_append_new(c->only[0], json_string(a->name));
            continue;
        }
        struct compare_row *row = add_row(c, a, b);
        if (row->outcome == COMPARE_FAILED)
            continue;
        add_column(pair, a->name, c->count - 1);
        c->judged += !row->reference;
    }
    for (size_t i = 0; i < pair->summary[1].count; i++) {
        const struct row *b = &pair->summary[1].rows[i];
        if (is_measured(b) && !is_twin(pair->data[1], b->name) &&
            !is_measured(find_row(&pair->summary[0], b->name)))
            json_array_append_new(c->only[1], json_string(b->name));
    }
}

/* Seconds of UTC at which the record's clock would have shown 0, judging left out; NAN if unknown.
 */
static double clock_origin_s(const struct match *pair, int side)
{
    int year, month, day, hour, minute, second;
    const char *started = text(pair->data[side]->run, "started");
    if (pair->series[side].boots == 0 ||
        sscanf(started, "%d-%d-%dT%d:%d:%dZ", &year, &month, &day, &hour, &minute, &second) != 6)
        return NAN;
    struct tm utc = {.tm_year = year - 1900,
                     .tm_mon = month - 1,
                     .tm_mday = day,
                     .tm_hour = hour,
                     .tm_min = minute,
                     .tm_sec = second};
    return (double)timegm(&utc) - (double)pair->series[side].begin_ns[0] / 1e9;
}

/* True if boot i of A and boot i of B lie side by side in time, before both boots i+1. */
static bool boots_alternate(const struct match *pair)
{
    const struct series *a = &pair->series[0];
    const struct series *b = &pair->series[1];
    if (a->boots != b->boots || a->boots < 2 ||
        strcmp(text(json_object_get(pair->data[0]->run, "machine"), "kernel"),
               text(json_object_get(pair->data[1]->run, "machine"), "kernel")) != 0 ||
        !(fabs(clock_origin_s(pair, 0) - clock_origin_s(pair, 1)) < clocks_apart_s))
        return false;
    for (size_t i = 0; i < a->boots; i++) {
        bool apart = a->end_ns[i] < b->begin_ns[i] || b->end_ns[i] < a->begin_ns[i];
        bool next_later = i + 1 == a->boots ||
                          (a->end_ns[i] < a->begin_ns[i + 1] && a->end_ns[i] < b->begin_ns[i + 1] &&
                           b->end_ns[i] < a->begin_ns[i + 1] && b->end_ns[i] < b->begin_ns[i + 1]);
        if (!apart || !next_later)
            return false;
    }
    return true;
}

/* The columns whose mean is the level that `column` is held against: all others that did not change
 * between the records, or all others if each did. Returns how many. */
static size_t choose_base(const struct match *pair, size_t column, bool *base)
{
    size_t chosen = 0;
    for (int any = 0; any < 2 && chosen == 0; any++)
        for (size_t i = 0; i < pair->count; i++) {
            base[i] = i != column && (any == 1 || pair->unchanged[i]);
            chosen += base[i];
        }
    return chosen;
}

/* The mean log rate of the columns of `base` in a block; NAN if one of them lacks it. */
static double level_of_block(const struct series *s, size_t block, const bool *base, size_t chosen)
{
    double sum = 0;
    for (size_t i = 0; i < s->entries; i++)
        if (base[i])
            sum += log(s->rate[block * s->entries + i]);
    return sum / (double)chosen;
}

/* One value a block: of `column` (or of none, if it is the count) less the level. */
static double *values_of(const struct series *s, size_t column, const bool *base, size_t chosen,
                         bool level_only)
{
    double *values = mem_alloc(s->blocks + 1, sizeof *values);
    for (size_t k = 0; k < s->blocks; k++) {
        double level = chosen > 0 ? level_of_block(s, k, base, chosen) : 0;
        values[k] = level_only ? level : log(s->rate[k * s->entries + column]) - level;
    }
    return values;
}

/* Boots' means in the place of blocks' values; with one boot, its blocks. Returns how many. */
static size_t reduce_to_units(const struct series *s, double *values)
{
    size_t units = 0;
    double sum = 0;
    size_t count = 0;
    for (size_t k = 0; k < s->blocks; k++) {
        double value = values[k];
        bool ends = s->boots > 1 && (k + 1 == s->blocks || s->boot[k + 1] != s->boot[k]);
        if (!isnan(value)) {
            sum += value;
            count++;
        }
        if (s->boots == 1 && !isnan(value))
            values[units++] = value;
        if (ends && count > 0)
            values[units++] = sum / (double)count;
        if (ends) {
            sum = 0;
            count = 0;
        }
    }
    return units;
}

struct sample {
    double *values;
    size_t count;
};

static struct sample sample_of(const struct series *s, size_t column, const bool *base,
                               size_t chosen, bool level_only)
{
    struct sample sample = {.values = values_of(s, column, base, chosen, level_only)};
    sample.count = reduce_to_units(s, sample.values);
    return sample;
}

static struct interval ratio_by_level(const struct match *pair, size_t column, const bool *base,
                                      size_t chosen, bool level_only, double sure)
{
    struct sample a = sample_of(&pair->series[0], column, base, chosen, level_only);
    struct sample b = sample_of(&pair->series[1], column, base, chosen, level_only);
    struct interval logs;
    int status = welch_difference(a.values, a.count, b.values, b.count, sure, &logs);
    free(a.values);
    free(b.values);
    if (status != 0)
        return unknown;
    return (struct interval){exp(logs.value), exp(logs.low), exp(logs.high)};
}

/* Boot by boot, the means of log rates as they are. Boots in which either record lacks the entry do
 * not count. */
static struct interval ratio_by_boots(const struct match *pair, size_t column, double sure)
{
    size_t boots = pair->series[0].boots;
    double *rate = mem_alloc(2 * boots, sizeof *rate);
    unsigned *boot = mem_alloc(boots, sizeof *boot);
    for (size_t i = 0; i < boots; i++)
        boot[i] = (unsigned)i;
    for (int side = 0; side < 2; side++) {
        const struct series *s = &pair->series[side];
        double *sum = mem_alloc(boots, sizeof *sum);
        double *count = mem_alloc(boots, sizeof *count);
        for (size_t k = 0; k < s->blocks; k++) {
            double value = log(s->rate[k * s->entries + column]);
            sum[s->boot[k]] += isnan(value) ? 0 : value;
            count[s->boot[k]] += !isnan(value);
        }
        for (size_t i = 0; i < boots; i++)
            rate[2 * i + (size_t)side] = count[i] > 0 ? exp(sum[i] / count[i]) : NAN;
        free(sum);
        free(count);
    }
    const struct paired paired = {.blocks = boots, .entries = 2, .rate = rate, .boot = boot};
    struct interval ratio;
    int status = paired_ratio(&paired, 1, 0, sure, DRAWS, pair->seed, &ratio);
    free(rate);
    free(boot);
    return status == 0 ? ratio : unknown;
}

static struct interval ratio_of(const struct match *pair, const struct comparison *c, size_t column,
                                double sure)
{
    if (c->method == COMPARE_PAIRED_BOOTS)
        return ratio_by_boots(pair, column, sure);
    bool *base = mem_alloc(pair->count, sizeof *base);
    size_t chosen = choose_base(pair, column, base);
    struct interval ratio = ratio_by_level(pair, column, base, chosen, false, sure);
    free(base);
    return ratio;
}

static void set_ratios(const struct match *pair, struct comparison *c)
{
    double strict = 1 - (1 - confidence) / (c->judged > 0 ? c->judged : 1);
    for (size_t i = 0; i < pair->count; i++) {
        struct compare_row *row = &c->rows[pair->row[i]];
        row->ratio = ratio_of(pair, c, i, confidence);
        if (row->reference)
            continue;
        row->outcome = compare_judge(row->ratio, ratio_of(pair, c, i, strict), c->threshold);
        doubt_limits(c, row);
    }
}

static void set_level(const struct match *pair, struct comparison *c)
{
    bool *base = mem_alloc(pair->count, sizeof *base);
    size_t chosen = choose_base(pair, pair->count, base);
    c->level = ratio_by_level(pair, 0, base, chosen, true, confidence);
    for (size_t i = 0; i < pair->count; i++)
        if (base[i])
            json_array_append_new(c->level_of, json_string(pair->names[i]));
    free(base);
}

static void doubt_records(const struct match *pair, struct comparison *c)
{
    const char *a = text(pair->data[0]->run, "showdown");
    const char *b = text(pair->data[1]->run, "showdown");
    if (strcmp(a, b) != 0)
        doubt(c, mem_format("A was made by showdown %s, B by %s.", a, b));
    doubt_end(c, &pair->summary[0], "A");
    doubt_end(c, &pair->summary[1], "B");
    if (c->method == COMPARE_PAIRED_BOOTS)
        return;
    if (pair->count == 1)
        doubt(c, mem_copy_string("One entry in common: the ratio holds all that the machine did "
                                 "between the records, and no interval covers it."));
    else
        doubt(c, mem_copy_string("The records share no block: what moved all entries alike is "
                                 "taken out; what the machine did to one more than to another "
                                 "between the records is in the ratios, and in no interval."));
}

static int fill_records(struct match *pair, struct comparison *c, struct err *err)
{
    match_entries(pair, c);
    if (c->count == 0)
        return err_set(err, EINVAL, "no entry was measured in both records");
    for (int side = 0; side < 2; side++)
        series_read(pair->data[side], pair->names, pair->count, &pair->series[side]);
    if (boots_alternate(pair))
        c->method = COMPARE_PAIRED_BOOTS;
    else if (pair->count > 1)
        set_level(pair, c);
    doubt_records(pair, c);
    set_ratios(pair, c);
    for (int side = 0; side < 2; side++)
        series_free(&pair->series[side]);
    return 0;
}

int compare_records(const struct record_data *a, const struct record_data *b, double threshold,
                    struct comparison *comparison, struct err *err)
{
    struct match pair = {.data = {a, b}};
    int status = summary_make(a, &pair.summary[0], err);
    if (status != 0)
        return status;
    status = summary_make(b, &pair.summary[1], err);
    if (status == 0) {
        start(comparison, COMPARE_LEVELS, threshold);
        pair.seed =
            (uint64_t)json_integer_value(json_object_get(json_object_get(a->run, "plan"), "seed"));
        status = fill_records(&pair, comparison, err);
        if (status != 0)
            compare_free(comparison);
        summary_free(&pair.summary[1]);
    }
    summary_free(&pair.summary[0]);
    free(pair.names);
    free(pair.row);
    free(pair.unchanged);
    return status;
}
