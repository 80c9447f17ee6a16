#include "canned.h"

#include <stdbool.h>
#include <string.h>

char canned_answers[REPLY_CONNECTIONS][CANNED_COPIES * REPLY_MAX_BYTES];
size_t canned_answer_bytes[REPLY_CONNECTIONS];

static void answers_fill(void)
{
    for (int wish = 0; wish < REPLY_CONNECTIONS; wish++) {
        const struct reply *reply = reply_get(REPLY_OK, (enum reply_connection)wish);
        canned_answer_bytes[wish] = reply->bytes;
        for (size_t i = 0; i < (wish == REPLY_CLOSE ? 1 : CANNED_COPIES); i++)
            memcpy(canned_answers[wish] + i * reply->bytes, reply->text, reply->bytes);
    }
}

void canned_init(void)
{
    reply_init();
    answers_fill();
}

void canned_refresh(void)
{
    if (reply_refresh())
        answers_fill();
}

static enum reply_connection wish_find(const char *in, size_t bytes)
{
    if (memmem(in, bytes, "close", 5))
        return REPLY_CLOSE;
    if (memmem(in, bytes, "HTTP/1.0", 8))
        return memmem(in, bytes, "eep-", 4) ? REPLY_KEEP_ALIVE : REPLY_CLOSE;
    return REPLY_IMPLIED;
}

static size_t requests_count(uint8_t *matched, const char *in, size_t bytes)
{
    static const char blank[] = "\r\n\r\n";
    size_t requests = 0;
    for (size_t i = 0; i < bytes; i++) {
        *matched = (uint8_t)(in[i] == blank[*matched] ? *matched + 1 : in[i] == '\r');
        if (*matched == sizeof blank - 1) {
            requests++;
            *matched = 0;
        }
    }
    return requests;
}

struct canned_verdict canned_judge(uint8_t *matched, const char *in, size_t bytes)
{
    /* A load says the same thing over and over, so a repeat of what was judged last costs one
     * memcmp(). Only input that begins and ends between requests is kept. */
    static char last[CANNED_MAX_IN_BYTES];
    static struct canned_verdict kept;
    bool between = *matched == 0;
    if (between && bytes == kept.bytes && memcmp(in, last, bytes) == 0)
        return kept;

    struct canned_verdict verdict = {.bytes = bytes, .wish = wish_find(in, bytes)};
    verdict.requests = requests_count(matched, in, bytes);
    if (between && *matched == 0) {
        memcpy(last, in, bytes);
        kept = verdict;
    }
    return verdict;
}
