#include "cli/cli.h"
#include "cli/views.h"
#include "base/clock.h"
#include "base/mem.h"
#include "entry/entry.h"
#include "hammer/ports.h"
#include "host/machine.h"
#include "trial/crew.h"
#include "trial/part.h"
#include "trial/sure.h"
#include "trial/trial.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: showdown run [ENTRY…] [FLAG…]\n"
    "       showdown run --resume DIR\n"
    "Holds the entries against the contract (showdown check), measures those that pass side by "
    "side,\n"
    "prints the table and where the record lies. Without ENTRY: the default set; all: the extra "
    "ones\n"
    "too. The reference rows are always measured as well.\n"
    "  -w, --workload NAME    %s (default: hello)\n"
    "  -c, --connections N    connections kept open, 1 to 20000 (default: the workload's, 64)\n"
    "      --quick            3 boots in 22 s, only the cases that gate: a first look\n"
    "      --boots N          fresh starts of every entry, 1 to 1000 (default: 12)\n"
    "      --budget TIME      of measuring, all in all (default: 175s)\n"
    "      --precision P%%     ends as soon as every interval is within +-P%%, from 0.1%% to 50%%: "
    "12 "
    "boots\n"
    "                         at least, more until the budget ends (then by default 5m)\n"
    "      --twin ENTRY       measured twice, to show how far this run tells like from like "
    "(A/A);\n"
    "                         none: no entry (default: drawn by the seed)\n"
    "      --slice TIME       one entry's turn under load (default: 100ms and 0.2 ms a "
    "connection)\n"
    "      --timeout TIME     for one answer (default: 2s)\n"
    "      --seed N           of every order and draw, 0 to 4294967295 (default: random, "
    "recorded)\n"
    "      --engine NAME      of the load generator: auto, epoll, io_uring (default: auto)\n"
    "      --workers N        also a row with N workers, 1 to 64, of each entry that has "
    "{workers}: what N\n"
    "                         processes do against one\n"
    "      --server-cpus LIST core for the servers (default: chosen); with --workers up to N: the "
    "first is\n"
    "                         that of one worker, N share them all\n"
    "      --hammer-burn TIME for calibration: the load generator spins so long before each "
    "request\n"
    "      --hammer-cpus LIST cores for the load generator, a thread each, such as 0,2-3 (default: "
    "one,\n"
    "                         chosen)\n"
    "      --results DIR      where the record goes (default: results/)\n"
    "      --resume DIR       go on with an interrupted run\n"
    "      --stop-after N     end after N boots; --resume goes on with the others\n"
    "      --format NAME      table, json, markdown, csv (default: table)\n"
    "Exit status: 0 fine, 1 an entry failed, 2 usage, 4 inconclusive (nothing failed, but the twin "
    "differs\nfrom itself), 130 interrupted.\n"
    "example: showdown run libuv libev --quick\n"
    "         showdown run --precision 1%% --budget 10m\n";

enum {
    DEFAULT_BOOTS = 12,
    DEFAULT_BUDGET_S = 175,
    QUICK_BOOTS = 3,
    QUICK_BUDGET_S = 22,
    PRECISION_BUDGET_S = 300,
    PRECISION_BLOCKS = 4, /* of a boot: few, since processes differ and each look costs a boot */
    CONNECTIONS_MOST = 20000
};

struct flags {
    const char *workload;
    const char *results;
    const char *resume;
    enum cli_view view;
    uint64_t connections; /* 0: the workload's */
    uint64_t boots;       /* 0: as many as the budget has room for, up to the default */
    uint64_t budget_ns;
    uint64_t slice_ns; /* 0: from the connections */
    uint64_t timeout_ns;
    uint64_t stop_after; /* boots; 0: the whole plan */
    uint64_t seed;
    bool seed_given;
    bool quick;
    double precision; /* 0: none */
    const char *twin; /* NULL: drawn */
    enum hammer_engine engine;
    uint64_t burn_ns;
    uint64_t workers;
    int server_cpus[HOST_SERVERS_MAX];
    int server_count; /* 0: one, chosen */
    int hammer_cpus[HOST_HAMMERS_MAX];
    int hammer_count; /* 0: one, chosen */
    bool plan_given;  /* a flag that a resumed run can't take */
};

enum {
    BOOTS = 256,
    BUDGET,
    SLICE,
    TIMEOUT,
    SEED,
    ENGINE,
    WORKERS,
    SERVER_CPUS,
    HAMMER_BURN,
    HAMMER_CPUS,
    PRECISION,
    TWIN,
    RESULTS,
    RESUME,
    STOP_AFTER,
    FORMAT,
    QUICK
};

static const struct option long_options[] = {{"workload", required_argument, NULL, 'w'},
                                             {"connections", required_argument, NULL, 'c'},
                                             {"boots", required_argument, NULL, BOOTS},
                                             {"budget", required_argument, NULL, BUDGET},
                                             {"slice", required_argument, NULL, SLICE},
                                             {"timeout", required_argument, NULL, TIMEOUT},
                                             {"seed", required_argument, NULL, SEED},
                                             {"engine", required_argument, NULL, ENGINE},
                                             {"workers", required_argument, NULL, WORKERS},
                                             {"server-cpu", required_argument, NULL, SERVER_CPUS},
                                             {"server-cpus", required_argument, NULL, SERVER_CPUS},
                                             {"hammer-burn", required_argument, NULL, HAMMER_BURN},
                                             {"hammer-cpus", required_argument, NULL, HAMMER_CPUS},
                                             {"precision", required_argument, NULL, PRECISION},
                                             {"twin", required_argument, NULL, TWIN},
                                             {"results", required_argument, NULL, RESULTS},
                                             {"resume", required_argument, NULL, RESUME},
                                             {"stop-after", required_argument, NULL, STOP_AFTER},
                                             {"format", required_argument, NULL, FORMAT},
                                             {"quick", no_argument, NULL, QUICK},
                                             {"help", no_argument, NULL, 'h'},
                                             {0}};

/* Takes one flag. 0, or -1 after a usage error. */
static int take_flag(struct flags *flags, int option)
{
    flags->plan_given |=
        option != RESUME && option != STOP_AFTER && option != FORMAT && option != RESULTS;
    switch (option) {
    case 'w':
        flags->workload = optarg;
        return 0;
    case 'c':
        return cli_parse_number("run", "-c", optarg, 1, CONNECTIONS_MOST, &flags->connections);
    case BOOTS:
        return cli_parse_number("run", "--boots", optarg, 1, PLAN_BOOTS_MAX, &flags->boots);
    case BUDGET:
        return cli_parse_duration_ns("run", "--budget", optarg, &flags->budget_ns);
    case SLICE:
        return cli_parse_duration_ns("run", "--slice", optarg, &flags->slice_ns);
    case TIMEOUT:
        return cli_parse_duration_ns("run", "--timeout", optarg, &flags->timeout_ns);
    case SEED:
        flags->seed_given = true;
        return cli_parse_number("run", "--seed", optarg, 0, UINT32_MAX, &flags->seed);
    case ENGINE:
        return cli_parse_engine("run", optarg, &flags->engine);
    case WORKERS:
        return cli_parse_number("run", "--workers", optarg, 1, PLAN_WORKERS_MAX, &flags->workers);
    case SERVER_CPUS:
        flags->server_count =
            cli_parse_cpus("run", "--server-cpus", optarg, flags->server_cpus, HOST_SERVERS_MAX);
        return flags->server_count < 0 ? -1 : 0;
    case HAMMER_BURN:
        return cli_parse_duration_ns("run", "--hammer-burn", optarg, &flags->burn_ns);
    case HAMMER_CPUS:
        flags->hammer_count =
            cli_parse_cpus("run", "--hammer-cpus", optarg, flags->hammer_cpus, HOST_HAMMERS_MAX);
        return flags->hammer_count < 0 ? -1 : 0;
    case PRECISION:
        return cli_parse_percent("run", "--precision", optarg, 0.001, 0.5, &flags->precision);
    case TWIN:
        flags->twin = optarg;
        return 0;
    case RESULTS:
        flags->results = optarg;
        return 0;
    case RESUME:
        flags->resume = optarg;
        return 0;
    case STOP_AFTER:
        return cli_parse_number("run", "--stop-after", optarg, 1, PLAN_BOOTS_MAX,
                                &flags->stop_after);
    case FORMAT:
        return cli_parse_view("run", optarg, &flags->view);
    case QUICK:
        flags->quick = true;
        return 0;
    default:
        return -1;
    }
}

/* The estimated time of one boot: start, warm-up of a C server, and so many blocks, with 45 us to
 * open a connection and as much to close it. */
static uint64_t boot_ns(const struct plan *plan, size_t contenders, unsigned blocks)
{
    uint64_t slice_ns = plan->slice_ns + plan->settle_ns + plan->connections * UINT64_C(90000);
    return (250 * NS_PER_MS + blocks * slice_ns) * (contenders > 0 ? contenders : 1);
}

/* With a precision: short boots, as many as the budget holds, and enough of them to look at all.
 * Else the usual number; a plan with more boots than fit would overrun its budget. */
static unsigned choose_boots(const struct flags *flags, const struct plan *plan, size_t contenders)
{
    if (flags->boots > 0)
        return (unsigned)flags->boots;
    unsigned usual = flags->quick ? QUICK_BOOTS : DEFAULT_BOOTS;
    if (flags->precision > 0) {
        uint64_t fit = plan->budget_ns / boot_ns(plan, contenders, PRECISION_BLOCKS);
        return (unsigned)(fit < SURE_BOOTS_MIN   ? SURE_BOOTS_MIN
                          : fit > PLAN_BOOTS_MAX ? PLAN_BOOTS_MAX
                                                 : fit);
    }
    uint64_t fit = plan->budget_ns / boot_ns(plan, contenders, 1);
    return fit < 1 ? 1 : (unsigned)(fit < usual ? fit : usual);
}

static uint64_t choose_budget_ns(const struct flags *flags)
{
    if (flags->budget_ns > 0)
        return flags->budget_ns;
    if (flags->precision > 0)
        return PRECISION_BUDGET_S * NS_PER_S;
    return (flags->quick ? QUICK_BUDGET_S : DEFAULT_BUDGET_S) * NS_PER_S;
}

/* What must hold of the flags together. */
static int check_flags(const struct flags *flags, struct err *err)
{
    if (flags->precision > 0 && flags->quick)
        return err_set(err, EINVAL,
                       "--quick takes %d boots, and --precision looks after %d: leave one of the "
                       "two out",
                       QUICK_BOOTS, SURE_BOOTS_MIN);
    if (flags->precision > 0 && flags->boots > 0 && flags->boots < SURE_BOOTS_MIN)
        return err_set(err, EINVAL,
                       "--precision looks after %d boots, and --boots %u ends before: raise it or "
                       "leave it out",
                       SURE_BOOTS_MIN, (unsigned)flags->boots);
    if (flags->server_count > 1 && (unsigned)flags->server_count > flags->workers)
        return err_set(err, EINVAL,
                       "--server-cpus names %d cores for %u %s: name as many as --workers at most",
                       flags->server_count, (unsigned)flags->workers,
                       flags->workers == 1 ? "worker" : "workers");
    return 0;
}

/* Told before the run, not by every row. */
static int check_budget(const struct plan *plan, size_t contenders, struct err *err)
{
    uint64_t least_ns =
        plan->boots * (plan->slice_ns + plan->settle_ns) * (contenders > 0 ? contenders : 1);
    if (least_ns <= plan->budget_ns)
        return 0;
    return err_set(err, EINVAL,
                   "%u boots of %zu servers, a slice of %.3g s each, take %.3g s at "
                   "least, and the budget is %.3g s: raise --budget, or lower "
                   "--boots or --slice",
                   plan->boots, contenders, (double)plan->slice_ns / 1e9, (double)least_ns / 1e9,
                   (double)plan->budget_ns / 1e9);
}

static int choose_cpus(const struct flags *flags, struct host_cpu_plan *cpus, struct err *err)
{
    const struct host_cpu_wish wish = {.servers = flags->server_cpus,
                                       .server_count = flags->server_count,
                                       .hammers = flags->hammer_cpus,
                                       .hammer_count = flags->hammer_count};
    return host_cpu_plan_for(&wish, cpus, err);
}

/* The connections are shared out to the load generator's threads. */
static int check_load(const struct plan *plan, struct err *err)
{
    const struct hammer_config need = {.connections = plan->connections,
                                       .threads = (unsigned)plan->cpus.hammer_count};
    if (need.threads > need.connections)
        return err_set(err, EINVAL,
                       "--hammer-cpus names %u cores for %u connections: name fewer, or raise -c",
                       need.threads, need.connections);
    return ports_reserve_files(&need, err);
}

/* Of what takes part in the plan: rows, second rows and the twin. */
static size_t count_contenders(const struct flags *flags, const struct trial_options *options)
{
    size_t count = options->entry_count;
    for (size_t i = 0; i < options->entry_count; i++)
        count += crew_wanted(&options->plan, options->entries[i]);
    return count + (flags->twin == NULL || strcmp(flags->twin, "none") != 0);
}

static int make_plan(const struct flags *flags, struct trial_options *options, struct err *err)
{
    struct plan *plan = &options->plan;
    memset(plan, 0, sizeof *plan);
    plan->workload = workload_find(flags->workload, err);
    if (plan->workload == NULL || check_flags(flags, err) != 0 ||
        choose_cpus(flags, &plan->cpus, err) != 0)
        return -1;
    plan->seed = flags->seed_given ? flags->seed : cli_random_seed();
    plan->connections = (unsigned)flags->connections;
    if (plan->connections == 0)
        plan->connections = plan->workload->connections;
    plan->budget_ns = choose_budget_ns(flags);
    plan->slice_ns = flags->slice_ns > 0 ? flags->slice_ns : plan_slice_ns(plan->connections);
    plan->settle_ns = plan_settle_ns(plan->connections);
    plan->timeout_ns = flags->timeout_ns;
    plan->ready_ns = 10 * NS_PER_S;
    plan->warm_max_ns = 5 * NS_PER_S;
    plan->engine = flags->engine;
    plan->burn_ns = flags->burn_ns;
    plan->precision = flags->precision;
    plan->workers = (unsigned)flags->workers;
    size_t contenders = count_contenders(flags, options);
    plan->boots = choose_boots(flags, plan, contenders);
    if (check_budget(plan, contenders, err) != 0)
        return -1;
    return check_load(plan, err);
}

static void print_progress(void *context, const struct trial_progress *progress)
{
    (void)context;
    if (progress->to_judge > 0) {
        fprintf(stderr, "\r\033[Kjudging: %zu of %zu entries done%s%s", progress->judged,
                progress->to_judge, progress->judged > 0 ? ", the last " : "", progress->entry);
        return;
    }
    fprintf(stderr, "\r\033[Kboot %u of %u, block %u: %s %s  %.0f of %.0f s", progress->boot,
            progress->boots, progress->block, progress->doing, progress->entry,
            (double)progress->spent_ns / 1e9, (double)progress->budget_ns / 1e9);
    if (progress->precision > 0 && isfinite(progress->widest))
        fprintf(stderr, "  +-%.2g%%, wanted +-%g%%", progress->widest * 100,
                progress->precision * 100);
}

/* Off a terminal: a line for the judging and one a boot, so that a log shows that the run goes on.
 */
static void print_boot(void *context, const struct trial_progress *progress)
{
    unsigned *last = context;
    if (progress->to_judge > 0) {
        if (progress->judged == 0)
            fprintf(stderr, "judging %zu entries\n", progress->to_judge);
        return;
    }
    if (progress->boot == *last)
        return;
    *last = progress->boot;
    fprintf(stderr, "boot %u of %u, %.0f of %.0f s", progress->boot, progress->boots,
            (double)progress->spent_ns / 1e9, (double)progress->budget_ns / 1e9);
    if (progress->precision > 0 && isfinite(progress->widest))
        fprintf(stderr, ", +-%.2g%%, wanted +-%g%%", progress->widest * 100,
                progress->precision * 100);
    fputc('\n', stderr);
}

/* The entries asked for (the default set, if none), and the references. NULL after an error. */
static const struct entry **choose(const struct entry_list *list, char **names, int count,
                                   size_t *chosen, struct err *err)
{
    const struct entry **entries = mem_alloc(list->count + 1, sizeof(*entries));
    bool *wanted = mem_alloc(list->count + 1, sizeof *wanted);
    *chosen = 0;
    bool known = true;
    bool all = false;
    for (int i = 0; i < count && known; i++) {
        if (strcmp(names[i], ENTRY_ALL) == 0) {
            all = true;
            continue;
        }
        const struct entry *entry = entry_find(list, names[i], err);
        known = entry != NULL;
        if (known)
            wanted[entry - list->items] = true;
    }
    for (size_t i = 0; i < list->count; i++)
        if (all || wanted[i] || (count == 0 && !entry_is_extra(&list->items[i])) ||
            list->items[i].status == ENTRY_REFERENCE)
            entries[(*chosen)++] = &list->items[i];
    free(wanted);
    if (known)
        return entries;
    free(entries);
    return NULL;
}

/* Those of the extra set that a run of the default set leaves out. */
static json_t *left_out(const struct entry_list *list, bool by_default)
{
    json_t *names = json_array();
    for (size_t i = 0; by_default && i < list->count; i++)
        if (entry_is_extra(&list->items[i]))
            json_array_append_new(names, json_string(list->items[i].name));
    return names;
}

/* What --twin asks for: an entry of this run that can run and be ranked. */
static int choose_twin(const struct flags *flags, const struct entry_list *list,
                       const struct trial_options *options, struct plan *plan, struct err *err)
{
    if (flags->twin != NULL && strcmp(flags->twin, "none") == 0)
        return 0;
    snprintf(plan->twin, sizeof plan->twin, "%s", PLAN_TWIN_DRAWN);
    if (flags->twin == NULL)
        return 0;
    const struct entry *entry = entry_find(list, flags->twin, err);
    if (entry == NULL)
        return err_prefix(err, "--twin");
    bool among = false;
    for (size_t i = 0; i < options->entry_count; i++)
        among = among || options->entries[i] == entry;
    if (!among)
        return err_set(err, EINVAL,
                       "--twin %s: this run does not measure it; name it among the "
                       "entries as well",
                       entry->name);
    if (entry->status == ENTRY_REFERENCE)
        return err_set(err, EINVAL, "--twin %s: a reference is never ranked; take an entry that is",
                       entry->name);
    if (entry->status == ENTRY_BROKEN || !entry->ready)
        return err_set(err, EINVAL, "--twin %s: it can't run: %s", entry->name,
                       entry->status == ENTRY_BROKEN ? entry->status_reason : entry->missing);
    if (!part_takes(entry, plan->workload))
        return err_set(err, EINVAL, "--twin %s: it takes no part in the workload %s", entry->name,
                       plan->workload->name);
    snprintf(plan->twin, sizeof plan->twin, "%s", entry->name);
    return 0;
}

/* At least one entry that can be ranked must be able to run. */
static int check_entries(const struct trial_options *options, struct err *err)
{
    bool any_ready = false;
    for (size_t i = 0; i < options->entry_count; i++) {
        const struct entry *entry = options->entries[i];
        if (!entry->ready || entry->status != ENTRY_ACTIVE)
            continue;
        if (part_takes(entry, options->plan.workload))
            return 0;
        any_ready = true;
    }
    if (any_ready)
        return err_set(err, ENOENT,
                       "no entry that is ready takes part in the workload %s: name others, or "
                       "another -w",
                       options->plan.workload->name);
    return err_set(err, ENOENT,
                   "no entry is ready: `showdown list` says what each needs, `scripts/setup` "
                   "installs it, `make` builds");
}

/* A second row of an entry that the list has already: its twin, or its workers. */
static bool is_second_row(const json_t *entry)
{
    return json_object_get(entry, "twin_of") != NULL ||
           json_object_get(entry, "workers_of") != NULL;
}

/* A run goes on only with the servers it began with. */
static int same_entries(const struct trial_options *options, const json_t *run, struct err *err)
{
    size_t index;
    size_t next = 0;
    json_t *item;
    json_array_foreach(json_object_get(run, "entries"), index, item)
    {
        if (is_second_row(item))
            continue;
        char hash[17];
        const struct entry *entry = options->entries[next++];
        const char *name = entry->name;
        const char *old = json_string_value(json_object_get(item, "hash"));
        entry_hash(entry, hash);
        if (old == NULL || strcmp(hash, old) != 0)
            return err_set(err, EINVAL,
                           "entry %s has changed since the run began; start a new run instead",
                           name);
    }
    return 0;
}

/* Numbers of two harnesses, kernels or processors do not go into one table. */
static int same_origin(const json_t *run, const char *version, struct err *err)
{
    static const char *const keys[] = {"hostname", "kernel", "cpu_model"};
    const char *began = json_string_value(json_object_get(run, "showdown"));
    if (began == NULL || strcmp(began, version) != 0)
        return err_set(err, EINVAL,
                       "the run began with showdown %s and this is %s; start a new run",
                       began != NULL ? began : "of no version", version);
    int status = 0;
    json_t *machine = host_machine_describe();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && status == 0; i++) {
        const json_t *then = json_object_get(json_object_get(run, "machine"), keys[i]);
        const json_t *now = json_object_get(machine, keys[i]);
        if (!json_equal(then, now) && (then != NULL || now != NULL))
            status = err_set(err, EINVAL,
                             "the run began where %s is '%s', and here it is '%s'; "
                             "start a new run",
                             keys[i], json_is_string(then) ? json_string_value(then) : "unknown",
                             json_is_string(now) ? json_string_value(now) : "unknown");
    }
    json_decref(machine);
    return status;
}

/* Else every entry would fail, and stay failed in the record. */
static int same_machine(const struct plan *plan, struct err *err)
{
    struct host_cpu_plan now;
    int servers[HOST_SERVERS_MAX];
    const struct host_cpu_wish wish = {.servers = servers,
                                       .server_count = host_cpu_servers(&plan->cpus, servers),
                                       .hammers = plan->cpus.hammer,
                                       .hammer_count = plan->cpus.hammer_count};
    int status = host_cpu_plan_for(&wish, &now, err);
    if (status != 0)
        return status;
    if (now.allowed_count != plan->cpus.allowed_count || now.shared != plan->cpus.shared ||
        now.siblings != plan->cpus.siblings)
        return err_set(
            err, EINVAL,
            "the run began with %d CPUs to choose from, and now there are %d, or others; "
            "start a new run instead",
            plan->cpus.allowed_count, now.allowed_count);
    return check_load(plan, err);
}

/* Of all that run.json lists but second rows. */
static json_t *names_in(const json_t *run)
{
    json_t *names = json_array();
    size_t index;
    json_t *item;
    json_array_foreach(json_object_get(run, "entries"), index, item)
    {
        if (!is_second_row(item))
            json_array_append(names, json_object_get(item, "name"));
    }
    return names;
}

static const struct entry **choose_again(const struct entry_list *list, const json_t *run,
                                         size_t *chosen, struct err *err)
{
    json_t *names = names_in(run);
    const struct entry **entries = mem_alloc(json_array_size(names) + 1, sizeof(*entries));
    *chosen = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        entries[i] = entry_find(list, name != NULL ? name : "", err);
        if (entries[i] == NULL) {
            free(entries);
            entries = NULL;
            break;
        }
        ++*chosen;
    }
    json_decref(names);
    return entries;
}

static bool any_failed(const struct summary *summary)
{
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->rows[i].status, "failed") == 0)
            return true;
    return summary->ranking.twin.failed;
}

/* Prints what the record says, in any case. Returns the exit status that it calls for. */
static int show(enum cli_view view, const struct record_data *data)
{
    struct err err;
    struct summary summary;
    if (cli_print_view(view, false, data, &summary, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    int status = any_failed(&summary)                   ? CLI_FAILED
                 : ranks_inconclusive(&summary.ranking) ? CLI_INCONCLUSIVE
                                                        : CLI_OK;
    summary_free(&summary);
    return status;
}

/* Said before the run: the table of another engine is another table. */
static void tell_engine(const struct plan *plan)
{
    struct err reason;
    if (plan->engine == HAMMER_AUTO && hammer_uring_probe(&reason) != 0)
        fprintf(stderr, "showdown: %s; the load generator uses epoll\n", reason.text);
}

/* What the build left behind: compiler, flags, versions of the packages. NULL if it left nothing.
 */
static json_t *built_with(const char *build)
{
    char *path = mem_format("%s/build.json", build);
    json_t *built = json_load_file(path, 0, NULL);
    free(path);
    return built;
}

/* Runs, prints the view in any case, and says where the record lies. */
static int carry_out(struct trial_options *options, struct record *record, struct record_data *data,
                     enum cli_view view)
{
    struct err err;
    unsigned last_boot = 0;
    bool terminal = isatty(STDERR_FILENO) == 1;
    options->progress = terminal ? print_progress : print_boot;
    options->context = &last_boot;
    tell_engine(&options->plan);
    int failed = trial_run(options, record, data, &err);
    if (terminal)
        fputs("\r\033[K", stderr);
    int status = show(view, data);
    cli_print_folder(view, record_folder(record));
    if (failed != 0)
        status = cli_fail(CLI_FAILED, "%s", err.text);
    else if (cli_stop)
        status = CLI_INTERRUPTED;
    if (cli_stop && status == CLI_INTERRUPTED)
        fprintf(stderr, "showdown: interrupted; go on with: %s run --resume %s\n",
                program_invocation_name, record_folder(record));
    return status;
}

static int start_new(const struct cli *cli, const struct flags *flags,
                     const struct entry_list *list, const struct page_list *pages, int argc,
                     char **argv, const char *version)
{
    struct err err;
    struct trial_options options = {.stop = &cli_stop,
                                    .stop_after = (unsigned)flags->stop_after,
                                    .pages = pages,
                                    .gate_only = flags->quick};
    options.entries = choose(list, argv + optind, argc - optind, &options.entry_count, &err);
    if (options.entries == NULL)
        return cli_usage("run", "%s", err.text);
    int status = CLI_OK;
    if (make_plan(flags, &options, &err) != 0 ||
        choose_twin(flags, list, &options, &options.plan, &err) != 0)
        status = cli_usage("run", "%s", err.text);
    else if (check_entries(&options, &err) != 0)
        status = cli_fail(CLI_FAILED, "%s", err.text);
    if (status == CLI_OK) {
        struct record *record = NULL;
        char host[256] = "unknown";
        char *results = flags->results != NULL ? mem_copy_string(flags->results)
                                               : mem_format("%s/results", cli->root);
        gethostname(host, sizeof host - 1);
        struct record_data data = {
            .run = trial_describe(&options, argc, argv, version),
            .lines = json_array(),
        };
        json_object_set_new(data.run, "left_out", left_out(list, optind == argc));
        json_t *built = built_with(cli->build);
        if (built != NULL)
            json_object_set_new(data.run, "build", built);
        if (record_create(results, host, data.run, &record, &err) != 0)
            status = cli_fail(CLI_FAILED, "%s", err.text);
        else
            status = carry_out(&options, record, &data, flags->view);
        record_close(record);
        record_data_free(&data);
        free(results);
    }
    free(options.entries);
    return status;
}

static int go_on(const struct flags *flags, const struct entry_list *list,
                 const struct page_list *pages, const char *version)
{
    struct err err;
    struct record *record;
    struct record_data data;
    struct trial_options options = {
        .stop = &cli_stop, .stop_after = (unsigned)flags->stop_after, .pages = pages};
    if (record_continue(flags->resume, &record, &data, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    int status;
    unsigned boots;
    options.entries = choose_again(list, data.run, &options.entry_count, &err);
    if (options.entries == NULL ||
        plan_from_json(json_object_get(data.run, "plan"), &options.plan, &err) != 0 ||
        same_origin(data.run, version, &err) != 0 || same_entries(&options, data.run, &err) != 0 ||
        same_machine(&options.plan, &err) != 0)
        status = cli_fail(CLI_FAILED, "%s: %s", flags->resume, err.text);
    else if (trial_is_complete(&options.plan, &data, &boots)) {
        fprintf(stderr, "showdown: %s is complete with its %u boots: nothing is left to measure\n",
                flags->resume, boots);
        status = show(flags->view, &data);
    } else
        status = carry_out(&options, record, &data, flags->view);
    free(options.entries);
    record_close(record);
    record_data_free(&data);
    return status;
}

int cli_run(const struct cli *cli, int argc, char **argv)
{
    struct flags flags = {
        .workload = "hello", .workers = 1, .timeout_ns = 2 * NS_PER_S, .view = CLI_VIEW_TABLE};
    struct entry_list list;
    struct err err;
    int option;
    while ((option = cli_next_option(argc, argv, ":w:c:h", long_options)) != -1) {
        if (option == 'h') {
            printf(usage, workload_names());
            return CLI_OK;
        }
        if (take_flag(&flags, option) != 0)
            return CLI_USAGE;
    }
    if (flags.resume != NULL && (flags.plan_given || optind < argc))
        return cli_usage(argv[0], "--resume follows the plan it began with: no entries and no flag "
                                  "but --stop-after and --format go with it");
    if (cli_read_entries(cli, &list, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    struct page_list pages;
    char *folder = mem_format("%s/tests/contract", cli->root);
    int status = CLI_FAILED;
    cli_catch_stop();
    if (page_list_read(folder, &pages, &err) != 0) {
        cli_fail(CLI_FAILED, "%s", err.text);
    } else {
        status = flags.resume != NULL
                     ? go_on(&flags, &list, &pages, cli->version)
                     : start_new(cli, &flags, &list, &pages, argc, argv, cli->version);
        page_list_free(&pages);
    }
    free(folder);
    entry_list_free(&list);
    return status;
}
