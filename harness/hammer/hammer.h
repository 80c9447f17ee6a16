/* The load generator: a closed loop of keep-alive connections against one address, every answer
 * checked. Two engines, epoll and io_uring, one thread a core. Knows nothing of entries.
 *
 * A run of duration_ns: connect all in waves that no accept queue overflows, and send `pipeline`
 * requests on each connection (the clock has not started); once each was answered or has failed,
 * put all under full load for settle_ns; measure for duration_ns; stop sending, drain for at most
 * drain_ns, close. A run of `requests`: connect all, without sending; then send exactly so many,
 * all of them measured, until each is answered or lost (settle_ns must be 0: nothing is sent before
 * the window, so that the server sees no more than was asked for). It ends early when no connection
 * could be opened for timeout_ns.
 *
 * An answer counts for the measured window when it arrives inside it. Latency is closed-loop and
 * raw, never corrected: from just before the write of a request to the reading of its answer's last
 * byte; one stamp for each request of a pipeline. The epoll engine reads the clock after each read,
 * the io_uring engine once a batch of completions, so that there a request's wait for its batch to
 * be handed over is part of its latency. With close_each it begins where the connection
 * does, save for those that were open when the window opened. A connection lost is opened again: at
 * once if it had carried an answer, else at the next tick (1 to 10 ms, more for over 1,000
 * connections), and connections that the server closes by its own rules cost no request. Timeouts
 * are noticed at a tick too. A request that times out takes its connection with it, and those
 * pipelined behind it, which are counted as timed out as well.
 */
#ifndef HAMMER_HAMMER_H
#define HAMMER_HAMMER_H

#include "base/err.h"
#include "http/answer.h"
#include "stats/histogram.h"

#include <netinet/in.h>
#include <signal.h>

enum hammer_engine { HAMMER_AUTO, HAMMER_EPOLL, HAMMER_URING };

enum hammer_error {
    HAMMER_ERROR_CONNECT,   /* connect(2) failed or was refused */
    HAMMER_ERROR_RESET,     /* ECONNRESET or EPIPE on an open connection */
    HAMMER_ERROR_CLOSED,    /* the peer closed before the answer was whole */
    HAMMER_ERROR_MALFORMED, /* not HTTP as RFC 9112 has it */
    HAMMER_ERROR_READ,      /* another errno on reading */
    HAMMER_ERROR_WRITE,     /* another errno on writing */
    HAMMER_ERROR_KINDS
};

#define HAMMER_THREADS_MAX     64
#define HAMMER_PIPELINE_MAX    256
#define HAMMER_CONNECTIONS_MAX 1000000 /* checked against the file limit at the start */

struct hammer_config {
    struct sockaddr_in address;
    /* AUTO: io_uring where the kernel allows it, else epoll. make bench-hammer on two cores of a VM
     * (Linux 6.18, 2026-11-30), as ratios to wrk's req/s for c = 64, 256 and 1000: io_uring 1.43,
     * 1.64 and 1.61 at 0.65, 0.58 and 0.58 of its CPU a request; epoll 1.45, 1.61 and 1.52 at 0.68,
     * 0.62 and 0.66. */
    enum hammer_engine engine;
    unsigned connections; /* exactly so many are kept open */
    unsigned threads;   /* 1..HAMMER_THREADS_MAX, at most `connections`; the remainder is spread */
    const int *cpus;    /* one a thread, to pin to; NULL: not pinned */
    unsigned pipeline;  /* requests outstanding on a connection, 1..HAMMER_PIPELINE_MAX */
    bool close_each;    /* a connection a request: reconnect after each answer */
    uint64_t settle_ns; /* 0 with `requests` */
    uint64_t duration_ns; /* one of these two is 0 */
    uint64_t requests;
    uint64_t timeout_ns; /* for an answer, from its request's write; and for connect */
    uint64_t drain_ns;   /* bound on the drain at the end */
    /* For calibration alone: spins so long before each request, so that the load generator is the
     * limit. 0: does not. */
    uint64_t burn_ns;
    const char *request; /* the bytes of one request */
    size_t request_bytes;
    struct http_expect expect;
    /* Called on the first loading thread just before the measured window opens (0) and just after
     * it has closed (1), so that counters read here cover the window and little else. May be NULL.
     */
    void (*at_edge)(void *context, int edge);
    void *context;
    const volatile sig_atomic_t *stop; /* set by a signal handler to end early; may be NULL */
};

struct hammer_counts { /* over the whole run: sent = valid + wrong + errors + timed_out + in_flight,
                          always */
    uint64_t sent;
    uint64_t valid;
    uint64_t wrong;                      /* well-formed, but not the expected answer */
    uint64_t errors[HAMMER_ERROR_KINDS]; /* requests lost, by kind; a failed connect loses none and
                                            is in connect_failures */
    uint64_t timed_out;
    uint64_t in_flight; /* unanswered after the drain */
};

struct hammer_result {
    enum hammer_engine engine; /* the one used */
    char engine_reason[256];   /* why AUTO fell back to epoll; "" if it did not */
    struct hammer_counts total;
    uint64_t connect_failures;
    unsigned connections_established; /* open at the same time when the window opened */
    uint64_t reconnects;  /* connections opened again after an error or an unasked close; not those
                             of close_each */
    uint64_t errnos[134]; /* errors by errno */
    uint64_t status[600]; /* answers by status code, whole run */
    bool interrupted;     /* *stop was seen */
    /* Between two wakings of a loading thread, which asks to be woken every 10 ms, or every 10 ms
     * and 2 us a connection: much more means that its core was taken, and that the run says little.
     */
    uint64_t longest_gap_ns;
    uint64_t unclosed;     /* connections the server had announced to close and did not within
                              timeout_ns */
    char first_wrong[512]; /* what was expected and what came, for the first answer that was wrong,
                              malformed, cut short or missing; "" if none */
    /* the measured window */
    uint64_t window_ns;
    uint64_t valid;      /* valid answers that arrived in it */
    uint64_t bytes_read; /* of valid answers */
    uint64_t failed;     /* wrong + errors + timed out in it */
    uint64_t
        scanned; /* of the valid ones, those the pattern did not match and the scanner passed */
    uint64_t cpu_user_ns; /* of the loading threads, RUSAGE_THREAD */
    uint64_t cpu_system_ns;
    uint64_t wait_ns; /* in which they could have run and another process had their CPU */
    bool wait_known;
    double little; /* rate * mean latency / (connections * pipeline): 1 in a sound closed loop
                      (Little 1961), less with close_each by the time connections take to close
                      and with faults; NAN if unknown */
    struct histogram latency; /* of valid answers */
};

/* Checks the config (-EINVAL; -EMFILE with the remedy when the file limit is too low;
 * -EADDRNOTAVAIL when a connection a request would run out of ports), runs it, fills *result
 * (large: allocate it). Server faults are results, not errors. -ECONNREFUSED if no connection at
 * all could be made. */
int hammer_run(const struct hammer_config *config, struct hammer_result *result, struct err *err);

const char *hammer_engine_name(enum hammer_engine engine);
const char *hammer_error_name(enum hammer_error kind); /* "connect", "reset", … */

/* 0 if this process may use io_uring with all features that the engine needs; else -errno with the
 * reason. */
int hammer_uring_probe(struct err *err);

#endif
