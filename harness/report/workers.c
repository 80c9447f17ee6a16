#include "report/workers.h"

#include "base/mem.h"
#include "report/summary.h"
#include "report/text.h"

#include <math.h>
#include <string.h>

static const struct interval unknown = {NAN, NAN, NAN};

static const struct row *find_row(const struct summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->rows[i].name, name) == 0)
            return &summary->rows[i];
    return NULL;
}

static struct interval per_core(struct interval ratio, const struct workers_pair *pair)
{
    double most = fmin(pair->workers, pair->cores);
    return (struct interval){ratio.value / most, ratio.low / most, ratio.high / most};
}

/* Why the two can't be compared; "" when they can. */
static const char *reason_of(const struct row *several, const struct row *one)
{
    if (several->reason[0] != '\0')
        return several->reason;
    if (one == NULL)
        return "the record has no row of one worker";
    return one->reason;
}

static struct workers_pair pair_of(const struct row *several, const struct row *one,
                                   const struct paired *paired, uint64_t seed)
{
    struct workers_pair pair = {.entry = several->workers_of,
                                .row = several->name,
                                .workers = several->workers,
                                .cores = several->server_cores,
                                .reason = reason_of(several, one),
                                .ratio = unknown,
                                .efficiency = unknown};
    if (pair.reason[0] != '\0')
        return pair;
    if (paired_ratio(paired, several->column, one->column, SUMMARY_CONFIDENCE, SUMMARY_DRAWS, seed,
                     &pair.ratio) != 0) {
        pair.reason = "no block holds both";
        pair.ratio = unknown;
        return pair;
    }
    pair.efficiency = per_core(pair.ratio, &pair);
    pair.hammer_limited =
        verdict_holds(several, VERDICT_HAMMER) || verdict_holds(one, VERDICT_HAMMER);
    return pair;
}

void workers_make(struct summary *summary, const json_t *plan, const struct paired *paired,
                  uint64_t seed)
{
    struct scaling *scaling = &summary->scaling;
    double asked = json_number_value(json_object_get(plan, "workers"));
    *scaling = (struct scaling){.workers = (unsigned)fmax(1, fmin(asked, UINT16_MAX)),
                                .pairs = mem_alloc(summary->count + 1, sizeof *scaling->pairs)};
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *several = &summary->rows[i];
        if (several->workers_of != NULL)
            scaling->pairs[scaling->count++] =
                pair_of(several, find_row(summary, several->workers_of), paired, seed);
    }
}

static void print_pair(FILE *out, const struct workers_pair *pair)
{
    fprintf(out, "%s: ", text_shown(pair->entry).text);
    if (pair->reason[0] != '\0') {
        fprintf(out, "%s, no comparison: ", text_count(pair->workers, "worker").text);
        text_print(out, pair->reason, strlen(pair->reason), "");
        fputc('\n', out);
        return;
    }
    fprintf(out, "%s on %s: %.3f", text_count(pair->workers, "worker").text,
            text_count(pair->cores, "core").text, pair->ratio.value);
    if (isfinite(pair->ratio.low))
        fprintf(out, " (%.3f to %.3f)", pair->ratio.low, pair->ratio.high);
    fprintf(out, " of one, efficiency %.1f%%", pair->efficiency.value * 100);
    if (isfinite(pair->efficiency.low))
        fprintf(out, " (%.1f%% to %.1f%%)", pair->efficiency.low * 100,
                pair->efficiency.high * 100);
    fputs(pair->hammer_limited
              ? ",\n  with the load generator as a limit: this says nothing of the workers.\n"
              : ".\n",
          out);
}

static bool has_pair(const struct scaling *scaling, const char *entry)
{
    for (size_t i = 0; i < scaling->count; i++)
        if (strcmp(scaling->pairs[i].entry, entry) == 0)
            return true;
    return false;
}

/* Those that ran, and have a row of one worker alone. */
static void print_without(FILE *out, const struct summary *summary)
{
    const char *before = "take no workers: ";
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        if (row->workers_of != NULL || row->slices == 0 || has_pair(&summary->scaling, row->name))
            continue;
        fprintf(out, "%s%s", before, text_shown(row->name).text);
        before = ", ";
    }
    if (*before == ',')
        fputs(" (no {workers} in the manifest).\n", out);
}

void workers_print(FILE *out, const struct summary *summary)
{
    const struct scaling *scaling = &summary->scaling;
    if (scaling->workers <= 1)
        return;
    if (scaling->count > 0)
        fprintf(out,
                "*%u: rows of %u workers, not ranked. Their rate over that of one worker, with its "
                "95%% interval;\nefficiency: of as many cores as workers can use:\n",
                scaling->workers, scaling->workers);
    for (size_t i = 0; i < scaling->count; i++)
        print_pair(out, &scaling->pairs[i]);
    print_without(out, summary);
}

static void set_interval(json_t *object, const char *key, const struct interval *interval)
{
    static const char *const ends[] = {"", "_low", "_high"};
    const double values[] = {interval->value, interval->low, interval->high};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", key, ends[i]);
        if (isfinite(values[i]))
            json_object_set_new(object, name, json_real(values[i]));
    }
}

json_t *workers_to_json(const struct scaling *scaling)
{
    json_t *pairs = json_array();
    for (size_t i = 0; i < scaling->count; i++) {
        const struct workers_pair *pair = &scaling->pairs[i];
        json_t *object = json_pack("{s:s, s:s, s:i}", "entry", pair->entry, "row", pair->row,
                                   "workers", (int)pair->workers);
        if (pair->cores > 0)
            json_object_set_new(object, "cores", json_integer((json_int_t)pair->cores));
        if (pair->reason[0] != '\0')
            json_object_set_new(object, "reason", json_string(pair->reason));
        set_interval(object, "ratio", &pair->ratio);
        set_interval(object, "efficiency", &pair->efficiency);
        if (pair->reason[0] == '\0')
            json_object_set_new(object, "hammer_limited", json_boolean(pair->hammer_limited));
        json_array_append_new(pairs, object);
    }
    return pairs;
}
