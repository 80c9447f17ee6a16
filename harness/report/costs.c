#include "report/costs.h"

#include <math.h>

static const char *const keys[COST_KINDS] = {
    [COST_SYSCALLS] = "syscalls",
    [COST_INSTRUCTIONS_USER] = "instructions_user",
    [COST_INSTRUCTIONS_KERNEL] = "instructions_kernel",
    [COST_CYCLES_USER] = "cycles_user",
    [COST_CYCLES_KERNEL] = "cycles_kernel",
    [COST_SWITCHES_VOLUNTARY] = "switches_voluntary",
    [COST_SWITCHES_INVOLUNTARY] = "switches_involuntary",
};

const char *costs_key(enum cost kind)
{
    return keys[kind];
}

void costs_add(struct costs *costs, const json_t *line)
{
    for (int kind = 0; kind < COST_KINDS; kind++) {
        const json_t *count = json_object_get(line, keys[kind]);
        if (!json_is_number(count))
            continue;
        costs->count[kind] += json_number_value(count);
        costs->valid[kind] += json_number_value(json_object_get(line, "valid"));
    }
}

double costs_per_request(const struct costs *costs, enum cost kind)
{
    return costs->valid[kind] > 0 ? costs->count[kind] / costs->valid[kind] : NAN;
}
