/* The check before any load: does a running server give the contract's answers? A server that does
 * not is measured no further.
 */
#ifndef JUDGE_ANSWERS_H
#define JUDGE_ANSWERS_H

#include "base/err.h"

/* Holds the server on 127.0.0.1:port against: 404 for a random unknown path, HEAD without a body,
 * three pipelined requests in one segment all answered in order, and Connection: close obeyed (RFC
 * 9112 9.3, 9.6). Returns 0, or -EPROTO with what was expected and what came. `seed` makes the
 * path. */
int judge_answers(unsigned port, unsigned long seed, struct err *err);

#endif
