#include "trial/beside.h"
#include "base/mem.h"
#include "host/cpu.h"
#include "judge/talk.h"
#include "stats/random.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_BYTES = 1024 };

struct beside {
    const struct page_list *pages;
    const struct entry *entry;
    struct sockaddr_in address;
    int cpu;
    struct random random;
    pthread_t thread;
    atomic_bool ending; /* no further round is begun */
    atomic_bool at_once;
    /* The thread's own until it has ended. */
    unsigned conversations;
    char why[WHY_BYTES]; /* "" while all goes well */
};

static bool is_waived(const struct entry *entry, const char *page)
{
    char id[ENTRY_CASE_BYTES];
    char *reason;
    bool waived = false;
    for (const char *at = entry->waive; (reason = entry_next_waiver(&at, id)) != NULL;) {
        waived = waived || strcmp(id, page) == 0;
        free(reason);
    }
    return waived;
}

static bool is_carried_out(const struct beside *b, const struct page *page)
{
    return page->load && !is_waived(b->entry, page->id);
}

static bool goes_on(const struct beside *b)
{
    return b->why[0] == '\0' && !atomic_load(&b->at_once);
}

static void carry_out(struct beside *b, const struct talk_peer *peer, const struct page *page,
                      const struct page_variant *variant)
{
    struct talk_outcome outcome;
    uint64_t seed = random_next(&b->random);
    size_t place = random_below(&b->random, talk_places(peer, variant, seed));
    talk_carry_out(peer, variant, seed, place, &outcome);
    b->conversations++;
    if (!outcome.passed)
        snprintf(b->why, sizeof b->why, "%s, %s: %s", page->id, variant->title, outcome.problem);
    talk_outcome_clear(&outcome);
}

static void *work(void *context)
{
    struct beside *b = context;
    struct talk_peer peer;
    struct err err;
    if (b->cpu >= 0)
        host_cpu_pin(b->cpu, &err); /* where it can't be, it runs anywhere */
    if (talk_meet(&peer, &b->address, &err) != 0) {
        snprintf(b->why, sizeof b->why, "%s", err.text);
        return NULL;
    }
    do {
        for (size_t i = 0; i < b->pages->count; i++)
            for (size_t v = 0; v < b->pages->items[i].count && goes_on(b); v++)
                if (is_carried_out(b, &b->pages->items[i]))
                    carry_out(b, &peer, &b->pages->items[i], &b->pages->items[i].variants[v]);
    } while (goes_on(b) && !atomic_load(&b->ending));
    return NULL;
}

struct beside *beside_start(const struct page_list *pages, const struct entry *entry, unsigned port,
                            int cpu, uint64_t seed)
{
    struct beside *b = mem_alloc(1, sizeof *b);
    size_t count = 0;
    b->pages = pages;
    b->entry = entry;
    b->cpu = cpu;
    b->address = (struct sockaddr_in){.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    random_seed(&b->random, seed);
    for (size_t i = 0; i < pages->count; i++)
        count += is_carried_out(b, &pages->items[i]);
    if (count > 0 && pthread_create(&b->thread, NULL, work, b) == 0)
        return b;
    free(b);
    return NULL;
}

bool beside_end(struct beside *beside, bool at_once, unsigned *conversations, char *why,
                size_t why_bytes)
{
    *conversations = 0;
    if (beside == NULL)
        return true;
    atomic_store(&beside->at_once, at_once);
    atomic_store(&beside->ending, true);
    pthread_join(beside->thread, NULL);
    *conversations = beside->conversations;
    bool right = beside->why[0] == '\0';
    snprintf(why, why_bytes, "%s", beside->why);
    free(beside);
    return right;
}
