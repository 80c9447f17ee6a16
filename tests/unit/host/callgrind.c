/* Reading what callgrind writes: costs by function, calls apart, sums held against the total. */
#include "base/mem.h"
#include "host/callgrind.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int add(struct callgrind *profile, const char *text, struct err *err)
{
    char path[] = "/tmp/callgrind.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    int status = callgrind_add(profile, path, err);
    unlink(path);
    return status;
}

/* main's own 10 and 5, and calls of malloc (30 in all, 20 its own) and of a helper in a library. */
static const char sample[] = "# callgrind format\n"
                             "version: 1\n"
                             "events: Ir\n"
                             "summary: 47\n"
                             "\n"
                             "ob=(1) /bin/server\n"
                             "fl=(1) main.c\n"
                             "fn=(1) main\n"
                             "3 10\n"
                             "cob=(2) /lib/libc.so.6\n"
                             "cfn=(2) malloc\n"
                             "calls=4 0\n"
                             "+1 30\n"
                             "* 5\n"
                             "fe=(3) inlined.h\n"
                             "-2 2\n"
                             "\n"
                             "ob=(2)\n"
                             "fl=(2) ???\n"
                             "fn=(2)\n"
                             "0 20\n"
                             "cfn=(3) grow\n"
                             "calls=1 0\n"
                             "0 10\n"
                             "fn=(3)\n"
                             "0 10\n"
                             "\n"
                             "totals: 47\n";

static void costs_go_to_their_functions(void **state)
{
    (void)state;
    struct callgrind profile = {0};
    assert_int_equal(add(&profile, sample, NULL), 0);
    callgrind_sort(&profile);
    assert_int_equal(profile.instructions, 47);
    assert_int_equal(profile.allocations, 4);
    assert_int_equal(profile.count, 3);
    assert_string_equal(profile.functions[0].name, "malloc");
    assert_string_equal(profile.functions[0].object, "/lib/libc.so.6");
    assert_int_equal(profile.functions[0].instructions, 20);
    assert_string_equal(profile.functions[1].name, "main");
    assert_string_equal(profile.functions[1].object, "/bin/server");
    assert_int_equal(profile.functions[1].instructions, 17);
    assert_string_equal(profile.functions[2].name, "grow");
    assert_int_equal(profile.functions[2].instructions, 10);
    callgrind_free(&profile);
}

static void files_add_up_and_subtract(void **state)
{
    (void)state;
    struct callgrind once = {0};
    struct callgrind twice = {0};
    assert_int_equal(add(&once, sample, NULL), 0);
    assert_int_equal(add(&twice, sample, NULL), 0);
    assert_int_equal(add(&twice, sample, NULL), 0);
    assert_int_equal(twice.instructions, 94);
    assert_int_equal(twice.allocations, 8);
    assert_int_equal(twice.count, 3);
    callgrind_subtract(&twice, &once);
    callgrind_sort(&twice);
    assert_int_equal(twice.instructions, 47);
    assert_int_equal(twice.allocations, 4);
    assert_int_equal(twice.functions[0].instructions, 20);
    callgrind_free(&twice);
    callgrind_free(&once);
}

static void what_only_the_shorter_run_did_is_negative(void **state)
{
    (void)state;
    struct callgrind none = {0};
    struct callgrind once = {0};
    assert_int_equal(add(&once, sample, NULL), 0);
    callgrind_subtract(&none, &once);
    callgrind_sort(&none);
    assert_int_equal(none.instructions, -47);
    assert_int_equal(none.functions[2].instructions, -20);
    callgrind_free(&none);
    callgrind_free(&once);
}

static void is_refused(const char *text, const char *part)
{
    struct callgrind profile = {0};
    struct err err;
    assert_int_equal(add(&profile, text, &err), -EINVAL);
    if (strstr(err.text, part) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, part);
    callgrind_free(&profile);
}

static void a_broken_file_is_refused(void **state)
{
    (void)state;
    is_refused("", "no totals");
    is_refused("events: Ir\nob=(1) a\nfn=(1) b\n0 5\n", "no totals");
    is_refused("events: Ir\nob=(1) a\nfn=(1) b\n0 5\ntotals: 6\n",
               "sum up to 5, not to the total, 6");
    is_refused("events: Ir Dr\n", ":1: other events");
    is_refused("events: Ir\nfn=main\n", ":2: a name without its number");
    is_refused("fn=(x) main\n", ":1: a name's number");
    is_refused("fn=(99999999) main\n", ":1: a name's number");
    is_refused("fn=(1) b\n0 -5\n", ":2: a cost");
    is_refused("fn=(1) b\n0 5 6\n", ":2: a cost");
    is_refused("calls=x\n", ":1: calls");
    struct callgrind profile = {0};
    assert_int_equal(callgrind_add(&profile, "/nonexistent", NULL), -ENOENT);
    callgrind_free(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_go_to_their_functions),
        cmocka_unit_test(files_add_up_and_subtract),
        cmocka_unit_test(what_only_the_shorter_run_did_is_negative),
        cmocka_unit_test(a_broken_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
