#include "cli/cli.h"
#include "base/clock.h"
#include "base/mem.h"
#include "entry/entry.h"
#include "entry/launch.h"
#include "trial/plan.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: showdown serve ENTRY --port N [--workers N]\n"
    "Runs one entry in the foreground until Ctrl-C, its output on the terminal.\n"
    "  --port N     where to listen on 127.0.0.1\n"
    "  --workers N  processes or threads, for an entry that has {workers}, 1 to 64 (default 1)\n"
    "example: showdown serve libuv --port 8080 & curl -i http://127.0.0.1:8080/\n";

#define READY_LIMIT_NS (10 * NS_PER_S)
#define LOOK_MS        50 /* how often to look whether the server has ended */

struct options {
    const char *name;
    unsigned port;
    unsigned workers;
};

/* Returns -1 to go on, or the exit status. */
static int read_options(int argc, char **argv, struct options *o)
{
    static const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                            {"workers", required_argument, NULL, 'w'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    uint64_t number;
    int option;
    while ((option = cli_next_option(argc, argv, ":p:w:h", options)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (option == '?')
            return CLI_USAGE;
        bool port = option == 'p';
        if (cli_parse_number(argv[0], port ? "--port" : "--workers", optarg, 1,
                             port ? 65535 : PLAN_WORKERS_MAX, &number) != 0)
            return CLI_USAGE;
        *(port ? &o->port : &o->workers) = (unsigned)number;
    }
    if (optind == argc)
        return cli_usage(argv[0], "needs the name of an entry; `showdown list` shows all");
    if (optind + 1 < argc)
        return cli_usage(argv[0], "one entry at a time, not '%s' as well", argv[optind + 1]);
    if (o->port == 0)
        return cli_usage(argv[0], "needs --port, a number from 1 to 65535");
    o->name = argv[optind];
    return -1;
}

static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int signal_number)
{
    (void)signal_number;
    stop_asked = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = ask_to_stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static bool is_ready(struct server *server, const struct options *o, struct err *err)
{
    struct http_expect any = {0};
    uint64_t took_ns;
    char *request = mem_format("GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", o->port);
    int status =
        server_wait_ready(server, request, strlen(request), &any, READY_LIMIT_NS, &took_ns, err);
    free(request);
    return status == 0;
}

static int wait_for_end(struct server *server, const struct options *o)
{
    char detail[256];
    while (!stop_asked) {
        if (server_poll(server, detail, sizeof detail) != SERVER_RUNNING)
            return cli_fail(CLI_FAILED, "%s %s", o->name, detail);
        poll(NULL, 0, LOOK_MS); /* a signal ends it early */
    }
    return CLI_OK;
}

static int serve(const struct entry *entry, const struct options *o)
{
    struct err err = {0};
    struct server *server;
    const struct entry_launch launch = {
        .port = o->port, .workers = o->workers, .inherit_output = true};
    catch_signals();
    int status = entry_launch(entry, &launch, &server, &err);
    if (status != 0)
        return cli_fail(CLI_FAILED, "%s: %s", entry->name, err.text);
    if (is_ready(server, o, &err)) {
        printf("serving %s on http://127.0.0.1:%u/ - Ctrl-C ends it\n", entry->name, o->port);
        fflush(stdout);
        status = wait_for_end(server, o);
    } else if (!stop_asked) {
        status = cli_fail(CLI_FAILED, "%s %s", entry->name, err.text);
    }
    server_stop(server, NULL);
    return status;
}

/* Whether it can be served; else says what it takes and returns false. */
static bool can_serve(const struct entry *entry, const struct options *o)
{
    struct err err;
    if (!entry->ready) {
        cli_fail(CLI_FAILED, "%s cannot run: %s", entry->name, entry->missing);
        return false;
    }
    if (o->workers > 1 && !entry_takes_workers(entry)) {
        cli_fail(CLI_FAILED, "%s takes no workers: neither its run nor its config has {workers}",
                 entry->name);
        return false;
    }
    if (server_port_check(o->port, &err) != 0) {
        cli_fail(CLI_FAILED, "%s", err.text);
        return false;
    }
    return true;
}

int cli_serve(const struct cli *cli, int argc, char **argv)
{
    struct options o = {.workers = 1};
    int status = read_options(argc, argv, &o);
    if (status >= 0)
        return status;
    struct entry_list list;
    struct err err;
    if (cli_read_entries(cli, &list, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    const struct entry *entry = entry_find(&list, o.name, &err);
    if (entry == NULL)
        status = cli_usage(argv[0], "%s", err.text);
    else
        status = can_serve(entry, &o) ? serve(entry, &o) : CLI_FAILED;
    entry_list_free(&list);
    return status;
}
