#include "cli/cli.h"
#include "cli/views.h"
#include "base/mem.h"
#include "record/record.h"
#include "report/summary.h"
#include "report/text.h"
#include "report/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: showdown report [DIR] [--format table|json|markdown|csv] [--pairs]\n"
    "Prints what a recorded run says. DIR is a folder that `run` wrote; default: results/latest.\n"
    "      --format NAME      table, json, markdown, csv (default: table)\n"
    "      --pairs            each pair of ranked entries as well: ratio, 95% interval, p; of csv "
    "only that\n"
    "Exit status: 0 fine, 1 no record, 2 usage, 4 inconclusive: the twin differs from itself.\n"
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

int cli_print_view(enum cli_view view, bool pairs, const struct record_data *data,
                   struct summary *summary, struct err *err)
{
    int status = summary_make(data, summary, err);
    if (status != 0)
        return status;
    if (view == CLI_VIEW_JSON)
        view_json(stdout, data, summary);
    else if (view == CLI_VIEW_CSV && pairs)
        view_pairs_csv(stdout, summary);
    else if (view == CLI_VIEW_CSV)
        view_csv(stdout, summary);
    else if (view == CLI_VIEW_MARKDOWN)
        view_markdown(stdout, data, summary);
    else
        view_table(stdout, data, summary);
    if (pairs && (view == CLI_VIEW_TABLE || view == CLI_VIEW_MARKDOWN))
        view_pairs(stdout, summary, view == CLI_VIEW_MARKDOWN);
    fflush(stdout);
    return 0;
}

void cli_print_folder(enum cli_view view, const char *folder)
{
    FILE *out = view == CLI_VIEW_TABLE ? stdout : stderr;
    fputs("record: ", out);
    text_print(out, folder, strlen(folder), "");
    fputc('\n', out);
}

/* The folder itself, and not the link `latest` to it. */
static void print_real_folder(enum cli_view view, const char *folder)
{
    char *real = realpath(folder, NULL);
    cli_print_folder(view, real != NULL ? real : folder);
    free(real);
}

static int print_report(enum cli_view view, bool pairs, const char *folder)
{
    struct record_data data;
    struct summary summary;
    struct err err;
    if (record_read(folder, &data, &err) != 0)
        return cli_fail(CLI_FAILED, "%s; `showdown run` makes a record", err.text);
    int status = CLI_OK;
    if (cli_print_view(view, pairs, &data, &summary, &err) != 0) {
        status = cli_fail(CLI_FAILED, "%s", err.text);
    } else {
        print_real_folder(view, folder);
        status = ranks_inconclusive(&summary.ranking) ? CLI_INCONCLUSIVE : CLI_OK;
        summary_free(&summary);
    }
    record_data_free(&data);
    return status;
}

int cli_report(const struct cli *cli, int argc, char **argv)
{
    static const struct option options[] = {{"format", required_argument, NULL, 'f'},
                                            {"pairs", no_argument, NULL, 'p'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    enum cli_view view = CLI_VIEW_TABLE;
    bool pairs = false;
    int option;
    while ((option = cli_next_option(argc, argv, ":f:h", options)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (option == 'p')
            pairs = true;
        else if (option == '?' || cli_parse_view(argv[0], optarg, &view) != 0)
            return CLI_USAGE;
    }
    if (argc - optind > 1)
        return cli_usage(argv[0], "one folder at a time, not '%s' as well", argv[optind + 1]);

    char *folder =
        optind < argc ? mem_copy_string(argv[optind]) : mem_format("%s/results/latest", cli->root);
    int status = print_report(view, pairs, folder);
    free(folder);
    return status;
}
