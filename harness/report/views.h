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

/* One object: schema, run, machine, workload, limit, and entries; each entry has name, status, and
 * of these what is known: reason, rank, req_per_s, req_per_s_low, req_per_s_high (95%),
 * share_of_limit (1.0 is the whole limit) with _low and _high, latency_p50_us, latency_p99_us,
 * latency_max_us (closed-loop, raw), cpu_us_per_req, cpu_user_us_per_req, cpu_system_us_per_req,
 * syscalls_per_req, switches_per_req, instructions_per_req and its parts _user and _kernel,
 * cycles_user_per_req, cycles_kernel_per_req, bytes_per_response, rss_peak_bytes, requests, errors,
 * http_passed, http_total, http_failed (ids of cases of the contract), http_waived (id to reason),
 * verdict (its first), verdicts (all that hold), and what they were made of: server_busy,
 * hammer_busy, steal, foreign, server_waited, hammer_waited, server_foreign, hammer_foreign,
 * server_missing, hammer_missing, throttled, gaps (shares, 0..1), little (1 is right),
 * drift_change, drift_p, drift_within ("run", "boots"); slices, blocks, boots, spoilt, output. */
void view_json(FILE *out, const struct record_data *data, const struct summary *summary);

#endif
