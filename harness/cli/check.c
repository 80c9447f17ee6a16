#include "cli/cli.h"
#include "base/clock.h"
#include "base/mem.h"
#include "entry/entry.h"
#include "judge/judge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char usage[] =
    "usage: showdown check [ENTRY…] [FLAG…]\n"
    "       showdown check --url http://127.0.0.1:PORT [FLAG…]\n"
    "       showdown check --list [--format json|markdown]\n"
    "Holds each entry (all, if none is named), or any server at a URL, against the contract: the\n"
    "pages in tests/contract/. Prints what falls short: what was sent, what was expected and why,\n"
    "what came. Cases that gate decide whether an entry is ranked; the others are a score.\n"
    "  --url URL      a server that runs already, its content as it may be\n"
    "  --case ID      only this case; may be given again\n"
    "  --gate-only    only the cases that gate\n"
    "  --slow         the slow cases as well (over a minute)\n"
    "  --seed N       of all that is random, 0 to 4294967295 (default: random, printed)\n"
    "  --format NAME  text, tap, json (default: text)\n"
    "  --list         the cases there are\n"
    "Exit status: 0 fine, 1 a gating case failed, 2 usage, 130 interrupted.\n"
    "example: showdown check libuv --case E02\n";

enum format { FORMAT_TEXT, FORMAT_TAP, FORMAT_JSON, FORMAT_MARKDOWN };

struct flags {
    const char *url;
    const char **cases;
    size_t case_count;
    bool slow, gate_only, list;
    uint64_t seed;
    enum format format;
};

/* ---- flags */

static int take_format(struct flags *flags, const char *text)
{
    static const char *const names[] = {"text", "tap", "json", "markdown"};
    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) {
            flags->format = (enum format)i;
            return 0;
        }
    cli_usage("check", "--format takes text, tap or json, not '%s'", text);
    return -1;
}

static int take_flag(struct flags *flags, int option)
{
    switch (option) {
    case 'u':
        flags->url = optarg;
        return 0;
    case 'c':
        flags->cases = mem_grow(flags->cases, flags->case_count + 1, sizeof *flags->cases);
        flags->cases[flags->case_count++] = optarg;
        return 0;
    case 'g':
        flags->gate_only = true;
        return 0;
    case 's':
        flags->slow = true;
        return 0;
    case 'l':
        flags->list = true;
        return 0;
    case 'f':
        return take_format(flags, optarg);
    case 'n':
        return cli_parse_number("check", "--seed", optarg, 0, UINT32_MAX, &flags->seed);
    default:
        return -1;
    }
}

static const struct option long_options[] = {{"url", required_argument, NULL, 'u'},
                                             {"case", required_argument, NULL, 'c'},
                                             {"gate-only", no_argument, NULL, 'g'},
                                             {"slow", no_argument, NULL, 's'},
                                             {"list", no_argument, NULL, 'l'},
                                             {"format", required_argument, NULL, 'f'},
                                             {"seed", required_argument, NULL, 'n'},
                                             {"help", no_argument, NULL, 'h'},
                                             {0}};

/* "http://HOST[:PORT][/]" to an address. IPv4: the contract's servers listen there. */
static int read_url(const char *url, struct sockaddr_in *address)
{
    char host[256];
    unsigned port = 80;
    char rest[2] = "";
    int read = sscanf(url, "http://%255[^:/]:%5u%1s", host, &port, rest);
    if (read < 2)
        read = sscanf(url, "http://%255[^:/]%1s", host, rest);
    if (read < 1 || port == 0 || port > 65535 || (rest[0] != '\0' && strcmp(rest, "/") != 0))
        return cli_usage("check", "--url takes http://127.0.0.1:PORT, not '%s'", url);
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int failed = getaddrinfo(host, NULL, &hints, &found);
    if (failed != 0)
        return cli_usage("check", "--url %s: %s", url, gai_strerror(failed));
    memcpy(address, found->ai_addr, sizeof *address);
    address->sin_port = htons((uint16_t)port);
    freeaddrinfo(found);
    return 0;
}

/* ---- text */

/* Bytes with a line for each that was sent or came, indented under their title. */
static void print_bytes(const char *title, const char *bytes)
{
    printf("    %-9s ", title);
    for (const char *at = bytes; *at != '\0';) {
        const char *end = strstr(at, "\\r\\n");
        size_t size = end != NULL ? (size_t)(end - at) + 4 : strlen(at);
        printf("%.*s\n", (int)size, at);
        at += size;
        if (*at != '\0')
            fputs("              ", stdout);
    }
    if (*bytes == '\0')
        putchar('\n');
}

static void print_result(const struct judge_result *r)
{
    static const char *const names[] = {"passed", "note", "waived", "FAILED", "skipped"};
    const struct page *page = r->page;
    printf("  %s %s  %s%s  %s\n", page->id, names[r->verdict], page_level_name(page->level),
           page->gate ? ", gates" : "", page->title);
    if (r->verdict == JUDGE_SKIPPED)
        return;
    if (r->variant != NULL && strcmp(r->variant, page->title) != 0)
        printf("    %-9s %s\n", "variant", r->variant);
    if (r->waiver != NULL)
        printf("    %-9s %s\n", "waiver", r->waiver);
    if (r->outcome.sent == NULL) {
        if (r->outcome.problem != NULL)
            printf("    %-9s %s\n", "so", r->outcome.problem);
        return;
    }
    print_bytes("sent", r->outcome.sent);
    printf("    %-9s %s\n", "expected", r->outcome.expected);
    printf("    %-9s %s: %s\n", "why", page->source, page->why);
    print_bytes("came", r->outcome.came);
    printf("    %-9s %s\n", "so", r->outcome.problem);
}

static void print_skipped(const struct judge_report *report)
{
    unsigned skipped = 0;
    for (size_t i = 0; i < report->count; i++)
        if (report->results[i].verdict == JUDGE_SKIPPED)
            printf(skipped++ == 0 ? "  not tried: %s" : ", %s", report->results[i].page->id);
    if (skipped > 0)
        puts(cli_stop ? " (interrupted)" : " (they need the server's process)");
}

static void print_text(const char *name, const struct judge_report *report, double seconds)
{
    printf("%s: HTTP %u/%u", name, report->passed, report->total);
    if (report->gate_failed > 0)
        printf(", %u that gate failed", report->gate_failed);
    if (report->waived > 0)
        printf(", %u waived", report->waived);
    printf("  (%.1f s)\n", seconds);
    for (size_t i = 0; i < report->count; i++) {
        const struct judge_result *r = &report->results[i];
        bool needless = r->verdict <= JUDGE_NOTED && r->waiver != NULL;
        if (r->verdict == JUDGE_FAILED || r->verdict == JUDGE_WAIVED || r->verdict == JUDGE_NOTED)
            print_result(r);
        if (needless)
            printf("  %s passes: its waiver is not needed\n", r->page->id);
    }
    print_skipped(report);
}

/* ---- TAP */

static unsigned tap_count;

static void print_tap(const char *name, const struct judge_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct judge_result *r = &report->results[i];
        bool right = r->verdict != JUDGE_FAILED && r->verdict != JUDGE_WAIVED;
        printf("%sok %u - %s %s %s%s", right ? "" : "not ", ++tap_count, name, r->page->id,
               r->page->title, r->page->gate ? " (gates)" : "");
        if (r->verdict == JUDGE_SKIPPED)
            printf(" # skip %s", cli_stop ? "interrupted" : "needs the server's process");
        else if (r->verdict == JUDGE_WAIVED)
            printf(" # todo waived: %s", r->waiver);
        else if (!right && !r->page->gate)
            printf(" # todo does not gate");
        else if (right && r->waiver != NULL)
            printf(" (passes: its waiver is not needed)");
        putchar('\n');
        if (r->outcome.sent != NULL)
            printf("#   sent: %s\n#   expected: %s (%s)\n#   came: %s\n#   %s\n", r->outcome.sent,
                   r->outcome.expected, r->page->source, r->outcome.came, r->outcome.problem);
    }
}

/* ---- JSON */

static json_t *result_to_json(const struct judge_result *r)
{
    static const char *const names[] = {"passed", "noted", "waived", "failed", "skipped"};
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:s}", "id", r->page->id, "title", r->page->title,
                  "level", page_level_name(r->page->level), "source", r->page->source, "gate",
                  r->page->gate, "verdict", names[r->verdict]);
    const struct {
        const char *key, *text;
    } texts[] = {{"variant", r->variant},
                 {"waiver", r->waiver},
                 {"sent", r->outcome.sent},
                 {"expected", r->outcome.expected},
                 {"came", r->outcome.came},
                 {"problem", r->outcome.problem},
                 {"why", r->outcome.sent != NULL ? r->page->why : NULL}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].text != NULL)
            json_object_set_new(object, texts[i].key, json_string(texts[i].text));
    return object;
}

static json_t *report_to_json(const char *name, const struct judge_report *report, double seconds)
{
    json_t *cases = json_array();
    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(cases, result_to_json(&report->results[i]));
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:f, s:o}", "name", name, "passed",
                     (int)report->passed, "total", (int)report->total, "gate_failed",
                     (int)report->gate_failed, "waived", (int)report->waived, "seconds", seconds,
                     "cases", cases);
}

/* ---- the command */

struct output {
    enum format format;
    json_t *subjects; /* JSON only */
    bool failed;
};

static void begin_output(struct output *out, const struct flags *flags)
{
    *out = (struct output){.format = flags->format};
    if (flags->format == FORMAT_JSON)
        out->subjects = json_array();
    else
        printf("%sseed %llu\n", flags->format == FORMAT_TAP ? "# " : "",
               (unsigned long long)flags->seed);
}

static void put_report(struct output *out, const char *name, const struct judge_report *report,
                       uint64_t began_ns)
{
    double seconds = (double)(clock_now_ns() - began_ns) / 1e9;
    out->failed = out->failed || report->gate_failed > 0;
    if (out->format == FORMAT_JSON)
        json_array_append_new(out->subjects, report_to_json(name, report, seconds));
    else if (out->format == FORMAT_TAP)
        print_tap(name, report);
    else
        print_text(name, report, seconds);
    fflush(stdout);
}

static void put_missing(struct output *out, const char *name, const char *reason, bool failed)
{
    out->failed = out->failed || failed;
    if (out->format == FORMAT_JSON)
        json_array_append_new(out->subjects, json_pack("{s:s, s:s}", "name", name,
                                                       failed ? "error" : "skipped", reason));
    else if (out->format == FORMAT_TAP)
        printf("%sok %u - %s%s%s\n", failed ? "not " : "", ++tap_count, name,
               failed ? ": " : " # skip ", reason);
    else
        printf("%s: %s: %s\n", name, failed ? "not judged" : "skipped", reason);
}

static int end_output(struct output *out, const struct flags *flags)
{
    if (out->format == FORMAT_JSON) {
        json_t *all = json_pack("{s:i, s:I, s:o}", "schema", 1, "seed", (json_int_t)flags->seed,
                                "subjects", out->subjects);
        json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(4));
        putchar('\n');
        json_decref(all);
    } else if (out->format == FORMAT_TAP) {
        printf("1..%u\n", tap_count);
    }
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE)
        return cli_fail(CLI_FAILED, "cannot write the report: %s", strerror(errno));
    return cli_stop ? CLI_INTERRUPTED : out->failed ? CLI_FAILED : CLI_OK;
}

static int check_url(const struct flags *flags, const struct judge_options *options)
{
    struct err err;
    struct sockaddr_in address;
    struct judge_report report;
    struct output out;
    int status = read_url(flags->url, &address);
    if (status != 0)
        return status;
    uint64_t began_ns = clock_now_ns();
    status = judge_address(options, &address, &report, &err);
    if (status != 0)
        return status == -EINVAL ? cli_usage("check", "%s", err.text)
                                 : cli_fail(CLI_FAILED, "%s", err.text);
    begin_output(&out, flags);
    put_report(&out, flags->url, &report, began_ns);
    judge_report_free(&report);
    return end_output(&out, flags);
}

static int check_entry(const struct judge_options *options, const struct entry *entry, bool named,
                       struct output *out)
{
    struct err err;
    struct judge_report report;
    if (entry->status == ENTRY_BROKEN || !entry->ready) {
        put_missing(out, entry->name,
                    entry->status == ENTRY_BROKEN ? entry->status_reason : entry->missing, named);
        return 0;
    }
    uint64_t began_ns = clock_now_ns();
    int status = judge_entry(options, entry, &report, &err);
    if (status == -EINVAL)
        return cli_usage("check", "%s", err.text);
    if (status != 0 && cli_stop)
        return 0;
    if (status != 0) {
        put_missing(out, entry->name, err.text, status != -ENOTSUP || named);
        return 0;
    }
    put_report(out, entry->name, &report, began_ns);
    judge_report_free(&report);
    return 0;
}

/* All entries but the references, which do not parse HTTP and say so, or those named. */
static int check_entries(const struct flags *flags, const struct judge_options *options,
                         const struct entry_list *list, char **names, int count)
{
    struct err err;
    struct output out;
    for (int i = 0; i < count; i++)
        if (entry_find(list, names[i], &err) == NULL)
            return cli_usage("check", "%s", err.text);
    begin_output(&out, flags);
    int status = 0;
    for (size_t i = 0; count == 0 && i < list->count && status == 0 && !cli_stop; i++)
        if (list->items[i].status != ENTRY_REFERENCE)
            status = check_entry(options, &list->items[i], false, &out);
    for (int i = 0; i < count && status == 0 && !cli_stop; i++)
        status = check_entry(options, entry_find(list, names[i], &err), true, &out);
    int ended = end_output(&out, flags);
    return status != 0 ? status : ended;
}

static int list_cases(const struct page_list *pages, enum format format)
{
    json_t *cases = json_array();
    if (format == FORMAT_MARKDOWN)
        puts("| case | level | gates | source | rule |\n|---|---|---|---|---|");
    for (size_t i = 0; i < pages->count; i++) {
        const struct page *p = &pages->items[i];
        const char *gates = !p->gate ? "" : p->slow ? "slow" : "yes";
        const char *level = page_level_name(p->level);
        if (format == FORMAT_JSON)
            json_array_append_new(cases, json_pack("{s:s, s:s, s:b, s:b, s:s, s:s}", "id", p->id,
                                                   "level", level, "gate", p->gate, "slow", p->slow,
                                                   "source", p->source, "title", p->title));
        else if (format == FORMAT_MARKDOWN)
            printf("| [%s](../tests/contract/%s.md) | %s | %s | %s | %s |\n", p->id, p->id, level,
                   gates, p->source, p->title);
        else
            printf("%s  %-6s  %-4s  %-24s  %s\n", p->id, level, gates, p->source, p->title);
    }
    if (format == FORMAT_JSON) {
        json_dumpf(cases, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(cases);
    return CLI_OK;
}

static int check(const struct cli *cli, const struct flags *flags, const struct page_list *pages,
                 char **names, int count)
{
    struct err err;
    const struct judge_options options = {.pages = pages,
                                          .cases = flags->cases,
                                          .case_count = flags->case_count,
                                          .slow = flags->slow,
                                          .gate_only = flags->gate_only,
                                          .seed = flags->seed,
                                          .stop = &cli_stop};
    if (flags->list)
        return list_cases(pages, flags->format);
    if (flags->format == FORMAT_MARKDOWN)
        return cli_usage("check", "--format markdown goes with --list");
    cli_catch_stop();
    judge_raise_files();
    if (flags->url != NULL)
        return count > 0 ? cli_usage("check", "--url and an entry: one at a time")
                         : check_url(flags, &options);
    struct entry_list list;
    if (cli_read_entries(cli, &list, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    int status = check_entries(flags, &options, &list, names, count);
    entry_list_free(&list);
    return status;
}

int cli_check(const struct cli *cli, int argc, char **argv)
{
    struct flags flags = {0};
    struct page_list pages;
    struct err err;
    int option;
    flags.seed = cli_random_seed();
    while ((option = cli_next_option(argc, argv, ":h", long_options)) != -1) {
        if (option == 'h')
            fputs(usage, stdout);
        if (option == 'h' || take_flag(&flags, option) != 0) {
            free(flags.cases);
            return option == 'h' ? CLI_OK : CLI_USAGE;
        }
    }
    char *folder = mem_format("%s/tests/contract", cli->root);
    int status;
    if (page_list_read(folder, &pages, &err) != 0) {
        status = cli_fail(CLI_FAILED, "%s", err.text);
    } else {
        status = check(cli, &flags, &pages, argv + optind, argc - optind);
        page_list_free(&pages);
    }
    free(folder);
    free(flags.cases);
    return status;
}
