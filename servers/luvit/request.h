/* What arrives: llhttp's callbacks. They gather the head of a request, check what RFC 9112 tells a
 * server to check and llhttp leaves to it, and hand the request and its body to Lua. */
#ifndef SERVERS_LUVIT_REQUEST_H
#define SERVERS_LUVIT_REQUEST_H

#include <llhttp.h>

/* Fills in the callbacks. The parser's `data` must be the struct connection. */
void request_settings(llhttp_settings_t *settings);

#endif
