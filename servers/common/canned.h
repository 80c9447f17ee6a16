/* What the limit entries share: finding the ends of requests without parsing HTTP, and canned
 * answers laid end to end. A yardstick's work, kept as small as it can be and still have the load
 * generators' workloads run against it; an HTTP server it is not.
 *
 * A blank line (CR LF CR LF) ends a request. `close` anywhere in the input, or HTTP/1.0 without
 * `eep-`, asks for the connection to end; HTTP/1.0 with it wants the echo that ab waits for.
 */
#ifndef SERVERS_COMMON_CANNED_H
#define SERVERS_COMMON_CANNED_H

#include "reply.h"

#include <stddef.h>
#include <stdint.h>

#define CANNED_MAX_IN_BYTES 4096

/* No input of CANNED_MAX_IN_BYTES can end more requests: one begun before, then four bytes each. */
#define CANNED_COPIES (CANNED_MAX_IN_BYTES / 4 + 1)

struct canned_verdict {
    size_t bytes;    /* of the input judged */
    size_t requests; /* that end in it */
    enum reply_connection wish;
};

/* For each wish the answer, CANNED_COPIES times end to end (REPLY_CLOSE: once), each
 * canned_answer_bytes[wish] long: any pipeline's answers are one stretch. */
extern char canned_answers[REPLY_CONNECTIONS][CANNED_COPIES * REPLY_MAX_BYTES];
extern size_t canned_answer_bytes[REPLY_CONNECTIONS];

/* Makes the answers. Call once, before anything else here. */
void canned_init(void);

/* Brings the answers' Date up to date; call once each time the loop wakes. */
void canned_refresh(void);

/* Judges at most CANNED_MAX_IN_BYTES of input. `*matched` is the connection's own: the bytes of a
 * blank line seen at the end of its last input, 0 at first. */
struct canned_verdict canned_judge(uint8_t *matched, const char *in, size_t bytes);

#endif
