#include "script.h"

#include <stdio.h>

#include <lauxlib.h>

#include "connection.h"

static const char *const names[SCRIPT_FUNCTIONS] = {
    [SCRIPT_REQUEST] = "request",   [SCRIPT_DATA] = "data",     [SCRIPT_DONE] = "done",
    [SCRIPT_DRAIN] = "drain",       [SCRIPT_FAILED] = "failed", [SCRIPT_LINGER] = "linger",
    [SCRIPT_SCHEDULE] = "schedule", [SCRIPT_CLOSED] = "closed",
};

static struct {
    lua_State *L;
    int traceback; /* these are references into the registry */
    int functions[SCRIPT_FUNCTIONS];
    bool stopped;
} script;

static int traceback(lua_State *L)
{
    const char *message = lua_tostring(L, 1);
    luaL_traceback(L, L, message != NULL ? message : luaL_typename(L, 1), 1);
    return 1;
}

void script_open(lua_State *L)
{
    script.L = L;
    lua_pushcfunction(L, traceback);
    script.traceback = luaL_ref(L, LUA_REGISTRYINDEX);
}

void script_set_functions(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    for (int i = 0; i < SCRIPT_FUNCTIONS; i++) {
        lua_getfield(L, index, names[i]);
        luaL_checktype(L, -1, LUA_TFUNCTION);
        script.functions[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
}

void script_stop(void)
{
    script.stopped = true;
}

bool script_is_stopped(void)
{
    return script.stopped;
}

void script_forget(struct connection *c)
{
    luaL_unref(script.L, LUA_REGISTRYINDEX, c->socket);
    c->socket = LUA_NOREF;
}

lua_State *script_begin(const struct connection *c, enum script_function which)
{
    lua_rawgeti(script.L, LUA_REGISTRYINDEX, script.traceback);
    lua_rawgeti(script.L, LUA_REGISTRYINDEX, script.functions[which]);
    lua_rawgeti(script.L, LUA_REGISTRYINDEX, c->socket);
    return script.L;
}

bool script_end(int arguments)
{
    lua_State *L = script.L;
    bool ok = lua_pcall(L, arguments + 1, 0, -(arguments + 3)) == 0;
    if (!ok) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return ok;
}

bool script_call(const struct connection *c, enum script_function which)
{
    script_begin(c, which);
    return script_end(0);
}
