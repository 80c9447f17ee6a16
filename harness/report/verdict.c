#include "report/verdict.h"

#include "report/summary.h"
#include "report/text.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* A loading thread asks to be woken every 10 ms, or every 10 ms and 2 us a connection
 * (hammer/hammer.h). */
static const double wake_ns = 10e6, wake_per_connection_ns = 2e3;

/* Of ticks: only a core that is hardly ever idle shows by them that some never came, since a core
 * that sleeps between two ticks, many times a second, is not sampled evenly. */
static const double hardly_idle = 0.05;

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static bool has(const json_t *object, const char *key)
{
    return json_object_get(object, key) != NULL;
}

/* ---- sums */

static void add_core(struct core_sums *core, const json_t *ticks)
{
    core->busy += number(ticks, "busy");
    core->idle += number(ticks, "idle");
    core->steal += number(ticks, "steal");
    core->irq += number(ticks, "irq");
    core->irqs += number(ticks, "irq") + number(ticks, "softirq");
}

/* A thread waits for its core at most as long as it does not run there. */
static void add_wait(struct core_sums *core, double wait_ns, double window_ns, double cpu_ns)
{
    core->wait_ns += fmin(wait_ns, fmax(0, window_ns - cpu_ns));
    core->wait_window_ns += window_ns;
}

double evidence_server_cores(const json_t *line)
{
    return fmax(1, number(line, "server_cores"));
}

void evidence_add(struct evidence_sums *sums, const json_t *line, const json_t *plan)
{
    double window_ns = number(line, "window_ns");
    double cores = fmax(1, (double)json_array_size(json_object_get(plan, "hammer_cpus")));
    double server_window_ns = window_ns * evidence_server_cores(line);
    double server_ns = number(line, "server_cpu_ns");
    double hammer_ns = number(line, "hammer_user_ns") + number(line, "hammer_system_ns");
    double asked_ns = wake_ns + wake_per_connection_ns * number(plan, "connections");
    sums->window_ns += window_ns;
    sums->server_window_ns += server_window_ns;
    sums->slices++;
    sums->valid += number(line, "valid");
    sums->latency_ns += number(json_object_get(line, "latency"), "sum_ns");
    add_core(&sums->server, json_object_get(line, "server_core"));
    add_core(&sums->hammer, json_object_get(line, "hammer_cores"));
    sums->server.cpu_ns += server_ns;
    sums->hammer.cpu_ns += hammer_ns;
    if (has(line, "server_wait_ns") && has(line, "server_cpu_ns"))
        add_wait(&sums->server, number(line, "server_wait_ns"), server_window_ns, server_ns);
    if (has(line, "hammer_wait_ns"))
        add_wait(&sums->hammer, number(line, "hammer_wait_ns"), window_ns * cores, hammer_ns);
    sums->threads |= number(line, "threads") > 1 || number(line, "processes") > 1;
    sums->gap_ns += fmax(0, number(line, "longest_gap_ns") - asked_ns);
    if (has(line, "throttled_ns")) {
        sums->throttled_ns += number(line, "throttled_ns");
        sums->throttle_window_ns += window_ns;
    }
    if (has(line, "little") && !json_is_true(json_object_get(plan, "close_each"))) {
        sums->little += number(line, "little") * window_ns;
        sums->little_window_ns += window_ns;
    }
}

/* ---- shares */

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static double ticks_of(const struct core_sums *core)
{
    return core->busy + core->idle + core->steal;
}

/* Where a kernel keeps interrupts out of the processes' time (CONFIG_IRQ_TIME_ACCOUNTING), it shows
 * by irq ticks, which are never sampled otherwise; they then belong to nobody. */
static double busy_of(const struct core_sums *core)
{
    return core->irq > 0 ? core->busy - core->irqs : core->busy;
}

/* Of the core's ticks, those of neither server nor load generator. */
static double foreign_of(const struct core_sums *core, double ours_ns, double window_ns)
{
    double ticks = ticks_of(core);
    return ticks > 0 && window_ns > 0
               ? fmax(0, busy_of(core) / ticks - fmin(1, ours_ns / window_ns))
               : NAN;
}

static double missing_of(const struct core_sums *core, double window_ns)
{
    double all = window_ns / 1e9 * (double)sysconf(_SC_CLK_TCK);
    double ticks = ticks_of(core);
    if (ticks <= 0 || core->idle > hardly_idle * all)
        return NAN;
    return fmax(0, 1 - ticks / all);
}

void evidence_set(const struct evidence_sums *sums, const json_t *plan, struct row *row)
{
    double cores = fmax(1, (double)json_array_size(json_object_get(plan, "hammer_cpus")));
    const struct core_sums *server = &sums->server;
    const struct core_sums *hammer = &sums->hammer;
    double hammer_window_ns = sums->window_ns * cores;
    struct evidence *e = &row->evidence;
    row->hammer_busy = share(hammer->cpu_ns, hammer_window_ns);
    row->steal = share(server->steal + hammer->steal, ticks_of(server) + ticks_of(hammer));
    e->shared = json_is_true(json_object_get(plan, "one_cpu"));
    e->server_waited = share(server->wait_ns, server->wait_window_ns);
    e->hammer_waited = share(hammer->wait_ns, hammer->wait_window_ns);
    if (e->shared) { /* one core, in both sums */
        e->server_foreign = foreign_of(server, server->cpu_ns + hammer->cpu_ns, sums->window_ns);
        row->foreign = e->server_foreign;
    } else {
        double servers = sums->server_window_ns / sums->window_ns;
        e->server_foreign = foreign_of(server, server->cpu_ns, sums->server_window_ns);
        e->hammer_foreign = foreign_of(hammer, hammer->cpu_ns, hammer_window_ns);
        row->foreign =
            (e->server_foreign * servers + e->hammer_foreign * cores) / (servers + cores);
        if (sums->threads)
            e->server_waited = fmin(e->server_waited, e->server_foreign);
    }
    e->server_missing = missing_of(server, sums->server_window_ns);
    e->hammer_missing = missing_of(hammer, hammer_window_ns);
    e->throttled = share(sums->throttled_ns, sums->throttle_window_ns);
    e->gaps = share(sums->gap_ns, sums->window_ns);
    e->little = share(sums->little, sums->little_window_ns);
    e->little_edge =
        share(share(sums->latency_ns, sums->valid), share(sums->window_ns, sums->slices));
}

/* ---- verdicts */

/* What is not known is no evidence. */
static double known(double value)
{
    return isnan(value) ? 0 : value;
}

enum taking { /* how others took time, in the order of its naming at equal shares */
              STEAL,
              SERVER_WAITED,
              HAMMER_WAITED,
              THROTTLED,
              GAPS,
              SPOILT,
              SERVER_FOREIGN,
              HAMMER_FOREIGN,
              SERVER_MISSING,
              HAMMER_MISSING,
              TAKINGS
};

static void takings_of(const struct row *row, double by[TAKINGS])
{
    const struct evidence *e = &row->evidence;
    by[STEAL] = known(row->steal);
    by[SERVER_WAITED] = e->shared ? 0 : known(e->server_waited);
    by[HAMMER_WAITED] = e->shared ? 0 : known(e->hammer_waited);
    by[THROTTLED] = known(e->throttled);
    by[GAPS] = known(e->gaps);
    by[SPOILT] = row->spoilt > 1 ? known(e->spoilt) : 0; /* one is bad luck */
    by[SERVER_FOREIGN] = known(e->server_foreign);
    by[HAMMER_FOREIGN] = known(e->hammer_foreign);
    by[SERVER_MISSING] = known(e->server_missing);
    by[HAMMER_MISSING] = known(e->hammer_missing);
}

/* The way in which most was taken, in multiples of what would still pass; above 1 is too much. */
static double worst_taking(const struct row *row, enum taking *worst)
{
    double by[TAKINGS];
    double most = 0;
    takings_of(row, by);
    *worst = STEAL;
    for (int i = 0; i < TAKINGS; i++) {
        double times = by[i] / (i < SERVER_FOREIGN ? VERDICT_LOST : VERDICT_TICKS);
        if (times > most) {
            most = times;
            *worst = (enum taking)i;
        }
    }
    return most;
}

static bool drifted(const struct row *row)
{
    const struct evidence *e = &row->evidence;
    return e->drift_known && e->drift.p < VERDICT_CHANCE &&
           fabs(log(e->drift.change)) > log(1 + VERDICT_CHANGE);
}

static bool holds(const struct row *row, enum verdict verdict)
{
    const struct evidence *e = &row->evidence;
    enum taking worst;
    bool hammer_full = known(row->hammer_busy) + known(e->hammer_waited) >= VERDICT_HAMMER_FULL;
    bool server_spent = known(row->server_busy) >= VERDICT_SERVER_SPENT;
    bool server_full = known(row->server_busy) + known(e->server_waited) >= VERDICT_SERVER_FULL;
    switch (verdict) {
    case VERDICT_ERRORS:
        return strcmp(row->status, "failed") == 0 || row->errors > 0;
    case VERDICT_NEIGHBOURS:
        return worst_taking(row, &worst) > 1;
    case VERDICT_UNSTEADY:
        return e->boots_cold > 0 || drifted(row);
    case VERDICT_HAMMER:
        return hammer_full && !server_spent;
    case VERDICT_SERVER:
        return server_full && (!hammer_full || server_spent);
    case VERDICT_WAITING:
        return !isnan(row->server_busy) && !server_full && !hammer_full;
    case VERDICTS:
        break;
    }
    return false;
}

void verdict_set_all(struct summary *summary)
{
    unsigned tested = 0;
    for (size_t i = 0; i < summary->count; i++)
        tested += summary->rows[i].evidence.drift_known;
    for (size_t i = 0; i < summary->count; i++) {
        struct row *row = &summary->rows[i];
        row->evidence.drift.p = fmin(1, row->evidence.drift.p * tested);
        row->verdicts = 0;
        for (int v = VERDICTS - 1; v >= 0; v--)
            if (holds(row, (enum verdict)v)) {
                row->verdicts |= 1u << v;
                row->verdict = verdict_name((enum verdict)v);
            }
    }
}

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[VERDICTS + 1] = {
        [VERDICT_ERRORS] = "errors",
        [VERDICT_NEIGHBOURS] = "neighbours",
        [VERDICT_UNSTEADY] = "unsteady",
        [VERDICT_HAMMER] = "hammer",
        [VERDICT_SERVER] = "server",
        [VERDICT_WAITING] = "waiting",
        [VERDICTS] = "",
    };
    return names[verdict];
}

bool verdict_holds(const struct row *row, enum verdict verdict)
{
    return (row->verdicts & 1u << verdict) != 0;
}

bool verdict_little_broken(const struct row *row)
{
    const struct evidence *e = &row->evidence;
    return fabs(e->little - 1) > VERDICT_LITTLE + known(e->little_edge);
}

/* ---- the foot */

static void say_taking(FILE *out, const struct row *row, enum taking worst)
{
    static const char *const text[TAKINGS] = {
        [STEAL] = "the hypervisor took %.0f%% of the cores",
        [SERVER_WAITED] = "its server waited for its core %.0f%% of the time",
        [HAMMER_WAITED] = "the load generator waited for its core %.0f%% of the time",
        [THROTTLED] = "a CPU quota stopped the run %.0f%% of the time",
        [GAPS] = "the load generator slept %.0f%% of the time too long",
        [SPOILT] = "%.0f%% of its slices were spoilt",
        [SERVER_FOREIGN] = "other processes used %.0f%% of the server's core",
        [HAMMER_FOREIGN] = "other processes used %.0f%% of the load generator's core",
        [SERVER_MISSING] = "%.0f%% of the time of the server's core is unaccounted for",
        [HAMMER_MISSING] = "%.0f%% of the time of the load generator's core is unaccounted for",
    };
    double by[TAKINGS];
    takings_of(row, by);
    fprintf(out, text[worst], by[worst] * 100);
}

static void say_neighbours(FILE *out, const struct summary *summary)
{
    const struct row *most = NULL;
    double most_times = 0;
    unsigned rows = 0;
    enum taking worst = STEAL;
    for (size_t i = 0; i < summary->count; i++) {
        enum taking taking;
        double times = worst_taking(&summary->rows[i], &taking);
        rows += verdict_holds(&summary->rows[i], VERDICT_NEIGHBOURS);
        if (times <= most_times)
            continue;
        most_times = times;
        most = &summary->rows[i];
        worst = taking;
    }
    if (most == NULL || rows == 0)
        return;
    fprintf(out, "neighbours: others took time from %u %s, most from %s: ", rows,
            rows == 1 ? "row" : "rows", text_shown(most->name).text);
    say_taking(out, most, worst);
    fputs(worst == THROTTLED ? ".\n  Raise the quota (docker run --cpus, the CI runner's limit).\n"
                             : ".\n  Stop what else runs (top), keep it off these cores (taskset), "
                               "or measure on a quieter machine.\n",
          out);
}

static void say_drift(FILE *out, const struct row *row)
{
    const struct drift *drift = &row->evidence.drift;
    double change = (drift->change - 1) * 100;
    fprintf(out, "%.1f%% %s in the second half of %s (p = %.2g)", fabs(change),
            change < 0 ? "slower" : "faster", drift->within_boots ? "each boot" : "the run",
            drift->p);
}

static void say_unsteady(FILE *out, const struct summary *summary)
{
    const char *before = "unsteady: ";
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        if (!verdict_holds(row, VERDICT_UNSTEADY))
            continue;
        fprintf(out, "%s%s ", before, text_shown(row->name).text);
        if (row->evidence.boots_cold > 0)
            fprintf(out, "was still warming up when its slices began in %u of %u boots",
                    row->evidence.boots_cold, row->boots);
        if (row->evidence.boots_cold > 0 && drifted(row))
            fputs(", and was ", out);
        else if (drifted(row))
            fputs("was ", out);
        if (drifted(row))
            say_drift(out, row);
        before = "; ";
    }
    if (*before == ';')
        fputs(".\n  Such a figure is a mean over different times. Fewer --boots make each longer, "
              "for a "
              "late JIT;\n  run again to see if it stays, and look for what grows in the server.\n",
              out);
}

/* "verdict: a, b (97%)": the rows of which it is the first, with a figure of each. */
static bool say_rows(FILE *out, const struct summary *summary, enum verdict verdict,
                     double (*figure)(const struct row *))
{
    const char *before = verdict_name(verdict);
    const char *colon = ": ";
    bool any = false;
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        if (strcmp(row->verdict, verdict_name(verdict)) != 0)
            continue;
        fprintf(out, "%s%s%s", before, colon, text_shown(row->name).text);
        if (figure != NULL)
            fprintf(out, " (%.0f%%)", figure(row) * 100);
        before = "";
        colon = ", ";
        any = true;
    }
    if (any)
        fputc('\n', out);
    return any;
}

static double hammer_share(const struct row *row)
{
    return row->hammer_busy;
}

static double server_share(const struct row *row)
{
    return row->server_busy;
}

static void say_little(FILE *out, const struct summary *summary)
{
    for (size_t i = 0; i < summary->count; i++)
        if (verdict_little_broken(&summary->rows[i]))
            fprintf(out,
                    "%s?: req/s times mean latency is %.2f of the connections and should be 1 "
                    "(Little's law).\n  Its rate and its latencies can't both be right: run again "
                    "on a quieter machine.\n",
                    text_shown(summary->rows[i].name).text, summary->rows[i].evidence.little);
}

void verdict_explain(FILE *out, const struct summary *summary)
{
    if (say_rows(out, summary, VERDICT_ERRORS, NULL))
        fputs("  Answers were wrong, lost or late: not comparable. `showdown check NAME` shows "
              "more.\n",
              out);
    say_neighbours(out, summary);
    say_unsteady(out, summary);
    if (say_rows(out, summary, VERDICT_HAMMER, hammer_share))
        fputs("  The load generator's core was full: the server can do more, and no row is claimed "
              "to "
              "be faster.\n  Give it more cores: --hammer-cpus.\n",
              out);
    if (say_rows(out, summary, VERDICT_WAITING, server_share))
        fputs(
            "  So much of the server's core was used, and the load generator had room: the server "
            "waits.\n  Raise -c; if that changes nothing, look for a delay or a lock in it.\n",
            out);
    if (say_rows(out, summary, VERDICT_SERVER, NULL))
        fputs("  The server's core was full, as it should be.\n", out);
    say_little(out, summary);
}
