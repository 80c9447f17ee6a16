#include "report/views.h"
#include "report/precision.h"

#include <math.h>

static void set_number(json_t *object, const char *key, double value)
{
    if (!isfinite(value))
        return;
    if (value == floor(value) && fabs(value) < 9e15)
        json_object_set_new(object, key, json_integer((json_int_t)value));
    else
        json_object_set_new(object, key, json_real(value));
}

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text[0] != '\0')
        json_object_set_new(object, key, json_string(text));
}

/* The contract's cases: passed, total, the ids of those failed, and those waived, each with why. */
static void set_gate(json_t *object, const struct row *row)
{
    set_number(object, "http_passed", row->http_passed);
    set_number(object, "http_total", row->http_total);
    if (row->http_failed != NULL)
        json_object_set_new(object, "http_failed", json_deep_copy(row->http_failed));
    if (row->http_waivers != NULL)
        json_object_set_new(object, "http_waived", json_deep_copy(row->http_waivers));
}

static void set_sum(json_t *object, const char *key, double one, double other)
{
    if (isfinite(one) && isfinite(other))
        set_number(object, key, one + other);
}

static void set_costs(json_t *object, const struct row *row)
{
    for (int kind = 0; kind < COST_KINDS; kind++) {
        char key[64];
        snprintf(key, sizeof key, "%s_per_req", costs_key(kind));
        set_number(object, key, row->cost[kind]);
    }
    set_sum(object, "instructions_per_req", row->cost[COST_INSTRUCTIONS_USER],
            row->cost[COST_INSTRUCTIONS_KERNEL]);
    set_sum(object, "cycles_per_req", row->cost[COST_CYCLES_USER], row->cost[COST_CYCLES_KERNEL]);
    set_sum(object, "switches_per_req", row->cost[COST_SWITCHES_VOLUNTARY],
            row->cost[COST_SWITCHES_INVOLUNTARY]);
}

static void set_interval(json_t *object, const char *key, const struct interval *interval)
{
    char name[64];
    set_number(object, key, interval->value);
    snprintf(name, sizeof name, "%s_low", key);
    set_number(object, name, interval->low);
    snprintf(name, sizeof name, "%s_high", key);
    set_number(object, name, interval->high);
}

/* All verdicts that hold, the row's own first, and what they were made of. */
static void set_verdict(json_t *object, const struct row *row)
{
    const struct evidence *e = &row->evidence;
    json_t *all = json_array();
    set_text(object, "verdict", row->verdict);
    for (int v = 0; v < VERDICTS; v++)
        if (verdict_holds(row, (enum verdict)v))
            json_array_append_new(all, json_string(verdict_name((enum verdict)v)));
    if (json_array_size(all) > 0)
        json_object_set(object, "verdicts", all);
    json_decref(all);
    set_number(object, "server_busy", row->server_busy);
    set_number(object, "hammer_busy", row->hammer_busy);
    set_number(object, "steal", row->steal);
    set_number(object, "foreign", row->foreign);
    set_number(object, "server_waited", e->server_waited);
    set_number(object, "hammer_waited", e->hammer_waited);
    set_number(object, "server_foreign", e->server_foreign);
    set_number(object, "hammer_foreign", e->hammer_foreign);
    set_number(object, "server_missing", e->server_missing);
    set_number(object, "hammer_missing", e->hammer_missing);
    set_number(object, "throttled", e->throttled);
    set_number(object, "gaps", e->gaps);
    set_number(object, "little", e->little);
    if (e->drift_known) {
        set_number(object, "drift_change", e->drift.change);
        set_number(object, "drift_p", e->drift.p);
        set_text(object, "drift_within", e->drift.within_boots ? "boots" : "run");
    }
}

static json_t *row_to_json(const struct row *row)
{
    json_t *object = json_object();
    set_text(object, "name", row->name);
    set_text(object, "status", row->status);
    set_text(object, "reason", row->reason);
    set_text(object, "output", row->output);
    set_number(object, "workers", row->workers);
    if (row->workers_of != NULL)
        set_text(object, "workers_of", row->workers_of);
    set_number(object, "server_cores", row->server_cores > 0 ? (double)row->server_cores : NAN);
    if (row->rank > 0) {
        set_number(object, "rank", row->rank);
        json_object_set_new(object, "rank_tied", json_boolean(row->rank_tied));
    }
    set_interval(object, "req_per_s", &row->rate_per_s);
    set_interval(object, "share_of_limit", &row->share_of_limit);
    set_number(object, "latency_p50_us", row->latency_p50_us);
    set_number(object, "latency_p99_us", row->latency_p99_us);
    set_number(object, "latency_max_us", row->latency_max_us);
    set_number(object, "cpu_us_per_req", row->cpu_us);
    set_number(object, "cpu_user_us_per_req", row->cpu_user_us);
    set_number(object, "cpu_system_us_per_req", row->cpu_system_us);
    set_costs(object, row);
    set_number(object, "bytes_per_response", row->bytes_per_response);
    set_number(object, "rss_peak_bytes", row->rss_peak_bytes);
    set_number(object, "requests", row->requests);
    set_number(object, "errors", row->errors);
    set_gate(object, row);
    set_verdict(object, row);
    if (row->slices > 0) {
        set_number(object, "slices", row->slices);
        set_number(object, "blocks", row->blocks);
        set_number(object, "boots", row->boots);
        set_number(object, "spoilt", row->spoilt);
    }
    return object;
}

static json_t *twin_to_json(const struct ranking *ranking)
{
    const struct twin *twin = &ranking->twin;
    json_t *object = json_object();
    set_text(object, "entry", twin->entry);
    set_text(object, "reason", twin->reason);
    if (twin->reason[0] != '\0')
        return object;
    set_interval(object, "ratio", &twin->ratio);
    set_number(object, "p", twin->p);
    json_object_set_new(object, "differs", json_boolean(twin->differs));
    set_number(object, "delta", ranking->delta);
    set_number(object, "boots", twin->boots);
    return object;
}

static json_t *pair_to_json(const struct ranks_pair *pair)
{
    json_t *object = json_object();
    set_text(object, "upper", pair->upper);
    set_text(object, "lower", pair->lower);
    set_interval(object, "ratio", &pair->ratio);
    set_number(object, "p", pair->p);
    set_number(object, "p_adjusted", pair->p_adjusted);
    json_object_set_new(object, "outranks", json_boolean(pair->outranks));
    set_number(object, "boots", pair->boots);
    return object;
}

static void set_ranking(json_t *report, const struct ranking *ranking)
{
    bool inconclusive = ranks_inconclusive(ranking);
    json_object_set_new(report, "inconclusive", json_boolean(inconclusive));
    if (inconclusive)
        set_text(report, "inconclusive_reason", "the twin differs from its entry");
    json_object_set_new(report, "ranks_provisional", json_boolean(ranking->provisional));
    if (ranking->pair_count > 0)
        set_number(report, "rank_boots_needed", ranking->boots_needed);
    set_number(report, "delta", ranking->delta);
    if (ranking->twin.entry != NULL)
        json_object_set_new(report, "twin", twin_to_json(ranking));
}

void view_json(FILE *out, const struct record_data *data, const struct summary *summary)
{
    json_t *entries = json_array();
    for (size_t i = 0; i < summary->count; i++)
        json_array_append_new(entries, row_to_json(&summary->rows[i]));
    json_t *run = json_object();
    json_t *from = data->run;
    static const char *const copied[] = {"showdown", "started", "argv", "plan"};
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        if (json_object_get(from, copied[i]) != NULL)
            json_object_set(run, copied[i], json_object_get(from, copied[i]));
    json_object_set_new(run, "boots", json_integer(summary->boots));
    json_object_set_new(run, "blocks", json_integer(summary->blocks));
    json_object_set_new(run, "interrupted", json_boolean(summary->interrupted));
    json_object_set_new(run, "complete", json_boolean(summary->complete));
    if (json_object_get(summary->end, "ended_by") != NULL)
        json_object_set(run, "ended_by", json_object_get(summary->end, "ended_by"));
    json_t *precision = precision_to_json(summary->end);
    if (precision != NULL)
        json_object_set_new(run, "precision", precision);

    json_t *report = json_object();
    json_object_set_new(report, "schema", json_integer(RECORD_SCHEMA));
    json_object_set_new(report, "run", run);
    if (json_object_get(from, "machine") != NULL)
        json_object_set(report, "machine", json_object_get(from, "machine"));
    json_t *workload = json_object_get(json_object_get(from, "plan"), "workload");
    if (workload != NULL)
        json_object_set(report, "workload", workload);
    if (summary->limit != NULL)
        json_object_set_new(report, "limit", json_string(summary->limit));
    set_ranking(report, &summary->ranking);
    if (summary->scaling.workers > 1)
        json_object_set_new(report, "workers", workers_to_json(&summary->scaling));
    json_object_set_new(report, "entries", entries);
    json_t *pairs = json_array();
    for (size_t i = 0; i < summary->ranking.pair_count; i++)
        json_array_append_new(pairs, pair_to_json(&summary->ranking.pairs[i]));
    json_object_set_new(report, "pairs", pairs);
    json_dumpf(report, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
    fputc('\n', out);
    json_decref(report);
}
