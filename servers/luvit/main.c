/* luvit in small: runs a Lua script on LuaJIT with luv's event loop and an `http` module in luvit's
 * manner. The Lua half of the host stands in lib/ and is part of the binary, so that any script
 * runs from anywhere. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <llhttp.h>
#include <luajit.h>
#include <lualib.h>
#include <uv.h>

#include "connection.h"
#include "script.h"

/* Make runs in the top folder, which these names start from. */
#define EMBED(symbol, file)                                                                        \
    __asm__(".section .rodata\n.global " #symbol "\n.global " #symbol "_end\n" #symbol ":\n"       \
            ".incbin \"servers/luvit/lib/" file "\"\n" #symbol "_end:\n.previous\n");              \
    extern const char symbol[], symbol##_end[]

EMBED(luvit_lib_boot, "boot.lua");
EMBED(luvit_lib_core, "core.lua");
EMBED(luvit_lib_http, "http.lua");
EMBED(luvit_lib_timer, "timer.lua");

static const struct module {
    const char *name;
    const char *start;
    const char *end;
} modules[] = {
    {"luvit.boot", luvit_lib_boot, luvit_lib_boot_end},
    {"core", luvit_lib_core, luvit_lib_core_end},
    {"http", luvit_lib_http, luvit_lib_http_end},
    {"timer", luvit_lib_timer, luvit_lib_timer_end},
};

static _Noreturn void usage(const char *program, FILE *to, int status)
{
    fprintf(to,
            "usage: %s SCRIPT [ARGUMENT ...] | --version | --help\n"
            "Runs a Lua script; require('http').createServer(...) makes a server.\n",
            program);
    exit(status);
}

static void print_version(void)
{
    printf("%s, libuv %s, llhttp %d.%d.%d\n", LUAJIT_VERSION, uv_version_string(),
           LLHTTP_VERSION_MAJOR, LLHTTP_VERSION_MINOR, LLHTTP_VERSION_PATCH);
}

static int traceback(lua_State *L)
{
    luaL_traceback(L, L, lua_tostring(L, 1), 1);
    return 1;
}

/* Leaves the function package.preload[name] for each module of the binary. */
static void preload(lua_State *L)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        const struct module *m = &modules[i];
        char chunk[64];
        snprintf(chunk, sizeof chunk, "=%s", m->name);
        if (luaL_loadbuffer(L, m->start, (size_t)(m->end - m->start), chunk) != 0) {
            fprintf(stderr, "%s\n", lua_tostring(L, -1));
            exit(1);
        }
        lua_setfield(L, -2, m->name);
    }
    lua_pushcfunction(L, connection_open_module);
    lua_setfield(L, -2, "luvit.connection");
    lua_pop(L, 2);
}

/* Runs luvit.boot with the command line; its result is the exit status. */
static int boot(lua_State *L, int argc, char **argv)
{
    lua_pushcfunction(L, traceback);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "luvit.boot");
    if (lua_pcall(L, 1, 1, -3) == 0) {
        for (int i = 0; i < argc; i++)
            lua_pushstring(L, argv[i]);
        if (lua_pcall(L, argc, 1, -2 - argc) == 0)
            return (int)lua_tointeger(L, -1);
    }
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        usage(argv[0], stderr, 2);
    if (strcmp(argv[1], "--help") == 0)
        usage(argv[0], stdout, 0);
    if (strcmp(argv[1], "--version") == 0) {
        print_version();
        return 0;
    }
    if (argv[1][0] == '-') {
        fprintf(stderr, "%s: unknown option %s\n", argv[0], argv[1]);
        usage(argv[0], stderr, 2);
    }
    signal(SIGPIPE, SIG_IGN);
    lua_State *L = luaL_newstate();
    if (L == NULL) {
        fprintf(stderr, "%s: out of memory\n", argv[0]);
        return 1;
    }
    luaL_openlibs(L);
    preload(L);
    int status = boot(L, argc, argv);
    script_stop();
    lua_close(L);
    return status;
}
