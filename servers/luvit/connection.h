/* One HTTP connection: reads a TCP stream that luv owns, parses it with llhttp, hands each request
 * to Lua in one call, and gathers the replies that Lua writes so that a burst of pipelined requests
 * is answered by one write. Lua knows what a request means; this module knows bytes and order.
 *
 * Requests of one connection are served one after the other: the next one is parsed when the
 * reply to the last is finished, so replies keep their order whenever a handler answers. Bytes that
 * wait are kept up to IN_MAX; beyond it the client is no longer read from. A reply that is
 * finished before its request has ended waits for that end (a malformed body must get its 400),
 * unless more than HELD_MAX bytes wait: then it is a stream and goes out.
 *
 * The luvit_* functions are called from Lua through the FFI, so that compiled traces reach them
 * without the C API. None of them calls back into Lua.
 */
#ifndef SERVERS_LUVIT_CONNECTION_H
#define SERVERS_LUVIT_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

#include <lua.h>

struct connection;

/* Makes the Lua module `luvit.connection`:
 *   start{request=, data=, ...}  the functions called from here, see enum callback
 *   attach(tcp, socket) -> light userdata   takes over an accepted uv_tcp; `socket` is the table
 *                                           that all calls for this connection get first
 *   resume(connection)   after a reply moved on outside of a call from here: sends and parses on
 *   hold(connection, on) stops or restarts reading from the client
 *   fail(connection)     answers 500, or cuts the connection if the reply has begun to leave
 *   close(connection)    drops the connection at once
 * request gets (socket, method, url, headers, minor, ended): headers as "name\0value\0" pairs with
 * names in lower case, minor the 0 or 1 of HTTP/1.x, ended whether the request has no body. */
int connection_open_module(lua_State *L);

/* No Lua function is called from here after this; for the time when the Lua state is closed. */
void connection_stop_all(void);

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

#endif
