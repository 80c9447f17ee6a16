#include "host/usage.h"

#include "host/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Calls `each` with the id of every thread of `pid`. False if the process is gone. */
static bool each_thread(pid_t pid, void (*each)(pid_t pid, pid_t thread, void *context),
                        void *context)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return false;
    struct dirent *item;
    while ((item = readdir(folder)) != NULL)
        if (isdigit((unsigned char)item->d_name[0]))
            each(pid, (pid_t)atoi(item->d_name), context);
    closedir(folder);
    return true;
}

struct tree {
    pid_t *pids;
    int count;
};

static bool tree_has(const struct tree *tree, pid_t pid)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->pids[i] == pid)
            return true;
    return false;
}

static void add_children(pid_t pid, pid_t thread, void *context)
{
    struct tree *tree = context;
    char path[96];
    char text[4096];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, thread);
    if (host_file_read(path, text, sizeof text) <= 0)
        return;
    char *at = text;
    char *end;
    for (long child; (child = strtol(at, &end, 10)) > 0 && end != at; at = end)
        if (tree->count < HOST_TREE_MAX && !tree_has(tree, (pid_t)child))
            tree->pids[tree->count++] = (pid_t)child;
}

static bool is_zombie(pid_t pid)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (host_file_read(path, text, sizeof text) <= 0)
        return true;
    const char *after = strrchr(text, ')');
    return after == NULL || after[1] == '\0' || after[2] == 'Z' || after[2] == 'X';
}

int host_tree(pid_t root, pid_t pids[HOST_TREE_MAX])
{
    struct tree tree = {.pids = pids, .count = 1};
    pids[0] = root;
    for (int i = 0; i < tree.count; i++)
        each_thread(pids[i], add_children, &tree);
    int living = 0;
    for (int i = 0; i < tree.count; i++)
        if (!is_zombie(pids[i]))
            pids[living++] = pids[i];
    return pids[0] == root ? living : 0;
}

static void add_id(pid_t pid, pid_t thread, void *context)
{
    struct tree *threads = context;
    (void)pid;
    if (threads->count < HOST_TREE_MAX)
        threads->pids[threads->count++] = thread;
}

int host_threads(const pid_t *pids, int count, pid_t threads[HOST_TREE_MAX])
{
    struct tree list = {.pids = threads};
    for (int i = 0; i < count; i++)
        each_thread(pids[i], add_id, &list);
    return list.count;
}

static void add_schedstat(pid_t pid, pid_t thread, void *context)
{
    uint64_t *sum_ns = context;
    char path[96];
    char text[128];
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, thread);
    if (host_file_read(path, text, sizeof text) > 0)
        *sum_ns += strtoull(text, NULL, 10);
}

static uint64_t cpu_time_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0)
        return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
    uint64_t sum_ns = 0;
    each_thread(pid, add_schedstat, &sum_ns);
    return sum_ns;
}

/* "ran waited slices", in ns, ns and times. */
static bool read_wait(const char *path, uint64_t *wait_ns)
{
    char text[128];
    unsigned long long waited;
    if (host_file_read(path, text, sizeof text) <= 0 || sscanf(text, "%*u %llu", &waited) != 1)
        return false;
    *wait_ns = waited;
    return true;
}

bool host_thread_wait_ns(uint64_t *wait_ns)
{
    return read_wait("/proc/thread-self/schedstat", wait_ns);
}

static void add_thread(pid_t pid, pid_t thread, void *context)
{
    struct host_usage *usage = context;
    char path[96];
    char text[4096];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, thread);
    if (host_file_read(path, text, sizeof text) <= 0)
        return;
    uint64_t number;
    usage->threads++;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, thread);
    uint64_t wait_ns;
    if (read_wait(path, &wait_ns)) {
        usage->wait_ns += wait_ns;
        usage->wait_known = true;
    }
    if (host_file_number(text, "voluntary_ctxt_switches", &number))
        usage->switches_voluntary += number;
    if (host_file_number(text, "nonvoluntary_ctxt_switches", &number))
        usage->switches_involuntary += number;
    if (thread != pid)
        return;
    if (host_file_number(text, "VmHWM", &number))
        usage->rss_peak_bytes += number * 1024;
    if (host_file_number(text, "VmRSS", &number))
        usage->rss_bytes += number * 1024;
}

/* utime and stime, fields 14 and 15; the second field, the name, may hold blanks and ")". */
static bool add_stat(pid_t pid, struct host_usage *usage)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (host_file_read(path, text, sizeof text) <= 0)
        return false;
    const char *after = strrchr(text, ')');
    unsigned long long user;
    unsigned long long system;
    char process_state;
    if (after == NULL ||
        sscanf(after + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &process_state,
               &user, &system) != 3 ||
        process_state == 'Z' || process_state == 'X')
        return false;
    usage->user_ticks += user;
    usage->system_ticks += system;
    return true;
}

int host_usage_read(const pid_t *pids, int count, struct host_usage *usage, struct err *err)
{
    *usage = (struct host_usage){0};
    for (int i = 0; i < count; i++) {
        if (!add_stat(pids[i], usage))
            continue;
        usage->processes++;
        usage->cpu_ns += cpu_time_ns(pids[i]);
        each_thread(pids[i], add_thread, usage);
    }
    if (usage->processes == 0)
        return err_set(err, ESRCH, "none of the %d processes lives (first: %d)", count,
                       count > 0 ? (int)pids[0] : 0);
    return 0;
}

int host_core_read(int cpu, struct host_core *core, struct err *err)
{
    char key[32];
    char line[512];
    snprintf(key, sizeof key, "cpu%d ", cpu);
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL)
        return err_set(err, errno, "/proc/stat: %s", strerror(errno));
    int status = -ENODEV;
    while (status != 0 && fgets(line, sizeof line, file) != NULL) {
        unsigned long long v[8];
        if (strncmp(line, key, strlen(key)) != 0 ||
            sscanf(line + strlen(key), "%llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1],
                   &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
            continue;
        *core = (struct host_core){.user = v[0],
                                   .nice = v[1],
                                   .system = v[2],
                                   .idle = v[3],
                                   .iowait = v[4],
                                   .irq = v[5],
                                   .softirq = v[6],
                                   .steal = v[7]};
        status = 0;
    }
    fclose(file);
    return status == 0 ? 0 : err_set(err, ENODEV, "/proc/stat has no CPU %d", cpu);
}
