#include "host/doctor_parts.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_SPARE   64   /* beside connections: more than the harness and any entry hold */
#define FILES_DOUBT   1100 /* the classic load is a thousand connections */
#define BACKLOG_DOUBT 128  /* the load generator has up to 96 connections under way at a time */
#define PORTS_DOUBT   10000
#define URING_ENTRIES 4

/* ---- trying */

static int try_uring(unsigned flags)
{
    struct io_uring_params params = {.flags = flags};
    long fd = syscall(SYS_io_uring_setup, URING_ENTRIES, &params);
    if (fd < 0)
        return -errno;
    close((int)fd);
    return 0;
}

void host_probe_take(struct host_probe *probe)
{
    struct rlimit files;
    *probe = (struct host_probe){.files_known = getrlimit(RLIMIT_NOFILE, &files) == 0};
    if (probe->files_known) {
        probe->files_soft = files.rlim_cur;
        probe->files_hard = files.rlim_max;
    }
    probe->uring = try_uring(0);
    probe->uring_modes = try_uring(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) == 0;
    for (int i = 0; i < HOST_PERF_COUNTERS; i++)
        probe->counted[i] = host_perf_probe((enum host_perf_counter)i, probe->uncounted_why[i],
                                            sizeof probe->uncounted_why[i]);
}

/* ---- files, ports and queues */

static void examine_files(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "files",
        "Server and load generator hold an open file a connection; the harness raises the "
        "soft limit to the hard one.");
    const struct host_probe *p = scene->probe;
    if (!p->files_known) {
        finding_unknown(f, "getrlimit failed");
        return;
    }
    unsigned long long most = p->files_hard > FILES_SPARE ? p->files_hard - FILES_SPARE : 0;
    f->doubt = p->files_hard < FILES_DOUBT;
    finding_say(f, "soft %llu, hard %llu: up to -c %llu", (unsigned long long)p->files_soft,
                (unsigned long long)p->files_hard, most);
    if (f->doubt)
        finding_remedy(f, "ulimit -Hn 65536 as root, or docker run --ulimit nofile=65536");
}

static void examine_ports(struct scene *scene)
{
    struct host_finding *f =
        scene_find(scene, "ports",
                   "A connection takes a local port, and with `close` holds it for a minute more.");
    char line[64];
    int low;
    int high;
    if (!scene_line(scene, line, sizeof line, "/proc/sys/net/ipv4/ip_local_port_range") ||
        sscanf(line, "%d %d", &low, &high) != 2) {
        finding_unknown(f, "no /proc/sys/net/ipv4/ip_local_port_range");
        return;
    }
    int count = high - low + 1;
    f->doubt = count < PORTS_DOUBT;
    finding_say(f, "%d to %d: %d for each address of the loopback", low, high, count);
    if (f->doubt)
        finding_remedy(f, "sudo sysctl net.ipv4.ip_local_port_range='32768 60999'");
}

static void examine_backlog(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "somaxconn",
        "Caps how many connections may wait for accept; one that finds no room tries again after "
        "1 s.");
    long long most;
    long long syn;
    if (!scene_number(scene, &most, "/proc/sys/net/core/somaxconn")) {
        finding_unknown(f, "no /proc/sys/net/core/somaxconn");
        return;
    }
    f->doubt = most < BACKLOG_DOUBT;
    finding_say(f, "%lld", most);
    if (scene_number(scene, &syn, "/proc/sys/net/ipv4/tcp_max_syn_backlog"))
        finding_add(f, ", tcp_max_syn_backlog %lld", syn);
    if (f->doubt)
        finding_remedy(f, "sudo sysctl net.core.somaxconn=4096");
}

/* tcp_tw_reuse is 2, for loopback alone, since Linux 4.19. */
static void examine_tcp(struct scene *scene)
{
    static const struct {
        const char *name;
        const char *path;
    } settings[] = {
        {"tcp_tw_reuse", "/proc/sys/net/ipv4/tcp_tw_reuse"},
        {"tcp_syncookies", "/proc/sys/net/ipv4/tcp_syncookies"},
        {"congestion control", "/proc/sys/net/ipv4/tcp_congestion_control"},
        {"busy_read", "/proc/sys/net/core/busy_read"},
        {"lo mtu", "/sys/class/net/lo/mtu"},
    };
    struct host_finding *f =
        scene_find(scene, "tcp",
                   "tcp_tw_reuse 0 lets `close` run out of ports; busy_read above 0 makes servers "
                   "spin; an mtu below 65536 cuts long answers on the loopback.");
    bool read = false;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char line[64];
        if (!scene_line(scene, line, sizeof line, "%s", settings[i].path))
            continue;
        finding_add(f, "%s%s %s", read ? ", " : "", settings[i].name, line);
        read = true;
    }
    long long number;
    if (!read)
        finding_unknown(f, "no /proc/sys/net");
    if (scene_number(scene, &number, "/proc/sys/net/core/busy_read") && number > 0) {
        f->doubt = true;
        finding_remedy(f, "sudo sysctl net.core.busy_read=0");
    }
    if (scene_number(scene, &number, "/proc/sys/net/ipv4/tcp_tw_reuse") && number == 0) {
        f->doubt = true;
        finding_remedy(f, "sudo sysctl net.ipv4.tcp_tw_reuse=2");
    }
}

static void examine_conntrack(struct scene *scene)
{
    struct host_finding *f = scene_find(scene, "conntrack",
                                        "Where the firewall tracks connections, each packet of the "
                                        "loopback is looked up, and a full "
                                        "table drops them.");
    long long most;
    long long now;
    if (!scene_number(scene, &most, "/proc/sys/net/netfilter/nf_conntrack_max") ||
        !scene_number(scene, &now, "/proc/sys/net/netfilter/nf_conntrack_count")) {
        finding_unknown(f, "no /proc/sys/net/netfilter/nf_conntrack_max (module not loaded, or not "
                           "shown here)");
        return;
    }
    f->doubt = now > most / 2;
    finding_say(f, "%lld of %lld connections tracked", now, most);
    finding_remedy(f,
                   "sudo iptables -t raw -A OUTPUT -o lo -j CT --notrack; or sudo sysctl "
                   "net.netfilter.nf_conntrack_max=%lld",
                   most * 4);
}

/* ---- kernel interfaces */

static void examine_uring(struct scene *scene)
{
    struct host_finding *f =
        scene_find(scene, "io_uring",
                   "Without it the load generator uses epoll, and entries on io_uring can't run.");
    const struct host_probe *p = scene->probe;
    long long disabled;
    bool set = scene_number(scene, &disabled, "/proc/sys/kernel/io_uring_disabled");
    if (p->uring == 0 && p->uring_modes)
        finding_say(f, "allowed, with single issuer and deferred task work");
    else if (p->uring == 0)
        finding_say(f, "allowed, but without deferred task work (Linux 6.1): epoll is used");
    else
        finding_say(f, "refused: %s", strerror(-p->uring));
    if (set)
        finding_add(f, "; kernel.io_uring_disabled %lld", disabled);
    if (p->uring == 0)
        return;
    if (set && disabled > 0)
        finding_remedy(f, "sudo sysctl kernel.io_uring_disabled=0");
    else if (p->uring == -EPERM)
        finding_remedy(f, "docker run --security-opt seccomp=unconfined, or a profile that allows "
                          "io_uring_setup, _enter and _register");
}

static void say_counters(struct host_finding *f, const struct host_probe *p, bool counted)
{
    bool any = false;
    finding_add(f, "%scounted: ", counted ? "" : "; not ");
    for (int i = 0; i < HOST_PERF_COUNTERS; i++) {
        if (p->counted[i] != counted)
            continue;
        finding_add(f, "%s%s", any ? ", " : "", host_perf_name((enum host_perf_counter)i));
        any = true;
    }
    if (!any)
        finding_add(f, "none");
}

/* What is in the way of each counter names its remedy; each is told once. */
static void tell_ways(struct host_finding *f, const struct host_probe *p)
{
    char all[sizeof f->remedy] = "";
    for (int i = 0; i < HOST_PERF_COUNTERS; i++) {
        size_t used = strlen(all);
        if (!p->counted[i] && strstr(all, p->uncounted_why[i]) == NULL)
            snprintf(all + used, sizeof all - used, "%s%s", used > 0 ? "; " : "",
                     p->uncounted_why[i]);
    }
    finding_remedy(f, "%s", all);
}

static void examine_counters(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "counters",
        "What can't be counted is absent from the table: instructions, cycles, switches, system "
        "calls per request. `showdown cost` needs none of them.");
    long long paranoid;
    say_counters(f, scene->probe, true);
    say_counters(f, scene->probe, false);
    if (scene_number(scene, &paranoid, "/proc/sys/kernel/perf_event_paranoid"))
        finding_add(f, "; perf_event_paranoid %lld", paranoid);
    tell_ways(f, scene->probe);
}

void doctor_of_limits(struct scene *scene)
{
    examine_files(scene);
    examine_ports(scene);
    examine_backlog(scene);
    examine_tcp(scene);
    examine_conntrack(scene);
    examine_uring(scene);
    examine_counters(scene);
}
