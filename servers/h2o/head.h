/* A second look at a request's head. libh2o 2.2.5 hands its handler no Host, Content-Length,
 * Transfer-Encoding or Expect line, and keeps one of several without a word; so the rules about
 * how many there may be can only be held against the bytes of the head itself, which still stand
 * at the start of the socket's input while the handler runs, the names in lower case.
 */
#ifndef SERVERS_H2O_HEAD_H
#define SERVERS_H2O_HEAD_H

#include <stdbool.h>

/* True if the head that starts at `head`, which h2o has parsed (so it ends in an empty line), may
 * be answered: RFC 9112, 3.2 (one valid Host; only HTTP/1.0 may leave it out), 5.2 (no folded
 * line), 6.1 (no Transfer-Encoding in HTTP/1.0, none beside Content-Length, none twice) and 6.3
 * (no two Content-Lengths). */
bool head_is_valid(const char *head, bool http_1_0);

#endif
