#include "report/settings.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct setting {
    const char *name;
    const char *section; /* of run.json; NULL: of the first slice */
    const char *key;
    const char *remedy;
} settings[] = {
    {"hostname", "machine", "hostname", "measure both on one machine"},
    {"cpu_model", "machine", "cpu_model", "measure both on one machine"},
    {"cpus_online", "machine", "cpus_online", "give both as many CPUs"},
    {"cpus_allowed", "machine", "cpus_allowed", "give both as many CPUs (taskset, cpuset)"},
    {"hypervisor", "machine", "hypervisor", "measure both on one machine"},
    {"container", "machine", "container", "measure both in the container, or both outside"},
    {"os", "machine", "os", "measure both on one system"},
    {"kernel", "machine", "kernel", "boot one kernel for both"},
    {"libc", "machine", "libc", "measure both with one libc"},
    {"mitigations", "machine", "mitigations", "boot with one set of mitigations"},
    {"clocksource", "machine", "clocksource", "set one clock source"},
    {"governor", "machine", "governor", "set one cpufreq governor"},
    {"driver", "machine", "driver", "use one cpufreq driver"},
    {"turbo", "machine", "turbo", "turbo on for both, or off"},
    {"smt", "machine", "smt", "SMT on for both, or off"},
    {"workload", "plan", "workload", "run both with one -w"},
    {"connections", "plan", "connections", "run both with one -c"},
    {"pipeline", "plan", "pipeline", "run both with one -w"},
    {"close_each", "plan", "close_each", "run both with one -w"},
    {"slice", "plan", "slice_ns", "run both with one --slice"},
    {"settle", "plan", "settle_ns", "run both with one -c, of one version"},
    {"engine", "plan", "engine", "run both with one --engine"},
    {"engine_used", NULL, "engine", "run both with --engine epoll"},
    {"server_cpu", "plan", "server_cpu", "run both with one --server-cpus"},
    {"hammer_cpus", "plan", "hammer_cpus", "run both with one --hammer-cpus"},
    {"workers", "plan", "workers", "run both with one --workers"},
    {"server_cpus", "plan", "server_cpus", "run both with one --server-cpus"},
    {"one_cpu", "plan", "one_cpu", "give both two CPUs"},
    {"smt_siblings", "plan", "smt_siblings", "give both two cores"},
};

enum { SETTINGS = sizeof settings / sizeof settings[0] };

bool settings_is_known(const char *name)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (strcmp(settings[i].name, name) == 0)
            return true;
    return false;
}

const char *settings_names(void)
{
    static char names[512];
    size_t used = 0;
    for (size_t i = 0; i < SETTINGS && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                                 settings[i].name);
    return names;
}

static const json_t *first_slice(const struct record_data *data)
{
    size_t index;
    json_t *line;
    json_array_foreach(data->lines, index, line)
    {
        const char *type = json_string_value(json_object_get(line, "type"));
        if (type != NULL && strcmp(type, "slice") == 0)
            return line;
    }
    return NULL;
}

static const json_t *value_of(const struct record_data *data, const struct setting *setting)
{
    const json_t *section =
        setting->section != NULL ? json_object_get(data->run, setting->section) : first_slice(data);
    return json_object_get(section, setting->key);
}

/* What a record says by lacking the key. */
static const char *without(const char *name)
{
    if (strcmp(name, "workers") == 0)
        return "1";
    return strcmp(name, "server_cpus") == 0 ? "one" : "unknown";
}

static json_t *as_text(const char *name, const json_t *value)
{
    if (value == NULL)
        return json_string(without(name));
    if (json_is_string(value))
        return json_string(json_string_value(value));
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    json_t *string = json_string(text);
    free(text);
    return string;
}

static void note(json_t *differences, const char *name, const json_t *a, const json_t *b,
                 const char *remedy)
{
    json_array_append_new(differences,
                          json_pack("{s:s, s:o, s:o, s:s}", "name", name, "a", as_text(name, a),
                                    "b", as_text(name, b), "remedy", remedy));
}

/* Of two objects only the members that differ, each by itself. */
static void note_members(json_t *differences, const struct setting *setting, const json_t *a,
                         const json_t *b)
{
    json_t *all = json_copy((json_t *)(uintptr_t)a);
    const char *key;
    json_t *unused;
    json_object_update_missing(all, (json_t *)(uintptr_t)b);
    json_object_foreach(all, key, unused)
    {
        const json_t *left = json_object_get(a, key);
        const json_t *right = json_object_get(b, key);
        char *name = mem_format("%s.%s", setting->name, key);
        if (!json_equal(left, right))
            note(differences, name, left, right, setting->remedy);
        free(name);
    }
    json_decref(all);
}

static bool is_allowed(const char *name, char *const *allowed)
{
    for (size_t i = 0; allowed != NULL && allowed[i] != NULL; i++)
        if (strcmp(allowed[i], name) == 0)
            return true;
    return false;
}

json_t *settings_differences(const struct record_data *a, const struct record_data *b,
                             char *const *allowed)
{
    json_t *differences = json_array();
    for (size_t i = 0; i < SETTINGS; i++) {
        const json_t *left = value_of(a, &settings[i]);
        const json_t *right = value_of(b, &settings[i]);
        if (left == right || json_equal(left, right) || is_allowed(settings[i].name, allowed))
            continue;
        if (json_is_object(left) && json_is_object(right))
            note_members(differences, &settings[i], left, right);
        else
            note(differences, settings[i].name, left, right, settings[i].remedy);
    }
    return differences;
}
