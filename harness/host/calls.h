/* Counts the system calls of a running process tree, one by one, by ptrace(2): exact, and allowed
 * without root for one's own descendants, also under Yama's ptrace_scope 1 (Linux
 * Documentation/admin-guide/LSM/Yama.rst) and in Docker. Each call stops its thread twice, so what
 * is watched runs several times slower: counts can be believed, times can't.
 *
 * A thread of ours traces, and waits for its own tracees only (__WNOTHREAD, waitpid(2)), so no
 * other child is reaped. Attaching interrupts the call that each thread is in, once; epoll_wait(2)
 * fails with EINTR then.
 */
#ifndef HOST_CALLS_H
#define HOST_CALLS_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

#define CALLS_MAX 512 /* system call numbers counted apart; higher ones are counted in `total` */

struct calls; /* opaque */

struct calls_counts {
    uint64_t total;
    uint64_t by_number[CALLS_MAX];
};

/* Watches these processes with all their threads, and what they start from now on. They are not to
 * be this process's own children: whoever waits for one would take its stops from the tracer.
 * -EPERM with the remedy where tracing is refused. */
int calls_watch(const pid_t *pids, int count, struct calls **calls, struct err *err);

/* What was called since; a call counts when it begins. */
void calls_read(struct calls *calls, struct calls_counts *counts);

/* To be called when the processes have ended, by whoever ended them; waits until the last is seen
 * to be gone. NULL is allowed. */
void calls_end(struct calls *calls);

/* "recvfrom", or "call 999" in `text` for one without a name here. */
const char *calls_name(unsigned number, char text[16]);

#endif
