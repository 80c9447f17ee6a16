/* The expected answer, and two ways to hold what came against it: the full check of a scanned
 * response, and a pattern learnt from a checked answer with which each later one is compared at
 * memcmp's cost, Date masked.
 */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include "http/response.h"

#include <time.h>

struct http_expect {
    unsigned status; /* 0: any 2xx (the hammer aimed at a foreign URL) */
    const char
        *content_type; /* media type compared without parameters, case-insensitive; NULL: any */
    const char *body;  /* NULL: any body */
    size_t body_bytes;
    bool
        date; /* a single, well-formed IMF-fixdate (RFC 9110 5.6.7) at most 2 s from now required */
    bool head;  /* answers HEAD: no body expected, Content-Length as for GET */
    bool close; /* Connection: close expected (RFC 9112 9.6) */
};

/* Returns true if `r` meets `expect`; else false with the reason in `why`: what was expected, and
 * what came. `now` is the wall clock in seconds, for Date. */
bool http_answer_check(const struct http_expect *expect, const struct http_response *r, time_t now,
                       char *why, size_t why_bytes);

#define HTTP_PATTERN_MAX 1024
#define HTTP_DATE_BYTES  29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* The wire bytes of an answer that passed the full check. */
struct http_pattern {
    size_t size;   /* 0: none learnt */
    size_t date;   /* offset of the Date value; 0: no Date */
    time_t date_s; /* the second that `bytes` holds */
    char bytes[HTTP_PATTERN_MAX];
};

/* Learns from wire bytes of one complete response `r` that passed. Returns false, and leaves size
 * 0, where a byte pattern can't stand for it (chunked, framed by close, after a 1xx, larger than
 * HTTP_PATTERN_MAX): such answers go through the scanner every time. */
bool http_pattern_learn(struct http_pattern *p, const struct http_response *r, const char *wire,
                        size_t size);

/* Compares exactly p->size bytes, Date masked; then a Date that differs from the one held is
 * parsed, must be at most 2 s from now, and becomes the one held. Inline memcmp when nothing
 * changed. False: not the same bytes; the caller lets the scanner decide. */
bool http_pattern_match(struct http_pattern *p, const char *wire, time_t now);

/* Parses IMF-fixdate; (time_t)-1 if malformed. */
time_t http_date_parse(const char *text, size_t size);

#endif
