/* Errors as values, the clock, and checked allocation. */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void set_returns_minus_code_and_fills(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(err_set(&err, ENOENT, "no %s here", "cat"), -ENOENT);
    assert_int_equal(err.code, ENOENT);
    assert_string_equal(err.text, "no cat here");
    assert_int_equal(err_set(NULL, EPERM, "nobody listens"), -EPERM);
}

static void prefix_comes_before(void **state)
{
    (void)state;
    struct err err = {0};
    err_set(&err, EIO, "the disk is gone");
    assert_int_equal(err_prefix(&err, "entry %d", 3), -EIO);
    assert_string_equal(err.text, "entry 3: the disk is gone");
}

static void own_text_may_be_an_argument(void **state)
{
    (void)state;
    struct err err = {0};
    err_set(&err, EIO, "inner");
    err_set(&err, EPROTO, "outer (%s)", err.text);
    assert_string_equal(err.text, "outer (inner)");
}

static void long_text_is_cut_and_says_so(void **state)
{
    (void)state;
    struct err err = {0};
    char *text = mem_alloc(3000, 1);
    memset(text, 'x', 2999);
    err_set(&err, E2BIG, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + sizeof err.text - 5, "x...");
    err_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    free(text);
}

static void a_cut_splits_no_character(void **state)
{
    (void)state;
    struct err err = {0};
    char *text = mem_alloc(3000, 1);
    for (int i = 0; i < 1400; i++)
        memcpy(text + 2 * i, "\xC3\xA9", 2); /* é */
    for (int shift = 0; shift < 2; shift++) {
        err_set(&err, E2BIG, "%s%s", shift ? "a" : "", text);
        size_t size = strlen(err.text);
        assert_string_equal(err.text + size - 3, "...");
        assert_int_equal((unsigned char)err.text[size - 4], 0xA9);
    }
    free(text);
}

static void sleep_reaches_the_deadline(void **state)
{
    (void)state;
    uint64_t deadline = clock_now_ns() + 3 * NS_PER_MS;
    clock_sleep_until_ns(deadline);
    assert_true(clock_now_ns() >= deadline);
    clock_sleep_until_ns(0); /* the past: returns at once */
}

static void memory_is_zeroed_and_grows(void **state)
{
    (void)state;
    unsigned *numbers = mem_alloc(4, sizeof *numbers);
    for (int i = 0; i < 4; i++)
        assert_int_equal(numbers[i], 0);
    numbers[3] = 7;
    numbers = mem_grow(numbers, 4000, sizeof *numbers);
    assert_int_equal(numbers[3], 7);
    free(numbers);
    void *empty = mem_alloc(0, 8);
    assert_non_null(empty);
    free(empty);
    char *text = mem_format("%s-%d", "port", 80);
    assert_string_equal(text, "port-80");
    char *copy = mem_copy_string(text);
    assert_string_equal(copy, text);
    free(copy);
    free(text);
}

static void too_much_memory_ends_with_status_1(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        void *impossible = mem_grow(NULL, SIZE_MAX / 2, 3);
        _exit(impossible != NULL ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_returns_minus_code_and_fills),
        cmocka_unit_test(prefix_comes_before),
        cmocka_unit_test(own_text_may_be_an_argument),
        cmocka_unit_test(long_text_is_cut_and_says_so),
        cmocka_unit_test(a_cut_splits_no_character),
        cmocka_unit_test(sleep_reaches_the_deadline),
        cmocka_unit_test(memory_is_zeroed_and_grows),
        cmocka_unit_test(too_much_memory_ends_with_status_1),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
