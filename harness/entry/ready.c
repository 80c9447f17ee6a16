#include "base/clock.h"
#include "entry/keeper.h"
#include "entry/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FIRST_DELAY_MS 2
#define LAST_DELAY_MS  50

/* A server on its way up may drop its first connections. One that takes connections and drops each
 * of them for so long has come up. */
#define DROPS_LIMIT_NS (2 * NS_PER_S)

enum attempt {
    ATTEMPT_RIGHT,
    ATTEMPT_WRONG,
    ATTEMPT_REFUSED, /* nothing listens */
    ATTEMPT_CLOSED,  /* closed without an answer */
    ATTEMPT_RESET,   /* reset without an answer */
    ATTEMPT_SILENT,  /* the deadline came */
    ATTEMPT_ENDED,   /* the server is not running */
    ATTEMPT_INTERRUPTED
};

struct probe {
    struct server *server;
    const char *request;
    size_t request_bytes;
    const struct http_expect *expect;
    uint64_t deadline_ns;
    char why[400]; /* after ATTEMPT_WRONG */
    char detail[256];
    struct http_scanner scanner;
};

/* Waits on fd, looking at the server's state meanwhile. ATTEMPT_RIGHT: fd is ready. */
static enum attempt wait_for(struct probe *probe, int fd, short events)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int ready = poll(&p, 1, 20);
        if (ready > 0)
            return ATTEMPT_RIGHT;
        if (ready < 0 && errno == EINTR)
            return ATTEMPT_INTERRUPTED;
        if (server_poll(probe->server, probe->detail, sizeof probe->detail) != SERVER_RUNNING)
            return ATTEMPT_ENDED;
        if (clock_now_ns() >= probe->deadline_ns)
            return ATTEMPT_SILENT;
    }
}

static enum attempt connect_to(struct probe *probe, int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)probe->server->port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return ATTEMPT_RIGHT;
    if (errno != EINPROGRESS)
        return ATTEMPT_REFUSED;
    enum attempt waited = wait_for(probe, fd, POLLOUT);
    if (waited != ATTEMPT_RIGHT)
        return waited;
    int code = 0;
    socklen_t size = sizeof code;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
    if (code == ECONNRESET)
        return ATTEMPT_RESET;
    return code == 0 ? ATTEMPT_RIGHT : ATTEMPT_REFUSED;
}

static enum attempt send_request(struct probe *probe, int fd)
{
    size_t sent = 0;
    while (sent < probe->request_bytes) {
        ssize_t wrote = send(fd, probe->request + sent, probe->request_bytes - sent, MSG_NOSIGNAL);
        if (wrote >= 0) {
            sent += (size_t)wrote;
            continue;
        }
        if (errno != EAGAIN)
            return errno == ECONNRESET ? ATTEMPT_RESET : ATTEMPT_CLOSED;
        enum attempt waited = wait_for(probe, fd, POLLOUT);
        if (waited != ATTEMPT_RIGHT)
            return waited;
    }
    return ATTEMPT_RIGHT;
}

static enum attempt judge(struct probe *probe, enum http_scan scan)
{
    if (scan == HTTP_SCAN_BAD) {
        snprintf(probe->why, sizeof probe->why, "%s", probe->scanner.problem);
        return ATTEMPT_WRONG;
    }
    bool right = http_answer_check(probe->expect, &probe->scanner.response, time(NULL), probe->why,
                                   sizeof probe->why);
    return right ? ATTEMPT_RIGHT : ATTEMPT_WRONG;
}

static enum attempt judge_end(struct probe *probe, int code)
{
    if (http_scanner_untouched(&probe->scanner))
        return code == ECONNRESET ? ATTEMPT_RESET : ATTEMPT_CLOSED;
    if (code == 0)
        return judge(probe, http_scanner_end(&probe->scanner));
    snprintf(probe->why, sizeof probe->why, "%s in the middle of its answer", strerror(code));
    return ATTEMPT_WRONG;
}

static enum attempt read_answer(struct probe *probe, int fd)
{
    char buffer[4096];
    http_scanner_start(&probe->scanner, probe->expect->head);
    for (;;) {
        enum attempt waited = wait_for(probe, fd, POLLIN);
        if (waited != ATTEMPT_RIGHT)
            return waited;
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            return judge_end(probe, got < 0 ? errno : 0);
        size_t used;
        enum http_scan scan = http_scanner_feed(&probe->scanner, buffer, (size_t)got, &used);
        if (scan != HTTP_SCAN_MORE)
            return judge(probe, scan);
    }
}

static enum attempt try_once(struct probe *probe)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return ATTEMPT_REFUSED;
    enum attempt attempt = connect_to(probe, fd);
    if (attempt == ATTEMPT_RIGHT)
        attempt = send_request(probe, fd);
    if (attempt == ATTEMPT_RIGHT)
        attempt = read_answer(probe, fd);
    close(fd);
    return attempt;
}

static bool is_drop(enum attempt attempt)
{
    return attempt == ATTEMPT_CLOSED || attempt == ATTEMPT_RESET;
}

/* Tries until there is an answer, right or wrong, or no hope. */
static enum attempt try_until_deadline(struct probe *probe)
{
    int delay_ms = FIRST_DELAY_MS;
    uint64_t dropping_since_ns = 0;
    for (;;) {
        enum attempt attempt = try_once(probe);
        if (server_poll(probe->server, probe->detail, sizeof probe->detail) != SERVER_RUNNING)
            return ATTEMPT_ENDED;
        if (attempt != ATTEMPT_REFUSED && !is_drop(attempt))
            return attempt;
        uint64_t now_ns = clock_now_ns();
        if (!is_drop(attempt))
            dropping_since_ns = 0;
        else if (dropping_since_ns == 0)
            dropping_since_ns = now_ns;
        else if (now_ns - dropping_since_ns >= DROPS_LIMIT_NS)
            return attempt;
        if (now_ns >= probe->deadline_ns)
            return attempt;
        if (poll(NULL, 0, delay_ms) < 0 && errno == EINTR)
            return ATTEMPT_INTERRUPTED;
        if (delay_ms < LAST_DELAY_MS)
            delay_ms += (delay_ms + 3) / 4;
    }
}

/* Puts the last output behind what `err` says, on one line. */
static int add_output(struct server *server, struct err *err)
{
    if (err == NULL)
        return 0;
    char text[400];
    char line[3 * sizeof text] = ""; /* a newline becomes three characters */
    size_t used = 0;
    server_output(server, text, sizeof text);
    for (const char *c = text; *c != '\0'; c++) {
        const char *part = *c == '\n' && c[1] != '\0' ? " | " : *c == '\n' ? "" : NULL;
        used += (size_t)(part != NULL ? snprintf(line + used, sizeof line - used, "%s", part)
                                      : snprintf(line + used, sizeof line - used, "%c", *c));
    }
    if (line[0] == '\0')
        return err_set(err, err->code, "%s; it printed nothing", err->text);
    return err_set(err, err->code, "%s; its last output: %s", err->text, line);
}

static void explain(const struct probe *probe, enum attempt attempt, double waited_s,
                    struct err *err)
{
    unsigned port = probe->server->port;
    switch (attempt) {
    case ATTEMPT_RIGHT:
        return;
    case ATTEMPT_WRONG:
        err_set(err, EPROTO, "answers wrongly: %s", probe->why);
        return;
    case ATTEMPT_REFUSED:
        err_set(err, ETIMEDOUT, "did not listen on 127.0.0.1:%u within %.1f s", port, waited_s);
        return;
    case ATTEMPT_CLOSED:
        err_set(err, ETIMEDOUT, "closes connections on 127.0.0.1:%u without an answer, for %.1f s",
                port, waited_s);
        return;
    case ATTEMPT_RESET:
        err_set(err, ETIMEDOUT, "resets connections on 127.0.0.1:%u without an answer, for %.1f s",
                port, waited_s);
        return;
    case ATTEMPT_SILENT:
        err_set(err, ETIMEDOUT, "listens on 127.0.0.1:%u, but did not answer within %.1f s", port,
                waited_s);
        return;
    case ATTEMPT_ENDED:
        if (server_lacks(probe->server))
            err_set(err, ENOTSUP, "can't run on this machine");
        else
            err_set(err, ECHILD, "ended before it was ready: %s", probe->detail);
        return;
    case ATTEMPT_INTERRUPTED:
        err_set(err, EINTR, "interrupted while waiting for it to be ready");
        return;
    }
}

int server_wait_ready(struct server *server, const char *request, size_t request_bytes,
                      const struct http_expect *expect, uint64_t deadline_ns, uint64_t *took_ns,
                      struct err *err)
{
    uint64_t begin = clock_now_ns();
    struct probe probe = {.server = server,
                          .request = request,
                          .request_bytes = request_bytes,
                          .expect = expect,
                          .deadline_ns = begin + deadline_ns};
    enum attempt attempt = try_until_deadline(&probe);
    uint64_t now = clock_now_ns();
    struct err own = {0};
    bool connected =
        attempt != ATTEMPT_REFUSED && attempt != ATTEMPT_ENDED && attempt != ATTEMPT_INTERRUPTED;
    if (connected && listener_check(server, &own) != 0)
        return err_set(err, own.code, "%s", own.text);
    if (attempt == ATTEMPT_RIGHT) {
        *took_ns = now - server->started_ns;
        return 0;
    }
    explain(&probe, attempt, (double)(now - begin) / (double)NS_PER_S, &own);
    if (attempt != ATTEMPT_INTERRUPTED)
        add_output(server, &own);
    return err_set(err, own.code, "%s", own.text);
}
