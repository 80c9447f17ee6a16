/* Starting an entry: its argv filled, its config made for the port, in a folder of its own that is
 * removed when the server has ended (entry/server.h).
 */
#ifndef ENTRY_LAUNCH_H
#define ENTRY_LAUNCH_H

#include "entry/entry.h"
#include "entry/server.h"

struct entry_launch {
    unsigned port;
    unsigned workers; /* 0 counts as 1 */
    const int *cpus;  /* the rest as in struct server_start */
    int cpu_count;
    unsigned files;
    bool inherit_output;
    char *const *before; /* words put before its command, such as valgrind's; NULL: none */
};

/* Whether the entry can be told how many workers to start: {workers} stands in its command or in
 * its config. */
bool entry_takes_workers(const struct entry *entry);

/* server_start() for `entry`. Its errors, and those of reading the config and of making the folder.
 */
int entry_launch(const struct entry *entry, const struct entry_launch *launch,
                 struct server **server, struct err *err);

#endif
