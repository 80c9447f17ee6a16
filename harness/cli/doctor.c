#include "cli/cli.h"
#include "base/clock.h"
#include "host/doctor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: showdown doctor [--json] [--server-cpu N]\n"
    "Looks over this machine: what was found, what it does to the numbers, how to change it.\n"
    "Changes nothing. '!' marks a doubt, which a run's table repeats in its foot.\n"
    "      --json          one object: the cores, and all findings\n"
    "      --server-cpu N  as for run: core for the servers (default: chosen)\n"
    "Exit status: 0, whatever was found; 2 usage.\n"
    "example: showdown doctor\n";

#define SAMPLE_NS NS_PER_S

enum { JSON = 256, SERVER_CPU };

static const struct option long_options[] = {{"json", no_argument, NULL, JSON},
                                             {"server-cpu", required_argument, NULL, SERVER_CPU},
                                             {"help", no_argument, NULL, 'h'},
                                             {0}};

static int print_json(const struct host_cpu_plan *cpus, const struct host_doctor *doctor)
{
    json_t *hammer = json_array();
    for (int i = 0; i < cpus->hammer_count; i++)
        json_array_append_new(hammer, json_integer(cpus->hammer[i]));
    json_t *report = json_pack("{s:i, s:o, s:o}", "server_cpu", cpus->server, "hammer_cpus", hammer,
                               "findings", host_doctor_to_json(doctor));
    json_dumpf(report, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(report);
    return CLI_OK;
}

static int print_text(const struct host_doctor *doctor)
{
    int doubts = 0;
    for (int i = 0; i < doctor->count; i++) {
        const struct host_finding *f = &doctor->findings[i];
        doubts += f->doubt;
        printf("%c %-11s %s\n", f->doubt ? '!' : ' ', f->key, f->found);
        printf("%14s%s\n", "", f->effect);
        if (f->remedy[0] != '\0')
            printf("%14sto change it: %s\n", "", f->remedy);
    }
    printf("\n%d of %d findings are doubts.\n", doubts, doctor->count);
    return CLI_OK;
}

int cli_doctor(const struct cli *cli, int argc, char **argv)
{
    (void)cli;
    struct host_cpu_plan cpus;
    struct host_doctor doctor;
    struct err err;
    uint64_t number;
    int server_cpu = -1;
    bool json = false;
    int option;
    while ((option = cli_next_option(argc, argv, ":h", long_options)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (option == '?')
            return CLI_USAGE;
        if (option == JSON) {
            json = true;
            continue;
        }
        if (cli_parse_number(argv[0], "--server-cpu", optarg, 0, HOST_CPUS_MAX - 1, &number) != 0)
            return CLI_USAGE;
        server_cpu = (int)number;
    }
    if (optind < argc)
        return cli_usage(argv[0], "takes no '%s'", argv[optind]);
    if (host_cpu_plan(server_cpu, 1, &cpus, &err) != 0)
        return cli_usage(argv[0], "%s", err.text);
    const struct host_doctor_options options = {.root = "", .cpus = &cpus, .sample_ns = SAMPLE_NS};
    host_doctor_examine(&options, &doctor);
    return json ? print_json(&cpus, &doctor) : print_text(&doctor);
}
