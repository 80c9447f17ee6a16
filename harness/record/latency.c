#include "record/latency.h"

json_t *latency_to_json(const struct histogram *h)
{
    json_t *buckets = json_array();
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        if (h->buckets[i] > 0)
            json_array_append_new(buckets, json_pack("[I, I]", (json_int_t)histogram_value_ns(i),
                                                     (json_int_t)h->buckets[i]));
    return json_pack("{s:I, s:I, s:I, s:I, s:o}", "sum_ns", (json_int_t)h->sum_ns, "min_ns",
                     (json_int_t)h->min_ns, "max_ns", (json_int_t)h->max_ns, "overflow",
                     (json_int_t)h->overflow, "buckets", buckets);
}

void latency_add(const json_t *json, struct histogram *h)
{
    const json_t *buckets = json_object_get(json, "buckets");
    uint64_t overflow = (uint64_t)json_integer_value(json_object_get(json, "overflow"));
    uint64_t min = (uint64_t)json_integer_value(json_object_get(json, "min_ns"));
    uint64_t max = (uint64_t)json_integer_value(json_object_get(json, "max_ns"));
    if (json == NULL)
        return;
    for (size_t i = 0; i < json_array_size(buckets); i++) {
        const json_t *pair = json_array_get(buckets, i);
        uint64_t value = (uint64_t)json_integer_value(json_array_get(pair, 0));
        uint64_t count = (uint64_t)json_integer_value(json_array_get(pair, 1));
        if (value >= HISTOGRAM_LIMIT_NS)
            continue;
        h->buckets[histogram_bucket(value)] += count;
        h->count += count;
    }
    h->count += overflow;
    h->overflow += overflow;
    h->sum_ns += (uint64_t)json_integer_value(json_object_get(json, "sum_ns"));
    h->min_ns = min < h->min_ns ? min : h->min_ns;
    h->max_ns = max > h->max_ns ? max : h->max_ns;
}
