/* Pages: the contract's rules, one a Markdown file in tests/contract/. A page is documentation and
 * test at once: prose that says why, the bytes to send, the answers expected. Reading them is all
 * that is done here; talk.h carries them out.
 *
 *   # A02: a client that says close gets one answer, then the end
 *
 *   - level: MUST                 MUST SHOULD MAY, or ROBUST POLICY (this project's own rules)
 *   - source: RFC 9112 9.6
 *   - gate: yes                   no: it counts for the score only
 *   - slow: yes                   left out unless asked for; not needed
 *   - load: yes                   carried out again beside the load of a run; not needed
 *   - fault: resets               the case is compiled (faults.h): no blocks follow; not needed
 *
 *   Prose. Its first paragraph is quoted when a server falls short.
 *
 *   ## title of a variant         each on a connection of its own; none is needed for the only one
 *
 *   - times: 100                  so many times on that connection; not needed
 *
 *   ```send                       then, in the order they stand, blocks:
 *   GET / HTTP/1.1\r\n
 *   Host: {host}\r\n
 *   Connection: close\r\n
 *   \r\n
 *   ```
 *
 *   ```expect
 *   200 hello close, closed
 *   ```
 *
 * `send`: the line ends of the block are no bytes: \r \n \t \s (space) \0 \\ \xHH stand for them.
 * Adjacent blocks go out in one segment. In braces:
 *   {host}          127.0.0.1:PORT
 *   {path} {name} {token} {method}   another random path, field name (X-…), word, unknown method
 *   {letters N}     N random letters, lower case
 *   {number A..B}   a random whole number
 *   {case TEXT}     TEXT with each letter in random case
 *   {chunks N}      N random letters as chunks of random sizes, without the last chunk
 *   {pause TIME}    what stands before it goes out, then nothing for that long
 *   {split}         the same, for as long as it takes to be a segment of its own
 *   {half-close}    FIN; {reset} RST, after which the server must go on serving others
 * After `send` may stand: `times N` or `times A..B` (the block so many times, a random number, with
 * new random words each time), and of one block in a variant `split bytes` (one byte a segment),
 * `split randomly` (2 to 6 segments) or `split everywhere` (the variant once for each place, in two
 * segments).
 *
 * `expect`: items after each other, divided by commas or line ends; a line that begins with `or`
 * begins an alternative, one with `or noted:` an alternative that passes with a note. Items:
 *   STATUS[|STATUS]… WORD…   an answer: 400, 4xx, any; the words are
 *       hello       what GET / was answered at the start: Content-Type and body
 *       text        Content-Type text/plain and the body "Hello World\n" in twelve bytes (POLICY)
 *       head        to HEAD: no body
 *       close       says Connection: close
 *       keep-alive  says Connection: keep-alive
 *       dated       one Date, IMF-fixdate, at most 2 s from now
 *       sized       has Content-Length
 *       framed      exactly one of Content-Length and Transfer-Encoding
 *       single      no Date, Server, Content-Type, Content-Length on two lines
 *       allow       has Allow
 *       http/1.1    in that version
 *       after-100   a 100 came before it; no-100: no 1xx did
 *       as-often    so many of it as the last `times` sent
 *   100           a 100 comes while the final answer has yet to come
 *   closed        the server closes, within 2 s
 *   open          neither bytes nor a close for 100 ms
 *   in sync       a request more, with Connection: close, is answered rightly, and not a byte
 *                 more comes before the end (or 300 ms, of a server that does not close)
 *   nothing TIME  neither bytes nor a close for so long
 *   no 2xx        until the end, or 200 ms of silence, no answer is a 2xx
 *   unheard       the connection is over at our side; a new one is served
 * `in sync` and `unheard` end a connection, so they stand last.
 * That no answer comes can only be waited for; `in sync` decides it for certain, since the server
 * ends the connection when it has sent all it has to send.
 */
#ifndef JUDGE_PAGE_H
#define JUDGE_PAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum page_token_kind {
    TOKEN_BYTES,
    TOKEN_HOST,
    TOKEN_PATH,
    TOKEN_NAME,
    TOKEN_WORD,
    TOKEN_METHOD,
    TOKEN_LETTERS,
    TOKEN_NUMBER,
    TOKEN_CASE,
    TOKEN_CHUNKS,
    TOKEN_PAUSE,
    TOKEN_SPLIT,
    TOKEN_HALF_CLOSE,
    TOKEN_RESET
};

struct page_token {
    enum page_token_kind kind;
    char *bytes; /* of BYTES and CASE */
    size_t size;
    uint64_t low, high; /* of NUMBER; low: of LETTERS, CHUNKS, and of PAUSE in ns */
};

enum page_split { SPLIT_NONE, SPLIT_BYTES, SPLIT_RANDOMLY, SPLIT_EVERYWHERE };

enum page_item_kind {
    ITEM_ANSWER,
    ITEM_CONTINUE,
    ITEM_CLOSED,
    ITEM_OPEN,
    ITEM_IN_SYNC,
    ITEM_NOTHING,
    ITEM_NO_2XX,
    ITEM_UNHEARD
};

enum page_word {
    WORD_HELLO = 1 << 0,
    WORD_TEXT = 1 << 1,
    WORD_HEAD = 1 << 2,
    WORD_CLOSE = 1 << 3,
    WORD_KEEP_ALIVE = 1 << 4,
    WORD_DATED = 1 << 5,
    WORD_SIZED = 1 << 6,
    WORD_FRAMED = 1 << 7,
    WORD_SINGLE = 1 << 8,
    WORD_ALLOW = 1 << 9,
    WORD_HTTP11 = 1 << 10,
    WORD_AFTER_100 = 1 << 11,
    WORD_NO_100 = 1 << 12,
    WORD_AS_OFTEN = 1 << 13
};

#define PAGE_STATUSES_MAX 8

struct page_item {
    enum page_item_kind kind;
    struct {
        unsigned low, high;
    } statuses[PAGE_STATUSES_MAX];
    unsigned status_count;
    unsigned words;    /* enum page_word, together */
    uint64_t quiet_ns; /* of NOTHING, OPEN and NO_2XX */
    char *text;        /* as it stands on the page */
};

struct page_choice {
    struct page_item *items;
    size_t count;
    bool noted;
};

struct page_step {
    bool expects; /* else it sends */
    struct page_token *tokens;
    size_t token_count;
    unsigned times_low, times_high;
    enum page_split split;
    struct page_choice *choices;
    size_t choice_count;
    char *text; /* of an expectation, on one line */
};

struct page_variant {
    char *title;
    unsigned line;
    unsigned times; /* the steps so often, on one connection */
    struct page_step *steps;
    size_t count;
};

enum page_level { PAGE_MUST, PAGE_SHOULD, PAGE_MAY, PAGE_ROBUST, PAGE_POLICY };

struct page {
    char *id; /* a capital and two digits */
    char *title;
    char *source;
    char *fault; /* name of a compiled case, or NULL */
    char *why;   /* the first paragraph, on one line */
    enum page_level level;
    bool gate, slow, load;
    struct page_variant *variants;
    size_t count;
};

struct page_list {
    struct page *items; /* by id */
    size_t count;
};

/* Reads all *.md in `folder`. -ENOENT without any, -EINVAL with "FILE:LINE: …" for one that breaks
 * a rule above (the file as `folder` names it); then the list is empty. */
int page_list_read(const char *folder, struct page_list *list, struct err *err);
void page_list_free(struct page_list *list);

/* One page from its text; `file` is for messages, and its name without .md the id. For tests. */
int page_read(const char *file, const char *text, struct page *page, struct err *err);
void page_free(struct page *page);

const char *page_level_name(enum page_level level);

#endif
