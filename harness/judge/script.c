#include "judge/script.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By doubling: some pages send megabytes, a few bytes at a time. */
static void make_room(struct script *s, size_t size)
{
    if (s->size + size < s->room)
        return;
    s->room = 2 * (s->size + size) + 256;
    s->bytes = mem_grow(s->bytes, s->room, 1);
}

static void put(struct script *s, const char *bytes, size_t size)
{
    make_room(s, size);
    memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
}

static void put_text(struct script *s, const char *text)
{
    put(s, text, strlen(text));
}

static void put_mark(struct script *s, size_t at, enum script_act act, uint64_t rest_ns)
{
    s->marks = mem_grow(s->marks, s->mark_count + 1, sizeof *s->marks);
    s->marks[s->mark_count++] = (struct script_mark){.at = at, .act = act, .rest_ns = rest_ns};
}

static void put_letters(struct script *s, uint64_t count, struct random *random)
{
    make_room(s, count);
    for (uint64_t i = 0; i < count; i++)
        s->bytes[s->size++] = (char)('a' + random_below(random, 26));
}

/* A path as the contract knows none: so that 404 is the answer. */
static void put_path(struct script *s, struct random *random)
{
    put_text(s, "/");
    put_letters(s, 5 + random_below(random, 20), random);
    if (random_below(random, 3) == 0) {
        put_text(s, "/");
        put_letters(s, 1 + random_below(random, 8), random);
    }
}

/* Upper case, and begun so that it is no registered method (RFC 9110 16.1). */
static void put_method(struct script *s, struct random *random)
{
    size_t from = s->size + 1;
    put_text(s, "X");
    put_letters(s, 3 + random_below(random, 5), random);
    for (size_t i = from; i < s->size; i++)
        s->bytes[i] = (char)toupper((unsigned char)s->bytes[i]);
}

static void put_case(struct script *s, const struct page_token *token, struct random *random)
{
    for (size_t i = 0; i < token->size; i++) {
        int c = (unsigned char)token->bytes[i];
        char other = (char)(random_below(random, 2) == 0 ? toupper(c) : tolower(c));
        put(s, &other, 1);
    }
}

static void put_chunks(struct script *s, uint64_t count, struct random *random)
{
    while (count > 0) {
        uint64_t size = 1 + random_below(random, count);
        char line[32];
        snprintf(line, sizeof line, random_below(random, 2) == 0 ? "%llx\r\n" : "%llX\r\n",
                 (unsigned long long)size);
        put_text(s, line);
        put_letters(s, size, random);
        put_text(s, "\r\n");
        count -= size;
    }
}

static void put_number(struct script *s, const struct page_token *token, struct random *random)
{
    char text[32];
    snprintf(text, sizeof text, "%llu",
             (unsigned long long)(token->low + random_below(random, token->high - token->low + 1)));
    put_text(s, text);
}

static void put_token(struct script *s, const struct page_token *token, const char *host,
                      struct random *random)
{
    switch (token->kind) {
    case TOKEN_BYTES:
        put(s, token->bytes, token->size);
        break;
    case TOKEN_HOST:
        put_text(s, host);
        break;
    case TOKEN_PATH:
        put_path(s, random);
        break;
    case TOKEN_NAME:
        put_text(s, "X-");
        put_letters(s, 3 + random_below(random, 12), random);
        break;
    case TOKEN_WORD:
        put_letters(s, 3 + random_below(random, 12), random);
        break;
    case TOKEN_METHOD:
        put_method(s, random);
        break;
    case TOKEN_LETTERS:
        put_letters(s, token->low, random);
        break;
    case TOKEN_NUMBER:
        put_number(s, token, random);
        break;
    case TOKEN_CASE:
        put_case(s, token, random);
        break;
    case TOKEN_CHUNKS:
        put_chunks(s, token->low, random);
        break;
    case TOKEN_PAUSE:
        put_mark(s, s->size, SCRIPT_REST, token->low);
        break;
    case TOKEN_SPLIT:
        put_mark(s, s->size, SCRIPT_REST, SCRIPT_SPLIT_NS);
        break;
    case TOKEN_HALF_CLOSE:
        put_mark(s, s->size, SCRIPT_HALF_CLOSE, 0);
        break;
    case TOKEN_RESET:
        put_mark(s, s->size, SCRIPT_RESET, 0);
        break;
    }
}

static int order_marks(const void *left, const void *right)
{
    const struct script_mark *a = left;
    const struct script_mark *b = right;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* A block that is split has no marks of its own that would have to keep their place among these. */
static void put_splits(struct script *s, size_t from, enum page_split split, size_t split_at,
                       struct random *random)
{
    size_t size = s->size - from;
    size_t first = s->mark_count;
    if (split == SPLIT_EVERYWHERE && split_at > 0 && split_at < size)
        put_mark(s, from + split_at, SCRIPT_REST, SCRIPT_SPLIT_NS);
    for (size_t i = 1; split == SPLIT_BYTES && i < size; i++)
        put_mark(s, from + i, SCRIPT_REST, SCRIPT_BYTE_NS);
    if (split == SPLIT_RANDOMLY && size > 1)
        for (uint64_t left = 1 + random_below(random, 5); left > 0; left--)
            put_mark(s, from + 1 + random_below(random, size - 1), SCRIPT_REST, SCRIPT_SPLIT_NS);
    if (s->mark_count > first)
        qsort(s->marks + first, s->mark_count - first, sizeof *s->marks, order_marks);
}

void script_add(struct script *s, const struct page_step *step, const char *host, size_t split_at,
                struct random *random)
{
    size_t from = s->size;
    unsigned times =
        step->times_low + (unsigned)random_below(random, step->times_high - step->times_low + 1);
    for (unsigned i = 0; i < times; i++)
        for (size_t j = 0; j < step->token_count; j++)
            put_token(s, &step->tokens[j], host, random);
    if (step->times_high > 1 || s->times == 0)
        s->times = times;
    put_splits(s, from, step->split, split_at, random);
}

void script_clear(struct script *s)
{
    free(s->bytes);
    free(s->marks);
    *s = (struct script){0};
}
