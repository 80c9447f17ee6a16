#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "entry/launch.h"
#include "entry/keeper.h"
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints the path of the config and what is in it, makes files of its own, and waits. */
#define SCRIPT                                                                                     \
    "echo $1 >&2; cat $1 >&2; mkdir -p $2/a/b; ln -s /usr $2/a/usr; echo x >$2/a/b/c\n"            \
    "echo done >&2; trap 'exit 0' TERM; while :; do sleep 0.01; done\n"

#define MANIFEST(run)                                                                              \
    "name = x\ntitle = x\nlanguage = C\nlibrary = x\nlayer = server\nconfig = x.in\nrun = " run "\n"

struct fixture {
    char *root;
    struct entry_list list;
    struct server *server;
    char output[SERVER_OUTPUT_KEEP];
    char path[256]; /* of the config, as the server was told */
};

static void set_up(struct fixture *f, const char *manifest, const char *config)
{
    struct err err;
    memset(f, 0, sizeof *f);
    f->root = folder_make();
    folder_print(f->root, "servers/x/entry.conf", manifest);
    folder_print(f->root, "servers/x/x.sh", SCRIPT);
    if (config != NULL)
        folder_print(f->root, "servers/x/x.in", config);
    assert_int_equal(entry_list_read(f->root, "/build", &f->list, &err), 0);
}

static void tear_down(struct fixture *f)
{
    server_stop(f->server, NULL);
    entry_list_free(&f->list);
    folder_remove(f->root);
}

static int launch(struct fixture *f, struct err *err)
{
    const struct entry_launch how = {.port = 8123, .workers = 2};
    return entry_launch(&f->list.items[0], &how, &f->server, err);
}

static void wait_done(struct fixture *f)
{
    for (int i = 0; i < 500 && strstr(f->output, "done") == NULL; i++) {
        clock_sleep_until_ns(clock_now_ns() + 10 * NS_PER_MS);
        server_output(f->server, f->output, sizeof f->output);
    }
    snprintf(f->path, sizeof f->path, "%.*s", (int)strcspn(f->output, "\n"), f->output);
    assert_int_equal(access(f->path, R_OK), 0);
}

static bool has_gone(const char *path)
{
    char folder[256];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    for (int i = 0; i < 300 && access(folder, F_OK) == 0; i++)
        clock_sleep_until_ns(clock_now_ns() + 10 * NS_PER_MS);
    return access(folder, F_OK) != 0 && errno == ENOENT;
}

static void test_the_config_is_filled_and_removed(void **state)
{
    struct fixture f;
    struct err err;
    char expected[512];
    (void)state;
    set_up(&f, MANIFEST("sh {dir}/x.sh {config} {tmp}"),
           "{ listen {port}; {x} w={workers} } {dir}");
    assert_int_equal(launch(&f, &err), 0);
    wait_done(&f);
    snprintf(expected, sizeof expected, "{ listen 8123; {x} w=2 } %s/servers/x", f.root);
    assert_non_null(strstr(f.output, expected));
    server_stop(f.server, NULL);
    f.server = NULL;
    assert_true(has_gone(f.path));
    assert_int_equal(access("/usr/bin", F_OK), 0);
    tear_down(&f);
}

static void test_a_killed_keeper_leaves_no_folder(void **state)
{
    struct fixture f;
    struct err err;
    (void)state;
    set_up(&f, MANIFEST("sh {dir}/x.sh {config} {tmp}"), "a");
    assert_int_equal(launch(&f, &err), 0);
    wait_done(&f);
    kill(f.server->keeper, SIGKILL);
    server_stop(f.server, NULL);
    f.server = NULL;
    assert_true(has_gone(f.path));
    tear_down(&f);
}

/* What the test's own death does: the keeper sees the socket close. */
static void test_a_dead_harness_leaves_no_folder(void **state)
{
    struct fixture f;
    struct err err;
    (void)state;
    set_up(&f, MANIFEST("sh {dir}/x.sh {config} {tmp}"), "a");
    assert_int_equal(launch(&f, &err), 0);
    wait_done(&f);
    close(f.server->control);
    f.server->control = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_true(has_gone(f.path));
    tear_down(&f);
}

static void test_a_missing_config_is_named(void **state)
{
    struct fixture f;
    struct err err;
    (void)state;
    set_up(&f, MANIFEST("sh {dir}/x.sh {config}"), NULL);
    assert_int_equal(launch(&f, &err), -ENOENT);
    assert_non_null(strstr(err.text, "servers/x/x.in"));
    tear_down(&f);
}

static void test_a_folder_that_cannot_be_made_is_named(void **state)
{
    struct fixture f;
    struct err err;
    (void)state;
    set_up(&f, MANIFEST("sh {dir}/x.sh {config}"), "a");
    setenv("TMPDIR", "/proc/nothing", 1);
    assert_true(launch(&f, &err) < 0);
    unsetenv("TMPDIR");
    assert_non_null(strstr(err.text, "/proc/nothing"));
    assert_non_null(strstr(err.text, "TMPDIR"));
    tear_down(&f);
}

static void test_a_program_that_is_not_there_leaves_no_folder(void **state)
{
    struct fixture f;
    struct err err;
    char *tmp = folder_make();
    (void)state;
    set_up(&f, MANIFEST("/nothing/here {config}"), "a");
    setenv("TMPDIR", tmp, 1);
    assert_int_equal(launch(&f, &err), -ENOENT);
    unsetenv("TMPDIR");
    assert_int_equal(rmdir(tmp), 0);
    free(tmp);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_config_is_filled_and_removed),
        cmocka_unit_test(test_a_killed_keeper_leaves_no_folder),
        cmocka_unit_test(test_a_dead_harness_leaves_no_folder),
        cmocka_unit_test(test_a_missing_config_is_named),
        cmocka_unit_test(test_a_folder_that_cannot_be_made_is_named),
        cmocka_unit_test(test_a_program_that_is_not_there_leaves_no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
