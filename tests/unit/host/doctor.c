/* The doctor on planted trees: what is there is found, what is not is unknown, and no unknown is a
 * doubt. */
#include "base/clock.h"
#include "base/mem.h"
#include "host/doctor.h"

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];
static struct host_doctor doctor;
static const struct host_cpu_plan two = {
    .server = 1, .hammer = {0}, .hammer_count = 1, .allowed_count = 2};
static const struct host_probe good = {.files_known = true,
                                       .files_soft = 1024,
                                       .files_hard = 1048576,
                                       .uring_modes = true,
                                       .counted = {true, true, true, true, true, true}};

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/doctor.XXXXXX");
    return mkdtemp(root) == NULL;
}

static int remove_item(const char *path, const struct stat *s, int flag, struct FTW *ftw)
{
    (void)s;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_item, 16, FTW_DEPTH | FTW_PHYS);
}

static void plant(const char *path, const char *text)
{
    char *whole = mem_format("%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    free(whole);
}

static void examine(const struct host_cpu_plan *cpus, const struct host_probe *probe)
{
    const struct host_doctor_options options = {.root = root, .cpus = cpus, .probe = probe};
    host_doctor_examine(&options, &doctor);
}

static const struct host_finding *find(const char *key)
{
    for (int i = 0; i < doctor.count; i++)
        if (strcmp(doctor.findings[i].key, key) == 0)
            return &doctor.findings[i];
    fail_msg("no finding '%s'", key);
    return NULL;
}

static void has(const char *key, const char *part, bool doubt)
{
    const struct host_finding *f = find(key);
    if (!f->known || strstr(f->found, part) == NULL || f->doubt != doubt)
        fail_msg("%s: '%s' (known %d, doubt %d), wanted '%s', doubt %d", key, f->found, f->known,
                 f->doubt, part, doubt);
    if (doubt && f->remedy[0] == '\0')
        fail_msg("%s: a doubt without a remedy", key);
}

static void is_unknown(const char *key)
{
    const struct host_finding *f = find(key);
    if (f->known || f->doubt || strncmp(f->found, "unknown: ", 9) != 0)
        fail_msg("%s: '%s' (known %d, doubt %d) is not unknown", key, f->found, f->known, f->doubt);
}

static void an_empty_tree_leaves_all_unknown(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "machine",    "smt",    "governor", "turbo",     "power",    "clock", "mitigations",
        "load",       "others", "steal",    "container", "seccomp",  "quota", "swap",
        "huge pages", "ports",  "tcp",      "somaxconn", "conntrack"};
    const struct host_probe nothing = {.uring = -ENOSYS};
    examine(&two, &nothing);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        is_unknown(keys[i]);
    is_unknown("files");
    for (int i = 0; i < doctor.count; i++) {
        assert_false(doctor.findings[i].doubt);
        assert_true(strlen(doctor.findings[i].effect) > 20);
    }
}

static void powersave_is_a_doubt_and_performance_none(void **state)
{
    (void)state;
    plant("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    plant("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
    plant("/sys/devices/system/cpu/cpu1/cpufreq/scaling_driver", "intel_pstate\n");
    plant("/sys/devices/system/cpu/cpu7/cpufreq/scaling_governor", "powersave\n"); /* not used */
    examine(&two, &good);
    has("governor", "performance on CPU 1, performance on CPU 0 (driver intel_pstate)", false);
    plant("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    examine(&two, &good);
    has("governor", "powersave on CPU 0", true);
    assert_non_null(strstr(find("governor")->remedy, "echo performance | sudo tee"));
}

static void turbo_is_read_from_either_file(void **state)
{
    (void)state;
    plant("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    examine(&two, &good);
    has("turbo", "on", true);
    assert_non_null(strstr(find("turbo")->remedy, "echo 0 | sudo tee"));
    plant("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    examine(&two, &good);
    has("turbo", "off", false);
    plant("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    examine(&two, &good);
    has("turbo", "on", true);
    assert_non_null(strstr(find("turbo")->remedy, "no_turbo"));
}

static void siblings_of_the_cores_used_are_named(void **state)
{
    (void)state;
    struct host_cpu_plan four = {.server = 3, .hammer = {2}, .hammer_count = 1, .allowed_count = 4};
    plant("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3\n");
    plant("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n");
    examine(&four, &good);
    has("smt", "CPU 0, 1", false);
    assert_true(find("smt")->remedy[0] != '\0');
    struct host_cpu_plan same = {
        .server = 3, .hammer = {1}, .hammer_count = 1, .allowed_count = 2, .siblings = true};
    examine(&same, &good);
    has("smt", "two hyperthreads of one core", true);
    plant("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "3\n");
    plant("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2\n");
    examine(&four, &good);
    has("smt", "none on the cores used", false);
}

static void one_cpu_is_a_doubt(void **state)
{
    (void)state;
    struct host_cpu_plan one = {
        .server = 0, .hammer = {0}, .hammer_count = 1, .allowed_count = 1, .shared = true};
    examine(&one, &good);
    has("cores", "CPU 0 alone", true);
    examine(&two, &good);
    has("cores", "server on CPU 1, load generator on CPU 0, of 2 allowed", false);
}

static void a_guest_is_told_by_its_flag_or_its_vendor(void **state)
{
    (void)state;
    plant("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme\nbugs\t\t: hypervisor\n");
    examine(&two, &good);
    has("machine", "not virtual", false);
    plant("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\nbugs\t\t: x\n");
    plant("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    examine(&two, &good);
    has("machine", "virtual (QEMU)", true);
    plant("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\n"); /* Arm has no such flag */
    examine(&two, &good);
    has("machine", "virtual (QEMU)", true);
    plant("/sys/class/dmi/id/sys_vendor", "Acme\n");
    examine(&two, &good);
    is_unknown("machine");
}

static void steal_is_a_share_and_zero_in_a_guest_is_unknown(void **state)
{
    (void)state;
    plant("/proc/stat", "cpu  100 0 100 9700 0 0 0 100 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
    examine(&two, &good);
    has("steal", "1.00% since boot", true);
    plant("/proc/stat", "cpu  100 0 100 9795 0 0 0 5 0 0\n");
    examine(&two, &good);
    has("steal", "0.05% since boot", false);
    plant("/proc/stat", "cpu  100 0 100 9800 0 0 0 0 0 0\n");
    examine(&two, &good);
    has("steal", "0.00% since boot", false);
    plant("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor\n");
    examine(&two, &good);
    is_unknown("steal");
}

static void load_is_a_doubt_when_all_cores_are_wanted(void **state)
{
    (void)state;
    plant("/proc/loadavg", "1.99 0.50 0.25 1/100 4711\n");
    examine(&two, &good);
    has("load", "1.99 over 1 min", false);
    plant("/proc/loadavg", "2.00 0.50 0.25 1/100 4711\n");
    examine(&two, &good);
    has("load", "for 2 CPUs", true);
}

static void a_quota_counts_wherever_it_stands(void **state)
{
    (void)state;
    plant("/proc/self/cgroup", "0::/a/b\n");
    plant("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    examine(&two, &good);
    has("quota", "none", false);
    plant("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    plant("/sys/fs/cgroup/a/cpu.stat", "usage_usec 1\nnr_throttled 42\n");
    examine(&two, &good);
    has("quota", "1.50 CPUs' worth, used up 42 times", true);
    /* From within a container of version 1 the path is the host's and is not there. */
    plant("/proc/self/cgroup", "3:cpuset:/x\n2:cpu,cpuacct:/docker/abc\n0::/\n");
    plant("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
    plant("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    examine(&two, &good);
    has("quota", "0.50 CPUs' worth", true);
    plant("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    examine(&two, &good);
    has("quota", "none", false);
}

static void containers_and_filters_leave_marks(void **state)
{
    (void)state;
    plant("/.dockerenv", "");
    plant("/proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n");
    examine(&two, &good);
    has("container", "docker", false);
    has("seccomp", "filtered, 1 filters", true);
    plant("/run/systemd/container", "lxc\n");
    plant("/proc/self/status", "Name:\tx\nSeccomp:\t0\n");
    examine(&two, &good);
    has("container", "lxc", false);
    has("seccomp", "not filtered", false);
}

static void clock_mitigations_and_huge_pages(void **state)
{
    (void)state;
    const char *clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    plant(clock, "tsc\n");
    plant("/sys/devices/system/cpu/vulnerabilities/mds", "Mitigation: Clear CPU buffers\n");
    plant("/sys/devices/system/cpu/vulnerabilities/l1tf", "Not affected\n");
    plant("/sys/devices/system/cpu/vulnerabilities/retbleed", "Vulnerable\n");
    plant("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    examine(&two, &good);
    has("clock", "tsc", false);
    has("mitigations", "1 active (mds), 1 vulnerable", false);
    has("huge pages", "always", false);
    plant(clock, "hpet\n");
    plant("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm\n");
    examine(&two, &good);
    has("clock", "hpet (there are: hpet acpi_pm)", true);
}

static void a_laptop_on_battery_but_not_its_mouse(void **state)
{
    (void)state;
    plant("/sys/class/power_supply/AC/type", "Mains\n");
    examine(&two, &good);
    has("power", "no battery", false);
    plant("/sys/class/power_supply/mouse/type", "Battery\n");
    plant("/sys/class/power_supply/mouse/scope", "Device\n");
    plant("/sys/class/power_supply/mouse/status", "Discharging\n");
    examine(&two, &good);
    has("power", "no battery", false);
    plant("/sys/class/power_supply/BAT0/type", "Battery\n");
    plant("/sys/class/power_supply/BAT0/status", "Full\n");
    examine(&two, &good);
    has("power", "battery, not in use", false);
    plant("/sys/class/power_supply/BAT0/status", "Discharging\n");
    examine(&two, &good);
    has("power", "on battery", true);
}

static void memory_and_swap(void **state)
{
    (void)state;
    plant("/proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 512000 kB\n"
                           "SwapTotal: 204800 kB\nSwapFree: 102400 kB\n");
    examine(&two, &good);
    has("swap", "100 of 200 MiB used; 500 of 1000 MiB", false);
    plant("/proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 51200 kB\n"
                           "SwapTotal: 0 kB\nSwapFree: 0 kB\n");
    examine(&two, &good);
    has("swap", "none; 50 of 1000 MiB", true);
}

static void limits_of_files_ports_and_queues(void **state)
{
    (void)state;
    plant("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
    plant("/proc/sys/net/core/somaxconn", "4096\n");
    plant("/proc/sys/net/ipv4/tcp_tw_reuse", "2\n");
    plant("/proc/sys/net/netfilter/nf_conntrack_max", "1000\n");
    plant("/proc/sys/net/netfilter/nf_conntrack_count", "10\n");
    examine(&two, &good);
    has("files", "soft 1024, hard 1048576: up to -c 1048512", false);
    has("ports", "28232", false);
    has("somaxconn", "4096", false);
    has("tcp", "tcp_tw_reuse 2", false);
    has("conntrack", "10 of 1000", false);
    struct host_probe few = good;
    few.files_hard = 1024;
    plant("/proc/sys/net/ipv4/ip_local_port_range", "60000\t60999\n");
    plant("/proc/sys/net/core/somaxconn", "64\n");
    plant("/proc/sys/net/ipv4/tcp_tw_reuse", "0\n");
    plant("/proc/sys/net/netfilter/nf_conntrack_count", "900\n");
    examine(&two, &few);
    has("files", "up to -c 960", true);
    has("ports", "1000 for each", true);
    has("somaxconn", "64", true);
    has("tcp", "tcp_tw_reuse 0", true);
    has("conntrack", "900 of 1000", true);
}

static void io_uring_and_counters_by_trying(void **state)
{
    (void)state;
    struct host_probe probe = good;
    examine(&two, &probe);
    has("io_uring", "allowed, with", false);
    has("counters", "counted: syscalls, switches, instructions_user", false);
    has("counters", "; not counted: none", false);
    assert_string_equal(find("counters")->remedy, "");
    plant("/proc/sys/kernel/io_uring_disabled", "2\n");
    plant("/proc/sys/kernel/perf_event_paranoid", "2\n");
    probe.uring = -EPERM;
    for (int i = HOST_PERF_INSTRUCTIONS_USER; i < HOST_PERF_COUNTERS; i++) {
        probe.counted[i] = false;
        strcpy(probe.uncounted_why[i], "the CPU has none");
    }
    probe.counted[HOST_PERF_SYSCALLS] = false;
    strcpy(probe.uncounted_why[HOST_PERF_SYSCALLS], "tracefs is not there: mount it");
    examine(&two, &probe);
    has("io_uring", "refused: Operation not permitted; kernel.io_uring_disabled 2", false);
    assert_string_equal(find("io_uring")->remedy, "sudo sysctl kernel.io_uring_disabled=0");
    has("counters",
        "counted: switches; not counted: syscalls, instructions_user, instructions_kernel, "
        "cycles_user, cycles_kernel; perf_event_paranoid 2",
        false);
    assert_string_equal(find("counters")->remedy,
                        "tracefs is not there: mount it; the CPU has none");
}

static void what_files_hold_can_not_break_the_line(void **state)
{
    (void)state;
    plant("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "\x1b[31m\xff\tx\n");
    examine(&two, &good);
    has("governor", "?[31m??x", true);
    json_t *json = host_doctor_to_json(&doctor);
    assert_int_equal(json_array_size(json), doctor.count);
    size_t i;
    json_t *item;
    json_array_foreach(json, i, item)
    {
        assert_string_equal(json_string_value(json_object_get(item, "key")),
                            doctor.findings[i].key);
        assert_string_equal(json_string_value(json_object_get(item, "found")),
                            doctor.findings[i].found);
        assert_int_equal(json_is_true(json_object_get(item, "doubt")), doctor.findings[i].doubt);
        assert_int_equal(json_object_get(item, "remedy") != NULL,
                         doctor.findings[i].remedy[0] != '\0');
    }
    json_decref(json);
}

/* This machine, with a process that spins on the core a run would take. */
static void who_uses_the_cores_is_named(void **state)
{
    (void)state;
    struct host_cpu_plan cpus;
    assert_int_equal(host_cpu_plan(-1, 1, &cpus, NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "planted-hog");
        host_cpu_pin(cpus.server, NULL);
        for (volatile uint64_t n = 0;; n++)
            continue;
    }
    const struct host_doctor_options options = {
        .root = "", .cpus = &cpus, .sample_ns = 300 * NS_PER_MS};
    host_doctor_examine(&options, &doctor);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    char core[32];
    snprintf(core, sizeof core, "CPU %d", cpus.server);
    has("others", core, true);
    assert_non_null(strstr(find("others")->found, "most by "));
    assert_true(find("files")->known);
    assert_true(find("load")->known);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_tree_leaves_all_unknown),
        TEST(powersave_is_a_doubt_and_performance_none),
        TEST(turbo_is_read_from_either_file),
        TEST(siblings_of_the_cores_used_are_named),
        TEST(one_cpu_is_a_doubt),
        TEST(a_guest_is_told_by_its_flag_or_its_vendor),
        TEST(steal_is_a_share_and_zero_in_a_guest_is_unknown),
        TEST(load_is_a_doubt_when_all_cores_are_wanted),
        TEST(a_quota_counts_wherever_it_stands),
        TEST(containers_and_filters_leave_marks),
        TEST(clock_mitigations_and_huge_pages),
        TEST(a_laptop_on_battery_but_not_its_mouse),
        TEST(memory_and_swap),
        TEST(limits_of_files_ports_and_queues),
        TEST(io_uring_and_counters_by_trying),
        TEST(what_files_hold_can_not_break_the_line),
        cmocka_unit_test(who_uses_the_cores_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
