#include "record/record.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct record {
    char *folder;
    int fd;
    off_t size; /* of the whole lines written */
};

static const char *remedy(int code)
{
    switch (code) {
    case ENOSPC:
    case EDQUOT:
        return "; free some space and go on with run --resume";
    case EACCES:
    case EPERM:
    case EROFS:
        return "; make the folder writable, or name another with --results DIR";
    default:
        return "";
    }
}

static int fail(struct err *err, int code, const char *what, const char *path)
{
    return err_set(err, code, "cannot %s %s: %s%s", what, path, strerror(code), remedy(code));
}

/* Makes every missing folder of the path. */
static int make_folders(const char *path, struct err *err)
{
    char *copy = mem_copy_string(path);
    int status = 0;
    for (char *slash = copy + 1; status == 0; slash++) {
        slash = strchr(slash, '/');
        if (slash != NULL)
            *slash = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            status = fail(err, errno, "make the folder", copy);
        if (slash == NULL)
            break;
        *slash = '/';
    }
    free(copy);
    return status;
}

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

/* Written beside and renamed, so that run.json is there whole or not at all. */
static int write_run(const char *folder, const json_t *run, struct err *err)
{
    char *path = mem_format("%s/run.json", folder);
    char *draft = mem_format("%s/run.json.part", folder);
    char *text = json_dumps(run, JSON_INDENT(2));
    int status = 0;
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        status = fail(err, errno, "write", draft);
    if (status == 0) {
        status = write_all(fd, text, strlen(text));
        if (status == 0)
            status = write_all(fd, "\n", 1);
        if (close(fd) != 0 && status == 0)
            status = -errno;
        if (status == 0 && rename(draft, path) != 0)
            status = -errno;
        if (status != 0) {
            status = fail(err, -status, "write", path);
            unlink(draft);
        }
    }
    free(text);
    free(draft);
    free(path);
    return status;
}

/* results/<UTC time>-<host>, with a number behind it when two runs start in one second. */
static int make_run_folder(const char *results, const char *host, const char *stamp, char **folder,
                           struct err *err)
{
    for (int attempt = 1; attempt < 1000; attempt++) {
        char *path = attempt == 1 ? mem_format("%s/%s-%s", results, stamp, host)
                                  : mem_format("%s/%s-%s-%d", results, stamp, host, attempt);
        if (mkdir(path, 0777) == 0) {
            *folder = path;
            return 0;
        }
        int code = errno;
        if (code != EEXIST)
            fail(err, code, "make the folder", path);
        free(path);
        if (code != EEXIST)
            return -code;
    }
    return err_set(err, EEXIST, "too many runs in %s started in one second", results);
}

/* A symbolic link replaced by rename, so that `latest` never points nowhere in between. Not worth
 * failing a run for: a file system without symbolic links still holds the record. */
static void point_latest(const char *results, const char *folder)
{
    char *latest = mem_format("%s/latest", results);
    char *draft = mem_format("%s/.latest-%ld", results, (long)getpid());
    const char *slash = strrchr(folder, '/');
    if (symlink(slash + 1, draft) == 0 && rename(draft, latest) != 0)
        unlink(draft);
    free(draft);
    free(latest);
}

/* Two that append at once would write over each other's lines. Where the file system knows no locks
 * (NFS may say ENOLCK) a run goes on without. */
static int lock_lines(int fd, const char *path, struct err *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return 0;
    return err_set(err, EBUSY, "%s is being written by another run; wait for its end", path);
}

/* Opens slices.jsonl of a folder for appending, behind its last whole line. */
static int open_lines(char *folder, struct record **record, struct err *err)
{
    char *path = mem_format("%s/slices.jsonl", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int status = fd < 0 ? fail(err, errno, "open", path) : lock_lines(fd, path, err);
    if (status != 0) {
        if (fd >= 0)
            close(fd);
        free(path);
        return status;
    }
    off_t size = lseek(fd, 0, SEEK_END);
    char last = '\n';
    while (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n')
        size--;
    if (ftruncate(fd, size) != 0 || lseek(fd, size, SEEK_SET) < 0) {
        status = fail(err, errno, "mend the end of", path);
        close(fd);
        free(path);
        return status;
    }
    free(path);
    *record = mem_alloc(1, sizeof **record);
    (*record)->folder = folder;
    (*record)->fd = fd;
    (*record)->size = size;
    return 0;
}

int record_create(const char *results_folder, const char *host, json_t *run, struct record **record,
                  struct err *err)
{
    char stamp[32];
    char started[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);

    int status = make_folders(results_folder, err);
    char *results = status == 0 ? realpath(results_folder, NULL) : NULL;
    if (status == 0 && results == NULL)
        status = fail(err, errno, "find", results_folder);
    char *folder = NULL;
    if (status == 0)
        status = make_run_folder(results, host, stamp, &folder, err);
    if (status == 0) {
        json_object_set_new(run, "schema", json_integer(RECORD_SCHEMA));
        json_object_set_new(run, "started", json_string(started));
        status = write_run(folder, run, err);
        if (status == 0)
            status = open_lines(folder, record, err);
        if (status == 0) {
            point_latest(results, folder);
            folder = NULL;
        } else {
            rmdir(folder);
        }
    }
    free(folder);
    free(results);
    return status;
}

int record_append(struct record *record, const json_t *line, struct err *err)
{
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9));
    size_t size = strlen(text);
    text[size] = '\n'; /* in the place of the NUL: one write, so lines never mix */
    int status = write_all(record->fd, text, size + 1);
    free(text);
    if (status == 0) {
        record->size += (off_t)size + 1;
        return 0;
    }
    if (ftruncate(record->fd, record->size) == 0)
        lseek(record->fd, record->size, SEEK_SET);
    return fail(err, -status, "append to the record in", record->folder);
}

int record_update(const struct record *record, const json_t *run, struct err *err)
{
    return write_run(record->folder, run, err);
}

const char *record_folder(const struct record *record)
{
    return record->folder;
}

void record_close(struct record *record)
{
    if (record == NULL)
        return;
    close(record->fd);
    free(record->folder);
    free(record);
}

/* NULL after an error, -errno in *status. */
static FILE *open_text(const char *path, int *status, struct err *err)
{
    int fd = file_open(path, path, "a record is run.json and slices.jsonl", err);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    *status = fd < 0 ? fd : 0;
    if (fd >= 0 && file == NULL) {
        *status = fail(err, errno, "read", path);
        close(fd);
    }
    return file;
}

static int read_run(const char *path, json_t **run, struct err *err)
{
    json_error_t why;
    int status;
    FILE *file = open_text(path, &status, err);
    if (file == NULL)
        return status;
    *run = json_loadf(file, 0, &why);
    fclose(file);
    return *run != NULL ? 0 : err_set(err, EINVAL, "%s:%d: %s", path, why.line, why.text);
}

static int read_lines(const char *path, json_t *lines, struct err *err)
{
    int status;
    FILE *file = open_text(path, &status, err);
    if (file == NULL)
        return status;
    char *text = NULL;
    size_t capacity = 0;
    ssize_t size;
    for (unsigned number = 1; (size = getline(&text, &capacity, file)) > 0; number++) {
        if (text[size - 1] != '\n')
            break; /* torn by a crash: what came before it is whole */
        json_error_t why;
        json_t *line = json_loadb(text, (size_t)size, JSON_REJECT_DUPLICATES, &why);
        if (!json_is_string(json_object_get(line, "type"))) {
            status = err_set(err, EINVAL, "%s:%u: %s", path, number,
                             line == NULL ? why.text : "not an object with a type");
            json_decref(line);
            break;
        }
        json_array_append_new(lines, line);
    }
    if (status == 0 && ferror(file))
        status = fail(err, errno, "read", path);
    free(text);
    fclose(file);
    return status;
}

int record_read(const char *folder, struct record_data *data, struct err *err)
{
    char *run_path = mem_format("%s/run.json", folder);
    char *lines_path = mem_format("%s/slices.jsonl", folder);
    data->lines = json_array();
    data->run = NULL;
    int status = access(run_path, R_OK) != 0 ? fail(err, errno, "read", run_path)
                                             : read_run(run_path, &data->run, err);
    if (status == 0 && json_integer_value(json_object_get(data->run, "schema")) != RECORD_SCHEMA)
        status = err_set(err, EINVAL, "%s is not a record of schema %d, which this program reads",
                         run_path, RECORD_SCHEMA);
    if (status == 0)
        status = read_lines(lines_path, data->lines, err);
    if (status != 0)
        record_data_free(data);
    free(run_path);
    free(lines_path);
    return status;
}

int record_continue(const char *folder, struct record **record, struct record_data *data,
                    struct err *err)
{
    int status = record_read(folder, data, err);
    if (status != 0)
        return status;
    char *path = realpath(folder, NULL);
    status = path != NULL ? open_lines(path, record, err) : fail(err, errno, "find", folder);
    if (status != 0) {
        free(path);
        record_data_free(data);
        return status;
    }
    /* Another run may have added lines between the reading and the lock. */
    record_data_free(data);
    status = record_read(folder, data, err);
    if (status != 0)
        record_close(*record);
    return status;
}

void record_data_free(struct record_data *data)
{
    json_decref(data->run);
    json_decref(data->lines);
    data->run = NULL;
    data->lines = NULL;
}
