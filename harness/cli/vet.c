#include "cli/cli.h"
#include "base/mem.h"
#include "trial/vet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: showdown vet ENTRY\n"
    "A first look at one entry, in about 10 s: manifest, version, contract, readiness, a short "
    "load,\n"
    "memory, what it writes and leaves behind, SIGTERM, README, licence; each pass, warn or fail "
    "with\n"
    "the remedy. `make check-entry ENTRY=name` installs and builds it first.\n"
    "Exit status: 0 fine, 1 something fails, 2 usage, 130 interrupted.\n"
    "example: showdown vet libev\n";

static void print_finding(const struct vet_finding *finding)
{
    static const char *const names[] = {"pass", "warn", "FAIL"};
    printf("%-10s %s  %s\n", finding->what, names[finding->verdict], finding->text);
    fflush(stdout);
}

static int vet(const struct cli *cli, const struct entry *entry)
{
    struct err err;
    struct vet result;
    struct page_list pages;
    if (!entry->ready) {
        printf("%-10s FAIL  %s\n", "build", entry->missing);
        return CLI_FAILED;
    }
    char *folder = mem_format("%s/tests/contract", cli->root);
    int status = page_list_read(folder, &pages, &err);
    free(folder);
    if (status != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    cli_catch_stop();
    char *licence = mem_format("%s/LICENSE", cli->root);
    vet_entry(entry, &pages, licence, &cli_stop, print_finding, &result);
    free(licence);
    page_list_free(&pages);
    return cli_stop ? CLI_INTERRUPTED : result.failed ? CLI_FAILED : CLI_OK;
}

int cli_vet(const struct cli *cli, int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    struct err err;
    struct entry_list list;
    for (int option; (option = cli_next_option(argc, argv, "h", options)) != -1;) {
        if (option != 'h')
            return CLI_USAGE;
        fputs(usage, stdout);
        return CLI_OK;
    }
    if (argc - optind != 1)
        return cli_usage("vet", "it takes one entry");
    if (cli_read_entries(cli, &list, &err) != 0) {
        printf("%-10s FAIL  %s\n", "manifest", err.text);
        return CLI_FAILED;
    }
    const struct entry *entry = entry_find(&list, argv[optind], &err);
    int status = entry != NULL ? vet(cli, entry) : cli_fail(CLI_USAGE, "%s", err.text);
    entry_list_free(&list);
    return status;
}
