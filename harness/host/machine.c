#include "host/machine.h"

#include "host/file.h"

#include <ctype.h>
#include <dirent.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CPU_FOLDER "/sys/devices/system/cpu/"

/* Refuses what is not UTF-8 by leaving it out. */
static void put_string(json_t *object, const char *key, const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL)
        json_object_set_new(object, key, value);
}

static void put_number(json_t *object, const char *key, uint64_t number)
{
    json_object_set_new(object, key, json_integer((json_int_t)number));
}

/* The file's first line without its end; false if unreadable or empty. */
static bool first_line(const char *path, char *text, size_t size)
{
    if (host_file_read(path, text, size) <= 0)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return text[0] != '\0';
}

static void put_line_of(json_t *object, const char *key, const char *path)
{
    char text[256];
    if (first_line(path, text, sizeof text))
        put_string(object, key, text);
}

static void put_number_of(json_t *object, const char *key, const char *path)
{
    char text[64];
    char *end;
    if (!first_line(path, text, sizeof text))
        return;
    uint64_t number = strtoull(text, &end, 10);
    if (end != text)
        put_number(object, key, number);
}

/* A file that holds 0 or 1; `one` is what 1 stands for. */
static bool put_flag_of(json_t *object, const char *key, const char *path, bool one)
{
    char text[64];
    if (!first_line(path, text, sizeof text) || (text[0] != '0' && text[0] != '1'))
        return false;
    json_object_set_new(object, key, json_boolean((text[0] == '1') == one));
    return true;
}

static void describe_system(json_t *machine)
{
    struct utsname name;
    if (uname(&name) == 0) {
        char kernel[sizeof name.sysname + sizeof name.release + sizeof name.machine + 2];
        snprintf(kernel, sizeof kernel, "%s %s %s", name.sysname, name.release, name.machine);
        put_string(machine, "hostname", name.nodename);
        put_string(machine, "kernel", kernel);
    }
    put_string(machine, "libc", gnu_get_libc_version());

    char text[4096];
    const char *key = "PRETTY_NAME=";
    if (host_file_read("/etc/os-release", text, sizeof text) <= 0)
        return;
    char *at = strstr(text, key);
    if (at == NULL)
        return;
    at += strlen(key);
    if (*at == '"')
        at++;
    at[strcspn(at, "\"\n")] = '\0';
    put_string(machine, "os", at);
}

/* x86 names the model in /proc/cpuinfo and sets the flag `hypervisor` in a virtual machine; Arm
 * does neither. */
static void describe_cpu_model(json_t *machine)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL)
        return;
    char *line = NULL;
    size_t size = 0;
    bool model = false;
    bool flags = false;
    while (!(model && flags) && getline(&line, &size, file) > 0) {
        char *value = strchr(line, ':');
        if (value == NULL)
            continue;
        value += strspn(value, ": \t");
        value[strcspn(value, "\n")] = '\0';
        if (!model && strncmp(line, "model name", 10) == 0) {
            put_string(machine, "cpu_model", value);
            model = true;
        } else if (!flags && strncmp(line, "flags", 5) == 0) {
            json_object_set_new(machine, "hypervisor",
                                json_boolean(strstr(value, " hypervisor") != NULL));
            flags = true;
        }
    }
    free(line);
    fclose(file);
}

/* Which CPUs may be used, as the kernel writes lists: "0-3,8". */
static void describe_cpu_list(json_t *machine)
{
    const char *key = "\nCpus_allowed_list:";
    char text[8192];
    if (host_file_read("/proc/self/status", text, sizeof text) <= 0)
        return;
    char *at = strstr(text, key);
    if (at == NULL)
        return;
    at += strlen(key);
    at += strspn(at, " \t");
    at[strcspn(at, "\n")] = '\0';
    put_string(machine, "cpu_list", at);
}

static void describe_cpus(json_t *machine)
{
    describe_cpu_model(machine);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (online > 0)
        put_number(machine, "cpus_online", (uint64_t)online);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        put_number(machine, "cpus_allowed", (uint64_t)CPU_COUNT(&set));
    describe_cpu_list(machine);
    put_line_of(machine, "governor", CPU_FOLDER "cpu0/cpufreq/scaling_governor");
    put_line_of(machine, "driver", CPU_FOLDER "cpu0/cpufreq/scaling_driver");
    if (!put_flag_of(machine, "turbo", CPU_FOLDER "intel_pstate/no_turbo", false))
        put_flag_of(machine, "turbo", CPU_FOLDER "cpufreq/boost", true);
    put_flag_of(machine, "smt", CPU_FOLDER "smt/active", true);
}

static void describe_mitigations(json_t *machine)
{
    DIR *folder = opendir(CPU_FOLDER "vulnerabilities");
    if (folder == NULL)
        return;
    json_t *mitigations = json_object();
    struct dirent *item;
    while ((item = readdir(folder)) != NULL) {
        char path[512];
        snprintf(path, sizeof path, CPU_FOLDER "vulnerabilities/%s", item->d_name);
        if (item->d_name[0] != '.')
            put_line_of(mitigations, item->d_name, path);
    }
    closedir(folder);
    json_object_set_new(machine, "mitigations", mitigations);
}

/* systemd-nspawn, podman and LXC name themselves in /run/systemd/container (systemd's container
 * interface); docker and podman leave a file in the root. */
static void describe_container(json_t *machine)
{
    char text[128];
    if (first_line("/run/systemd/container", text, sizeof text))
        put_string(machine, "container", text);
    else if (access("/.dockerenv", F_OK) == 0)
        put_string(machine, "container", "docker");
    else if (access("/run/.containerenv", F_OK) == 0)
        put_string(machine, "container", "podman");
    else if (getenv("container") != NULL)
        put_string(machine, "container", "unknown kind");
    const char *image = getenv("SHOWDOWN_IMAGE");
    if (image != NULL && image[0] != '\0')
        put_string(machine, "image", image);
}

/* Modes of prctl(PR_GET_SECCOMP), from /proc/self/status (proc(5)). What the filter lets through
 * can't be read; who starts the container says which profile it is. */
static void describe_seccomp(json_t *machine)
{
    static const char *const modes[] = {"none", "strict", "filter"};
    char text[8192];
    uint64_t mode;
    if (host_file_read("/proc/self/status", text, sizeof text) <= 0 ||
        !host_file_number(text, "Seccomp", &mode) || mode >= sizeof modes / sizeof modes[0])
        return;
    put_string(machine, "seccomp", modes[mode]);
    const char *profile = getenv("SHOWDOWN_SECCOMP");
    if (mode != 0 && profile != NULL && profile[0] != '\0')
        put_string(machine, "seccomp_profile", profile);
}

static void describe_memory(json_t *machine)
{
    char text[4096];
    uint64_t kib;
    if (host_file_read("/proc/meminfo", text, sizeof text) > 0 &&
        host_file_number(text, "MemTotal", &kib))
        put_number(machine, "memory_bytes", kib * 1024);
}

static void describe_limits(json_t *machine)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        put_number(machine, "file_limit", files.rlim_cur);
        put_number(machine, "file_limit_hard", files.rlim_max);
    }
    put_number_of(machine, "somaxconn", "/proc/sys/net/core/somaxconn");
    put_number_of(machine, "tcp_max_syn_backlog", "/proc/sys/net/ipv4/tcp_max_syn_backlog");
    put_number_of(machine, "io_uring_disabled", "/proc/sys/kernel/io_uring_disabled");
    char text[64];
    int low;
    int high;
    if (first_line("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof text) &&
        sscanf(text, "%d %d", &low, &high) == 2)
        json_object_set_new(machine, "port_range", json_pack("[ii]", low, high));
    double load;
    if (getloadavg(&load, 1) == 1)
        json_object_set_new(machine, "load_1min", json_real(load));
}

json_t *host_machine_describe(void)
{
    json_t *machine = json_object();
    describe_system(machine);
    describe_cpus(machine);
    describe_memory(machine);
    put_line_of(machine, "clocksource",
                "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    describe_container(machine);
    describe_seccomp(machine);
    describe_mitigations(machine);
    describe_limits(machine);
    return machine;
}
