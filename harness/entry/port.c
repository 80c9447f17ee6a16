#include "entry/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_LOW 10000 /* below are well-known services and many people's own */

/* Whether one could listen there now: 0 or -errno. A port in TIME_WAIT only does not hinder, as it
 * does not a server that sets SO_REUSEADDR. */
static int try_listen(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;
    int code = 0;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0)
        code = -errno;
    if (fd >= 0)
        close(fd);
    return code;
}

/* The first port that outgoing connections may take (ip(7), ip_local_port_range). */
static unsigned ephemeral_low(void)
{
    unsigned low = 32768;
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (file != NULL) {
        if (fscanf(file, "%u", &low) != 1)
            low = 32768;
        fclose(file);
    }
    return low;
}

/* A step of splitmix64 (Steele, Lea, Flood 2014), so that neighbouring seeds differ. */
static uint64_t mix(uint64_t seed)
{
    seed += UINT64_C(0x9E3779B97F4A7C15);
    seed = (seed ^ seed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    seed = (seed ^ seed >> 27) * UINT64_C(0x94D049BB133111EB);
    return seed ^ seed >> 31;
}

int server_free_port(uint64_t seed, unsigned *port, struct err *err)
{
    unsigned end = ephemeral_low();
    unsigned low = PORT_LOW;
    if (end <= 1024 + 256)
        end = 65536; /* the range was widened to almost all: any port has to do */
    if (end <= low + 256)
        low = 1024;
    for (unsigned i = 0; i < 256; i++) {
        unsigned candidate = low + (unsigned)((mix(seed) + i) % (end - low));
        if (try_listen(candidate) == 0) {
            *port = candidate;
            return 0;
        }
    }
    return err_set(err, EADDRINUSE,
                   "256 ports between %u and %u were tried on 127.0.0.1, none free", low, end - 1);
}

int server_port_check(unsigned port, struct err *err)
{
    if (port < 1 || port > 65535)
        return err_set(err, EINVAL, "there is no port %u; ports are 1 to 65535", port);
    int status = try_listen(port);
    if (status == -EADDRINUSE)
        return err_set(err, EADDRINUSE,
                       "port %u is in use on 127.0.0.1; take another, or end what listens there "
                       "(ss -ltnp 'sport = :%u' names it)",
                       port, port);
    if (status == -EACCES)
        return err_set(err, EACCES, "port %u needs root; take one of 1024 and more", port);
    if (status != 0)
        return err_set(err, -status, "port %u on 127.0.0.1: %s", port, strerror(-status));
    return 0;
}
