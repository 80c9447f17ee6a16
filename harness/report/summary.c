#include "report/summary.h"
#include "base/mem.h"
#include "record/latency.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DRAWS = 4000 };
static const double confidence = 0.95;

/* Below this share of its core a server was not the limit; above these a row was disturbed. */
static const double saturated = 0.90;
static const double hammer_full = 0.95;
static const double disturbed = 0.05;

/* Sums over an entry's slices. */
struct sums {
    double valid, bytes, window_ns, errors;
    double cpu_ns, cpu_valid, cpu_window_ns; /* of slices whose usage is known */
    double user_ticks, system_ticks;
    double hammer_ns;
    double busy_ticks, steal_ticks, core_ticks; /* both cores */
    double idle_ns, idle_cpu_ns;
    double rss;
    struct histogram latency;
};

/* The rates of a run as the statistics want them, and the entries' names beside. */
struct table {
    size_t entries, blocks;
    double *rate;
    unsigned *boot;
    unsigned *block;
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

static void add_core(struct sums *sums, const json_t *core)
{
    sums->busy_ticks += number(core, "busy");
    sums->steal_ticks += number(core, "steal");
    sums->core_ticks += number(core, "busy") + number(core, "idle") + number(core, "steal");
}

static void add_slice(struct sums *sums, const json_t *line)
{
    sums->valid += number(line, "valid");
    sums->bytes += number(line, "bytes_read");
    sums->window_ns += number(line, "window_ns");
    sums->errors +=
        number(line, "wrong") + number(line, "timed_out") + number(line, "errors_total");
    sums->hammer_ns += number(line, "hammer_user_ns") + number(line, "hammer_system_ns");
    add_core(sums, json_object_get(line, "server_core"));
    add_core(sums, json_object_get(line, "hammer_cores"));
    sums->idle_ns += number(line, "idle_ns");
    sums->idle_cpu_ns += number(line, "idle_cpu_ns");
    latency_add(json_object_get(line, "latency"), &sums->latency);
    if (json_object_get(line, "server_cpu_ns") == NULL)
        return;
    sums->cpu_ns += number(line, "server_cpu_ns");
    sums->cpu_valid += number(line, "valid");
    sums->cpu_window_ns += number(line, "window_ns");
    sums->user_ticks += number(line, "server_user_ticks");
    sums->system_ticks += number(line, "server_system_ticks");
    sums->rss = fmax(sums->rss, number(line, "rss_peak_bytes"));
}

/* The block's row in the table, made when it is new. Lines come in order of boots and blocks. */
static size_t block_of(struct table *table, unsigned boot, unsigned block)
{
    size_t last = table->blocks;
    if (last > 0 && table->boot[last - 1] == boot && table->block[last - 1] == block)
        return last - 1;
    table->blocks++;
    table->boot = mem_grow(table->boot, table->blocks, sizeof *table->boot);
    table->block = mem_grow(table->block, table->blocks, sizeof *table->block);
    table->rate = mem_grow(table->rate, table->blocks * table->entries, sizeof *table->rate);
    table->boot[last] = boot;
    table->block[last] = block;
    for (size_t i = 0; i < table->entries; i++)
        table->rate[last * table->entries + i] = NAN;
    return last;
}

static void take_slice(struct summary *summary, struct sums *sums, struct table *table,
                       const json_t *line)
{
    size_t i = row_of(summary, text(line, "entry"));
    if (i == summary->count)
        return;
    struct row *row = &summary->rows[i];
    unsigned boot = (unsigned)number(line, "boot");
    size_t before = table->blocks;
    size_t b = block_of(table, boot, (unsigned)number(line, "block"));
    if (table->blocks > before && (before == 0 || table->boot[before - 1] != boot))
        summary->boots++;
    add_slice(&sums[i], line);
    row->slices++;
    if (number(line, "window_ns") > 0 && number(line, "valid") > 0)
        table->rate[b * table->entries + i] =
            number(line, "valid") / number(line, "window_ns") * 1e9;
}

static void take_lines(struct summary *summary, struct sums *sums, struct table *table,
                       const json_t *lines)
{
    size_t index;
    json_t *line;
    json_array_foreach(lines, index, line)
    {
        size_t i = row_of(summary, text(line, "entry"));
        if (is_type(line, "slice"))
            take_slice(summary, sums, table, line);
        if (is_type(line, "spoilt") && i < summary->count)
            summary->rows[i].spoilt++;
        if (is_type(line, "boot") && i < summary->count &&
            !json_is_true(json_object_get(line, "warm_steady")))
            summary->rows[i].unsteady = true;
        if (is_type(line, "gate") && i < summary->count) {
            summary->rows[i].http_passed = number(line, "passed");
            summary->rows[i].http_total = number(line, "total");
            summary->rows[i].http_failed = json_object_get(line, "failed");
            summary->rows[i].http_waivers = json_object_get(line, "waivers");
        }
        if (is_type(line, "failure") && i < summary->count) {
            summary->rows[i].status = "failed";
            summary->rows[i].reason = text(line, "reason");
            summary->rows[i].output = text(line, "output");
        }
        if (is_type(line, "end")) {
            summary->interrupted = json_is_true(json_object_get(line, "interrupted"));
            summary->complete = !summary->interrupted;
            summary->end = line;
        }
    }
    summary->blocks = (unsigned)table->blocks;
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

static void set_disturbance(struct row *row, const struct sums *sums, double hammer_cores)
{
    row->hammer_busy = sums->hammer_ns / (sums->window_ns * hammer_cores);
    if (sums->core_ticks <= 0)
        return;
    double ours = (sums->cpu_ns + sums->hammer_ns) / 1e9 * (double)sysconf(_SC_CLK_TCK);
    row->steal = sums->steal_ticks / sums->core_ticks;
    row->foreign = fmax(0, (sums->busy_ticks - ours) / sums->core_ticks);
}

static const char *verdict_of(const struct row *row)
{
    if (strcmp(row->status, "failed") == 0 || row->errors > 0)
        return "errors";
    if (row->steal > disturbed || row->foreign > disturbed)
        return "neighbours";
    if (row->server_busy >= saturated)
        return "server";
    if (row->hammer_busy >= hammer_full)
        return "hammer";
    return isnan(row->server_busy) ? "" : "waiting";
}

static void set_figures(struct row *row, const struct sums *sums, double hammer_cores)
{
    row->errors = sums->errors;
    row->requests = sums->valid;
    if (sums->valid > 0) {
        row->bytes_per_response = sums->bytes / sums->valid;
        row->latency_p50_us = quantile_us(&sums->latency, 0.5);
        row->latency_p99_us = quantile_us(&sums->latency, 0.99);
        row->latency_max_us = quantile_us(&sums->latency, 1);
        set_costs(row, sums);
        set_disturbance(row, sums, hammer_cores);
    }
    if (sums->idle_ns > 0)
        row->idle_cpu = sums->idle_cpu_ns / sums->idle_ns;
    row->verdict = verdict_of(row);
}

static unsigned count_blocks(const struct table *table, size_t entry, unsigned *boots)
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

static void set_rates(struct summary *summary, const struct table *table, uint64_t seed)
{
    const struct paired paired = {.blocks = table->blocks,
                                  .entries = table->entries,
                                  .rate = table->rate,
                                  .boot = table->boot};
    size_t limit = summary->count;
    for (size_t i = 0; i < summary->count; i++) {
        struct row *row = &summary->rows[i];
        row->blocks = count_blocks(table, i, &row->boots);
        if (row->blocks == 0 || strcmp(row->status, "failed") == 0 ||
            paired_rate(&paired, i, confidence, DRAWS, seed, &row->rate_per_s) != 0)
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
        if (isfinite(summary->rows[i].rate_per_s.value))
            paired_ratio(&paired, i, limit, confidence, DRAWS, seed,
                         &summary->rows[i].share_of_limit);
}

static int class_of(const struct row *row)
{
    static const char *const order[] = {"ranked", "reference", "failed", "skipped", "broken"};
    int class = 0;
    while (class < 4 && strcmp(row->status, order[class]) != 0)
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

/* Ranks are by req/s; on one CPU load and server take each other's time, and nothing is ranked. */
static void set_ranks(struct summary *summary, bool one_cpu)
{
    qsort(summary->rows, summary->count, sizeof *summary->rows, compare_rows);
    for (size_t i = 0; i < summary->count && !one_cpu; i++)
        if (strcmp(summary->rows[i].status, "ranked") == 0)
            summary->rows[i].rank = (unsigned)i + 1;
}

/* The twin is no row of the table. */
static void drop_twin(struct summary *summary)
{
    size_t kept = 0;
    for (size_t i = 0; i < summary->count; i++)
        if (strchr(summary->rows[i].name, ' ') == NULL)
            summary->rows[kept++] = summary->rows[i];
    summary->count = kept;
}

static void start_row(struct row *row, const json_t *entry)
{
    const struct interval none = {NAN, NAN, NAN};
    const char *status = text(entry, "status");
    *row = (struct row){.name = text(entry, "name"),
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
                        .http_total = NAN};
}

int summary_make(const struct record_data *data, struct summary *summary, struct err *err)
{
    const json_t *entries = json_object_get(data->run, "entries");
    const json_t *plan = json_object_get(data->run, "plan");
    if (!json_is_array(entries) || !json_is_object(plan))
        return err_set(err, EINVAL, "run.json has no \"entries\" or no \"plan\"");
    double hammer_cores = fmax(1, (double)json_array_size(json_object_get(plan, "hammer_cpus")));
    struct table table = {.entries = json_array_size(entries)};
    memset(summary, 0, sizeof *summary);
    summary->count = table.entries;
    summary->rows = mem_alloc(summary->count + 1, sizeof *summary->rows);
    for (size_t i = 0; i < summary->count; i++)
        start_row(&summary->rows[i], json_array_get(entries, i));

    struct sums *sums = mem_alloc(summary->count + 1, sizeof *sums);
    for (size_t i = 0; i < summary->count; i++)
        histogram_reset(&sums[i].latency);
    take_lines(summary, sums, &table, data->lines);
    for (size_t i = 0; i < summary->count; i++) {
        struct row *row = &summary->rows[i];
        if (row->slices > 0 && sums[i].valid <= 0 && strcmp(row->status, "failed") != 0) {
            row->status = "failed";
            row->reason = "no answer within a slice; --slice makes them longer";
        }
        if (row->slices > 0)
            set_figures(row, &sums[i], hammer_cores);
        else if (strcmp(row->status, "ranked") == 0 || strcmp(row->status, "reference") == 0) {
            row->status = "skipped";
            row->reason = "the run ended before it was measured";
        }
    }
    set_rates(summary, &table, (uint64_t)number(plan, "seed"));
    set_ranks(summary, json_is_true(json_object_get(plan, "one_cpu")));
    drop_twin(summary);
    free(sums);
    free(table.rate);
    free(table.boot);
    free(table.block);
    return 0;
}

void summary_free(struct summary *summary)
{
    free(summary->rows);
    summary->rows = NULL;
    summary->count = 0;
}
