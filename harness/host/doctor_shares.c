#include "host/doctor_parts.h"

#include "base/clock.h"
#include "base/mem.h"
#include "host/file.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUSY_DOUBT      0.05 /* of a core that should be free */
#define STEAL_DOUBT     0.01
#define PROCESSES_MAX   4096
#define AVAILABLE_DOUBT 0.10 /* of memory; below it the kernel begins to look for more */

/* ---- who else uses the cores */

struct ticks { /* of one line of /proc/stat, proc(5) */
    bool known;
    double busy, steal, all;
};

static struct ticks read_ticks(const char *stat, const char *key)
{
    unsigned long long v[8];
    struct ticks ticks = {0};
    const char *line = stat;
    size_t size = strlen(key);
    while (line != NULL && strncmp(line, key, size) != 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    if (line == NULL || sscanf(line + size, "%llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1],
                               &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
        return ticks;
    ticks.known = true;
    for (int i = 0; i < 8; i++)
        ticks.all += (double)v[i];
    ticks.steal = (double)v[7];
    ticks.busy = ticks.all - ticks.steal - (double)v[3] - (double)v[4];
    return ticks;
}

struct process {
    int pid;
    unsigned long long ticks;
    char name[32];
};

struct snapshot {
    char stat[65536]; /* the CPU lines come first */
    struct process *processes;
    int count;
};

/* Fields 2, 14 and 15; the name is in brackets and may hold any byte. */
static bool read_process(const struct scene *scene, int pid, struct process *process)
{
    char text[1024];
    unsigned long long user;
    unsigned long long system;
    if (!scene_text(scene, text, sizeof text, "/proc/%d/stat", pid))
        return false;
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    if (open == NULL || close == NULL || close < open ||
        sscanf(close + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
               &system) != 2)
        return false;
    *process = (struct process){.pid = pid, .ticks = user + system};
    snprintf(process->name, sizeof process->name, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

static void take_snapshot(const struct scene *scene, struct snapshot *snapshot)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc", scene->root);
    scene_text(scene, snapshot->stat, sizeof snapshot->stat, "/proc/stat");
    snapshot->processes = mem_alloc(PROCESSES_MAX, sizeof *snapshot->processes);
    snapshot->count = 0;
    DIR *folder = opendir(path);
    struct dirent *item;
    while (folder != NULL && (item = readdir(folder)) != NULL)
        if (isdigit((unsigned char)item->d_name[0]) && snapshot->count < PROCESSES_MAX &&
            read_process(scene, atoi(item->d_name), &snapshot->processes[snapshot->count]))
            snapshot->count++;
    if (folder != NULL)
        closedir(folder);
}

static unsigned long long ticks_before(const struct snapshot *before, int pid)
{
    for (int i = 0; i < before->count; i++)
        if (before->processes[i].pid == pid)
            return before->processes[i].ticks;
    return 0;
}

/* The process that used most in between, if it used 5% of a core. */
static void name_greediest(struct host_finding *f, const struct snapshot *before,
                           const struct snapshot *after, uint64_t sample_ns)
{
    const struct process *most = NULL;
    unsigned long long most_ticks = 0;
    for (int i = 0; i < after->count; i++) {
        const struct process *p = &after->processes[i];
        unsigned long long used = p->ticks - ticks_before(before, p->pid);
        if (p->pid != getpid() && used > most_ticks && used <= p->ticks) {
            most = p;
            most_ticks = used;
        }
    }
    double share = (double)most_ticks / (double)sysconf(_SC_CLK_TCK) / ((double)sample_ns / 1e9);
    if (most != NULL && share >= BUSY_DOUBT)
        finding_add(f, "; most by %s, process %d (%.0f%%)", most->name, most->pid, share * 100);
}

static void examine_others(struct scene *scene, const struct snapshot *before,
                           const struct snapshot *after)
{
    struct host_finding *f =
        scene_find(scene, "others",
                   "What else runs on the cores used takes time from server or load generator, and "
                   "their caches.");
    int cores[HOST_SERVERS_MAX + HOST_HAMMERS_MAX];
    int count = scene_cores(scene, cores);
    bool read = false;
    for (int i = 0; i < count && scene->sample_ns > 0; i++) {
        char key[32];
        snprintf(key, sizeof key, "cpu%d ", cores[i]);
        struct ticks a = read_ticks(before->stat, key);
        struct ticks b = read_ticks(after->stat, key);
        if (!a.known || !b.known)
            continue;
        double share = b.all > a.all ? (b.busy - a.busy) / (b.all - a.all) : 0;
        finding_add(f, "%sCPU %d %.0f%% busy", read ? ", " : "", cores[i], share * 100);
        f->doubt |= share >= BUSY_DOUBT;
        read = true;
    }
    if (!read) {
        finding_unknown(f, scene->sample_ns > 0 ? "the cores are not in /proc/stat"
                                                : "the cores were not watched");
        return;
    }
    finding_add(f, " over %.1f s", (double)scene->sample_ns / 1e9);
    name_greediest(f, before, after, scene->sample_ns);
    if (f->doubt)
        finding_remedy(f, "end or pause what runs (top shows it), or give the run other cores: "
                          "taskset -c LIST showdown run");
}

static void examine_steal(struct scene *scene, const struct snapshot *before,
                          const struct snapshot *after)
{
    struct host_finding *f =
        scene_find(scene, "steal",
                   "Time that a hypervisor gave to others; a rate loses it, and a moment of it "
                   "makes a row wrong.");
    struct ticks a = read_ticks(before->stat, "cpu ");
    struct ticks b = read_ticks(after->stat, "cpu ");
    if (!b.known || b.all <= 0) {
        finding_unknown(f, "no steal in /proc/stat");
        return;
    }
    double share = b.steal / b.all;
    double now = b.all > a.all ? (b.steal - a.steal) / (b.all - a.all) : 0;
    if (b.steal <= 0 && scene->hypervisor) {
        finding_unknown(f, "0 since boot on a virtual machine: nothing was taken, or it is not "
                           "reported");
        return;
    }
    f->doubt = share >= STEAL_DOUBT || now >= STEAL_DOUBT;
    finding_say(f, "%.2f%% since boot", share * 100);
    if (scene->sample_ns > 0)
        finding_add(f, ", %.1f%% over the last %.1f s", now * 100, (double)scene->sample_ns / 1e9);
    if (f->doubt)
        finding_remedy(f, "a guest with dedicated cores, or another hour; CPU time per request "
                          "suffers less than req/s");
}

/* Watched cores say more than a mean over the last minute, which holds the build just before. */
static void examine_load(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "load",
        "Processes that ran or wanted to, on average; what stays above the cores' number "
        "takes turns with the run.");
    char line[128];
    double one;
    double five;
    double fifteen;
    if (!scene_line(scene, line, sizeof line, "/proc/loadavg") ||
        sscanf(line, "%lf %lf %lf", &one, &five, &fifteen) != 3) {
        finding_unknown(f, "no /proc/loadavg");
        return;
    }
    f->doubt = scene->sample_ns == 0 && one >= scene->cpus->allowed_count;
    finding_say(f, "%.2f over 1 min, %.2f over 5, %.2f over 15, for %d CPUs", one, five, fifteen,
                scene->cpus->allowed_count);
    if (f->doubt)
        finding_remedy(f, "wait until it has fallen: cat /proc/loadavg");
}

/* ---- containers and control groups */

static bool is_there(const struct scene *scene, const char *path)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", scene->root, path);
    return access(whole, F_OK) == 0;
}

static void examine_container(struct scene *scene)
{
    struct host_finding *f =
        scene_find(scene, "container",
                   "Processes outside are not seen from within, and other containers share the "
                   "cores.");
    char kind[64] = "";
    if (!scene_line(scene, kind, sizeof kind, "/run/systemd/container")) {
        if (is_there(scene, "/.dockerenv"))
            snprintf(kind, sizeof kind, "docker");
        else if (is_there(scene, "/run/.containerenv"))
            snprintf(kind, sizeof kind, "podman");
    }
    if (kind[0] != '\0')
        finding_say(f, "%s", kind);
    else
        finding_unknown(f, "no mark of one (/.dockerenv, /run/.containerenv, "
                           "/run/systemd/container)");
}

static void examine_seccomp(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "seccomp",
        "A filter runs at each system call of every server, and weighs on an entry by its "
        "calls.");
    char status[4096];
    uint64_t mode;
    uint64_t filters;
    if (!scene_text(scene, status, sizeof status, "/proc/self/status") ||
        !host_file_number(status, "Seccomp", &mode)) {
        finding_unknown(f, "no Seccomp in /proc/self/status");
        return;
    }
    finding_say(f, mode == 2 ? "filtered" : "not filtered");
    if (mode != 2)
        return;
    if (host_file_number(status, "Seccomp_filters", &filters))
        finding_add(f, ", %llu filters", (unsigned long long)filters);
    f->doubt = true;
    finding_remedy(f, "docker run --security-opt seccomp=unconfined");
}

/* The group of this process: in version 2 the line "0::PATH", in version 1 that of the controller
 * `cpu` (cgroups(7)). */
static bool own_group(const char *groups, bool second, char *path, size_t size)
{
    for (const char *line = groups; line != NULL && *line != '\0';) {
        const char *names = strchr(line, ':');
        const char *at = names != NULL ? strchr(names + 1, ':') : NULL;
        if (at == NULL)
            return false;
        const char *cpu = strstr(names, "cpu");
        while (cpu != NULL && cpu < at &&
               !((cpu[-1] == ':' || cpu[-1] == ',') && (cpu[3] == ',' || cpu[3] == ':')))
            cpu = strstr(cpu + 1, "cpu");
        bool wanted = second ? line[0] == '0' && at == names + 1 : cpu != NULL && cpu < at;
        if (wanted) {
            snprintf(path, size, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
            return true;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return false;
}

struct quota {
    bool seen;   /* a file that would hold one */
    double cpus; /* 0: none */
    uint64_t throttled;
};

static void read_quota(const struct scene *scene, const char *folder, bool second,
                       struct quota *quota)
{
    char text[512];
    double cpus = 0;
    long long limit;
    long long period;
    if (second && scene_line(scene, text, sizeof text, "%s/cpu.max", folder)) {
        quota->seen = true;
        if (sscanf(text, "%lld %lld", &limit, &period) == 2 && period > 0)
            cpus = (double)limit / (double)period;
    }
    if (!second && scene_number(scene, &limit, "%s/cpu.cfs_quota_us", folder) &&
        scene_number(scene, &period, "%s/cpu.cfs_period_us", folder)) {
        quota->seen = true;
        cpus = limit > 0 && period > 0 ? (double)limit / (double)period : 0;
    }
    if (cpus <= 0 || (quota->cpus > 0 && cpus >= quota->cpus))
        return;
    quota->cpus = cpus;
    quota->throttled = 0;
    const char *at = NULL;
    if (scene_text(scene, text, sizeof text, "%s/cpu.stat", folder))
        at = strstr(text, "nr_throttled ");
    if (at != NULL)
        quota->throttled = strtoull(at + strlen("nr_throttled "), NULL, 10);
}

/* A quota on any group above holds too. Where the path is one of the host, unseen from a container,
 * only the root of what is mounted is there. */
static void walk_up(const struct scene *scene, const char *mount, const char *group, bool second,
                    struct quota *quota)
{
    char path[512];
    snprintf(path, sizeof path, "%s", group);
    for (;;) {
        char folder[640];
        char *slash = strrchr(path, '/');
        snprintf(folder, sizeof folder, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
        read_quota(scene, folder, second, quota);
        if (slash == NULL || path[1] == '\0')
            return;
        slash[slash == path ? 1 : 0] = '\0';
    }
}

static void examine_quota(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "quota",
        "A quota stops all of a container's processes for the rest of each 0.1 s once it is used "
        "up: rates and tails show the quota.");
    char groups[4096];
    char path[512];
    struct quota quota = {0};
    if (scene_text(scene, groups, sizeof groups, "/proc/self/cgroup")) {
        if (own_group(groups, true, path, sizeof path)) {
            walk_up(scene, "/sys/fs/cgroup", path, true, &quota);
            walk_up(scene, "/sys/fs/cgroup/unified", path, true, &quota);
        }
        if (own_group(groups, false, path, sizeof path)) {
            walk_up(scene, "/sys/fs/cgroup/cpu", path, false, &quota);
            walk_up(scene, "/sys/fs/cgroup/cpu,cpuacct", path, false, &quota);
        }
    }
    if (!quota.seen) {
        finding_unknown(f, "no cpu.max or cpu.cfs_quota_us of this process's control group");
        return;
    }
    f->doubt = quota.cpus > 0;
    if (!f->doubt) {
        finding_say(f, "none");
        return;
    }
    finding_say(f, "%.2f CPUs' worth, used up %llu times so far", quota.cpus,
                (unsigned long long)quota.throttled);
    finding_remedy(f, "docker run --cpuset-cpus 0,1 instead of --cpus; or echo max into the "
                      "group's cpu.max");
}

/* ---- memory */

static void examine_swap(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "swap",
        "A machine short of memory waits for its disk, and whoever was idle waits first.");
    char text[4096];
    uint64_t total;
    uint64_t free_kib;
    uint64_t memory;
    uint64_t available;
    if (!scene_text(scene, text, sizeof text, "/proc/meminfo") ||
        !host_file_number(text, "SwapTotal", &total) ||
        !host_file_number(text, "SwapFree", &free_kib)) {
        finding_unknown(f, "no SwapTotal in /proc/meminfo");
        return;
    }
    if (total == 0)
        finding_say(f, "none");
    else
        finding_say(f, "%llu of %llu MiB used", (unsigned long long)(total - free_kib) / 1024,
                    (unsigned long long)total / 1024);
    if (!host_file_number(text, "MemTotal", &memory) ||
        !host_file_number(text, "MemAvailable", &available) || memory == 0)
        return;
    f->doubt = (double)available < AVAILABLE_DOUBT * (double)memory;
    finding_add(f, "; %llu of %llu MiB of memory available", (unsigned long long)available / 1024,
                (unsigned long long)memory / 1024);
    if (f->doubt)
        finding_remedy(f, "end what holds the memory (top, then M); sudo swapoff -a once it fits");
}

/* "always [madvise] never" */
static void examine_huge_pages(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "huge pages",
        "With `always` the peak MiB hold whole pages of 2 MiB, and the kernel may stop a server to "
        "make one.");
    char line[128];
    const char *open = NULL;
    if (scene_line(scene, line, sizeof line, "/sys/kernel/mm/transparent_hugepage/enabled"))
        open = strchr(line, '[');
    if (open == NULL) {
        finding_unknown(f, "no /sys/kernel/mm/transparent_hugepage/enabled");
        return;
    }
    finding_say(f, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
    if (strncmp(open, "[always]", 8) == 0)
        finding_remedy(f, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

void doctor_of_shares(struct scene *scene)
{
    struct snapshot *before = mem_alloc(1, sizeof *before);
    struct snapshot *after = mem_alloc(1, sizeof *after);
    take_snapshot(scene, before);
    clock_sleep_until_ns(clock_now_ns() + scene->sample_ns);
    take_snapshot(scene, after);
    examine_load(scene);
    examine_others(scene, before, after);
    examine_steal(scene, before, after);
    examine_container(scene);
    examine_seccomp(scene);
    examine_quota(scene);
    examine_swap(scene);
    examine_huge_pages(scene);
    free(before->processes);
    free(after->processes);
    free(before);
    free(after);
}
