#include "report/views.h"
#include "report/cells.h"
#include "report/doubts.h"
#include "report/text.h"
#include "stats/signflip.h"
#include "base/mem.h"
#include "report/precision.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *plan_text(const struct record_data *data, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(data->run, "plan"), key));
    return text != NULL ? text : "";
}

static long long plan_number(const struct record_data *data, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(data->run, "plan"), key));
}

/* A run whose twin differs has no table one could rely on, and says so before anything else. */
static void print_inconclusive(FILE *out, const struct twin *twin)
{
    const char *entry = twin->entry;
    double apart = fabs(log(twin->ratio.value));
    fprintf(out,
            "INCONCLUSIVE: %s, measured twice as if it were two entries, differs from itself by "
            "%.1f%% (p %.3f).\nWhatever did that may be in every other row: measure again, longer, "
            "or where it is quieter.\n",
            text_shown(entry).text, (exp(apart) - 1) * 100, twin->p);
}

static void print_head(FILE *out, const struct record_data *data, const struct summary *summary)
{
    const json_t *machine = json_object_get(data->run, "machine");
    const char *cpu = json_string_value(json_object_get(machine, "cpu_model"));
    const char *kernel = json_string_value(json_object_get(machine, "kernel"));
    const char *started = json_string_value(json_object_get(data->run, "started"));
    fprintf(out, "%s: %s; %lld connections%s%s\n", text_shown(plan_text(data, "workload")).text,
            text_shown(plan_text(data, "summary")).text, plan_number(data, "connections"),
            started != NULL ? "; " : "", text_shown(started != NULL ? started : "").text);
    fprintf(out, "%s, %s of %.3g s slices, seed %lld; %s, %s\n",
            text_count(summary->boots, "boot").text, text_count(summary->blocks, "block").text,
            (double)plan_number(data, "slice_ns") / 1e9, plan_number(data, "seed"),
            text_shown(cpu != NULL ? cpu : "unknown CPU").text,
            text_shown(kernel != NULL ? kernel : "unknown kernel").text);
}

/* The last lines of an output, indented, so that a row can be understood without the record. */
static void print_output(FILE *out, const char *indent, const char *output)
{
    size_t length = strlen(output);
    while (length > 0 && output[length - 1] == '\n')
        length--;
    const char *from = output + length;
    for (int lines = 0; from > output && lines < 5; from--)
        if (from[-1] == '\n' && ++lines == 5)
            break;
    for (const char *end; from < output + length; from = end + 1) {
        end = memchr(from, '\n', (size_t)(output + length - from));
        if (end == NULL)
            end = output + length;
        fprintf(out, "%s| ", indent);
        text_print(out, from, (size_t)(end - from < 200 ? end - from : 200), "\t");
        fputc('\n', out);
    }
}

static void print_doubts(FILE *out, const struct record_data *data, const struct summary *summary)
{
    if (json_is_true(json_object_get(json_object_get(data->run, "plan"), "one_cpu")))
        fputs("Not ranked: server and load generator shared one CPU. Give the run two.\n", out);
    if (plan_number(data, "burn_ns") > 0)
        fprintf(out,
                "--hammer-burn: the load generator spun %lld ns before each request, on purpose.\n",
                plan_number(data, "burn_ns"));
    if (json_is_true(json_object_get(json_object_get(data->run, "plan"), "smt_siblings")))
        fputs("Server and load generator ran on two hyperthreads of one core: there was no "
              "other choice.\n",
              out);
    if (summary->boots == 1)
        fputs("One boot: the intervals cover no difference between two processes of one "
              "server.\n",
              out);
    unsigned spoilt = 0;
    for (size_t i = 0; i < summary->count; i++)
        spoilt += summary->rows[i].spoilt;
    if (spoilt > 0)
        fprintf(out, "%s spoilt, the load generator's core having been taken, and repeated.\n",
                text_count(spoilt, "slice").text);
    if (summary->repeated > 0)
        fprintf(out, "%s of the record came twice and counted once.\n",
                text_count(summary->repeated, "line").text);
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        if (row->idle_cpu > 0.01)
            fprintf(out, "%s: used %.1f%% of a core while it should have been idle.\n",
                    text_shown(row->name).text, row->idle_cpu * 100);
    }
}

/* Nothing is hidden: what there is and was not asked for. */
static void print_left_out(FILE *out, const struct record_data *data)
{
    size_t i;
    const json_t *name;
    const json_t *names = json_object_get(data->run, "left_out");
    if (json_array_size(names) == 0)
        return;
    fputs("Not measured, being of the extra set:", out);
    json_array_foreach(names, i, name)
    {
        const char *text = json_is_string(name) ? json_string_value(name) : "";
        fprintf(out, "%s %s", i > 0 ? "," : "", text_shown(text).text);
    }
    fputs(". make showdown ENTRIES=all takes them in.\n", out);
}

static void print_waivers(FILE *out, const struct summary *summary)
{
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        const char *id;
        json_t *item;
        json_object_foreach((json_t *)(uintptr_t)row->http_waivers, id, item)
        {
            const char *reason = json_is_string(item) ? json_string_value(item) : "";
            fprintf(out, "* %s falls short of %s by waiver: ", text_shown(row->name).text,
                    text_shown(id).text);
            text_print(out, reason, strlen(reason), "");
            fputc('\n', out);
        }
    }
}

static void print_failures(FILE *out, const struct summary *summary)
{
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        if (row->reason[0] == '\0')
            continue;
        fprintf(out, "%s %s: ", text_shown(row->name).text, text_shown(row->status).text);
        text_print(out, row->reason, strlen(row->reason), "");
        fputc('\n', out);
        print_output(out, "    ", row->output);
    }
}

/* What a rank claims, and where it claims nothing. */
static void print_ranks(FILE *out, const struct summary *summary)
{
    const struct ranking *ranking = &summary->ranking;
    if (ranking->pair_count == 0 || summary->rows[0].rank == 0)
        return;
    const struct text_shown pairs = text_count(ranking->pair_count, "pair");
    const struct text_shown boots = text_count(ranking->boots, "boot");
    if (ranking->provisional) {
        fprintf(
            out,
            "rank: by req/s alone, and provisional (?): %s can't tell %s apart, %u boots could.\n",
            boots.text, pairs.text, ranking->boots_needed);
        return;
    }
    fprintf(
        out,
        "rank: 1 and as many as were shown to be faster; = shares it. Shown: more than %.1f%%%s, "
        "at p < 0.05\nover %s (sign flips of %s, Holm's correction): report --pairs.\n",
        ranking->delta * 100, ranking->delta > RANKS_DELTA_MIN ? " (what the twin showed)" : "",
        pairs.text, boots.text);
    for (size_t i = 0; i < summary->count; i++)
        if (summary->rows[i].rank > 0 && verdict_holds(&summary->rows[i], VERDICT_HAMMER))
            fprintf(out, "%s: the load generator was its limit, so none is ranked above it.\n",
                    text_shown(summary->rows[i].name).text);
}

/* The A/A line: whenever there was a twin, also if nothing came of it. */
static void print_twin(FILE *out, const struct ranking *ranking)
{
    const struct twin *twin = &ranking->twin;
    if (twin->entry == NULL)
        return;
    fprintf(out, "A/A: %s, measured twice: ", text_shown(twin->entry).text);
    if (twin->reason[0] != '\0') {
        fputs("no comparison: ", out);
        text_print(out, twin->reason, strlen(twin->reason), "");
        fputc('\n', out);
        return;
    }
    fprintf(out, "twin/entry %.4f", twin->ratio.value);
    if (isfinite(twin->ratio.low) && isfinite(twin->ratio.high))
        fprintf(out, " (95%%: %.4f to %.4f)", twin->ratio.low, twin->ratio.high);
    fprintf(out, ", p %.3f: %s.\n", twin->p,
            twin->differs                               ? "it differs from itself"
            : signflip_p_min(twin->boots) < RANKS_ALPHA ? "no more than chance allows"
                                                        : "too few boots to find a difference");
}

/* Names of the ranked rows above the limit, which is a server and no law. */
static void print_limit(FILE *out, const struct summary *summary)
{
    if (summary->limit == NULL)
        return;
    fprintf(out,
            "%%limit: of %s, the faster reference. ref: a canned reply, no HTTP parsing; fails "
            "HTTP cases by design.\n",
            text_shown(summary->limit).text);
    bool any = false;
    for (size_t i = 0; i < summary->count; i++) {
        if (summary->rows[i].rank == 0 || summary->rows[i].share_of_limit.value <= 1)
            continue;
        fprintf(out, "%s%s",
                any ? ", " : "Over 100% of the limit: ", text_shown(summary->rows[i].name).text);
        any = true;
    }
    if (any)
        fputs(". A reference is a server too, no bound: it may have had less luck, or met the "
              "hammer's limit.\n",
              out);
}

static bool was_quick(const struct record_data *data)
{
    size_t index;
    json_t *argument;
    json_array_foreach(json_object_get(data->run, "argv"), index,
                       argument) if (json_is_string(argument) &&
                                     strcmp(json_string_value(argument), "--quick") ==
                                         0) return true;
    return false;
}

static void print_legend(FILE *out, const struct record_data *data, const struct summary *summary)
{
    fputs("HTTP: cases of the contract passed, of those tried (docs/CONTRACT.md); one that gates "
          "and fails: not ranked.\n",
          out);
    if (was_quick(data))
        fputs("A quick run tries only the cases that gate, so its totals are lower than a full "
              "run's.\n",
              out);
    bool counted = false;
    for (size_t i = 0; i < summary->count; i++)
        counted |= isfinite(summary->rows[i].cost[COST_SYSCALLS]);
    fprintf(out,
            "+-95%%: half the interval of req/s. CPU us: server's CPU time a request, "
            "user+kernel.%s\n",
            counted ? " sys/req: system calls." : "");
    fputs("Latency is closed-loop and raw. verdict: what limited the row:\n", out);
    verdict_explain(out, summary);
}

static void print_foot(FILE *out, const struct record_data *data, const struct summary *summary)
{
    print_failures(out, summary);
    print_waivers(out, summary);
    print_left_out(out, data);
    print_ranks(out, summary);
    workers_print(out, summary);
    print_twin(out, &summary->ranking);
    print_limit(out, summary);
    print_legend(out, data, summary);
    print_doubts(out, data, summary);
    char *precision = precision_sentence(summary->end);
    if (precision != NULL)
        fprintf(out, "%s\n", precision);
    free(precision);
    doubts_print(out, json_object_get(data->run, "machine"));
    if (!summary->complete)
        fputs(summary->interrupted ? "Interrupted: this is what was measured until then.\n"
                                   : "The run did not end: this is what was measured.\n",
              out);
}

/* What was printed into memory, by the line: `print` gets each without its newline. */
static void print_lines(FILE *out, const char *text, void (*print)(FILE *, const char *, size_t))
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        print(out, text, length);
        fputc('\n', out);
        text += length + (text[length] == '\n');
    }
}

static void print_plain_line(FILE *out, const char *line, size_t length)
{
    text_print(out, line, length, "\t");
}

/* An item of a list each; lines of a server's output belong to the item before them. */
static void print_markdown_item(FILE *out, const char *line, size_t length)
{
    size_t indent = strspn(line, " ");
    fputs(indent > 0 ? "  - " : "- ", out);
    text_print_markdown(out, line + indent, length - indent);
}

static void print_markdown_line(FILE *out, const char *line, size_t length)
{
    text_print_markdown(out, line, length);
    fputs("  ", out);
}

typedef void view_part(FILE *out, const struct record_data *data, const struct summary *summary);

/* Names and texts come from the record, which may be a foreign one: no part reaches `out` but by
 * way of `print`, which lets no control character through. */
static void print_part(FILE *out, const struct record_data *data, const struct summary *summary,
                       view_part *part, void (*print)(FILE *, const char *, size_t))
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL)
        return;
    part(memory, data, summary);
    fclose(memory);
    print_lines(out, text, print);
    free(text);
}

static void print_title(FILE *out, const struct record_data *data, const struct summary *summary)
{
    if (ranks_inconclusive(&summary->ranking))
        print_inconclusive(out, &summary->ranking.twin);
    print_head(out, data, summary);
}

void view_table(FILE *out, const struct record_data *data, const struct summary *summary)
{
    struct cells_table table;
    print_part(out, data, summary, print_title, print_plain_line);
    fputc('\n', out);
    cells_of_rows(summary, &table);
    cells_print(out, &table);
    cells_free(&table);
    fputc('\n', out);
    print_part(out, data, summary, print_foot, print_plain_line);
}

void view_markdown(FILE *out, const struct record_data *data, const struct summary *summary)
{
    struct cells_table table;
    if (ranks_inconclusive(&summary->ranking))
        fputs("## INCONCLUSIVE\n\n", out);
    print_part(out, data, summary, print_title, print_markdown_line);
    fputc('\n', out);
    cells_of_rows(summary, &table);
    cells_print_markdown(out, &table);
    cells_free(&table);
    fputc('\n', out);
    print_part(out, data, summary, print_foot, print_markdown_item);
}

void view_pairs(FILE *out, const struct summary *summary, bool markdown)
{
    struct cells_table table;
    cells_of_pairs(summary, &table);
    fputc('\n', out);
    if (table.count == 0)
        fputs("No pairs: fewer than two entries are ranked.\n", out);
    else if (markdown)
        cells_print_markdown(out, &table);
    else
        cells_print(out, &table);
    cells_free(&table);
}
