/* The views of a summary: the table for a terminal, one JSON object, Markdown and CSV. Each is made
 * of the record alone and comes out the same every time.
 */
#ifndef REPORT_VIEWS_H
#define REPORT_VIEWS_H

#include "record/record.h"
#include "report/summary.h"

#include <stdbool.h>
#include <stdio.h>

void view_table(FILE *out, const struct record_data *data, const struct summary *summary);
void view_markdown(FILE *out, const struct record_data *data, const struct summary *summary);

/* A line an entry: rank, entry, status, req_per_s … in the units of view_json; what is not known is
 * empty. rank_tied, rank_provisional and inconclusive are true or false. */
void view_csv(FILE *out, const struct summary *summary);

/* The pairs of ranked entries, each a line: behind a table after an empty line, or as CSV: upper,
 * lower, ratio, ratio_low, ratio_high (95%), p, p_adjusted (Holm), outranks, boots. */
void view_pairs(FILE *out, const struct summary *summary, bool markdown);
void view_pairs_csv(FILE *out, const struct summary *summary);

/* One object: schema, run (with ended_by, and precision as report/precision.h has it), machine,
 * workload, limit, inconclusive (with inconclusive_reason when true), ranks_provisional,
 * rank_boots_needed (the fewest that can tell so many pairs apart), delta (0.01: what a ratio must
 * exceed to count), twin, workers (of a run with --workers, as report/workers.h has it), entries,
 * pairs.
 *
 * Each entry has name, status, workers (1 but for rows of the status "workers"), and of these what
 * is known: workers_of (the entry's row of one worker), server_cores (it could use), reason, rank,
 * rank_tied, req_per_s, req_per_s_low, req_per_s_high (95%), share_of_limit (1.0 is the whole
 * limit) with _low and _high, latency_p50_us, latency_p99_us, latency_max_us (closed-loop, raw),
 * cpu_us_per_req, cpu_user_us_per_req, cpu_system_us_per_req, syscalls_per_req,
 * instructions_user_per_req, instructions_kernel_per_req, cycles_user_per_req,
 * cycles_kernel_per_req, switches_voluntary_per_req, switches_involuntary_per_req, and the sums
 * instructions_per_req, cycles_per_req, switches_per_req; bytes_per_response, rss_peak_bytes,
 * requests, errors, verdict, verdicts (all that hold), http_passed, http_total, http_failed (ids of
 * cases of the contract), http_waived (id to reason), what the verdicts are made of
 * (report/verdict.h): server_busy, hammer_busy, steal, foreign, server_waited, hammer_waited,
 * server_foreign, hammer_foreign, server_missing, hammer_missing, throttled, gaps (shares, 0..1),
 * little (1 is right), drift_change, drift_p, drift_within ("run", "boots"); slices, blocks, boots,
 * spoilt, output.
 *
 * twin, if there was one: entry, ratio (twin/entry), ratio_low, ratio_high (95%), p, differs,
 * delta, boots; or entry and reason when there is no comparison. Each of pairs: upper, lower, ratio
 * (upper/lower, 1 or more), ratio_low, ratio_high, p, p_adjusted, outranks, boots. */
void view_json(FILE *out, const struct record_data *data, const struct summary *summary);

#endif
