#include "report/summary.h"
#include "base/mem.h"
#include "record/latency.h"
#include "record/rates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums over an entry's slices. */
struct sums {
    double valid, bytes, window_ns, errors;
    double cpu_ns, cpu_valid, cpu_window_ns; /* of slices whose usage is known */
    double user_ticks, system_ticks;
    struct evidence_sums evidence;
    double idle_ns, idle_cpu_ns;
    double rss;
    struct costs costs;        /* of windows of their own */
    struct costs slices_costs; /* of slices */
    struct histogram latency;
};

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static bool is_type(const json_t *line, const char *type)
{
    return strcmp(text(line, "type"), type) == 0;
}

static size_t row_of(const struct summary *summary, const char *name)
{
    size_t i = 0;
    while (i < summary->count && strcmp(summary->rows[i].name, name) != 0)
        i++;
    return i;
}

static void add_slice(struct sums *sums, const json_t *line, const json_t *plan)
{
    sums->valid += number(line, "valid");
    sums->bytes += number(line, "bytes_read");
    sums->window_ns += number(line, "window_ns");
    sums->errors +=
        number(line, "wrong") + number(line, "timed_out") + number(line, "errors_total");
    evidence_add(&sums->evidence, line, plan);
    costs_add(&sums->slices_costs, line);
    sums->idle_ns += number(line, "idle_ns");
    sums->idle_cpu_ns += number(line, "idle_cpu_ns");
    latency_add(json_object_get(line, "latency"), &sums->latency);
    if (json_object_get(line, "server_cpu_ns") == NULL)
        return;
    sums->cpu_ns += number(line, "server_cpu_ns");
    sums->cpu_valid += number(line, "valid");
    sums->cpu_window_ns += number(line, "window_ns") * evidence_server_cores(line);
    sums->user_ticks += number(line, "server_user_ticks");
    sums->system_ticks += number(line, "server_system_ticks");
    sums->rss = fmax(sums->rss, number(line, "rss_peak_bytes"));
}

static void take_slice(struct row *row, struct sums *sums, const json_t *plan, const json_t *line)
{
    add_slice(sums, line, plan);
    row->slices++;
    row->server_cores = (unsigned)evidence_server_cores(line);
}

static void take_lines(struct summary *summary, struct sums *sums, struct rates *rates,
                       const json_t *plan, const json_t *lines)
{
    size_t index;
    json_t *line;
    json_array_foreach(lines, index, line)
    {
        size_t i = row_of(summary, text(line, "entry"));
        if (is_type(line, "slice") && rates_take(rates, line))
            take_slice(&summary->rows[i], &sums[i], plan, line);
        if (is_type(line, "cost") && i < summary->count && !rates_is_repeated(rates, line))
            costs_add(&sums[i].costs, line);
        if (is_type(line, "spoilt") && i < summary->count)
            summary->rows[i].spoilt++;
        if (is_type(line, "boot") && i < summary->count &&
            !json_is_true(json_object_get(line, "warm_steady")))
            summary->rows[i].evidence.boots_cold++;
        if (is_type(line, "gate") && i < summary->count) {
            summary->rows[i].http_passed = number(line, "passed");
            summary->rows[i].http_total = number(line, "total");
            summary->rows[i].http_failed = json_object_get(line, "failed");
            summary->rows[i].http_waivers = json_object_get(line, "waivers");
        }
        bool lacks = is_type(line, "lack");
        if ((lacks || is_type(line, "failure")) && i < summary->count) {
            summary->rows[i].status = lacks ? "skipped" : "failed";
            summary->rows[i].reason = text(line, "reason");
            summary->rows[i].output = text(line, "output");
        }
        if (is_type(line, "end")) {
            summary->interrupted = json_is_true(json_object_get(line, "interrupted"));
            summary->complete = !summary->interrupted;
            summary->end = line;
        }
    }
    rates_end(rates);
    summary->blocks = (unsigned)rates->table.blocks;
    summary->boots = rates->boots;
    summary->repeated = rates->repeated;
}

static double quantile_us(const struct histogram *h, double q)
{
    uint64_t value;
    return histogram_quantile_ns(h, q, &value) == 0 ? (double)value / 1e3 : NAN;
}

/* Splits CPU time into user and kernel by ticks: they sample, so only their ratio is used. */
static void set_costs(struct row *row, const struct sums *sums)
{
    if (sums->cpu_valid <= 0)
        return;
    row->cpu_us = sums->cpu_ns / sums->cpu_valid / 1e3;
    row->server_busy = sums->cpu_ns / sums->cpu_window_ns;
    row->rss_peak_bytes = sums->rss;
    double ticks = sums->user_ticks + sums->system_ticks;
    if (ticks > 0) {
        row->cpu_user_us = row->cpu_us * sums->user_ticks / ticks;
        row->cpu_system_us = row->cpu_us * sums->system_ticks / ticks;
    }
}

static void set_counted_costs(struct row *row, const struct sums *sums)
{
    for (int kind = 0; kind < COST_KINDS; kind++) {
        row->cost[kind] = costs_per_request(&sums->costs, kind);
        if (isnan(row->cost[kind]))
            row->cost[kind] = costs_per_request(&sums->slices_costs, kind);
    }
}

static void set_figures(struct row *row, const struct sums *sums, const json_t *plan)
{
    row->errors = sums->errors;
    row->requests = sums->valid;
    if (sums->valid > 0) {
        row->bytes_per_response = sums->bytes / sums->valid;
        row->latency_p50_us = quantile_us(&sums->latency, 0.5);
        row->latency_p99_us = quantile_us(&sums->latency, 0.99);
        row->latency_max_us = quantile_us(&sums->latency, 1);
        set_costs(row, sums);
        set_counted_costs(row, sums);
        evidence_set(&sums->evidence, plan, row);
    }
    if (sums->idle_ns > 0)
        row->idle_cpu = sums->idle_cpu_ns / sums->idle_ns;
    row->evidence.spoilt = (double)row->spoilt / (double)(row->spoilt + row->slices);
}

static unsigned count_blocks(const struct paired *table, size_t entry, unsigned *boots)
{
    unsigned blocks = 0;
    unsigned last = 0;
    *boots = 0;
    for (size_t b = 0; b < table->blocks; b++) {
        if (isnan(table->rate[b * table->entries + entry]))
            continue;
        if (blocks == 0 || table->boot[b] != last)
            ++*boots;
        last = table->boot[b];
        blocks++;
    }
    return blocks;
}

static void set_rates(struct summary *summary, const struct paired *paired, uint64_t seed)
{
    size_t limit = summary->count;
    for (size_t i = 0; i < summary->count; i++) {
        struct row *row = &summary->rows[i];
        row->blocks = count_blocks(paired, i, &row->boots);
        if (row->blocks == 0 || strcmp(row->status, "failed") == 0 ||
            paired_rate(paired, i, SUMMARY_CONFIDENCE, SUMMARY_DRAWS, seed, &row->rate_per_s) != 0)
            continue;
        if (strcmp(row->status, "reference") == 0 &&
            (limit == summary->count ||
             row->rate_per_s.value > summary->rows[limit].rate_per_s.value))
            limit = i;
    }
    if (limit == summary->count)
        return;
    summary->limit = summary->rows[limit].name;
    for (size_t i = 0; i < summary->count; i++)
        if (isfinite(summary->rows[i].rate_per_s.value) && summary->rows[i].workers_of == NULL)
            paired_ratio(paired, i, limit, SUMMARY_CONFIDENCE, SUMMARY_DRAWS, seed,
                         &summary->rows[i].share_of_limit);
}

static void set_verdicts(struct summary *summary, const struct paired *paired)
{
    for (size_t i = 0; i < summary->count; i++) {
        struct evidence *evidence = &summary->rows[i].evidence;
        evidence->drift_known = drift_test(paired, i, &evidence->drift) == 0;
    }
    verdict_set_all(summary);
}

/* The twin comes last, whatever became of it: it is taken off the end. */
static int class_of(const struct row *row)
{
    static const char *const order[] = {"ranked", "workers", "reference",
                                        "failed", "skipped", "broken"};
    int class = 0;
    if (row->twin_of != NULL)
        return 6;
    while (class < 5 && strcmp(row->status, order[class]) != 0)
        class ++;
    return class;
}

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;
    if (class_of(a) != class_of(b))
        return class_of(a) - class_of(b);
    if (a->rate_per_s.value != b->rate_per_s.value && !isnan(a->rate_per_s.value) &&
        !isnan(b->rate_per_s.value))
        return a->rate_per_s.value > b->rate_per_s.value ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void start_row(struct row *row, const json_t *entry, size_t column)
{
    const struct interval none = {NAN, NAN, NAN};
    const char *status = text(entry, "status");
    *row = (struct row){.name = text(entry, "name"),
                        .column = column,
                        .twin_of = json_string_value(json_object_get(entry, "twin_of")),
                        .workers_of = json_string_value(json_object_get(entry, "workers_of")),
                        .workers = (unsigned)fmax(1, fmin(number(entry, "workers"), UINT16_MAX)),
                        .status = strcmp(status, "active") == 0 ? "ranked" : status,
                        .reason = text(entry, "reason"),
                        .output = "",
                        .verdict = "",
                        .rate_per_s = none,
                        .share_of_limit = none,
                        .latency_p50_us = NAN,
                        .latency_p99_us = NAN,
                        .latency_max_us = NAN,
                        .cpu_us = NAN,
                        .cpu_user_us = NAN,
                        .cpu_system_us = NAN,
                        .bytes_per_response = NAN,
                        .rss_peak_bytes = NAN,
                        .requests = NAN,
                        .errors = NAN,
                        .server_busy = NAN,
                        .hammer_busy = NAN,
                        .steal = NAN,
                        .foreign = NAN,
                        .idle_cpu = NAN,
                        .http_passed = NAN,
                        .http_total = NAN,
                        .evidence = {.server_waited = NAN,
                                     .hammer_waited = NAN,
                                     .server_foreign = NAN,
                                     .hammer_foreign = NAN,
                                     .server_missing = NAN,
                                     .hammer_missing = NAN,
                                     .throttled = NAN,
                                     .gaps = NAN,
                                     .spoilt = NAN,
                                     .little = NAN,
                                     .little_edge = NAN}};
    for (int kind = 0; kind < COST_KINDS; kind++)
        row->cost[kind] = NAN;
}

bool row_is_measured(const struct row *row)
{
    return strcmp(row->status, "ranked") == 0 || strcmp(row->status, "reference") == 0 ||
           strcmp(row->status, "workers") == 0;
}

static void set_row(struct row *row, const struct sums *sums, const json_t *plan)
{
    bool failed = strcmp(row->status, "failed") == 0;
    if (row->slices > 0 && sums->valid <= 0 && !failed) {
        row->status = "failed";
        row->reason = "no answer within a slice; --slice makes them longer";
    }
    if (row->slices > 0) {
        set_figures(row, sums, plan);
    } else if (row_is_measured(row) || (row->twin_of != NULL && !failed)) {
        row->status = "skipped";
        row->reason = "the run ended before it was measured";
    }
}

int summary_make(const struct record_data *data, struct summary *summary, struct err *err)
{
    const json_t *entries = json_object_get(data->run, "entries");
    const json_t *plan = json_object_get(data->run, "plan");
    if (!json_is_array(entries) || !json_is_object(plan))
        return err_set(err, EINVAL, "run.json has no \"entries\" or no \"plan\"");
    uint64_t seed = (uint64_t)number(plan, "seed");
    struct rates rates;
    rates_begin(entries, &rates);
    memset(summary, 0, sizeof *summary);
    summary->count = json_array_size(entries);
    summary->rows = mem_alloc(summary->count + 1, sizeof *summary->rows);
    for (size_t i = 0; i < summary->count; i++)
        start_row(&summary->rows[i], json_array_get(entries, i), i);

    struct sums *sums = mem_alloc(summary->count + 1, sizeof *sums);
    for (size_t i = 0; i < summary->count; i++)
        histogram_reset(&sums[i].latency);
    take_lines(summary, sums, &rates, plan, data->lines);
    for (size_t i = 0; i < summary->count; i++)
        set_row(&summary->rows[i], &sums[i], plan);
    set_rates(summary, &rates.table, seed);
    set_verdicts(summary, &rates.table);
    qsort(summary->rows, summary->count, sizeof *summary->rows, compare_rows);
    workers_make(summary, plan, &rates.table, seed);
    ranks_make(summary, &rates.table, seed, !json_is_true(json_object_get(plan, "one_cpu")));
    free(sums);
    rates_free(&rates);
    return 0;
}

void summary_free(struct summary *summary)
{
    ranks_free(&summary->ranking);
    free(summary->scaling.pairs);
    summary->scaling.pairs = NULL;
    free(summary->rows);
    summary->rows = NULL;
    summary->count = 0;
}
