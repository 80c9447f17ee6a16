#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage_text[] = "usage: %s --port N [--workers N] | --version | --help\n";

static _Noreturn void usage(const char *program, const char *problem, const char *word)
{
    fprintf(stderr, "%s: %s%s\n", program, problem, word);
    fprintf(stderr, usage_text, program);
    exit(2);
}

/* -1 for what is no number from 1 to `most`. */
static long parse_number(const char *text, long most)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && number >= 1 && number <= most ? number : -1;
}

static void take_argument(struct server_args *args, const char *program, const char *name,
                          const char *value)
{
    bool port = strcmp(name, "--port") == 0;
    if (!port && strcmp(name, "--workers") != 0)
        usage(program, "unknown argument ", name);
    if (value == NULL)
        usage(program, name, " needs a number");
    long number = parse_number(value, port ? UINT16_MAX : SERVER_WORKERS_MAX);
    if (number < 0)
        usage(program,
              port ? "--port takes a number from 1 to 65535, not "
                   : "--workers takes a number from 1 to 64, not ",
              value);
    if (port)
        args->port = (uint16_t)number;
    else
        args->workers = (unsigned)number;
}

void server_args_parse(struct server_args *args, int argc, char **argv, const char *version)
{
    *args = (struct server_args){.workers = 1};
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--version") == 0) {
            puts(version);
            exit(0);
        }
        if (strcmp(argv[i], "--help") == 0) {
            printf(usage_text, argv[0]);
            puts("Answers GET / on 127.0.0.1:N until SIGTERM.");
            exit(0);
        }
        take_argument(args, argv[0], argv[i], argv[i + 1]);
    }
    if (args->port == 0)
        usage(argv[0], "no port given", "");
}

static int open_listener(uint16_t port, bool shared)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, INT_MAX) != 0) {
        fprintf(stderr, "cannot listen on 127.0.0.1:%u: %s\n", port, strerror(errno));
        exit(1);
    }
    return fd;
}

/* ---- several workers */

struct crew {
    unsigned count; /* of those started; pid 0: has ended */
    pid_t pids[SERVER_WORKERS_MAX];
    bool ending;
    bool failed;
};

static void end_all(struct crew *crew)
{
    crew->ending = true;
    for (unsigned i = 0; i < crew->count; i++)
        if (crew->pids[i] > 0)
            kill(crew->pids[i], SIGTERM);
}

/* One that the signal met before it could handle it has ended as asked. */
static bool ended_as_asked(const struct crew *crew, int status)
{
    if (WIFSIGNALED(status))
        return crew->ending && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
    return crew->ending && WEXITSTATUS(status) == 0;
}

static void take_leave(struct crew *crew, pid_t pid, int status)
{
    for (unsigned i = 0; i < crew->count; i++)
        if (crew->pids[i] == pid)
            crew->pids[i] = 0;
    if (ended_as_asked(crew, status))
        return;
    crew->failed = true;
    if (WIFSIGNALED(status))
        fprintf(stderr, "worker %d was killed by signal %d\n", (int)pid, WTERMSIG(status));
    else
        fprintf(stderr, "worker %d ended with status %d\n", (int)pid, WEXITSTATUS(status));
    if (!crew->ending)
        end_all(crew);
}

static bool any_left(const struct crew *crew)
{
    for (unsigned i = 0; i < crew->count; i++)
        if (crew->pids[i] > 0)
            return true;
    return false;
}

/* The parent's whole life: it serves nothing. `signals` are blocked. */
static _Noreturn void lead(struct crew *crew, const sigset_t *signals)
{
    while (any_left(crew)) {
        int status;
        int number = sigwaitinfo(signals, NULL);
        if (number == SIGTERM || number == SIGINT)
            end_all(crew);
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
            take_leave(crew, pid, status);
    }
    exit(crew->failed ? 1 : 0);
}

/* In the child: as if it had been started alone, but that it ends with its parent. */
static void become_worker(pid_t parent, const sigset_t *before)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        exit(1); /* it ended before the line above */
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* All sockets listen before the first worker runs: who is answered once finds all of them there. */
static int share_out(uint16_t port, unsigned workers)
{
    int fds[SERVER_WORKERS_MAX];
    struct crew crew = {0};
    sigset_t signals;
    sigset_t before;
    pid_t parent = getpid();
    for (unsigned i = 0; i < workers; i++)
        fds[i] = open_listener(port, true);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &before);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    for (unsigned i = 0; i < workers; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            become_worker(parent, &before);
            for (unsigned other = i + 1; other < workers; other++)
                close(fds[other]);
            return fds[i];
        }
        if (pid < 0) {
            fprintf(stderr, "cannot start worker %u: %s\n", i + 1, strerror(errno));
            crew.failed = true;
            end_all(&crew);
            break;
        }
        crew.pids[crew.count++] = pid;
        close(fds[i]);
    }
    lead(&crew, &signals);
}

int server_listen(const struct server_args *args)
{
    return args->workers > 1 ? share_out(args->port, args->workers)
                             : open_listener(args->port, false);
}

void server_ignore_sigpipe(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
}
