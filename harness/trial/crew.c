#include "trial/crew.h"

#include "base/mem.h"
#include "entry/launch.h"
#include "trial/part.h"

#include <stdlib.h>

bool crew_wanted(const struct plan *plan, const struct entry *entry)
{
    return plan->workers > 1 && entry->ready && entry->status != ENTRY_BROKEN &&
           part_takes(entry, plan->workload) && entry_takes_workers(entry);
}

static char *name_of(const char *entry, unsigned workers)
{
    return mem_format("%s*%u", entry, workers);
}

struct entry crew_make(const struct entry *entry, unsigned workers)
{
    struct entry crew = *entry;
    crew.name = name_of(entry->name, workers);
    return crew;
}

void crew_drop(struct entry *crew)
{
    free(crew->name);
    crew->name = NULL;
}

json_t *crew_describe(const json_t *entry, unsigned workers)
{
    json_t *crew = json_deep_copy(entry);
    const char *name = json_string_value(json_object_get(entry, "name"));
    char *own = name_of(name != NULL ? name : "", workers);
    json_object_set_new(crew, "name", json_string(own));
    json_object_set_new(crew, "workers", json_integer((json_int_t)workers));
    json_object_set_new(crew, "workers_of", json_string(name != NULL ? name : ""));
    json_object_set_new(crew, "status", json_string("workers"));
    free(own);
    return crew;
}
