/* The views of a summary: the table for a terminal, one JSON object, Markdown and CSV. Each is made
 * of the record alone and comes out the same every time.
 */
#ifndef REPORT_VIEWS_H
#define REPORT_VIEWS_H

#include "record/record.h"
#include "report/summary.h"

#include <stdio.h>

void view_table(FILE *out, const struct record_data *data, const struct summary *summary);
void view_markdown(FILE *out, const struct record_data *data, const struct summary *summary);
void view_csv(FILE *out, const struct summary *summary);

/* One object: schema, run (with ended_by, and precision as report/precision.h has it), machine,
 * workload, limit, and entries; each entry has name, status, and of these what is known: reason,
 * rank, req_per_s, req_per_s_low, req_per_s_high (95%), share_of_limit (1.0 is the whole limit)
 * with _low and _high, latency_p50_us, latency_p99_us, latency_max_us (closed-loop, raw),
 * cpu_us_per_req, cpu_user_us_per_req, cpu_system_us_per_req, bytes_per_response, rss_peak_bytes,
 * requests, errors, verdict, http_passed, http_total, http_failed (ids of cases of the contract),
 * http_waived (id to reason), server_busy, hammer_busy, steal, foreign (shares, 0..1), slices,
 * blocks, boots, spoilt, output. */
void view_json(FILE *out, const struct record_data *data, const struct summary *summary);

#endif
