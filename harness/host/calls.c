#include "host/calls.h"

#include "base/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define OPTIONS                                                                                    \
    (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)

struct calls {
    pthread_t thread;
    sem_t attached;
    const pid_t *pids; /* of the caller, until attached */
    int count;
    int failed; /* errno of attaching */
    _Atomic uint64_t total;
    _Atomic uint64_t by_number[CALLS_MAX];
};

/* One that ended meanwhile is no failure. */
static int attach_thread(pid_t thread)
{
    if (ptrace(PTRACE_SEIZE, thread, NULL, (void *)OPTIONS) != 0)
        return errno == ESRCH ? 0 : errno;
    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
    return 0;
}

static int attach_process(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return 0;
    int failed = 0;
    struct dirent *item;
    while (failed == 0 && (item = readdir(folder)) != NULL)
        if (isdigit((unsigned char)item->d_name[0]))
            failed = attach_thread((pid_t)atoi(item->d_name));
    closedir(folder);
    return failed;
}

/* PTRACE_GET_SYSCALL_INFO tells the entry of a call from its end (Linux 5.3). */
static void count_call(struct calls *calls, pid_t thread)
{
    struct __ptrace_syscall_info info;
    long got = ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof info, &info);
    if (got <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return;
    atomic_fetch_add_explicit(&calls->total, 1, memory_order_relaxed);
    if (info.entry.nr < CALLS_MAX)
        atomic_fetch_add_explicit(&calls->by_number[info.entry.nr], 1, memory_order_relaxed);
}

/* A stop of one tracee: see ptrace(2), "Stopped states". */
static void go_on(struct calls *calls, pid_t thread, int status)
{
    int signal_number = WSTOPSIG(status);
    int event = status >> 16;
    if (signal_number == (SIGTRAP | 0x80)) {
        count_call(calls, thread);
        signal_number = 0;
    } else if (event == PTRACE_EVENT_STOP &&
               (signal_number == SIGSTOP || signal_number == SIGTSTP || signal_number == SIGTTIN ||
                signal_number == SIGTTOU)) {
        ptrace(PTRACE_LISTEN, thread, NULL, NULL); /* stopped by job control: so it stays */
        return;
    } else if (event != 0) {
        signal_number = 0;
    }
    ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(long)signal_number);
}

static void *trace(void *context)
{
    struct calls *calls = context;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* signals are the main thread's */
    for (int i = 0; i < calls->count && calls->failed == 0; i++)
        calls->failed = attach_process(calls->pids[i]);
    bool failed = calls->failed != 0;
    sem_post(&calls->attached);
    int status;
    pid_t thread;
    while (!failed && ((thread = waitpid(-1, &status, __WALL | __WNOTHREAD)) > 0 || errno == EINTR))
        if (thread > 0 && WIFSTOPPED(status))
            go_on(calls, thread, status);
    return NULL; /* what is still traced is let go */
}

int calls_watch(const pid_t *pids, int count, struct calls **calls, struct err *err)
{
    struct calls *new = mem_alloc(1, sizeof *new);
    new->pids = pids;
    new->count = count;
    *calls = NULL;
    sem_init(&new->attached, 0, 0);
    int code = pthread_create(&new->thread, NULL, trace, new);
    if (code == 0) {
        while (sem_wait(&new->attached) != 0)
            continue;
        code = new->failed;
        if (code != 0)
            pthread_join(new->thread, NULL);
    }
    if (code == 0) {
        *calls = new;
        return 0;
    }
    sem_destroy(&new->attached);
    free(new);
    if (code == EPERM)
        return err_set(err, EPERM,
                       "tracing is refused: kernel.yama.ptrace_scope is 2 or 3, a seccomp profile "
                       "forbids ptrace (docker run --cap-add SYS_PTRACE), or another tracer is "
                       "there");
    return err_set(err, code, "the system calls can't be traced: %s", strerror(code));
}

void calls_read(struct calls *calls, struct calls_counts *counts)
{
    counts->total = atomic_load(&calls->total);
    for (size_t i = 0; i < CALLS_MAX; i++)
        counts->by_number[i] = atomic_load(&calls->by_number[i]);
}

void calls_end(struct calls *calls)
{
    if (calls == NULL)
        return;
    pthread_join(calls->thread, NULL);
    sem_destroy(&calls->attached);
    free(calls);
}

#define NAME(call)                                                                                 \
    {                                                                                              \
        SYS_##call, #call                                                                          \
    }

/* What servers call; the numbers are this architecture's. */
const char *calls_name(unsigned number, char text[16])
{
    static const struct {
        unsigned number;
        const char *name;
    } names[] = {
#ifdef SYS_epoll_wait
        NAME(epoll_wait),
#endif
#ifdef SYS_poll
        NAME(poll),
        NAME(select),
        NAME(time),
#endif
        NAME(read),
        NAME(write),
        NAME(readv),
        NAME(writev),
        NAME(recvfrom),
        NAME(sendto),
        NAME(recvmsg),
        NAME(sendmsg),
        NAME(recvmmsg),
        NAME(sendmmsg),
        NAME(accept),
        NAME(accept4),
        NAME(shutdown),
        NAME(close),
        NAME(epoll_pwait),
        NAME(epoll_pwait2),
        NAME(epoll_ctl),
        NAME(ppoll),
        NAME(pselect6),
        NAME(ioctl),
        NAME(fcntl),
        NAME(setsockopt),
        NAME(getsockopt),
        NAME(getsockname),
        NAME(getpeername),
        NAME(sendfile),
        NAME(splice),
        NAME(futex),
        NAME(clock_gettime),
        NAME(clock_nanosleep),
        NAME(gettimeofday),
        NAME(nanosleep),
        NAME(timerfd_settime),
        NAME(rt_sigaction),
        NAME(rt_sigprocmask),
        NAME(sched_yield),
        NAME(madvise),
        NAME(mmap),
        NAME(munmap),
        NAME(mprotect),
        NAME(brk),
        NAME(getpid),
        NAME(getppid),
        NAME(io_uring_enter),
        NAME(restart_syscall),
        NAME(membarrier),
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == number)
            return names[i].name;
    snprintf(text, 16, "call %u", number);
    return text;
}
