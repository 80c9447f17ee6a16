#include "report/precision.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* "40 s", "8 min", "3.5 h": as rough as it is. */
static void name_time(double seconds, char *words, size_t bytes)
{
    if (seconds < 100)
        snprintf(words, bytes, "%.0f s", fmax(1, ceil(seconds)));
    else if (seconds < 6000)
        snprintf(words, bytes, "%.0f min", ceil(seconds / 60));
    else
        snprintf(words, bytes, "%.*f h", seconds < 36000 ? 1 : 0, seconds / 3600);
}

static void name_ending(const char *by, char *words, size_t bytes, double boots)
{
    if (strcmp(by, "budget") == 0)
        snprintf(words, bytes, "the budget ended first, after %.0f boots", boots);
    else if (strcmp(by, "signal") == 0)
        snprintf(words, bytes, "interrupted after %.0f boots", boots);
    else
        snprintf(words, bytes, "nothing was left to measure after %.0f boots", boots);
}

char *precision_sentence(const json_t *end)
{
    const json_t *precision = json_object_get(end, "precision");
    double wanted = number(precision, "wanted") * 100;
    double widest = number(precision, "widest") * 100;
    double boots = number(end, "boots");
    char ending[80];
    char more[80] = "";
    char needed[32];
    if (isnan(wanted))
        return NULL;
    if (strcmp(text(end, "ended_by"), "precision") == 0)
        return mem_format(
            "Precision: reached after %.0f boots and %.0f s: every interval is within "
            "+-%g%%, the widest +-%.2f%% (%s).",
            boots, number(end, "spent_ns") / 1e9, wanted, widest, text(precision, "widest_entry"));
    name_ending(text(end, "ended_by"), ending, sizeof ending, boots);
    if (isnan(widest))
        return mem_format("Precision: %s, too few to know any interval; +-%g%% was wanted.", ending,
                          wanted);
    if (number(precision, "more_ns") > 0) {
        name_time(number(precision, "more_ns") / 1e9, needed, sizeof needed);
        snprintf(more, sizeof more, " About %s more would be needed.", needed);
    }
    return mem_format("Precision: %s: the widest interval is +-%.2f%% (%s), +-%g%% was wanted.%s",
                      ending, widest, text(precision, "widest_entry"), wanted, more);
}

json_t *precision_to_json(const json_t *end)
{
    static const char *const copied[][2] = {
        {"wanted", "wanted"}, {"widest", "widest"}, {"widest_entry", "entry"}};
    json_t *precision = json_object_get(end, "precision");
    if (precision == NULL)
        return NULL;
    json_t *json = json_object();
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        if (json_object_get(precision, copied[i][0]) != NULL)
            json_object_set(json, copied[i][1], json_object_get(precision, copied[i][0]));
    if (!isnan(number(precision, "more_ns")))
        json_object_set_new(json, "more_s", json_real(number(precision, "more_ns") / 1e9));
    return json;
}
