#include "entry/server.h"

#include "base/clock.h"
#include "base/mem.h"
#include "entry/keeper.h"
#include "entry/path.h"
#include "entry/scratch.h"
#include "host/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long the keeper may take to end a tree, and some more for a busy machine. */
#define STOP_LIMIT_NS (KEEPER_TERM_NS + KEEPER_GRACE_NS + KEEPER_KILL_NS + 5 * NS_PER_S)

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* The server's 0, 1 and 2 are set up by dup2(); if the harness was started with some of them
 * closed, a descriptor that came to lie there would be overwritten. */
static int above_standard(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return higher;
}

static int open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0) {
        ends[0] = ends[1] = -1;
        return -1;
    }
    ends[0] = above_standard(ends[0]);
    ends[1] = above_standard(ends[1]);
    return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

static int open_control(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        ends[0] = ends[1] = -1;
        return -1;
    }
    ends[0] = above_standard(ends[0]);
    ends[1] = above_standard(ends[1]);
    return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

static struct keeper_report *map_report(void)
{
    struct keeper_report *report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return NULL;
    atomic_store(&report->exit_status, -1);
    return report;
}

/* With all signals blocked, so that no handler of the harness runs in the child. */
static pid_t fork_keeper(const struct keeper_setup *setup)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        keeper_run(setup);
    int code = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return pid;
}

static int describe_failure(const struct keeper_failure *failure, const struct server_start *start,
                            struct err *err)
{
    const char *program = start->argv[0];
    const char *reason = strerror(failure->code);
    switch (failure->stage) {
    case KEEPER_FORK:
        return err_set(err, failure->code, "cannot start %s: fork: %s", program, reason);
    case KEEPER_REDIRECT:
        return err_set(err, failure->code, "cannot start %s: /dev/null: %s", program, reason);
    case KEEPER_PIN:
        return err_set(err, failure->code, "cannot start %s: pinning it to CPU %d%s: %s", program,
                       start->cpus[0], start->cpu_count > 1 ? " and others" : "", reason);
    case KEEPER_LIMIT:
        return err_set(err, failure->code, "cannot start %s: its limit of open files: %s", program,
                       reason);
    case KEEPER_CHDIR:
        return err_set(err, failure->code, "cannot start %s: its folder %s: %s", program,
                       start->folder, reason);
    case KEEPER_EXEC:
        break;
    }
    return err_set(err, failure->code, "cannot start %s: %s", program, reason);
}

/* Until exec has closed the pipe, or a failure came through it. */
static int wait_launched(int launched, const struct server *server,
                         const struct server_start *start, struct err *err)
{
    struct keeper_failure failure;
    ssize_t got;
    do
        got = read(launched, &failure, sizeof failure);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof failure)
        return describe_failure(&failure, start, err);
    if (atomic_load(&server->report->server) > 0)
        return 0;
    return err_set(err, ECHILD, "cannot start %s: its keeper was killed", start->argv[0]);
}

static void free_server(struct server *server)
{
    close_if_open(server->control);
    if (server->keeper > 0)
        while (waitpid(server->keeper, NULL, 0) < 0 && errno == EINTR)
            continue;
    if (server->report != NULL)
        munmap(server->report, sizeof *server->report);
    scratch_remove(server->scratch); /* where its keeper was killed and could not */
    free(server->scratch);
    free(server);
}

static int launch(struct server *server, struct keeper_setup *setup, struct err *err)
{
    const char *program = setup->start->argv[0];
    int control[2] = {-1, -1};
    int status = 0;
    server->report = setup->report = map_report();
    if (server->report == NULL || open_control(control) != 0 || open_pipe(setup->launched) != 0 ||
        (!setup->start->inherit_output && open_pipe(setup->output) != 0)) {
        status = err_set(err, errno, "cannot start %s: %s", program, strerror(errno));
        goto out;
    }
    if (setup->output[0] >= 0)
        fcntl(setup->output[0], F_SETFL, O_NONBLOCK);
    server->control = control[0];
    setup->control = control[1];
    server->started_ns = clock_now_ns();
    server->keeper = fork_keeper(setup);
    if (server->keeper < 0) {
        status = err_set(err, errno, "cannot start %s: fork: %s", program, strerror(errno));
        goto out;
    }
    close(setup->launched[1]);
    setup->launched[1] = -1;
    status = wait_launched(setup->launched[0], server, setup->start, err);
out:
    if (server->control < 0)
        close_if_open(control[0]);
    close_if_open(control[1]);
    for (int i = 0; i < 2; i++) {
        close_if_open(setup->output[i]);
        close_if_open(setup->launched[i]);
    }
    return status;
}

int server_start(const struct server_start *start, struct server **server, struct err *err)
{
    *server = NULL;
    if (start->argv == NULL || start->argv[0] == NULL)
        return err_set(err, EINVAL, "cannot start a server: its command is empty");
    char *program = entry_program_find(start->argv[0]);
    if (program == NULL)
        return err_set(err, ENOENT, "cannot start %s: not found on PATH", start->argv[0]);
    struct keeper_setup setup = {
        .start = start, .program = program, .output = {-1, -1}, .launched = {-1, -1}};
    struct server *new = mem_alloc(1, sizeof *new);
    new->control = -1;
    new->port = start->port;
    new->scratch = start->scratch != NULL ? mem_copy_string(start->scratch) : NULL;
    int status = launch(new, &setup, err);
    if (status == 0)
        *server = new;
    else
        free_server(new);
    free(program);
    return status;
}

/* The keeper ends with the tree; when it ended and left the server as running, something killed
 * the keeper, and the kernel the server (PR_SET_PDEATHSIG). Takes late answers off the socket. */
static bool keeper_is_gone(const struct server *server)
{
    char bytes[16];
    ssize_t got;
    while ((got = recv(server->control, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        continue;
    return got == 0;
}

#define FLUSH_LIMIT_MS 500

/* What a server wrote before it was seen to do something wrong is in the pipe, but the keeper may
 * not have run since. */
static void flush_output(const struct server *server)
{
    const char wish = KEEPER_FLUSH;
    if (keeper_is_gone(server) || send(server->control, &wish, 1, MSG_NOSIGNAL) != 1)
        return;
    struct pollfd control = {.fd = server->control, .events = POLLIN};
    poll(&control, 1, FLUSH_LIMIT_MS);
    keeper_is_gone(server);
}

static void describe_end(const struct keeper_report *report, char *detail, size_t size)
{
    int status = atomic_load(&report->exit_status);
    if (WIFSIGNALED(status)) {
        const char *name = sigdescr_np(WTERMSIG(status));
        snprintf(detail, size, "killed by signal %d (%s)", WTERMSIG(status),
                 name != NULL ? name : "unknown");
    } else if (atomic_load(&report->lived_on)) {
        snprintf(detail, size,
                 "exited with status %d while its children lived on: it forks into the background; "
                 "run it in the foreground",
                 WEXITSTATUS(status));
    } else {
        snprintf(detail, size, "exited with status %d", WEXITSTATUS(status));
    }
}

bool server_lacks(struct server *server)
{
    char detail[64];
    if (server_poll(server, detail, sizeof detail) != SERVER_EXITED)
        return false;
    int status = atomic_load(&server->report->exit_status);
    return WIFEXITED(status) && WEXITSTATUS(status) == SERVER_STATUS_LACKS;
}

enum server_state server_poll(struct server *server, char *detail, size_t detail_bytes)
{
    bool gone = keeper_is_gone(server); /* asked first: then the state is its last word */
    enum server_state state = (enum server_state)atomic_load(&server->report->state);
    if (state == SERVER_FLOODED)
        snprintf(detail, detail_bytes,
                 "wrote over %d KiB to standard output and error, and was ended: it floods; a "
                 "server writes nothing per request",
                 SERVER_OUTPUT_MAX / 1024);
    else if (state != SERVER_RUNNING)
        describe_end(server->report, detail, detail_bytes);
    else if (gone)
        snprintf(detail, detail_bytes, "was ended: something killed its keeper, process %d",
                 (int)server->keeper);
    else
        snprintf(detail, detail_bytes, "running");
    return state == SERVER_RUNNING && gone ? SERVER_SIGNALED : state;
}

pid_t server_pid(const struct server *server)
{
    return atomic_load(&server->report->server);
}

int server_pids(struct server *server, pid_t *pids, int max)
{
    pid_t tree[HOST_TREE_MAX];
    int count = host_tree(server->keeper, tree);
    int used = 0;
    for (int i = 1; i < count && used < max; i++) {
        pids[used] = tree[i];
        if (tree[i] == server_pid(server)) {
            pids[used] = pids[0];
            pids[0] = tree[i];
        }
        used++;
    }
    return used;
}

/* The length of the UTF-8 character at `at` (RFC 3629, section 4; overlong and surrogate forms are
 * let through), or 0 if it is none that can be printed. */
static size_t printable(const char *at, const char *end)
{
    unsigned char c = (unsigned char)*at;
    size_t size = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : 0;
    if (c >= 0xF0 && c < 0xF5)
        size = 4;
    if (size == 1)
        return c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7F) ? 1 : 0;
    if (size == 0 || (size_t)(end - at) < size)
        return 0;
    for (size_t i = 1; i < size; i++)
        if (((unsigned char)at[i] & 0xC0) != 0x80)
            return 0;
    return size;
}

static void make_printable(char *text, size_t size)
{
    char *end = text + size;
    for (char *at = text; at < end;) {
        size_t length = printable(at, end);
        if (length == 0)
            *at = '?';
        at += length > 0 ? length : 1;
    }
}

/* Copies the last `want` bytes kept; what the keeper wrote over meanwhile is newer output in the
 * place of older: no harm in a message. */
static size_t copy_output(const struct keeper_report *report, char *bytes, size_t want)
{
    uint64_t written = atomic_load(&report->written_bytes);
    size_t size = written < want ? (size_t)written : want;
    for (size_t i = 0; i < size; i++)
        bytes[i] = atomic_load_explicit(&report->output[(written - size + i) % SERVER_OUTPUT_KEEP],
                                        memory_order_relaxed);
    return size;
}

void server_output(struct server *server, char *text, size_t bytes)
{
    if (bytes == 0)
        return;
    flush_output(server);
    size_t room = bytes - 1 < SERVER_OUTPUT_KEEP ? bytes - 1 : SERVER_OUTPUT_KEEP;
    size_t size = copy_output(server->report, text, room);
    bool cut = atomic_load(&server->report->written_bytes) > size;
    text[size] = '\0';
    make_printable(text, size);
    char *line = cut ? memchr(text, '\n', size) : NULL;
    if (line != NULL && line[1] != '\0')
        memmove(text, line + 1, strlen(line + 1) + 1);
}

/* ru_maxrss of wait4(2) starts, at exec, from what the forked copy of the harness held
 * (setmax_mm_hiwater_rss in the kernel's exec_mmap): a smaller server's own peak hides below it.
 * The kernel's count is rough (mm counters are batched per CPU since Linux 6.2), hence the margin.
 */
static uint64_t rss_peak(const struct keeper_report *report, uint64_t seen_bytes)
{
    uint64_t at_end = atomic_load(&report->rss_peak_bytes);
    uint64_t floor = atomic_load(&report->rss_floor_bytes);
    if (seen_bytes > 0)
        return seen_bytes;
    return at_end > floor + floor / 4 + (8 << 20) ? at_end : 0;
}

/* Until the keeper has ended the tree and itself. */
static void wait_for_keeper(const struct server *server)
{
    uint64_t deadline = clock_now_ns() + STOP_LIMIT_NS;
    while (!keeper_is_gone(server)) {
        uint64_t now = clock_now_ns();
        if (now >= deadline) {
            kill(server->keeper, SIGKILL);
            return;
        }
        struct pollfd control = {.fd = server->control, .events = POLLIN};
        poll(&control, 1, (int)((deadline - now) / NS_PER_MS) + 1);
    }
}

void server_stop(struct server *server, struct server_stop *stop)
{
    if (server == NULL)
        return;
    struct keeper_report *report = server->report;
    pid_t pid = server_pid(server);
    struct host_usage usage = {0};
    if (atomic_load(&report->state) == SERVER_RUNNING)
        host_usage_read(&pid, 1, &usage, NULL);
    const char wish = KEEPER_STOP;
    send(server->control, &wish, 1, MSG_NOSIGNAL);
    wait_for_keeper(server);
    if (atomic_load(&report->state) == SERVER_RUNNING)
        kill(-pid, SIGKILL); /* its keeper was killed: what is left of the group */
    uint64_t term_ns = atomic_load(&report->term_ns);
    uint64_t ended_ns = atomic_load(&report->ended_ns);
    if (stop != NULL)
        *stop = (struct server_stop){
            .ignored_term = atomic_load(&report->ignored_term),
            .left_children = atomic_load(&report->left_children),
            .exit_status = atomic_load(&report->exit_status),
            .took_ns = term_ns > 0 && ended_ns > term_ns ? ended_ns - term_ns : 0,
            .rss_peak_bytes = rss_peak(report, usage.rss_peak_bytes),
        };
    free_server(server);
}
