/* A strict, incremental scanner of HTTP/1.x responses (RFC 9112): it frames them, says what is
 * malformed, and keeps what a check needs. It accepts any split of the bytes. No allocation: the
 * caller owns the struct. 1xx responses are skipped and counted (RFC 9110 15.2; 101 is an error,
 * nobody asked for an upgrade). A body is framed as RFC 9112 6.3 has it: none for HEAD, 1xx, 204
 * and 304; chunked; Content-Length; else by the end of the connection.
 */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX  16384 /* bytes of status line and fields kept; more is an error */
#define HTTP_BODY_KEEP 1024  /* first bytes of the body kept for the check */

enum http_scan { HTTP_SCAN_MORE, HTTP_SCAN_DONE, HTTP_SCAN_BAD };

enum http_framing {
    HTTP_FRAMING_NONE,
    HTTP_FRAMING_LENGTH,
    HTTP_FRAMING_CHUNKED,
    HTTP_FRAMING_EOF
};

struct http_field { /* offsets into head */
    uint16_t name, name_bytes, value, value_bytes;
};

#define HTTP_FIELDS_MAX 64

struct http_response {
    unsigned status; /* 200..599 */
    unsigned minor;  /* HTTP/1.minor */
    enum http_framing framing;
    bool keep_alive;         /* the connection may carry another response (RFC 9112 9.3) */
    bool close;              /* Connection: close was said (RFC 9112 9.6) */
    unsigned informational;  /* 1xx skipped before it */
    uint64_t content_length; /* valid when has_content_length (also for HEAD) */
    bool has_content_length;
    uint64_t body_bytes;  /* body after chunked decoding */
    uint64_t total_bytes; /* on the wire, 1xx included */
    unsigned field_count;
    struct http_field fields[HTTP_FIELDS_MAX]; /* of the final head; trailers not among them */
    size_t head_bytes;                         /* status line to the empty line, inclusive */
    char head[HTTP_HEAD_MAX];
    char body[HTTP_BODY_KEEP];
};

struct http_scanner {
    struct http_response response;
    const char *problem; /* after BAD: what is wrong, a static string with the RFC section */
    /* private to response.c from here */
    int state;
    bool head_request;
    uint64_t left;        /* of the body or the chunk; while its line is read, the chunk's size */
    size_t line_start;    /* of the line of the head that is not complete yet */
    size_t section_bytes; /* of this chunk's size line, or of the trailer section */
};

/* `head_request`: the response answers HEAD and so has no body. */
void http_scanner_start(struct http_scanner *s, bool head_request);

/* Takes bytes; *used says how many belong to this response (less than size once DONE: the rest is
 * the next one's). After DONE or BAD it must be started anew. The verdict, the problem and what is
 * kept do not depend on how the bytes were split.
 *
 * Where the RFCs leave recipients a choice, this one is strict, since it judges senders:
 * - status line: HTTP/1.0 or HTTP/1.1, one SP, three digits from 100 to 599, SP also
 *   before an empty reason (RFC 9112 4). 101 is an error, and so is 1xx in HTTP/1.0, which has
 *   none (RFC 9110 15.2).
 * - a line ends in CRLF; bare LF is an error though RFC 9112 2.2 lets recipients accept it, bare CR
 *   too. obs-fold (5.2), space before the colon (5.1), a character outside token in a name, NUL or
 *   another control in a value (RFC 9110 5.5) are errors. obs-text is not.
 * - Content-Length: digits that fit 64 bits. Several that are equal, in a list or over lines, count
 *   as one (RFC 9110 8.6 allows both that and refusal; http_answer_check refuses); several that
 *   differ are an error. Beside Transfer-Encoding (RFC 9112 6.2), in 1xx and in 204 (RFC 9110 8.6)
 *   it is an error; an empty list member too (RFC 9110 5.6.1.1).
 * - Transfer-Encoding: exactly "chunked", since a request without TE allows no other coding
 *   (RFC 9112 7.4); in HTTP/1.0, 1xx and 204 an error (6.1).
 * - chunks (7.1): sizes that fit 64 bits; extensions with tokens and quoted strings, BWS accepted
 *   (RFC 9110 5.6.3); a size line of more than HTTP_HEAD_MAX bytes is an error. Trailers as fields
 *   are, at most HTTP_HEAD_MAX bytes in all.
 * - a head of more than HTTP_HEAD_MAX bytes or HTTP_FIELDS_MAX fields is an error. */
enum http_scan http_scanner_feed(struct http_scanner *s, const char *bytes, size_t size,
                                 size_t *used);

/* The peer closed. DONE if the body was framed by the end; BAD ("closed before …") otherwise. */
enum http_scan http_scanner_end(struct http_scanner *s);

/* True if not a byte of a response has come since the start (a clean close between responses). */
bool http_scanner_untouched(const struct http_scanner *s);

/* The nth (from 0) field of that name, case-insensitive, or NULL. */
const struct http_field *http_response_field(const struct http_response *r, const char *name,
                                             unsigned nth);

#endif
