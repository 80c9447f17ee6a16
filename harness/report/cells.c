#include "report/cells.h"
#include "base/mem.h"
#include "report/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { RANK, ENTRY, RATE, INTERVAL, SHARE, P50, P99, CPU, CALLS, BYTES, MEMORY, HTTP, VERDICT };

static void put(struct cells *cells, int column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void put(struct cells *cells, int column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cells->text[column], CELLS_SIZE, format, arguments);
    va_end(arguments);
}

/* 123456.7 as 123,457. */
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

/* Three digits or so: the parts of a sum are shown as finely as the sum. */
static int decimals(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

static void put_cpu(struct cells *cells, const struct row *row)
{
    if (!isfinite(row->cpu_us))
        return;
    int places = decimals(row->cpu_us);
    if (isfinite(row->cpu_user_us))
        put(cells, CPU, "%.*f=%.*f+%.*f", places, row->cpu_us, places, row->cpu_user_us, places,
            row->cpu_system_us);
    else
        put(cells, CPU, "%.*f", places, row->cpu_us);
}

static void put_sized(struct cells *cells, int column, double value)
{
    if (isfinite(value))
        put(cells, column, "%.*f", decimals(value), value);
}

static void put_figures(struct cells *cells, const struct row *row)
{
    char value[32];
    const struct interval *rate = &row->rate_per_s;
    if (isfinite(rate->value))
        put(cells, RATE, "%s", grouped(rate->value, value));
    if (isfinite(rate->low) && isfinite(rate->high))
        put(cells, INTERVAL, "%.1f%%", (rate->high - rate->low) / 2 / rate->value * 100);
    put_number(cells, SHARE, "%.1f", row->share_of_limit.value * 100);
    put_number(cells, P50, "%.0f", row->latency_p50_us);
    put_number(cells, P99, "%.0f", row->latency_p99_us);
    put_cpu(cells, row);
    put_sized(cells, CALLS, row->cost[COST_SYSCALLS]);
    put_number(cells, BYTES, "%.0f", row->bytes_per_response);
    put_number(cells, MEMORY, row->rss_peak_bytes < 99.95 * (1 << 20) ? "%.1f" : "%.0f",
               row->rss_peak_bytes / (1 << 20));
    if (isfinite(row->http_total))
        put(cells, HTTP, "%.0f/%.0f%s", row->http_passed, row->http_total,
            json_object_size(row->http_waivers) > 0 ? "*" : "");
}

static void put_row(struct cells *cells, const struct row *row, bool provisional)
{
    bool measured = row_is_measured(row);
    put(cells, RANK, "%s", strcmp(row->status, "reference") == 0 ? "ref" : "-");
    if (row->workers_of != NULL && measured)
        put(cells, RANK, "*%u", row->workers);
    if (row->rank > 0)
        put(cells, RANK, "%u%s", row->rank, provisional ? "?" : row->rank_tied ? "=" : "");
    text_copy(cells->text[ENTRY], CELLS_SIZE, row->name);
    put_figures(cells, row);
    text_copy(cells->text[VERDICT], CELLS_SIZE - 1, measured ? row->verdict : row->status);
    if (measured && verdict_little_broken(row))
        strcat(cells->text[VERDICT], "?");
}

void cells_of_rows(const struct summary *summary, struct cells_table *table)
{
    static const struct cells_table shape = {
        .columns = VERDICT + 1,
        .titles = {[RANK] = "rank",
                   [ENTRY] = "entry",
                   [RATE] = "req/s",
                   [INTERVAL] = "+-95%",
                   [SHARE] = "%limit",
                   [P50] = "p50 us",
                   [P99] = "p99 us",
                   [CPU] = "CPU us=usr+krn",
                   [CALLS] = "sys/req",
                   [BYTES] = "B/resp",
                   [MEMORY] = "MiB",
                   [HTTP] = "HTTP",
                   [VERDICT] = "verdict"},
        .left = {[RANK] = true, [ENTRY] = true, [VERDICT] = true},
    };
    *table = shape;
    table->count = summary->count;
    table->rows = mem_alloc(summary->count + 1, sizeof *table->rows);
    for (size_t i = 0; i < summary->count; i++)
        put_row(&table->rows[i], &summary->rows[i], summary->ranking.provisional);
}

enum { PAIR, RATIO, LOW, HIGH, P, P_ADJUSTED, CLAIM };

static void put_p(struct cells *cells, int column, double p)
{
    put(cells, column, p < 0.001 ? "%.5f" : "%.3f", p);
}

static void put_pair(struct cells *cells, const struct ranks_pair *pair)
{
    put(cells, PAIR, "%s / %s", text_shown(pair->upper).text, text_shown(pair->lower).text);
    put_number(cells, RATIO, "%.4f", pair->ratio.value);
    put_number(cells, LOW, "%.4f", pair->ratio.low);
    put_number(cells, HIGH, "%.4f", pair->ratio.high);
    put_p(cells, P, pair->p);
    put_p(cells, P_ADJUSTED, pair->p_adjusted);
    put(cells, CLAIM, "%s", pair->outranks ? "faster" : "not told apart");
}

void cells_of_pairs(const struct summary *summary, struct cells_table *table)
{
    static const struct cells_table shape = {
        .columns = CLAIM + 1,
        .titles = {[PAIR] = "pair",
                   [RATIO] = "ratio",
                   [LOW] = "95% from",
                   [HIGH] = "to",
                   [P] = "p",
                   [P_ADJUSTED] = "Holm's p",
                   [CLAIM] = "the first is"},
        .left = {[PAIR] = true, [CLAIM] = true},
    };
    const struct ranking *ranking = &summary->ranking;
    *table = shape;
    table->count = ranking->pair_count;
    table->rows = mem_alloc(ranking->pair_count + 1, sizeof *table->rows);
    for (size_t i = 0; i < ranking->pair_count; i++)
        put_pair(&table->rows[i], &ranking->pairs[i]);
}

static void print_blanks(FILE *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fputc(' ', out);
}

static void print_cell(FILE *out, const struct cells_table *table, int column, const char *text,
                       size_t width)
{
    size_t blanks = width - text_width(text);
    bool last = column == table->columns - 1;
    print_blanks(out, table->left[column] ? 0 : blanks);
    fputs(text, out);
    if (!last)
        print_blanks(out, table->left[column] ? blanks + 2 : 2);
    else
        fputc('\n', out);
}

void cells_print(FILE *out, const struct cells_table *table)
{
    size_t widths[CELLS_COLUMNS_MAX];
    for (int i = 0; i < table->columns; i++) {
        widths[i] = text_width(table->titles[i]);
        for (size_t r = 0; r < table->count; r++)
            if (text_width(table->rows[r].text[i]) > widths[i])
                widths[i] = text_width(table->rows[r].text[i]);
    }
    for (int i = 0; i < table->columns; i++)
        print_cell(out, table, i, table->titles[i], widths[i]);
    for (size_t r = 0; r < table->count; r++)
        for (int i = 0; i < table->columns; i++)
            print_cell(out, table, i, table->rows[r].text[i], widths[i]);
}

void cells_print_markdown(FILE *out, const struct cells_table *table)
{
    for (int i = 0; i < table->columns; i++)
        fprintf(out, "| %s ", table->titles[i]);
    fputs("|\n", out);
    for (int i = 0; i < table->columns; i++)
        fputs(table->left[i] ? "|---" : "|---:", out);
    fputs("|\n", out);
    for (size_t r = 0; r < table->count; r++) {
        for (int i = 0; i < table->columns; i++) {
            const char *text = table->rows[r].text[i];
            fputs("| ", out);
            text_print_markdown(out, text, strlen(text));
            fputc(' ', out);
        }
        fputs("|\n", out);
    }
}

void cells_free(struct cells_table *table)
{
    free(table->rows);
    table->rows = NULL;
}
