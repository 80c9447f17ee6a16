/* What `make calibrate` works out from recorded sessions in which two identical builds took turns
 * (`showdown compare --entry` of two copies of one build). The noise is the session's; what is
 * planted is known; what must find it is the code that judges every record.
 *
 *   resample runs RECORD      cuts a session of many boots into runs of 8 boots, each of which is
 *                             judged as a record of its own: how many are declared different
 *   resample chance RECORD    the same over 1,000 runs made of a session's boots
 *   resample power RECORD     3% and 1% planted into such runs: how many are declared slower
 *   resample coverage RECORD  simulated runs with the session's noise: how often the intervals of
 *                             95% hold the truth
 *
 * Each prints a line, PLANTED, a tab, FOUND; exit status 0 if what was found is as it must be, 1 if
 * not, 2 for a record that can't be used. The same records give the same lines: all draws are
 * seeded. docs/METHOD.md, Calibration, has the method and the bounds.
 */
#include "base/mem.h"
#include "record/record.h"
#include "report/compare.h"
#include "report/ranks.h"
#include "report/series.h"
#include "report/summary.h"
#include "stats/paired.h"
#include "stats/random.h"
#include "stats/signflip.h"
#include "stats/trimmed.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_BOOTS = 8, RUNS_LEAST = 40, RESAMPLED = 1000, SIMULATED = 2000 };
enum { PASS, FAIL, UNUSABLE };

static const char *sides[2]; /* the names of the two builds in the record */

static int complain(const char *what)
{
    fprintf(stderr, "resample: %s\n", what);
    return UNUSABLE;
}

static double gauss(struct random *r)
{
    return gsl_cdf_ugaussian_Pinv(random_unit(r) + 0x1p-54); /* never at 0 */
}

/* ---- (1) real runs: some boots of the session as a record of their own */

static bool is_of(const json_t *line, json_int_t first, json_int_t count)
{
    const json_t *boot = json_object_get(line, "boot");
    json_int_t number = json_integer_value(boot);
    return boot == NULL || (number >= first && number < first + count);
}

static json_t *lines_of(const struct record_data *session, json_int_t first, json_int_t count)
{
    json_t *lines = json_array();
    size_t index;
    json_t *line;
    json_array_foreach(session->lines, index, line)
    {
        if (is_of(line, first, count))
            json_array_append_new(lines, json_copy(line));
    }
    return lines;
}

static void rename_entry(json_t *object, const char *key, const char *from, const char *to)
{
    const char *name = json_string_value(json_object_get(object, key));
    if (name != NULL && strcmp(name, from) == 0)
        json_object_set_new(object, key, json_string(to));
}

/* The new build becomes the old one's twin, so that the rule of the table judges the two. */
static void make_twin(struct record_data *run)
{
    json_t *entries = json_deep_copy(json_object_get(run->run, "entries"));
    json_t *twin = json_array_get(entries, 1);
    char *name = mem_format("%s twin", sides[0]);
    size_t index;
    json_t *line;
    run->run = json_copy(run->run);
    json_object_set_new(run->run, "entries", entries);
    json_object_set_new(twin, "name", json_string(name));
    json_object_set_new(twin, "status", json_string("twin"));
    json_object_set_new(twin, "twin_of", json_string(sides[0]));
    json_array_foreach(run->lines, index, line) rename_entry(line, "entry", sides[1], name);
    free(name);
}

struct counts {
    unsigned runs, table, below, compared;
};

static int judge_run(const struct record_data *session, json_int_t first, struct counts *counts,
                     struct err *err)
{
    struct record_data run = {session->run, lines_of(session, first, RUN_BOOTS)};
    struct comparison comparison;
    struct summary summary;
    int status = compare_builds(&run, COMPARE_THRESHOLD, &comparison, err);
    if (status != 0)
        goto out;
    enum compare_outcome outcome = comparison.rows[0].outcome;
    counts->compared += outcome == COMPARE_SLOWER || outcome == COMPARE_FASTER;
    compare_free(&comparison);
    make_twin(&run);
    status = summary_make(&run, &summary, err);
    if (status == 0) {
        counts->table += ranks_inconclusive(&summary.ranking);
        counts->below += summary.ranking.twin.p < RANKS_ALPHA;
        counts->runs += isfinite(summary.ranking.twin.p);
        summary_free(&summary);
    }
    json_decref(run.run);
out:
    json_decref(run.lines);
    return status;
}

/* The most of `runs` that a share of 5% gives in 99 of 100 cases: what is above is no chance. */
static unsigned most_by_chance(unsigned runs)
{
    unsigned most = 0;
    while (gsl_cdf_binomial_P(most, RANKS_ALPHA, runs) < 0.99)
        most++;
    return most;
}

static int check_runs(const struct record_data *session, const struct series *series)
{
    struct counts counts = {0};
    struct err err = {0};
    struct paired paired = series_paired(series);
    struct interval all;
    for (size_t first = 0; first + RUN_BOOTS <= series->boots; first += RUN_BOOTS)
        if (judge_run(session, (json_int_t)first, &counts, &err) != 0)
            return complain(err.text);
    if (counts.runs == 0 || trimmed_ratio(&paired, 1, 0, 0.95, SUMMARY_DRAWS, 1, &all) != 0)
        return complain("the session has no run of 8 boots");
    unsigned most = most_by_chance(counts.runs);
    printf(
        "nothing: two copies of one build, %u real runs of %d boots one after the other\t"
        "declared different: by the table's rule %u, by compare %u (of chance alone at most %u); "
        "with p < 0.05 alone %u; all boots: %.4f (%.4f to %.4f)%s\n",
        counts.runs, RUN_BOOTS, counts.table, counts.compared, most, counts.below, all.value,
        all.low, all.high, counts.runs < RUNS_LEAST ? "; fewer than 40 runs" : "");
    bool usual = counts.table <= most && counts.compared <= most && counts.below <= most;
    return usual && counts.runs >= RUNS_LEAST ? PASS : FAIL;
}

/* ---- runs made of a session's boots: a boot is two numbers, which hold the noise of processes and
 * of slices. Which of two copies is called the new one is a matter of names: each boot that is
 * drawn gets its names anew, so that the truth is 1 whatever the session came to. */

struct boots {
    size_t count;
    double *middle; /* interquartile mean of the log ratios: what compare judges by */
    double *mean;   /* what the table judges by */
};

static struct boots boots_of(const struct series *series)
{
    struct paired paired = series_paired(series);
    struct boots boots = {.middle = mem_alloc(series->boots + 1, sizeof(double)),
                          .mean = mem_alloc(series->blocks + 1, sizeof(double))};
    double *logs = mem_alloc(series->blocks + 1, sizeof *logs);
    size_t count = 0, middles = 0;
    for (size_t k = 0; k < series->blocks; k++) {
        double ratio = log(series->rate[2 * k + 1] / series->rate[2 * k]);
        if (!isnan(ratio))
            logs[count++] = ratio;
        if (k + 1 < series->blocks && series->boot[k + 1] == series->boot[k])
            continue;
        if (count > 0)
            boots.middle[middles++] = trimmed_mean(logs, count);
        count = 0;
    }
    free(logs);
    if (paired_boot_means(&paired, 1, 0, boots.mean, &boots.count) != 0 || boots.count != middles)
        boots.count = 0;
    return boots;
}

static void boots_free(struct boots *boots)
{
    free(boots->middle);
    free(boots->mean);
}

static double error_of(const double *values, size_t count)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += values[i] * values[i];
    return sqrt(squares / (double)count / (double)count);
}

struct found {                /* shares of the runs */
    double slower, different; /* by compare at 2% */
    double slower_half;       /* by compare at 0.5% */
    double table, table_different;
};

struct run {
    double *mean, *rate;
    unsigned *boot;
};

static void draw_run(const struct boots *boots, double shift, struct random *r, struct run *run)
{
    for (size_t i = 0; i < boots->count; i++) {
        size_t drawn = (size_t)random_below(r, boots->count);
        double side = random_below(r, 2) == 0 ? 1 : -1;
        run->mean[i] = side * boots->mean[drawn] + shift;
        run->rate[2 * i] = 1;
        run->rate[2 * i + 1] = exp(side * boots->middle[drawn] + shift);
        run->boot[i] = (unsigned)i;
    }
}

static void judge_drawn(const struct run *run, size_t count, uint64_t seed, struct found *found)
{
    const struct paired paired = {count, 2, run->rate, run->boot};
    struct interval ratio;
    double p;
    if (trimmed_ratio(&paired, 1, 0, 0.95, SUMMARY_DRAWS, seed, &ratio) != 0 ||
        signflip_p(run->mean, count, seed, &p) != 0)
        return;
    enum compare_outcome outcome = compare_judge(ratio, ratio, COMPARE_THRESHOLD);
    double mean = gsl_stats_mean(run->mean, 1, count);
    bool beyond = p < RANKS_ALPHA && fabs(mean) > log(1 + RANKS_DELTA_MIN);
    found->slower += outcome == COMPARE_SLOWER;
    found->different += outcome == COMPARE_SLOWER || outcome == COMPARE_FASTER;
    found->slower_half += compare_judge(ratio, ratio, 0.005) == COMPARE_SLOWER;
    found->table += beyond && mean < 0;
    found->table_different += beyond;
}

/* The new build made slower by `share` of its rate. */
static struct found plant(const struct boots *boots, double share)
{
    struct run run = {mem_alloc(boots->count, sizeof(double)),
                      mem_alloc(2 * boots->count, sizeof(double)),
                      mem_alloc(boots->count, sizeof(unsigned))};
    struct found found = {0};
    struct random r;
    random_seed(&r, 12);
    for (unsigned i = 0; i < RESAMPLED; i++) {
        draw_run(boots, log(1 - share), &r, &run);
        judge_drawn(&run, boots->count, i, &found);
    }
    double *shares[] = {&found.slower, &found.different, &found.slower_half, &found.table,
                        &found.table_different};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        *shares[i] /= RESAMPLED;
    free(run.mean);
    free(run.rate);
    free(run.boot);
    return found;
}

static int check_chance(const struct boots *boots)
{
    struct found found = plant(boots, 0);
    double most = (double)most_by_chance(RESAMPLED) / RESAMPLED;
    printf("nothing: %d runs of %zu boots drawn from the session, names drawn anew\tdeclared "
           "different: by the table's rule %.1f%%, by compare %.1f%% (5%% may be, and chance makes "
           "it %.1f%% at most)\n",
           RESAMPLED, boots->count, 100 * found.table_different, 100 * found.different, 100 * most);
    return found.table_different <= most && found.different <= most ? PASS : FAIL;
}

/* ---- (2) power. What normal noise would give: the estimate must be beyond `least` and beyond
 * Student's t times its own standard error, which is a draw too:
 *
 *   P = mean over u of Phi((shift - max(least, t * error * u)) / error)
 *
 * with u^2 distributed as chi-squared over its n-1 degrees of freedom, taken at its quantiles. */
static double predict(double shift, double least, double error, size_t boots)
{
    enum { quantiles = 1000 };
    double freedom = (double)boots - 1, t = gsl_cdf_tdist_Pinv(0.975, freedom), sum = 0;
    for (unsigned i = 0; i < quantiles; i++) {
        double u = sqrt(gsl_cdf_chisq_Pinv((i + 0.5) / quantiles, freedom) / freedom);
        sum += gsl_cdf_ugaussian_P((shift - fmax(least, t * error * u)) / error);
    }
    return sum / quantiles;
}

static int check_power(const struct boots *boots)
{
    const double near = 0.10;
    struct found three = plant(boots, 0.03), one = plant(boots, 0.01);
    double middle = error_of(boots->middle, boots->count);
    double mean = error_of(boots->mean, boots->count);
    double half = predict(-log(0.99), -log(0.995), middle, boots->count);
    double table = predict(-log(0.99), log(1 + RANKS_DELTA_MIN), mean, boots->count);
    printf(
        "3%% and 1%% slower, in %d runs of %zu boots drawn from the session\t3%%: declared slower "
        "by compare in %.1f%% (90%% must be), by the table in %.1f%%; 1%%: by compare "
        "--threshold 0.5%% in %.1f%% (predicted %.1f%%), by the table in %.1f%% (predicted "
        "%.1f%%); standard errors %.2f%%, %.2f%%\n",
        RESAMPLED, boots->count, 100 * three.slower, 100 * three.table, 100 * one.slower_half,
        100 * half, 100 * one.table, 100 * table, 100 * middle, 100 * mean);
    bool predicted = fabs(one.slower_half - half) <= near && fabs(one.table - table) <= near;
    return three.slower >= 0.9 && predicted ? PASS : FAIL;
}

/* ---- (3) coverage, with the session's noise */

enum { ENTRIES = 11, BOOTS = 12, BLOCKS = 12, DRAWS = 400 };

struct observed {
    double process; /* deviation of log rates: a process against another */
    double slice;   /* of one slice against another of its process */
    double drift;   /* of the machine's level, a block */
    double step;    /* the greatest change of the level from a boot to the next */
    double burst;   /* the share of blocks beyond four (robust) deviations */
    /* Log ratios less their boot's mean, in the order of time; `first` has one more. */
    double *residual;
    size_t *first;
    size_t boots, blocks;
};

/* The boot's blocks, log ratios and levels, as they come. Returns how many. */
static size_t read_boot(const struct series *s, size_t *block, double *ratio, double *level)
{
    size_t count = 0;
    for (unsigned boot = s->boot[*block]; *block < s->blocks && s->boot[*block] == boot; ++*block) {
        double a = log(s->rate[2 * *block]), b = log(s->rate[2 * *block + 1]);
        if (isnan(a + b))
            continue;
        ratio[count] = b - a;
        level[count++] = (a + b) / 2;
    }
    return count;
}

static double robust_deviation(const double *values, size_t count)
{
    double *sizes = mem_alloc(count + 1, sizeof *sizes);
    for (size_t i = 0; i < count; i++)
        sizes[i] = fabs(values[i]);
    double deviation = gsl_stats_median(sizes, 1, count) / gsl_cdf_ugaussian_Pinv(0.75);
    free(sizes);
    return deviation;
}

static void observe_boot(struct observed *o, const double *ratio, size_t count)
{
    double mean = gsl_stats_mean(ratio, 1, count);
    double unbiased = sqrt((double)count / (double)(count - 1));
    for (size_t i = 0; i < count; i++)
        o->residual[o->first[o->boots] + i] = (ratio[i] - mean) * unbiased;
    o->first[o->boots + 1] = o->first[o->boots] + count;
    o->boots++;
}

/* Of the differences of successive levels, 2/2 of a slice's variance is the slices' own. */
static void observe_level(struct observed *o, double *sums, const double *level, size_t count,
                          double *last)
{
    double mean = gsl_stats_mean(level, 1, count);
    for (size_t i = 1; i < count; i++) {
        sums[0] += (level[i] - level[i - 1]) * (level[i] - level[i - 1]);
        sums[1]++;
    }
    if (o->boots > 1)
        o->step = fmax(o->step, fabs(mean - *last));
    *last = mean;
}

/* Two processes and two slices are in each ratio: hence the halves. */
static void observe_spread(struct observed *o, const double *means, const double *sums, double own)
{
    double squares = 0, beyond = 0;
    double usual = robust_deviation(o->residual, o->blocks);
    for (size_t k = 0; k < o->blocks; k++) {
        squares += o->residual[k] * o->residual[k];
        beyond += fabs(o->residual[k]) > 4 * usual;
    }
    o->slice = sqrt(squares / (double)o->blocks / 2);
    o->burst = beyond / (double)o->blocks;
    o->process = sqrt(fmax(0, (gsl_stats_variance(means, 1, o->boots) - own) / 2));
    o->drift = sqrt(fmax(0, sums[0] / sums[1] - o->slice * o->slice));
}

static void observe(const struct series *s, struct observed *o)
{
    double *ratio = mem_alloc(s->blocks + 1, sizeof *ratio);
    double *level = mem_alloc(s->blocks + 1, sizeof *level);
    double *means = mem_alloc(s->boots + 1, sizeof *means);
    double sums[2] = {0}, last = NAN, own = 0;
    *o = (struct observed){.residual = mem_alloc(s->blocks + 1, sizeof(double)),
                           .first = mem_alloc(s->boots + 2, sizeof(size_t))};
    for (size_t block = 0; block < s->blocks;) {
        size_t count = read_boot(s, &block, ratio, level);
        if (count < 2)
            continue;
        means[o->boots] = gsl_stats_mean(ratio, 1, count);
        own += gsl_stats_variance(ratio, 1, count) / (double)count;
        observe_boot(o, ratio, count);
        observe_level(o, sums, level, count, &last);
    }
    o->blocks = o->first[o->boots];
    if (o->boots > 1)
        observe_spread(o, means, sums, own / (double)o->boots);
    free(ratio);
    free(level);
    free(means);
}

struct simulated {
    double rate[BOOTS * BLOCKS * ENTRIES];
    unsigned boot[BOOTS * BLOCKS];
    double level; /* mean over the blocks */
};

/* One process: its place, and its slices' noise, a stretch of a recorded boot in the order of time,
 * so that bursts, steps and what follows on what are the session's. */
static void simulate_process(const struct observed *o, struct simulated *s, size_t boot,
                             size_t entry, struct random *r)
{
    size_t from = (size_t)random_below(r, o->boots);
    size_t count = o->first[from + 1] - o->first[from];
    size_t offset = (size_t)random_below(r, count);
    double side = random_below(r, 2) == 0 ? M_SQRT1_2 : -M_SQRT1_2;
    double place = o->process * gauss(r);
    for (size_t k = 0; k < BLOCKS; k++)
        s->rate[(boot * BLOCKS + k) * ENTRIES + entry] =
            place + side * o->residual[o->first[from] + (offset + k) % count];
}

static struct paired simulate(const struct observed *o, struct simulated *s, struct random *r)
{
    size_t step_at = (size_t)random_below(r, BOOTS * BLOCKS);
    double level = 10;
    s->level = 0;
    for (size_t boot = 0; boot < BOOTS; boot++)
        for (size_t entry = 0; entry < ENTRIES; entry++)
            simulate_process(o, s, boot, entry, r);
    for (size_t k = 0; k < BOOTS * BLOCKS; k++) {
        level += o->drift * gauss(r) - (k == step_at ? o->step : 0);
        s->level += level / (BOOTS * BLOCKS);
        s->boot[k] = (unsigned)(k / BLOCKS);
        for (size_t entry = 0; entry < ENTRIES; entry++)
            s->rate[k * ENTRIES + entry] = exp(s->rate[k * ENTRIES + entry] + level);
    }
    return (struct paired){BOOTS * BLOCKS, ENTRIES, s->rate, s->boot};
}

static bool holds(struct interval i, double truth)
{
    return i.low <= truth && truth <= i.high;
}

/* A rate's interval is too wide by design (stats/paired.h), for eleven entries by 5%, which is 96%
 * of normal noise; long tails add to that. */
static bool are_95(double ratios, double middles, double rates)
{
    return ratios >= 0.93 && ratios <= 0.97 && middles >= 0.93 && middles <= 0.97 &&
           rates >= 0.93 && rates <= 0.985;
}

static int check_coverage(const struct series *series)
{
    static struct simulated s;
    struct observed o;
    struct random r;
    double ratios = 0, middles = 0, rates = 0;
    observe(series, &o);
    if (o.boots < 2)
        return complain("too few boots with two blocks");
    random_seed(&r, 3);
    for (unsigned i = 0; i < SIMULATED; i++) {
        struct interval ratio = {0}, middle = {0}, rate = {0};
        struct paired p = simulate(&o, &s, &r);
        if (paired_ratio(&p, 1, 0, 0.95, DRAWS, i, &ratio) != 0 ||
            trimmed_ratio(&p, 1, 0, 0.95, DRAWS, i, &middle) != 0 ||
            paired_rate(&p, 0, 0.95, DRAWS, i, &rate) != 0)
            return complain("a simulated run has no interval");
        ratios += holds(ratio, 1) / (double)SIMULATED;
        middles += holds(middle, 1) / (double)SIMULATED;
        rates += holds(rate, exp(s.level)) / (double)SIMULATED;
    }
    printf("the session's noise, in %d simulated runs of %d entries: processes differ by %.2f%%, "
           "slices by %.1f%%, drift %.1f%% a block, a step of %.0f%%, %.1f%% of blocks in bursts\t"
           "the 95%% interval held the truth: ratio %.1f%%, compare's ratio %.1f%% (93 to 97%% "
           "must be), "
           "rate %.1f%% (93 to 98.5%%)\n",
           SIMULATED, ENTRIES, 100 * o.process, 100 * o.slice, 100 * o.drift, 100 * o.step,
           100 * o.burst, 100 * ratios, 100 * middles, 100 * rates);
    free(o.residual);
    free(o.first);
    return are_95(ratios, middles, rates) ? PASS : FAIL;
}

/* ---- */

static int check(const char *what, const struct record_data *session, struct series *series)
{
    if (strcmp(what, "runs") == 0)
        return check_runs(session, series);
    if (strcmp(what, "coverage") == 0)
        return check_coverage(series);
    compare_leave_out_waits(series);
    struct boots boots = boots_of(series);
    int status = UNUSABLE;
    if (boots.count < 2)
        complain("the session has fewer than two boots to draw from");
    else if (strcmp(what, "chance") == 0)
        status = check_chance(&boots);
    else if (strcmp(what, "power") == 0)
        status = check_power(&boots);
    else
        complain("takes runs, chance, power or coverage");
    boots_free(&boots);
    return status;
}

int main(int argc, char **argv)
{
    struct record_data session;
    struct series series;
    struct err err;
    if (argc != 3)
        return complain("usage: resample runs|chance|power|coverage RECORD");
    if (record_read(argv[2], &session, &err) != 0)
        return complain(err.text);
    const json_t *entries = json_object_get(session.run, "entries");
    for (size_t i = 0; i < 2; i++)
        sides[i] = json_string_value(json_object_get(json_array_get(entries, i), "name"));
    if (!compare_is_of_builds(&session) || sides[0] == NULL || sides[1] == NULL) {
        record_data_free(&session);
        return complain("not the record of compare --entry");
    }
    series_read(&session, sides, 2, &series);
    int status = check(argv[1], &session, &series);
    series_free(&series);
    record_data_free(&session);
    return status;
}
