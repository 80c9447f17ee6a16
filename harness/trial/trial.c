#include "trial/trial.h"
#include "base/clock.h"
#include "base/mem.h"
#include "entry/launch.h"
#include "host/doctor.h"
#include "host/machine.h"
#include "record/rates.h"
#include "trial/beside.h"
#include "trial/cost.h"
#include "trial/crew.h"
#include "trial/gate.h"
#include "trial/part.h"
#include "trial/slice.h"
#include "trial/sure.h"
#include "trial/twin.h"
#include "trial/warm.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDLE_DESCRIPTORS = 256 }; /* a server's own files, beside its connections */

/* A machine that is taken away for the length of a slice leaves it empty, whoever serves: one such
 * slice is no result, a row of them is. */
enum { EMPTY_SLICES_MOST = 3 };

/* The row must be so long as well: slices of `compare` are of 10 ms, and a host may take a core for
 * longer than three of those. */
static const uint64_t empty_least_ns = 300 * NS_PER_MS;

/* How often a slice is tried that the machine spoils each time. */
enum { SPOILT_SLICES_MOST = 4 };

enum { DRAWS = 4000 }; /* of an interval's bootstrap, as the report has them */

/* How long the cores are watched before a run: who uses 5% of one has 5 ticks of /proc/stat. */
#define DOCTOR_SAMPLE_NS (500 * NS_PER_MS)

struct contender {
    const struct entry *entry;
    const struct entry *of; /* whose twin or crew it is; else NULL */
    unsigned workers;
    struct server *server; /* NULL while it does not run */
    unsigned port;
    char *request;
    size_t request_bytes;
    bool out;              /* failed: measured no more */
    bool judged;           /* held against the contract */
    bool ready;            /* its server answered in this boot */
    unsigned empty_slices; /* on end, in which no answer came */
    uint64_t idle_from_ns; /* end of its last load in this boot, and its CPU time then */
    uint64_t idle_from_cpu_ns;
};

struct trial {
    const struct trial_options *options;
    const struct plan *plan;
    struct record *record;
    struct record_data *data;
    struct contender *contenders;
    size_t count;
    struct entry *crews; /* what their contenders measure */
    size_t crew_count;
    struct entry twin; /* the same, while there is one */
    const struct entry *twin_of;
    struct slice *slice; /* scratch */
    uint64_t began_ns;
    uint64_t least_boot_ns; /* what a boot of one block took, the last time */
    unsigned first_boot;    /* of this call; others before it where a run goes on */
    unsigned boot;
    unsigned block;
    struct sure sure; /* after the last boot */
};

static bool stopped(const struct trial *trial)
{
    return trial->options->stop != NULL && *trial->options->stop != 0;
}

static void tell_progress(const struct trial *trial, struct trial_progress progress)
{
    if (trial->options->progress == NULL)
        return;
    progress.boot = trial->boot < trial->plan->boots ? trial->boot + 1 : trial->plan->boots;
    progress.boots = trial->plan->boots;
    progress.block = trial->block;
    progress.spent_ns = clock_now_ns() - trial->began_ns;
    progress.budget_ns = trial->plan->budget_ns;
    progress.precision = trial->plan->precision;
    progress.widest = trial->sure.widest;
    trial->options->progress(trial->options->context, &progress);
}

static void tell(const struct trial *trial, const char *doing, const char *entry)
{
    const struct trial_progress progress = {.doing = doing, .entry = entry};
    tell_progress(trial, progress);
}

/* Takes `line`. It stays in memory even when the disk is full, so that the table can be printed. */
static int note(struct trial *trial, json_t *line, struct err *err)
{
    json_array_append_new(trial->data->lines, line);
    return record_append(trial->record, line, err);
}

static json_t *line_for(const struct trial *trial, const char *type, const struct entry *entry)
{
    return json_pack("{s:s, s:s, s:i}", "type", type, "entry", entry->name, "boot",
                     (int)trial->boot);
}

/* An output as JSON text: bytes that are not UTF-8 become '?'. */
static json_t *text_to_json(char *text)
{
    json_t *json = json_string(text);
    if (json != NULL)
        return json;
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    return json_string(text);
}

/* Stops the server and records how it ended. Breaches of the contract go to `breach`. */
static int stop_server(struct trial *trial, struct contender *c, char *breach, size_t breach_bytes,
                       struct err *err)
{
    struct server_stop stop;
    bool had_ended = server_poll(c->server, breach, breach_bytes) != SERVER_RUNNING;
    server_stop(c->server, &stop);
    c->server = NULL;
    breach[0] = '\0';
    if (stop.ignored_term)
        snprintf(breach, breach_bytes, "ignored SIGTERM for 2 s and was killed");
    else if (stop.left_children)
        snprintf(breach, breach_bytes, "left processes behind on SIGTERM; they were killed");
    else if (!had_ended && stop.exit_status != 0)
        snprintf(breach, breach_bytes, "ended on SIGTERM with wait status 0x%04x instead of exit 0",
                 (unsigned)stop.exit_status);
    json_t *line = line_for(trial, "stop", c->entry);
    json_object_update_new(line,
                           json_pack("{s:b, s:b, s:i, s:I, s:I}", "ignored_term", stop.ignored_term,
                                     "left_children", stop.left_children, "wait_status",
                                     stop.exit_status, "took_ns", (json_int_t)stop.took_ns,
                                     "rss_peak_bytes", (json_int_t)stop.rss_peak_bytes));
    return note(trial, line, err);
}

/* Records why an entry is out, with what it last printed, and ends its server. */
static int put_out(struct trial *trial, struct contender *c, const char *type, const char *reason,
                   struct err *err)
{
    char output[SERVER_OUTPUT_KEEP] = "";
    char breach[256];
    json_t *line = line_for(trial, type, c->entry);
    if (c->server != NULL)
        server_output(c->server, output, sizeof output);
    json_object_set_new(line, "block", json_integer(trial->block));
    json_object_set_new(line, "reason", json_string(reason));
    json_object_set_new(line, "output", text_to_json(output));
    c->out = true;
    int status = note(trial, line, err);
    if (c->server == NULL)
        return status;
    struct err second;
    int stop_status = stop_server(trial, c, breach, sizeof breach, status == 0 ? err : &second);
    return status != 0 ? status : stop_status;
}

static int fail_contender(struct trial *trial, struct contender *c, const char *reason,
                          struct err *err)
{
    return put_out(trial, c, "failure", reason, err);
}

/* A process that ends closes its sockets some milliseconds before anyone can see that it has
 * ended, more under load: a server that went wrong gets a moment to be found dead. */
static bool has_ended(const struct contender *c, char *detail, size_t detail_bytes)
{
    uint64_t deadline_ns = clock_now_ns() + 300 * NS_PER_MS;
    detail[0] = '\0';
    if (c->server == NULL)
        return false;
    while (server_poll(c->server, detail, detail_bytes) == SERVER_RUNNING) {
        if (clock_now_ns() >= deadline_ns)
            return false;
        clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
    }
    return true;
}

static bool is_out(const struct trial *trial, const struct entry *entry)
{
    for (size_t i = 0; i < trial->count; i++)
        if (trial->contenders[i].entry == entry)
            return trial->contenders[i].out;
    return false;
}

/* Of an entry that is out nothing is left to compare with its twin, and with its crew. */
static int retire_second_rows(struct trial *trial, struct err *err)
{
    int status = 0;
    for (size_t i = 0; i < trial->count && status == 0; i++) {
        struct contender *c = &trial->contenders[i];
        if (c->of == NULL || c->out || !is_out(trial, c->of))
            continue;
        char *reason = mem_format("%s, whose %s, is measured no more", c->of->name,
                                  c->entry == &trial->twin ? "twin it is" : "workers these are");
        status = fail_contender(trial, c, reason, err);
        free(reason);
    }
    return status;
}

/* Names what happened to a server that went wrong: if it ended, that comes first. */
static int fail_because(struct trial *trial, struct contender *c, const char *when,
                        const char *reason, struct err *err)
{
    char detail[256];
    char *text = has_ended(c, detail, sizeof detail)
                     ? mem_format("%s: the server %s (%s)", when, detail, reason)
                     : mem_format("%s: %s", when, reason);
    int status = fail_contender(trial, c, text, err);
    free(text);
    return status;
}

/* One worker has one core, on any machine alike. */
static int cores_of(const struct trial *trial, const struct contender *c)
{
    return c->workers > 1 ? trial->plan->cpus.more_count + 1 : 1;
}

static struct slice_target target_of(const struct trial *trial, const struct contender *c)
{
    return (struct slice_target){.server = c->server,
                                 .cores = cores_of(trial, c),
                                 .port = c->port,
                                 .request = c->request,
                                 .request_bytes = c->request_bytes};
}

static uint64_t cpu_of(const struct contender *c)
{
    pid_t pids[HOST_TREE_MAX];
    struct host_usage usage;
    int count = server_pids(c->server, pids, HOST_TREE_MAX);
    return host_usage_read(pids, count, &usage, NULL) == 0 ? usage.cpu_ns : 0;
}

static void falls_idle(struct contender *c)
{
    c->idle_from_cpu_ns = cpu_of(c);
    c->idle_from_ns = clock_now_ns();
}

static int spawn(struct trial *trial, struct contender *c, struct err *err)
{
    /* Ports alone are not of the seed: two runs of one seed may go on side by side. */
    uint64_t seed = (uint64_t)getpid() + trial->boot * UINT64_C(7919) +
                    (uint64_t)(c - trial->contenders) * UINT64_C(104729);
    int status = server_free_port(seed, &c->port, err);
    if (status == 0)
        status =
            workload_request(trial->plan->workload, c->port, &c->request, &c->request_bytes, err);
    if (status != 0)
        return status;
    int cpus[HOST_SERVERS_MAX];
    host_cpu_servers(&trial->plan->cpus, cpus);
    const struct entry_launch launch = {
        .port = c->port,
        .workers = c->workers,
        .cpus = cpus,
        .cpu_count = cores_of(trial, c),
        .files = trial->plan->connections + IDLE_DESCRIPTORS,
    };
    return entry_launch(c->entry, &launch, &c->server, err);
}

/* Loads the server until it is steady, with conversations of other shapes beside the load.
 * -EPROTO with the reason for a wrong answer. */
static int warm_up(struct trial *trial, struct contender *c, struct warm *warm,
                   unsigned *conversations, struct err *err)
{
    char why[1024];
    const struct host_cpu_plan *cpus = &trial->plan->cpus;
    struct slice_target target = target_of(trial, c);
    struct beside *beside = NULL;
    if (c->entry->status != ENTRY_REFERENCE)
        beside = beside_start(trial->options->pages, c->entry, c->port,
                              cpus->hammer_count > 0 ? cpus->hammer[0] : -1,
                              trial->plan->seed + trial->boot);
    int status =
        warm_until_steady(trial->plan, &target, c->entry->jit[0] != '\0' ? WARM_JIT_ANSWERS : 0,
                          trial->options->stop, trial->slice, warm, err);
    bool over = status != 0 || stopped(trial);
    if (!beside_end(beside, over, conversations, why, sizeof why) && !over)
        return err_set(err, EPROTO, "beside the load: %s", why);
    return status;
}

/* One window in each of the first boots in which the server's work is counted and not timed
 * (cost.h). */
static int count_cost(struct trial *trial, struct contender *c, struct err *err)
{
    struct err why;
    json_t *counts = NULL;
    struct slice_target target = target_of(trial, c);
    tell(trial, "counting", c->entry->name);
    int unsound =
        cost_count(trial->plan, &target, trial->options->stop, trial->slice, &counts, &why);
    if (unsound != 0 && !stopped(trial))
        return fail_because(trial, c, "counting its system calls", why.text, err);
    if (counts == NULL || stopped(trial)) {
        json_decref(counts);
        return 0;
    }
    json_t *line = line_for(trial, "cost", c->entry);
    json_object_update_new(line, counts);
    return note(trial, line, err);
}

/* Starts, checks and warms one server. A server's failure is noted; the return value is the
 * harness's own. */
static int bring_up(struct trial *trial, struct contender *c, struct err *err)
{
    struct err why;
    struct warm warm = {0};
    uint64_t ready_ns = 0;
    tell(trial, "starting", c->entry->name);
    free(c->request);
    c->request = NULL;
    c->ready =
        spawn(trial, c, &why) == 0 &&
        server_wait_ready(c->server, c->request, c->request_bytes, trial->plan->workload->expect,
                          trial->plan->ready_ns, &ready_ns, &why) == 0;
    if (stopped(trial))
        return 0; /* the interrupt's doing, not the server's */
    if (!c->ready)
        return put_out(trial, c, why.code == ENOTSUP ? "lack" : "failure", why.text, err);

    tell(trial, "warming", c->entry->name);
    unsigned conversations = 0;
    int unsound = warm_up(trial, c, &warm, &conversations, &why);
    if (stopped(trial))
        return 0;
    if (unsound != 0)
        return fail_because(trial, c, "warming up", why.text, err);
    json_t *line = line_for(trial, "boot", c->entry);
    json_object_update_new(
        line, json_pack("{s:I, s:I, s:i, s:b, s:f, s:f, s:i}", "ready_ns", (json_int_t)ready_ns,
                        "warm_ns", (json_int_t)warm.took_ns, "warm_windows", (int)warm.windows,
                        "warm_steady", warm.steady, "warm_first_cpu_ns", warm.first_cpu_ns,
                        "warm_last_cpu_ns", warm.last_cpu_ns, "conversations", (int)conversations));
    int status = note(trial, line, err);
    if (status == 0)
        status = trial->boot < COST_BOOTS ? count_cost(trial, c, err) : 0;
    if (c->server != NULL)
        falls_idle(c);
    return status;
}

/* Measures one slice and notes it, as a "spoilt" one if the machine took it away. */
static int measure_and_note(struct trial *trial, struct contender *c, unsigned position,
                            bool *spoilt, struct err *err)
{
    struct err why;
    const struct slice_shape shape = {
        .connections = trial->plan->connections,
        .duration_ns = trial->plan->slice_ns,
        .settle_ns = trial->plan->settle_ns,
    };
    struct slice_target target = target_of(trial, c);
    uint64_t idle_cpu_ns = cpu_of(c) - c->idle_from_cpu_ns;
    uint64_t idle_ns = clock_now_ns() - c->idle_from_ns;
    int status =
        slice_measure(trial->plan, &target, &shape, trial->options->stop, trial->slice, &why);
    if (stopped(trial))
        return 0; /* cut short: it counts for nothing */
    if (status != 0)
        return fail_because(trial, c, "under load", why.text, err);

    json_t *line = slice_to_json(trial->slice);
    json_object_update_new(
        line, json_pack("{s:s, s:i, s:i, s:i, s:I, s:I}", "entry", c->entry->name, "boot",
                        (int)trial->boot, "block", (int)trial->block, "position", (int)position,
                        "idle_ns", (json_int_t)idle_ns, "idle_cpu_ns", (json_int_t)idle_cpu_ns));
    *spoilt = slice_is_spoilt(&shape, trial->slice);
    if (*spoilt)
        json_object_set_new(line, "type", json_string("spoilt"));
    falls_idle(c);
    return note(trial, line, err);
}

/* A slice that the machine spoilt is repeated at once, so that it still belongs to its block. After
 * some in a row the block goes on without it. */
static int run_slice(struct trial *trial, struct contender *c, unsigned position, struct err *err)
{
    char unsound[768];
    bool spoilt = true;
    tell(trial, "measuring", c->entry->name);
    for (int i = 0; i < SPOILT_SLICES_MOST && spoilt; i++) {
        spoilt = false;
        int status = measure_and_note(trial, c, position, &spoilt, err);
        if (status != 0 || c->out || stopped(trial))
            return status;
    }
    if (spoilt)
        return 0;
    if (!slice_is_sound(trial->plan, trial->slice, unsound, sizeof unsound))
        return fail_because(trial, c, "under load", unsound, err);
    c->empty_slices = trial->slice->load.valid > 0 ? 0 : c->empty_slices + 1;
    if (c->empty_slices >= EMPTY_SLICES_MOST &&
        c->empty_slices * trial->plan->slice_ns >= empty_least_ns)
        return fail_because(
            trial, c, "under load",
            "no answer within three slices and 300 ms on end; --slice makes them longer", err);
    return 0;
}

static size_t contenders_left(const struct trial *trial)
{
    size_t left = 0;
    for (size_t i = 0; i < trial->count; i++)
        left += !trial->contenders[i].out;
    return left;
}

/* Applies `step` to every contender still in, in the order of this boot and block. */
static int in_order(struct trial *trial,
                    int (*step)(struct trial *, struct contender *, unsigned, struct err *),
                    struct err *err)
{
    size_t *order = mem_alloc(trial->count, sizeof *order);
    plan_order(trial->plan, trial->boot, trial->block, order, trial->count);
    int status = 0;
    for (size_t i = 0; i < trial->count && status == 0 && !stopped(trial); i++)
        if (!trial->contenders[order[i]].out) {
            status = step(trial, &trial->contenders[order[i]], (unsigned)i, err);
            if (status == 0)
                status = retire_second_rows(trial, err);
        }
    free(order);
    return status;
}

static int bring_up_step(struct trial *trial, struct contender *c, unsigned position,
                         struct err *err)
{
    (void)position;
    return bring_up(trial, c, err);
}

/* Ends all servers of the boot. A breach found here is a failure of the entry. */
static int shut_down(struct trial *trial, struct err *err)
{
    int status = 0;
    for (size_t i = 0; i < trial->count; i++) {
        struct contender *c = &trial->contenders[i];
        char breach[256];
        struct err second;
        if (c->server == NULL)
            continue;
        tell(trial, "stopping", c->entry->name);
        int failed = stop_server(trial, c, breach, sizeof breach, status == 0 ? err : &second);
        /* One that had not answered yet may not have come to handling SIGTERM. */
        if (failed == 0 && breach[0] != '\0' && c->ready)
            failed = fail_contender(trial, c, breach, status == 0 ? err : &second);
        status = status != 0 ? status : failed;
    }
    return status;
}

/* A boot's share of the budget ends at a fixed time, so that slow starts do not lengthen the run;
 * one block is run in any case. */
static int run_boot(struct trial *trial, struct err *err)
{
    uint64_t end_ns =
        trial->began_ns + trial->plan->budget_ns * (trial->boot + 1) / trial->plan->boots;
    uint64_t boot_began_ns = clock_now_ns();
    trial->block = 0;
    int status = in_order(trial, bring_up_step, err);
    while (status == 0 && !stopped(trial) && contenders_left(trial) > 0) {
        uint64_t block_began_ns = clock_now_ns();
        trial->block++;
        status = in_order(trial, run_slice, err);
        uint64_t now_ns = clock_now_ns();
        if (trial->block == 1)
            trial->least_boot_ns = now_ns - boot_began_ns;
        if (now_ns + (now_ns - block_began_ns) > end_ns)
            break;
    }
    struct err second;
    int down = shut_down(trial, status == 0 ? err : &second);
    return status != 0 ? status : down;
}

static void tell_judged(void *context, const struct entry *entry, size_t done, size_t count)
{
    const struct trial_progress progress = {
        .doing = "judging", .entry = entry->name, .judged = done, .to_judge = count};
    tell_progress(context, progress);
}

/* Holds all that were not yet against the contract, and takes those out that fall short. */
static int judge_all(struct trial *trial, struct err *err)
{
    const struct judge_options options = {.pages = trial->options->pages,
                                          .gate_only = trial->options->gate_only,
                                          .seed = trial->plan->seed,
                                          .stop = trial->options->stop};
    const struct gate_watch watch = {.judged = tell_judged, .context = trial};
    struct gate_subject *subjects = mem_alloc(trial->count + 1, sizeof *subjects);
    size_t wanted = 0;
    for (size_t i = 0; i < trial->count; i++) {
        subjects[i].entry = trial->contenders[i].entry;
        subjects[i].skip = trial->contenders[i].judged || trial->contenders[i].out;
        wanted += !subjects[i].skip;
    }
    if (wanted > 0)
        tell_progress(trial,
                      (struct trial_progress){.doing = "judging", .entry = "", .to_judge = wanted});
    gate_run(&options, &watch, subjects, trial->count);
    int status = 0;
    for (size_t i = 0; i < trial->count; i++) {
        struct contender *c = &trial->contenders[i];
        struct gate_subject *subject = &subjects[i];
        if (subject->line != NULL && status == 0)
            status = note(trial, json_incref(subject->line), err);
        if (subject->refused && status == 0)
            status = put_out(trial, c, subject->lacks ? "lack" : "failure", subject->problem, err);
        free(subject->problem);
        json_decref(subject->line);
    }
    free(subjects);
    return status == 0 ? retire_second_rows(trial, err) : status;
}

static void add_twin(struct trial *trial, const struct entry *of)
{
    trial->twin = twin_make(of);
    trial->twin_of = of;
    trial->contenders[trial->count++] =
        (struct contender){.entry = &trial->twin, .of = of, .workers = 1, .judged = true};
}

/* A run that goes on keeps the twin it began with. */
static void take_up_twin(struct trial *trial)
{
    const char *name = twin_find(trial->data->run);
    size_t count = trial->count;
    for (size_t i = 0; name != NULL && i < count; i++)
        if (strcmp(trial->contenders[i].entry->name, name) == 0)
            add_twin(trial, trial->contenders[i].entry);
}

/* Chooses it once it is known who passed, and writes it to run.json. */
static int choose_twin(struct trial *trial, struct err *err)
{
    const struct entry **fit = mem_alloc(trial->count + 1, sizeof(*fit));
    size_t count = 0;
    for (size_t i = 0; i < trial->count; i++)
        if (!trial->contenders[i].out && trial->contenders[i].of == NULL &&
            trial->contenders[i].entry->status == ENTRY_ACTIVE)
            fit[count++] = trial->contenders[i].entry;
    const struct entry *of = twin_choose(trial->plan, fit, count);
    free(fit);
    if (of == NULL)
        return 0;
    json_t *entries = json_object_get(trial->data->run, "entries");
    size_t index;
    json_t *entry;
    json_t *own = NULL;
    json_array_foreach(entries, index, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name != NULL && strcmp(name, of->name) == 0)
            own = twin_describe(entry);
    }
    json_array_append_new(entries, own);
    add_twin(trial, of);
    return record_update(trial->record, trial->data->run, err);
}

/* How many boots the lines hold, and which entries are out: a run that goes on begins a new boot,
 * since the processes of the old one are gone. */
static unsigned read_back(struct trial *trial)
{
    unsigned boots = 0;
    size_t index;
    json_t *line;
    json_array_foreach(trial->data->lines, index, line)
    {
        const char *type = json_string_value(json_object_get(line, "type"));
        const char *name = json_string_value(json_object_get(line, "entry"));
        unsigned boot = (unsigned)json_integer_value(json_object_get(line, "boot"));
        if (name == NULL)
            continue;
        if (strcmp(type, "slice") == 0 && boot + 1 > boots)
            boots = boot + 1;
        for (size_t i = 0; name != NULL && i < trial->count; i++) {
            struct contender *c = &trial->contenders[i];
            if (strcmp(c->entry->name, name) != 0)
                continue;
            c->out = c->out || strcmp(type, "failure") == 0 || strcmp(type, "lack") == 0;
            c->judged = c->judged || strcmp(type, "gate") == 0;
        }
    }
    return boots;
}

/* The intervals as they stand, of all that are still in but the twin. */
static void look(struct trial *trial)
{
    struct rates rates;
    rates_read(trial->data, &rates);
    const json_t *entries = json_object_get(trial->data->run, "entries");
    bool *counts = mem_alloc(rates.table.entries + 1, sizeof *counts);
    for (size_t i = 0; i < rates.table.entries; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(entries, i), "name"));
        for (size_t j = 0; j < trial->count; j++) {
            const struct contender *c = &trial->contenders[j];
            if (!c->out && c->entry != &trial->twin && name != NULL &&
                strcmp(c->entry->name, name) == 0)
                counts[i] = true;
        }
    }
    sure_look(&rates.table, counts, DRAWS, trial->plan->seed, &trial->sure);
    free(counts);
    rates_free(&rates);
}

/* NULL while the run goes on. A boot that would end after the budget is not begun; without a
 * precision the number of boots is part of the plan and all are run. */
static const char *why_to_end(struct trial *trial)
{
    uint64_t spent_ns = clock_now_ns() - trial->began_ns;
    bool wants_precision = trial->plan->precision > 0;
    if (stopped(trial))
        return "signal";
    if (contenders_left(trial) == 0)
        return "failures";
    if (wants_precision && sure_is_enough(&trial->sure, trial->boot, trial->plan->precision))
        return "precision";
    if (trial->boot >= trial->plan->boots)
        return wants_precision ? "budget" : "boots";
    if (trial->options->stop_after > 0 &&
        trial->boot - trial->first_boot >= trial->options->stop_after)
        return "boots";
    if (wants_precision && trial->boot > 0 &&
        spent_ns + trial->least_boot_ns > trial->plan->budget_ns)
        return "budget";
    return NULL;
}

static int run_boots(struct trial *trial, const char **ended_by, struct err *err)
{
    int status = 0;
    if (trial->plan->precision > 0)
        look(trial);
    while (status == 0 && (*ended_by = why_to_end(trial)) == NULL) {
        status = run_boot(trial, err);
        if (!stopped(trial))
            trial->boot++;
        if (trial->plan->precision > 0)
            look(trial);
    }
    return status;
}

static json_t *precision_reached(const struct trial *trial, uint64_t spent_ns)
{
    const json_t *entries = json_object_get(trial->data->run, "entries");
    uint64_t more_ns;
    json_t *json = json_pack("{s:f}", "wanted", trial->plan->precision);
    if (isnan(trial->sure.widest))
        return json;
    json_object_set_new(json, "widest", json_real(trial->sure.widest));
    json_object_set(json, "widest_entry",
                    json_object_get(json_array_get(entries, trial->sure.entry), "name"));
    if (sure_more_ns(&trial->sure, trial->boot, trial->plan->precision, spent_ns, &more_ns) == 0)
        json_object_set_new(json, "more_ns", json_integer((json_int_t)more_ns));
    return json;
}

static json_t *end_line(const struct trial *trial, const char *ended_by)
{
    uint64_t spent_ns = clock_now_ns() - trial->began_ns;
    json_t *line = json_pack("{s:s, s:b, s:s, s:i, s:I}", "type", "end", "interrupted",
                             strcmp(ended_by, "signal") == 0, "ended_by", ended_by, "boots",
                             (int)trial->boot, "spent_ns", (json_int_t)spent_ns);
    if (trial->plan->precision > 0)
        json_object_set_new(line, "precision", precision_reached(trial, spent_ns));
    return line;
}

bool trial_is_complete(const struct plan *plan, const struct record_data *data, unsigned *boots)
{
    bool complete = false;
    size_t index;
    json_t *line;
    *boots = 0;
    json_array_foreach(data->lines, index, line)
    {
        const char *type = json_string_value(json_object_get(line, "type"));
        const char *by = json_string_value(json_object_get(line, "ended_by"));
        complete = strcmp(type, "end") == 0 && !json_is_true(json_object_get(line, "interrupted"));
        if (!complete)
            continue;
        *boots = (unsigned)json_integer_value(json_object_get(line, "boots"));
        complete = *boots >= plan->boots || (by != NULL && strcmp(by, "boots") != 0);
    }
    return complete;
}

static bool can_run(const struct plan *plan, const struct entry *entry)
{
    return entry->ready && entry->status != ENTRY_BROKEN && part_takes(entry, plan->workload);
}

static void add_crew(struct trial *trial, const struct entry *of)
{
    unsigned workers = trial->plan->workers;
    struct entry *crew = &trial->crews[trial->crew_count++];
    *crew = crew_make(of, workers);
    trial->contenders[trial->count++] =
        (struct contender){.entry = crew, .of = of, .workers = workers, .judged = true};
}

/* Those that can run, their crews, and the twin of a run that goes on. */
static void gather(struct trial *trial)
{
    const struct trial_options *options = trial->options;
    trial->contenders = mem_alloc(2 * options->entry_count + 2, sizeof *trial->contenders);
    trial->crews = mem_alloc(options->entry_count + 1, sizeof *trial->crews);
    for (size_t i = 0; i < options->entry_count; i++)
        if (can_run(trial->plan, options->entries[i]))
            trial->contenders[trial->count++] =
                (struct contender){.entry = options->entries[i], .workers = 1};
    for (size_t i = 0; i < options->entry_count; i++)
        if (crew_wanted(trial->plan, options->entries[i]))
            add_crew(trial, options->entries[i]);
    take_up_twin(trial);
}

static void free_contenders(struct trial *trial)
{
    for (size_t i = 0; i < trial->count; i++)
        free(trial->contenders[i].request);
    for (size_t i = 0; i < trial->crew_count; i++)
        crew_drop(&trial->crews[i]);
    twin_drop(&trial->twin);
    free(trial->crews);
    free(trial->contenders);
}

int trial_run(const struct trial_options *options, struct record *record, struct record_data *data,
              struct err *err)
{
    struct trial trial = {.options = options,
                          .plan = &options->plan,
                          .record = record,
                          .data = data,
                          .slice = mem_alloc(1, sizeof *trial.slice),
                          .sure = {.widest = NAN}};
    const char *ended_by = NULL;
    gather(&trial);
    trial.boot = read_back(&trial);
    trial.first_boot = trial.boot;
    uint64_t spent_ns = options->plan.budget_ns * trial.boot / options->plan.boots;
    trial.began_ns = clock_now_ns() - spent_ns;
    int status = judge_all(&trial, err);
    if (status == 0 && trial.twin_of == NULL && !stopped(&trial))
        status = choose_twin(&trial, err);
    trial.began_ns = clock_now_ns() - spent_ns; /* judging is no part of the budget */
    if (status == 0)
        status = run_boots(&trial, &ended_by, err);
    if (status == 0)
        status = note(&trial, end_line(&trial, ended_by), err);
    free_contenders(&trial);
    free(trial.slice);
    return status;
}

/* Takes `reason`. */
static json_t *describe_skipped(json_t *entry, char *reason)
{
    json_object_set_new(entry, "status", json_string("skipped"));
    json_object_set_new(entry, "reason", json_string(reason));
    free(reason);
    return entry;
}

static json_t *describe_entry(const struct plan *plan, const struct entry *entry)
{
    static const char *const statuses[] = {"active", "reference", "broken"};
    char hash[17];
    entry_hash(entry, hash);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "name", entry->name,
                  "title", entry->title, "language", entry->language, "library", entry->library,
                  "layer", entry->layer, "parser", entry->parser, "model", entry->model, "tuning",
                  entry->tuning, "jit", entry->jit, "hash", hash);
    if (entry->status == ENTRY_BROKEN) {
        json_object_set_new(json, "status", json_string("broken"));
        json_object_set_new(json, "reason", json_string(entry->status_reason));
        return json;
    }
    if (!part_takes(entry, plan->workload))
        return describe_skipped(json, part_reason(entry));
    if (!entry->ready)
        return describe_skipped(json, mem_copy_string(entry->missing));
    json_object_set_new(json, "status", json_string(statuses[entry->status]));
    char *version = entry_version(entry);
    if (version != NULL)
        json_object_set_new(json, "version", text_to_json(version));
    free(version);
    return json;
}

/* The fingerprint, and what a doctor says of the cores that the plan takes. */
static json_t *describe_machine(const struct plan *plan)
{
    struct host_doctor doctor;
    const struct host_doctor_options options = {
        .root = "", .cpus = &plan->cpus, .sample_ns = DOCTOR_SAMPLE_NS};
    json_t *machine = host_machine_describe();
    host_doctor_examine(&options, &doctor);
    json_object_set_new(machine, "doctor", host_doctor_to_json(&doctor));
    return machine;
}

json_t *trial_describe(const struct trial_options *options, int argc, char **argv,
                       const char *version)
{
    json_t *words = json_array();
    json_t *entries = json_array();
    for (int i = 0; i < argc; i++)
        json_array_append_new(words, text_to_json(argv[i]));
    for (size_t i = 0; i < options->entry_count; i++) {
        json_t *entry = describe_entry(&options->plan, options->entries[i]);
        json_array_append_new(entries, entry);
        if (crew_wanted(&options->plan, options->entries[i]))
            json_array_append_new(entries, crew_describe(entry, options->plan.workers));
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "showdown", version, "argv", words, "plan",
                     plan_to_json(&options->plan), "machine", describe_machine(&options->plan),
                     "entries", entries);
}
