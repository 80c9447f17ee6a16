#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static _Noreturn void usage(const char *program, const char *problem, const char *word)
{
    fprintf(stderr, "%s: %s%s\nusage: %s --port N | --version | --help\n", program, problem, word,
            program);
    exit(2);
}

static uint16_t parse_port(const char *program, const char *text)
{
    char *end;
    errno = 0;
    long port = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || port < 1 || port > 65535)
        usage(program, "--port takes a number from 1 to 65535, not ", text);
    return (uint16_t)port;
}

void server_args_parse(struct server_args *args, int argc, char **argv, const char *version)
{
    args->port = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0) {
            puts(version);
            exit(0);
        }
        if (strcmp(argv[i], "--help") == 0) {
            printf("usage: %s --port N | --version | --help\n"
                   "Answers GET / on 127.0.0.1:N until SIGTERM.\n",
                   argv[0]);
            exit(0);
        }
        if (strcmp(argv[i], "--port") != 0)
            usage(argv[0], "unknown argument ", argv[i]);
        if (++i == argc)
            usage(argv[0], "--port needs a number", "");
        args->port = parse_port(argv[0], argv[i]);
    }
    if (args->port == 0)
        usage(argv[0], "no port given", "");
}

int server_listen(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, INT_MAX) != 0) {
        fprintf(stderr, "cannot listen on 127.0.0.1:%u: %s\n", port, strerror(errno));
        exit(1);
    }
    return fd;
}

void server_ignore_sigpipe(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
}
