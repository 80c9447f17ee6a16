/* How bytes are moved: the five verbs of an engine. Its state hangs on w->engine_state; what it
 * learns it tells through the functions of worker.h.
 */
#ifndef HAMMER_ENGINE_H
#define HAMMER_ENGINE_H

#include "hammer/worker.h"

struct engine {
    enum hammer_engine id;
    /* Called on the loading thread. Returns 0 or -errno with w->err filled. */
    int (*start)(struct worker *w);
    void (*stop)(struct worker *w);
    /* Makes c->fd and begins to connect. Returns 0 or -errno; success and later failure come
     * through worker_connected and worker_connect_failed. */
    int (*connect)(struct worker *w, struct conn *c);
    /* Writes c->unsent_bytes, now or as soon as the kernel takes them. */
    void (*send)(struct worker *w, struct conn *c);
    /* Closes c->fd. With `abort` by a reset, so that no TIME_WAIT is left. */
    void (*close)(struct worker *w, struct conn *c, bool abort);
    /* Waits for events, at most so long, and handles a batch of them. */
    void (*wait)(struct worker *w, uint64_t limit_ns);
};

extern const struct engine engine_epoll;
extern const struct engine engine_uring;

#endif
