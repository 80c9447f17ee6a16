#include "report/doubts.h"
#include "report/text.h"

#include <stdbool.h>
#include <string.h>

void doubts_print(FILE *out, const json_t *machine)
{
    size_t i;
    json_t *finding;
    bool any = false;
    json_array_foreach(json_object_get(machine, "doctor"), i, finding)
    {
        const char *key = json_string_value(json_object_get(finding, "key"));
        const char *found = json_string_value(json_object_get(finding, "found"));
        if (!json_is_true(json_object_get(finding, "doubt")) || key == NULL || found == NULL)
            continue;
        fputs("Doubt, ", out);
        text_print(out, key, strlen(key), "");
        fputs(": ", out);
        text_print(out, found, strlen(found), "");
        fputc('\n', out);
        any = true;
    }
    if (any)
        fputs("What doubts do to the numbers, and how to change it: showdown doctor\n", out);
}
