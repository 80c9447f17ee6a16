/* Replays the inputs of tests/fuzz/response/ (a corpus, and each input that once broke something)
 * through the fuzz target, without libFuzzer. A broken property ends in abort(3). Runs from the
 * root of the repository, as `make unit` does.
 */
#include "../../fuzz/response.c"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define FOLDER "tests/fuzz/response"

static void replay(const char *name)
{
    static uint8_t data[1 << 20];
    char path[512];
    snprintf(path, sizeof path, FOLDER "/%s", name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("%s cannot be opened", path);
    size_t size = fread(data, 1, sizeof data, file);
    assert_int_equal(ferror(file), 0);
    assert_true(size < sizeof data);
    fclose(file);
    assert_int_equal(LLVMFuzzerTestOneInput(data, size), 0);
}

static void kept_inputs_hold(void **state)
{
    (void)state;
    DIR *folder = opendir(FOLDER);
    if (folder == NULL)
        fail_msg("%s cannot be opened; run from the root of the repository", FOLDER);
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        replay(entry->d_name);
        count++;
    }
    closedir(folder);
    print_message("# %u inputs\n", count);
    assert_true(count >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept_inputs_hold)};
    return cmocka_run_group_tests_name("http fuzz inputs", tests, NULL, NULL);
}
