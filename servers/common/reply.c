#include "reply.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* As long as an IMF-fixdate always is (RFC 9110, 5.6.7); reply_refresh() puts the real one in. */
#define DATE_PLACE "Thu, 01 Jan 1970 00:00:00 GMT"

enum { DATE_BYTES = sizeof DATE_PLACE - 1 };

static const struct {
    const char *line;
    const char *fields;
    const char *body;
} statuses[REPLY_STATUSES] = {
    [REPLY_OK] = {"200 OK", "", "Hello World\n"},
    [REPLY_BAD_REQUEST] = {"400 Bad Request", "", "Bad Request\n"},
    [REPLY_NOT_FOUND] = {"404 Not Found", "", "Not Found\n"},
    [REPLY_METHOD_NOT_ALLOWED] = {"405 Method Not Allowed", "Allow: GET, HEAD, POST\r\n",
                                  "Method Not Allowed\n"},
    [REPLY_URI_TOO_LONG] = {"414 URI Too Long", "", "URI Too Long\n"},
    [REPLY_FIELDS_TOO_LARGE] = {"431 Request Header Fields Too Large", "",
                                "Request Header Fields Too Large\n"},
    [REPLY_NOT_IMPLEMENTED] = {"501 Not Implemented", "", "Not Implemented\n"},
    [REPLY_VERSION_NOT_SUPPORTED] = {"505 HTTP Version Not Supported", "",
                                     "HTTP Version Not Supported\n"},
};

static const char *const connections[REPLY_CONNECTIONS] = {
    [REPLY_IMPLIED] = "",
    [REPLY_CLOSE] = "Connection: close\r\n",
    [REPLY_KEEP_ALIVE] = "Connection: keep-alive\r\n",
};

static struct reply replies[REPLY_STATUSES][REPLY_CONNECTIONS];
static time_t dated_s = -1;

static void reply_make(struct reply *reply, enum reply_status status, enum reply_connection how)
{
    const char *body = statuses[status].body;
    reply->bytes = (unsigned)snprintf(
        reply->text, sizeof reply->text,
        "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
        "Date: " DATE_PLACE "\r\n%s%s\r\n%s",
        statuses[status].line, strlen(body), statuses[status].fields, connections[how], body);
    reply->head_bytes = reply->bytes - (unsigned)strlen(body);
    reply->date_offset = (unsigned)(strstr(reply->text, DATE_PLACE) - reply->text);
}

void reply_init(void)
{
    for (int status = 0; status < REPLY_STATUSES; status++)
        for (int how = 0; how < REPLY_CONNECTIONS; how++)
            reply_make(&replies[status][how], (enum reply_status)status,
                       (enum reply_connection)how);
    reply_refresh();
}

int reply_refresh(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec == dated_s)
        return 0;
    dated_s = now.tv_sec;

    struct tm utc;
    char date[DATE_BYTES + 1];
    gmtime_r(&now.tv_sec, &utc);
    /* Day and month come out in English because no entry calls setlocale(). */
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    for (int status = 0; status < REPLY_STATUSES; status++)
        for (int how = 0; how < REPLY_CONNECTIONS; how++) {
            struct reply *reply = &replies[status][how];
            memcpy(reply->text + reply->date_offset, date, DATE_BYTES);
        }
    return 1;
}

const struct reply *reply_get(enum reply_status status, enum reply_connection connection)
{
    return &replies[status][connection];
}
