#include "cli/cli.h"
#include "base/mem.h"
#include "entry/entry.h"
#include "host/machine.h"
#include "report/tally.h"
#include "trial/exact.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: showdown cost [ENTRY…] [FLAG…]\n"
    "Counts what one request costs: instructions in user mode and allocations, by callgrind, and\n"
    "system calls, by tracing. The figures repeat to 0.5% on any machine, also a busy one, where\n"
    "req/s does not: so they can guard a change in CI. Without ENTRY: all of them.\n"
    "One connection and one request at a time is the load by default; then server and client take\n"
    "turns, and the figures are exact. With more, they depend a little on the scheduler. Entries\n"
    "with a JIT have no instructions.\n"
    "  -c, --connections N    1 to 1000 (default: 1)\n"
    "  -p, --pipeline N       requests outstanding on each, 1 to 256 (default: 1)\n"
    "  -n, --requests N       counted requests, 100 to 1000000 (default: 10000)\n"
    "      --only WHAT        instructions (and allocations), or syscalls\n"
    "      --functions N      list the N functions with most instructions, 1 to 100, and the "
    "shares\n"
    "                         of program and libraries\n"
    "      --save FILE        keep the figures\n"
    "      --against FILE     compare with figures kept; a growth ends in status 3\n"
    "      --threshold P      the growth allowed (default: 1%)\n"
    "      --format NAME      table, json (default: table)\n"
    "Exit status: 0 fine, 1 an entry failed, 2 usage, 3 a growth, 130 interrupted.\n"
    "Instructions need valgrind: apt-get install valgrind, which `make cost` does.\n"
    "example: showdown cost libuv libev --save old.json; … ; showdown cost --against old.json\n";

enum {
    DEFAULT_REQUESTS = 10000,
    CONNECTIONS_MOST = 1000,
    FUNCTIONS_KEPT = 100 /* in the document */
};

struct flags {
    struct exact_shape shape;
    unsigned functions;
    const char *save;
    const char *against;
    double threshold;
    bool json;
};

enum { ONLY = 256, FUNCTIONS, SAVE, AGAINST, THRESHOLD, FORMAT };

static const struct option long_options[] = {{"connections", required_argument, NULL, 'c'},
                                             {"pipeline", required_argument, NULL, 'p'},
                                             {"requests", required_argument, NULL, 'n'},
                                             {"only", required_argument, NULL, ONLY},
                                             {"functions", required_argument, NULL, FUNCTIONS},
                                             {"save", required_argument, NULL, SAVE},
                                             {"against", required_argument, NULL, AGAINST},
                                             {"threshold", required_argument, NULL, THRESHOLD},
                                             {"format", required_argument, NULL, FORMAT},
                                             {"help", no_argument, NULL, 'h'},
                                             {0}};

static int take_count(const char *flag, uint64_t low, uint64_t high, unsigned *count)
{
    uint64_t number;
    if (cli_parse_number("cost", flag, optarg, low, high, &number) != 0)
        return -1;
    *count = (unsigned)number;
    return 0;
}

static int take_threshold(double *threshold)
{
    char *end;
    double percent = strtod(optarg, &end);
    if (end == optarg || (*end != '\0' && strcmp(end, "%") != 0) || !(percent >= 0) ||
        percent > 1000) {
        cli_usage("cost", "--threshold takes per cents from 0 to 1000, such as 1%%, not '%s'",
                  optarg);
        return -1;
    }
    *threshold = percent / 100;
    return 0;
}

static int take_choice(struct flags *flags, int option)
{
    bool only = option == ONLY;
    bool first = strcmp(optarg, only ? "instructions" : "table") == 0;
    if (!first && strcmp(optarg, only ? "syscalls" : "json") != 0) {
        cli_usage("cost",
                  only ? "--only takes instructions or syscalls, not '%s'"
                       : "--format takes table or json, not '%s'",
                  optarg);
        return -1;
    }
    if (only) {
        flags->shape.instructions = first;
        flags->shape.calls = !first;
    } else {
        flags->json = !first;
    }
    return 0;
}

/* Takes one flag. 0, or -1 after a usage error. */
static int take_flag(struct flags *flags, int option)
{
    switch (option) {
    case 'c':
        return take_count("-c", 1, CONNECTIONS_MOST, &flags->shape.connections);
    case 'p':
        return take_count("-p", 1, 256, &flags->shape.pipeline);
    case 'n':
        return take_count("-n", 100, 1000000, &flags->shape.requests);
    case FUNCTIONS:
        return take_count("--functions", 1, FUNCTIONS_KEPT, &flags->functions);
    case SAVE:
        flags->save = optarg;
        return 0;
    case AGAINST:
        flags->against = optarg;
        return 0;
    case THRESHOLD:
        return take_threshold(&flags->threshold);
    case ONLY:
    case FORMAT:
        return take_choice(flags, option);
    default:
        return -1;
    }
}

/* ---- an entry's costs as the document has them */

static void put_absent(json_t *entry, const char *what, const char *why)
{
    if (why[0] == '\0')
        return;
    json_t *absent = json_object_get(entry, "absent");
    if (absent == NULL) {
        absent = json_object();
        json_object_set_new(entry, "absent", absent);
    }
    json_object_set_new(absent, what, json_string(why));
}

static json_t *calls_to_json(const struct exact_cost *cost)
{
    bool done[CALLS_MAX] = {false};
    json_t *calls = json_object();
    for (;;) { /* most calls first */
        unsigned most = CALLS_MAX;
        for (unsigned i = 0; i < CALLS_MAX; i++)
            if (!done[i] && cost->calls_by_number[i] > 0 &&
                (most == CALLS_MAX || cost->calls_by_number[i] > cost->calls_by_number[most]))
                most = i;
        if (most == CALLS_MAX)
            return calls;
        char text[16];
        done[most] = true;
        json_object_set_new(calls, calls_name(most, text), json_real(cost->calls_by_number[most]));
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Sums by object; the order is that of their dearest functions. */
static json_t *objects_to_json(const struct callgrind *profile, double requests)
{
    json_t *objects = json_object();
    for (size_t i = 0; i < profile->count; i++) {
        const struct callgrind_function *f = &profile->functions[i];
        const char *object = base_name(f->object);
        double before = json_real_value(json_object_get(objects, object));
        if (f->instructions != 0)
            json_object_set_new(objects, object,
                                json_real(before + (double)f->instructions / requests));
    }
    return objects;
}

static json_t *functions_to_json(const struct callgrind *profile, double requests)
{
    json_t *functions = json_array();
    for (size_t i = 0; i < profile->count && i < FUNCTIONS_KEPT; i++) {
        const struct callgrind_function *f = &profile->functions[i];
        if (f->instructions > 0)
            json_array_append_new(functions, json_pack("{s:s, s:s, s:f}", "name", f->name, "object",
                                                       base_name(f->object), "instructions_per_req",
                                                       (double)f->instructions / requests));
    }
    return functions;
}

static void put_cost(json_t *entry, const struct exact_cost *cost, unsigned requests)
{
    if (cost->instructions_known) {
        json_object_set_new(entry, "instructions_per_req", json_real(cost->instructions));
        json_object_set_new(entry, "allocations_per_req", json_real(cost->allocations));
        json_object_set_new(entry, "objects", objects_to_json(&cost->profile, requests));
        json_object_set_new(entry, "functions", functions_to_json(&cost->profile, requests));
    }
    if (cost->calls_known) {
        json_object_set_new(entry, "syscalls_per_req", json_real(cost->calls));
        json_object_set_new(entry, "syscalls", calls_to_json(cost));
    }
    put_absent(entry, "instructions", cost->instructions_why);
    put_absent(entry, "syscalls", cost->calls_why);
}

static json_t *count_entry(const struct entry *entry, const struct flags *flags)
{
    struct exact_cost cost;
    struct err err;
    const char *reason = entry->status == ENTRY_BROKEN ? entry->status_reason : entry->missing;
    json_t *json = json_pack("{s:s}", "name", entry->name);
    if (entry->status == ENTRY_BROKEN || !entry->ready) {
        json_object_set_new(json, "status",
                            json_string(entry->status == ENTRY_BROKEN ? "broken" : "skipped"));
        json_object_set_new(json, "reason", json_string(reason));
        return json;
    }
    char *version = entry_version(entry);
    if (version != NULL)
        json_object_set_new(json, "version", json_string(version));
    free(version);
    int status = exact_measure(entry, &flags->shape, &cli_stop, &cost, &err);
    const char *told = status == 0 ? "counted" : status == -ENOTSUP ? "skipped" : "failed";
    json_object_set_new(json, "status", json_string(told));
    if (status == 0)
        put_cost(json, &cost, flags->shape.requests);
    else
        json_object_set_new(json, "reason", json_string(err.text));
    exact_free(&cost);
    return json;
}

/* ---- all of them */

static bool wanted(const struct entry *entry, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(entry->name, names[i]) == 0)
            return true;
    return count == 0;
}

static json_t *count_all(const struct entry_list *list, const struct flags *flags, char **names,
                         int count)
{
    bool terminal = isatty(STDERR_FILENO) == 1;
    json_t *entries = json_array();
    for (size_t i = 0; i < list->count && !cli_stop; i++) {
        if (!wanted(&list->items[i], names, count))
            continue;
        if (terminal)
            fprintf(stderr, "\r\033[Kcounting %s", list->items[i].name);
        json_t *entry = count_entry(&list->items[i], flags);
        if (cli_stop)
            json_decref(entry);
        else
            json_array_append_new(entries, entry);
    }
    if (terminal)
        fputs("\r\033[K", stderr);
    return entries;
}

static bool any_failed(const json_t *costs)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(costs, "entries"), i,
                       entry) if (strcmp(json_string_value(json_object_get(entry, "status")),
                                         "failed") == 0) return true;
    return false;
}

static void print_all(const struct flags *flags, const json_t *costs, const json_t *saved)
{
    if (flags->json) {
        json_dumpf(costs, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        putchar('\n');
        return;
    }
    printf("Counted over %u requests, %u at a time on each of %u connections\n\n",
           flags->shape.requests, flags->shape.pipeline, flags->shape.connections);
    tally_print(stdout, costs, saved, flags->functions);
}

static int conclude(const struct flags *flags, const json_t *costs, const json_t *saved)
{
    FILE *words = flags->json ? stderr : stdout;
    unsigned grown = 0;
    print_all(flags, costs, saved);
    if (saved != NULL) {
        tally_print_differences(words, costs, saved);
        grown = tally_print_growth(words, costs, saved, flags->threshold);
    }
    if (cli_stop)
        return CLI_INTERRUPTED;
    if (flags->save != NULL &&
        json_dump_file(costs, flags->save, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) != 0)
        return cli_fail(CLI_FAILED, "%s: %s", flags->save, strerror(errno));
    if (any_failed(costs))
        return CLI_FAILED;
    return grown > 0 ? CLI_GATE : CLI_OK;
}

static json_t *describe(const struct cli *cli, const struct flags *flags, const char *valgrind)
{
    json_t *costs = json_pack("{s:i, s:s, s:i, s:i, s:i, s:o}", "schema", TALLY_SCHEMA, "showdown",
                              cli->version, "connections", (int)flags->shape.connections,
                              "pipeline", (int)flags->shape.pipeline, "requests",
                              (int)flags->shape.requests, "machine", host_machine_describe());
    if (valgrind != NULL)
        json_object_set_new(costs, "valgrind", json_string(valgrind));
    return costs;
}

/* Opens what was saved first, so that nothing is counted in vain. */
static int run(const struct cli *cli, const struct flags *flags, const struct entry_list *list,
               char **names, int count)
{
    struct err err;
    json_t *saved = NULL;
    int status = CLI_OK;
    char *valgrind = flags->shape.instructions ? exact_valgrind_version() : NULL;
    json_t *costs = describe(cli, flags, valgrind);
    if (flags->shape.instructions && valgrind == NULL)
        status = cli_fail(CLI_FAILED, "valgrind not found: apt-get install valgrind, or count "
                                      "system calls alone with --only syscalls");
    else if (flags->against != NULL && (saved = tally_read(flags->against, &err)) == NULL)
        status = cli_fail(CLI_FAILED, "%s", err.text);
    else if (saved != NULL && tally_comparable(costs, saved, &err) != 0)
        status = cli_usage("cost", "%s", err.text);
    if (status == CLI_OK) {
        cli_catch_stop();
        json_object_set_new(costs, "entries", count_all(list, flags, names, count));
        status = conclude(flags, costs, saved);
    }
    json_decref(costs);
    json_decref(saved);
    free(valgrind);
    return status;
}

int cli_cost(const struct cli *cli, int argc, char **argv)
{
    struct flags flags = {.shape = {.connections = 1,
                                    .pipeline = 1,
                                    .requests = DEFAULT_REQUESTS,
                                    .instructions = true,
                                    .calls = true},
                          .threshold = 0.01};
    struct entry_list list;
    struct err err;
    int option;
    while ((option = cli_next_option(argc, argv, ":c:p:n:h", long_options)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (take_flag(&flags, option) != 0)
            return CLI_USAGE;
    }
    if (cli_read_entries(cli, &list, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    int status = CLI_OK;
    for (int i = optind; i < argc && status == CLI_OK; i++)
        if (entry_find(&list, argv[i], &err) == NULL)
            status = cli_usage(argv[0], "%s", err.text);
    if (status == CLI_OK)
        status = run(cli, &flags, &list, argv + optind, argc - optind);
    entry_list_free(&list);
    return status;
}
