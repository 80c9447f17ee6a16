/* Which view of a record to print; shared by `run`, which ends with one, and `report`.
 */
#ifndef CLI_VIEWS_H
#define CLI_VIEWS_H

#include "base/err.h"
#include "record/record.h"
#include "report/summary.h"

#include <stdbool.h>

enum cli_view { CLI_VIEW_TABLE, CLI_VIEW_JSON, CLI_VIEW_MARKDOWN, CLI_VIEW_CSV };

/* 0, or -1 after a usage error. */
int cli_parse_view(const char *command, const char *name, enum cli_view *view);

/* Makes the summary and prints it to standard output, with `pairs` the pairs of ranked entries
 * behind the table (as CSV in its place; JSON always has them); on success summary_free() is the
 * caller's.
 */
int cli_print_view(enum cli_view view, bool pairs, const struct record_data *data,
                   struct summary *summary, struct err *err);

/* Says where the record lies: behind a table, and beside what a program may read. */
void cli_print_folder(enum cli_view view, const char *folder);

#endif
