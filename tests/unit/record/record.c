#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "record/latency.h"
#include "record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/showdown-record-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static struct record *create(void)
{
    struct record *record = NULL;
    struct err err;
    json_t *run = json_pack("{s:s}", "showdown", "test");
    assert_int_equal(record_create(folder, "box", run, &record, &err), 0);
    json_decref(run);
    return record;
}

static int append(struct record *record, const char *entry, int block)
{
    struct err err;
    json_t *line = json_pack("{s:s, s:s, s:i}", "type", "slice", "entry", entry, "block", block);
    int status = record_append(record, line, &err);
    json_decref(line);
    return status;
}

static void test_reads_back_what_was_written(void **state)
{
    struct record_data data;
    struct err err;
    (void)state;
    struct record *record = create();
    assert_int_equal(append(record, "a", 1), 0);
    assert_int_equal(append(record, "b", 2), 0);
    assert_int_equal(record_read(record_folder(record), &data, &err), 0);
    assert_string_equal(json_string_value(json_object_get(data.run, "showdown")), "test");
    assert_int_equal(json_integer_value(json_object_get(data.run, "schema")), RECORD_SCHEMA);
    assert_int_equal(json_array_size(data.lines), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(data.lines, 1), "block")),
                     2);
    record_data_free(&data);
    record_close(record);
}

static void test_latest_points_at_the_newest(void **state)
{
    char latest[128];
    char old[128];
    (void)state;
    record_close(create());
    struct record *record = create(); /* within the same second: a name of its own */
    snprintf(latest, sizeof latest, "%s/latest", folder);
    char *target = realpath(latest, NULL);
    assert_string_equal(target, record_folder(record));
    snprintf(old, sizeof old, "%s", target);
    free(target);
    assert_non_null(strstr(old, "-box"));
    record_close(record);
}

static void test_a_torn_last_line_is_passed_over(void **state)
{
    char path[160];
    struct record_data data;
    struct record *again = NULL;
    struct err err;
    (void)state;
    struct record *record = create();
    append(record, "a", 1);
    snprintf(path, sizeof path, "%s/slices.jsonl", record_folder(record));
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "{\"type\":\"sl", 11), 11);
    close(fd);
    assert_int_equal(record_read(record_folder(record), &data, &err), 0);
    assert_int_equal(json_array_size(data.lines), 1);
    record_data_free(&data);
    char *path_again = strdup(record_folder(record));
    record_close(record);
    assert_int_equal(record_continue(path_again, &again, &data, &err), 0);
    assert_int_equal(append(again, "b", 2), 0);
    record_data_free(&data);
    assert_int_equal(record_read(path_again, &data, &err), 0);
    assert_int_equal(json_array_size(data.lines), 2);
    record_data_free(&data);
    record_close(again);
    free(path_again);
}

static void test_only_one_writes_at_a_time(void **state)
{
    struct record_data data;
    struct record *again = NULL;
    struct err err;
    (void)state;
    struct record *record = create();
    append(record, "a", 1);
    assert_int_equal(record_continue(record_folder(record), &again, &data, &err), -EBUSY);
    assert_non_null(strstr(err.text, record_folder(record)));
    assert_int_equal(record_read(record_folder(record), &data, &err), 0);
    record_data_free(&data);
    record_close(record);
}

/* A NUL would end a line early for whoever takes it for a string. */
static void test_lines_that_are_none_are_refused(void **state)
{
    static const char nul[] = "{\"type\":\"end\"}\0{}\n";
    char path[160];
    struct record_data data;
    struct err err;
    (void)state;
    struct record *record = create();
    snprintf(path, sizeof path, "%s/slices.jsonl", record_folder(record));
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, nul, sizeof nul - 1), sizeof nul - 1);
    close(fd);
    assert_int_equal(record_read(record_folder(record), &data, &err), -EINVAL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(record_read(record_folder(record), &data, &err), -EISDIR);
    record_close(record);
}

/* A file that may not grow stands for a full disk: write(2) takes a part, then refuses. */
static void test_a_line_that_does_not_fit_leaves_nothing(void **state)
{
    struct rlimit old;
    struct record_data data;
    struct err err;
    (void)state;
    struct record *record = create();
    append(record, "a", 1);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    struct rlimit small = {.rlim_cur = 60, .rlim_max = old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    int status = append(record, "b", 2);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, -EFBIG);
    assert_int_equal(append(record, "c", 3), 0);
    assert_int_equal(record_read(record_folder(record), &data, &err), 0);
    assert_int_equal(json_array_size(data.lines), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(data.lines, 1), "entry")),
                        "c");
    record_data_free(&data);
    record_close(record);
}

static void test_errors_name_the_file_and_the_remedy(void **state)
{
    char path[160];
    struct record_data data;
    struct record *record = NULL;
    struct err err;
    (void)state;
    assert_int_equal(record_read("/nonexistent", &data, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/run.json"));
    record = create();
    snprintf(path, sizeof path, "%s/slices.jsonl", record_folder(record));
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "[1]\n", 4), 4);
    close(fd);
    assert_int_equal(record_read(record_folder(record), &data, &err), -EINVAL);
    assert_non_null(strstr(err.text, "slices.jsonl:1"));
    snprintf(path, sizeof path, "%s/run.json", record_folder(record));
    fd = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, "{\"schema\": 99}", 14), 14);
    close(fd);
    assert_int_equal(record_read(record_folder(record), &data, &err), -EINVAL);
    assert_non_null(strstr(err.text, "schema"));
    record_close(record);
}

static void test_an_unwritable_folder_is_refused(void **state)
{
    struct record *record = NULL;
    struct err err;
    char file[128];
    (void)state;
    snprintf(file, sizeof file, "%s/file", folder);
    close(open(file, O_WRONLY | O_CREAT, 0600));
    json_t *run = json_object();
    assert_int_equal(record_create(file, "box", run, &record, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, file));
    assert_int_equal(record_create("/proc/showdown", "box", run, &record, &err), -ENOENT);
    json_decref(run);
}

static void test_latencies_survive_the_way_through_json(void **state)
{
    static struct histogram from;
    static struct histogram into;
    uint64_t value;
    (void)state;
    histogram_reset(&from);
    histogram_reset(&into);
    for (uint64_t i = 1; i <= 1000; i++)
        histogram_add(&from, i * 1000);
    histogram_add(&from, HISTOGRAM_LIMIT_NS + 5);
    json_t *json = latency_to_json(&from);
    latency_add(json, &into);
    latency_add(NULL, &into);
    assert_memory_equal(&from, &into, sizeof from);
    latency_add(json, &into);
    assert_int_equal(into.count, 2002);
    assert_int_equal(into.overflow, 2);
    assert_int_equal(histogram_quantile_ns(&into, 1, &value), 0);
    assert_int_equal(value, HISTOGRAM_LIMIT_NS + 5);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_back_what_was_written, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_latest_points_at_the_newest, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_torn_last_line_is_passed_over, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_only_one_writes_at_a_time, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_lines_that_are_none_are_refused, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_line_that_does_not_fit_leaves_nothing, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_errors_name_the_file_and_the_remedy, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_an_unwritable_folder_is_refused, make_folder,
                                        remove_folder),
        cmocka_unit_test(test_latencies_survive_the_way_through_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
