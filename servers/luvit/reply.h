/* What is sent: the functions that Lua calls through the FFI, so that compiled traces reach them
 * without the C API. They frame a reply (RFC 9112 6) and append it to the connection's `out`; none
 * of them sends, and none calls back into Lua. lib/http.lua declares them again: keep both alike.
 */
#ifndef SERVERS_LUVIT_REPLY_H
#define SERVERS_LUVIT_REPLY_H

#include <stddef.h>

struct connection;

/* The header of the reply to come. luvit_set replaces a field of the same name and returns 0,
 * having changed nothing, if the name or the value can't be sent (RFC 9110 5.1, 5.5; Content-Length
 * must be a number, Transfer-Encoding `chunked`). Date, Content-Length, Transfer-Encoding and
 * Connection are understood: what the handler leaves out of them is added. luvit_get copies at most
 * `size` bytes of the value into `to` and returns its length, or -1 if there is no such field. */
int luvit_set(struct connection *c, const char *name, size_t name_length, const char *value,
              size_t value_length);
int luvit_set_number(struct connection *c, const char *name, size_t name_length, double value);
int luvit_get(struct connection *c, const char *name, size_t name_length, char *to, size_t size);
void luvit_remove(struct connection *c, const char *name, size_t name_length);
void luvit_remove_all(struct connection *c);
void luvit_no_date(struct connection *c);

enum luvit_next {
    LUVIT_RESUME = 1,   /* resume must be called, as nothing else will send what is there */
    LUVIT_FULL = 2,     /* the client is slow: `drain` will be called */
    LUVIT_TOO_LONG = 4, /* nothing appended: the body exceeds its Content-Length */
};

/* Append the head, with the status line given; a part of the body; the end, with the head before it
 * if that has not been written. A body written in parts without a Content-Length goes out in
 * chunks, or to an HTTP/1.0 client until the connection closes. A reply that ends before its
 * Content-Length ends the connection. Each returns a set of luvit_next. */
int luvit_head(struct connection *c, int status, const char *line, size_t line_length);
int luvit_body(struct connection *c, const char *data, size_t length);
int luvit_finish(struct connection *c, int status, const char *line, size_t line_length,
                 const char *data, size_t length);

/* Appends a whole reply of the host's own, after which the connection closes. */
void reply_refusal(struct connection *c, int status);

/* Forgets the reply before. */
void reply_reset(struct connection *c);

#endif
