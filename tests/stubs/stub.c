/* A small HTTP server with a known fault, for the tests of the harness: one epoll loop, one thread.
 *
 *   stub MODE [NUMBER...] [--late MS] --port N
 *
 * It keeps the server contract (GET / gives 200, text/plain, Content-Length 12, a live Date and
 * "Hello World\n"; another path gives 404; keep-alive; pipelined requests in order; SIGTERM ends
 * it with status 0) but for the one fault that MODE plants. The table `modes` at the end is the
 * list of faults: a mode is what happens before listening, what happens at each request, or what
 * happens at each tick of a clock. With --late each answer of any mode waits MS milliseconds while
 * other connections go on: so the rate is known, and with it when an "after N" fault will strike.
 * Bodies are consumed by Content-Length; a chunked one gets 411.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES   24576 /* 256 pipelined requests */
#define ANSWER_ROOM    1024  /* no answer is longer */
#define NUMBERS_MAX    2
#define PIECE_PAUSE_NS 20000

struct connection {
    int fd; /* -1 once closed; freed when no longer held */
    uint32_t events;
    bool held;     /* in the queue of answers that are late */
    bool finished; /* our side is shut: what still comes is thrown away */
    bool finishing;
    uint64_t due_ns;
    struct connection *next_held;
    size_t skip;  /* bytes of a body still to come after its answer (answers-early) */
    size_t piece; /* bytes a write; 0: all */
    size_t in_bytes, out_bytes;
    char in[BUFFER_BYTES];
    char out[BUFFER_BYTES];
};

struct request {
    bool root; /* the path is "/" */
    bool head;
    bool http10;
    bool keep_alive;
    size_t body_bytes;
};

struct answer {
    const char *version;
    const char *status;
    const char *fields; /* each with its CRLF */
    const char *body;
    size_t length; /* as announced */
    bool chunked;
};

struct mode {
    const char *name;
    unsigned numbers;
    void (*start)(void);
    void (*answer)(struct connection *, const struct request *);
    void (*tick)(void);
    const char *what;
};

static const struct mode *mode;
static uint64_t number[NUMBERS_MAX];
static uint64_t requests; /* answered so far, the present one included */
static uint64_t late_ms;  /* every answer so late */
static bool freeze_date, body_waits = true, one_a_read;
static int epoll_fd, listen_fd, hold_fd, tick_fd;
static struct connection *first_held, *last_held;

static void fail(const char *what)
{
    fprintf(stderr, "stub: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- connections */

static void connection_close(struct connection *c)
{
    close(c->fd);
    c->fd = -1;
}

static void connection_watch(struct connection *c)
{
    bool reads = c->in_bytes < BUFFER_BYTES;
    bool writes = c->out_bytes > 0 && !c->held;
    uint32_t wanted = (reads ? (uint32_t)EPOLLIN : 0) | (writes ? (uint32_t)EPOLLOUT : 0);
    if (wanted == c->events)
        return;
    struct epoll_event event = {.events = wanted, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event) < 0)
        fail("epoll_ctl");
    c->events = wanted;
}

static void arm_hold(uint64_t due_ns)
{
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(due_ns / 1000000000),
                                           .tv_nsec = (long)(due_ns % 1000000000)}};
    if (timerfd_settime(hold_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0)
        fail("timerfd_settime");
}

/* What is in c->out goes out delay_ns from now. A mode has one delay, so the queue is in order. */
static void hold(struct connection *c, uint64_t delay_ns)
{
    c->held = true;
    c->due_ns = now_ns(CLOCK_MONOTONIC) + delay_ns;
    c->next_held = NULL;
    if (first_held)
        last_held->next_held = c;
    else
        first_held = c;
    last_held = c;
    if (first_held == c)
        arm_hold(c->due_ns);
}

static void connection_flush(struct connection *c)
{
    while (c->fd >= 0 && !c->held && c->out_bytes) {
        size_t size = c->piece && c->piece < c->out_bytes ? c->piece : c->out_bytes;
        ssize_t n = send(c->fd, c->out, size, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            connection_close(c);
            return;
        }
        c->out_bytes -= (size_t)n;
        memmove(c->out, c->out + n, c->out_bytes);
        if (c->piece && c->out_bytes)
            hold(c, PIECE_PAUSE_NS);
    }
    if (c->fd >= 0 && c->finishing && !c->finished && !c->out_bytes) {
        shutdown(c->fd, SHUT_WR);
        c->finished = true;
    }
}

/* ---- answers */

__attribute__((format(printf, 2, 3))) static void put(struct connection *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(c->out + c->out_bytes, BUFFER_BYTES - c->out_bytes, format, arguments);
    va_end(arguments);
    c->out_bytes += (size_t)n;
}

static const char *date_now(void)
{
    static char text[64];
    static time_t made;
    time_t now = time(NULL);
    if (now != made && !(freeze_date && made)) {
        struct tm parts;
        made = now;
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts));
    }
    return text;
}

static struct answer right_answer(const struct request *r)
{
    const char *body = r->root ? "Hello World\n" : "Not Found\n";
    return (struct answer){.version = "HTTP/1.1",
                           .status = r->root ? "200 OK" : "404 Not Found",
                           .fields = "",
                           .body = body,
                           .length = strlen(body)};
}

static void put_answer(struct connection *c, const struct request *r, const struct answer *a)
{
    put(c, "%s %s\r\nContent-Type: text/plain\r\nDate: %s\r\n%s", a->version, a->status, date_now(),
        a->fields);
    if (!r->keep_alive) {
        put(c, "Connection: close\r\n");
        c->finishing = true;
    } else if (r->http10) {
        put(c, "Connection: keep-alive\r\n");
    }
    if (a->chunked)
        put(c, "Transfer-Encoding: chunked\r\n\r\n");
    else
        put(c, "Content-Length: %zu\r\n\r\n", a->length);
    if (r->head)
        return;
    if (a->chunked)
        put(c, "5\r\n%.5s\r\n%zx\r\n%s\r\n0\r\n\r\n", a->body, strlen(a->body) - 5, a->body + 5);
    else
        put(c, "%s", a->body);
}

static void answer_plain(struct connection *c, const struct request *r)
{
    struct answer a = right_answer(r);
    put_answer(c, r, &a);
}

static void answer_every(struct connection *c, const struct request *r)
{
    answer_plain(c, r);
    if (number[0] && requests % number[0] == 0)
        hold(c, number[1] * 1000000);
}

static void answer_wrong_length(struct connection *c, const struct request *r)
{
    struct answer a = right_answer(r);
    a.length = number[0];
    put_answer(c, r, &a);
}

static void answer_wrong_body_after(struct connection *c, const struct request *r)
{
    struct answer a = right_answer(r);
    if (r->root && requests > number[0])
        a.body = "Hello Mars!\n";
    put_answer(c, r, &a);
}

static void answer_error_500(struct connection *c, const struct request *r)
{
    struct answer a = right_answer(r);
    a.status = "500 Internal Server Error";
    put_answer(c, r, &a);
}

static void answer_bad_http(struct connection *c, const struct request *r)
{
    struct answer a = right_answer(r);
    a.version = "HTP/1.1";
    put_answer(c, r, &a);
}

static void answer_chunked(struct connection *c, const struct request *r)
{
    struct answer a = right_answer(r);
    a.chunked = true;
    put_answer(c, r, &a);
}

static void answer_informational(struct connection *c, const struct request *r)
{
    put(c, "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
    answer_plain(c, r);
}

static void answer_split(struct connection *c, const struct request *r)
{
    c->piece = number[0] ? (size_t)number[0] : 1;
    answer_plain(c, r);
}

static void answer_reset_after(struct connection *c, const struct request *r)
{
    if (requests <= number[0]) {
        answer_plain(c, r);
        return;
    }
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    connection_close(c);
}

static void answer_early_close(struct connection *c, const struct request *r)
{
    answer_plain(c, r);
    c->out_bytes -= 6; /* the second half of the body */
    c->finishing = true;
}

static void answer_no_keepalive(struct connection *c, const struct request *r)
{
    struct request last = *r;
    last.keep_alive = false;
    answer_plain(c, &last);
}

static void answer_no_echo_10(struct connection *c, const struct request *r)
{
    struct request silent = *r;
    silent.http10 = false;
    answer_plain(c, &silent);
}

static void answer_die_after(struct connection *c, const struct request *r)
{
    if (requests > number[0]) {
        fprintf(stderr, "stub: planted: dies after %" PRIu64 " answers\n", number[0]);
        abort();
    }
    answer_plain(c, r);
}

static void answer_exit_after(struct connection *c, const struct request *r)
{
    if (requests > number[0]) {
        fprintf(stderr, "stub: planted: exits after %" PRIu64 " answers\n", number[0]);
        exit(3);
    }
    answer_plain(c, r);
}

static void answer_hang_after(struct connection *c, const struct request *r)
{
    if (requests > number[0]) {
        fprintf(stderr, "stub: planted: hangs after %" PRIu64 " answers\n", number[0]);
        for (;;)
            pause();
    }
    answer_plain(c, r);
}

/* Each 16 requests, spins until the CPU time spent spinning is number[0] per cent of all other CPU
 * time of this process: slower by that share whatever a request costs on this machine. Compare
 * with `slow 0`, which reads the clock as often. */
static void answer_slow(struct connection *c, const struct request *r)
{
    static uint64_t spun_ns;
    answer_plain(c, r);
    if (requests % 16)
        return;
    uint64_t start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID), spent_ns = 0;
    uint64_t owed_ns = (start_ns - spun_ns) * number[0] / 100;
    while (spun_ns + spent_ns < owed_ns)
        spent_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns;
    spun_ns += spent_ns;
}

/* ---- what happens before listening */

static void start_never(void)
{
    fputs("stub: planted: listens on nothing\n", stderr);
    for (;;)
        pause();
}

static void start_slow(void)
{
    struct timespec left = {.tv_sec = (time_t)number[0]};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static void start_forks(void)
{
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child)
        _exit(0);
    setsid();
}

static void start_fork_child(void)
{
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (!child)
        return;
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    _exit(1);
}

static void start_delay(void)
{
    late_ms = number[0];
}

static void start_ignore_term(void)
{
    signal(SIGTERM, SIG_IGN);
}

static void start_wrong_body(void)
{
    number[0] = 0;
}

static void start_frozen_date(void)
{
    freeze_date = true;
    date_now();
}

static void start_drops_pipelined(void)
{
    one_a_read = true;
}

static void start_answers_early(void)
{
    body_waits = false;
}

/* ---- what happens each millisecond */

static void tick_flood(void)
{
    for (int i = 0; i < 100; i++)
        fputs("stub: planted: one of very many lines\n", stderr);
}

static void tick_restless(void)
{
    uint64_t start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    while (now_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns < number[0] * 10000)
        ;
}

/* ---- the table of modes */

static const struct mode modes[] = {
    {"plain", 0, NULL, answer_plain, NULL, "no fault"},
    {"delay", 1, start_delay, answer_plain, NULL, "MS: each answer so late, others not blocked"},
    {"every", 2, NULL, answer_every, NULL, "N MS: each Nth answer so late"},
    {"slow", 1, NULL, answer_slow, NULL, "PERCENT: so much more CPU time a request"},
    {"wrong-length", 1, NULL, answer_wrong_length, NULL, "BYTES: the Content-Length announced"},
    {"wrong-body", 0, start_wrong_body, answer_wrong_body_after, NULL, "another 12 bytes"},
    {"wrong-body-after", 1, NULL, answer_wrong_body_after, NULL, "N: right for the first N"},
    {"error-500", 0, NULL, answer_error_500, NULL, "status 500"},
    {"bad-http", 0, NULL, answer_bad_http, NULL, "a malformed status line"},
    {"frozen-date", 0, start_frozen_date, answer_plain, NULL, "Date as of the start"},
    {"chunked", 0, NULL, answer_chunked, NULL, "valid, chunked"},
    {"informational", 0, NULL, answer_informational, NULL, "valid, a 103 first"},
    {"split", 1, NULL, answer_split, NULL, "BYTES: valid, so many bytes a write"},
    {"reset", 0, NULL, answer_reset_after, NULL, "a reset instead of an answer"},
    {"reset-after", 1, NULL, answer_reset_after, NULL, "N: the same after N answers"},
    {"early-close", 0, NULL, answer_early_close, NULL, "closes in the middle of the body"},
    {"no-keepalive", 0, NULL, answer_no_keepalive, NULL, "says close and closes each time"},
    {"no-echo-10", 0, NULL, answer_no_echo_10, NULL, "HTTP/1.0 kept open without a word"},
    {"drops-pipelined", 0, start_drops_pipelined, answer_plain, NULL, "one answer a read"},
    {"answers-early", 0, start_answers_early, answer_plain, NULL, "answers before the body came"},
    {"die-after", 1, NULL, answer_die_after, NULL, "N: abort() after N answers"},
    {"exit-after", 1, NULL, answer_exit_after, NULL, "N: exits with status 3 after N answers"},
    {"hang-after", 1, NULL, answer_hang_after, NULL, "N: does nothing more after N answers"},
    {"never-ready", 0, start_never, answer_plain, NULL, "listens on nothing"},
    {"slow-start", 1, start_slow, answer_plain, NULL, "SECONDS: before it listens"},
    {"forks", 0, start_forks, answer_plain, NULL, "the first process exits, its child serves"},
    {"fork-child", 0, start_fork_child, answer_plain, NULL, "a child serves, the parent waits"},
    {"ignore-term", 0, start_ignore_term, answer_plain, NULL, "SIGTERM does nothing"},
    {"flood-stderr", 0, NULL, answer_plain, tick_flood, "lines on standard error for ever"},
    {"restless", 1, NULL, answer_plain, tick_restless, "PERCENT: so busy without a request"},
};

/* ---- requests */

/* The value of a field in a head that ends at `end`, or NULL. */
static const char *field(const char *head, const char *end, const char *name)
{
    size_t size = strlen(name);
    const char *line = memmem(head, (size_t)(end - head), "\r\n", 2);
    while (line && line + 2 + size < end) {
        line += 2;
        if (strncasecmp(line, name, size) == 0 && line[size] == ':')
            return line + size + 1 + strspn(line + size + 1, " \t");
        line = memmem(line, (size_t)(end - line), "\r\n", 2);
    }
    return NULL;
}

/* Reads the head in text[0..head_bytes), which ends with an empty line; a status for an error, or
 * NULL. */
static const char *read_head(const char *text, size_t head_bytes, struct request *r)
{
    const char *end = text + head_bytes;
    const char *line_end = memmem(text, head_bytes, "\r\n", 2);
    const char *path = memchr(text, ' ', (size_t)(line_end - text));
    const char *version = path ? memchr(path + 1, ' ', (size_t)(line_end - path - 1)) : NULL;
    if (!version || path == text || line_end - version != 9 ||
        (memcmp(version, " HTTP/1.1", 9) != 0 && memcmp(version, " HTTP/1.0", 9) != 0))
        return "400 Bad Request";
    if (field(text, end, "Transfer-Encoding"))
        return "411 Length Required";
    const char *length = field(text, end, "Content-Length");
    const char *connection = field(text, end, "Connection");
    r->root = version - path == 2 && path[1] == '/';
    r->head = strncmp(text, "HEAD ", 5) == 0;
    r->http10 = version[8] == '0';
    r->keep_alive = r->http10 ? connection && strncasecmp(connection, "keep-alive", 10) == 0
                              : !connection || strncasecmp(connection, "close", 5) != 0;
    r->body_bytes = length ? (size_t)strtoull(length, NULL, 10) : 0;
    return NULL;
}

static void consume(struct connection *c, size_t size)
{
    c->in_bytes -= size;
    memmove(c->in, c->in + size, c->in_bytes);
}

static void refuse(struct connection *c, const char *status)
{
    struct request last = {.head = true};
    struct answer a = {.version = "HTTP/1.1", .status = status, .fields = "", .body = ""};
    put_answer(c, &last, &a);
}

/* Answers the next request in c->in if it is whole; false if nothing can be done now. */
static bool connection_step(struct connection *c)
{
    if (c->skip) {
        size_t size = c->skip < c->in_bytes ? c->skip : c->in_bytes;
        consume(c, size);
        c->skip -= size;
    }
    if (c->fd < 0 || c->held || c->finishing || c->skip || (c->piece && c->out_bytes) ||
        c->out_bytes + ANSWER_ROOM > BUFFER_BYTES)
        return false;
    const char *blank = memmem(c->in, c->in_bytes, "\r\n\r\n", 4);
    if (!blank && c->in_bytes == BUFFER_BYTES)
        refuse(c, "431 Request Header Fields Too Large");
    if (!blank)
        return false;
    struct request r = {0};
    size_t head_bytes = (size_t)(blank - c->in) + 4;
    const char *refused = read_head(c->in, head_bytes, &r);
    if (refused) {
        refuse(c, refused);
        return false;
    }
    size_t come = c->in_bytes - head_bytes;
    if (body_waits && head_bytes + r.body_bytes > BUFFER_BYTES) {
        refuse(c, "413 Content Too Large");
        return false;
    }
    if (body_waits && come < r.body_bytes)
        return false;
    consume(c, head_bytes);
    c->skip = r.body_bytes;
    requests++;
    mode->answer(c, &r);
    if (late_ms && c->fd >= 0 && !c->held)
        hold(c, late_ms * 1000000);
    if (one_a_read)
        c->in_bytes = 0;
    return c->fd >= 0;
}

static void connection_go_on(struct connection *c)
{
    do {
        while (connection_step(c))
            ;
        connection_flush(c);
    } while (c->fd >= 0 && c->in_bytes && !c->out_bytes && connection_step(c));
    if (c->fd >= 0)
        connection_watch(c);
}

static void connection_read(struct connection *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_bytes, BUFFER_BYTES - c->in_bytes, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        connection_close(c);
        return;
    }
    if (n > 0 && !c->finishing)
        c->in_bytes += (size_t)n;
}

static void connection_event(struct connection *c, uint32_t events)
{
    if (events & EPOLLIN)
        connection_read(c);
    else if (events & (EPOLLERR | EPOLLHUP))
        connection_close(c);
    if (c->fd >= 0)
        connection_go_on(c);
    if (c->fd < 0 && !c->held)
        free(c);
}

static void release_held(void)
{
    uint64_t count, now = now_ns(CLOCK_MONOTONIC);
    if (read(hold_fd, &count, sizeof count) < 0 && errno != EAGAIN)
        fail("timerfd");
    while (first_held && first_held->due_ns <= now) {
        struct connection *c = first_held;
        first_held = c->next_held;
        c->held = false;
        if (c->fd >= 0)
            connection_go_on(c);
        if (c->fd < 0 && !c->held)
            free(c);
    }
    if (first_held)
        arm_hold(first_held->due_ns);
}

static void accept_all(void)
{
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return; /* none left, or no descriptor: the listener stays readable */
        struct connection *c = malloc(sizeof *c);
        if (!c)
            fail("malloc");
        memset(c, 0, offsetof(struct connection, in)); /* the buffers stay untouched until used */
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        c->fd = fd;
        c->events = EPOLLIN;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
            fail("epoll_ctl");
    }
}

/* ---- the program */

static void end_well(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

static void watch(int *fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};
    if (*fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, *fd, &event) < 0)
        fail("epoll_ctl");
}

static void listen_on(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listen_fd < 0)
        fail("socket");
    setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listen_fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("bind");
    if (listen(listen_fd, 4096) < 0)
        fail("listen");
}

static void set_up(uint16_t port)
{
    struct rlimit files, no_core = {0, 0};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGTERM, end_well);
    signal(SIGINT, end_well);
    if (mode->start)
        mode->start();
    listen_on(port);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    hold_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    watch(&listen_fd);
    watch(&hold_fd);
    watch(&tick_fd);
    struct itimerspec each_ms = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
    if (mode->tick && timerfd_settime(tick_fd, 0, &each_ms, NULL) < 0)
        fail("timerfd_settime");
}

static void tick(void)
{
    uint64_t count;
    if (read(tick_fd, &count, sizeof count) == sizeof count)
        mode->tick();
}

static void serve(void)
{
    for (;;) {
        struct epoll_event events[256];
        bool accepts = false, releases = false;
        int count = epoll_wait(epoll_fd, events, 256, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &listen_fd)
                accepts = true;
            else if (events[i].data.ptr == &hold_fd)
                releases = true;
            else if (events[i].data.ptr == &tick_fd)
                tick();
            else
                connection_event(events[i].data.ptr, events[i].events);
        }
        /* Afterwards, so that no event of this batch names a connection freed here. */
        if (releases)
            release_held();
        if (accepts)
            accept_all();
    }
}

static int usage(void)
{
    fputs("usage: stub MODE [NUMBER...] [--late MS] --port N\n", stderr);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        fprintf(stderr, "  %-17s %s\n", modes[i].name, modes[i].what);
    return 2;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, argv[1]) == 0)
            mode = &modes[i];
    int left = argc - 2 - (mode ? (int)mode->numbers : 0);
    char **last = argv + argc - 2;
    if (!mode || (left != 2 && left != 4) || strcmp(last[0], "--port") != 0 ||
        (left == 4 && strcmp(last[-2], "--late") != 0))
        return usage();
    for (unsigned i = 0; i < mode->numbers; i++)
        number[i] = strtoull(argv[2 + i], NULL, 10);
    if (left == 4)
        late_ms = strtoull(last[-1], NULL, 10);
    set_up((uint16_t)strtoul(last[1], NULL, 10));
    serve();
}
