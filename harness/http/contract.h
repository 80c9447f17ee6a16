/* The answer that the contract (docs/CONTRACT.md) asks of GET /: status 200, text/plain, twelve
 * bytes of body, a Date no older than 2 s.
 */
#ifndef HTTP_CONTRACT_H
#define HTTP_CONTRACT_H

#include "http/answer.h"

extern const struct http_expect contract_hello;

#endif
