/* What the machine of a record leaves in doubt, as lines under its table. Read from the record, so
 * that a table made elsewhere says the same.
 */
#ifndef REPORT_DOUBTS_H
#define REPORT_DOUBTS_H

#include <jansson.h>
#include <stdio.h>

/* `machine` as in run.json, or NULL. A line for each finding of machine.doctor that is a doubt, and
 * one on where more is to be read; nothing where there is none. */
void doubts_print(FILE *out, const json_t *machine);

#endif
