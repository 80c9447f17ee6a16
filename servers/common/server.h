/* What every C entry would repeat and what no library is about: the command line and the
 * listening socket. An entry is free not to use it. Nothing here reads, parses or answers.
 */
#ifndef SERVERS_COMMON_SERVER_H
#define SERVERS_COMMON_SERVER_H

#include <stdint.h>

#define SERVER_WORKERS_MAX 64

struct server_args {
    uint16_t port;    /* host order, 1..65535 */
    unsigned workers; /* 1..SERVER_WORKERS_MAX; 1 unless asked otherwise */
};

/* Reads `--port N`, `--workers N`, `--version`, `--help`. `version` is the line that --version
 * prints, such as "libuv 1.44.2, llhttp 8.1.0", asked of the libraries at run time where they can
 * tell. Prints and exits 0 for --version and --help; exits 2 with a usage line for anything else.
 */
void server_args_parse(struct server_args *args, int argc, char **argv, const char *version);

/* Returns a non-blocking, close-on-exec TCP socket that listens on 127.0.0.1:port with
 * SO_REUSEADDR and the longest accept queue the kernel allows (net.core.somaxconn); a burst of
 * 20,000 connects must not be dropped by a short one. Accepted sockets inherit its TCP_NODELAY
 * (Linux copies a listener's TCP options), so no entry pays a system call a connection for it, and
 * the second write of a pipelined answer does not wait for the first one's ACK. Exits 1 with the
 * reason on standard error if the port cannot be had.
 *
 * With several workers it returns once in each of so many child processes, with a socket of the
 * child's own that shares the port (SO_REUSEPORT, socket(7), Linux 3.9). The parent does not
 * return: it passes SIGTERM on, and exits 0 when all have ended; if one ends unasked, it says so,
 * ends the others and exits 1. So call it before making what a fork must not share: a loop, a ring,
 * a thread. */
int server_listen(const struct server_args *args);

/* Ignores SIGPIPE: a write to a client that has gone must return EPIPE, not end the server. */
void server_ignore_sigpipe(void);

#endif
