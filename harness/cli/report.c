#include "cli/cli.h"
#include "cli/views.h"
#include "base/mem.h"
#include "record/record.h"
#include "report/summary.h"
#include "report/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: showdown report [DIR] [--format table|json|markdown|csv]\n"
    "Prints what a recorded run says. DIR is a folder that `run` wrote; default: results/latest.\n"
    "example: showdown report results/latest --format markdown\n";

int cli_parse_view(const char *command, const char *name, enum cli_view *view)
{
    static const char *const names[] = {"table", "json", "markdown", "csv"};
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++)
        if (strcmp(names[i], name) == 0) {
            *view = (enum cli_view)i;
            return 0;
        }
    cli_usage(command, "--format takes table, json, markdown or csv, not '%s'", name);
    return -1;
}

int cli_print_view(enum cli_view view, const struct record_data *data, struct summary *summary,
                   struct err *err)
{
    int status = summary_make(data, summary, err);
    if (status != 0)
        return status;
    if (view == CLI_VIEW_JSON)
        view_json(stdout, data, summary);
    else if (view == CLI_VIEW_MARKDOWN)
        view_markdown(stdout, data, summary);
    else if (view == CLI_VIEW_CSV)
        view_csv(stdout, summary);
    else
        view_table(stdout, data, summary);
    fflush(stdout);
    return 0;
}

int cli_report(const struct cli *cli, int argc, char **argv)
{
    static const struct option options[] = {
        {"format", required_argument, NULL, 'f'}, {"help", no_argument, NULL, 'h'}, {0}};
    enum cli_view view = CLI_VIEW_TABLE;
    int option;
    while ((option = cli_next_option(argc, argv, ":f:h", options)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (option == '?' || cli_parse_view(argv[0], optarg, &view) != 0)
            return CLI_USAGE;
    }
    if (argc - optind > 1)
        return cli_usage(argv[0], "one folder at a time, not '%s' as well", argv[optind + 1]);

    struct record_data data;
    struct summary summary;
    struct err err;
    char *folder =
        optind < argc ? mem_copy_string(argv[optind]) : mem_format("%s/results/latest", cli->root);
    int status = record_read(folder, &data, &err);
    free(folder);
    if (status != 0)
        return cli_fail(CLI_FAILED, "%s; `showdown run` makes a record", err.text);
    status = cli_print_view(view, &data, &summary, &err);
    if (status == 0)
        summary_free(&summary);
    record_data_free(&data);
    return status == 0 ? CLI_OK : cli_fail(CLI_FAILED, "%s", err.text);
}
