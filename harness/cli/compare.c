#include "cli/cli.h"
#include "base/clock.h"
#include "base/mem.h"
#include "entry/entry.h"
#include "hammer/ports.h"
#include "host/machine.h"
#include "report/compare.h"
#include "report/settings.h"
#include "trial/part.h"
#include "trial/trial.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: showdown compare A B [--threshold SHARE] [--allow NAME,…] [--format table|json]\n"
    "       showdown compare --entry NAME --old DIR --new DIR [FLAG…]\n"
    "       showdown compare RECORD\n"
    "Is B faster or slower than A? A and B are folders that `run` wrote. Records that differ in\n"
    "machine, workload or settings are refused, each difference with its remedy.\n"
    "With --entry two builds of one entry are measured in turns: DIR is a checkout of this\n"
    "repository in which `make entry-NAME` was run (servers/NAME and build/servers/NAME in it).\n"
    "Both are held against the contract first. The session is recorded under results/compare/;\n"
    "RECORD is such a folder, and prints the same again.\n"
    "      --threshold SHARE  what is no difference yet: 2%% or 0.02 (default: 2%%)\n"
    "      --allow NAME,…     these are meant to differ, such as kernel,container\n"
    "      --format NAME      table, json (default: table)\n"
    "With --entry:\n"
    "  -w, --workload NAME    %s (default: hello)\n"
    "  -c, --connections N    connections kept open, 1 to 20000 (default: the workload's, 64)\n"
    "      --boots N          fresh starts of both, 1 to 1000 (default: 24; fewer than 12 know "
    "little)\n"
    "      --budget TIME      of measuring, all in all (default: 100s)\n"
    "      --slice TIME       one turn under load (default: 10ms, more from 64 connections on); "
    "a\n"
    "                         server of under 10,000 requests a second wants longer ones\n"
    "      --seed N           of every order and draw, 0 to 4294967295 (default: random, "
    "recorded)\n"
    "      --engine NAME      of the load generator: auto, epoll, io_uring (default: auto)\n"
    "      --results DIR      where the record goes (default: results/compare/)\n"
    "Exit status: 0 no entry is slower, 1 an entry failed, 2 usage, or records that can't be\n"
    "compared, 3 an entry is slower beyond the threshold, 4 unsure and none is slower,\n"
    "130 interrupted.\n"
    "example: showdown compare --entry libev --old ../before --new . --budget 100s\n";

enum { BOOTS_DEFAULT = 24, BUDGET_DEFAULT_S = 100, CONNECTIONS_MOST = 20000 };

struct flags {
    const char *entry, *old, *new;
    const char *workload;
    const char *results;
    char **allowed; /* NULL-terminated, or NULL */
    double threshold;
    bool threshold_given;
    bool json;
    uint64_t connections, boots, budget_ns, slice_ns, seed; /* 0: not given */
    bool seed_given;
    bool measures; /* a flag that goes with --entry alone was given */
    enum hammer_engine engine;
};

/* ---- flags ---- */

static int parse_threshold(const char *text, double *threshold)
{
    char *end;
    double value = strtod(text, &end);
    if (end != text && strcmp(end, "%") == 0) {
        value /= 100;
        end++;
    }
    if (end != text && *end == '\0' && value > 0 && value < 0.5) {
        *threshold = value;
        return 0;
    }
    return cli_usage("compare",
                     "--threshold takes a share such as 2%% or 0.02, below 50%%, "
                     "not '%s'",
                     text);
}

static int parse_format(const char *name, bool *json)
{
    *json = strcmp(name, "json") == 0;
    if (*json || strcmp(name, "table") == 0)
        return 0;
    return cli_usage("compare", "--format takes table or json, not '%s'", name);
}

/* Splits the list where it stands: the vector's strings lie in `list`. */
static int parse_allowed(char *list, char ***allowed)
{
    size_t count = 0;
    for (char *name = strtok(list, ","); name != NULL; name = strtok(NULL, ",")) {
        if (!settings_is_known(name))
            return cli_usage("compare", "--allow knows no '%s'; there are: %s", name,
                             settings_names());
        *allowed = mem_grow(*allowed, count + 2, sizeof **allowed);
        (*allowed)[count++] = name;
        (*allowed)[count] = NULL;
    }
    return 0;
}

enum {
    ENTRY = 256,
    OLD,
    NEW,
    THRESHOLD,
    ALLOW,
    FORMAT,
    BOOTS,
    BUDGET,
    SLICE,
    SEED,
    ENGINE,
    RESULTS
};

static const struct option long_options[] = {{"entry", required_argument, NULL, ENTRY},
                                             {"old", required_argument, NULL, OLD},
                                             {"new", required_argument, NULL, NEW},
                                             {"threshold", required_argument, NULL, THRESHOLD},
                                             {"allow", required_argument, NULL, ALLOW},
                                             {"format", required_argument, NULL, FORMAT},
                                             {"workload", required_argument, NULL, 'w'},
                                             {"connections", required_argument, NULL, 'c'},
                                             {"boots", required_argument, NULL, BOOTS},
                                             {"budget", required_argument, NULL, BUDGET},
                                             {"slice", required_argument, NULL, SLICE},
                                             {"seed", required_argument, NULL, SEED},
                                             {"engine", required_argument, NULL, ENGINE},
                                             {"results", required_argument, NULL, RESULTS},
                                             {"help", no_argument, NULL, 'h'},
                                             {0}};

/* Those of the plan. 0, or not after a usage error. */
static int take_plan_flag(struct flags *flags, int option)
{
    flags->measures = true;
    switch (option) {
    case 'w':
        flags->workload = optarg;
        return 0;
    case 'c':
        return cli_parse_number("compare", "-c", optarg, 1, CONNECTIONS_MOST, &flags->connections);
    case BOOTS:
        return cli_parse_number("compare", "--boots", optarg, 1, PLAN_BOOTS_MAX, &flags->boots);
    case BUDGET:
        return cli_parse_duration_ns("compare", "--budget", optarg, &flags->budget_ns);
    case SLICE:
        return cli_parse_duration_ns("compare", "--slice", optarg, &flags->slice_ns);
    case SEED:
        flags->seed_given = true;
        return cli_parse_number("compare", "--seed", optarg, 0, UINT32_MAX, &flags->seed);
    case ENGINE:
        return cli_parse_engine("compare", optarg, &flags->engine);
    case RESULTS:
        flags->results = optarg;
        return 0;
    default:
        return -1;
    }
}

static int take_flag(struct flags *flags, int option)
{
    switch (option) {
    case ENTRY:
        flags->entry = optarg;
        return 0;
    case OLD:
        flags->old = optarg;
        return 0;
    case NEW:
        flags->new = optarg;
        return 0;
    case THRESHOLD:
        flags->threshold_given = true;
        return parse_threshold(optarg, &flags->threshold);
    case ALLOW:
        return parse_allowed(optarg, &flags->allowed);
    case FORMAT:
        return parse_format(optarg, &flags->json);
    default:
        return take_plan_flag(flags, option);
    }
}

/* ---- printing ---- */

static int exit_of(const struct comparison *comparison)
{
    switch (compare_worst(comparison)) {
    case COMPARE_FAILED:
        return CLI_FAILED;
    case COMPARE_SLOWER:
        return CLI_GATE;
    case COMPARE_UNSURE:
        return CLI_INCONCLUSIVE;
    default:
        return CLI_OK;
    }
}

static int print(const struct flags *flags, struct comparison *comparison,
                 const struct record_data *a, const struct record_data *b)
{
    if (flags->json)
        compare_view_json(stdout, comparison, a, b);
    else
        compare_view_table(stdout, comparison, a, b);
    fflush(stdout);
    int status = exit_of(comparison);
    compare_free(comparison);
    return status;
}

static int print_builds(const struct flags *flags, const struct record_data *data)
{
    struct comparison comparison;
    struct err err;
    double recorded =
        json_number_value(json_object_get(json_object_get(data->run, "compare"), "threshold"));
    double threshold = flags->threshold_given || !(recorded > 0) ? flags->threshold : recorded;
    if (compare_builds(data, threshold, &comparison, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    return print(flags, &comparison, data, data);
}

/* ---- records ---- */

static int refuse(const json_t *differences)
{
    size_t index;
    json_t *item;
    json_array_foreach(differences, index, item) fprintf(
        stderr, "  %s: %s in A, %s in B; %s\n", json_string_value(json_object_get(item, "name")),
        json_string_value(json_object_get(item, "a")),
        json_string_value(json_object_get(item, "b")),
        json_string_value(json_object_get(item, "remedy")));
    return cli_fail(CLI_USAGE, "the records differ in what is above, so their numbers can't be "
                               "compared; what is meant to differ: --allow NAME,…");
}

static int compare_two(const struct flags *flags, const struct record_data *a,
                       const struct record_data *b)
{
    struct comparison comparison;
    struct err err;
    json_t *differences = settings_differences(a, b, flags->allowed);
    int status = json_array_size(differences) > 0 ? refuse(differences) : CLI_OK;
    json_decref(differences);
    if (status != CLI_OK)
        return status;
    if (compare_records(a, b, flags->threshold, &comparison, &err) != 0)
        return cli_fail(CLI_USAGE, "%s", err.text);
    return print(flags, &comparison, a, b);
}

static bool is_same_folder(const char *a, const char *b)
{
    struct stat left, right;
    return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

static int compare_folders(const struct flags *flags, const char *a_folder, const char *b_folder)
{
    struct record_data a, b;
    struct err err;
    if (is_same_folder(a_folder, b_folder))
        return cli_usage("compare", "%s and %s are one record", a_folder, b_folder);
    if (record_read(a_folder, &a, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    int status;
    if (record_read(b_folder, &b, &err) != 0) {
        status = cli_fail(CLI_FAILED, "%s", err.text);
    } else {
        status = compare_two(flags, &a, &b);
        record_data_free(&b);
    }
    record_data_free(&a);
    return status;
}

static int show_again(const struct flags *flags, const char *folder)
{
    struct record_data data;
    struct err err;
    if (record_read(folder, &data, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    int status =
        compare_is_of_builds(&data)
            ? print_builds(flags, &data)
            : cli_usage("compare", "%s is the record of a run: name another to compare it with",
                        folder);
    record_data_free(&data);
    return status;
}

/* ---- two builds ---- */

struct build {
    const char *side; /* "old" or "new" */
    char *folder;     /* the checkout, absolute */
    struct entry_list list;
    struct entry entry; /* borrows all but its name, "libev old", from the list */
};

static void build_free(struct build *build)
{
    free(build->folder);
    free(build->entry.name);
    entry_list_free(&build->list);
}

/* 0, or an exit status with what is wrong said. */
static int build_open(struct build *build, const char *side, const char *folder, const char *name)
{
    struct err err;
    char resolved[PATH_MAX];
    build->side = side;
    if (realpath(folder, resolved) == NULL)
        return cli_usage("compare", "--%s %s: %s", side, folder, strerror(errno));
    build->folder = mem_copy_string(resolved);
    char *binaries = mem_format("%s/build", build->folder);
    int status = entry_list_read(build->folder, binaries, &build->list, &err);
    free(binaries);
    if (status != 0)
        return cli_usage("compare", "--%s %s is no checkout with servers/%s: %s", side, folder,
                         name, err.text);
    const struct entry *entry = entry_find(&build->list, name, &err);
    if (entry == NULL)
        return cli_usage("compare", "--%s %s: %s", side, folder, err.text);
    build->entry = *entry;
    build->entry.name = mem_format("%s %s", name, side);
    if (entry->status == ENTRY_BROKEN)
        return cli_fail(CLI_FAILED, "--%s %s: %s is broken: %s", side, folder, name,
                        entry->status_reason);
    if (!entry->ready && strncmp(entry->missing, "not built", 9) == 0)
        return cli_fail(CLI_FAILED, "--%s %s: there is no %s; build it: make -C %s entry-%s", side,
                        folder, entry->binary, build->folder, name);
    if (!entry->ready)
        return cli_fail(CLI_FAILED, "--%s %s: %s", side, folder, entry->missing);
    return CLI_OK;
}

/* Comparing a thing with itself is a slip, such as one folder named twice. */
static int builds_differ(const struct build *old, const struct build *new)
{
    bool compiled = old->entry.sources[0] != '\0';
    const char *a = compiled ? old->entry.binary : old->entry.folder;
    const char *b = compiled ? new->entry.binary : new->entry.folder;
    if (!is_same_folder(a, b))
        return CLI_OK;
    return cli_usage("compare",
                     "both builds are %s: --old and --new want two checkouts, such as "
                     "one of `git worktree add`",
                     a);
}

/* Turns are short, so that both meet the same machine: 10 ms up to 64 connections and in proportion
 * above, since opening and settling grow with them (docs/METHOD.md, Compare). */
static void set_turns(const struct flags *flags, struct plan *plan)
{
    uint64_t sixty_fourths = plan->connections > 64 ? plan->connections : 64;
    plan->slice_ns = flags->slice_ns;
    if (plan->slice_ns == 0)
        plan->slice_ns = 10 * NS_PER_MS * sixty_fourths / 64;
    plan->settle_ns = 5 * NS_PER_MS * sixty_fourths / 64;
}

static int make_plan(const struct flags *flags, struct plan *plan, struct err *err)
{
    memset(plan, 0, sizeof *plan);
    plan->workload = workload_find(flags->workload, err);
    if (plan->workload == NULL || host_cpu_plan(-1, 1, &plan->cpus, err) != 0)
        return -EINVAL;
    plan->seed = flags->seed_given ? flags->seed : cli_random_seed();
    plan->connections = (unsigned)flags->connections;
    if (plan->connections == 0)
        plan->connections = plan->workload->connections;
    plan->budget_ns = flags->budget_ns > 0 ? flags->budget_ns : BUDGET_DEFAULT_S * NS_PER_S;
    set_turns(flags, plan);
    plan->timeout_ns = 2 * NS_PER_S;
    plan->ready_ns = 10 * NS_PER_S;
    plan->warm_max_ns = 5 * NS_PER_S;
    plan->engine = flags->engine;
    plan->boots = flags->boots > 0 ? (unsigned)flags->boots : BOOTS_DEFAULT;
    if (2 * plan->boots * (plan->slice_ns + plan->settle_ns) > plan->budget_ns)
        return err_set(err, EINVAL,
                       "%u boots of two slices of %.3g s do not fit into %.3g s: raise --budget, "
                       "or lower --boots or --slice",
                       plan->boots, (double)plan->slice_ns / 1e9, (double)plan->budget_ns / 1e9);
    const struct hammer_config need = {.connections = plan->connections, .threads = 1};
    return ports_reserve_files(&need, err);
}

static void print_progress(void *context, const struct trial_progress *progress)
{
    bool *terminal = context;
    if (*terminal)
        fprintf(stderr, "\r\033[Kboot %u of %u: %s %s  %.0f of %.0f s", progress->boot,
                progress->boots, progress->doing, progress->entry, (double)progress->spent_ns / 1e9,
                (double)progress->budget_ns / 1e9);
}

/* Measures, and prints what came of it in any case. */
static int carry_out(const struct flags *flags, struct trial_options *options,
                     struct record *record, struct record_data *data)
{
    struct err err;
    bool terminal = isatty(STDERR_FILENO) == 1;
    options->progress = print_progress;
    options->context = &terminal;
    int failed = trial_run(options, record, data, &err);
    if (terminal)
        fputs("\r\033[K", stderr);
    int status = print_builds(flags, data);
    fprintf(stderr, "record: %s\n", record_folder(record));
    if (failed != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    return cli_stop ? CLI_INTERRUPTED : status;
}

static json_t *describe(const struct flags *flags, const struct trial_options *options,
                        const struct build *builds, const struct cli *cli, int argc, char **argv)
{
    json_t *run = trial_describe(options, argc, argv, cli->version);
    json_object_set_new(run, "compare",
                        json_pack("{s:s, s:s, s:s, s:f}", "entry", flags->entry, "old",
                                  builds[0].folder, "new", builds[1].folder, "threshold",
                                  flags->threshold));
    return run;
}

static int measure(const struct flags *flags, const struct cli *cli, const struct build *builds,
                   const struct page_list *pages, int argc, char **argv)
{
    struct err err;
    const struct entry *entries[] = {&builds[0].entry, &builds[1].entry};
    struct trial_options options = {
        .entries = entries, .entry_count = 2, .pages = pages, .gate_only = true, .stop = &cli_stop};
    if (make_plan(flags, &options.plan, &err) != 0)
        return cli_usage("compare", "%s", err.text);
    for (int i = 0; i < 2; i++)
        if (!part_takes(entries[i], options.plan.workload))
            return cli_usage("compare", "%s takes part in other workloads only: %s", flags->entry,
                             entries[i]->workloads);
    char host[256] = "unknown";
    gethostname(host, sizeof host - 1);
    char *results = flags->results != NULL ? mem_copy_string(flags->results)
                                           : mem_format("%s/results/compare", cli->root);
    struct record *record = NULL;
    struct record_data data = {.run = describe(flags, &options, builds, cli, argc, argv),
                               .lines = json_array()};
    int status = record_create(results, host, data.run, &record, &err) != 0
                     ? cli_fail(CLI_FAILED, "%s", err.text)
                     : carry_out(flags, &options, record, &data);
    record_close(record);
    record_data_free(&data);
    free(results);
    return status;
}

static int compare_two_builds(const struct flags *flags, const struct cli *cli, int argc,
                              char **argv)
{
    struct build builds[2] = {0};
    struct page_list pages;
    struct err err;
    int status = build_open(&builds[0], "old", flags->old, flags->entry);
    if (status == CLI_OK)
        status = build_open(&builds[1], "new", flags->new, flags->entry);
    if (status == CLI_OK)
        status = builds_differ(&builds[0], &builds[1]);
    if (status == CLI_OK) {
        char *folder = mem_format("%s/tests/contract", cli->root);
        cli_catch_stop();
        if (page_list_read(folder, &pages, &err) != 0) {
            status = cli_fail(CLI_FAILED, "%s", err.text);
        } else {
            status = measure(flags, cli, builds, &pages, argc, argv);
            page_list_free(&pages);
        }
        free(folder);
    }
    build_free(&builds[0]);
    build_free(&builds[1]);
    return status;
}

static int dispatch(const struct flags *flags, const struct cli *cli, int argc, char **argv)
{
    int folders = argc - optind;
    bool builds = flags->entry != NULL || flags->old != NULL || flags->new != NULL;
    if (!builds && flags->measures)
        return cli_usage("compare", "records are measured already: flags of measuring go with "
                                    "--entry NAME --old DIR --new DIR");
    if (builds && (flags->entry == NULL || flags->old == NULL || flags->new == NULL || folders > 0))
        return cli_usage("compare", "two builds are named by --entry NAME --old DIR --new DIR, "
                                    "all three, and no record");
    if (builds)
        return compare_two_builds(flags, cli, argc, argv);
    if (folders == 1)
        return show_again(flags, argv[optind]);
    if (folders == 2)
        return compare_folders(flags, argv[optind], argv[optind + 1]);
    return cli_usage("compare", "takes the folders of two records, not %d", folders);
}

int cli_compare(const struct cli *cli, int argc, char **argv)
{
    struct flags flags = {.workload = "hello", .threshold = COMPARE_THRESHOLD};
    int option;
    int status = CLI_OK;
    while (status == CLI_OK &&
           (option = cli_next_option(argc, argv, ":w:c:h", long_options)) != -1) {
        if (option == 'h') {
            printf(usage, workload_names());
            return CLI_OK;
        }
        if (take_flag(&flags, option) != 0)
            status = CLI_USAGE;
    }
    if (status == CLI_OK)
        status = dispatch(&flags, cli, argc, argv);
    free(flags.allowed);
    return status;
}
