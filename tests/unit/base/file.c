#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What waits for ever ends the test. */
enum { PATIENCE_S = 10 };

static int read_it(const char *path, size_t most, char **text, size_t *size, struct err *err)
{
    alarm(PATIENCE_S);
    int status = file_read(path, "the file", "write one", most, text, size, err);
    alarm(0);
    return status;
}

static void a_file_is_read_up_to_its_bound(void **state)
{
    char path[] = "/tmp/showdown-file-XXXXXX";
    int fd = mkstemp(path);
    char *text = NULL;
    size_t size;
    struct err err;
    (void)state;
    assert_int_equal(write(fd, "ab\0de", 5), 5);
    close(fd);
    assert_int_equal(read_it(path, 5, &text, &size, &err), 0);
    assert_int_equal(size, 5);
    assert_memory_equal(text, "ab\0de\0", 6);
    free(text);
    assert_int_equal(read_it(path, 4, &text, &size, &err), -EINVAL);
    assert_string_equal(err.text, "the file: larger than 4 bytes");
    unlink(path);
    assert_int_equal(read_it(path, 5, &text, &size, &err), -ENOENT);
    assert_string_equal(err.text, "the file: No such file or directory");
}

static void what_is_no_file_is_refused(void **state)
{
    char folder[] = "/tmp/showdown-file-XXXXXX";
    char path[64];
    char *text;
    struct err err;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(read_it(path, 5, &text, NULL, &err), -EINVAL);
    assert_string_equal(err.text, "the file: not a regular file; write one");
    assert_int_equal(read_it("/dev/zero", 5, &text, NULL, &err), -EINVAL);
    assert_int_equal(read_it(folder, 5, &text, NULL, &err), -EISDIR);
    assert_string_equal(err.text, "the file: Is a directory");
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_up_to_its_bound),
        cmocka_unit_test(what_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
