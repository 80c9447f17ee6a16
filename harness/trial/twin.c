#include "trial/twin.h"

#include "base/mem.h"
#include "stats/random.h"

#include <stdlib.h>
#include <string.h>

const struct entry *twin_choose(const struct plan *plan, const struct entry *const *fit,
                                size_t count)
{
    struct random random;
    if (count == 0)
        return NULL;
    if (strcmp(plan->twin, PLAN_TWIN_DRAWN) == 0) {
        random_seed(&random, plan->seed ^ UINT64_C(0x7477696E)); /* apart from the orders' draws */
        return fit[random_below(&random, count)];
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(fit[i]->name, plan->twin) == 0)
            return fit[i];
    return NULL;
}

struct entry twin_make(const struct entry *entry)
{
    struct entry twin = *entry;
    twin.name = mem_format("%s twin", entry->name);
    return twin;
}

void twin_drop(struct entry *twin)
{
    free(twin->name);
    twin->name = NULL;
}

json_t *twin_describe(const json_t *entry)
{
    json_t *twin = json_deep_copy(entry);
    const char *name = json_string_value(json_object_get(entry, "name"));
    char *own = mem_format("%s twin", name != NULL ? name : "");
    json_object_set_new(twin, "name", json_string(own));
    json_object_set_new(twin, "twin_of", json_string(name != NULL ? name : ""));
    json_object_set_new(twin, "status", json_string("twin"));
    free(own);
    return twin;
}

const char *twin_find(const json_t *run)
{
    size_t index;
    json_t *entry;
    json_array_foreach(json_object_get(run, "entries"), index, entry)
    {
        const char *of = json_string_value(json_object_get(entry, "twin_of"));
        if (of != NULL)
            return of;
    }
    return NULL;
}
