/* Local ports and files: whether a run fits in them, told before it begins. A connection's port is
 * taken while it lives, and, if this side closes first, 60 s more in TIME_WAIT (Linux's
 * TCP_TIMEWAIT_LEN; over loopback, tcp_tw_reuse = 2 lets connect(2) have it back after 1 s). One
 * source address has the ports of net.ipv4.ip_local_port_range towards one destination: 28,232 by
 * default. On loopback all of 127.0.0.0/8 is local, so more source addresses give more ports.
 */
#ifndef HAMMER_PORTS_H
#define HAMMER_PORTS_H

#include "base/err.h"
#include "hammer/hammer.h"

/* Raises the soft file limit as far as `connections` and `threads` need, and the hard one where
 * this user may (root). -EMFILE with the remedy. */
int ports_reserve_files(const struct hammer_config *config, struct err *err);

/* Fills sources[0..max) with the local addresses to bind to and *count with their number; 0: none,
 * the kernel's choice will do. -EADDRNOTAVAIL when the ports do not suffice and the destination is
 * not on loopback. */
int ports_plan(const struct hammer_config *config, struct in_addr *sources, unsigned max,
               unsigned *count, struct err *err);

#endif
