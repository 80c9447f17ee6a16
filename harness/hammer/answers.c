#include "hammer/worker.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct scan *scan_borrow(struct worker *w)
{
    struct scan *scan = w->free_scans;
    if (scan)
        w->free_scans = scan->next_free;
    else
        scan = mem_alloc(1, sizeof *scan);
    http_scanner_start(&scan->scanner, w->config->expect.head);
    return scan;
}

static struct hold *hold_borrow(struct worker *w)
{
    struct hold *hold = w->free_holds;
    if (hold)
        w->free_holds = hold->next_free;
    else
        hold = mem_alloc(1, sizeof *hold);
    return hold;
}

static void scan_return(struct worker *w, struct conn *c)
{
    c->scan->next_free = w->free_scans;
    w->free_scans = c->scan;
    c->scan = NULL;
}

static void hold_return(struct worker *w, struct conn *c)
{
    c->hold->next_free = w->free_holds;
    w->free_holds = c->hold;
    c->hold = NULL;
    c->held_bytes = 0;
}

void answers_forget(struct worker *w, struct conn *c)
{
    if (c->scan)
        scan_return(w, c);
    if (c->hold)
        hold_return(w, c);
}

/* One answer came, whole: the oldest request is done. */
static inline void answered(struct worker *w, struct conn *c, unsigned status, bool valid,
                            uint64_t bytes, bool scanned)
{
    struct hammer_result *sum = w->sum;
    unsigned pipeline = w->config->pipeline;
    uint64_t stamp = w->stamps[(size_t)worker_conn_index(w, c) * pipeline + c->oldest];
    unsigned next = c->oldest + 1u;
    c->oldest = (uint16_t)(next == pipeline ? 0 : next);
    c->outstanding--;
    c->checked = true;
    sum->status[status]++;
    if (!valid) {
        sum->total.wrong++;
        sum->failed += w->measuring;
        return;
    }
    if (w->now_ns - stamp > w->config->timeout_ns) { /* right, but before the sweep found it late */
        worker_note(w, "an answer came after %.3g ms", (double)(w->now_ns - stamp) / 1e6);
        sum->total.timed_out++;
        sum->failed += w->measuring;
        return;
    }
    sum->total.valid++;
    if (!w->measuring)
        return;
    sum->valid++;
    sum->bytes_read += bytes;
    sum->scanned += scanned;
    histogram_add(&sum->latency, w->now_ns - stamp);
}

/* True, and the connection is given up, if more came than was asked for. */
static bool surplus(struct worker *w, struct conn *c, size_t left)
{
    if (left == 0 || c->outstanding > 1)
        return false;
    worker_note(w, "%zu bytes came after the last answer that was asked for (RFC 9112 section 9.2)",
                left);
    worker_lose(w, c, HAMMER_ERROR_MALFORMED, 0);
    return true;
}

static void scanned(struct worker *w, struct conn *c, const char *wire, size_t wire_bytes)
{
    const struct http_response *r = &c->scan->scanner.response;
    bool keep_alive = r->keep_alive && !w->config->close_each;
    char why[400];
    bool valid = http_answer_check(&w->config->expect, r, w->wall_s, why, sizeof why);
    if (!valid)
        worker_note(w, "%s", why);
    else if (wire && http_pattern_learn(&w->pattern, r, wire, wire_bytes))
        w->pattern_status = r->status;
    answered(w, c, r->status, valid, r->total_bytes, true);
    scan_return(w, c);
    if (!keep_alive)
        worker_finish(w, c);
}

static size_t take_scanning(struct worker *w, struct conn *c, const char *bytes, size_t size)
{
    bool first = c->scan == NULL;
    if (first)
        c->scan = scan_borrow(w);
    size_t used = 0;
    enum http_scan state = http_scanner_feed(&c->scan->scanner, bytes, size, &used);
    if (state == HTTP_SCAN_MORE)
        return size;
    if (state == HTTP_SCAN_BAD) {
        worker_note(w, "%s", c->scan->scanner.problem);
        worker_lose(w, c, HAMMER_ERROR_MALFORMED, 0);
        return size;
    }
    if (surplus(w, c, size - used))
        return size;
    scanned(w, c, first ? bytes : NULL, used);
    return used;
}

static void matched(struct worker *w, struct conn *c)
{
    answered(w, c, w->pattern_status, true, w->pattern.size, false);
    if (!w->pattern.keep_alive || w->config->close_each)
        worker_finish(w, c);
}

/* Whether these bytes can be the beginning of the pattern, whatever its Date. */
static bool begins_pattern(const struct http_pattern *p, const char *bytes, size_t size)
{
    if (size > p->size)
        return false;
    size_t date = p->date ? p->date : p->size;
    size_t before = size < date ? size : date;
    size_t after = date + HTTP_DATE_BYTES;
    return memcmp(bytes, p->bytes, before) == 0 &&
           (size <= after || memcmp(bytes + after, p->bytes + after, size - after) == 0);
}

/* An answer that came in pieces: they are gathered while they look like the pattern. */
static size_t take_piece(struct worker *w, struct conn *c, const char *bytes, size_t size)
{
    if (!c->hold)
        c->hold = hold_borrow(w);
    size_t room = w->pattern.size > c->held_bytes ? w->pattern.size - c->held_bytes : 0;
    size_t used = size < room ? size : room;
    memcpy(c->hold->bytes + c->held_bytes, bytes, used);
    size_t held = c->held_bytes + used;
    bool whole = used > 0 && held == w->pattern.size;
    bool same = whole ? http_pattern_match(&w->pattern, c->hold->bytes, w->wall_s)
                      : used > 0 && begins_pattern(&w->pattern, c->hold->bytes, held);
    if (same && !whole) {
        c->held_bytes = (uint16_t)held;
        return used;
    }
    if (same) {
        if (surplus(w, c, size - used))
            return size;
        hold_return(w, c);
        matched(w, c);
        return used;
    }
    if (c->held_bytes == 0) {
        hold_return(w, c);
        return take_scanning(w, c, bytes, size);
    }
    /* What was held goes to the scanner first. It can't end the answer: it would have had the
     * pattern's length then. An older pattern's beginning might, so `used` is looked at. */
    struct hold *hold = c->hold;
    size_t held_before = c->held_bytes;
    c->hold = NULL;
    c->held_bytes = 0;
    size_t taken = 0;
    uint16_t generation = c->generation;
    while (taken < held_before && c->generation == generation && c->state == CONN_OPEN)
        taken += take_scanning(w, c, hold->bytes + taken, held_before - taken);
    hold->next_free = w->free_holds;
    w->free_holds = hold;
    return 0;
}

void answers_take(struct worker *w, struct conn *c, const char *bytes, size_t size)
{
    uint16_t generation = c->generation;
    while (size > 0 && c->state == CONN_OPEN && c->generation == generation) {
        if (c->outstanding == 0) {
            worker_note(w, "%zu bytes came though nothing was asked for", size);
            worker_lose(w, c, HAMMER_ERROR_MALFORMED, 0);
            return;
        }
        const struct http_pattern *p = &w->pattern;
        size_t used;
        if (c->scan || !c->checked || p->size == 0)
            used = take_scanning(w, c, bytes, size);
        else if (c->held_bytes > 0 || size < p->size)
            used = take_piece(w, c, bytes, size);
        else if (!http_pattern_match(&w->pattern, bytes, w->wall_s))
            used = take_scanning(w, c, bytes, size);
        else {
            used = p->size;
            if (surplus(w, c, size - used))
                return;
            matched(w, c);
        }
        bytes += used;
        size -= used;
    }
}

bool answers_end(struct worker *w, struct conn *c)
{
    if (!c->scan || c->outstanding == 0)
        return false;
    if (http_scanner_end(&c->scan->scanner) == HTTP_SCAN_DONE) {
        scanned(w, c, NULL, 0);
        return true;
    }
    worker_note(w, "%s", c->scan->scanner.problem);
    return false;
}

void answers_describe(const struct conn *c, char *text, size_t size)
{
    if (!c->scan && c->held_bytes == 0)
        snprintf(text, size, "not a byte of the answer had come");
    else if (!c->scan)
        snprintf(text, size, "%u bytes of the answer had come", c->held_bytes);
    else if (c->scan->scanner.response.framing == HTTP_FRAMING_EOF &&
             c->scan->scanner.response.head_bytes > 0)
        snprintf(text, size,
                 "the answer has neither Content-Length nor chunked coding, so only the end of the "
                 "connection can end it (RFC 9112 section 6.3), and the server keeps it open");
    else
        snprintf(text, size, "%llu bytes of the answer had come",
                 (unsigned long long)c->scan->scanner.response.total_bytes);
}
