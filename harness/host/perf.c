#include "host/perf.h"

#include "base/mem.h"
#include "host/file.h"
#include "host/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRACEPOINT "events/raw_syscalls/sys_enter/id"

struct host_perf {
    int threads;
    int *fd[HOST_PERF_COUNTERS]; /* one a thread; NULL: not known */
};

static const struct {
    const char *name;
    uint32_t type;
    uint64_t config;
    bool exclude_user, exclude_kernel;
} counters[HOST_PERF_COUNTERS] = {
    [HOST_PERF_SYSCALLS] = {"syscalls", PERF_TYPE_TRACEPOINT, 0, false, false},
    [HOST_PERF_SWITCHES] = {"switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false,
                            false},
    [HOST_PERF_INSTRUCTIONS_USER] = {"instructions_user", PERF_TYPE_HARDWARE,
                                     PERF_COUNT_HW_INSTRUCTIONS, false, true},
    [HOST_PERF_INSTRUCTIONS_KERNEL] = {"instructions_kernel", PERF_TYPE_HARDWARE,
                                       PERF_COUNT_HW_INSTRUCTIONS, true, false},
    [HOST_PERF_CYCLES_USER] = {"cycles_user", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false,
                               true},
    [HOST_PERF_CYCLES_KERNEL] = {"cycles_kernel", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES,
                                 true, false},
};

const char *host_perf_name(enum host_perf_counter counter)
{
    return counters[counter].name;
}

/* A tracefs of this process's own, mounted nowhere (fsopen(2), Linux 5.2): needs CAP_SYS_ADMIN and
 * changes nothing that others see. Returns the descriptor of its root, or -errno. */
static int tracefs_open(void)
{
    int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
    if (context < 0)
        return -errno;
    int root = -1;
    if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        root = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
    int code = errno;
    close(context);
    return root >= 0 ? root : -code;
}

static int read_id(const char *path, uint64_t *id)
{
    char text[32];
    int got = host_file_read(path, text, sizeof text);
    if (got <= 0)
        return got < 0 ? got : -ENODATA;
    *id = strtoull(text, NULL, 10);
    return 0;
}

/* The tracepoint's number on this kernel. -errno of the place that knew most. */
static int tracepoint_id(uint64_t *id)
{
    char path[64];
    int status = read_id("/sys/kernel/tracing/" TRACEPOINT, id);
    if (status == -ENOENT)
        status = read_id("/sys/kernel/debug/tracing/" TRACEPOINT, id);
    if (status != -ENOENT)
        return status;
    int root = tracefs_open();
    if (root < 0)
        return root == -EPERM ? -ENOENT : root;
    snprintf(path, sizeof path, "/proc/self/fd/%d/" TRACEPOINT, root);
    status = read_id(path, id);
    close(root);
    return status;
}

static int counter_open(enum host_perf_counter counter, pid_t thread, uint64_t tracepoint)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = counters[counter].type,
        .config = counter == HOST_PERF_SYSCALLS ? tracepoint : counters[counter].config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .inherit = 1,
        .exclude_user = counters[counter].exclude_user,
        .exclude_kernel = counters[counter].exclude_kernel,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

static void explain_tracefs(int code, char *why, size_t size)
{
    if (code == EACCES || code == EPERM)
        snprintf(why, size,
                 "tracefs may not be read: run as root, or mount -o remount,mode=755 "
                 "/sys/kernel/tracing");
    else
        snprintf(why, size,
                 "tracefs is not there (%s): mount -t tracefs tracefs /sys/kernel/tracing",
                 strerror(code));
}

static void explain(enum host_perf_counter counter, int code, char *why, size_t size)
{
    char level[32] = "";
    host_file_read("/proc/sys/kernel/perf_event_paranoid", level, sizeof level);
    level[strcspn(level, "\n")] = '\0';
    if (code == EACCES || (code == EPERM && atoi(level) > 1))
        snprintf(why, size,
                 "kernel.perf_event_paranoid is %s: sysctl kernel.perf_event_paranoid=%d", level,
                 counters[counter].exclude_kernel ? 2 : 1);
    else if (code == EPERM)
        snprintf(why, size,
                 "perf_event_open is forbidden here: a container needs --cap-add PERFMON and a "
                 "seccomp profile that allows it");
    else if (code == ENOENT || code == EOPNOTSUPP || code == ENODEV)
        snprintf(why, size, "the CPU has no such counter, or the virtual machine hides it");
    else if (code == ENOSYS)
        snprintf(why, size, "the kernel, or a seccomp filter, knows no perf_event_open");
    else
        snprintf(why, size, "perf_event_open: %s", strerror(code));
}

bool host_perf_probe(enum host_perf_counter counter, char *why, size_t why_bytes)
{
    uint64_t tracepoint = 0;
    why[0] = '\0';
    int status = counter == HOST_PERF_SYSCALLS ? tracepoint_id(&tracepoint) : 0;
    if (status != 0) {
        explain_tracefs(-status, why, why_bytes);
        return false;
    }
    int fd = counter_open(counter, 0, tracepoint);
    if (fd < 0) {
        explain(counter, -fd, why, why_bytes);
        return false;
    }
    close(fd);
    return true;
}

/* One descriptor a thread, or NULL if any is refused. */
static int *open_all(enum host_perf_counter counter, const pid_t *threads, int count)
{
    uint64_t tracepoint = 0;
    if (counter == HOST_PERF_SYSCALLS && tracepoint_id(&tracepoint) != 0)
        return NULL;
    int *fds = mem_alloc((size_t)count + 1, sizeof *fds);
    for (int i = 0; i < count; i++) {
        fds[i] = counter_open(counter, threads[i], tracepoint);
        if (fds[i] == -ESRCH)
            continue; /* ended meanwhile */
        if (fds[i] >= 0)
            continue;
        while (i-- > 0)
            if (fds[i] >= 0)
                close(fds[i]);
        free(fds);
        return NULL;
    }
    return fds;
}

struct host_perf *host_perf_open(const pid_t *pids, int count)
{
    pid_t threads[HOST_TREE_MAX];
    int thread_count = host_threads(pids, count, threads);
    struct host_perf *perf = mem_alloc(1, sizeof *perf);
    bool any = false;
    perf->threads = thread_count;
    for (int c = 0; c < HOST_PERF_COUNTERS && thread_count > 0; c++) {
        perf->fd[c] = open_all((enum host_perf_counter)c, threads, thread_count);
        any |= perf->fd[c] != NULL;
    }
    if (any)
        return perf;
    free(perf);
    return NULL;
}

/* Adds one counter's value. False if it was never let run. */
static bool add_value(int fd, double *sum)
{
    struct {
        uint64_t value, enabled_ns, running_ns;
    } now;
    if (read(fd, &now, sizeof now) != (ssize_t)sizeof now)
        return false;
    if (now.running_ns == 0)
        return now.enabled_ns == 0;
    *sum += (double)now.value * ((double)now.enabled_ns / (double)now.running_ns);
    return true;
}

void host_perf_read(const struct host_perf *perf, struct host_perf_counts *counts)
{
    memset(counts, 0, sizeof *counts);
    for (int c = 0; c < HOST_PERF_COUNTERS; c++) {
        counts->known[c] = perf->fd[c] != NULL;
        for (int i = 0; i < perf->threads && counts->known[c]; i++)
            if (perf->fd[c][i] >= 0)
                counts->known[c] = add_value(perf->fd[c][i], &counts->count[c]);
    }
}

void host_perf_close(struct host_perf *perf)
{
    if (perf == NULL)
        return;
    for (int c = 0; c < HOST_PERF_COUNTERS; c++) {
        for (int i = 0; i < perf->threads && perf->fd[c] != NULL; i++)
            if (perf->fd[c][i] >= 0)
                close(perf->fd[c][i]);
        free(perf->fd[c]);
    }
    free(perf);
}
