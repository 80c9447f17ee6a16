/* Cores chosen on planted topologies; counters of live processes; the machine's description. */
#include "base/clock.h"
#include "base/mem.h"
#include "host/cpu.h"
#include "host/file.h"
#include "host/machine.h"
#include "host/usage.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct host_topology *plant(int count, int threads_per_core, int cpus_per_package)
{
    struct host_topology *t = mem_alloc(1, sizeof *t);
    t->count = count;
    for (int i = 0; i < count; i++)
        t->cpus[i] = (struct host_cpu){.number = i,
                                       .core = i / threads_per_core * threads_per_core,
                                       .package = i / cpus_per_package};
    return t;
}

static void two_cores_take_one_each(void **state)
{
    (void)state;
    struct host_topology *t = plant(2, 1, 2);
    struct host_cpu_plan plan;
    assert_int_equal(host_cpu_choose(t, -1, 1, &plan, NULL), 0);
    assert_int_equal(plan.server, 1);
    assert_int_equal(plan.hammer_count, 1);
    assert_int_equal(plan.hammer[0], 0);
    assert_int_equal(plan.allowed_count, 2);
    assert_false(plan.shared);
    assert_false(plan.siblings);
    free(t);
}

static void one_cpu_is_shared(void **state)
{
    (void)state;
    struct host_topology *t = plant(1, 1, 1);
    t->cpus[0].number = 5;
    struct host_cpu_plan plan;
    assert_int_equal(host_cpu_choose(t, -1, 3, &plan, NULL), 0);
    assert_true(plan.shared);
    assert_int_equal(plan.server, 5);
    assert_int_equal(plan.hammer_count, 1);
    assert_int_equal(plan.hammer[0], 5);
    free(t);
}

static void siblings_are_avoided_if_there_is_a_choice(void **state)
{
    (void)state;
    struct host_topology *t = plant(4, 2, 4); /* 0+1, 2+3 */
    struct host_cpu_plan plan;
    for (int server = 0; server < 4; server++) {
        assert_int_equal(host_cpu_choose(t, server, 1, &plan, NULL), 0);
        assert_int_equal(plan.server, server);
        assert_int_not_equal(plan.hammer[0] / 2, server / 2);
        assert_false(plan.siblings);
    }
    assert_int_equal(host_cpu_choose(t, 3, 3, &plan, NULL), 0);
    assert_true(plan.siblings);
    assert_int_equal(plan.hammer[2], 2); /* the sibling comes last */
    free(t);
}

static void siblings_without_a_choice_are_told(void **state)
{
    (void)state;
    struct host_topology *t = plant(2, 2, 2);
    struct host_cpu_plan plan;
    assert_int_equal(host_cpu_choose(t, -1, 1, &plan, NULL), 0);
    assert_true(plan.siblings);
    assert_false(plan.shared);
    free(t);
}

static void hammers_spread_over_cores_of_the_server_s_package(void **state)
{
    (void)state;
    struct host_topology *t = plant(16, 2, 8); /* two packages of four cores of two threads */
    struct host_cpu_plan plan;
    assert_int_equal(host_cpu_choose(t, 0, 3, &plan, NULL), 0);
    bool core[8] = {true};
    for (int i = 0; i < 3; i++) {
        assert_true(plan.hammer[i] < 8);
        assert_false(core[plan.hammer[i] / 2]);
        core[plan.hammer[i] / 2] = true;
    }
    free(t);
}

static void fast_cores_come_first(void **state)
{
    (void)state;
    struct host_topology *t = plant(8, 1, 8);
    for (int i = 0; i < 8; i++)
        t->cpus[i].speed = i < 4 ? 5000000 : 3000000; /* the last four are slow cores */
    struct host_cpu_plan plan;
    assert_int_equal(host_cpu_choose(t, -1, 3, &plan, NULL), 0);
    assert_int_equal(plan.server, 3);
    for (int i = 0; i < 3; i++)
        assert_true(plan.hammer[i] < 3);
    free(t);
}

static void a_cpu_that_is_not_allowed_names_those_that_are(void **state)
{
    (void)state;
    struct host_topology *t = plant(6, 1, 6);
    t->cpus[5].number = 9;
    t->cpus[0].number = 0;
    struct host_cpu_plan plan;
    struct err err = {0};
    assert_int_equal(host_cpu_choose(t, 7, 1, &plan, &err), -EINVAL);
    assert_string_equal(err.text, "CPU 7 cannot be used for the server; allowed are: 0-4,9");
    assert_int_equal(host_cpu_choose(t, 0, 6, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "only CPUs 0-4,9 may be used"));
    assert_int_equal(host_cpu_choose(t, 0, 0, &plan, &err), -EINVAL);
    free(t);
}

static void hammers_by_name_are_held_to_what_is_there(void **state)
{
    (void)state;
    struct host_topology *t = plant(4, 2, 4); /* 0+1, 2+3 */
    struct host_cpu_plan plan;
    struct err err = {0};
    assert_int_equal(host_cpu_assign(t, -1, (const int[]){3}, 1, &plan, &err), 0);
    assert_int_equal(plan.hammer[0], 3);
    assert_int_equal(plan.server, 1); /* not 2, the sibling */
    assert_false(plan.siblings);
    assert_int_equal(plan.allowed_count, 4);
    assert_int_equal(host_cpu_assign(t, 2, (const int[]){0, 3}, 2, &plan, &err), 0);
    assert_int_equal(plan.server, 2);
    assert_int_equal(plan.hammer_count, 2);
    assert_int_equal(plan.hammer[1], 3);
    assert_true(plan.siblings);
    assert_int_equal(host_cpu_assign(t, 2, (const int[]){2}, 1, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPU 2 is the server's"));
    assert_int_equal(host_cpu_assign(t, -1, (const int[]){0, 0}, 2, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPU 0 is named twice"));
    assert_int_equal(host_cpu_assign(t, -1, (const int[]){7}, 1, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPU 7 cannot be used"));
    assert_int_equal(host_cpu_assign(t, 9, (const int[]){1}, 1, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPU 9 cannot be used for the server"));
    assert_int_equal(host_cpu_assign(t, -1, (const int[]){0, 1, 2, 3}, 4, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "none is left for the server"));
    free(t);
    t = plant(1, 1, 1);
    assert_int_equal(host_cpu_assign(t, -1, (const int[]){0}, 1, &plan, &err), 0);
    assert_true(plan.shared);
    assert_false(plan.siblings);
    free(t);
}

static void several_cores_for_workers_leave_one_for_the_hammer(void **state)
{
    (void)state;
    struct host_topology *t = plant(4, 1, 4);
    struct host_cpu_plan plan;
    struct err err = {0};
    int cpus[HOST_SERVERS_MAX];
    struct host_cpu_wish wish = {.servers = (const int[]){3, 1}, .server_count = 2};
    assert_int_equal(host_cpu_meet(t, &wish, &plan, &err), 0);
    assert_int_equal(plan.server, 3);
    assert_int_equal(plan.hammer[0], 2);
    assert_int_equal(host_cpu_servers(&plan, cpus), 2);
    assert_int_equal(cpus[0], 3);
    assert_int_equal(cpus[1], 1);
    wish.hammers = (const int[]){0, 1};
    wish.hammer_count = 2;
    assert_int_equal(host_cpu_meet(t, &wish, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPU 1 is the server's"));
    wish = (struct host_cpu_wish){.servers = (const int[]){3, 9}, .server_count = 2};
    assert_int_equal(host_cpu_meet(t, &wish, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPU 9 cannot be used for the server; allowed are: 0-3"));
    wish.servers = (const int[]){3, 3};
    assert_int_equal(host_cpu_meet(t, &wish, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "CPU 3 is named twice"));
    wish = (struct host_cpu_wish){.servers = (const int[]){0, 1, 2, 3}, .server_count = 4};
    assert_int_equal(host_cpu_meet(t, &wish, &plan, &err), -EINVAL);
    assert_non_null(strstr(err.text, "none is left for the load generator"));
    free(t);
}

static void the_real_machine_s_plan_can_be_pinned_to(void **state)
{
    (void)state;
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    struct host_cpu_plan plan;
    assert_int_equal(host_cpu_plan(-1, 1, &plan, NULL), 0);
    assert_int_equal(plan.allowed_count, CPU_COUNT(&before));
    assert_int_equal(host_cpu_pin(plan.server, NULL), 0);
    assert_int_equal(sched_getcpu(), plan.server);
    /* As in a container whose cpuset holds one CPU. */
    assert_int_equal(host_cpu_plan(-1, 1, &plan, NULL), 0);
    assert_true(plan.shared);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);

    struct err err = {0};
    assert_int_equal(host_cpu_pin(HOST_CPUS_MAX - 1, &err), -EINVAL);
    assert_non_null(strstr(err.text, "cannot pin to CPU 1023"));
    assert_int_equal(host_cpu_pin(HOST_CPUS_MAX, &err), -EINVAL);
}

/* A child that reports its grandchild's pid through a pipe; both wait to be killed. */
static pid_t start_family(pid_t *grandchild)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pid_t inner = fork();
        if (inner == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            inner = getpid();
            if (write(ends[1], &inner, sizeof inner) != sizeof inner)
                _exit(1);
        }
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], grandchild, sizeof *grandchild), sizeof *grandchild);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void a_tree_holds_grandchildren(void **state)
{
    (void)state;
    pid_t grandchild;
    pid_t child = start_family(&grandchild);
    pid_t pids[HOST_TREE_MAX];
    assert_int_equal(host_tree(child, pids), 2);
    assert_int_equal(pids[0], child);
    assert_int_equal(pids[1], grandchild);

    struct host_usage usage;
    assert_int_equal(host_usage_read(pids, 2, &usage, NULL), 0);
    assert_int_equal(usage.processes, 2);
    assert_int_equal(usage.threads, 2);
    assert_true(usage.rss_bytes > 0);
    assert_true(usage.rss_peak_bytes >= usage.rss_bytes);

    kill(grandchild, SIGKILL); /* its parent does not wait for it */
    while (host_tree(child, pids) == 2)
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    assert_int_equal(host_tree(child, pids), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(host_tree(child, pids), 0);
    struct err err = {0};
    assert_int_equal(host_usage_read(&child, 1, &usage, &err), -ESRCH);
    assert_non_null(strstr(err.text, "none of the 1 processes lives"));
}

static void cpu_time_of_a_process_is_seen(void **state)
{
    (void)state;
    pid_t self = getpid();
    struct host_usage before;
    struct host_usage after;
    struct timespec used;
    assert_int_equal(host_usage_read(&self, 1, &before, NULL), 0);
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while ((uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec <
             before.cpu_ns + 50 * NS_PER_MS);
    assert_int_equal(host_usage_read(&self, 1, &after, NULL), 0);
    assert_true(after.cpu_ns - before.cpu_ns >= 50 * NS_PER_MS);
    uint64_t ticks =
        after.user_ticks + after.system_ticks - before.user_ticks - before.system_ticks;
    assert_in_range(ticks, 3, 20); /* five at 100 Hz */
    clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    assert_int_equal(host_usage_read(&self, 1, &before, NULL), 0);
    assert_true(before.switches_voluntary > after.switches_voluntary);
}

static void cores_count_ticks(void **state)
{
    (void)state;
    struct host_core core;
    assert_int_equal(host_core_read(sched_getcpu(), &core, NULL), 0);
    assert_true(core.user + core.system + core.idle > 0);
    struct err err = {0};
    assert_int_equal(host_core_read(100000, &core, &err), -ENODEV);
    assert_string_equal(err.text, "/proc/stat has no CPU 100000");
}

static void numbers_are_found_by_whole_keys(void **state)
{
    (void)state;
    const char *text = "VmHWM:\t  123 kB\nnonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches: "
                       "9\nempty:\n";
    uint64_t number = 0;
    assert_true(host_file_number(text, "VmHWM", &number));
    assert_int_equal(number, 123);
    assert_true(host_file_number(text, "voluntary_ctxt_switches", &number));
    assert_int_equal(number, 9);
    assert_false(host_file_number(text, "Vm", &number));
    assert_false(host_file_number(text, "absent", &number));
    assert_false(host_file_number("key: none", "key", &number));
}

static void a_file_is_read_or_its_error_returned(void **state)
{
    (void)state;
    char text[8];
    assert_int_equal(host_file_read("/proc/nothing", text, sizeof text), -ENOENT);
    assert_string_equal(text, "");
    assert_int_equal(host_file_read("/proc", text, sizeof text), -EISDIR);
    assert_int_equal(host_file_read("/proc/self/status", text, sizeof text), 7);
    assert_int_equal(strlen(text), 7);
}

static void the_machine_is_described(void **state)
{
    (void)state;
    json_t *machine = host_machine_describe();
    assert_true(json_is_string(json_object_get(machine, "hostname")));
    assert_true(json_is_string(json_object_get(machine, "kernel")));
    assert_true(json_integer_value(json_object_get(machine, "cpus_allowed")) >= 1);
    assert_true(json_integer_value(json_object_get(machine, "memory_bytes")) > 1 << 20);
    assert_true(json_integer_value(json_object_get(machine, "file_limit")) > 0);
    assert_int_equal(json_array_size(json_object_get(machine, "port_range")), 2);
    const char *key;
    json_t *value;
    json_object_foreach(machine, key, value) assert_false(json_is_null(value));
    json_decref(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_cores_take_one_each),
        cmocka_unit_test(one_cpu_is_shared),
        cmocka_unit_test(siblings_are_avoided_if_there_is_a_choice),
        cmocka_unit_test(siblings_without_a_choice_are_told),
        cmocka_unit_test(hammers_spread_over_cores_of_the_server_s_package),
        cmocka_unit_test(fast_cores_come_first),
        cmocka_unit_test(a_cpu_that_is_not_allowed_names_those_that_are),
        cmocka_unit_test(hammers_by_name_are_held_to_what_is_there),
        cmocka_unit_test(several_cores_for_workers_leave_one_for_the_hammer),
        cmocka_unit_test(the_real_machine_s_plan_can_be_pinned_to),
        cmocka_unit_test(a_tree_holds_grandchildren),
        cmocka_unit_test(cpu_time_of_a_process_is_seen),
        cmocka_unit_test(cores_count_ticks),
        cmocka_unit_test(numbers_are_found_by_whole_keys),
        cmocka_unit_test(a_file_is_read_or_its_error_returned),
        cmocka_unit_test(the_machine_is_described),
    };
    return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
