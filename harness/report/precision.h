/* What became of a run that was given a precision (run --precision), in a sentence for the table's
 * foot and as JSON.
 */
#ifndef REPORT_PRECISION_H
#define REPORT_PRECISION_H

#include <jansson.h>

/* A new string from the record's last line of type "end", such as "Precision: the budget ended
 * first, after 26 boots: the widest interval is +-1.6% (node-http), not below the +-1% wanted.
 * About 8 min more would be needed."; NULL if there is no such line, or no precision in it. free().
 */
char *precision_sentence(const json_t *end);

/* A new object with wanted and, where known, widest (shares), entry, more_s; or NULL. */
json_t *precision_to_json(const json_t *end);

#endif
