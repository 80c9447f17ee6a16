#include "host/doctor_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU "/sys/devices/system/cpu/"

static void say_cores(struct host_finding *f, const int *cores, int count)
{
    for (int i = 0; i < count; i++)
        finding_add(f, "%s%d", i > 0 ? ", " : "", cores[i]);
}

static void examine_cores(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "cores",
        "Server and load generator need a core each; on one they take turns and nothing is "
        "ranked.");
    const struct host_cpu_plan *cpus = scene->cpus;
    if (cpus->shared) {
        f->doubt = true;
        finding_say(f, "CPU %d alone, for server and load generator", cpus->server);
        finding_remedy(f, "allow a second CPU: taskset -c, docker run --cpus and --cpuset-cpus, or "
                          "the virtual machine's settings");
        return;
    }
    finding_say(f, "server on CPU %d", cpus->server);
    if (cpus->more_count > 0)
        finding_add(f, ", with workers also on ");
    say_cores(f, cpus->more, cpus->more_count);
    finding_add(f, ", load generator on CPU ");
    say_cores(f, cpus->hammer, cpus->hammer_count);
    finding_add(f, ", of %d allowed", cpus->allowed_count);
}

/* "0-1,4" as a set of flags. */
static void read_list(const char *list, bool *set, int size)
{
    for (const char *at = list; isdigit((unsigned char)*at);) {
        char *end;
        long first = strtol(at, &end, 10);
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last && cpu < size; cpu++)
            set[cpu] = true;
        at = *end == ',' ? end + 1 : end;
    }
}

static void examine_smt(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "smt",
        "Two hyperthreads share one core: work on the one slows the other by up to a half.");
    int cores[HOST_SERVERS_MAX + HOST_HAMMERS_MAX];
    int count = scene_cores(scene, cores);
    bool siblings[HOST_CPUS_MAX] = {false};
    bool read = false;
    char list[256];
    for (int i = 0; i < count; i++)
        if (scene_line(scene, list, sizeof list, CPU "cpu%d/topology/thread_siblings_list",
                       cores[i])) {
            read = true;
            read_list(list, siblings, HOST_CPUS_MAX);
        }
    if (!read) {
        finding_unknown(f, "no " CPU "cpuN/topology/thread_siblings_list");
        return;
    }
    for (int i = 0; i < count; i++)
        siblings[cores[i]] = false;
    int others[HOST_CPUS_MAX];
    int other_count = 0;
    for (int cpu = 0; cpu < HOST_CPUS_MAX; cpu++)
        if (siblings[cpu])
            others[other_count++] = cpu;
    f->doubt = scene->cpus->siblings;
    if (scene->cpus->siblings)
        finding_say(f, "server and load generator on two hyperthreads of one core");
    else if (other_count == 0)
        finding_say(f, "none on the cores used");
    else
        finding_say(f, "other hyperthreads of the cores used: CPU ");
    if (scene->cpus->siblings || other_count > 0)
        finding_remedy(f, "echo off | sudo tee " CPU "smt/control");
    say_cores(f, others, scene->cpus->siblings ? 0 : other_count < 8 ? other_count : 8);
    if (!f->doubt && other_count > 8)
        finding_add(f, ", ...");
}

static void examine_governor(struct scene *scene)
{
    struct host_finding *f =
        scene_find(scene, "governor",
                   "A clock that follows the load gives an entry the speed its forerunner left.");
    int cores[HOST_SERVERS_MAX + HOST_HAMMERS_MAX];
    int count = scene_cores(scene, cores);
    bool read = false;
    char name[64];
    char seen[256] = "";
    for (int i = 0; i < count; i++) {
        if (!scene_line(scene, name, sizeof name, CPU "cpu%d/cpufreq/scaling_governor", cores[i]))
            continue;
        size_t used = strlen(seen);
        snprintf(seen + used, sizeof seen - used, "%s%s on CPU %d", read ? ", " : "", name,
                 cores[i]);
        read = true;
        f->doubt |= strcmp(name, "performance") != 0;
    }
    if (!read) {
        finding_unknown(f, "no " CPU "cpuN/cpufreq; a virtual machine's host sets the clock");
        return;
    }
    finding_say(f, "%s", seen);
    if (scene_line(scene, name, sizeof name, CPU "cpu%d/cpufreq/scaling_driver", cores[0]))
        finding_add(f, " (driver %s)", name);
    if (f->doubt)
        finding_remedy(f, "echo performance | sudo tee " CPU "cpu*/cpufreq/scaling_governor");
}

static void examine_turbo(struct scene *scene)
{
    struct host_finding *f = scene_find(
        scene, "turbo",
        "Above its base clock a core is as fast as heat and its neighbours let it be, so "
        "rates of two runs differ.");
    long long flag;
    bool on;
    if (scene_number(scene, &flag, CPU "intel_pstate/no_turbo"))
        on = flag == 0;
    else if (scene_number(scene, &flag, CPU "cpufreq/boost"))
        on = flag != 0;
    else {
        finding_unknown(f, "neither " CPU "intel_pstate/no_turbo nor cpufreq/boost");
        return;
    }
    f->doubt = on;
    finding_say(f, on ? "on" : "off");
    if (!on)
        return;
    if (scene_number(scene, &flag, CPU "intel_pstate/no_turbo"))
        finding_remedy(f, "echo 1 | sudo tee " CPU "intel_pstate/no_turbo");
    else
        finding_remedy(f, "echo 0 | sudo tee " CPU "cpufreq/boost");
}

/* vdso clocks are read without a system call (arch/x86/entry/vdso, arch/arm64): the others make
 * each look at the clock a call and a slow read of a device. */
static void examine_clock(struct scene *scene)
{
    static const char *const quick[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                        "arch_sys_counter", "riscv_clocksource"};
    struct host_finding *f = scene_find(
        scene, "clock",
        "A slow clock source makes every look at the time a system call; loops look once a turn.");
    char name[64];
    char all[128];
    if (!scene_line(scene, name, sizeof name,
                    "/sys/devices/system/clocksource/clocksource0/current_clocksource")) {
        finding_unknown(f, "no /sys/devices/system/clocksource/clocksource0");
        return;
    }
    f->doubt = true;
    for (size_t i = 0; i < sizeof quick / sizeof quick[0]; i++)
        if (strcmp(name, quick[i]) == 0)
            f->doubt = false;
    finding_say(f, "%s", name);
    if (!f->doubt)
        return;
    if (scene_line(scene, all, sizeof all,
                   "/sys/devices/system/clocksource/clocksource0/available_clocksource"))
        finding_add(f, " (there are: %s)", all);
    finding_remedy(f, "echo tsc | sudo tee "
                      "/sys/devices/system/clocksource/clocksource0/current_clocksource, or boot "
                      "with tsc=reliable");
}

static int list_mitigations(const struct scene *scene, char *text, size_t size, int *vulnerable)
{
    char path[512];
    int active = 0;
    snprintf(path, sizeof path, "%s" CPU "vulnerabilities", scene->root);
    struct dirent **names = NULL;
    int count = scandir(path, &names, NULL, alphasort);
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        char line[256];
        const char *name = names[i]->d_name;
        if (name[0] != '.' &&
            scene_line(scene, line, sizeof line, CPU "vulnerabilities/%s", name)) {
            *vulnerable += strncmp(line, "Vulnerable", 10) == 0;
            if (strncmp(line, "Mitigation", 10) == 0 && used < size) {
                used += (size_t)snprintf(text + used, size - used, "%s%s", active > 0 ? ", " : "",
                                         name);
                active++;
            }
        }
        free(names[i]);
    }
    free(names);
    return count < 0 ? -1 : active;
}

static void examine_mitigations(struct scene *scene)
{
    struct host_finding *f =
        scene_find(scene, "mitigations",
                   "Each makes entering the kernel dearer, and so weighs on an entry by its system "
                   "calls; a machine with others ranks otherwise.");
    char names[160] = "";
    int vulnerable = 0;
    int active = list_mitigations(scene, names, sizeof names, &vulnerable);
    if (active < 0)
        finding_unknown(f, "no " CPU "vulnerabilities");
    else if (active == 0)
        finding_say(f, "none active, %d vulnerable", vulnerable);
    else
        finding_say(f, "%d active (%s), %d vulnerable", active, names, vulnerable);
    if (active > 0)
        finding_remedy(f, "a test machine alone may boot with mitigations=off");
}

/* x86 sets the flag `hypervisor` in a guest; elsewhere a device tree, /sys/hypervisor or the DMI
 * vendor may tell. */
static void examine_machine(struct scene *scene)
{
    static const char *const vendors[] = {"QEMU",   "KVM",       "VMware",      "innotek",
                                          "Xen",    "Bochs",     "Parallels",   "Amazon EC2",
                                          "Google", "OpenStack", "DigitalOcean"};
    struct host_finding *f = scene_find(
        scene, "machine",
        "A virtual machine shares its cores with strangers; hyperthreads and the real clock may be "
        "hidden from it.");
    char cpuinfo[8192];
    char name[128] = "";
    char vendor[128] = "";
    if (scene_text(scene, cpuinfo, sizeof cpuinfo, "/proc/cpuinfo")) {
        const char *flags = strstr(cpuinfo, "\nflags");
        if (flags != NULL) {
            scene->hypervisor_known = true;
            const char *found = strstr(flags, " hypervisor");
            scene->hypervisor = found != NULL && found < flags + strcspn(flags + 1, "\n") + 1;
        }
    }
    bool typed = scene_line(scene, name, sizeof name, "/sys/hypervisor/type");
    scene_line(scene, vendor, sizeof vendor, "/sys/class/dmi/id/sys_vendor");
    if (!scene->hypervisor_known) {
        for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
            typed |= strstr(vendor, vendors[i]) != NULL;
        scene->hypervisor = typed;
        scene->hypervisor_known = typed;
    }
    if (!scene->hypervisor_known) {
        finding_unknown(f, "no flags in /proc/cpuinfo, no /sys/hypervisor/type, no known vendor");
        return;
    }
    f->doubt = scene->hypervisor;
    const char *what = name[0] != '\0' ? name : vendor;
    finding_say(f, "%s%s%s%s", scene->hypervisor ? "virtual" : "not virtual",
                what[0] != '\0' ? " (" : "", what, what[0] != '\0' ? ")" : "");
    if (f->doubt)
        finding_remedy(f, "rank on a machine of one's own, or on a guest with dedicated cores; "
                          "else believe the intervals, not one rate");
}

static void examine_battery(struct scene *scene)
{
    struct host_finding *f =
        scene_find(scene, "power", "On battery a laptop lowers its clock when it pleases.");
    char path[512];
    snprintf(path, sizeof path, "%s/sys/class/power_supply", scene->root);
    struct dirent **names = NULL;
    int count = scandir(path, &names, NULL, alphasort);
    bool battery = false;
    bool discharging = false;
    for (int i = 0; i < count; i++) {
        char line[64];
        const char *name = names[i]->d_name;
        if (name[0] != '.' &&
            scene_line(scene, line, sizeof line, "/sys/class/power_supply/%s/type", name) &&
            strcmp(line, "Battery") == 0) {
            /* That of a mouse says Device (Documentation/ABI/testing/sysfs-class-power). */
            bool own =
                !scene_line(scene, line, sizeof line, "/sys/class/power_supply/%s/scope", name) ||
                strcmp(line, "Device") != 0;
            battery |= own;
            discharging |=
                own &&
                scene_line(scene, line, sizeof line, "/sys/class/power_supply/%s/status", name) &&
                strcmp(line, "Discharging") == 0;
        }
        free(names[i]);
    }
    free(names);
    if (count < 0) {
        finding_unknown(f, "no /sys/class/power_supply");
        return;
    }
    f->doubt = discharging;
    finding_say(f, "%s",
                discharging ? "on battery"
                : battery   ? "battery, not in use"
                            : "no battery");
    if (discharging)
        finding_remedy(f, "plug it in");
}

void doctor_of_cores(struct scene *scene)
{
    examine_machine(scene);
    examine_cores(scene);
    examine_smt(scene);
    examine_governor(scene);
    examine_turbo(scene);
    examine_battery(scene);
    examine_clock(scene);
    examine_mitigations(scene);
}
