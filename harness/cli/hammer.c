#include "cli/cli.h"

#include "base/mem.h"
#include "hammer/hammer.h"
#include "http/request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND     "hammer"
#define HEADERS_MAX 64
#define NS_PER_S_F  1e9

static volatile sig_atomic_t stop;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

struct options {
    const char *url;
    char host[64];      /* the value of Host */
    const char *target; /* within url, or "/" */
    const char *headers[HEADERS_MAX + 1];
    size_t header_count;
    const char *method;
    const char *body;
    uint64_t duration_ns, settle_ns; /* 0: not given */
    int cpus[HAMMER_THREADS_MAX];
    int cpu_count;
    bool json;
    struct hammer_config config;
};

static void help(void)
{
    fputs(
        "usage: showdown hammer URL [OPTION…]\n"
        "Loads http://HOST[:PORT]/PATH (an IPv4 address or localhost) over keep-alive connections\n"
        "in a closed loop, checks every answer, and prints what came back.\n\n"
        "  -c N               connections kept open (64)\n"
        "  -t N               threads (1)\n"
        "  -d DURATION        measure for so long (10s)\n"
        "  -n N               or: send exactly N requests, all of them measured\n"
        "  -p N               requests outstanding on a connection (1)\n"
        "  -H 'NAME: VALUE'   another header, may be repeated\n"
        "  -m METHOD          GET, or POST with -b\n"
        "  -b BODY            body of the request\n"
        "  --close            a connection a request (sends Connection: close)\n"
        "  --expect-body TEXT an answer with another body is wrong (else: any 2xx is right)\n"
        "  --engine NAME      auto, epoll or io_uring (auto)\n"
        "  --cpus LIST        pin the threads, as in 1 or 0,2-3\n"
        "  --timeout DURATION for an answer, and for connecting (2s)\n"
        "  --settle DURATION  full load before the clock starts (100ms; not with -n)\n"
        "  --json             one JSON object\n"
        "Exit status 0; 1 if no answer was valid or any request failed; 2 usage; 130 "
        "interrupted.\n\n"
        "example: showdown hammer http://localhost:8080/ -c 100 -d 5s\n",
        stdout);
}

/* ---- the command line */

static int url_parse(struct options *o)
{
    static const char scheme[] = "http://";
    const char *wanted = "a URL is http://HOST[:PORT]/PATH, HOST an IPv4 address or localhost";
    if (strncmp(o->url, scheme, sizeof scheme - 1) != 0)
        return cli_usage(COMMAND, "%s, not '%s'", wanted, o->url);
    const char *host = o->url + sizeof scheme - 1;
    size_t authority_bytes = strcspn(host, "/?#");
    o->target = host + authority_bytes;
    if (authority_bytes == 0 || authority_bytes >= sizeof o->host || strchr(o->url, '#') ||
        *o->target == '?')
        return cli_usage(COMMAND, "%s, not '%s'", wanted, o->url);
    if (*o->target == '\0')
        o->target = "/";
    memcpy(o->host, host, authority_bytes);
    o->host[authority_bytes] = '\0';

    char name[sizeof o->host];
    memcpy(name, o->host, sizeof name);
    uint64_t port = 80;
    char *colon = strchr(name, ':');
    if (colon) {
        *colon = '\0';
        if (cli_parse_number(COMMAND, "the URL's port", colon + 1, 1, 65535, &port) != 0)
            return CLI_USAGE;
    }
    struct sockaddr_in *address = &o->config.address;
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    const char *ip = strcmp(name, "localhost") == 0 ? "127.0.0.1" : name;
    if (inet_pton(AF_INET, ip, &address->sin_addr) != 1)
        return cli_usage(COMMAND, "%s, not '%s'", wanted, o->url);
    return CLI_OK;
}

enum {
    OPTION_CLOSE = 256,
    OPTION_EXPECT_BODY,
    OPTION_ENGINE,
    OPTION_CPUS,
    OPTION_TIMEOUT,
    OPTION_SETTLE,
    OPTION_JSON,
    OPTION_HELP
};

static int number(const char *flag, uint64_t low, uint64_t high, uint64_t *value)
{
    return cli_parse_number(COMMAND, flag, optarg, low, high, value) == 0 ? CLI_OK : CLI_USAGE;
}

static int count(const char *flag, unsigned high, unsigned *value)
{
    uint64_t wide = 0;
    int status = number(flag, 1, high, &wide);
    *value = (unsigned)wide;
    return status;
}

static int duration(const char *flag, uint64_t *value)
{
    return cli_parse_duration_ns(COMMAND, flag, optarg, value) == 0 ? CLI_OK : CLI_USAGE;
}

static int header_add(struct options *o, const char *header)
{
    if (o->header_count == HEADERS_MAX)
        return cli_usage(COMMAND, "at most %d headers can be added by -H", HEADERS_MAX);
    o->headers[o->header_count++] = header;
    return CLI_OK;
}

static int long_option_take(struct options *o, int option)
{
    struct hammer_config *config = &o->config;
    switch (option) {
    case OPTION_CLOSE:
        config->close_each = true;
        return CLI_OK;
    case OPTION_EXPECT_BODY:
        config->expect.body = optarg;
        config->expect.body_bytes = strlen(optarg);
        return CLI_OK;
    case OPTION_ENGINE:
        return cli_parse_engine(COMMAND, optarg, &config->engine);
    case OPTION_CPUS:
        o->cpu_count = cli_parse_cpus(COMMAND, "--cpus", optarg, o->cpus, HAMMER_THREADS_MAX);
        return o->cpu_count < 0 ? CLI_USAGE : CLI_OK;
    case OPTION_TIMEOUT:
        return duration("--timeout", &config->timeout_ns);
    case OPTION_SETTLE:
        return duration("--settle", &o->settle_ns);
    case OPTION_JSON:
        o->json = true;
        return CLI_OK;
    default:
        return CLI_USAGE;
    }
}

static int option_take(struct options *o, int option)
{
    struct hammer_config *config = &o->config;
    switch (option) {
    case 'c':
        return count("-c", HAMMER_CONNECTIONS_MAX, &config->connections);
    case 't':
        return count("-t", HAMMER_THREADS_MAX, &config->threads);
    case 'p':
        return count("-p", HAMMER_PIPELINE_MAX, &config->pipeline);
    case 'n':
        return number("-n", 1, UINT64_MAX / 2, &config->requests);
    case 'd':
        return duration("-d", &o->duration_ns);
    case 'H':
        return header_add(o, optarg);
    case 'm':
        o->method = optarg;
        return CLI_OK;
    case 'b':
        o->body = optarg;
        return CLI_OK;
    default:
        return long_option_take(o, option);
    }
}

/* What the flags say together. */
static int options_settle(struct options *o)
{
    struct hammer_config *config = &o->config;
    if (config->requests > 0 && o->duration_ns > 0)
        return cli_usage(COMMAND, "-n and -d exclude each other: give one of them");
    if (config->requests > 0 && o->settle_ns > 0)
        return cli_usage(COMMAND, "-n and --settle exclude each other: -n counts every request");
    if (config->threads > config->connections)
        return cli_usage(COMMAND, "-t %u needs as many connections at least, not -c %u",
                         config->threads, config->connections);
    if (config->close_each && config->pipeline > 1)
        return cli_usage(COMMAND, "--close and -p exclude each other");
    if (o->cpu_count > 0 && (unsigned)o->cpu_count != config->threads)
        return cli_usage(COMMAND, "--cpus names %d CPUs for -t %u: one a thread is needed",
                         o->cpu_count, config->threads);
    if (config->requests == 0) {
        config->duration_ns = o->duration_ns ? o->duration_ns : UINT64_C(10000000000);
        config->settle_ns = o->settle_ns ? o->settle_ns : UINT64_C(100000000);
    }
    config->cpus = o->cpu_count > 0 ? o->cpus : NULL;
    if (!o->method)
        o->method = o->body ? "POST" : "GET";
    config->expect.head = strcmp(o->method, "HEAD") == 0;
    config->stop = &stop;
    if (config->close_each)
        return header_add(o, "Connection: close");
    return CLI_OK;
}

static int options_parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"close", no_argument, NULL, OPTION_CLOSE},
        {"expect-body", required_argument, NULL, OPTION_EXPECT_BODY},
        {"engine", required_argument, NULL, OPTION_ENGINE},
        {"cpus", required_argument, NULL, OPTION_CPUS},
        {"timeout", required_argument, NULL, OPTION_TIMEOUT},
        {"settle", required_argument, NULL, OPTION_SETTLE},
        {"json", no_argument, NULL, OPTION_JSON},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = cli_next_option(argc, argv, ":c:t:d:n:p:H:m:b:", longs)) != -1) {
        if (option == OPTION_HELP)
            return OPTION_HELP;
        int status = option == '?' ? CLI_USAGE : option_take(o, option);
        if (status != CLI_OK)
            return status;
    }
    if (optind + 1 != argc)
        return cli_usage(COMMAND, optind == argc ? "a URL is needed" : "only one URL can be given");
    o->url = argv[optind];
    int status = url_parse(o);
    return status == CLI_OK ? options_settle(o) : status;
}

/* ---- what is printed */

static uint64_t errors_total(const struct hammer_counts *counts)
{
    uint64_t total = 0;
    for (int kind = 0; kind < HAMMER_ERROR_KINDS; kind++)
        total += counts->errors[kind];
    return total;
}

static const struct {
    const char *name;
    const char *key;
    double quantile;
} quantiles[] = {
    {"p50", "latency_p50_us", 0.5},  {"p90", "latency_p90_us", 0.9},
    {"p99", "latency_p99_us", 0.99}, {"p99.9", "latency_p99_9_us", 0.999},
    {"max", "latency_max_us", 1},
};
#define QUANTILES (sizeof quantiles / sizeof quantiles[0])

static double rate(const struct hammer_result *r)
{
    return (double)r->valid / ((double)r->window_ns / NS_PER_S_F);
}

static uint64_t cpu_per_request_ns(const struct hammer_result *r)
{
    return (r->cpu_user_ns + r->cpu_system_ns) / r->valid;
}

static void print_latency(const struct hammer_result *r)
{
    if (r->latency.count == 0)
        return;
    printf("latency      ");
    for (size_t i = 0; i < QUANTILES; i++) {
        uint64_t ns;
        if (histogram_quantile_ns(&r->latency, quantiles[i].quantile, &ns) == 0)
            printf("%s %.1f us%s", quantiles[i].name, (double)ns / 1e3,
                   i + 1 < QUANTILES ? ", " : "");
    }
    printf(" (closed loop, not corrected)\n");
    if (r->latency.overflow > 0)
        printf("             %llu answers took over %.1f s\n",
               (unsigned long long)r->latency.overflow, (double)HISTOGRAM_LIMIT_NS / NS_PER_S_F);
}

static void print_errors(const struct hammer_result *r)
{
    for (int kind = 0; kind < HAMMER_ERROR_KINDS; kind++)
        if (r->total.errors[kind] > 0)
            printf("  %-10s %llu requests lost\n", hammer_error_name((enum hammer_error)kind),
                   (unsigned long long)r->total.errors[kind]);
    for (size_t code = 0; code < sizeof r->errnos / sizeof r->errnos[0]; code++) {
        const char *name = code > 0 ? strerrorname_np((int)code) : "other";
        if (r->errnos[code] > 0)
            printf("  %-10s %llu times\n", name ? name : "unnamed",
                   (unsigned long long)r->errnos[code]);
    }
    if (r->connect_failures > 0)
        printf("  %llu connects failed\n", (unsigned long long)r->connect_failures);
    if (r->reconnects > 0)
        printf("  %llu connections were opened again\n", (unsigned long long)r->reconnects);
    if (r->unclosed > 0)
        printf("  %llu connections were announced to close and stayed open\n",
               (unsigned long long)r->unclosed);
    if (r->first_wrong[0] != '\0')
        printf("  first fault: %s\n", r->first_wrong);
}

static void print_status(const struct hammer_result *r)
{
    bool other = false;
    for (size_t code = 0; code < 600; code++)
        other |= code != 200 && r->status[code] > 0;
    if (!other)
        return;
    printf("status      ");
    for (size_t code = 0; code < 600; code++)
        if (r->status[code] > 0)
            printf(" %zu: %llu", code, (unsigned long long)r->status[code]);
    printf("\n");
}

static void print_text(const struct options *o, const struct hammer_result *r)
{
    const struct hammer_config *config = &o->config;
    printf("%s  %u connections (%u established), %u thread%s, pipeline %u\n", o->url,
           config->connections, r->connections_established, config->threads,
           config->threads > 1 ? "s" : "", config->pipeline);
    printf("engine       %s%s%s\n", hammer_engine_name(r->engine), r->engine_reason[0] ? ": " : "",
           r->engine_reason);
    if (r->valid > 0 && r->window_ns > 0)
        printf("req/s        %.1f (%llu valid answers in %.3f s, %.1f MB/s)\n", rate(r),
               (unsigned long long)r->valid, (double)r->window_ns / NS_PER_S_F,
               (double)r->bytes_read / ((double)r->window_ns / 1e3));
    else
        printf("req/s        no valid answer in %.3f s\n", (double)r->window_ns / NS_PER_S_F);
    print_latency(r);
    printf("requests     sent %llu = valid %llu + wrong %llu + errors %llu + timed out %llu + in "
           "flight %llu\n",
           (unsigned long long)r->total.sent, (unsigned long long)r->total.valid,
           (unsigned long long)r->total.wrong, (unsigned long long)errors_total(&r->total),
           (unsigned long long)r->total.timed_out, (unsigned long long)r->total.in_flight);
    print_status(r);
    print_errors(r);
    if (isfinite(r->little))
        printf("check        req/s x mean latency / requests outstanding = %.3f (Little's law: "
               "1)\n",
               r->little);
    if (r->valid > 0)
        printf("hammer       %.2f us of CPU a request\n", (double)cpu_per_request_ns(r) / 1e3);
}

static void set_count(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *errors_json(const struct hammer_result *r)
{
    json_t *errors = json_object();
    for (int kind = 0; kind < HAMMER_ERROR_KINDS; kind++)
        set_count(errors, hammer_error_name((enum hammer_error)kind), r->total.errors[kind]);
    return errors;
}

static json_t *errnos_json(const struct hammer_result *r)
{
    json_t *errnos = json_object();
    for (size_t code = 0; code < sizeof r->errnos / sizeof r->errnos[0]; code++) {
        const char *name = code > 0 ? strerrorname_np((int)code) : "other";
        if (r->errnos[code] > 0)
            set_count(errnos, name ? name : "unnamed", r->errnos[code]);
    }
    return errnos;
}

static json_t *status_json(const struct hammer_result *r)
{
    json_t *status = json_object();
    for (size_t code = 0; code < 600; code++) {
        char name[8];
        snprintf(name, sizeof name, "%zu", code);
        if (r->status[code] > 0)
            set_count(status, name, r->status[code]);
    }
    return status;
}

static void set_measured(json_t *object, const struct hammer_result *r)
{
    json_object_set_new(object, "window_s", json_real((double)r->window_ns / NS_PER_S_F));
    set_count(object, "window_valid", r->valid);
    set_count(object, "window_failed", r->failed);
    set_count(object, "window_read_bytes", r->bytes_read);
    set_count(object, "window_scanned", r->scanned);
    if (r->valid == 0 || r->window_ns == 0)
        return;
    json_object_set_new(object, "req_per_s", json_real(rate(r)));
    json_object_set_new(object, "hammer_cpu_us_per_req",
                        json_real((double)cpu_per_request_ns(r) / 1e3));
    for (size_t i = 0; i < QUANTILES; i++) {
        uint64_t ns;
        if (histogram_quantile_ns(&r->latency, quantiles[i].quantile, &ns) == 0)
            json_object_set_new(object, quantiles[i].key, json_real((double)ns / 1e3));
    }
    double mean_ns;
    if (histogram_mean_ns(&r->latency, &mean_ns) == 0)
        json_object_set_new(object, "latency_mean_us", json_real(mean_ns / 1e3));
    set_count(object, "latency_overflow", r->latency.overflow);
    if (isfinite(r->little))
        json_object_set_new(object, "little_ratio", json_real(r->little));
}

static void print_json(const struct options *o, const struct hammer_result *r)
{
    json_t *object = json_object();
    json_object_set_new(object, "url", json_string(o->url));
    json_object_set_new(object, "engine", json_string(hammer_engine_name(r->engine)));
    if (r->engine_reason[0])
        json_object_set_new(object, "engine_reason", json_string(r->engine_reason));
    set_count(object, "connections", o->config.connections);
    set_count(object, "connections_established", r->connections_established);
    set_count(object, "threads", o->config.threads);
    set_count(object, "pipeline", o->config.pipeline);
    json_object_set_new(object, "interrupted", json_boolean(r->interrupted));
    json_object_set_new(object, "latency_kind", json_string("closed-loop, not corrected"));
    set_measured(object, r);
    set_count(object, "sent", r->total.sent);
    set_count(object, "valid", r->total.valid);
    set_count(object, "wrong", r->total.wrong);
    json_object_set_new(object, "errors", errors_json(r));
    set_count(object, "timed_out", r->total.timed_out);
    set_count(object, "in_flight", r->total.in_flight);
    set_count(object, "connect_failures", r->connect_failures);
    set_count(object, "reconnects", r->reconnects);
    set_count(object, "unclosed", r->unclosed);
    json_object_set_new(object, "errnos", errnos_json(r));
    json_object_set_new(object, "status", status_json(r));
    if (r->first_wrong[0])
        json_object_set_new(object, "first_fault", json_string(r->first_wrong));
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(object);
}

/* ---- the command */

static int request_make(const struct options *o, char **bytes, size_t *size)
{
    struct err err = {0};
    const struct http_request request = {
        .method = o->method,
        .target = o->target,
        .host = o->host,
        .headers = o->headers,
        .header_count = o->header_count,
        .body = o->body,
        .body_bytes = o->body ? strlen(o->body) : 0,
    };
    if (http_request_build(&request, bytes, size, &err) != 0)
        return cli_usage(COMMAND, "%s", err.text);
    return CLI_OK;
}

static int verdict(const struct hammer_result *r)
{
    if (r->interrupted)
        return CLI_INTERRUPTED;
    uint64_t failed = r->total.wrong + errors_total(&r->total) + r->total.timed_out +
                      r->total.in_flight + r->connect_failures;
    return r->valid == 0 || failed > 0 ? CLI_FAILED : CLI_OK;
}

static int run_and_print(const struct options *o)
{
    struct err err = {0};
    struct hammer_result *result = mem_alloc(1, sizeof *result);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int status = hammer_run(&o->config, result, &err);
    if (status < 0)
        status = cli_fail(status == -EINVAL || status == -EMFILE ? CLI_USAGE : CLI_FAILED, "%s",
                          err.text);
    else {
        (o->json ? print_json : print_text)(o, result);
        status = verdict(result);
    }
    free(result);
    return status;
}

int cli_hammer(const struct cli *cli, int argc, char **argv)
{
    (void)cli;
    struct options *o = mem_alloc(1, sizeof *o);
    o->config.connections = 64;
    o->config.threads = 1;
    o->config.pipeline = 1;
    o->config.timeout_ns = UINT64_C(2000000000);
    o->config.drain_ns = UINT64_C(1000000000);
    int status = options_parse(o, argc, argv);
    char *bytes = NULL;
    if (status == OPTION_HELP) {
        help();
        status = CLI_OK;
    } else if (status == CLI_OK) {
        status = request_make(o, &bytes, &o->config.request_bytes);
        o->config.request = bytes;
        if (status == CLI_OK)
            status = run_and_print(o);
    }
    free(bytes);
    free(o);
    return status;
}
