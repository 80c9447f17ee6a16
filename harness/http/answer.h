/* The expected answer, and two ways to hold what came against it: the full check of a scanned
 * response, and a pattern learnt from a checked answer with which each later one is compared at
 * memcmp's cost, Date masked.
 */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include "http/response.h"

#include <string.h>
#include <time.h>

#define HTTP_DATE_BYTES 29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */
#define HTTP_DATE_SKEW  2  /* seconds that a Date may be from now, either way (the contract) */

/* What is NULL or false is not looked at. Each field that is asked for must stand on one line
 * (RFC 9110 5.3), Content-Length as a single number. */
struct http_expect {
    unsigned status; /* 0: any 2xx (the hammer aimed at a foreign URL) */
    /* Media type, compared without parameters, case-insensitive (RFC 9110 8.3.1). NULL: any. */
    const char *content_type;
    /* NULL: any. Of a body beyond HTTP_BODY_KEEP bytes, its length and its first HTTP_BODY_KEEP
     * bytes are compared. */
    const char *body;
    size_t body_bytes;
    /* A well-formed IMF-fixdate (RFC 9110 5.6.7) at most HTTP_DATE_SKEW from now required. */
    bool date;
    /* Answers HEAD: no body expected; Content-Length, where sent, as for GET (RFC 9110 8.6). The
     * response must come from a scanner started so. */
    bool head;
    /* Connection: close expected (RFC 9112 9.6), or HTTP/1.0 without keep-alive, which says the
     * same (9.3). Where it is false, an answer that closes is right too: a server may end a
     * connection after any answer. */
    bool close;
};

/* Returns true if `r` meets `expect`; else false with the reason in `why`: what was expected, and
 * what came ("expected status 200, came 404"), one line of printable ASCII. `now` is the wall clock
 * in seconds, for Date. */
bool http_answer_check(const struct http_expect *expect, const struct http_response *r, time_t now,
                       char *why, size_t why_bytes);

#define HTTP_PATTERN_MAX 1024

/* The wire bytes of an answer that passed the full check. */
struct http_pattern {
    size_t size;     /* 0: none learnt */
    size_t date;     /* offset of the Date value; 0: no Date */
    time_t date_s;   /* the second that `bytes` holds; 0: no Date */
    bool keep_alive; /* http_response.keep_alive of each answer that matches */
    char bytes[HTTP_PATTERN_MAX];
};

/* Learns from wire bytes of one complete response `r` that passed. Returns false, and leaves size
 * 0, where a byte pattern can't stand for it (chunked, framed by close, after a 1xx, larger than
 * HTTP_PATTERN_MAX): such answers go through the scanner every time. A Date is masked if it is the
 * only one and well-formed, else compared as the other bytes are. */
bool http_pattern_learn(struct http_pattern *p, const struct http_response *r, const char *wire,
                        size_t size);

/* Private: the rest of http_pattern_match, out of line, where something differs. */
bool http_pattern_match_date(struct http_pattern *p, const char *wire, time_t now);

/* Compares exactly p->size bytes, of which the caller has made sure, against a pattern that was
 * learnt. Equal bytes match while the Date held is fresh at `now`: a frozen Date fails though all
 * bytes are equal. A Date that differs from the one held is parsed, must be fresh, and becomes the
 * one held. False: not the same answer, or a stale one; the caller lets the scanner and
 * http_answer_check decide. `now` may be a second that the caller holds for a batch. */
static inline bool http_pattern_match(struct http_pattern *p, const char *wire, time_t now)
{
    /* One comparison: -SKEW <= now - date_s <= SKEW. */
    bool fresh = (uint64_t)(now - p->date_s + HTTP_DATE_SKEW) <= 2 * HTTP_DATE_SKEW || p->date == 0;
    if (__builtin_expect(fresh && memcmp(wire, p->bytes, p->size) == 0, 1))
        return true;
    return http_pattern_match_date(p, wire, now);
}

/* Parses IMF-fixdate (RFC 9110 5.6.7: fixed length, case-sensitive, the day's name must be right)
 * into seconds since the epoch; (time_t)-1 if malformed or before 1970. Second 60 is allowed at
 * 23:59 only (RFC 5322 3.3) and counts as the next day's first. */
time_t http_date_parse(const char *text, size_t size);

#endif
