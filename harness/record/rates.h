/* The rates of a record as the statistics want them: a table of blocks by entries.
 */
#ifndef RECORD_RATES_H
#define RECORD_RATES_H

#include "record/record.h"
#include "stats/paired.h"

struct rates {
    struct paired table; /* a column for each of run.json's `entries`, in their order */
    unsigned boots;      /* that have a block */
};

/* From the measured slices of the record: valid answers over the window's length, NAN where an
 * entry has no slice or no answer in a block. rates_free afterwards. */
void rates_read(const struct record_data *data, struct rates *rates);
void rates_free(struct rates *rates);

#endif
