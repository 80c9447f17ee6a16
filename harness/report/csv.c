#include "report/views.h"
#include "report/text.h"

#include <math.h>
#include <string.h>

/* Quoted where it must be (RFC 4180, section 2); control characters become '?'. */
static void print_field(FILE *out, const char *text)
{
    const struct text_shown shown = text_shown(text);
    if (strpbrk(shown.text, ",\"") == NULL) {
        fputs(shown.text, out);
        return;
    }
    fputc('"', out);
    for (const char *at = shown.text; *at != '\0'; at++)
        fprintf(out, *at == '"' ? "\"\"" : "%c", *at);
    fputc('"', out);
}

static void print_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.9g", value);
    else
        fputc(',', out);
}

static void print_bool(FILE *out, bool value)
{
    fprintf(out, ",%s", value ? "true" : "false");
}

static void print_row(FILE *out, const struct row *row, const struct ranking *ranking)
{
    if (row->rank > 0)
        fprintf(out, "%u", row->rank);
    fputc(',', out);
    print_field(out, row->name);
    fputc(',', out);
    print_field(out, row->status);
    print_number(out, row->rate_per_s.value);
    print_number(out, row->rate_per_s.low);
    print_number(out, row->rate_per_s.high);
    print_number(out, row->share_of_limit.value);
    print_number(out, row->latency_p50_us);
    print_number(out, row->latency_p99_us);
    print_number(out, row->cpu_us);
    print_number(out, row->bytes_per_response);
    print_number(out, row->rss_peak_bytes);
    print_number(out, row->requests);
    print_number(out, row->errors);
    print_number(out, row->http_passed);
    print_number(out, row->http_total);
    fputc(',', out);
    print_field(out, row->verdict);
    print_number(out, row->cost[COST_SYSCALLS]);
    print_number(out, row->cost[COST_INSTRUCTIONS_USER]);
    print_number(out, row->cost[COST_INSTRUCTIONS_KERNEL]);
    print_bool(out, row->rank_tied);
    print_bool(out, ranking->provisional);
    print_bool(out, ranks_inconclusive(ranking));
    print_number(out, row->workers);
    fputc('\n', out);
}

void view_csv(FILE *out, const struct summary *summary)
{
    fputs("rank,entry,status,req_per_s,req_per_s_low,req_per_s_high,share_of_limit,"
          "latency_p50_us,latency_p99_us,cpu_us_per_req,bytes_per_response,rss_peak_bytes,"
          "requests,errors,http_passed,http_total,verdict,syscalls_per_req,"
          "instructions_user_per_req,instructions_kernel_per_req,rank_tied,rank_provisional,"
          "inconclusive,workers\n",
          out);
    for (size_t i = 0; i < summary->count; i++)
        print_row(out, &summary->rows[i], &summary->ranking);
}

void view_pairs_csv(FILE *out, const struct summary *summary)
{
    fputs("upper,lower,ratio,ratio_low,ratio_high,p,p_adjusted,outranks,boots\n", out);
    for (size_t i = 0; i < summary->ranking.pair_count; i++) {
        const struct ranks_pair *pair = &summary->ranking.pairs[i];
        print_field(out, pair->upper);
        fputc(',', out);
        print_field(out, pair->lower);
        print_number(out, pair->ratio.value);
        print_number(out, pair->ratio.low);
        print_number(out, pair->ratio.high);
        print_number(out, pair->p);
        print_number(out, pair->p_adjusted);
        print_bool(out, pair->outranks);
        print_number(out, pair->boots);
        fputc('\n', out);
    }
}
