#include "entry/keeper.h"

#include "base/clock.h"
#include "entry/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct keeper {
    struct keeper_report *report;
    int control;
    int output;  /* -1 once it has ended */
    int signals; /* signalfd for SIGCHLD */
    pid_t server;
    bool server_ended;
    bool childless;       /* the whole tree has ended */
    uint64_t deadline_ns; /* when patience ends and all are killed; 0: not running */
};

/* ---- the server's side of the fork, up to exec */

static _Noreturn void fail(const struct keeper_setup *setup, enum keeper_stage stage)
{
    struct keeper_failure failure = {.stage = stage, .code = errno};
    ssize_t ignored = write(setup->launched[1], &failure, sizeof failure);
    (void)ignored; /* with the harness gone there is nobody to tell */
    _exit(127);
}

/* Handlers and ignored signals of the harness are no business of the server's. */
static void reset_signals(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int signal = 1; signal < NSIG; signal++)
        sigaction(signal, &standard, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int redirect(const struct keeper_setup *setup)
{
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0)
        return -1;
    if (setup->start->inherit_output)
        return 0;
    if (dup2(setup->output[1], STDOUT_FILENO) < 0 || dup2(setup->output[1], STDERR_FILENO) < 0)
        return -1;
    return 0;
}

/* Nothing of the harness but standard input, output and error goes through exec.
 * CLOSE_RANGE_CLOEXEC is of Linux 5.11; older kernels, and seccomp profiles that do not know the
 * call, take the loop. */
static void leave_files_behind(void)
{
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    int end = files.rlim_cur < 65536 ? (int)files.rlim_cur : 65536;
    for (int fd = 3; fd < end; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int pin(const int *cpus, int count)
{
    if (count == 0)
        return 0;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        CPU_SET((size_t)cpus[i], &set);
    return sched_setaffinity(0, sizeof set, &set);
}

/* As many files as wanted, or as the hard limit gives: the hammer's check of its own limit is what
 * tells the user. A crash leaves no core file in the entry's folder. */
static int limit(unsigned wanted)
{
    struct rlimit none = {0};
    getrlimit(RLIMIT_CORE, &none);
    none.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &none);

    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return -1;
    if (wanted <= files.rlim_cur)
        return 0;
    struct rlimit raised = {.rlim_cur = wanted,
                            .rlim_max = wanted > files.rlim_max ? wanted : files.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return 0;
    files.rlim_cur = files.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &files);
}

static _Noreturn void become_server(const struct keeper_setup *setup, pid_t keeper)
{
    const struct server_start *start = setup->start;
    setsid(); /* away from the terminal's Ctrl-C, and a process group to signal as a whole */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(127); /* it died before the line above */
    if (redirect(setup) != 0)
        fail(setup, KEEPER_REDIRECT);
    if (pin(start->cpus, start->cpu_count) != 0)
        fail(setup, KEEPER_PIN);
    if (limit(start->files) != 0)
        fail(setup, KEEPER_LIMIT);
    if (chdir(start->folder) != 0)
        fail(setup, KEEPER_CHDIR);
    leave_files_behind();
    reset_signals();
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        atomic_store(&setup->report->rss_floor_bytes, (uint64_t)usage.ru_maxrss * 1024);
    execve(setup->program, start->argv, environ);
    fail(setup, KEEPER_EXEC);
}

/* ---- watching */

static void keep_output(struct keeper_report *report, const char *bytes, size_t size)
{
    uint64_t at = atomic_load(&report->written_bytes);
    for (size_t i = 0; i < size; i++)
        atomic_store_explicit(&report->output[(at + i) % SERVER_OUTPUT_KEEP], bytes[i],
                              memory_order_relaxed);
    atomic_store(&report->written_bytes, at + size);
}

/* Reads what is there, a bounded lot, so that a flood keeps the keeper from nothing else. */
static void read_output(struct keeper *keeper)
{
    char buffer[4096];
    for (int i = 0; i < 64 && keeper->output >= 0; i++) {
        ssize_t got = read(keeper->output, buffer, sizeof buffer);
        if (got > 0) {
            keep_output(keeper->report, buffer, (size_t)got);
        } else if (got == 0) {
            close(keeper->output);
            keeper->output = -1;
        } else if (errno != EINTR) {
            return;
        }
    }
}

static void note_end(struct keeper *keeper, int status, const struct rusage *usage)
{
    struct keeper_report *report = keeper->report;
    keeper->server_ended = true;
    atomic_store(&report->exit_status, status);
    atomic_store(&report->ended_ns, clock_now_ns());
    atomic_store(&report->rss_peak_bytes, (uint64_t)usage->ru_maxrss * 1024);
    read_output(keeper);
}

static void set_state(struct keeper *keeper, enum server_state state)
{
    int running = SERVER_RUNNING; /* the first reason stands */
    atomic_compare_exchange_strong(&keeper->report->state, &running, (int)state);
}

/* All that have ended: the server, and descendants that came to us, their subreaper. */
static void reap(struct keeper *keeper)
{
    bool was_running = !keeper->server_ended;
    int status;
    struct rusage usage;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
        if (pid == keeper->server)
            note_end(keeper, status, &usage);
    keeper->childless = pid < 0 && errno == ECHILD;
    if (!was_running || !keeper->server_ended)
        return;
    atomic_store(&keeper->report->lived_on, !keeper->childless);
    status = atomic_load(&keeper->report->exit_status);
    set_state(keeper, WIFSIGNALED(status) ? SERVER_SIGNALED : SERVER_EXITED);
    keeper->deadline_ns = clock_now_ns() + KEEPER_GRACE_NS;
}

/* Our children's pids as text, from the kernel (CONFIG_PROC_CHILDREN). */
static size_t read_children(char *text, size_t size)
{
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, size);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

/* A process group is killed as one: fork(2) starts anew when a signal came for the group, so none
 * is missed however fast it forks. Ours is never meant: a child in it has not come to setsid(). */
static void kill_child(pid_t child)
{
    pid_t group = getpgid(child);
    if (group > 1 && group != getpgrp())
        kill(-group, SIGKILL);
    kill(child, SIGKILL);
}

static void kill_children(const struct keeper *keeper)
{
    char text[4096];
    size_t size = read_children(text, sizeof text);
    pid_t child = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            child = child * 10 + (text[i] - '0');
        } else if (child > 0) {
            kill_child(child);
            child = 0;
        }
    }
    if (size == 0 && !keeper->server_ended)
        kill_child(keeper->server);
}

/* When a process ends its children become ours, so killing children until there are none ends the
 * tree, wherever its processes moved by setsid() or a second fork. */
static void kill_tree(struct keeper *keeper)
{
    uint64_t give_up = clock_now_ns() + KEEPER_KILL_NS;
    reap(keeper);
    while (!keeper->childless && clock_now_ns() < give_up) {
        kill_children(keeper);
        struct pollfd signals = {.fd = keeper->signals, .events = POLLIN};
        struct signalfd_siginfo info;
        if (poll(&signals, 1, 5) > 0 && read(keeper->signals, &info, sizeof info) < 0)
            continue;
        reap(keeper);
    }
    read_output(keeper);
}

static void ask_to_end(struct keeper *keeper)
{
    if (keeper->server_ended) {
        kill_tree(keeper);
        return;
    }
    uint64_t now = clock_now_ns();
    atomic_store(&keeper->report->term_ns, now);
    keeper->deadline_ns = now + KEEPER_TERM_NS;
    kill(keeper->server, SIGTERM);
    kill(keeper->server, SIGCONT); /* a stopped one could not hear it */
}

/* The harness has a wish; at the end of file it is gone. */
static void hear(struct keeper *keeper)
{
    char wish;
    ssize_t got = read(keeper->control, &wish, 1);
    if (got == 1 && wish == KEEPER_FLUSH) {
        read_output(keeper);
        send(keeper->control, &wish, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (got == 1)
        ask_to_end(keeper);
    else if (got == 0 || (errno != EINTR && errno != EAGAIN))
        kill_tree(keeper);
}

static void lose_patience(struct keeper *keeper)
{
    if (keeper->server_ended)
        atomic_store(&keeper->report->left_children, true);
    else
        atomic_store(&keeper->report->ignored_term, true);
    kill_tree(keeper);
}

static int wait_ms(const struct keeper *keeper)
{
    if (keeper->deadline_ns == 0)
        return -1;
    uint64_t now = clock_now_ns();
    return keeper->deadline_ns <= now ? 0 : (int)((keeper->deadline_ns - now) / NS_PER_MS) + 1;
}

static void watch(struct keeper *keeper)
{
    while (!keeper->childless) {
        struct pollfd fds[] = {{.fd = keeper->control, .events = POLLIN},
                               {.fd = keeper->signals, .events = POLLIN},
                               {.fd = keeper->output, .events = POLLIN}};
        if (poll(fds, 3, wait_ms(keeper)) < 0)
            continue;
        if (fds[2].revents != 0)
            read_output(keeper);
        if (atomic_load(&keeper->report->written_bytes) > SERVER_OUTPUT_MAX) {
            set_state(keeper, SERVER_FLOODED);
            kill_tree(keeper);
            return;
        }
        struct signalfd_siginfo info;
        if (fds[1].revents != 0 && read(keeper->signals, &info, sizeof info) > 0)
            reap(keeper);
        if (fds[0].revents != 0)
            hear(keeper);
        if (keeper->deadline_ns != 0 && clock_now_ns() >= keeper->deadline_ns && !keeper->childless)
            lose_patience(keeper);
    }
}

/* ---- the keeper's start */

/* Closes all but the two: sockets of the hammer and of other keepers must not live on here. */
static void keep_only(int a, int b)
{
    int last = a > b ? a : b;
    for (int fd = 3; fd < last; fd++)
        if (fd != a && fd != b)
            close(fd);
    if (close_range((unsigned)last + 1, ~0U, 0) == 0)
        return;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    for (int fd = last + 1; fd < 65536 && (rlim_t)fd < files.rlim_cur; fd++)
        close(fd);
}

static void take_null_device(void)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

void keeper_run(const struct keeper_setup *setup)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &standard, NULL); /* ignored, it would reap children unseen */
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "showdown-keeper");

    pid_t self = getpid();
    pid_t server = _Fork();
    if (server == 0)
        become_server(setup, self);
    if (server < 0)
        fail(setup, KEEPER_FORK);
    atomic_store(&setup->report->server, server);
    take_null_device();
    keep_only(setup->control, setup->output[0]);

    /* Only now, since it might have been 0, 1 or 2. A SIGCHLD that came before is pending. */
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        _exit(1); /* and the server with it (PR_SET_PDEATHSIG) */
    struct keeper keeper = {.report = setup->report,
                            .control = setup->control,
                            .output = setup->output[0],
                            .signals = signals,
                            .server = server};
    watch(&keeper);
    scratch_remove(setup->start->scratch);
    _exit(0);
}
