#include "report/views.h"
#include "base/mem.h"
#include "report/precision.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* One layout for the terminal and for Markdown: the same columns, cells as text. */
enum { RANK, ENTRY, RATE, INTERVAL, SHARE, P50, P99, CPU, BYTES, MEMORY, HTTP, VERDICT, COLUMNS };

static const char *const titles[COLUMNS] = {
    "rank",    "entry",    "req/s",  "95% interval",
    "% limit", "p50 us",   "p99 us", "CPU us/req (user+kernel)",
    "B/resp",  "peak MiB", "HTTP",   "verdict"};

struct cells {
    char text[COLUMNS][160];
};

static void put(struct cells *cells, int column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void put(struct cells *cells, int column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cells->text[column], sizeof cells->text[column], format, arguments);
    va_end(arguments);
}

/* 123456.7 as 123,457; intervals come out in one width and can be read at a glance. */
static const char *grouped(double value, char text[32])
{
    char digits[32];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%.0f", value);
    size_t used = 0;
    for (size_t i = 0; i < length && used < 30; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

static void put_number(struct cells *cells, int column, const char *format, double value)
{
    char text[64];
    if (!isfinite(value))
        return;
    snprintf(text, sizeof text, format, value);
    put(cells, column, "%s", text);
}

static void fill_figures(struct cells *cells, const struct row *row)
{
    char low[32];
    char high[32];
    char value[32];
    if (isfinite(row->rate_per_s.value))
        put(cells, RATE, "%s", grouped(row->rate_per_s.value, value));
    if (isfinite(row->rate_per_s.low) && isfinite(row->rate_per_s.high))
        put(cells, INTERVAL, "%s..%s (+-%.1f%%)", grouped(row->rate_per_s.low, low),
            grouped(row->rate_per_s.high, high),
            (row->rate_per_s.high - row->rate_per_s.low) / 2 / row->rate_per_s.value * 100);
    put_number(cells, SHARE, "%.1f", row->share_of_limit.value * 100);
    put_number(cells, P50, "%.0f", row->latency_p50_us);
    put_number(cells, P99, "%.0f", row->latency_p99_us);
    if (isfinite(row->cpu_user_us))
        put(cells, CPU, "%.2f (%.2f+%.2f)", row->cpu_us, row->cpu_user_us, row->cpu_system_us);
    else
        put_number(cells, CPU, "%.2f", row->cpu_us);
    put_number(cells, BYTES, "%.0f", row->bytes_per_response);
    put_number(cells, MEMORY, "%.1f", row->rss_peak_bytes / (1 << 20));
    if (isfinite(row->http_total))
        put(cells, HTTP, "%.0f/%.0f%s", row->http_passed, row->http_total,
            json_object_size(row->http_waivers) > 0 ? "*" : "");
}

static void fill(struct cells *cells, const struct row *row)
{
    memset(cells, 0, sizeof *cells);
    put(cells, RANK, "%s", "-");
    if (row->rank > 0)
        put(cells, RANK, "%u", row->rank);
    put(cells, ENTRY, "%s", row->name);
    fill_figures(cells, row);
    if (strcmp(row->status, "ranked") != 0 && strcmp(row->status, "reference") != 0)
        put(cells, VERDICT, "%s", row->status);
    else if (strcmp(row->status, "reference") == 0)
        put(cells, VERDICT, "%s, reference", row->verdict);
    else
        put(cells, VERDICT, "%s", row->verdict);
}

static bool is_left(int column)
{
    return column == ENTRY || column == VERDICT;
}

static void print_line(FILE *out, const char *const texts[COLUMNS], const size_t widths[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++) {
        int width = (int)widths[i];
        if (i == COLUMNS - 1)
            fprintf(out, "%s\n", texts[i]);
        else
            fprintf(out, is_left(i) ? "%-*s  " : "%*s  ", width, texts[i]);
    }
}

static void print_rows(FILE *out, const struct summary *summary)
{
    struct cells *cells = mem_alloc(summary->count + 1, sizeof *cells);
    size_t widths[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        widths[i] = strlen(titles[i]);
    for (size_t r = 0; r < summary->count; r++) {
        fill(&cells[r], &summary->rows[r]);
        for (int i = 0; i < COLUMNS; i++)
            if (strlen(cells[r].text[i]) > widths[i])
                widths[i] = strlen(cells[r].text[i]);
    }
    print_line(out, titles, widths);
    for (size_t r = 0; r < summary->count; r++) {
        const char *texts[COLUMNS];
        for (int i = 0; i < COLUMNS; i++)
            texts[i] = cells[r].text[i];
        print_line(out, texts, widths);
    }
    free(cells);
}

static const char *plan_text(const struct record_data *data, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(data->run, "plan"), key));
    return text != NULL ? text : "";
}

static long long plan_number(const struct record_data *data, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(data->run, "plan"), key));
}

static void print_head(FILE *out, const struct record_data *data, const struct summary *summary)
{
    const json_t *machine = json_object_get(data->run, "machine");
    const char *cpu = json_string_value(json_object_get(machine, "cpu_model"));
    const char *kernel = json_string_value(json_object_get(machine, "kernel"));
    fprintf(out, "%s: %s; %lld connections\n", plan_text(data, "workload"),
            plan_text(data, "summary"), plan_number(data, "connections"));
    fprintf(out, "%u boots, %u blocks of %.3g s slices, seed %lld; %s, %s\n", summary->boots,
            summary->blocks, (double)plan_number(data, "slice_ns") / 1e9, plan_number(data, "seed"),
            cpu != NULL ? cpu : "unknown CPU", kernel != NULL ? kernel : "unknown kernel");
}

/* Text of a server's or of a foreign record: what would drive the terminal is shown as '?'. */
static void print_plain(FILE *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        fputc((byte < ' ' && byte != '\t') || byte == 0x7f ? '?' : byte, out);
    }
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
        print_plain(out, from, (size_t)(end - from < 200 ? end - from : 200));
        fputc('\n', out);
    }
}

static void print_doubts(FILE *out, const struct record_data *data, const struct summary *summary)
{
    if (json_is_true(json_object_get(json_object_get(data->run, "plan"), "one_cpu")))
        fputs("Not ranked: server and load generator shared one CPU. Give the run two.\n", out);
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
        fprintf(out,
                "%u slices were spoilt, the load generator's core having been taken; they were "
                "repeated.\n",
                spoilt);
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        if (row->unsteady)
            fprintf(out, "%s: still warming up when its slices began in at least one boot.\n",
                    row->name);
        if (row->idle_cpu > 0.01)
            fprintf(out, "%s: used %.1f%% of a core while it should have been idle.\n", row->name,
                    row->idle_cpu * 100);
    }
}

static void print_waivers(FILE *out, const struct summary *summary)
{
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        const char *id;
        json_t *reason;
        json_object_foreach((json_t *)(uintptr_t)row->http_waivers, id, reason)
            fprintf(out, "* %s falls short of %s by waiver: %s\n", row->name, id,
                    json_string_value(reason));
    }
}

static void print_foot(FILE *out, const struct record_data *data, const struct summary *summary)
{
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        if (row->reason[0] == '\0')
            continue;
        fprintf(out, "%s %s: ", row->name, row->status);
        print_plain(out, row->reason, strlen(row->reason));
        fputc('\n', out);
        print_output(out, "    ", row->output);
    }
    print_waivers(out, summary);
    if (summary->limit != NULL)
        fprintf(out,
                "%% limit: of %s, the faster reference: a canned reply without HTTP parsing.\n",
                summary->limit);
    fputs(
        "HTTP: cases of the contract passed (docs/CONTRACT.md); an entry that fails one that gates "
        "is not ranked.\n",
        out);
    fputs("Latency is closed-loop and raw. verdict: what limited the row (server, hammer, "
          "neighbours, waiting, errors).\n",
          out);
    print_doubts(out, data, summary);
    char *precision = precision_sentence(summary->end);
    if (precision != NULL)
        fprintf(out, "%s\n", precision);
    free(precision);
    if (!summary->complete)
        fputs(summary->interrupted ? "Interrupted: this is what was measured until then.\n"
                                   : "The run did not end: this is what was measured.\n",
              out);
}

void view_table(FILE *out, const struct record_data *data, const struct summary *summary)
{
    print_head(out, data, summary);
    fputc('\n', out);
    print_rows(out, summary);
    fputc('\n', out);
    print_foot(out, data, summary);
}

void view_markdown(FILE *out, const struct record_data *data, const struct summary *summary)
{
    print_head(out, data, summary);
    fputc('\n', out);
    for (int i = 0; i < COLUMNS; i++)
        fprintf(out, "| %s ", titles[i]);
    fputs("|\n", out);
    for (int i = 0; i < COLUMNS; i++)
        fputs(is_left(i) ? "|---" : "|---:", out);
    fputs("|\n", out);
    for (size_t r = 0; r < summary->count; r++) {
        struct cells cells;
        fill(&cells, &summary->rows[r]);
        for (int i = 0; i < COLUMNS; i++)
            fprintf(out, "| %s ", cells.text[i]);
        fputs("|\n", out);
    }
    fputc('\n', out);
    print_foot(out, data, summary);
}

static void csv_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.9g", value);
    else
        fputc(',', out);
}

void view_csv(FILE *out, const struct summary *summary)
{
    fputs("rank,entry,status,req_per_s,req_per_s_low,req_per_s_high,share_of_limit,"
          "latency_p50_us,latency_p99_us,cpu_us_per_req,bytes_per_response,rss_peak_bytes,"
          "requests,errors,http_passed,http_total,verdict\n",
          out);
    for (size_t i = 0; i < summary->count; i++) {
        const struct row *row = &summary->rows[i];
        if (row->rank > 0)
            fprintf(out, "%u", row->rank);
        fprintf(out, ",%s,%s", row->name, row->status);
        csv_number(out, row->rate_per_s.value);
        csv_number(out, row->rate_per_s.low);
        csv_number(out, row->rate_per_s.high);
        csv_number(out, row->share_of_limit.value);
        csv_number(out, row->latency_p50_us);
        csv_number(out, row->latency_p99_us);
        csv_number(out, row->cpu_us);
        csv_number(out, row->bytes_per_response);
        csv_number(out, row->rss_peak_bytes);
        csv_number(out, row->requests);
        csv_number(out, row->errors);
        csv_number(out, row->http_passed);
        csv_number(out, row->http_total);
        fprintf(out, ",%s\n", row->verdict);
    }
}
