/* Calls from C into Lua: the functions that lib/http.lua gives to `start`, each of which gets the
 * connection's socket table first. An error in one is shown on standard error with its traceback;
 * what becomes of the connection is the caller's to decide. One process has one Lua state. */
#ifndef SERVERS_LUVIT_SCRIPT_H
#define SERVERS_LUVIT_SCRIPT_H

#include <stdbool.h>

#include <lua.h>

struct connection;

enum script_function {
    SCRIPT_REQUEST,  /* method, target, headers as "name\0value\0" pairs with names in lower case,
                        the 0 or 1 of HTTP/1.x, whether the request has ended, having no body */
    SCRIPT_DATA,     /* a part of the body */
    SCRIPT_DONE,     /* the body has ended */
    SCRIPT_DRAIN,    /* a handler that was told to wait may go on */
    SCRIPT_FAILED,   /* the host has answered in the handler's place */
    SCRIPT_SCHEDULE, /* call resume from the loop's next turn */
    SCRIPT_LINGER,   /* close after a while */
    SCRIPT_CLOSED,   /* close the handle and forget the connection */
    SCRIPT_FUNCTIONS,
};

void script_open(lua_State *L);

/* Takes the functions from the table at `index`. Raises a Lua error if one is missing. */
void script_set_functions(lua_State *L, int index);

/* No function is called after this: for the time when the Lua state is closed. */
void script_stop(void);
bool script_is_stopped(void);

/* Lets the socket table go. */
void script_forget(struct connection *c);

/* Push the function and the socket; returns the state to push arguments on. Then call it, with the
 * number of arguments pushed. Returns whether it ended without an error. */
lua_State *script_begin(const struct connection *c, enum script_function which);
bool script_end(int arguments);

/* Both, without arguments. */
bool script_call(const struct connection *c, enum script_function which);

#endif
