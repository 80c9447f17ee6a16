#include "judge/talk.h"
#include "base/clock.h"
#include "base/mem.h"
#include "http/answer.h"
#include "judge/script.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SILENCE_NS (300 * NS_PER_MS)

enum {
    READ_BYTES = 16384,
    IN_MAX = 8 << 20, /* bytes of answers that a conversation may bring */
    SHOWN_HEAD = 700, /* of long bytes, so many of the start … */
    SHOWN_TAIL = 120, /* … and of the end are shown */
    NOTE_MAX = 160
};

struct talk {
    const struct talk_peer *peer;
    int fd;
    struct random random;
    size_t place;
    struct script script; /* of the sends since the last expectation */
    unsigned times;       /* what as-often means now */
    char *in;             /* all that came */
    size_t in_size, at;   /* `at`: read into answers so far */
    bool ended, reset;    /* no more will come */
    bool send_failed;     /* the server would take no more */
    bool scanning;
    unsigned seen_100; /* 1xx of the present answer told of */
    unsigned answers;  /* whole ones so far, on all connections */
    struct http_scanner scanner;
    char *sent; /* as shown */
    const char *expected;
    bool noted;
    bool late; /* what was last waited for did not come */
    char problem[768];
};

/* ---- showing bytes */

static void append(char **text, const char *more)
{
    char *longer = *text == NULL ? mem_copy_string(more) : mem_format("%s%s", *text, more);
    free(*text);
    *text = longer;
}

static void show_piece(char **text, const char *bytes, size_t size)
{
    char *out = mem_alloc(size * 4 + 1, 1);
    char *at = out;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        const char *named = c == '\n'   ? "\\n"
                            : c == '\r' ? "\\r"
                            : c == '\t' ? "\\t"
                            : c == '\\' ? "\\\\"
                                        : NULL;
        if (named != NULL)
            at = stpcpy(at, named);
        else if (c < ' ' || c > '~')
            at += sprintf(at, "\\x%02x", c);
        else
            *at++ = (char)c;
    }
    append(text, out);
    free(out);
}

static void show(char **text, const char *bytes, size_t size)
{
    char note[NOTE_MAX];
    if (size <= SHOWN_HEAD + SHOWN_TAIL) {
        show_piece(text, bytes, size);
        return;
    }
    show_piece(text, bytes, SHOWN_HEAD);
    snprintf(note, sizeof note, "<%zu bytes left out>", size - SHOWN_HEAD - SHOWN_TAIL);
    append(text, note);
    show_piece(text, bytes + size - SHOWN_TAIL, SHOWN_TAIL);
}

static bool __attribute__((format(printf, 2, 3))) wrong(struct talk *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->problem, sizeof t->problem, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- the socket */

int talk_connect(const struct talk_peer *peer)
{
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    const struct sockaddr *address = (const struct sockaddr *)&peer->address;
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    int code = 0;
    socklen_t size = sizeof code;
    if (connect(fd, address, sizeof peer->address) != 0) {
        if (errno != EINPROGRESS || poll(&wait, 1, (int)(TALK_ANSWER_WAIT_NS / NS_PER_MS)) != 1 ||
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0 || code != 0) {
            errno = code != 0 ? code : errno;
            close(fd);
            return -1;
        }
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* Takes what has come, without waiting. */
static void read_some(struct talk *t)
{
    char bytes[READ_BYTES];
    ssize_t got = recv(t->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) {
        t->in = mem_grow(t->in, t->in_size + (size_t)got, 1);
        memcpy(t->in + t->in_size, bytes, (size_t)got);
        t->in_size += (size_t)got;
        if (t->in_size > IN_MAX)
            t->ended = true;
    } else if (got == 0) {
        t->ended = true;
    } else if (errno != EAGAIN && errno != EINTR) {
        t->ended = t->reset = true;
    }
}

static int ms_until(uint64_t deadline_ns)
{
    uint64_t now_ns = clock_now_ns();
    return now_ns >= deadline_ns ? 0 : (int)((deadline_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
}

/* Writes, reading meanwhile, so that a server that answers while it reads is not blocked. */
static void write_all(struct talk *t, const char *bytes, size_t size)
{
    uint64_t deadline_ns = clock_now_ns() + TALK_ANSWER_WAIT_NS;
    while (size > 0 && !t->send_failed) {
        ssize_t sent = send(t->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            bytes += sent;
            size -= (size_t)sent;
            deadline_ns = clock_now_ns() + TALK_ANSWER_WAIT_NS;
            continue;
        }
        struct pollfd wait = {.fd = t->fd, .events = POLLOUT | (t->ended ? 0 : POLLIN)};
        t->send_failed =
            (errno != EAGAIN && errno != EINTR) || poll(&wait, 1, ms_until(deadline_ns)) == 0;
        if (!t->ended && !t->send_failed)
            read_some(t);
    }
}

static void act(struct talk *t, const struct script_mark *mark)
{
    char note[NOTE_MAX];
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    switch (mark->act) {
    case SCRIPT_REST:
        if (mark->rest_ns > SCRIPT_SPLIT_NS) {
            snprintf(note, sizeof note, "<pause %llu ms>",
                     (unsigned long long)(mark->rest_ns / NS_PER_MS));
            append(&t->sent, note);
        } else if (mark->rest_ns == SCRIPT_SPLIT_NS) {
            append(&t->sent, "<split>");
        }
        clock_sleep_until_ns(clock_now_ns() + mark->rest_ns);
        break;
    case SCRIPT_HALF_CLOSE:
        append(&t->sent, "<half-close>");
        shutdown(t->fd, SHUT_WR);
        break;
    case SCRIPT_RESET:
        append(&t->sent, "<reset>");
        setsockopt(t->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(t->fd);
        t->fd = -1;
        break;
    }
}

/* Runs of segments of one byte are shown as one. */
static void send_script(struct talk *t)
{
    size_t from = 0;
    size_t shown = 0;
    struct script *s = &t->script;
    for (size_t i = 0; i <= s->mark_count; i++) {
        size_t to = i < s->mark_count ? s->marks[i].at : s->size;
        bool run = i < s->mark_count && s->marks[i].act == SCRIPT_REST &&
                   s->marks[i].rest_ns == SCRIPT_BYTE_NS;
        write_all(t, s->bytes + from, to - from);
        if (!run) {
            show(&t->sent, s->bytes + shown, to - shown);
            shown = to;
        }
        if (i < s->mark_count)
            act(t, &s->marks[i]);
        from = to;
        if (run && i + 1 == s->mark_count)
            append(&t->sent, "<a byte a segment:>");
    }
    t->times = s->times;
    script_clear(s);
}

/* ---- events */

enum event { EVENT_ANSWER, EVENT_100, EVENT_CLOSED, EVENT_BAD, EVENT_QUIET };

/* Feeds what has come to the scanner. QUIET: it wants more. */
static enum event scan(struct talk *t, bool head)
{
    size_t used;
    if (!t->scanning) {
        http_scanner_start(&t->scanner, head);
        t->scanning = true;
        t->seen_100 = 0;
    }
    enum http_scan result =
        http_scanner_feed(&t->scanner, t->in + t->at, t->in_size - t->at, &used);
    t->at += used;
    if (result == HTTP_SCAN_MORE && t->scanner.response.informational > t->seen_100) {
        t->seen_100 = t->scanner.response.informational;
        return EVENT_100;
    }
    t->scanning = result == HTTP_SCAN_MORE;
    t->answers += result == HTTP_SCAN_DONE;
    return result == HTTP_SCAN_DONE  ? EVENT_ANSWER
           : result == HTTP_SCAN_BAD ? EVENT_BAD
                                     : EVENT_QUIET;
}

static enum event scan_end(struct talk *t)
{
    if (!t->scanning || http_scanner_untouched(&t->scanner))
        return EVENT_CLOSED;
    enum http_scan result = http_scanner_end(&t->scanner);
    t->scanning = false;
    return result == HTTP_SCAN_DONE ? EVENT_ANSWER : EVENT_BAD;
}

/* What happens next, within wait_ns; an answer begun by then counts once it is whole. */
static enum event next_event(struct talk *t, bool head, uint64_t wait_ns)
{
    uint64_t deadline_ns = clock_now_ns() + wait_ns;
    t->late = false;
    for (;;) {
        if (t->at < t->in_size) {
            enum event event = scan(t, head);
            if (event != EVENT_QUIET)
                return event;
        }
        if (t->ended)
            return scan_end(t);
        bool begun = t->scanning && !http_scanner_untouched(&t->scanner);
        uint64_t until_ns = begun && wait_ns < TALK_ANSWER_WAIT_NS
                                ? deadline_ns - wait_ns + TALK_ANSWER_WAIT_NS
                                : deadline_ns;
        struct pollfd wait = {.fd = t->fd, .events = POLLIN};
        if (poll(&wait, 1, ms_until(until_ns)) <= 0) {
            t->late = true;
            return begun ? EVENT_BAD : EVENT_QUIET;
        }
        read_some(t);
    }
}

/* ---- answers */

static bool says(const struct http_response *r, const char *name, const char *word)
{
    for (unsigned i = 0;; i++) {
        const struct http_field *f = http_response_field(r, name, i);
        if (f == NULL)
            return false;
        for (size_t at = 0; at + strlen(word) <= f->value_bytes; at++)
            if (strncasecmp(r->head + f->value + at, word, strlen(word)) == 0)
                return true;
    }
}

static bool twice(const struct http_response *r, const char *name)
{
    return http_response_field(r, name, 1) != NULL;
}

static bool check_status(struct talk *t, const struct page_item *item)
{
    unsigned status = t->scanner.response.status;
    for (unsigned i = 0; i < item->status_count; i++)
        if (status >= item->statuses[i].low && status <= item->statuses[i].high)
            return true;
    return wrong(t, "expected status %s, came %u", item->text, status);
}

/* The media type of `r`, without parameters, in `text`; "" if it has none. */
static const char *media_type(const struct http_response *r, char text[128])
{
    const struct http_field *f = http_response_field(r, "Content-Type", 0);
    text[0] = '\0';
    if (f != NULL) {
        snprintf(text, 128, "%.*s", (int)f->value_bytes, r->head + f->value);
        text[strcspn(text, "; \t")] = '\0';
    }
    return text;
}

static bool check_content(struct talk *t, unsigned words)
{
    char type[128];
    const struct http_response *hello = &t->peer->hello;
    const struct http_response *r = &t->scanner.response;
    struct http_expect expect = {
        .status = r->status, .head = (words & WORD_HEAD) != 0, .date = (words & WORD_DATED) != 0};
    if ((words & WORD_HELLO) != 0) {
        media_type(hello, type);
        expect.content_type = type[0] != '\0' ? type : NULL;
        expect.body = t->peer->body_known ? hello->body : NULL;
        expect.body_bytes = (size_t)hello->body_bytes;
    }
    if ((words & WORD_TEXT) != 0) {
        expect.content_type = "text/plain";
        expect.body = "Hello World\n";
        expect.body_bytes = 12;
    }
    if (expect.body != NULL && expect.body_bytes > HTTP_BODY_KEEP && expect.head)
        expect.body = NULL;
    return http_answer_check(&expect, r, time(NULL), t->problem, sizeof t->problem);
}

static bool check_fields(struct talk *t, unsigned words)
{
    const struct http_response *r = &t->scanner.response;
    bool length = http_response_field(r, "Content-Length", 0) != NULL;
    bool coding = http_response_field(r, "Transfer-Encoding", 0) != NULL;
    if ((words & WORD_CLOSE) != 0 && !r->close)
        return wrong(t, "the answer does not say Connection: close");
    if ((words & WORD_KEEP_ALIVE) != 0 && !says(r, "Connection", "keep-alive"))
        return wrong(t, "the answer does not say Connection: keep-alive");
    if ((words & WORD_SIZED) != 0 && !length)
        return wrong(t, "the answer has no Content-Length");
    if ((words & WORD_FRAMED) != 0 && (length == coding || twice(r, "Content-Length")))
        return wrong(t, "the answer has not exactly one of Content-Length and Transfer-Encoding");
    if ((words & WORD_ALLOW) != 0 && r->status == 405 && http_response_field(r, "Allow", 0) == NULL)
        return wrong(t, "the 405 has no Allow");
    static const char *const singles[] = {"Date", "Server", "Content-Type", "Content-Length"};
    for (size_t i = 0; (words & WORD_SINGLE) != 0 && i < 4; i++)
        if (twice(r, singles[i]))
            return wrong(t, "the answer has %s on two lines", singles[i]);
    return true;
}

static bool check_answer(struct talk *t, const struct page_item *item)
{
    const struct http_response *r = &t->scanner.response;
    if (!check_status(t, item) || !check_content(t, item->words) || !check_fields(t, item->words))
        return false;
    if ((item->words & WORD_HTTP11) != 0 && r->minor != 1)
        return wrong(t, "expected HTTP/1.1, came HTTP/1.%u", r->minor);
    if ((item->words & WORD_AFTER_100) != 0 && r->informational == 0)
        return wrong(t, "no 100 came before the answer");
    if ((item->words & WORD_NO_100) != 0 && r->informational > 0)
        return wrong(t, "a 1xx came before the answer");
    return true;
}

/* ---- expectations */

struct path { /* how far one alternative of an expectation has come */
    const struct page_choice *choice;
    size_t at;
    unsigned left; /* answers still to come of an as-often item */
    bool dead;
};

static const struct page_item *item_of(const struct path *p)
{
    return p->at < p->choice->count ? &p->choice->items[p->at] : NULL;
}

static void step_on(struct talk *t, struct path *p)
{
    if (p->left > 1) {
        p->left--;
        return;
    }
    p->at++;
    const struct page_item *item = item_of(p);
    p->left = item != NULL && (item->words & WORD_AS_OFTEN) != 0 ? t->times : 1;
}

static const char *what_came(struct talk *t, enum event event, char text[NOTE_MAX])
{
    switch (event) {
    case EVENT_ANSWER:
        snprintf(text, NOTE_MAX, "an answer came, status %u", t->scanner.response.status);
        break;
    case EVENT_100:
        return "a 1xx came";
    case EVENT_CLOSED:
        return t->reset ? "the connection was reset" : "the server closed";
    case EVENT_BAD:
        if (t->scanner.problem == NULL)
            return "no whole answer came in time";
        snprintf(text, NOTE_MAX,
                 t->answers == 0
                     ? "what came is no answer: %s"
                     : "what came behind an answer is none (a body that HEAD forbids?): %s",
                 t->scanner.problem);
        break;
    case EVENT_QUIET:
        return "nothing came";
    }
    return text;
}

/* Whether `event` fits what the path waits for; moves it on or kills it, the reason in t->problem.
 */
static void advance(struct talk *t, struct path *p, enum event event)
{
    char text[NOTE_MAX];
    const struct page_item *item = item_of(p);
    bool quiet = event == EVENT_QUIET;
    bool fits = false;
    switch (item->kind) {
    case ITEM_ANSWER:
        if (event == EVENT_100)
            return;
        if (event == EVENT_ANSWER) {
            p->dead = !check_answer(t, item);
            if (!p->dead)
                step_on(t, p);
            return;
        }
        break;
    case ITEM_CONTINUE:
        fits = event == EVENT_100;
        break;
    case ITEM_CLOSED:
        fits = event == EVENT_CLOSED;
        break;
    case ITEM_OPEN:
    case ITEM_NOTHING:
        fits = quiet;
        break;
    case ITEM_NO_2XX:
        fits = quiet || event == EVENT_CLOSED || event == EVENT_BAD;
        if (event == EVENT_ANSWER && t->scanner.response.status >= 300)
            return;
        break;
    case ITEM_IN_SYNC:
    case ITEM_UNHEARD:
        if (quiet)
            return; /* probed by the caller */
        break;
    }
    if (fits) {
        step_on(t, p);
        return;
    }
    p->dead = true;
    wrong(t, "expected %s, but %s", item->text, what_came(t, event, text));
}

/* A request more on the connection: answered as hello, and then the end without a byte more. */
static bool probe(struct talk *t, bool may_be_closed)
{
    char request[200];
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
             t->peer->host);
    append(&t->sent, "<in sync?>");
    size_t before = t->in_size;
    write_all(t, request, strlen(request));
    enum event event;
    while ((event = next_event(t, false, TALK_ANSWER_WAIT_NS)) == EVENT_100)
        ;
    if (event == EVENT_CLOSED && may_be_closed && t->in_size == before)
        return true;
    char text[NOTE_MAX];
    char problem[sizeof t->problem];
    if (event != EVENT_ANSWER)
        return wrong(t, "out of sync: asked for / once more, %s", what_came(t, event, text));
    static char asked[] = "200 hello";
    static const struct page_item hello = {
        .kind = ITEM_ANSWER,
        .statuses = {{200, 200}},
        .status_count = 1,
        .words = WORD_HELLO,
        .text = asked,
    };
    if (!check_answer(t, &hello)) {
        memcpy(problem, t->problem, sizeof problem);
        return wrong(t, "out of sync: asked for / once more: %.700s", problem);
    }
    event = next_event(t, false, SILENCE_NS); /* that it closes is the matter of other cases */
    return event == EVENT_CLOSED || event == EVENT_QUIET ||
           wrong(t, "out of sync: asked for / once more, there was more than one answer");
}

static bool probe_anew(struct talk *t)
{
    return talk_is_served(t->peer, t->problem, sizeof t->problem);
}

/* What the living paths of an expectation have in common. */
struct outlook {
    unsigned alive;
    bool done;
    bool noted;
    unsigned probing; /* paths at `in sync` */
    bool unheard;
    bool closing; /* a path waits for the close */
    bool head;
    uint64_t wait_ns;
};

static struct outlook look(const struct path *paths, size_t count)
{
    struct outlook o = {.wait_ns = UINT64_MAX};
    for (size_t i = 0; i < count; i++) {
        const struct page_item *item = item_of(&paths[i]);
        if (paths[i].dead)
            continue;
        o.alive++;
        if (item == NULL) {
            o.noted = paths[i].choice->noted && (!o.done || o.noted);
            o.done = true;
            continue;
        }
        o.probing += item->kind == ITEM_IN_SYNC;
        o.unheard = o.unheard || item->kind == ITEM_UNHEARD;
        o.closing = o.closing || item->kind == ITEM_CLOSED;
        o.head = o.head || (item->words & WORD_HEAD) != 0;
        uint64_t wait_ns = item->quiet_ns > 0 ? item->quiet_ns : TALK_ANSWER_WAIT_NS;
        if (wait_ns < o.wait_ns)
            o.wait_ns = wait_ns;
    }
    return o;
}

/* Moves all living paths on by an event. The reason kept is that of the path that got furthest, of
 * the first of those: *best is how far it got, -1 for none. */
static void advance_all(struct talk *t, struct path *paths, size_t count, enum event event,
                        int *best)
{
    char kept[sizeof t->problem];
    for (size_t i = 0; i < count; i++) {
        if (paths[i].dead)
            continue;
        memcpy(kept, t->problem, sizeof kept);
        advance(t, &paths[i], event);
        if (paths[i].dead && (int)paths[i].at > *best)
            *best = (int)paths[i].at;
        else
            memcpy(t->problem, kept, sizeof kept);
    }
}

static bool meet_expectation(struct talk *t, const struct page_step *step)
{
    struct path *paths = mem_alloc(step->choice_count, sizeof *paths);
    int best = -1;
    bool met;
    t->expected = step->text;
    t->problem[0] = '\0';
    for (size_t i = 0; i < step->choice_count; i++) {
        const struct page_item *first = &step->choices[i].items[0];
        paths[i].choice = &step->choices[i];
        paths[i].left = (first->words & WORD_AS_OFTEN) != 0 ? t->times : 1;
    }
    for (;;) {
        struct outlook o = look(paths, step->choice_count);
        met = o.done;
        t->noted = t->noted || (o.done && o.noted);
        if (o.done || o.alive == 0)
            break;
        if (o.unheard) {
            met = probe_anew(t);
            break;
        }
        if (o.probing == o.alive) {
            met = probe(t, false);
            break;
        }
        enum event event = next_event(t, o.head, o.wait_ns);
        if (event == EVENT_QUIET && o.probing > 0) {
            met = probe(t, o.closing);
            break;
        }
        advance_all(t, paths, step->choice_count, event, &best);
    }
    free(paths);
    return met;
}

/* ---- the conversation */

static bool nothing_more(struct talk *t)
{
    if (t->fd >= 0 && !t->ended)
        read_some(t);
    if (t->at == t->in_size)
        return true;
    return wrong(t, "%zu bytes more came than the answers asked for", t->in_size - t->at);
}

static bool converse_once(struct talk *t, const struct page_variant *variant)
{
    for (size_t i = 0; i < variant->count; i++) {
        const struct page_step *step = &variant->steps[i];
        if (!step->expects) {
            script_add(&t->script, step, t->peer->host, t->place + 1, &t->random);
            if (i + 1 < variant->count && !variant->steps[i + 1].expects)
                continue;
            send_script(t);
        } else if (!meet_expectation(t, step)) {
            return false;
        }
    }
    return true;
}

static bool converse(struct talk *t, const struct page_variant *variant)
{
    for (unsigned i = 0; i < variant->times; i++) {
        if (i > 0) { /* what is shown is the last time */
            free(t->sent);
            t->sent = NULL;
            t->in_size -= t->at;
            memmove(t->in, t->in + t->at, t->in_size);
            t->at = 0;
        }
        if (!converse_once(t, variant))
            return false;
    }
    return nothing_more(t);
}

static void tell(struct talk *t, struct talk_outcome *outcome)
{
    outcome->problem = mem_copy_string(t->problem);
    if (outcome->passed)
        return;
    append(&outcome->sent, t->sent != NULL ? t->sent : "");
    if (t->in_size > 0)
        show(&outcome->came, t->in, t->in_size);
    append(&outcome->came, t->reset         ? "<reset>"
                           : t->ended       ? "<end>"
                           : t->in_size > 0 ? "<nothing more>"
                                            : "<nothing>");
    append(&outcome->expected, t->expected != NULL ? t->expected : "to be connected");
}

void talk_carry_out(const struct talk_peer *peer, const struct page_variant *variant, uint64_t seed,
                    size_t place, struct talk_outcome *outcome)
{
    struct talk *t = mem_alloc(1, sizeof *t);
    *outcome = (struct talk_outcome){0};
    t->peer = peer;
    t->place = place;
    random_seed(&t->random, seed);
    t->fd = talk_connect(peer);
    outcome->passed =
        t->fd >= 0 ? converse(t, variant) : wrong(t, "no connection: %s", strerror(errno));
    outcome->noted = outcome->passed && t->noted;
    outcome->late = !outcome->passed && t->late;
    if (!outcome->passed || outcome->noted)
        tell(t, outcome);
    if (t->fd >= 0)
        close(t->fd);
    script_clear(&t->script);
    free(t->sent);
    free(t->in);
    free(t);
}

void talk_outcome_clear(struct talk_outcome *outcome)
{
    free(outcome->sent);
    free(outcome->came);
    free(outcome->expected);
    free(outcome->problem);
    *outcome = (struct talk_outcome){0};
}

size_t talk_places(const struct talk_peer *peer, const struct page_variant *variant, uint64_t seed)
{
    struct random random;
    struct script script = {0};
    size_t places = 1;
    random_seed(&random, seed);
    for (size_t i = 0; i < variant->count; i++) {
        const struct page_step *step = &variant->steps[i];
        if (step->expects)
            continue;
        size_t before = script.size;
        script_add(&script, step, peer->host, 0, &random);
        if (step->split == SPLIT_EVERYWHERE && script.size > before + 1)
            places = script.size - before - 1;
    }
    script_clear(&script);
    return places;
}

bool talk_is_served(const struct talk_peer *peer, char *problem, size_t problem_bytes)
{
    struct talk *t = mem_alloc(1, sizeof *t);
    t->peer = peer;
    t->fd = talk_connect(peer);
    bool served = t->fd >= 0 ? probe(t, false) : wrong(t, "no connection: %s", strerror(errno));
    snprintf(problem, problem_bytes, "a new connection is not served: %s", t->problem);
    if (t->fd >= 0)
        close(t->fd);
    free(t->sent);
    free(t->in);
    free(t);
    return served;
}

/* ---- the peer */

static int ask_hello(struct talk *t, struct err *err)
{
    char text[NOTE_MAX];
    char request[128];
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", t->peer->host);
    t->fd = talk_connect(t->peer);
    if (t->fd < 0)
        return err_set(err, errno != 0 ? errno : ETIMEDOUT, "cannot connect to %s: %s",
                       t->peer->host, strerror(errno));
    write_all(t, request, strlen(request));
    enum event event;
    while ((event = next_event(t, false, TALK_ANSWER_WAIT_NS)) == EVENT_100)
        ;
    return event == EVENT_ANSWER
               ? 0
               : err_set(err, EPROTO, "GET / is not answered: %s", what_came(t, event, text));
}

int talk_meet(struct talk_peer *peer, const struct sockaddr_in *address, struct err *err)
{
    char text[INET_ADDRSTRLEN];
    int status = 0;
    *peer = (struct talk_peer){.address = *address};
    inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    snprintf(peer->host, sizeof peer->host, "%s:%u", text, ntohs(address->sin_port));
    for (int i = 0; i < 2 && status == 0; i++) {
        struct talk *t = mem_alloc(1, sizeof *t);
        struct http_response *r = &t->scanner.response;
        t->peer = peer;
        status = ask_hello(t, err);
        if (status == 0 && i == 1)
            peer->body_known = r->body_bytes == peer->hello.body_bytes &&
                               memcmp(r->body, peer->hello.body,
                                      r->body_bytes < HTTP_BODY_KEEP ? (size_t)r->body_bytes
                                                                     : HTTP_BODY_KEEP) == 0;
        peer->hello = *r;
        if (t->fd >= 0)
            close(t->fd);
        free(t->in);
        free(t);
    }
    return status;
}
