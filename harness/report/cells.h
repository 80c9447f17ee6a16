/* A table as text: the same columns and the same cells for the terminal and for Markdown. Cells
 * hold no control characters, whatever the record held.
 */
#ifndef REPORT_CELLS_H
#define REPORT_CELLS_H

#include "report/summary.h"

#include <stdbool.h>
#include <stdio.h>

#define CELLS_COLUMNS_MAX 16
#define CELLS_SIZE        160

struct cells {
    char text[CELLS_COLUMNS_MAX][CELLS_SIZE];
};

struct cells_table {
    int columns;
    const char *titles[CELLS_COLUMNS_MAX];
    bool left[CELLS_COLUMNS_MAX]; /* aligned to the left, as words are */
    size_t count;
    struct cells *rows;
};

/* The rows of a summary: 120 columns wide at most, two blanks apart, if no name is longer than 13
 * characters. */
void cells_of_rows(const struct summary *summary, struct cells_table *table);

/* Each pair of ranked entries: ratio, interval, p, p after Holm's correction, and what is claimed.
 */
void cells_of_pairs(const struct summary *summary, struct cells_table *table);

void cells_print(FILE *out, const struct cells_table *table);
void cells_print_markdown(FILE *out, const struct cells_table *table);
void cells_free(struct cells_table *table);

#endif
