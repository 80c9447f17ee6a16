#include "judge/judge.h"
#include "base/clock.h"
#include "base/mem.h"
#include "entry/launch.h"
#include "judge/faults.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define READY_LIMIT_NS (10 * NS_PER_S)
#define END_SEEN_NS    (300 * NS_PER_MS)

enum { OUTPUT_SHOWN = 600, DETAIL_BYTES = 1024, LATE_MOST = 6 };

struct job { /* one variant, split in one way */
    size_t result;
    const struct page_variant *variant;
    uint64_t seed;
    size_t place;
    size_t order; /* on its page */
};

struct bench {
    const struct judge_options *options;
    const struct entry *entry; /* NULL: a server that is not ours */
    struct server *server;
    unsigned starts;
    struct talk_peer peer;
    struct judge_report *report;
    /* The present pass. */
    struct job *jobs;
    size_t job_count;
    _Atomic size_t next_job;
    pthread_mutex_t lock; /* of the results */
};

static bool stopped(const struct bench *b)
{
    return b->options->stop != NULL && *b->options->stop != 0;
}

/* ---- the server */

/* FNV-1a, so that a case draws the same whichever others run, and an entry's port is its own. */
static uint64_t seed_of(uint64_t seed, const char *name, uint64_t number)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ seed;
    for (const char *c = name; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return (hash ^ number) * UINT64_C(1099511628211);
}

/* Appends the end of what the server printed, on one line. */
static void add_output(struct bench *b, char *detail, size_t detail_bytes)
{
    char output[SERVER_OUTPUT_KEEP] = "";
    size_t used = strlen(detail);
    server_output(b->server, output, sizeof output);
    size_t size = strlen(output);
    while (size > 0 && output[size - 1] == '\n')
        output[--size] = '\0';
    const char *tail = size > OUTPUT_SHOWN ? output + size - OUTPUT_SHOWN : output;
    for (char *c = output; *c != '\0'; c++)
        *c = *c == '\n' ? '|' : *c;
    if (size > 0)
        snprintf(detail + used, detail_bytes - used, "; it last printed: %s", tail);
}

/* True if the server lives or is not ours; else says how it ended. */
static bool lives(struct bench *b, char *detail, size_t detail_bytes)
{
    if (b->entry == NULL)
        return true;
    if (b->server == NULL) {
        snprintf(detail, detail_bytes, "has ended");
        return false;
    }
    if (server_poll(b->server, detail, detail_bytes) == SERVER_RUNNING)
        return true;
    add_output(b, detail, detail_bytes);
    return false;
}

/* Of a server that was ready and then can't be reached: how it ended, if it did. Its sockets close
 * some milliseconds before anyone can see that. */
static int explain_unreachable(struct bench *b, int status, struct err *err)
{
    char detail[1024];
    uint64_t deadline_ns = clock_now_ns() + END_SEEN_NS;
    while (lives(b, detail, sizeof detail)) {
        if (clock_now_ns() >= deadline_ns)
            return status;
        clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
    }
    return err_set(err, ECHILD, "was ready, and then %s", detail);
}

static int try_start(struct bench *b, struct err *err)
{
    unsigned port;
    uint64_t took_ns;
    /* Entries are started side by side, by several runs perhaps: each looks for its port elsewhere.
     */
    uint64_t seed = seed_of((uint64_t)getpid(), b->entry->name, ++b->starts);
    int status = server_free_port(seed, &port, err);
    if (status != 0)
        return status;
    const struct entry_launch launch = {.port = port, .files = FAULT_FILES};
    status = entry_launch(b->entry, &launch, &b->server, err);
    if (status != 0)
        return status;
    const struct http_expect any = {0};
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char *request = mem_format("GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", port);
    status =
        server_wait_ready(b->server, request, strlen(request), &any, READY_LIMIT_NS, &took_ns, err);
    free(request);
    if (status != 0 && status != -EPROTO) /* a wrong answer is for the pages to judge */
        return status;
    status = talk_meet(&b->peer, &address, err);
    return status == 0 ? 0 : explain_unreachable(b, status, err);
}

static void stop_server(struct bench *b)
{
    server_stop(b->server, NULL);
    b->server = NULL;
}

/* Between a port's being found free and the server's taking it, another may have taken it. */
static int start_server(struct bench *b, struct err *err)
{
    int status = try_start(b, err);
    for (int i = 0; i < 3 && status == -ECHILD && strstr(err->text, "in use") != NULL; i++) {
        stop_server(b);
        status = try_start(b, err);
    }
    return status;
}

/* ---- variants side by side */

static void add_jobs(struct bench *b, size_t result)
{
    const struct page *page = b->report->results[result].page;
    size_t first = b->job_count;
    for (size_t v = 0; v < page->count; v++) {
        uint64_t seed = seed_of(b->options->seed, page->id, v);
        size_t places = talk_places(&b->peer, &page->variants[v], seed);
        b->jobs = mem_grow(b->jobs, b->job_count + places, sizeof *b->jobs);
        for (size_t place = 0; place < places; place++) {
            size_t at = b->job_count++;
            b->jobs[at] = (struct job){.result = result,
                                       .variant = &page->variants[v],
                                       .seed = seed,
                                       .place = place,
                                       .order = at - first};
        }
    }
}

static void take_outcome(struct bench *b, const struct job *job, struct talk_outcome *outcome)
{
    struct judge_result *r = &b->report->results[job->result];
    pthread_mutex_lock(&b->lock);
    /* Of several that fall short, the first on the page is told of, so that a seed repeats. */
    bool first = r->variant == NULL || job->order < r->order;
    bool tells = outcome->passed ? outcome->noted && r->verdict != JUDGE_FAILED && first
                                 : r->verdict != JUDGE_FAILED || first;
    if (tells) {
        talk_outcome_clear(&r->outcome);
        r->outcome = *outcome;
        r->variant = job->variant->title;
        r->order = job->order;
        r->verdict = outcome->passed ? JUDGE_NOTED : JUDGE_FAILED;
    }
    pthread_mutex_unlock(&b->lock);
    if (!tells)
        talk_outcome_clear(outcome);
}

/* A case that has fallen short is not tried further. */
static bool is_over(struct bench *b, const struct job *job)
{
    pthread_mutex_lock(&b->lock);
    bool over = b->report->results[job->result].verdict == JUDGE_FAILED;
    pthread_mutex_unlock(&b->lock);
    return over;
}

static void *work(void *context)
{
    struct bench *b = context;
    for (size_t i; (i = atomic_fetch_add(&b->next_job, 1)) < b->job_count && !stopped(b);) {
        struct talk_outcome outcome;
        const struct job *job = &b->jobs[i];
        if (is_over(b, job))
            continue;
        talk_carry_out(&b->peer, job->variant, job->seed, job->place, &outcome);
        take_outcome(b, job, &outcome);
    }
    return NULL;
}

static void run_jobs(struct bench *b, unsigned workers)
{
    pthread_t threads[JUDGE_WORKERS];
    unsigned started = 0;
    atomic_store(&b->next_job, 0);
    while (started < workers && pthread_create(&threads[started], NULL, work, b) == 0)
        started++;
    if (started == 0)
        work(b);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    b->job_count = 0;
}

static void set_failed(struct judge_result *r, const char *sent, const char *expected,
                       const char *problem)
{
    talk_outcome_clear(&r->outcome);
    r->verdict = JUDGE_FAILED;
    r->outcome.sent = mem_copy_string(sent);
    r->outcome.expected = mem_copy_string(expected);
    r->outcome.came = mem_copy_string("");
    r->outcome.problem = mem_copy_string(problem);
}

static void set_ended(struct judge_result *r, const char *detail)
{
    char *problem = mem_format("the server %s%s%s", detail, r->outcome.problem != NULL ? "; " : "",
                               r->outcome.problem != NULL ? r->outcome.problem : "");
    if (r->outcome.sent == NULL) {
        set_failed(r, "", "the server to go on", problem);
    } else {
        free(r->outcome.problem);
        r->outcome.problem = mem_copy_string(problem);
        r->verdict = JUDGE_FAILED;
    }
    free(problem);
}

/* The server ended while cases ran side by side: those that failed are tried again one by one, so
 * that the one that ends it is named, and the others are not. */
static int try_alone(struct bench *b, struct err *err)
{
    char detail[DETAIL_BYTES];
    for (size_t i = 0; i < b->report->count && !stopped(b); i++) {
        struct judge_result *r = &b->report->results[i];
        if (r->page->fault != NULL || r->verdict != JUDGE_FAILED)
            continue;
        if (!lives(b, detail, sizeof detail)) {
            stop_server(b);
            int status = start_server(b, err);
            if (status != 0)
                return status;
        }
        talk_outcome_clear(&r->outcome);
        r->verdict = JUDGE_PASSED;
        r->variant = NULL;
        add_jobs(b, i);
        run_jobs(b, 4);
        if (!lives(b, detail, sizeof detail))
            set_ended(r, detail);
    }
    return 0;
}

static bool is_late(const struct judge_result *r)
{
    return r->page->fault == NULL && r->verdict == JUDGE_FAILED && r->outcome.late;
}

/* What did not come in time may have been kept by the machine: dozens of conversations go on at
 * once, and others may need its cores. A few such cases are tried once more, side by side with few;
 * one that passes then is noted. Where there are many it is the server. */
static void try_late_again(struct bench *b)
{
    char **first = mem_alloc(b->report->count + 1, sizeof *first);
    unsigned late = 0;
    for (size_t i = 0; i < b->report->count; i++)
        late += is_late(&b->report->results[i]);
    for (size_t i = 0; i < b->report->count && late <= LATE_MOST; i++) {
        struct judge_result *r = &b->report->results[i];
        if (!is_late(r))
            continue;
        first[i] = mem_format("%s: %s", r->variant, r->outcome.problem);
        talk_outcome_clear(&r->outcome);
        r->verdict = JUDGE_PASSED;
        r->variant = NULL;
        add_jobs(b, i);
    }
    if (b->job_count > 0)
        run_jobs(b, JUDGE_WORKERS / 3);
    for (size_t i = 0; i < b->report->count; i++) {
        struct judge_result *r = &b->report->results[i];
        if (first[i] != NULL && r->verdict == JUDGE_PASSED) {
            r->verdict = JUDGE_NOTED;
            r->outcome.problem = mem_format("passed at the second try; at the first, %s", first[i]);
        }
        free(first[i]);
    }
    free(first);
}

static int run_pages(struct bench *b, struct err *err)
{
    char detail[DETAIL_BYTES];
    for (size_t i = 0; i < b->report->count; i++)
        if (b->report->results[i].page->fault == NULL)
            add_jobs(b, i);
    run_jobs(b, JUDGE_WORKERS);
    if (!lives(b, detail, sizeof detail))
        return try_alone(b, err);
    try_late_again(b);
    return lives(b, detail, sizeof detail) ? 0 : try_alone(b, err);
}

/* ---- faults */

static int try_fault(struct bench *b, struct judge_result *r, bool *late, struct err *err)
{
    char detail[DETAIL_BYTES];
    const struct fault *fault = fault_find(r->page->fault);
    if (fault->needs != FAULT_NEEDS_ANY && b->entry == NULL) {
        r->verdict = JUDGE_SKIPPED;
        return 0;
    }
    if (!lives(b, detail, sizeof detail)) {
        stop_server(b);
        int status = start_server(b, err);
        if (status != 0)
            return status;
    }
    struct fault_context context = {
        .peer = &b->peer, .server = b->server, .seed = seed_of(b->options->seed, r->page->id, 0)};
    bool right = fault->run(&context);
    b->server = context.server;
    if (!right)
        set_failed(r, fault->done, fault->expected, context.problem);
    *late = context.late;
    if (fault->needs != FAULT_NEEDS_END && !lives(b, detail, sizeof detail))
        set_ended(r, detail);
    return 0;
}

/* One that did not end in time may have been kept by the machine, as in try_late_again. */
static int run_fault(struct bench *b, struct judge_result *r, struct err *err)
{
    bool late = false;
    int status = try_fault(b, r, &late, err);
    if (status != 0 || !late || stopped(b))
        return status;
    char *first = r->outcome.problem;
    r->outcome.problem = NULL;
    talk_outcome_clear(&r->outcome);
    r->verdict = JUDGE_PASSED;
    status = try_fault(b, r, &late, err);
    if (status == 0 && r->verdict == JUDGE_PASSED) {
        const struct fault *fault = fault_find(r->page->fault);
        char *note = mem_format("passed at the second try; at the first, %s", first);
        set_failed(r, fault->done, fault->expected, note);
        r->verdict = JUDGE_NOTED;
        free(note);
    }
    free(first);
    return status;
}

/* Those that end the process come last. */
static int run_faults(struct bench *b, struct err *err)
{
    int status = 0;
    for (int ends = 0; ends <= 1; ends++)
        for (size_t i = 0; i < b->report->count && status == 0; i++) {
            struct judge_result *r = &b->report->results[i];
            if (r->page->fault == NULL ||
                (fault_find(r->page->fault)->needs == FAULT_NEEDS_END) != (ends == 1))
                continue;
            if (stopped(b))
                r->verdict = JUDGE_SKIPPED;
            else
                status = run_fault(b, r, err);
        }
    return status;
}

/* ---- the report */

static const struct page *find_page(const struct page_list *pages, const char *id)
{
    for (size_t i = 0; i < pages->count; i++)
        if (strcmp(pages->items[i].id, id) == 0)
            return &pages->items[i];
    return NULL;
}

static int check_cases(const struct judge_options *options, struct err *err)
{
    for (size_t i = 0; i < options->case_count; i++)
        if (find_page(options->pages, options->cases[i]) == NULL)
            return err_set(err, EINVAL,
                           "unknown case '%s'; `showdown check --list` shows those there are",
                           options->cases[i]);
    return 0;
}

static bool is_chosen(const struct judge_options *options, const struct page *page)
{
    for (size_t i = 0; i < options->case_count; i++)
        if (strcmp(options->cases[i], page->id) == 0)
            return true;
    return options->case_count == 0 && (!page->slow || options->slow) &&
           (page->gate || !options->gate_only);
}

static void choose(const struct judge_options *options, struct judge_report *report)
{
    *report =
        (struct judge_report){.results = mem_alloc(options->pages->count, sizeof *report->results)};
    for (size_t i = 0; i < options->pages->count; i++)
        if (is_chosen(options, &options->pages->items[i]))
            report->results[report->count++].page = &options->pages->items[i];
}

static void sum_up(struct judge_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        struct judge_result *r = &report->results[i];
        if (r->verdict == JUDGE_FAILED && r->waiver != NULL)
            r->verdict = JUDGE_WAIVED;
        report->total += r->verdict != JUDGE_SKIPPED;
        report->passed += r->verdict == JUDGE_PASSED || r->verdict == JUDGE_NOTED;
        report->waived += r->verdict == JUDGE_WAIVED;
        report->gate_failed += r->verdict == JUDGE_FAILED && r->page->gate;
    }
}

static int take_waivers(const struct judge_options *options, const struct entry *entry,
                        struct judge_report *report, struct err *err)
{
    char id[ENTRY_CASE_BYTES];
    char *reason;
    for (const char *at = entry->waive; (reason = entry_next_waiver(&at, id)) != NULL;) {
        bool known = find_page(options->pages, id) != NULL;
        for (size_t i = 0; i < report->count; i++)
            if (strcmp(report->results[i].page->id, id) == 0 && report->results[i].waiver == NULL)
                report->results[i].waiver = mem_copy_string(reason);
        free(reason);
        if (!known)
            return err_set(err, ENOENT, "servers/%s/entry.conf: waives %s, which is no case",
                           entry->name, id);
    }
    return 0;
}

static int judge(struct bench *b, struct err *err)
{
    pthread_mutex_init(&b->lock, NULL);
    int status = run_pages(b, err);
    if (status == 0)
        status = run_faults(b, err);
    sum_up(b->report);
    pthread_mutex_destroy(&b->lock);
    free(b->jobs);
    return status;
}

int judge_entry(const struct judge_options *options, const struct entry *entry,
                struct judge_report *report, struct err *err)
{
    struct bench b = {.options = options, .entry = entry, .report = report};
    *report = (struct judge_report){0};
    int status = check_cases(options, err);
    if (status != 0)
        return status;
    choose(options, report);
    status = take_waivers(options, entry, report, err);
    if (status == 0)
        status = start_server(&b, err);
    if (status == 0)
        status = judge(&b, err);
    stop_server(&b);
    if (status != 0)
        judge_report_free(report);
    return status;
}

int judge_address(const struct judge_options *options, const struct sockaddr_in *address,
                  struct judge_report *report, struct err *err)
{
    struct bench b = {.options = options, .report = report};
    *report = (struct judge_report){0};
    int status = check_cases(options, err);
    if (status == 0)
        status = talk_meet(&b.peer, address, err);
    if (status != 0)
        return status;
    choose(options, report);
    status = judge(&b, err);
    if (status != 0)
        judge_report_free(report);
    return status;
}

void judge_report_free(struct judge_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        talk_outcome_clear(&report->results[i].outcome);
        free(report->results[i].waiver);
    }
    free(report->results);
    *report = (struct judge_report){0};
}

void judge_raise_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= 2 * FAULT_FILES)
        return;
    limit.rlim_cur = limit.rlim_max < 2 * FAULT_FILES ? limit.rlim_max : 2 * FAULT_FILES;
    setrlimit(RLIMIT_NOFILE, &limit);
}

void judge_first_failure(const struct judge_report *report, char *text, size_t bytes)
{
    text[0] = '\0';
    for (size_t i = 0; i < report->count && text[0] == '\0'; i++) {
        const struct judge_result *r = &report->results[i];
        if (r->verdict == JUDGE_FAILED && r->page->gate)
            snprintf(text, bytes, "%s%s%s: %s", r->page->id, r->variant != NULL ? ", " : "",
                     r->variant != NULL ? r->variant : "", r->outcome.problem);
    }
}
