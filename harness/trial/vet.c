#include "trial/vet.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "entry/launch.h"
#include "host/usage.h"
#include "judge/judge.h"
#include "trial/part.h"
#include "trial/slice.h"
#include "trial/warm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CONNECTIONS = 64,
    LOADS = 4, /* of LOAD_S seconds; memory is compared over all but the first */
    LOAD_S = 1,
    README_LINES = 60, /* a page */
    FILES_WATCHED = 32,
};

/* Allocators grow in steps and JITs by compiling: less than this is flat. */
static const double growth_allowed_bytes = 1 << 20;
static const double growth_allowed_share = 0.05;

struct file { /* a regular file that the server has open for writing */
    char path[300];
    off_t bytes;
};

struct vetting {
    const struct entry *entry;
    const struct page_list *pages;
    const volatile sig_atomic_t *stop;
    void (*tell)(const struct vet_finding *finding);
    struct vet *vet;
    struct server *server;
    struct plan plan;
    struct slice_target target;
    struct slice *slice;
    char *tmp; /* stands in for /tmp while the server runs */
};

static void find(struct vetting *v, const char *what, enum vet_verdict verdict, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

static void find(struct vetting *v, const char *what, enum vet_verdict verdict, const char *format,
                 ...)
{
    if (v->vet->count == VET_FINDINGS_MAX)
        return;
    struct vet_finding *finding = &v->vet->findings[v->vet->count++];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
    finding->what = what;
    finding->verdict = verdict;
    v->vet->failed |= verdict == VET_FAIL;
    if (v->tell != NULL)
        v->tell(finding);
}

static bool stopped(const struct vetting *v)
{
    return v->stop != NULL && *v->stop != 0;
}

/* ---- what lies in the folder */

static void vet_manifest(struct vetting *v)
{
    const struct entry *e = v->entry;
    if (strstr(e->library, "none yet") != NULL)
        find(v, "manifest", VET_WARN, "library is '%s' still; name the library in entry.conf",
             e->library);
    else if (strchr(e->tuning, ':') == NULL)
        find(v, "manifest", VET_WARN,
             "tuning does not say why; write 'stock: REASON' or 'tuned: REASON' in entry.conf");
    else if (e->parser[0] == '\0' || e->model[0] == '\0' || e->apt[0] == '\0')
        find(v, "manifest", VET_WARN, "parser, model or apt is not given in entry.conf");
    else
        find(v, "manifest", VET_PASS, "%s, %s, %s", e->title, e->library, e->layer);
}

/* What the manifest owns up to is no failure of the folder: it is shown as broken, with the reason.
 */
static void vet_broken(struct vetting *v)
{
    bool falls_short = v->vet->failed;
    v->vet->failed = false;
    if (falls_short)
        find(v, "status", VET_WARN, "broken, as the manifest says: a row without figures");
    else
        find(v, "status", VET_FAIL, "nothing fails, but the manifest says broken: status = active");
}

static void vet_version(struct vetting *v)
{
    char *version = entry_version(v->entry);
    if (version != NULL)
        find(v, "version", VET_PASS, "%s", version);
    else
        find(v, "version", VET_WARN,
             "not known: give 'version' in entry.conf, a command that prints it in a line and "
             "ends with status 0");
    free(version);
}

/* Of the entry's folder; NULL if it can't be read. */
static char *read_text(const char *folder, const char *name)
{
    char *text = NULL;
    char *path = mem_format("%s/%s", folder, name);
    int status = file_read(path, name, "it is a text", 1 << 20, &text, NULL, NULL);
    free(path);
    return status == 0 ? text : NULL;
}

static void vet_readme(struct vetting *v)
{
    char *text = read_text(v->entry->folder, "README.md");
    unsigned lines = 0;
    for (const char *c = text; c != NULL && *c != '\0'; c++)
        lines += *c == '\n';
    if (text == NULL)
        find(v, "README", VET_FAIL,
             "there is no README.md: say what the entry shows, what was hard, where the cycles go");
    else if (strstr(text, "(one line") != NULL)
        find(v, "README", VET_WARN, "the template's blanks are not filled in");
    else if (lines > README_LINES)
        find(v, "README", VET_WARN, "%u lines; a page of %d is read", lines, README_LINES);
    else
        find(v, "README", VET_PASS, "%u lines", lines);
    free(text);
}

static void vet_licence(struct vetting *v, const char *licence)
{
    char *own = read_text(v->entry->folder, "LICENSE");
    if (own != NULL)
        find(v, "licence", VET_PASS, "its own: %.*s", (int)strcspn(own, "\n"), own);
    else if (access(licence, R_OK) == 0)
        find(v, "licence", VET_PASS, "the collection's LICENSE; another one: put it in the folder");
    else
        find(v, "licence", VET_FAIL, "%s cannot be read and the folder has no LICENSE", licence);
    free(own);
}

/* ---- the contract */

/* Of the cases that gate and failed, as " A01 C04", cut off if there are very many. */
static const char *failed_ids(const struct judge_report *report, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < report->count && used + 5 < bytes; i++)
        if (report->results[i].verdict == JUDGE_FAILED && report->results[i].page->gate)
            used += (size_t)snprintf(text + used, bytes - used, " %s", report->results[i].page->id);
    return text;
}

static void vet_contract(struct vetting *v)
{
    struct judge_report report;
    struct err err;
    char first[700];
    char ids[200];
    const struct judge_options options = {.pages = v->pages, .seed = 1, .stop = v->stop};
    judge_raise_files();
    if (judge_entry(&options, v->entry, &report, &err) != 0) {
        find(v, "contract", VET_FAIL, "%s", err.text);
        return;
    }
    judge_first_failure(&report, first, sizeof first);
    if (report.gate_failed > 0)
        find(v, "contract", VET_FAIL,
             "HTTP %u/%u; %u that gate failed:%s; first %s; more: showdown "
             "check %s",
             report.passed, report.total, report.gate_failed, failed_ids(&report, ids, sizeof ids),
             first, v->entry->name);
    else if (report.waived > 0)
        find(v, "contract", VET_WARN, "HTTP %u/%u, %u of those missing by waiver", report.passed,
             report.total, report.waived);
    else
        find(v, "contract", VET_PASS, "HTTP %u/%u, all that gate; the rest: showdown check %s",
             report.passed, report.total, v->entry->name);
    judge_report_free(&report);
}

/* ---- the running server */

static bool start(struct vetting *v)
{
    struct err err;
    uint64_t took_ns;
    char *request = NULL;
    int status = server_free_port((uint64_t)getpid(), &v->target.port, &err);
    const struct entry_launch launch = {.port = v->target.port,
                                        .cpus = &v->plan.cpus.server,
                                        .cpu_count = 1,
                                        .files = CONNECTIONS + 256};
    if (status == 0)
        status = workload_request(v->plan.workload, v->target.port, &request,
                                  &v->target.request_bytes, &err);
    v->target.request = request;
    if (status == 0)
        status = entry_launch(v->entry, &launch, &v->server, &err);
    v->target.server = v->server;
    if (status == 0)
        status = server_wait_ready(v->server, request, v->target.request_bytes,
                                   v->plan.workload->expect, v->plan.ready_ns, &took_ns, &err);
    if (status == 0)
        find(v, "readiness", VET_PASS, "answers %.1f ms after its start", (double)took_ns / 1e6);
    else
        find(v, "readiness", status == -ENOTSUP ? VET_WARN : VET_FAIL, "%s", err.text);
    return status == 0;
}

static double rss_of(struct vetting *v)
{
    pid_t pids[HOST_TREE_MAX];
    struct host_usage usage;
    int count = server_pids(v->server, pids, HOST_TREE_MAX);
    return host_usage_read(pids, count, &usage, NULL) == 0 ? (double)usage.rss_bytes : 0;
}

static bool is_written(pid_t pid, const char *fd)
{
    char path[64];
    char line[128];
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%.16s", (int)pid, fd);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "flags: %o", &flags);
    if (file != NULL)
        fclose(file);
    return (flags & O_ACCMODE) != O_RDONLY;
}

static int list_files_of(pid_t pid, struct file *files, int count)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    DIR *open_files = opendir(folder);
    for (struct dirent *item; open_files != NULL && (item = readdir(open_files)) != NULL;) {
        struct stat about;
        if (count == FILES_WATCHED || fstatat(dirfd(open_files), item->d_name, &about, 0) != 0 ||
            !S_ISREG(about.st_mode) || !is_written(pid, item->d_name))
            continue;
        ssize_t size = readlinkat(dirfd(open_files), item->d_name, files[count].path,
                                  sizeof files[count].path - 1);
        if (size < 0)
            continue;
        files[count].path[size] = '\0';
        files[count++].bytes = about.st_size;
    }
    if (open_files != NULL)
        closedir(open_files);
    return count;
}

static int list_files(struct vetting *v, struct file files[FILES_WATCHED])
{
    pid_t pids[HOST_TREE_MAX];
    int processes = server_pids(v->server, pids, HOST_TREE_MAX);
    int count = 0;
    for (int i = 0; i < processes; i++)
        count = list_files_of(pids[i], files, count);
    return count;
}

/* One that grew, or one that was not open before and holds something; NULL if none. */
static const struct file *grown(const struct file *before, int had, const struct file *after,
                                int has)
{
    for (int i = 0; i < has; i++) {
        off_t bytes = 0;
        for (int j = 0; j < had; j++)
            if (strcmp(before[j].path, after[i].path) == 0)
                bytes = before[j].bytes;
        if (after[i].bytes > bytes)
            return &after[i];
    }
    return NULL;
}

/* Of what a server printed; changes `output`. */
static const char *last_line(char *output)
{
    size_t size = strlen(output);
    while (size > 0 && output[size - 1] == '\n')
        output[--size] = '\0';
    const char *line = strrchr(output, '\n');
    return line != NULL ? line + 1 : output;
}

/* What went wrong under load; of a server that has ended, how, and what it printed last. */
static void find_unsound(struct vetting *v, const char *why)
{
    char detail[256];
    char output[SERVER_OUTPUT_KEEP];
    if (server_poll(v->server, detail, sizeof detail) == SERVER_RUNNING) {
        find(v, "load", VET_FAIL, "%s", why);
        return;
    }
    server_output(v->server, output, sizeof output);
    find(v, "load", VET_FAIL, "the server %s; it last printed '%.300s' (%s)", detail,
         last_line(output), why);
}

static bool load_once(struct vetting *v, double *requests)
{
    struct err err;
    char why[768];
    const struct slice_shape shape = {.connections = CONNECTIONS,
                                      .duration_ns = LOAD_S * NS_PER_S,
                                      .settle_ns = v->plan.settle_ns};
    if (slice_measure(&v->plan, &v->target, &shape, v->stop, v->slice, &err) != 0)
        find_unsound(v, err.text);
    else if (!stopped(v) && !slice_is_sound(&v->plan, v->slice, why, sizeof why))
        find_unsound(v, why);
    else {
        *requests += (double)v->slice->load.total.valid;
        return true;
    }
    return false;
}

static void vet_memory(struct vetting *v, double before, double after, double requests)
{
    double growth = after - before;
    double allowed = growth_allowed_bytes + before * growth_allowed_share;
    bool jit = v->entry->jit[0] != '\0';
    if (growth <= allowed)
        find(v, "memory", VET_PASS, "%.1f MiB after %.0f requests more, %.1f before",
             after / 1048576, requests, before / 1048576);
    else
        find(v, "memory", jit ? VET_WARN : VET_FAIL,
             "grew from %.1f to %.1f MiB over %.0f requests, %.0f bytes each: %s", before / 1048576,
             after / 1048576, requests, growth / requests,
             jit ? "a heap that is still settling, perhaps; look over a million requests"
                 : "something is kept from each request");
}

static void vet_written(struct vetting *v, const char *output, const struct file *file)
{
    char after[SERVER_OUTPUT_KEEP];
    server_output(v->server, after, sizeof after);
    if (file != NULL)
        find(v, "output", VET_FAIL,
             "%s grows under load; turn its log off: a server writes nothing "
             "per request",
             file->path);
    else if (strcmp(output, after) != 0)
        find(v, "output", VET_FAIL,
             "it prints under load, last '%.200s'; a server writes nothing per request", after);
    else
        find(v, "output", VET_PASS, "nothing is written per request");
}

/* The first load warms it up; memory and files are compared from there. */
static void vet_load(struct vetting *v)
{
    char output[SERVER_OUTPUT_KEEP];
    struct file before[FILES_WATCHED];
    struct file after[FILES_WATCHED];
    double requests = 0;
    double rate = 0;
    server_output(v->server, output, sizeof output);
    if (!load_once(v, &requests))
        return;
    double rss = rss_of(v);
    int had = list_files(v, before);
    requests = 0;
    for (int i = 1; i < LOADS && !stopped(v); i++) {
        if (!load_once(v, &requests))
            return;
        rate += (double)v->slice->load.valid / ((double)v->slice->load.window_ns / 1e9);
    }
    find(v, "load", VET_PASS, "about %.0f requests/s on %d connections, all answered rightly",
         rate / (LOADS - 1), CONNECTIONS);
    vet_memory(v, rss, rss_of(v), requests);
    vet_written(v, output, grown(before, had, after, list_files(v, after)));
}

static void vet_end(struct vetting *v)
{
    struct server_stop stop;
    char detail[256];
    bool running = server_poll(v->server, detail, sizeof detail) == SERVER_RUNNING;
    server_stop(v->server, &stop);
    v->server = NULL;
    if (!running)
        find(v, "SIGTERM", VET_FAIL, "not sent: the server %s", detail);
    else if (stop.ignored_term)
        find(v, "SIGTERM", VET_FAIL, "ignored for 2 s; the server was killed");
    else if (stop.left_children)
        find(v, "SIGTERM", VET_FAIL, "left processes behind; they were killed");
    else if (stop.exit_status != 0)
        find(v, "SIGTERM", VET_FAIL,
             "ended with wait status 0x%04x; handle SIGTERM and end with status 0",
             (unsigned)stop.exit_status);
    else
        find(v, "SIGTERM", VET_PASS, "ended after %.1f ms with status 0",
             (double)stop.took_ns / 1e6);
}

static void vet_left(struct vetting *v, const char *hash)
{
    char now[17];
    char *left = NULL;
    DIR *folder = opendir(v->tmp);
    for (struct dirent *item; folder != NULL && left == NULL && (item = readdir(folder)) != NULL;)
        if (item->d_name[0] != '.')
            left = mem_copy_string(item->d_name);
    if (folder != NULL)
        closedir(folder);
    entry_hash(v->entry, now);
    if (left != NULL)
        find(v, "files", VET_FAIL, "leaves %s in the folder for temporary files; put it in {tmp}",
             left);
    else if (strcmp(now, hash) != 0)
        find(v, "files", VET_FAIL, "changes what lies in %s; put it in {tmp}", v->entry->folder);
    else
        find(v, "files", VET_PASS, "none is left behind");
    free(left);
}

static int make_plan(const struct entry *entry, struct plan *plan, struct err *err)
{
    *plan = (struct plan){.workload = part_first(entry),
                          .connections = CONNECTIONS,
                          .boots = 1,
                          .settle_ns = plan_settle_ns(CONNECTIONS),
                          .timeout_ns = 2 * NS_PER_S,
                          .ready_ns = 10 * NS_PER_S};
    return host_cpu_plan(-1, 1, &plan->cpus, err);
}

static char *take_tmp(void)
{
    const char *above = getenv("TMPDIR");
    char *path = mem_format("%s/showdown-vet-XXXXXX", above != NULL ? above : "/tmp");
    if (mkdtemp(path) == NULL) {
        free(path);
        return NULL;
    }
    setenv("TMPDIR", path, 1);
    return path;
}

static void give_tmp_back(char *path, const char *before)
{
    if (before != NULL)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    if (path != NULL)
        rmdir(path); /* what is in it was named */
    free(path);
}

static void vet_running(struct vetting *v)
{
    char hash[17];
    entry_hash(v->entry, hash);
    vet_contract(v);
    if (stopped(v))
        return;
    if (start(v))
        vet_load(v);
    if (v->server != NULL)
        vet_end(v);
    free((char *)v->target.request);
    vet_left(v, hash);
}

void vet_entry(const struct entry *entry, const struct page_list *pages, const char *licence,
               const volatile sig_atomic_t *stop, void (*tell)(const struct vet_finding *finding),
               struct vet *vet)
{
    struct err err;
    struct vetting v = {.entry = entry, .pages = pages, .stop = stop, .tell = tell, .vet = vet};
    char *before = getenv("TMPDIR") != NULL ? mem_copy_string(getenv("TMPDIR")) : NULL;
    memset(vet, 0, sizeof *vet);
    v.slice = mem_alloc(1, sizeof *v.slice);
    v.tmp = take_tmp();
    vet_manifest(&v);
    vet_version(&v);
    if (v.tmp == NULL)
        find(&v, "readiness", VET_FAIL, "no folder for temporary files: set TMPDIR to one");
    else if (make_plan(entry, &v.plan, &err) != 0)
        find(&v, "readiness", VET_FAIL, "%s", err.text);
    else
        vet_running(&v);
    vet_readme(&v);
    vet_licence(&v, licence);
    if (entry->status == ENTRY_BROKEN)
        vet_broken(&v);
    give_tmp_back(v.tmp, before);
    free(before);
    free(v.slice);
}
