/* Records made by hand: entries of known rates, so that what a report says of them can be worked
 * out on paper.
 */
#ifndef TESTS_REPORT_MADE_H
#define TESTS_REPORT_MADE_H

#include "record/latency.h"
#include "report/summary.h"
#include "report/views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline json_t *made_entry(const char *name, const char *status)
{
    return json_pack("{s:s, s:s, s:s}", "name", name, "status", status, "hash", "0");
}

static inline json_t *made_twin(const char *of)
{
    char name[64];
    snprintf(name, sizeof name, "%s twin", of);
    json_t *twin = made_entry(name, "twin");
    json_object_set_new(twin, "twin_of", json_string(of));
    return twin;
}

/* A run without entries and lines. */
static inline struct record_data made_record(void)
{
    struct record_data data = {.lines = json_array()};
    data.run = json_pack("{s:i, s:s, s:[s], s:{s:i, s:[i], s:b, s:s, s:s, s:i, s:I}, s:[], "
                         "s:{s:s, s:s}}",
                         "schema", 1, "started", "2026-11-30T20:07:32Z", "argv", "run", "plan",
                         "seed", 1, "hammer_cpus", 1, "one_cpu", 0, "workload", "hello", "summary",
                         "GET /", "connections", 64, "slice_ns", (json_int_t)113000000, "entries",
                         "machine", "cpu_model", "a CPU", "kernel", "Linux 6");
    return data;
}

static inline void made_add(struct record_data *data, json_t *entry)
{
    json_array_append_new(json_object_get(data->run, "entries"), entry);
}

static inline void made_line(struct record_data *data, json_t *line)
{
    json_array_append_new(data->lines, line);
}

/* One second at `rate`, the server's core `busy` (0..1), the hammer's `hammer_busy`. */
static inline json_t *made_slice_of(const char *name, int boot, int block, double rate, double busy,
                                    double hammer_busy)
{
    static struct histogram h;
    const json_int_t second = 1000000000;
    json_int_t window = (json_int_t)((double)second * 1e6 / rate);
    histogram_reset(&h);
    histogram_add(&h, 100000);
    return json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:I, s:i, s:i, s:i, s:I, s:I, s:I, s:I, "
                     "s:i, s:i, s:o}",
                     "type", "slice", "entry", name, "boot", boot, "block", block, "window_ns",
                     window, "valid", 1000000, "bytes_read", (json_int_t)120000000, "wrong", 0,
                     "timed_out", 0, "errors_total", 0, "hammer_user_ns", (json_int_t)0,
                     "hammer_system_ns", (json_int_t)((double)window * hammer_busy),
                     "server_cpu_ns", (json_int_t)((double)window * busy), "rss_peak_bytes",
                     (json_int_t)2000000, "server_user_ticks", 2, "server_system_ticks", 8,
                     "latency", latency_to_json(&h));
}

static inline json_t *made_slice(const char *name, int boot, int block, double rate)
{
    return made_slice_of(name, boot, block, rate, 0.95, 0.7);
}

/* Two blocks a boot at rate * e^(noise of that boot). */
static inline void made_slices(struct record_data *data, const char *name, int boots, double rate,
                               const double *noise)
{
    for (int boot = 0; boot < boots; boot++)
        for (int block = 1; block <= 2; block++)
            made_line(data, made_slice(name, boot, block, rate * exp(noise ? noise[boot] : 0)));
}

static inline void made_end(struct record_data *data)
{
    made_line(data, json_pack("{s:s, s:b}", "type", "end", "interrupted", 0));
}

typedef void made_view(FILE *, const struct record_data *, const struct summary *);

/* What a view prints, to be freed; NULL when there is no summary. */
static inline char *made_print(made_view *view, const struct record_data *data)
{
    struct summary summary;
    struct err err;
    char *text = NULL;
    size_t size = 0;
    if (summary_make(data, &summary, &err) != 0)
        return NULL;
    FILE *out = open_memstream(&text, &size);
    view(out, data, &summary);
    fclose(out);
    summary_free(&summary);
    return text;
}

#endif
