/* Whether a Host field's value may stand in a request. RFC 9112, 3.2 has a server answer 400 to a
 * Host that is missing, doubled or invalid; several libraries leave the last one to their user.
 */
#ifndef SERVERS_COMMON_HOST_H
#define SERVERS_COMMON_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* True if `text` is uri-host [":" port] as RFC 3986, 3.2.2 has them, or empty, which RFC 9110, 7.2
 * asks a client to send for a target without an authority. White space around the value counts
 * as part of it: trim first. An IP-literal is held to its characters, not to its grammar. */
bool host_is_valid(const char *text, size_t len);

#endif
