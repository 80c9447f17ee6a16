/* HTTP/1.1 as a byte machine for the raw entries: request bytes in, answer bytes out.
 *
 * llhttp does the parsing. This adds what a parser leaves to its user: exactly one valid Host,
 * what to answer to which target and method, whether the connection goes on, 100-continue, limits,
 * and the answer to each error. It knows of no socket, no loop and no clock, and allocates nothing:
 * reading, writing, waiting, accepting and closing stay in each entry, where the library under
 * measurement does them.
 *
 * Rules: RFC 9112 3.2 (Host, forms of target), 6.1 (Transfer-Encoding), 9.3 and 9.6 (keep-alive,
 * close); RFC 9110 9.1 (methods), 10.1.1 (Expect), 15.5 and 15.6 (status codes).
 */
#ifndef SERVERS_COMMON_HTTP1_H
#define SERVERS_COMMON_HTTP1_H

#include "reply.h"

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest target, as RFC 9112 3 advises for the whole request line, and the longest header
 * section, counted as names, values and four bytes a line. Nothing of them is stored. */
#define HTTP1_MAX_TARGET_BYTES 8192
#define HTTP1_MAX_HEAD_BYTES   32768

/* Room that `in` bytes of input can fill with answers: 22 bytes are the shortest request that is
 * answered (`GET / HTTP/1.1`, `Host:`, a blank line, each ended by a bare LF), and one may have
 * been begun before. */
#define HTTP1_OUT_BYTES(in) (((in) / 22 + 2) * REPLY_MAX_BYTES)

struct http1 {
    /* Read these after http1_feed(). */
    bool closing;  /* the last answer said close: send it, end the connection, feed no more */
    bool linger;   /* with `closing`: the client may still be sending, so end it with care, as
                      RFC 9112 9.6 says: shut down writing, read to the end, close */
    bool progress; /* the last feed began a request, brought some of a body, or ended a request;
                      a client that lets one wait for long is to be cut off */

    /* The machine's own. */
    uint8_t target, field, host, hosts, codings;
    uint8_t name_bytes, matched;
    bool expect, close, head_done;
    enum reply_connection connection;
    char name[18];
    uint32_t head_bytes;
    char *out;
    llhttp_t parser;
};

/* Makes a connection ready for its first byte. No need to release it. */
void http1_init(struct http1 *http);

/* Takes in `bytes` of input, split anywhere, and writes to `out` the answers to all requests that
 * end in it, in order. `out` has room for HTTP1_OUT_BYTES(bytes). Returns the bytes written. */
size_t http1_feed(struct http1 *http, const char *in, size_t bytes, char *out);

/* "llhttp 8.1.0" */
extern const char http1_version[];

#endif
