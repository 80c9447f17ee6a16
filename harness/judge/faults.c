#include "judge/faults.h"
#include "base/clock.h"
#include "base/mem.h"
#include "host/usage.h"
#include "stats/random.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CROWD = 500,
    LARGE_CROWD = 3000,
    RESETS = 200,
    SILENT = 300,
    MANY_SILENT = 3000,
    FILES_ASIDE = 100, /* a server's own, and room for those who ask meanwhile */
    SPARE_FILES = 8,   /* that the server may open before it runs out */
    BEYOND_FILES = 40,
    ENDLESS_BYTES = 200000,
    SLOW_SENDERS = 8,
    SLOW_LIMIT_S = 65
};

enum { CALM_TRIES = 6 };
static const double busy_share = 0.20;  /* of a core, of a server that has nothing to do */
static const uint64_t greedy = 8 << 20; /* growth in memory for one client that never reads */

static bool __attribute__((format(printf, 2, 3)))
wrong(struct fault_context *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->problem, sizeof c->problem, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- what the cases are made of */

/* Whether the server lives, where it is ours. */
static bool lives(struct fault_context *c)
{
    char detail[256];
    if (c->server == NULL || server_poll(c->server, detail, sizeof detail) == SERVER_RUNNING)
        return true;
    return wrong(c, "the server %s", detail);
}

static bool serves(struct fault_context *c)
{
    return lives(c) && talk_is_served(c->peer, c->problem, sizeof c->problem);
}

/* The same, within a second more than it takes to see what happened. */
static bool serves_soon(struct fault_context *c)
{
    uint64_t deadline_ns = clock_now_ns() + 2 * NS_PER_S;
    bool served;
    while (!(served = serves(c)) && clock_now_ns() < deadline_ns)
        poll(NULL, 0, 50);
    return served;
}

static struct host_usage usage_of(const struct fault_context *c)
{
    pid_t pids[HOST_TREE_MAX];
    struct host_usage usage = {0};
    int count = server_pids(c->server, pids, HOST_TREE_MAX);
    host_usage_read(pids, count, &usage, NULL);
    return usage;
}

/* True if the server, which has nothing to do, uses little of its core for `ms`. It may have work
 * left over, such as collecting garbage, so it gets some tries: a spin is in all of them. */
static bool is_calm(struct fault_context *c, int ms, const char *when)
{
    double share = 0;
    if (c->server == NULL)
        return true;
    for (int tries = 0; tries < CALM_TRIES; tries++) {
        uint64_t before_ns = clock_now_ns();
        uint64_t cpu_before_ns = usage_of(c).cpu_ns;
        poll(NULL, 0, ms);
        share = (double)(usage_of(c).cpu_ns - cpu_before_ns) / (double)(clock_now_ns() - before_ns);
        if (share < busy_share)
            return lives(c);
    }
    return wrong(c, "used %.0f%% of a core %s; expected less than %.0f%%", share * 100, when,
                 busy_share * 100);
}

static int files_of(const struct fault_context *c)
{
    char path[64];
    int count = -3; /* ".", ".." and none of the directory's own: it is read from here */
    snprintf(path, sizeof path, "/proc/%d/fd", (int)server_pid(c->server));
    DIR *folder = opendir(path);
    if (folder == NULL)
        return -1;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count + 1;
}

static void close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Opens connections until `count` or the first that fails; returns how many. */
static size_t open_all(const struct fault_context *c, int *fds, size_t count)
{
    size_t opened = 0;
    while (opened < count && (fds[opened] = talk_connect(c->peer)) >= 0)
        opened++;
    return opened;
}

static void send_text(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* what a server that closed makes of it is seen by what it does next */
}

static char *get_request(const struct fault_context *c)
{
    return mem_format("GET / HTTP/1.1\r\nHost: %s\r\n\r\n", c->peer->host);
}

static void reset(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

/* ---- crowds */

static bool files_come_back(struct fault_context *c, int before)
{
    if (c->server == NULL || before < 0)
        return true;
    uint64_t deadline_ns = clock_now_ns() + 2 * NS_PER_S;
    int after = files_of(c);
    while (after > before + SPARE_FILES && clock_now_ns() < deadline_ns) {
        poll(NULL, 0, 20);
        after = files_of(c);
    }
    if (after <= before + SPARE_FILES)
        return true;
    return wrong(c, "holds %d descriptors 2 s after all connections were closed; %d before", after,
                 before);
}

/* A crowd of connections: every second one silent, the others in the middle of a request or after
 * an answer. Others are served meanwhile, the crowd costs nothing, and its descriptors come back.
 */
static bool gather(struct fault_context *c, size_t size)
{
    int *fds = mem_alloc(size, sizeof *fds);
    char *whole = get_request(c);
    int before = c->server != NULL ? files_of(c) : -1;
    size_t opened = open_all(c, fds, size);
    for (size_t i = 0; i < opened; i++)
        if (i % 4 == 1)
            send_text(fds[i], "GET / HTTP/1.1\r\nHo");
        else if (i % 4 == 3)
            send_text(fds[i], whole);
    bool right = opened == size ||
                 wrong(c, "took %zu of %zu connections: %s", opened, size, strerror(errno));
    right = right && serves(c) && is_calm(c, 150, "with idle connections");
    close_all(fds, opened);
    right = right && files_come_back(c, before) && serves(c);
    free(whole);
    free(fds);
    return right;
}

/* What this process and the server have room for: an unprivileged user may have 1024 descriptors.
 */
static size_t affordable(const struct fault_context *c, size_t size)
{
    struct rlimit own;
    struct rlimit theirs;
    if (getrlimit(RLIMIT_NOFILE, &own) == 0 && size > own.rlim_cur / 2)
        size = own.rlim_cur / 2;
    if (c->server != NULL && prlimit(server_pid(c->server), RLIMIT_NOFILE, NULL, &theirs) == 0 &&
        size + FILES_ASIDE > theirs.rlim_cur)
        size = theirs.rlim_cur > 2 * FILES_ASIDE ? theirs.rlim_cur - FILES_ASIDE : FILES_ASIDE;
    return size;
}

/* One crowd at a time, so that entries judged side by side need no more descriptors than one. */
static bool crowd(struct fault_context *c, size_t size)
{
    static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&alone);
    bool right = gather(c, affordable(c, size));
    pthread_mutex_unlock(&alone);
    return right;
}

static bool run_crowd(struct fault_context *c)
{
    return crowd(c, CROWD);
}

static bool run_large_crowd(struct fault_context *c)
{
    return crowd(c, LARGE_CROWD);
}

static bool silent(struct fault_context *c, unsigned count)
{
    int before = c->server != NULL ? files_of(c) : -1;
    for (unsigned i = 0; i < count; i++) {
        int fd = talk_connect(c->peer);
        if (fd < 0)
            return wrong(c, "connection %u of %u refused: %s", i + 1, count, strerror(errno));
        close(fd);
    }
    return serves_soon(c) && is_calm(c, 150, "after the connections had closed") &&
           files_come_back(c, before);
}

static bool run_silent(struct fault_context *c)
{
    return silent(c, SILENT);
}

static bool run_many_silent(struct fault_context *c)
{
    return silent(c, MANY_SILENT);
}

/* Sends `request` over and over, reading nothing, until the server has taken nothing for 300 ms or
 * `most` bytes. Returns the bytes sent; the last request may be cut. */
static size_t pour(int fd, const char *request, size_t most)
{
    enum { BATCH = 1000 };
    size_t size = strlen(request);
    char *batch = mem_alloc(BATCH, size);
    size_t total = 0;
    for (size_t i = 0; i < BATCH; i++)
        memcpy(batch + i * size, request, size);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    while (total < most && poll(&wait, 1, 300) == 1) {
        size_t at = total % (BATCH * size);
        ssize_t sent = send(fd, batch + at, BATCH * size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0)
            break;
        total += (size_t)sent;
    }
    free(batch);
    return total;
}

/* ---- lines without an end */

/* In each place where a line may stand, one that is longer than any buffer for it and never ends. A
 * server refuses it, or waits, but it does not turn in circles. */
static bool run_endless_lines(struct fault_context *c)
{
#define HEAD    "POST / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED HEAD "Transfer-Encoding: chunked\r\n\r\n"
    static const char *const begun[] = {
        "", "GET /", HEAD, HEAD "X: ", CHUNKED "000", CHUNKED "5;", CHUNKED "0\r\nX: ",
    };
#undef CHUNKED
#undef HEAD
    enum { PLACES = sizeof begun / sizeof begun[0] };
    int fds[PLACES];
    char piece[1001];
    int before = c->server != NULL ? files_of(c) : -1;
    size_t opened = open_all(c, fds, PLACES);
    memset(piece, 'a', sizeof piece - 1);
    piece[sizeof piece - 1] = '\0';
    for (size_t i = 0; i < opened; i++) {
        send_text(fds[i], begun[i]);
        pour(fds[i], piece, ENDLESS_BYTES);
    }
    bool right = opened == PLACES || wrong(c, "connection refused: %s", strerror(errno));
    right = right && is_calm(c, 300, "while lines had no end") && serves(c);
    close_all(fds, opened);
    return right && serves_soon(c) && files_come_back(c, before);
}

/* ---- resets */

/* One reset, in a phase by chance: before a byte, within the head, within a body, at once after a
 * request, after a pipeline whose answers are not read, between two answers. */
static bool one_reset(struct fault_context *c, struct random *random, const char *whole)
{
    int fd = talk_connect(c->peer);
    if (fd < 0)
        return wrong(c, "connection refused: %s", strerror(errno));
    char *post =
        mem_format("POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\nhalf", c->peer->host);
    switch (random_below(random, 6)) {
    case 0:
        break;
    case 1:
        send_text(fd, "GET / HTTP/1.1\r\nHost");
        break;
    case 2:
        send_text(fd, post);
        break;
    case 3:
        send_text(fd, whole);
        break;
    case 4:
        for (int i = 0; i < 64; i++)
            send_text(fd, whole);
        break;
    default:
        send_text(fd, whole);
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 100);
        send_text(fd, whole);
        break;
    }
    if (random_below(random, 4) == 0)
        poll(NULL, 0, 2); /* so that the server reads before the reset */
    reset(fd);
    free(post);
    return true;
}

static bool run_resets(struct fault_context *c)
{
    struct random random;
    char *whole = get_request(c);
    bool right = true;
    int before = c->server != NULL ? files_of(c) : -1;
    random_seed(&random, c->seed);
    for (unsigned i = 0; i < RESETS && right; i++)
        right = one_reset(c, &random, whole);
    free(whole);
    return right && serves_soon(c) && is_calm(c, 150, "after the resets") &&
           files_come_back(c, before);
}

/* ---- descriptors */

/* Restores what it was; -1 if it could not be set. */
static int limit_files(pid_t pid, rlim_t files, struct rlimit *was)
{
    struct rlimit now;
    if (prlimit(pid, RLIMIT_NOFILE, NULL, was) != 0)
        return -1;
    now = *was;
    now.rlim_cur = files;
    return prlimit(pid, RLIMIT_NOFILE, &now, NULL);
}

static bool run_descriptors(struct fault_context *c)
{
    int fds[BEYOND_FILES];
    struct rlimit was;
    pid_t pid = server_pid(c->server);
    int open_now = files_of(c);
    char *whole = get_request(c);
    if (open_now < 0 || limit_files(pid, (rlim_t)open_now + SPARE_FILES, &was) != 0) {
        free(whole);
        return wrong(c, "the limit of its descriptors could not be set: %s", strerror(errno));
    }
    size_t opened = open_all(c, fds, BEYOND_FILES);
    for (size_t i = 0; i < opened; i++)
        send_text(fds[i], whole);
    poll(NULL, 0, 50);
    bool right = is_calm(c, 500, "while its descriptors were exhausted");
    close_all(fds, opened);
    prlimit(pid, RLIMIT_NOFILE, &was, NULL);
    free(whole);
    return right && serves_soon(c) && files_come_back(c, open_now);
}

/* ---- a client that never reads */

/* Reads and counts answers until `count` came, after the rest of a request that was cut. */
static bool read_answers(struct fault_context *c, int fd, size_t count)
{
    struct http_scanner *scanner = mem_alloc(1, sizeof *scanner);
    char bytes[16384];
    size_t seen = 0;
    bool right = true;
    http_scanner_start(scanner, false);
    while (right && seen < count) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ssize_t got = poll(&wait, 1, (int)(TALK_ANSWER_WAIT_NS / NS_PER_MS)) == 1
                          ? recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)
                          : -1;
        if (got <= 0) {
            right = wrong(c, "of %zu requests sent, %zu were answered when the client read at last",
                          count, seen);
            break;
        }
        for (size_t at = 0, used; at < (size_t)got && right; at += used) {
            enum http_scan scan = http_scanner_feed(scanner, bytes + at, (size_t)got - at, &used);
            if (scan == HTTP_SCAN_BAD ||
                (scan == HTTP_SCAN_DONE && scanner->response.status != 200))
                right = wrong(c, "answer %zu is wrong: %s", seen + 1,
                              scan == HTTP_SCAN_BAD ? scanner->problem : "not a 200");
            if (scan == HTTP_SCAN_DONE) {
                seen++;
                http_scanner_start(scanner, false);
            }
        }
    }
    free(scanner);
    return right;
}

static bool run_never_reads(struct fault_context *c)
{
    enum { MOST = 32 << 20 };
    int small = 32768;
    char *request = get_request(c);
    size_t size = strlen(request);
    uint64_t before = usage_of(c).rss_bytes;
    int fd = talk_connect(c->peer);
    bool right = fd >= 0 || wrong(c, "connection refused: %s", strerror(errno));
    if (right) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        size_t sent = pour(fd, request, MOST);
        uint64_t after = usage_of(c).rss_bytes;
        if (after > before + greedy)
            right = wrong(c,
                          "grew by %.1f MiB for one client that sent %.1f MiB of requests and "
                          "read nothing; expected less than %llu MiB",
                          (double)(after - before) / (1 << 20), (double)sent / (1 << 20),
                          (unsigned long long)(greedy >> 20));
        right = right && serves(c) && is_calm(c, 150, "while a client did not read");
        right = right && read_answers(c, fd, sent / size);
    }
    if (fd >= 0)
        close(fd);
    free(request);
    return right && serves(c);
}

/* ---- signals */

static bool ends_well(struct fault_context *c, const char *with)
{
    struct server_stop stop;
    server_stop(c->server, &stop);
    c->server = NULL;
    c->late = stop.ignored_term;
    if (stop.ignored_term)
        return wrong(c, "with %s: lived on for 2 s after SIGTERM", with);
    if (stop.left_children)
        return wrong(c, "with %s: left processes behind on SIGTERM", with);
    if (stop.exit_status != 0)
        return wrong(c, "with %s: ended on SIGTERM with wait status 0x%04x; expected exit 0", with,
                     (unsigned)stop.exit_status);
    return true;
}

/* Idle: open after an answer, and without a byte. */
static bool run_sigterm_idle(struct fault_context *c)
{
    int fds[20];
    char *whole = get_request(c);
    size_t opened = open_all(c, fds, 20);
    for (size_t i = 0; i < opened / 2; i++)
        send_text(fds[i], whole);
    poll(NULL, 0, 50);
    bool right = ends_well(c, "idle connections");
    close_all(fds, opened);
    free(whole);
    return right;
}

static bool run_sigterm_half_sent(struct fault_context *c)
{
    int fds[20];
    char *post =
        mem_format("POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\nhalf", c->peer->host);
    size_t opened = open_all(c, fds, 20);
    for (size_t i = 0; i < opened; i++)
        send_text(fds[i], i % 2 == 0 ? "GET / HTTP/1.1\r\nHo" : post);
    poll(NULL, 0, 50);
    bool right = ends_well(c, "half-sent requests");
    close_all(fds, opened);
    free(post);
    return right;
}

/* Busy: answers that nobody reads stand in the way. */
static bool run_sigterm_busy(struct fault_context *c)
{
    int small = 8192;
    int fds[8];
    char *whole = get_request(c);
    size_t opened = open_all(c, fds, 8);
    for (size_t i = 0; i < opened; i++) {
        setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        pour(fds[i], whole, 1 << 20);
    }
    bool right = ends_well(c, "connections whose client does not read");
    close_all(fds, opened);
    free(whole);
    return right;
}

/* epoll_wait(2) and others fail with EINTR after SIGCONT (signal(7)). */
static bool run_stop_and_go(struct fault_context *c)
{
    char *whole = get_request(c);
    pid_t pid = server_pid(c->server);
    bool right = true;
    for (int i = 0; i < 3 && right; i++) {
        int fd = talk_connect(c->peer);
        kill(pid, SIGSTOP);
        poll(NULL, 0, 20);
        send_text(fd, whole);
        kill(pid, SIGCONT);
        right = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 3000) == 1 ||
                wrong(c, "a request sent between SIGSTOP and SIGCONT is not answered");
        right = right && serves(c);
        if (fd >= 0)
            close(fd);
    }
    free(whole);
    return right;
}

/* ---- slow senders */

static bool is_closed(int fd)
{
    char bytes[4096];
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ; /* a 408 may come first */
    return got == 0 || (errno != EAGAIN && errno != EINTR);
}

static bool run_slow_senders(struct fault_context *c)
{
    int fds[SLOW_SENDERS];
    size_t left = open_all(c, fds, SLOW_SENDERS);
    bool right = left == SLOW_SENDERS || wrong(c, "connection refused: %s", strerror(errno));
    for (size_t i = 0; i < left; i++)
        send_text(fds[i], i % 2 == 0 ? "GET / HTTP/1.1\r\nHost: a\r\nX-" : "GET /");
    uint64_t deadline_ns = clock_now_ns() + SLOW_LIMIT_S * NS_PER_S;
    while (right && left > 0 && clock_now_ns() < deadline_ns) {
        poll(NULL, 0, 1000);
        for (size_t i = 0; i < left;) {
            send_text(fds[i], "a");
            if (!is_closed(fds[i])) {
                i++;
                continue;
            }
            close(fds[i]);
            fds[i] = fds[--left];
        }
        right = serves(c);
    }
    close_all(fds, left);
    if (right && left > 0)
        return wrong(c,
                     "%zu of %d clients that sent a byte of their head a second were still "
                     "waited for after %d s",
                     left, SLOW_SENDERS, SLOW_LIMIT_S);
    return right;
}

/* ---- the table */

static const struct fault faults[] = {
    {"resets", FAULT_NEEDS_ANY, "<200 connections, each reset in a phase by chance>",
     "the server goes on, calm, with its descriptors back", run_resets},
    {"crowd", FAULT_NEEDS_ANY, "<500 connections open: silent, half a request, answered once>",
     "others are served, and the descriptors come back", run_crowd},
    {"large-crowd", FAULT_NEEDS_ANY,
     "<3000 connections open: silent, half a request, answered once>",
     "others are served, and the descriptors come back", run_large_crowd},
    {"silent", FAULT_NEEDS_ANY, "<300 connections opened and closed without a byte>",
     "the server goes on, calm, with its descriptors back", run_silent},
    {"many-silent", FAULT_NEEDS_ANY, "<3000 connections opened and closed without a byte>",
     "the server goes on, calm, with its descriptors back", run_many_silent},
    {"endless-lines", FAULT_NEEDS_ANY,
     "<200 kB without a line end in each place where a line may stand, the connections left open>",
     "less than 20% of a core meanwhile, others served", run_endless_lines},
    {"descriptors", FAULT_NEEDS_OURS,
     "<room for 8 descriptors more, 40 connections, then room again>",
     "less than 20% of a core meanwhile, served again within 2 s", run_descriptors},
    {"never-reads", FAULT_NEEDS_OURS, "<up to 32 MiB of GET / on one connection, nothing read>",
     "less than 8 MiB more of memory, and every answer once it is read", run_never_reads},
    {"stop-and-go", FAULT_NEEDS_OURS, "<SIGSTOP, a request, SIGCONT; three times>",
     "the request answered, others too", run_stop_and_go},
    {"sigterm-idle", FAULT_NEEDS_END, "<20 connections idle, then SIGTERM>",
     "the process ends within 2 s with status 0", run_sigterm_idle},
    {"sigterm-half-sent", FAULT_NEEDS_END, "<20 requests half sent, then SIGTERM>",
     "the process ends within 2 s with status 0", run_sigterm_half_sent},
    {"sigterm-busy", FAULT_NEEDS_END, "<8 clients that pipeline and do not read, then SIGTERM>",
     "the process ends within 2 s with status 0", run_sigterm_busy},
    {"slow-senders", FAULT_NEEDS_ANY, "<8 clients that send a byte of their head a second>",
     "others are served, and the slow ones cut off within 65 s", run_slow_senders},
};

const struct fault *fault_find(const char *name)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (strcmp(faults[i].name, name) == 0)
            return &faults[i];
    return NULL;
}
