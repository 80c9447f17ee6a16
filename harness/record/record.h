/* A run on disk: results/<UTC time>-<host>/ with two files, from which all tables are made.
 *
 * run.json, written once at the start: what was planned, on which machine, with which entries.
 * slices.jsonl, one JSON object a line, appended as it happens with one write(2) a line, so a
 * crash or an interrupt loses at most the slice in flight. Each line has a "type"; docs/RECORD.md
 * lists the types and their keys. A line that did not fit on the disk is cut off again, and a torn
 * last line is passed over when reading, so a record is whole at any moment.
 */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include "base/err.h"

#include <jansson.h>

#define RECORD_SCHEMA 1

struct record; /* opaque: a record being written */

/* A record as read, or as it has grown so far. */
struct record_data {
    json_t *run;   /* object */
    json_t *lines; /* array of objects, in the order written */
};

/* Makes results_folder (if need be) and a new folder in it, writes run.json from `run` (borrowed;
 * "schema" and "started" are added to it) and points results_folder/latest at it. -EACCES, -ENOSPC
 * … with the remedy. */
int record_create(const char *results_folder, const char *host, json_t *run, struct record **record,
                  struct err *err);

/* Writes run.json anew from `run` (borrowed): what was decided after the start. */
int record_update(const struct record *record, const json_t *run, struct err *err);

/* Opens an existing record to append to it, and reads what it holds into *data (free it with
 * record_data_free). -ENOENT, -EINVAL when it is no record of this schema, -EBUSY while another
 * process writes to it (flock(2) on slices.jsonl). */
int record_continue(const char *folder, struct record **record, struct record_data *data,
                    struct err *err);

/* Appends `line` (borrowed). On failure nothing of it remains in the file. */
int record_append(struct record *record, const json_t *line, struct err *err);

const char *record_folder(const struct record *record); /* absolute */
void record_close(struct record *record);

int record_read(const char *folder, struct record_data *data, struct err *err);
void record_data_free(struct record_data *data);

#endif
