/* A second look at a request that evhttp has parsed. evhttp 2.1 keeps every header line but holds
 * none against RFC 9112; what it would answer wrongly is found here, before the answer is made.
 */
#ifndef SERVERS_LIBEVENT_REQUEST_H
#define SERVERS_LIBEVENT_REQUEST_H

#include <stdbool.h>

#include <event2/http.h>

enum persistence {
    PERSISTENCE_CLOSE,
    PERSISTENCE_KEEP,
};

struct request_view {
    bool valid;                   /* false: 400, and the connection must not go on */
    bool has_body;                /* framed by Content-Length above 0, or chunked */
    enum persistence persistence; /* RFC 9112, 9.3 */
};

/* Reads the request line and the header lines. Not valid are: a version other than 1.x; a target
 * with a fragment or a character that no URI has (RFC 9112, 3.2); Host missing in 1.1, doubled or
 * malformed (3.2); a name that is no token (5.1); a control character in a value; Transfer-Encoding
 * in 1.0, doubled, beside Content-Length, or other than chunked (6.1); a Content-Length that is
 * doubled or not all digits (6.2, 6.3). */
void request_view_read(struct request_view *view, struct evhttp_request *req);

/* True for "/", with or without a query, in origin-form or absolute-form. */
bool request_target_is_root(const struct evhttp_request *req);

/* Makes evhttp, which knows only its own reading of Connection and of the version, act as `keep`
 * says, and answer as HTTP/1.1 or 1.0. To be called before the answer is sent. */
void request_set_persistence(struct evhttp_request *req, enum persistence persistence);

#endif
