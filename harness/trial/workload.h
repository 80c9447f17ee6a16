/* Workloads as data: what is asked, what must come back, and the shape of the load. A new one is a
 * line in the table of workload.c and nothing else.
 */
#ifndef TRIAL_WORKLOAD_H
#define TRIAL_WORKLOAD_H

#include "base/err.h"
#include "http/answer.h"

struct workload {
    const char *name;
    const char *summary; /* one line, for the table's head */
    const char *method;
    const char *target;
    const char *const *headers; /* NULL-terminated, or NULL */
    const char *body;           /* or NULL */
    const struct http_expect *expect;
    unsigned connections; /* unless -c says otherwise */
    unsigned pipeline;    /* requests outstanding on a connection */
    bool close_each;      /* a connection a request */
};

/* The workload of that name, or NULL with the nearest and all there are in err. */
const struct workload *workload_find(const char *name, struct err *err);

/* The bytes of its request to 127.0.0.1:port; free(). */
int workload_request(const struct workload *workload, unsigned port, char **bytes, size_t *size,
                     struct err *err);

/* "hello, pipelined, close" for usage texts. */
const char *workload_names(void);

#endif
