/* One HTTP connection: reads a TCP stream that luv owns, parses it with llhttp, hands each request
 * to Lua in one call, and gathers the replies that Lua writes so that a burst of pipelined requests
 * is answered by one write. Lua knows what a request means; this module knows bytes and order.
 *
 * The requests of one connection are served one after the other: the next one is parsed when the
 * reply to the last is finished, so replies keep their order whenever a handler answers. Input that
 * waits meanwhile is kept up to a bound, then the client is no longer read from. A reply that is
 * finished before its request has ended waits for that end (a malformed body must get its 400),
 * unless many bytes of it wait: then it is a stream and goes out.
 *
 * A connection is freed when luv collects its handle, so it outlives every call that has it. */
#ifndef SERVERS_LUVIT_CONNECTION_H
#define SERVERS_LUVIT_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <llhttp.h>
#include <lua.h>
#include <uv.h>

#include "buffer.h"

enum {
    CONNECTION_OUT_HIGH = 64 * 1024, /* bytes of replies gathered before they must be sent */
};

struct connection {
    llhttp_t parser;
    uv_tcp_t *tcp; /* luv's */
    int socket;    /* reference of the Lua table in the registry */

    struct buffer in;      /* received, not parsed yet */
    struct buffer out;     /* replies not given to the kernel yet */
    struct buffer sending; /* what the kernel would not take at once */
    uv_write_t write;
    uv_shutdown_t shutdown;
    size_t linger_bytes;
    uint64_t active_ms; /* loop time of the last byte in or out */

    struct {                /* the request being parsed or answered; request.c */
        struct buffer head; /* target, then name\0value\0 pairs */
        size_t target_length;
        size_t name_start;
        size_t trailer_bytes;
        uint64_t begun_ms;
        int error_status; /* to refuse it with */
        unsigned hosts;
        bool says_close;
        bool says_keep_alive;
        bool expects_continue;
        bool begun;
        bool head_done;
        bool called; /* the handler has it */
        bool done;
    } request;

    struct {                  /* the reply to it; reply.c */
        struct buffer fields; /* "name: value\r\n" lines to be sent */
        size_t start;         /* where in `out` it begins */
        uint64_t body_left;   /* of the length declared */
        bool counted;         /* body_left holds */
        bool chunked;
        bool wants_chunks;
        bool wants_close;
        bool has_date;
        bool head_written;
        bool no_body;
        bool done;
        bool sent; /* some of it has left */
    } reply;

    bool keep_alive;
    bool busy;        /* inside connection_advance, which will send what is appended */
    bool held;        /* the handler does not want more of the body now */
    bool wants_drain; /* the handler waits until the client has read */
    bool reading;
    bool writing;
    bool ended;     /* the client has sent its FIN */
    bool finishing; /* no more requests; close when all is sent */
    bool unread;    /* input was dropped: linger, lest a reset eats the last reply */
    bool lingering;
    bool closing;
};

/* Makes the Lua module `luvit.connection`:
 *   start{request=, data=, ...}  the functions called from here, see enum script_function
 *   attach(tcp, socket) -> light userdata   takes over an accepted uv_tcp; `socket` is the table
 *                                           that all calls for this connection get first
 *   resume(connection)   after a reply moved on outside of a call from here: sends and parses on
 *   hold(connection, on) stops or restarts reading from the client
 *   fail(connection)     answers 500, or cuts the connection if the reply has begun to leave
 *   is_stale(connection) whether it has been idle, or its client busy with one head, for too long
 *   close(connection)    drops the connection at once */
int connection_open_module(lua_State *L);

/* Ends the connection with a reply of the host's own, in place of what the handler has begun; if
 * that has partly left, the client can only be told by the cut. */
void connection_fail(struct connection *c, int status);

/* Gives the kernel what may leave now. */
void connection_send(struct connection *c);

/* An exchange is over when both its request and its reply have ended, in either order. */
void connection_settle(struct connection *c);

/* Whether the parser must wait, or is not needed any more. */
bool connection_is_blocked(const struct connection *c);

#endif
