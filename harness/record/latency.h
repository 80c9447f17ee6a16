/* Latency histograms as JSON: the buckets that are not empty as [value in ns, count] pairs, beside
 * the sum, the extremes and what lay beyond the histogram's range, so that slices can be merged.
 */
#ifndef RECORD_LATENCY_H
#define RECORD_LATENCY_H

#include "stats/histogram.h"

#include <jansson.h>

json_t *latency_to_json(const struct histogram *h);

/* Adds what `json` (NULL: nothing) holds to `h`. */
void latency_add(const json_t *json, struct histogram *h);

#endif
