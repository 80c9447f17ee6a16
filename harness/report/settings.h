/* What must be alike in two records before their numbers may stand side by side: the machine, the
 * workload, the settings. Each that differs is named, with both values and the remedy.
 */
#ifndef REPORT_SETTINGS_H
#define REPORT_SETTINGS_H

#include "record/record.h"

#include <stdbool.h>
#include <stddef.h>

/* A new JSON array of objects {"name", "a", "b", "remedy"}, in a fixed order; values as text,
 * "unknown" where a record lacks one. Names in `allowed` (NULL-terminated, or NULL) are passed
 * over: they are meant to differ. Who made the record, its seed, length and date are no settings.
 */
json_t *settings_differences(const struct record_data *a, const struct record_data *b,
                             char *const *allowed);

bool settings_is_known(const char *name);

/* "hostname, kernel, …" for messages. */
const char *settings_names(void);

#endif
