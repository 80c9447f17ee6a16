/* The keeper's side of a server, and what it shares with the harness. Private to entry/.
 *
 * The harness forks the keeper, the keeper forks the server. They share a piece of memory, into
 * which the keeper writes what it sees, and a socket, over which the harness sends a wish or is
 * found to be gone (end of file). The keeper ends when the last process of the tree has ended.
 * Since the harness may have threads, the keeper calls only what is async-signal-safe
 * (signal-safety(7)): no stdio, no allocation.
 */
#ifndef ENTRY_KEEPER_H
#define ENTRY_KEEPER_H

#include "entry/server.h"

#include <stdatomic.h>

#define KEEPER_TERM_NS  UINT64_C(2000000000) /* from SIGTERM to SIGKILL; the contract's 2 s */
#define KEEPER_GRACE_NS UINT64_C(200000000)  /* for descendants when the main process has ended */
#define KEEPER_KILL_NS  UINT64_C(5000000000) /* after which what SIGKILL does not end is left */

#define KEEPER_STOP  'T' /* SIGTERM, and what follows */
#define KEEPER_FLUSH 'F' /* read what output there is, then send the byte back */

struct keeper_report {
    _Atomic pid_t server;
    _Atomic int state;          /* enum server_state; what follows is valid when it left RUNNING */
    _Atomic int exit_status;    /* as waitpid(2) gives it; -1 before */
    _Atomic bool lived_on;      /* descendants lived when the main process ended */
    _Atomic bool left_children; /* and still did after KEEPER_GRACE_NS */
    _Atomic bool ignored_term;
    _Atomic uint64_t term_ns, ended_ns; /* clock_now_ns(); 0 before */
    _Atomic uint64_t rss_peak_bytes;    /* ru_maxrss of the main process */
    _Atomic uint64_t rss_floor_bytes;   /* the same before exec: pages of the harness */
    _Atomic uint64_t written_bytes;     /* of output, the last of which are in `output` */
    _Atomic char output[SERVER_OUTPUT_KEEP];
};

struct keeper_setup {
    const struct server_start *start;
    const char *program; /* argv[0] as found on PATH */
    struct keeper_report *report;
    int control;     /* the keeper's end of the socket */
    int output[2];   /* pipe: read by the keeper, written by the server; -1 for inherit_output */
    int launched[2]; /* pipe: its write end closes at exec, or carries a struct keeper_failure */
};

enum keeper_stage {
    KEEPER_FORK,
    KEEPER_REDIRECT,
    KEEPER_PIN,
    KEEPER_LIMIT,
    KEEPER_CHDIR,
    KEEPER_EXEC
};

struct keeper_failure {
    enum keeper_stage stage;
    int code; /* errno */
};

/* To be called in a child with all signals blocked. */
_Noreturn void keeper_run(const struct keeper_setup *setup);

struct server { /* the harness's side */
    pid_t keeper;
    int control;
    unsigned port;
    uint64_t started_ns;
    char *scratch;                /* or NULL */
    struct keeper_report *report; /* shared mapping */
};

#endif
