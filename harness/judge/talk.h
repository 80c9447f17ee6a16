/* One conversation with a server: a variant of a page carried out on a connection of its own, and
 * what came held against what was expected. Blocking, for a thread of its own; conversations share
 * only the peer, which they do not change.
 */
#ifndef JUDGE_TALK_H
#define JUDGE_TALK_H

#include "base/err.h"
#include "http/response.h"
#include "judge/page.h"

#include <netinet/in.h>

#define TALK_ANSWER_WAIT_NS UINT64_C(2000000000) /* for an answer, or a close that must come */

struct talk_peer {
    struct sockaddr_in address;
    char host[64];              /* value of Host */
    bool body_known;            /* two answers to GET / had the same body */
    struct http_response hello; /* the answer to GET / that others are held against */
};

/* Fills *peer, asking GET / twice. -ECONNREFUSED and the like, -EPROTO when what came is no
 * answer. Any status is taken: the pages judge it. */
int talk_meet(struct talk_peer *peer, const struct sockaddr_in *address, struct err *err);

struct talk_outcome {
    bool passed;
    bool noted; /* passed by an alternative that deserves a note */
    bool late;  /* fell short because something had not come in time */
    /* What was sent and what came, as C escapes with notes in <>, long ones shortened; what was
     * expected at the point where it fell short; what was wrong. Owned; NULL where passed, but for
     * `problem`, which also says what is noted. */
    char *sent, *came, *expected, *problem;
};

/* In how many ways `variant` is split: the number of `place`s from 0. */
size_t talk_places(const struct talk_peer *peer, const struct page_variant *variant, uint64_t seed);

/* The same peer, variant, seed and place send the same bytes. */
void talk_carry_out(const struct talk_peer *peer, const struct page_variant *variant, uint64_t seed,
                    size_t place, struct talk_outcome *outcome);
void talk_outcome_clear(struct talk_outcome *outcome);

/* For the compiled cases: a connection (-1 if refused), with `wait_ns` for what it sends; a GET /
 * on a connection of its own answered as hello and closed within the answer's time. Where not,
 * `problem` says how. */
int talk_connect(const struct talk_peer *peer);
bool talk_is_served(const struct talk_peer *peer, char *problem, size_t problem_bytes);

#endif
