/* The answers that the raw entries send, whole and ready in memory, with a Date that is never old.
 *
 * An entry calls reply_refresh() once each time its loop wakes, before it answers anything; between
 * two calls the Date stands still. So an answer's Date is as old as one turn of the loop at most,
 * and right at once after an idle hour. In most turns a refresh is one clock read (vDSO, no system
 * call) and a comparison; once a second it rewrites 29 bytes in each answer.
 *
 * Bytes are made here and nowhere else, so that all raw entries answer alike. Shapes and status
 * codes follow RFC 9110 (15, 6.6.1 for Date, 10.2.1 for Allow) and RFC 9112 (9.3, 9.6 for
 * Connection). Nothing here allocates, and nothing here knows of sockets.
 */
#ifndef SERVERS_COMMON_REPLY_H
#define SERVERS_COMMON_REPLY_H

enum reply_status {
    REPLY_OK,                    /* 200, `Hello World\n` */
    REPLY_BAD_REQUEST,           /* 400 */
    REPLY_NOT_FOUND,             /* 404 */
    REPLY_METHOD_NOT_ALLOWED,    /* 405, with Allow: GET, HEAD, POST */
    REPLY_URI_TOO_LONG,          /* 414 */
    REPLY_FIELDS_TOO_LARGE,      /* 431 */
    REPLY_NOT_IMPLEMENTED,       /* 501 */
    REPLY_VERSION_NOT_SUPPORTED, /* 505 */
    REPLY_STATUSES
};

enum reply_connection {
    REPLY_IMPLIED,    /* no Connection line: HTTP/1.1 that goes on */
    REPLY_CLOSE,      /* Connection: close */
    REPLY_KEEP_ALIVE, /* Connection: keep-alive, which an HTTP/1.0 client waits for */
    REPLY_CONNECTIONS
};

/* No answer is longer than this. */
#define REPLY_MAX_BYTES 224

struct reply {
    unsigned head_bytes;  /* up to and with the blank line: the answer to HEAD */
    unsigned bytes;       /* head and body: the answer to all else */
    unsigned date_offset; /* for reply_refresh() alone */
    char text[REPLY_MAX_BYTES];
};

/* Makes every answer. Call once, before anything below. */
void reply_init(void);

/* Brings the Date up to the present second. Returns 1 if the answers changed, else 0. */
int reply_refresh(void);

/* The answer for a status; valid for ever, its Date changed by reply_refresh(). */
const struct reply *reply_get(enum reply_status status, enum reply_connection connection);

#endif
