/* Requests as bytes. Builds what a workload or the command line asks for; knows no socket.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct http_request {
    const char *method;         /* a token (RFC 9110 5.6.2); "GET" */
    const char *target;         /* origin-form, "/" */
    const char *host;           /* value of Host */
    const char *const *headers; /* "Name: value" lines without CRLF */
    size_t header_count;
    const char *body; /* NULL for none; adds Content-Length */
    size_t body_bytes;
};

/* Returns a new buffer (free()) in *bytes, its length in *size. -EINVAL for a header without a
 * colon, CR or LF in any part, a method that is no token, a target that holds a space, names the
 * part. A header given by the caller named Host or Content-Length takes the place of the one made
 * here. */
int http_request_build(const struct http_request *request, char **bytes, size_t *size,
                       struct err *err);

#endif
