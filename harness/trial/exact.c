#include "trial/exact.h"

#include "base/clock.h"
#include "base/mem.h"
#include "entry/launch.h"
#include "hammer/hammer.h"
#include "host/usage.h"
#include "http/contract.h"
#include "http/request.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* valgrind starts a server in about a second, and answers some thirty times slower. */
#define READY_NS   (30 * NS_PER_S)
#define TIMEOUT_NS (20 * NS_PER_S)

#define LOOK_NS (10 * NS_PER_MS) /* how often to look whether it listens */

/* Both runs go beyond what a server does once, such as growing its buffers. */
#define FIRST_REQUESTS 1000

#define QUIET_NS      (50 * NS_PER_MS) /* without a further call, the connections' end is digested */
#define QUIET_MOST_NS (1 * NS_PER_S)

struct job {
    const struct entry *entry;
    const struct exact_shape *shape;
    const volatile sig_atomic_t *stop;
    struct err *err;
};

static bool stopped(const struct job *job)
{
    return job->stop != NULL && *job->stop != 0;
}

static unsigned first_requests(const struct exact_shape *shape)
{
    unsigned all_twice = 2 * shape->connections * shape->pipeline;
    return all_twice > FIRST_REQUESTS ? all_twice : FIRST_REQUESTS;
}

/* ---- a server under load */

struct subject {
    struct server *server;
    unsigned port;
    char *request;
    size_t request_bytes;
};

static void subject_end(struct subject *subject, struct server_stop *stop)
{
    server_stop(subject->server, stop);
    free(subject->request);
    *subject = (struct subject){0};
}

/* 1 if something listens on the port of some local address, 0 if not, -1 if it can't be told:
 * /proc/net/tcp (Documentation/networking/proc_net_tcp.rst), state 0A. */
static int listens(unsigned port)
{
    char line[256];
    unsigned own_port;
    unsigned state;
    int found = 0;
    FILE *file = fopen("/proc/net/tcp", "re");
    if (file == NULL)
        return -1;
    while (found == 0 && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, " %*u: %*8x:%4x %*8x:%*4x %2x", &own_port, &state) == 2)
            found = own_port == port && state == 0x0A;
    fclose(file);
    return found;
}

/* Until it listens. It is not asked anything: a connection more or less, or one that is still open
 * when the next comes, puts the later ones elsewhere in memory, and string functions of libc take
 * other paths by where a text lies: that alone made 10 of 1,900 instructions. */
static int wait_listening(const struct job *job, struct subject *subject)
{
    char detail[256];
    char output[512];
    uint64_t deadline = clock_now_ns() + READY_NS;
    while (clock_now_ns() < deadline && !stopped(job)) {
        int found = listens(subject->port);
        if (found == 1)
            return 0;
        if (found < 0)
            return server_wait_ready(subject->server, subject->request, subject->request_bytes,
                                     &contract_hello, READY_NS, &(uint64_t){0}, job->err);
        if (server_poll(subject->server, detail, sizeof detail) != SERVER_RUNNING) {
            server_output(subject->server, output, sizeof output);
            if (server_lacks(subject->server))
                return err_set(job->err, ENOTSUP, "it can't run on this machine: %s", output);
            return err_set(job->err, ECHILD, "it %s before it listened: %s", detail, output);
        }
        clock_sleep_until_ns(clock_now_ns() + LOOK_NS);
    }
    return err_set(job->err, ETIMEDOUT, "it did not listen within %.0f s", (double)READY_NS / 1e9);
}

static int subject_start(const struct job *job, char *const *before, struct subject *subject)
{
    char host[32];
    *subject = (struct subject){0};
    if (server_free_port(clock_now_ns() / NS_PER_MS, &subject->port, job->err) != 0)
        return -job->err->code;
    const struct entry_launch launch = {.port = subject->port, .before = before};
    snprintf(host, sizeof host, "127.0.0.1:%u", subject->port);
    const struct http_request request = {.method = "GET", .target = "/", .host = host};
    int status = http_request_build(&request, &subject->request, &subject->request_bytes, job->err);
    if (status == 0)
        status = entry_launch(job->entry, &launch, &subject->server, job->err);
    if (status == 0)
        status = wait_listening(job, subject);
    if (status != 0)
        subject_end(subject, NULL);
    return status;
}

static int check_answers(const struct job *job, const struct subject *subject,
                         const struct hammer_result *result, unsigned requests)
{
    char detail[256];
    if (result->interrupted || stopped(job))
        return err_set(job->err, EINTR, "interrupted");
    if (result->total.valid == requests && result->connect_failures == 0 && result->reconnects == 0)
        return 0;
    bool runs = server_poll(subject->server, detail, sizeof detail) == SERVER_RUNNING;
    return err_set(job->err, EPROTO,
                   "%llu of %u answers were right, over %llu connections more%s%s%s%s",
                   (unsigned long long)result->total.valid, requests,
                   (unsigned long long)(result->reconnects + result->connect_failures),
                   result->first_wrong[0] != '\0' ? ": " : "", result->first_wrong,
                   runs ? "" : "; the server ", runs ? "" : detail);
}

static int load(const struct job *job, const struct subject *subject, unsigned requests)
{
    const struct hammer_config config = {
        .address = {.sin_family = AF_INET,
                    .sin_port = htons((uint16_t)subject->port),
                    .sin_addr = {htonl(INADDR_LOOPBACK)}},
        .engine = HAMMER_EPOLL, /* everywhere the same */
        .connections = job->shape->connections,
        .threads = 1,
        .pipeline = job->shape->pipeline,
        .requests = requests,
        .timeout_ns = TIMEOUT_NS,
        .drain_ns = TIMEOUT_NS,
        .request = subject->request,
        .request_bytes = subject->request_bytes,
        .expect = contract_hello,
        .stop = job->stop,
    };
    struct hammer_result *result = mem_alloc(1, sizeof *result);
    int status = hammer_run(&config, result, job->err);
    if (status == 0)
        status = check_answers(job, subject, result, requests);
    free(result);
    return status;
}

/* ---- instructions */

static int read_profiles(const char *folder, struct callgrind *profile, struct err *err)
{
    DIR *files = opendir(folder);
    struct dirent *item;
    int status = files != NULL ? 0 : err_set(err, errno, "%s: %s", folder, strerror(errno));
    unsigned count = 0;
    while (status == 0 && (item = readdir(files)) != NULL) {
        if (item->d_name[0] == '.')
            continue;
        char *path = mem_format("%s/%s", folder, item->d_name);
        status = callgrind_add(profile, path, err);
        free(path);
        count++;
    }
    if (files != NULL)
        closedir(files);
    if (status == 0 && count == 0)
        return err_set(err, ENOENT, "callgrind wrote nothing");
    return status;
}

static void remove_folder(const char *folder)
{
    DIR *files = opendir(folder);
    struct dirent *item;
    while (files != NULL && (item = readdir(files)) != NULL)
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            unlinkat(dirfd(files), item->d_name, 0);
    if (files != NULL)
        closedir(files);
    rmdir(folder);
}

static int run_in_callgrind(const struct job *job, const char *folder, unsigned requests,
                            struct callgrind *profile)
{
    struct subject subject;
    struct server_stop stop;
    char *out = mem_format("--callgrind-out-file=%s/%%p", folder);
    /* No gdb server: it looks for commands now and then. Children are counted too. */
    char *const before[] = {"valgrind",
                            "--tool=callgrind",
                            "--quiet",
                            "--vgdb=no",
                            "--trace-children=yes",
                            "--dump-line=yes",
                            out,
                            NULL};
    int status = subject_start(job, before, &subject);
    if (status == 0) {
        status = load(job, &subject, requests);
        subject_end(&subject, &stop);
        if (status == 0 && stop.ignored_term)
            status = err_set(job->err, ETIME, "it did not end within 2 s of SIGTERM");
    }
    if (status == 0)
        status = read_profiles(folder, profile, job->err);
    free(out);
    return status;
}

static int profile_run(const struct job *job, unsigned requests, struct callgrind *profile)
{
    const char *base = getenv("TMPDIR");
    char *folder =
        mem_format("%s/showdown-cost.XXXXXX", base != NULL && base[0] == '/' ? base : "/tmp");
    int status = 0;
    if (mkdtemp(folder) == NULL)
        status = err_set(job->err, errno, "%s: %s", folder, strerror(errno));
    else {
        status = run_in_callgrind(job, folder, requests, profile);
        remove_folder(folder);
    }
    free(folder);
    return status;
}

static int count_instructions(const struct job *job, struct exact_cost *cost)
{
    struct callgrind first = {0};
    unsigned requests = first_requests(job->shape);
    int status = profile_run(job, requests, &first);
    if (status == 0)
        status = profile_run(job, requests + job->shape->requests, &cost->profile);
    if (status == 0) {
        callgrind_subtract(&cost->profile, &first);
        callgrind_sort(&cost->profile);
        cost->instructions_known = true;
        cost->instructions = (double)cost->profile.instructions / job->shape->requests;
        cost->allocations = (double)cost->profile.allocations / job->shape->requests;
    }
    callgrind_free(&first);
    return status;
}

/* ---- system calls */

static void read_when_quiet(struct calls *calls, struct calls_counts *counts)
{
    uint64_t now = clock_now_ns();
    uint64_t last = now + QUIET_MOST_NS;
    uint64_t before;
    calls_read(calls, counts);
    do {
        before = counts->total;
        clock_sleep_until_ns(now + QUIET_NS);
        calls_read(calls, counts);
        now = clock_now_ns();
    } while (counts->total != before && now < last);
}

static int load_and_count(const struct job *job, const struct subject *subject, struct calls *calls,
                          unsigned requests, struct calls_counts *spent)
{
    struct calls_counts *before = mem_alloc(1, sizeof *before);
    read_when_quiet(calls, before);
    int status = load(job, subject, requests);
    read_when_quiet(calls, spent);
    spent->total -= before->total;
    for (size_t i = 0; i < CALLS_MAX; i++)
        spent->by_number[i] -= before->by_number[i];
    free(before);
    return status;
}

static double per_request(uint64_t more, uint64_t less, const struct exact_shape *shape)
{
    return ((double)more - (double)less) / shape->requests;
}

static int compare_loads(const struct job *job, const struct subject *subject, struct calls *calls,
                         struct exact_cost *cost)
{
    struct calls_counts *less = mem_alloc(2, sizeof *less);
    struct calls_counts *more = less + 1;
    unsigned requests = first_requests(job->shape);
    /* The first load also makes a server grow to its size; it counts for nothing. */
    int status = load(job, subject, requests);
    if (status == 0)
        status = load_and_count(job, subject, calls, requests, less);
    if (status == 0)
        status = load_and_count(job, subject, calls, requests + job->shape->requests, more);
    if (status == 0) {
        cost->calls_known = more->total > 0;
        cost->calls = per_request(more->total, less->total, job->shape);
        for (size_t i = 0; i < CALLS_MAX; i++)
            cost->calls_by_number[i] =
                per_request(more->by_number[i], less->by_number[i], job->shape);
        if (more->total == 0)
            snprintf(
                cost->calls_why, sizeof cost->calls_why,
                "the kernel does not tell calls apart: PTRACE_GET_SYSCALL_INFO needs Linux 5.3");
    }
    free(less);
    return status;
}

static int count_calls(const struct job *job, struct exact_cost *cost)
{
    struct subject subject;
    struct calls *calls;
    struct err refused;
    pid_t pids[HOST_TREE_MAX];
    int status = subject_start(job, NULL, &subject);
    if (status != 0)
        return status;
    int count = server_pids(subject.server, pids, HOST_TREE_MAX);
    if (calls_watch(pids, count, &calls, &refused) == 0)
        status = compare_loads(job, &subject, calls, cost);
    else
        snprintf(cost->calls_why, sizeof cost->calls_why, "%s", refused.text);
    subject_end(&subject, NULL);
    calls_end(calls);
    return status;
}

/* ---- both */

int exact_measure(const struct entry *entry, const struct exact_shape *shape,
                  const volatile sig_atomic_t *stop, struct exact_cost *cost, struct err *err)
{
    const struct job job = {.entry = entry, .shape = shape, .stop = stop, .err = err};
    bool jit = entry->jit[0] != '\0';
    int status = 0;
    memset(cost, 0, sizeof *cost);
    if (shape->instructions && jit)
        snprintf(cost->instructions_why, sizeof cost->instructions_why,
                 "%s compiles at run time, when and what differs from run to run", entry->jit);
    if (shape->calls)
        status = count_calls(&job, cost);
    if (status == 0 && shape->instructions && !jit) {
        status = count_instructions(&job, cost);
        if (status != 0 && !stopped(&job)) {
            /* It serves well without valgrind, as the calls have shown or `check` will. */
            snprintf(cost->instructions_why, sizeof cost->instructions_why, "under valgrind: %s",
                     err->text);
            status = shape->calls ? 0 : status;
        }
    }
    return status != 0 && stopped(&job) ? err_set(err, EINTR, "interrupted") : status;
}

void exact_free(struct exact_cost *cost)
{
    callgrind_free(&cost->profile);
}

char *exact_valgrind_version(void)
{
    char line[128] = "";
    FILE *pipe = popen("valgrind --version 2>/dev/null", "re");
    if (pipe == NULL)
        return NULL;
    bool got = fgets(line, sizeof line, pipe) != NULL;
    line[strcspn(line, "\n")] = '\0';
    return pclose(pipe) == 0 && got && line[0] != '\0' ? mem_copy_string(line) : NULL;
}
