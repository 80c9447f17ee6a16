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

static json_t *row_to_json(const struct row *row)
{
    json_t *object = json_object();
    set_text(object, "name", row->name);
    set_text(object, "status", row->status);
    set_text(object, "reason", row->reason);
    set_text(object, "output", row->output);
    if (row->rank > 0)
        set_number(object, "rank", row->rank);
    set_number(object, "req_per_s", row->rate_per_s.value);
    set_number(object, "req_per_s_low", row->rate_per_s.low);
    set_number(object, "req_per_s_high", row->rate_per_s.high);
    set_number(object, "share_of_limit", row->share_of_limit.value);
    set_number(object, "share_of_limit_low", row->share_of_limit.low);
    set_number(object, "share_of_limit_high", row->share_of_limit.high);
    set_number(object, "latency_p50_us", row->latency_p50_us);
    set_number(object, "latency_p99_us", row->latency_p99_us);
    set_number(object, "latency_max_us", row->latency_max_us);
    set_number(object, "cpu_us_per_req", row->cpu_us);
    set_number(object, "cpu_user_us_per_req", row->cpu_user_us);
    set_number(object, "cpu_system_us_per_req", row->cpu_system_us);
    set_number(object, "bytes_per_response", row->bytes_per_response);
    set_number(object, "rss_peak_bytes", row->rss_peak_bytes);
    set_number(object, "requests", row->requests);
    set_number(object, "errors", row->errors);
    set_text(object, "verdict", row->verdict);
    set_gate(object, row);
    set_number(object, "server_busy", row->server_busy);
    set_number(object, "hammer_busy", row->hammer_busy);
    set_number(object, "steal", row->steal);
    set_number(object, "foreign", row->foreign);
    if (row->slices > 0) {
        set_number(object, "slices", row->slices);
        set_number(object, "blocks", row->blocks);
        set_number(object, "boots", row->boots);
        set_number(object, "spoilt", row->spoilt);
    }
    return object;
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
    json_object_set_new(report, "entries", entries);
    json_dumpf(report, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(report);
}
