#include "host/throttle.h"

#include "host/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind "key " at the start of a line. */
static bool number_of(const char *text, const char *key, uint64_t *number)
{
    size_t size = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, size) != 0 || line[size] != ' ')
            continue;
        *number = strtoull(line + size + 1, NULL, 10);
        return true;
    }
    return false;
}

bool host_throttle_add(const char *cpu_stat, struct host_throttle *throttle)
{
    uint64_t times, took;
    if (!number_of(cpu_stat, "nr_throttled", &times))
        return false;
    throttle->times += times;
    if (number_of(cpu_stat, "throttled_usec", &took))
        throttle->ns += took * 1000;
    else if (number_of(cpu_stat, "throttled_time", &took))
        throttle->ns += took;
    return true;
}

/* Reads cpu.stat of mount/path and of each group above it, up to the mount. Inside a container the
 * path may be one of the host's, of which only the last part, or nothing, can be seen. */
static bool add_groups(const char *mount, char *path, struct host_throttle *throttle)
{
    bool known = false;
    for (;;) {
        char file[1024];
        char text[1024];
        snprintf(file, sizeof file, "%s%s/cpu.stat", mount, path);
        if (host_file_read(file, text, sizeof text) > 0)
            known |= host_throttle_add(text, throttle);
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return known;
        *slash = '\0';
    }
}

/* Whether `name` is a member of the list of controllers, which commas part. */
static bool lists(const char *controllers, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, size) == 0 && (at[size] == ',' || at[size] == '\0'))
            return true;
    }
    return false;
}

/* A line of /proc/self/cgroup: "number:controllers:path" (cgroups(7)). */
static bool add_line(char *line, struct host_throttle *throttle)
{
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL)
        return false;
    *path++ = '\0';
    if (strcmp(path, "/") == 0)
        *path = '\0';
    controllers++;
    if (*controllers == '\0')
        return add_groups("/sys/fs/cgroup", path, throttle);
    return lists(controllers, "cpu") && add_groups("/sys/fs/cgroup/cpu", path, throttle);
}

bool host_throttle_read(struct host_throttle *throttle)
{
    char text[4096];
    char *rest = text;
    bool known = false;
    *throttle = (struct host_throttle){0};
    if (host_file_read("/proc/self/cgroup", text, sizeof text) <= 0)
        return false;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        known |= add_line(line, throttle);
    return known;
}
