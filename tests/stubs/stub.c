/* A small HTTP server with a known fault, for the tests of the harness: one epoll loop, one thread.
 *
 *   stub MODE [NUMBER...] [--late MS] [--workers N] --port N
 *
 * It keeps the server contract (GET / gives 200, text/plain, Content-Length 12, a live Date and
 * "Hello World\n"; another path gives 404; keep-alive; pipelined requests in order; SIGTERM ends
 * it with status 0) but for the one fault that MODE plants. The table `modes` at the end is the
 * list of faults: a mode is what happens before listening, what happens at each request, or what
 * happens at each tick of a clock. With --late each answer of any mode waits MS milliseconds while
 * other connections go on: so the rate is known, and with it when an "after N" fault will strike.
 * With --workers N processes share the port; they end with the first.
 * Parsing is strict, so that the plain mode passes all of the contract's cases. A request, its body
 * included, has to fit BUFFER_BYTES.
 */
#include <arpa/inet.h>
#include <ctype.h>
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
#include <sys/prctl.h>
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
#define PAUSE_MS       50 /* before accepting again, once descriptors ran out */

struct connection {
    int fd; /* -1 once closed; freed when no longer held */
    uint32_t events;
    bool held;     /* in the queue of answers that are late */
    bool finished; /* our side is shut: what still comes is thrown away */
    bool finishing;
    bool eof;       /* the client has shut its side */
    bool continued; /* 100 was sent for the request that is coming */
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
    bool chunked;
    bool expects; /* 100-continue */
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
static unsigned workers = 1;
static uint64_t requests; /* answered so far, the present one included */
static uint64_t late_ms;  /* every answer so late */
static bool freeze_date, body_waits = true, one_a_read, accept_all, canned;
static bool body_blind, cut_blind; /* once number[0] answers were given */
static bool listening = true;      /* false for a moment after descriptors ran out */
static char *volatile kept;        /* the last memory that was lost on purpose */
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
    bool reads = c->in_bytes < BUFFER_BYTES && !c->eof;
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

static void answer_late_once(struct connection *c, const struct request *r)
{
    answer_plain(c, r);
    if (requests == number[0])
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

/* Memory that is written to and never read again. */
static void answer_grows(struct connection *c, const struct request *r)
{
    char *lost = malloc(number[0]);
    if (!lost)
        fail("malloc");
    memset(lost, 1, number[0]);
    kept = lost;
    answer_plain(c, r);
}

static void answer_keeps_files(struct connection *c, const struct request *r)
{
    if (dup(epoll_fd) < 0 && errno != EMFILE)
        fail("dup");
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

static double age_s(void)
{
    static uint64_t born_ns;
    if (born_ns == 0)
        born_ns = now_ns(CLOCK_MONOTONIC);
    return (double)(now_ns(CLOCK_MONOTONIC) - born_ns) / 1e9;
}

/* CPU time, so that a core shared with others does not shorten it. */
static void spin_us(double us)
{
    uint64_t start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    while ((double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns) < us * 1e3)
        ;
}

/* From 20 us a request, so much more with each second since the first. */
static void answer_ages(struct connection *c, const struct request *r)
{
    spin_us(20 * (1 + age_s() * (double)number[0] / 100));
    answer_plain(c, r);
}

/* So many microseconds a request at the age of 1 s, twice that at half of it and half at twice: on
 * whatever scale one looks at it, it has not come to its end. */
static void answer_warms(struct connection *c, const struct request *r)
{
    double age = age_s();
    spin_us((double)number[0] / (age > 0.05 ? age : 0.05));
    answer_plain(c, r);
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

static void end_badly(int signal_number)
{
    static const char words[] = "stub: planted: ends badly\n";
    (void)signal_number;
    _exit(write(STDERR_FILENO, words, sizeof words - 1) < 0 ? 4 : (int)number[0]);
}

static void start_bad_end(void)
{
    signal(SIGTERM, end_badly);
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

static void start_body_blind(void)
{
    body_blind = true;
}

static void start_cut_blind(void)
{
    cut_blind = true;
}

static void start_answers_early(void)
{
    body_waits = false;
}

static void start_accepts_all(void)
{
    accept_all = true;
}

static void start_canned(void)
{
    canned = true;
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
    {"late-once", 2, NULL, answer_late_once, NULL, "N MS: only the Nth answer so late"},
    {"slow", 1, NULL, answer_slow, NULL, "PERCENT: so much more CPU time a request"},
    {"ages", 1, NULL, answer_ages, NULL, "PERCENT: 20 us a request, and so much more each second"},
    {"warms", 1, NULL, answer_warms, NULL, "US: so much a request over its age in seconds"},
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
    {"body-blind-after", 1, start_body_blind, answer_plain, NULL,
     "N: after N answers takes bodies for requests"},
    {"cut-blind-after", 1, start_cut_blind, answer_plain, NULL,
     "N: after N answers throws away what a read leaves cut"},
    {"answers-early", 0, start_answers_early, answer_plain, NULL, "answers before the body came"},
    {"canned", 0, start_canned, answer_plain, NULL, "a canned answer a read, nothing parsed"},
    {"always-200", 0, start_accepts_all, answer_plain, NULL, "200 to every path, fault and error"},
    {"die-after", 1, NULL, answer_die_after, NULL, "N: abort() after N answers"},
    {"exit-after", 1, NULL, answer_exit_after, NULL, "N: exits with status 3 after N answers"},
    {"hang-after", 1, NULL, answer_hang_after, NULL, "N: does nothing more after N answers"},
    {"grows", 1, NULL, answer_grows, NULL, "BYTES: so much more memory for each answer"},
    {"keeps-files", 0, NULL, answer_keeps_files, NULL, "a descriptor more for each answer"},
    {"bad-end", 1, start_bad_end, answer_plain, NULL, "STATUS: with which it ends on SIGTERM"},
    {"never-ready", 0, start_never, answer_plain, NULL, "listens on nothing"},
    {"slow-start", 1, start_slow, answer_plain, NULL, "SECONDS: before it listens"},
    {"forks", 0, start_forks, answer_plain, NULL, "the first process exits, its child serves"},
    {"fork-child", 0, start_fork_child, answer_plain, NULL, "a child serves, the parent waits"},
    {"ignore-term", 0, start_ignore_term, answer_plain, NULL, "SIGTERM does nothing"},
    {"flood-stderr", 0, NULL, answer_plain, tick_flood, "lines on standard error for ever"},
    {"restless", 1, NULL, answer_plain, tick_restless, "PERCENT: so busy without a request"},
};

/* ---- requests */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The bytes of a field's value, blanks around it left out. */
struct value {
    const char *at;
    size_t size;
};

static struct value value_of(const char *colon, const char *end)
{
    struct value v = {.at = colon + 1};
    while (v.at < end && is_blank(*v.at))
        v.at++;
    while (end > v.at && is_blank(end[-1]))
        end--;
    v.size = (size_t)(end - v.at);
    return v;
}

static bool is_word(struct value v, const char *word)
{
    return v.size == strlen(word) && strncasecmp(v.at, word, v.size) == 0;
}

/* Whether `word` is a member of the list. */
static bool lists(struct value v, const char *word)
{
    const char *end = v.at + v.size;
    for (const char *from = v.at; from <= end; from++) {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        const char *to = comma ? comma : end;
        if (is_word(value_of(from - 1, to), word))
            return true;
        from = to;
    }
    return false;
}

static bool is_token(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~' || strchr("\"(),/:;<=>?@[\\]{}", text[i]))
            return false;
    return size > 0;
}

static bool is_percent(const char *at, const char *end)
{
    return *at == '%' && end - at > 2 && isxdigit((unsigned char)at[1]) &&
           isxdigit((unsigned char)at[2]);
}

/* uri-host [":" port] (RFC 9110 7.2); what stands in brackets is not looked at. */
static bool is_host(struct value v)
{
    const char *end = v.at + v.size;
    const char *at = v.at;
    if (at < end && *at == '[') {
        const char *bracket = memchr(at, ']', v.size);
        if (!bracket || bracket == at + 1)
            return false;
        at = bracket + 1;
    }
    for (; v.size > 0 && v.at[0] != '[' && at < end && *at != ':'; at++)
        if (!isalnum((unsigned char)*at) && !(*at && strchr("-._~!$&'()*+,;=", *at)) &&
            !is_percent(at, end))
            return false;
    if (at < end && *at++ != ':')
        return false;
    while (at < end && isdigit((unsigned char)*at))
        at++;
    return at == end;
}

static const char bad[] = "400 Bad Request";

/* What the fields say together. */
struct fields {
    unsigned hosts, lengths, codings;
    bool close, keep, expect;
};

static const char *read_length(struct value v, struct request *r)
{
    if (v.size == 0 || v.size > 18)
        return bad;
    r->body_bytes = 0;
    for (size_t i = 0; i < v.size; i++) {
        if (!isdigit((unsigned char)v.at[i]))
            return bad;
        r->body_bytes = r->body_bytes * 10 + (size_t)(v.at[i] - '0');
    }
    return NULL;
}

static const char *read_field(const char *line, const char *end, struct request *r,
                              struct fields *f)
{
    const char *colon = memchr(line, ':', (size_t)(end - line));
    if (!colon || !is_token(line, (size_t)(colon - line)))
        return bad;
    struct value v = value_of(colon, end);
    struct value name = {line, (size_t)(colon - line)};
    for (size_t i = 0; i < v.size; i++)
        if (((unsigned char)v.at[i] < ' ' && v.at[i] != '\t') || v.at[i] == 0x7f)
            return bad;
    if (is_word(name, "Host"))
        return ++f->hosts > 1 || !is_host(v) ? bad : NULL;
    if (is_word(name, "Content-Length"))
        return ++f->lengths > 1 ? bad : read_length(v, r);
    if (is_word(name, "Transfer-Encoding")) {
        r->chunked = true;
        return ++f->codings > 1 ? bad : is_word(v, "chunked") ? NULL : "501 Not Implemented";
    }
    if (is_word(name, "Connection")) {
        f->close = f->close || lists(v, "close");
        f->keep = f->keep || lists(v, "keep-alive");
    }
    if (is_word(name, "Expect"))
        f->expect = is_word(v, "100-continue");
    return NULL;
}

static const char *read_version(const char *text, struct request *r)
{
    if (memcmp(text, "HTTP/", 5) != 0 || !isdigit((unsigned char)text[5]) || text[6] != '.' ||
        !isdigit((unsigned char)text[7]))
        return bad;
    r->http10 = text[7] == '0';
    return text[5] == '1' ? NULL : "505 HTTP Version Not Supported";
}

/* Origin-form, absolute-form, or * for OPTIONS (RFC 9112 3.2). */
static const char *read_target(const char *at, const char *end, bool options, struct request *r)
{
    if (at == end)
        return bad;
    for (const char *c = at; c < end; c++)
        if (*c <= ' ' || *c > '~' || *c == '#')
            return bad;
    if (end - at >= 7 && strncasecmp(at, "http://", 7) == 0) {
        const char *host = at += 7;
        while (at < end && *at != '/' && *at != '?')
            at++;
        if (at == host)
            return bad;
        r->root = at == end;
    } else if (end - at == 1 && *at == '*') {
        return options ? NULL : bad;
    }
    if (at < end && *at != '/')
        return bad;
    r->root = r->root || end - at == 1 || (end - at > 1 && at[1] == '?');
    return NULL;
}

static const char *read_request_line(const char *text, const char *end, struct request *r)
{
    static const char *const known[] = {"GET",    "HEAD",    "POST",  "PUT",
                                        "DELETE", "OPTIONS", "PATCH", "TRACE"};
    const char *target = memchr(text, ' ', (size_t)(end - text));
    const char *version = end - 8;
    if (!target || version <= target + 1 || version[-1] != ' ' ||
        !is_token(text, (size_t)(target - text)))
        return bad;
    const char *wrong = read_version(version, r);
    if (wrong)
        return wrong;
    struct value method = {text, (size_t)(target - text)};
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found = found ||
                (method.size == strlen(known[i]) && memcmp(method.at, known[i], method.size) == 0);
    r->head = is_word(method, "HEAD") && found;
    wrong = read_target(target + 1, version - 1, is_word(method, "OPTIONS"), r);
    return wrong || found ? wrong : "501 Not Implemented";
}

/* Reads the head in text[0..head_bytes), which ends with an empty line; a status for an error, or
 * NULL. */
static const char *read_head(const char *text, size_t head_bytes, struct request *r)
{
    const char *end = text + head_bytes - 2;
    const char *line_end = memmem(text, head_bytes, "\r\n", 2);
    struct fields f = {0};
    const char *wrong = read_request_line(text, line_end, r);
    for (const char *line = line_end + 2; !wrong && line < end; line = line_end + 2) {
        line_end = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        wrong = read_field(line, line_end, r, &f);
    }
    if (!wrong && ((!r->http10 && f.hosts != 1) || (f.codings && (f.lengths || r->http10))))
        wrong = bad;
    r->keep_alive = !f.close && (!r->http10 || f.keep);
    r->expects = f.expect && !r->http10;
    return wrong;
}

static size_t hex_digit(char c)
{
    return (size_t)(isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10);
}

/* The bytes of a chunked body that begins at `text`; 0 while it is not whole. */
#define BODY_BAD       SIZE_MAX
#define BODY_TOO_LARGE (SIZE_MAX - 1)

static size_t chunked_bytes(const char *text, size_t size)
{
    size_t at = 0;
    for (;;) {
        size_t chunk = 0;
        size_t first = at;
        while (at < size && isxdigit((unsigned char)text[at]) && chunk < BUFFER_BYTES)
            chunk = chunk * 16 + hex_digit(text[at++]);
        if (at == size)
            return 0;
        const char *line_end = memmem(text + at, size - at, "\r\n", 2);
        if (chunk >= BUFFER_BYTES)
            return BODY_TOO_LARGE;
        if (at == first || (text[at] != '\r' && text[at] != ';'))
            return BODY_BAD;
        const char *to = line_end ? line_end : text + size;
        if (memchr(text + at, '\n', (size_t)(to - text) - at) ||
            (text[at] == '\r' && at + 1 < size && text[at + 1] != '\n'))
            return BODY_BAD;
        if (!line_end)
            return 0;
        at = (size_t)(line_end - text) + 2;
        if (chunk == 0)
            break;
        if (size < at + chunk + 2)
            return 0;
        if (memcmp(text + at + chunk, "\r\n", 2) != 0)
            return BODY_BAD;
        at += chunk + 2;
    }
    for (;;) { /* trailers */
        const char *line_end = memmem(text + at, size - at, "\r\n", 2);
        size_t line = line_end ? (size_t)(line_end - text) - at : 0;
        const char *colon = memchr(text + at, ':', line);
        if (!line_end)
            return 0;
        if (line > 0 && (!colon || !is_token(text + at, (size_t)(colon - text) - at)))
            return BODY_BAD;
        at += line + 2;
        if (line == 0)
            return at;
    }
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

static bool has_bare_lf(const struct connection *c)
{
    const char *lf = memchr(c->in, '\n', c->in_bytes);
    const char *end = c->in + c->in_bytes;
    while (lf && lf > c->in && lf[-1] == '\r')
        lf = memchr(lf + 1, '\n', (size_t)(end - lf - 1));
    return lf != NULL;
}

/* A head that is not whole: refused if it never can be. */
static void check_begun(struct connection *c)
{
    if (c->in_bytes == BUFFER_BYTES)
        refuse(c, memmem(c->in, c->in_bytes, "\r\n", 2) ? "431 Request Header Fields Too Large"
                                                        : "414 URI Too Long");
    else if (has_bare_lf(c))
        refuse(c, bad);
}

/* True if the body has come whole, its bytes in *body_bytes; else asks for it, or refuses it. */
static bool body_is_whole(struct connection *c, struct request *r, size_t head_bytes,
                          size_t *body_bytes)
{
    size_t come = c->in_bytes - head_bytes;
    *body_bytes = r->chunked ? chunked_bytes(c->in + head_bytes, come) : r->body_bytes;
    if (r->chunked && *body_bytes >= BODY_TOO_LARGE) {
        refuse(c, *body_bytes == BODY_BAD ? bad : "413 Content Too Large");
        return false;
    }
    if (!r->chunked && (come >= *body_bytes || !body_waits))
        return true;
    if (r->chunked && *body_bytes > 0)
        return true;
    if (head_bytes + *body_bytes > BUFFER_BYTES || c->in_bytes == BUFFER_BYTES) {
        refuse(c, "413 Content Too Large");
        return false;
    }
    if (r->expects && come == 0 && !c->continued) {
        put(c, "HTTP/1.1 100 Continue\r\n\r\n");
        c->continued = true;
    }
    return false;
}

/* Answers the next request in c->in if it is whole; false if nothing can be done now. */
static bool connection_step(struct connection *c)
{
    if (c->skip) {
        size_t size = c->skip < c->in_bytes ? c->skip : c->in_bytes;
        consume(c, size);
        c->skip -= size;
    }
    while (c->in_bytes >= 2 && memcmp(c->in, "\r\n", 2) == 0)
        consume(c, 2);
    if (c->fd < 0 || c->held || c->finishing || c->skip || (c->piece && c->out_bytes) ||
        c->out_bytes + ANSWER_ROOM > BUFFER_BYTES)
        return false;
    const char *blank = memmem(c->in, c->in_bytes, "\r\n\r\n", 4);
    if (!blank) {
        check_begun(c);
        return false;
    }
    struct request r = {0};
    size_t head_bytes = (size_t)(blank - c->in) + 4;
    size_t body_bytes = 0;
    const char *refused = read_head(c->in, head_bytes, &r);
    if (accept_all && refused)
        r = (struct request){.keep_alive = true};
    else if (refused) {
        refuse(c, refused);
        return false;
    }
    if (body_blind && requests >= number[0])
        r.body_bytes = r.chunked = 0;
    if (!body_is_whole(c, &r, head_bytes, &body_bytes))
        return false;
    r.root = r.root || accept_all;
    c->continued = false;
    consume(c, head_bytes);
    c->skip = body_bytes;
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
    if (c->finishing)
        c->in_bytes = 0; /* what a refused client sends on is read and thrown away, up to its end */
    if (cut_blind && requests >= number[0] && !c->out_bytes)
        c->in_bytes = 0;
    if (c->fd >= 0 && c->eof && !c->out_bytes && !c->held)
        connection_close(c);
    if (c->fd >= 0)
        connection_watch(c);
}

static void connection_read(struct connection *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_bytes, BUFFER_BYTES - c->in_bytes, 0);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        connection_close(c);
        return;
    }
    c->eof = c->eof || n == 0;
    if (n > 0 && canned) {
        struct request r = {.root = true, .keep_alive = true};
        if (c->out_bytes + ANSWER_ROOM <= BUFFER_BYTES)
            answer_plain(c, &r);
    } else if (n > 0 && !c->finishing) {
        c->in_bytes += (size_t)n;
    }
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

/* Without a descriptor the listener stays readable: it is left alone for PAUSE_MS. */
static void listen_again(bool again)
{
    struct epoll_event event = {.events = again ? (uint32_t)EPOLLIN : 0, .data.ptr = &listen_fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, listen_fd, &event) < 0)
        fail("epoll_ctl");
    listening = again;
}

static void accept_new(void)
{
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
            listen_again(false);
        if (fd < 0)
            return;
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

/* In each of the others it returns as in the first. */
static void start_workers(void)
{
    for (unsigned i = 1; i < workers; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            return;
        }
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
    if (workers > 1)
        setsockopt(listen_fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
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
        int count = epoll_wait(epoll_fd, events, 256, listening ? -1 : PAUSE_MS);
        if (!listening)
            listen_again(true);
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
            accept_new();
    }
}

static int usage(void)
{
    fputs("usage: stub MODE [NUMBER...] [--late MS] [--workers N] --port N\n", stderr);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        fprintf(stderr, "  %-17s %s\n", modes[i].name, modes[i].what);
    return 2;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, argv[1]) == 0)
            mode = &modes[i];
    int at = 2 + (mode ? (int)mode->numbers : 0);
    unsigned long port = 0;
    for (; at + 1 < argc; at += 2) {
        unsigned long value = strtoul(argv[at + 1], NULL, 10);
        if (strcmp(argv[at], "--late") == 0)
            late_ms = value;
        else if (strcmp(argv[at], "--workers") == 0)
            workers = (unsigned)value;
        else if (strcmp(argv[at], "--port") == 0)
            port = value;
        else
            return usage();
    }
    if (!mode || at != argc || port == 0)
        return usage();
    for (unsigned i = 0; i < mode->numbers; i++)
        number[i] = strtoull(argv[2 + i], NULL, 10);
    start_workers();
    set_up((uint16_t)port);
    serve();
}
