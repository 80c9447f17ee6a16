#include "judge/answers.h"
#include "base/clock.h"
#include "http/contract.h"
#include "http/response.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_WAIT_MS = 2000, ASKED_MAX = 3 };

/* A conversation: bytes sent in one segment, and the answers that must come. */
struct exchange {
    const char *title;
    const char *format; /* of the bytes; %u is the port, %lx the seed */
    struct http_expect answers[ASKED_MAX];
    int count;
    bool then_closed; /* the server must close after them */
};

#define HELLO    .status = 200, .content_type = "text/plain", .body = "Hello World\n", .body_bytes = 12
#define GET_ROOT "GET / HTTP/1.1\r\nHost: 127.0.0.1:%1$u\r\n"

static const struct exchange exchanges[] = {
    {
        .title = "an unknown path",
        .format = "GET /%2$lx HTTP/1.1\r\nHost: 127.0.0.1:%1$u\r\n\r\n" GET_ROOT "\r\n",
        .answers = {{.status = 404, .date = true}, {HELLO, .date = true}},
        .count = 2,
    },
    {
        .title = "HEAD",
        .format = "HEAD / HTTP/1.1\r\nHost: 127.0.0.1:%1$u\r\n\r\n" GET_ROOT "\r\n",
        .answers = {{HELLO, .head = true}, {HELLO, .date = true}},
        .count = 2,
    },
    {
        .title = "three requests in one segment",
        .format = GET_ROOT "\r\n" GET_ROOT "\r\n" GET_ROOT "\r\n",
        .answers = {{HELLO, .date = true}, {HELLO, .date = true}, {HELLO, .date = true}},
        .count = 3,
    },
    {
        .title = "Connection: close",
        .format = GET_ROOT "Connection: close\r\n\r\n",
        .answers = {{HELLO, .date = true, .close = true}},
        .count = 1,
        .then_closed = true,
    },
};

static int dial(unsigned port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Reads more, or says why not: bytes, 0 at the end, -1 on an error or after ANSWER_WAIT_MS. */
static ssize_t read_some(int fd, char *bytes, size_t size)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, ANSWER_WAIT_MS) <= 0)
        return -1;
    return recv(fd, bytes, size, 0);
}

/* Unread bytes of the connection, carried from one answer to the next. */
struct inbox {
    int fd;
    char bytes[8192];
    size_t at, end;
};

static int read_answer(struct inbox *inbox, const struct http_expect *expect, char *why,
                       size_t why_bytes)
{
    struct http_scanner scanner;
    http_scanner_start(&scanner, expect->head);
    enum http_scan scan = HTTP_SCAN_MORE;
    while (scan == HTTP_SCAN_MORE) {
        if (inbox->at == inbox->end) {
            ssize_t got = read_some(inbox->fd, inbox->bytes, sizeof inbox->bytes);
            inbox->at = 0;
            inbox->end = got > 0 ? (size_t)got : 0;
            if (got < 0) {
                snprintf(why, why_bytes, "no whole answer within %d ms", ANSWER_WAIT_MS);
                return -1;
            }
            if (got == 0) {
                scan = http_scanner_end(&scanner);
                break;
            }
        }
        size_t used;
        scan = http_scanner_feed(&scanner, inbox->bytes + inbox->at, inbox->end - inbox->at, &used);
        inbox->at += used;
    }
    if (scan == HTTP_SCAN_BAD) {
        snprintf(why, why_bytes, "%s", scanner.problem);
        return -1;
    }
    return http_answer_check(expect, &scanner.response, time(NULL), why, why_bytes) ? 0 : -1;
}

static int converse(int fd, const struct exchange *exchange, const char *bytes, char *why,
                    size_t why_bytes)
{
    struct inbox inbox = {.fd = fd};
    size_t size = strlen(bytes);
    if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size) {
        snprintf(why, why_bytes, "the request could not be sent: %s", strerror(errno));
        return -1;
    }
    for (int i = 0; i < exchange->count; i++) {
        char reason[512];
        if (read_answer(&inbox, &exchange->answers[i], reason, sizeof reason) != 0) {
            snprintf(why, why_bytes, "answer %d of %d: %s", i + 1, exchange->count, reason);
            return -1;
        }
    }
    if (inbox.at != inbox.end) {
        snprintf(why, why_bytes, "%zu bytes more than the answers asked for", inbox.end - inbox.at);
        return -1;
    }
    if (exchange->then_closed && read_some(fd, inbox.bytes, sizeof inbox.bytes) != 0) {
        snprintf(why, why_bytes, "the connection was not closed after the answer");
        return -1;
    }
    return 0;
}

int judge_answers(unsigned port, unsigned long seed, struct err *err)
{
    for (size_t i = 0; i < sizeof exchanges / sizeof exchanges[0]; i++) {
        char bytes[512];
        char why[768];
        snprintf(bytes, sizeof bytes, exchanges[i].format, port, seed);
        int fd = dial(port);
        if (fd < 0)
            return err_set(err, errno, "cannot connect for the check of %s: %s", exchanges[i].title,
                           strerror(errno));
        int status = converse(fd, &exchanges[i], bytes, why, sizeof why);
        close(fd);
        if (status != 0)
            return err_set(err, EPROTO, "%s: %s", exchanges[i].title, why);
    }
    return 0;
}
