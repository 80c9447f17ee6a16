#include "entry/listener.h"

#include "entry/keeper.h"
#include "host/usage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LISTENERS_MAX = 64,
    STATE_LISTEN = 0x0A /* TCP_LISTEN, include/net/tcp_states.h */
};

/* The kernel hands a connection to the sockets that match it most closely (inet_lhash2_lookup and
 * compute_score, net/ipv4/inet_hashtables.c): those of the address before those of any, and IPv4's
 * own before IPv6's. Only they are kept. */
struct listeners {
    unsigned long inodes[LISTENERS_MAX];
    bool ours[LISTENERS_MAX];
    int count;
    int closeness;
};

/* 0 if 127.0.0.1 does not reach the address. Those of /proc/net/tcp and tcp6 are words in the
 * machine's own order, in hexadecimal. */
static int closeness_of(const char *address)
{
    static const unsigned char loopback[4] = {127, 0, 0, 1};
    unsigned word;
    char text[9];
    size_t size = strlen(address);
    bool ip4 = size == 8;
    memcpy(&word, loopback, sizeof word);
    snprintf(text, sizeof text, "%08X", word);
    if (strspn(address, "0") == size)
        return ip4 ? 2 : 1;
    if (size >= 8 && strcmp(address + size - 8, text) == 0)
        return ip4 ? 4 : 3;
    return 0;
}

static void add(struct listeners *found, unsigned long inode, int closeness)
{
    if (closeness > found->closeness) {
        found->closeness = closeness;
        found->count = 0;
    }
    if (closeness == found->closeness && found->count < LISTENERS_MAX) {
        found->ours[found->count] = false;
        found->inodes[found->count++] = inode;
    }
}

/* Adds those of one table; one that can't be read adds none. */
static void add_table(const char *path, unsigned port, struct listeners *found)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    while (file != NULL && getline(&line, &room, file) > 0) {
        char address[33];
        unsigned local_port, state;
        unsigned long inode;
        if (sscanf(line, " %*u: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*u %*u %lu", address,
                   &local_port, &state, &inode) == 4 &&
            local_port == port && state == STATE_LISTEN && closeness_of(address) > 0)
            add(found, inode, closeness_of(address));
    }
    free(line);
    if (file != NULL)
        fclose(file);
}

/* Marks the sockets that a process holds; its descriptors are links like "socket:[12345]". False if
 * they can't be read. */
static bool mark_held(const char *pid, struct listeners *found)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *folder = opendir(path);
    struct dirent *item;
    if (folder == NULL)
        return false;
    while ((item = readdir(folder)) != NULL) {
        char link[64];
        unsigned long inode;
        ssize_t size = readlinkat(dirfd(folder), item->d_name, link, sizeof link - 1);
        link[size > 0 ? size : 0] = '\0';
        if (sscanf(link, "socket:[%lu]", &inode) != 1)
            continue;
        for (int i = 0; i < found->count; i++)
            found->ours[i] = found->ours[i] || found->inodes[i] == inode;
    }
    closedir(folder);
    return true;
}

/* "process 123 (name)", or "another process" where it can't be seen. */
static void name_holder(unsigned long inode, char *text, size_t bytes)
{
    DIR *proc = opendir("/proc");
    struct dirent *item;
    struct listeners one = {.inodes = {inode}, .count = 1};
    snprintf(text, bytes, "another process");
    while (proc != NULL && !one.ours[0] && (item = readdir(proc)) != NULL) {
        char path[300];
        char name[32] = "?";
        if (strspn(item->d_name, "0123456789") == 0 || !mark_held(item->d_name, &one) ||
            !one.ours[0])
            continue;
        snprintf(path, sizeof path, "/proc/%s/comm", item->d_name);
        FILE *file = fopen(path, "re");
        if (file != NULL && fscanf(file, "%31[^\n]", name) != 1)
            name[0] = '?';
        if (file != NULL)
            fclose(file);
        snprintf(text, bytes, "process %.20s (%s)", item->d_name, name);
    }
    if (proc != NULL)
        closedir(proc);
}

int listener_check(struct server *server, struct err *err)
{
    struct listeners found = {0};
    pid_t pids[HOST_TREE_MAX];
    add_table("/proc/net/tcp", server->port, &found);
    add_table("/proc/net/tcp6", server->port, &found);
    int count = server_pids(server, pids, HOST_TREE_MAX);
    for (int i = 0; i < count; i++) {
        char pid[16];
        snprintf(pid, sizeof pid, "%d", (int)pids[i]);
        if (!mark_held(pid, &found))
            return 0; /* of another user, or just ended */
    }
    for (int i = 0; i < found.count && count > 0; i++) {
        char holder[64];
        if (found.ours[i])
            continue;
        name_holder(found.inodes[i], holder, sizeof holder);
        return err_set(err, EADDRINUSE,
                       "%s listens on 127.0.0.1:%u too, and is none of the server's; end it, or "
                       "take another port",
                       holder, server->port);
    }
    return 0;
}
