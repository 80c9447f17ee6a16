/* The doubts of a record's machine, as lines under the table. */
#include "report/doubts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void prints(const char *machine, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    json_t *json = machine != NULL ? json_loads(machine, 0, NULL) : NULL;
    assert_true(machine == NULL || json != NULL);
    FILE *out = open_memstream(&text, &size);
    doubts_print(out, json);
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
    json_decref(json);
}

static void only_doubts_are_printed(void **state)
{
    (void)state;
    prints("{\"doctor\": [{\"key\": \"smt\", \"found\": \"none\", \"doubt\": false},"
           "{\"key\": \"governor\", \"found\": \"powersave on CPU 0\", \"doubt\": true}]}",
           "Doubt, governor: powersave on CPU 0\n"
           "What doubts do to the numbers, and how to change it: showdown doctor\n");
}

static void nothing_without_doubts_or_a_doctor(void **state)
{
    (void)state;
    prints("{\"doctor\": [{\"key\": \"smt\", \"found\": \"none\", \"doubt\": false}]}", "");
    prints("{\"doctor\": []}", "");
    prints("{\"hostname\": \"old\"}", "");
    prints(NULL, "");
}

static void a_foreign_record_is_held_off(void **state)
{
    (void)state;
    prints("{\"doctor\": [{\"key\": \"a\\u001bb\", \"found\": \"c\\nd\\u007f\", \"doubt\": true},"
           "{\"key\": 5, \"found\": \"x\", \"doubt\": true}, {\"doubt\": true}, 7]}",
           "Doubt, a?b: c?d?\n"
           "What doubts do to the numbers, and how to change it: showdown doctor\n");
    prints("{\"doctor\": {\"key\": \"x\"}}", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_doubts_are_printed),
        cmocka_unit_test(nothing_without_doubts_or_a_doctor),
        cmocka_unit_test(a_foreign_record_is_held_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
