#include "report/tally.h"

#include "report/text.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What is compared. Below `floor` per request a growth is none: one call in a thousand requests is
 * a timer's. */
static const struct {
    const char *key;
    const char *title;
    const char *format;
    const char *reason; /* its key in "absent" */
    double floor;
} figures[] = {
    {"instructions_per_req", "instr/req", "%.1f", "instructions", 1},
    {"allocations_per_req", "alloc/req", "%.2f", "instructions", 0.01},
    {"syscalls_per_req", "sys/req", "%.2f", "syscalls", 0.01},
};
enum { FIGURES = sizeof figures / sizeof figures[0], CELL = 32, NAME_WIDTH = 14 };

json_t *tally_read(const char *path, struct err *err)
{
    json_error_t error;
    json_t *saved = json_load_file(path, 0, &error);
    if (saved == NULL) {
        err_set(err, EINVAL, "%s: %s", path, error.text);
        return NULL;
    }
    if (json_is_array(json_object_get(saved, "entries")))
        return saved;
    json_decref(saved);
    err_set(err, EINVAL, "%s: holds no costs; `showdown cost --save FILE` writes them", path);
    return NULL;
}

int tally_comparable(const json_t *costs, const json_t *saved, struct err *err)
{
    static const char *const keys[] = {"schema", "connections", "pipeline"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        json_int_t now = json_integer_value(json_object_get(costs, keys[i]));
        json_int_t then = json_integer_value(json_object_get(saved, keys[i]));
        if (now != then)
            return err_set(err, EINVAL,
                           "the saved costs have %s %lld, and these have %lld: they do not compare",
                           keys[i], (long long)then, (long long)now);
    }
    return 0;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "unknown";
}

void tally_print_differences(FILE *out, const json_t *costs, const json_t *saved)
{
    static const char *const keys[] = {"cpu_model", "libc", "os"};
    const json_t *now = json_object_get(costs, "machine");
    const json_t *then = json_object_get(saved, "machine");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(text_of(now, keys[i]), text_of(then, keys[i])) != 0)
            fprintf(out, "%s was %s and is %s: a growth may be its doing.\n", keys[i],
                    text_of(then, keys[i]), text_of(now, keys[i]));
    if (strcmp(text_of(costs, "valgrind"), text_of(saved, "valgrind")) != 0)
        fprintf(out, "valgrind was %s and is %s: a growth may be its doing.\n",
                text_of(saved, "valgrind"), text_of(costs, "valgrind"));
}

static const json_t *entry_named(const json_t *costs, const char *name)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(costs, "entries"), i,
                       entry) if (strcmp(text_of(entry, "name"), name) == 0) return entry;
    return NULL;
}

/* NAN where absent. */
static double figure(const json_t *entry, const char *key)
{
    const json_t *value = json_object_get(entry, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void print_heads(FILE *out, bool changes)
{
    fprintf(out, "%-*s", NAME_WIDTH, "entry");
    for (int i = 0; i < FIGURES; i++)
        fprintf(out, changes ? "  %9s  %7s" : "  %9s", figures[i].title, "change");
    fputs("  system calls a request\n", out);
}

static void print_change(FILE *out, double now, double then)
{
    char text[CELL] = "";
    if (isfinite(now) && isfinite(then) && then > 0)
        snprintf(text, sizeof text, "%+.2f%%", (now / then - 1) * 100);
    else if (isfinite(now) && isfinite(then))
        snprintf(text, sizeof text, now > 0 ? "new" : "0");
    fprintf(out, "  %7s", text);
}

static void print_calls(FILE *out, const json_t *entry)
{
    const char *name;
    json_t *value;
    bool any = false;
    fputs("  ", out);
    json_object_foreach((json_t *)(uintptr_t)json_object_get(entry, "syscalls"), name, value)
    {
        if (json_number_value(value) < 0.005)
            continue;
        fprintf(out, "%s%s %.2f", any ? ", " : "", name, json_number_value(value));
        any = true;
    }
    fputc('\n', out);
}

static void print_row(FILE *out, const json_t *entry, const json_t *then, bool changes)
{
    fprintf(out, "%-*s", NAME_WIDTH, text_of(entry, "name"));
    for (int i = 0; i < FIGURES; i++) {
        char text[CELL] = "-";
        double now = figure(entry, figures[i].key);
        if (isfinite(now))
            snprintf(text, sizeof text, figures[i].format, now);
        fprintf(out, "  %9s", text);
        if (changes)
            print_change(out, now, figure(then, figures[i].key));
    }
    print_calls(out, entry);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void print_functions(FILE *out, const json_t *entry, unsigned most)
{
    size_t i;
    json_t *function;
    const char *object;
    json_t *value;
    double all = figure(entry, "instructions_per_req");
    if (most == 0 || !(all > 0))
        return;
    json_object_foreach((json_t *)(uintptr_t)json_object_get(entry, "objects"), object, value)
        fprintf(out, "    %9.1f  %5.1f%%  in %s\n", json_number_value(value),
                json_number_value(value) / all * 100, object);
    json_array_foreach(json_object_get(entry, "functions"), i, function)
    {
        double own = figure(function, "instructions_per_req");
        if (i < most)
            fprintf(out, "    %9.1f  %5.1f%%  %s (%s)\n", own, own / all * 100,
                    text_of(function, "name"), base_name(text_of(function, "object")));
    }
}

/* A reason may quote what a server printed. */
static void print_reason(FILE *out, const char *name, const char *what, const char *why)
{
    fprintf(out, "%s %s: ", name, what);
    text_print(out, why, strlen(why), "");
    fputc('\n', out);
}

static void print_reasons(FILE *out, const json_t *entry)
{
    const char *what;
    json_t *why;
    const char *name = text_of(entry, "name");
    if (json_object_get(entry, "reason") != NULL)
        print_reason(out, name, text_of(entry, "status"), text_of(entry, "reason"));
    json_object_foreach((json_t *)(uintptr_t)json_object_get(entry, "absent"), what, why)
    {
        char without[40];
        snprintf(without, sizeof without, "without %s", what);
        print_reason(out, name, without, json_string_value(why));
    }
}

void tally_print(FILE *out, const json_t *costs, const json_t *saved, unsigned functions)
{
    size_t i;
    json_t *entry;
    const json_t *entries = json_object_get(costs, "entries");
    print_heads(out, saved != NULL);
    json_array_foreach(entries, i, entry)
    {
        print_row(out, entry, entry_named(saved, text_of(entry, "name")), saved != NULL);
        print_functions(out, entry, functions);
    }
    fputc('\n', out);
    json_array_foreach(entries, i, entry) print_reasons(out, entry);
}

/* One that was there and is gone, though the entry was counted, is a loss too: else a check that
 * can't be made would pass. */
static bool has_grown(FILE *out, const json_t *entry, const json_t *then, int i, double threshold)
{
    double now = figure(entry, figures[i].key);
    double was = figure(then, figures[i].key);
    const char *name = text_of(entry, "name");
    if (!isfinite(was))
        return false;
    if (!isfinite(now)) {
        bool asked = json_object_get(json_object_get(entry, "absent"), figures[i].reason) != NULL;
        if (asked)
            fprintf(out, "%s: %s was %.2f and can't be had now\n", name, figures[i].title, was);
        return asked;
    }
    if (now <= was * (1 + threshold) || now - was < figures[i].floor)
        return false;
    fprintf(out, "%s: %s grew from %.2f to %.2f", name, figures[i].title, was, now);
    if (was > 0)
        fprintf(out, ", by %.2f%%", (now / was - 1) * 100);
    fprintf(out, "; %.4g%% is allowed\n", threshold * 100);
    return true;
}

unsigned tally_print_growth(FILE *out, const json_t *costs, const json_t *saved, double threshold)
{
    size_t index;
    json_t *entry;
    unsigned grown = 0;
    json_array_foreach(json_object_get(costs, "entries"), index, entry)
    {
        const json_t *then = entry_named(saved, text_of(entry, "name"));
        for (int i = 0; i < FIGURES; i++)
            grown += has_grown(out, entry, then, i, threshold);
    }
    return grown;
}
