#include "trial/plan.h"
#include "stats/random.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

uint64_t plan_slice_ns(unsigned connections)
{
    return 100 * UINT64_C(1000000) + connections * UINT64_C(200000);
}

uint64_t plan_settle_ns(unsigned connections)
{
    return 20 * UINT64_C(1000000) + connections * UINT64_C(50000);
}

/* All cores that the workers may use stand in server_cpus, if they are several. */
static void add_workers(json_t *json, const struct plan *plan)
{
    int cpus[HOST_SERVERS_MAX];
    int count = host_cpu_servers(&plan->cpus, cpus);
    json_t *list = json_array();
    json_object_set_new(json, "workers", json_integer((json_int_t)plan->workers));
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(cpus[i]));
    if (count > 1)
        json_object_set(json, "server_cpus", list);
    json_decref(list);
}

json_t *plan_to_json(const struct plan *plan)
{
    json_t *hammer_cpus = json_array();
    for (int i = 0; i < plan->cpus.hammer_count; i++)
        json_array_append_new(hammer_cpus, json_integer(plan->cpus.hammer[i]));
    json_t *json = json_pack(
        "{s:s, s:s, s:i, s:i, s:b, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:i, s:o, s:i, "
        "s:b, s:b}",
        "workload", plan->workload->name, "summary", plan->workload->summary, "connections",
        (int)plan->connections, "pipeline", (int)plan->workload->pipeline, "close_each",
        plan->workload->close_each, "boots", (int)plan->boots, "seed", (json_int_t)plan->seed,
        "budget_ns", (json_int_t)plan->budget_ns, "slice_ns", (json_int_t)plan->slice_ns,
        "settle_ns", (json_int_t)plan->settle_ns, "timeout_ns", (json_int_t)plan->timeout_ns,
        "ready_ns", (json_int_t)plan->ready_ns, "warm_max_ns", (json_int_t)plan->warm_max_ns,
        "engine", hammer_engine_name(plan->engine), "server_cpu", plan->cpus.server, "hammer_cpus",
        hammer_cpus, "cpus_allowed", plan->cpus.allowed_count, "one_cpu", plan->cpus.shared,
        "smt_siblings", plan->cpus.siblings);
    if (plan->burn_ns > 0)
        json_object_set_new(json, "burn_ns", json_integer((json_int_t)plan->burn_ns));
    if (plan->precision > 0)
        json_object_set_new(json, "precision", json_real(plan->precision));
    if (plan->workers > 1)
        add_workers(json, plan);
    if (plan->twin[0] != '\0')
        json_object_set_new(json, "twin", json_string(plan->twin));
    return json;
}

static enum hammer_engine engine_of(const char *name)
{
    for (int engine = HAMMER_AUTO; engine <= HAMMER_URING; engine++)
        if (strcmp(hammer_engine_name((enum hammer_engine)engine), name) == 0)
            return (enum hammer_engine)engine;
    return HAMMER_AUTO;
}

/* Of a record that was written by no run: what would end in a division by zero, or in a table that
 * blames the entries. */
static bool in_range(const struct plan *plan, size_t hammer_cpus, size_t server_cpus)
{
    const uint64_t most_ns = UINT64_C(1000000000000000000); /* as the flags take */
    const uint64_t spans_ns[] = {plan->budget_ns, plan->slice_ns, plan->timeout_ns, plan->ready_ns};
    for (size_t i = 0; i < sizeof spans_ns / sizeof spans_ns[0]; i++)
        if (spans_ns[i] == 0 || spans_ns[i] > most_ns)
            return false;
    return plan->connections >= 1 && plan->connections <= HAMMER_CONNECTIONS_MAX &&
           plan->boots >= 1 && plan->boots <= PLAN_BOOTS_MAX && plan->settle_ns <= most_ns &&
           plan->precision >= 0 && plan->precision < 1 && plan->warm_max_ns <= most_ns &&
           plan->burn_ns <= most_ns && hammer_cpus >= 1 && hammer_cpus <= HOST_HAMMERS_MAX &&
           plan->workers >= 1 && plan->workers <= PLAN_WORKERS_MAX &&
           server_cpus <= HOST_SERVERS_MAX;
}

int plan_from_json(const json_t *json, struct plan *plan, struct err *err)
{
    const char *workload;
    const char *engine;
    const char *twin = "";
    json_t *hammer_cpus;
    int connections, boots, shared, siblings;
    int workers = 1;
    json_int_t seed, budget, slice, settle, timeout, ready, warm;
    json_error_t why;
    memset(plan, 0, sizeof *plan);
    if (json_unpack_ex((json_t *)json, &why, 0,
                       "{s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:i, s:o, s:i, "
                       "s:b, s:b, s?F, s?s, s?i}",
                       "workload", &workload, "connections", &connections, "boots", &boots, "seed",
                       &seed, "budget_ns", &budget, "slice_ns", &slice, "settle_ns", &settle,
                       "timeout_ns", &timeout, "ready_ns", &ready, "warm_max_ns", &warm, "engine",
                       &engine, "server_cpu", &plan->cpus.server, "hammer_cpus", &hammer_cpus,
                       "cpus_allowed", &plan->cpus.allowed_count, "one_cpu", &shared,
                       "smt_siblings", &siblings, "precision", &plan->precision, "twin", &twin,
                       "workers", &workers) != 0)
        return err_set(err, EINVAL, "the record's plan can't be read: %s", why.text);
    plan->workload = workload_find(workload, err);
    if (plan->workload == NULL)
        return -EINVAL;
    plan->connections = (unsigned)connections;
    plan->boots = (unsigned)boots;
    plan->workers = (unsigned)workers;
    plan->seed = (uint64_t)seed;
    plan->budget_ns = (uint64_t)budget;
    plan->slice_ns = (uint64_t)slice;
    plan->settle_ns = (uint64_t)settle;
    plan->timeout_ns = (uint64_t)timeout;
    plan->ready_ns = (uint64_t)ready;
    plan->warm_max_ns = (uint64_t)warm;
    plan->engine = engine_of(engine);
    plan->burn_ns = (uint64_t)json_integer_value(json_object_get(json, "burn_ns"));
    snprintf(plan->twin, sizeof plan->twin, "%s", twin);
    plan->cpus.shared = shared != 0;
    plan->cpus.siblings = siblings != 0;
    const json_t *server_cpus = json_object_get(json, "server_cpus");
    if (!in_range(plan, json_array_size(hammer_cpus), json_array_size(server_cpus)))
        return err_set(err, EINVAL, "the record's plan holds a number that no plan has");
    for (size_t i = 0; i < json_array_size(hammer_cpus); i++)
        plan->cpus.hammer[plan->cpus.hammer_count++] =
            (int)json_integer_value(json_array_get(hammer_cpus, i));
    for (size_t i = 1; i < json_array_size(server_cpus); i++)
        plan->cpus.more[plan->cpus.more_count++] =
            (int)json_integer_value(json_array_get(server_cpus, i));
    return 0;
}

void plan_order(const struct plan *plan, unsigned boot, unsigned block, size_t *order, size_t count)
{
    struct random random;
    random_seed(&random, plan->seed + UINT64_C(1000003) * boot + block);
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    random_shuffle(&random, order, count);
}
