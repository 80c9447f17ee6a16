/* Who listens on a server's port. Two processes may share a port (SO_REUSEPORT, socket(7)), and a
 * server that could not bind may live on while another one answers: either would be measured under
 * the wrong name. Private to entry/.
 */
#ifndef ENTRY_LISTENER_H
#define ENTRY_LISTENER_H

#include "entry/server.h"

/* Holds the sockets that listen on the server's port where 127.0.0.1 reaches them (/proc/net/tcp
 * and tcp6, proc(5)) against the descriptors of the server's process tree (/proc/PID/fd).
 * -EADDRINUSE, naming the process where it can be seen, if one of them is held by none of the tree.
 * 0 if all are the tree's own, and where that can't be told: another network namespace, a /proc
 * that may not be read. */
int listener_check(struct server *server, struct err *err);

#endif
