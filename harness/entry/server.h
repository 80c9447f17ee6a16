/* A running server: started, watched and stopped with its whole process tree.
 *
 * Between the harness and each server stands a keeper: a child of ours that is the subreaper
 * (prctl(2), PR_SET_CHILD_SUBREAPER, Linux 3.4) of everything the server forks, reads its standard
 * output and error, and ends the whole tree when told to or when the harness is gone, SIGKILL
 * included: it sees the socket to the harness close. It uses no CPU while nothing happens.
 *
 * Keeper and server have sessions of their own, so a terminal's Ctrl-C reaches the harness alone.
 * The server starts with standard input from /dev/null, no other descriptor of the harness, all
 * signals at their defaults and none blocked, no core files, and dies with its keeper
 * (PR_SET_PDEATHSIG). When its main process ends while descendants live, those get 200 ms and are
 * then killed: a server that forks into the background is an error, not a server.
 *
 * The harness must not wait for any child (waitpid(-1)) nor ignore SIGCHLD while servers live.
 */
#ifndef ENTRY_SERVER_H
#define ENTRY_SERVER_H

#include "base/err.h"
#include "http/answer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct server; /* opaque */

#define SERVER_OUTPUT_KEEP 4096      /* last bytes of stdout and stderr kept */
#define SERVER_OUTPUT_MAX  (1 << 20) /* a server that writes more is ended: it floods */

/* A server that finds that this machine lacks what it needs (io_uring, say) prints what and exits
 * with this status before it listens: it is skipped, not failed. Automake's status of a test that
 * can't be run here (its manual, "Scripts-based Testsuites"). */
#define SERVER_STATUS_LACKS 77

enum server_state { SERVER_RUNNING, SERVER_EXITED, SERVER_SIGNALED, SERVER_FLOODED };

struct server_start {
    char *const *argv;
    const char *folder; /* working directory; a relative program is found from there */
    const int *cpus;    /* those it may run on, its children too */
    int cpu_count;      /* 0: any */
    unsigned port;
    unsigned files;      /* RLIMIT_NOFILE at least; as near as the hard limit lets; 0: as it is */
    bool inherit_output; /* `serve`: output goes to the terminal */
    const char *scratch; /* a folder to remove when the tree has ended, or NULL */
};

/* Returns when the program runs. -ENOENT, -EACCES … of execve(2), and -EINVAL for CPUs that can't
 * be pinned to, come back as errors here, naming the program. */
int server_start(const struct server_start *start, struct server **server, struct err *err);

/* Waits until `request` is answered as `expect` has it: that is readiness. Polls every 2 ms at
 * first, slower later (50 ms). -ETIMEDOUT after deadline_ns (from now), -ECHILD if it ended
 * (-ENOTSUP with SERVER_STATUS_LACKS), -EPROTO if it answers wrongly (the reason, and the last
 * stderr lines, in err), -EINTR if a signal's handler ran. A connection closed or reset without an
 * answer is tried again, for 2 s on end. -EADDRINUSE if another process listens on that port as
 * well (listener.h): who is measured then nobody can say. The server goes on in all cases: end it
 * with server_stop. *took_ns from the start to the first right answer. */
int server_wait_ready(struct server *server, const char *request, size_t request_bytes,
                      const struct http_expect *expect, uint64_t deadline_ns, uint64_t *took_ns,
                      struct err *err);

/* Its state now, without waiting; `detail` says "exited with status 3", "killed by signal 11
 * (Segmentation fault)", "wrote over 1024 KiB …: it floods", "… it forks into the background". */
enum server_state server_poll(struct server *server, char *detail, size_t detail_bytes);

/* It ended, by itself, with SERVER_STATUS_LACKS. */
bool server_lacks(struct server *server);

/* The pids of its tree now, the server's own first; the keeper is not among them. */
int server_pids(struct server *server, pid_t *pids, int max);
pid_t server_pid(const struct server *server);

/* The last output, at most SERVER_OUTPUT_KEEP bytes and `bytes` with the NUL; whole lines when cut,
 * if there is a line's end in it. It is UTF-8 without control characters but newline and tab: what
 * is not becomes '?'. Empty with inherit_output. */
void server_output(struct server *server, char *text, size_t bytes);

struct server_stop {
    bool ignored_term;       /* had to be killed after 2 s */
    bool left_children;      /* descendants lived 200 ms longer than the main process */
    int exit_status;         /* as waitpid(2) gives it; -1 if even SIGKILL did not end it */
    uint64_t took_ns;        /* SIGTERM to the end of the main process; 0 if it had ended before */
    uint64_t rss_peak_bytes; /* of the main process: VmHWM (proc(5)) before SIGTERM; of one that had
                                ended by itself ru_maxrss, if clearly more than what it had from
                                the harness before exec; 0: not known */
};

/* SIGTERM to the main process, 2 s, then SIGKILL to the whole tree; frees `server`. Safe on one
 * that has ended, and on NULL. `stop` may be NULL. */
void server_stop(struct server *server, struct server_stop *stop);

/* A port on 127.0.0.1 that nothing listens on, from 10000 to below the ephemeral range (so that no
 * outgoing connection holds it), chosen from `seed`: neighbouring seeds give far ports.
 * -EADDRINUSE when none is found. */
int server_free_port(uint64_t seed, unsigned *port, struct err *err);

/* -EADDRINUSE if something listens on 127.0.0.1:port, -EACCES if it takes root, naming the remedy.
 */
int server_port_check(unsigned port, struct err *err);

#endif
