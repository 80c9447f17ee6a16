/* The rates of a record as the statistics want them: a table of blocks by entries.
 *
 * rates_read() makes it from a record. Who sums up the same lines for other figures takes them one
 * by one instead: rates_begin, rates_take for each slice, rates_end.
 */
#ifndef RECORD_RATES_H
#define RECORD_RATES_H

#include "record/record.h"
#include "stats/paired.h"

#include <stdbool.h>

struct rates {
    struct paired table; /* a column for each of run.json's `entries`, in their order */
    unsigned boots;      /* that have a block */
    unsigned repeated;   /* lines that stood in the record before, and count for nothing */
    /* While it grows: what `table` borrows, each block's number in its boot, and lines seen. */
    const json_t *entries;
    double *rate;
    unsigned *boot, *block;
    json_t *seen;
};

/* From the measured slices of the record: valid answers over the window's length, NAN where an
 * entry has no slice or no answer in a block. Blocks are in the order of boots and blocks, in
 * whatever order the lines are. rates_free afterwards. */
void rates_read(const struct record_data *data, struct rates *rates);
void rates_free(struct rates *rates);

/* `entries` is run.json's, borrowed until rates_end, after which `table` and `boots` are valid. */
void rates_begin(const json_t *entries, struct rates *rates);
/* Takes a line of type "slice". False, and nothing is taken, if its entry is none of the record's,
 * or has that slice already. */
bool rates_take(struct rates *rates, const json_t *line);
void rates_end(struct rates *rates);

/* True if a line of this type, entry, boot and block came before; counted in `repeated`. A record
 * that was put together by hand may hold what counts once more than once. */
bool rates_is_repeated(struct rates *rates, const json_t *line);

#endif
