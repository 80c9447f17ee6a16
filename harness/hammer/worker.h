/* One loading thread: its connections, what is on the wire for each, and what has been counted.
 * Everything that decides lives here and in answers.c, once for both engines; an engine
 * (engine.h) only connects, moves bytes and closes. All of it belongs to one thread, save the few
 * fields of `struct load` that say how far the run is.
 */
#ifndef HAMMER_WORKER_H
#define HAMMER_WORKER_H

#include "hammer/hammer.h"
#include "http/response.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum load_phase {
    LOAD_RAMP,   /* connecting; each connection is answered once (not with a request count) */
    LOAD_SETTLE, /* full load, not measured */
    LOAD_WINDOW, /* full load, measured */
    LOAD_DRAIN   /* no new requests */
};

#define LOAD_SOURCES_MAX 64

/* What the threads of a run share. */
struct load {
    const struct hammer_config *config;
    const struct engine *engine;
    char
        *block; /* the request `pipeline` times: any number of requests is one write from its end */
    size_t block_bytes;
    struct in_addr sources[LOAD_SOURCES_MAX]; /* local addresses to spread connections over */
    unsigned source_count;                    /* 0: the kernel chooses */
    _Atomic int phase;
    _Atomic uint64_t open_ns;  /* when the window is to open; then, when it did */
    _Atomic uint64_t close_ns; /* when it closed; 0 before */
    _Atomic bool ever_open;    /* a connection could be made */
    _Atomic bool cancelled;    /* none could, a thread could not start, or the ramp was stopped */
    pthread_mutex_t mutex;
    pthread_cond_t gate;
    unsigned arrived; /* threads at the gate */
    unsigned passed;  /* gates passed by all */
    unsigned threads;
};

enum conn_state {
    CONN_IDLE, /* no socket */
    CONN_CONNECTING,
    CONN_OPEN,
    CONN_ENDING /* answered for the last time; waits for the peer to close */
};

struct scan { /* lent to a connection while an answer needs the scanner */
    struct http_scanner scanner;
    struct scan *next_free;
};

struct hold { /* lent while a matching answer is incomplete */
    struct hold *next_free;
    char bytes[HTTP_PATTERN_MAX];
};

/* 56 bytes: with many connections, the cache lines touched for each answer are what counts. */
struct conn {
    int fd;
    uint16_t generation; /* counts sockets; tells an engine late events of an old one */
    uint8_t state;
    bool ramped;          /* answered, or failed, in the ramp */
    bool checked;         /* this socket's first answer went through the scanner */
    bool sending;         /* uring: a send is under way */
    bool queued;          /* uring: something not yet submitted names this socket */
    uint16_t outstanding; /* requests counted as sent and not yet answered */
    uint16_t oldest;      /* place of the oldest one's stamp */
    uint16_t held_bytes;
    size_t unsent_bytes; /* of those, not yet taken by the kernel: the end of the block */
    struct hold *hold;
    struct scan *scan;
    uint64_t since_ns; /* when connecting or ending began */
};

struct worker {
    struct load *load;
    const struct hammer_config *config;
    const struct engine *engine;
    void *engine_state;
    unsigned index;
    struct conn *conns;
    unsigned count;
    uint64_t *stamps; /* `pipeline` a connection: when each outstanding request was written */
    uint64_t quota;   /* requests that may yet be sent; UINT64_MAX without a request count */
    bool refill;      /* each answer is followed by a new request */
    bool measuring;
    unsigned open, connecting;
    unsigned ramp_started, ramp_waiting, ramped;
    bool hurried;      /* connections wait to be opened again, held back by the wave alone */
    int connect_errno; /* of the last connect that failed */
    uint64_t now_ns;   /* of the answer or batch being handled */
    uint64_t batch_ns; /* this thread last woke; 0: not yet */
    uint64_t alive_ns; /* a connection was last open */
    time_t wall_s;
    uint64_t tick_ns, next_tick_ns;
    struct http_pattern pattern;
    unsigned pattern_status;
    struct scan *free_scans;
    struct hold *free_holds;
    uint64_t cpu_user_ns, cpu_system_ns, wait_ns; /* at the window's opening */
    bool wait_known;
    struct hammer_result *sum; /* this thread's share of the result */
    struct err err;
    int status;
    pthread_t thread;
};

/* The thread's whole life: ramp, settle, window, drain. `argument` is a struct worker. */
void *worker_main(void *argument);

/* -- for engines -- */

/* To be called when a wait has returned, before its events are handled: reads the clock and takes
 * note of the phase. */
void worker_batch(struct worker *w);

/* A new socket, bound where the run spreads its source addresses; flags as socket(2)'s
 * SOCK_NONBLOCK. Returns -errno. */
int worker_socket(struct worker *w, const struct conn *c, int flags);

void worker_connected(struct worker *w, struct conn *c);
void worker_connect_failed(struct worker *w, struct conn *c, int code);

/* w->now_ns must be the time of arrival. The connection may be closed, and another socket opened
 * in its place, before this returns: c->generation has then changed. */
void worker_received(struct worker *w, struct conn *c, const char *bytes, size_t size);
void worker_peer_closed(struct worker *w, struct conn *c);

/* ECONNRESET and EPIPE are told from `other`, which is HAMMER_ERROR_READ or _WRITE. */
void worker_failed(struct worker *w, struct conn *c, enum hammer_error other, int code);

static inline bool load_is_loopback(const struct hammer_config *config)
{
    return ntohl(config->address.sin_addr.s_addr) >> 24 == 127;
}

static inline unsigned worker_conn_index(const struct worker *w, const struct conn *c)
{
    return (unsigned)(c - w->conns);
}

/* The bytes that wait to be written. */
static inline const char *worker_unsent(const struct worker *w, const struct conn *c)
{
    return w->load->block + w->load->block_bytes - c->unsent_bytes;
}

/* -- between worker.c and answers.c -- */

/* Requests that are lost with their connection, which is closed and, if the phase allows, opened
 * again. */
void worker_lose(struct worker *w, struct conn *c, enum hammer_error kind, int code);

/* The peer said that it closes after this answer, or closes each one. */
void worker_finish(struct worker *w, struct conn *c);

/* Keeps the first fault's description. */
void worker_note(struct worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes what came on an open connection, to the last byte or until the connection is given up. */
void answers_take(struct worker *w, struct conn *c, const char *bytes, size_t size);

/* The peer closed. True if that completed the answer. */
bool answers_end(struct worker *w, struct conn *c);

/* Gives back what the connection had borrowed. */
void answers_forget(struct worker *w, struct conn *c);

/* What an unfinished answer looks like so far, for a timeout's description. */
void answers_describe(const struct conn *c, char *text, size_t size);

#endif
