#include "hammer/ports.h"

#include "hammer/worker.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define FILES_SPARE  16 /* engines, libraries, a record being written */
#define FILES_THREAD 3

static rlim_t files_open(void)
{
    rlim_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return 64;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

int ports_reserve_files(const struct hammer_config *config, struct err *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return err_set(err, errno, "the file limit can't be read");
    rlim_t need = config->connections + config->threads * FILES_THREAD + FILES_SPARE + files_open();
    if (limit.rlim_cur >= need)
        return 0;
    const struct rlimit raised = {.rlim_cur = need, .rlim_max = need};
    if (limit.rlim_max < need && setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return 0; /* root may, up to fs.nr_open */
    if (limit.rlim_max < need)
        return err_set(err, EMFILE,
                       "%u connections need %llu open files, and the limit is %llu: raise it with "
                       "'ulimit -Hn %llu' as root, or ask for at most %llu connections",
                       config->connections, (unsigned long long)need,
                       (unsigned long long)limit.rlim_max, (unsigned long long)need,
                       (unsigned long long)(limit.rlim_max > need - config->connections
                                                ? limit.rlim_max - (need - config->connections)
                                                : 0));
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return err_set(err, errno, "the file limit can't be raised to %llu",
                       (unsigned long long)limit.rlim_max);
    return 0;
}

static unsigned ports_of_one_address(void)
{
    unsigned low = 32768, high = 60999; /* Linux's default */
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (file) {
        if (fscanf(file, "%u %u", &low, &high) != 2 || high < low || high > 65535)
            low = 32768, high = 60999;
        fclose(file);
    }
    return high - low + 1;
}

/* Sockets in TIME_WAIT, whatever their addresses: an upper bound on the ports they hold here. */
static unsigned time_waits(void)
{
    char line[256];
    unsigned count = 0;
    FILE *file = fopen("/proc/net/sockstat", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        const char *at = strstr(line, " tw ");
        if (strncmp(line, "TCP:", 4) == 0 && at && sscanf(at, " tw %u", &count) == 1)
            break;
    }
    fclose(file);
    return count;
}

/* Those towards one destination, whose ports are not to be had: /proc/net/tcp (proc_net_tcp.txt),
 * addresses as the machine's words, state 6. */
static unsigned time_waits_towards(const struct sockaddr_in *address)
{
    char line[256];
    unsigned count = 0, ip, port, state;
    FILE *file = fopen("/proc/net/tcp", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, " %*u: %*8x:%*4x %8x:%4x %2x", &ip, &port, &state) == 3 && state == 6 &&
            ip == address->sin_addr.s_addr && port == ntohs(address->sin_port))
            count++;
    fclose(file);
    return count;
}

/* A destination elsewhere has one source address here. */
static int plan_elsewhere(const struct hammer_config *config, unsigned ports, struct err *err)
{
    unsigned taken = config->close_each ? time_waits_towards(&config->address) : 0;
    unsigned left = taken < ports ? ports - taken : 0;
    if (config->connections <= left)
        return 0;
    return err_set(err, EADDRNOTAVAIL,
                   "%u connections to one address need more than the %u local ports that are left "
                   "(%u in all, %u in TIME_WAIT): widen net.ipv4.ip_local_port_range, wait a "
                   "minute, or ask for fewer connections",
                   config->connections, left, ports, taken);
}

int ports_plan(const struct hammer_config *config, struct in_addr *sources, unsigned max,
               unsigned *count, struct err *err)
{
    unsigned ports = ports_of_one_address();
    unsigned need = config->connections;
    *count = 0;
    if (!load_is_loopback(config))
        return plan_elsewhere(config, ports, err);
    /* Half of an address's ports at most: connect(2) looks for a free one longer and longer. A
     * connection a request spreads over several in any case, since each may leave a TIME_WAIT. */
    unsigned wanted = (need + ports / 2 - 1) / (ports / 2 + 1) + 1;
    if (config->close_each)
        wanted += 4 + time_waits() / (ports / 2 + 1);
    if (need <= ports / 2 && !config->close_each)
        return 0;
    if (wanted > max)
        return err_set(err, EADDRNOTAVAIL,
                       "%u connections need more local ports than %u addresses have with %u each: "
                       "widen net.ipv4.ip_local_port_range",
                       need, max, ports);
    for (unsigned i = 0; i < wanted; i++)
        sources[i].s_addr = htonl(0x7f000001u + i);
    *count = wanted;
    return 0;
}
