#include "report/ranks.h"
#include "base/mem.h"
#include "report/summary.h"
#include "stats/holm.h"
#include "stats/order.h"
#include "stats/signflip.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The ratio of two columns, and p of its test. 0, or -ENODATA when they share no block. */
static int compare(const struct paired *paired, size_t entry, size_t base, uint64_t seed,
                   struct ranks_pair *pair)
{
    int status =
        paired_ratio(paired, entry, base, SUMMARY_CONFIDENCE, SUMMARY_DRAWS, seed, &pair->ratio);
    if (status != 0)
        return status;
    size_t boots = 0;
    double *means = mem_alloc(paired->blocks + 1, sizeof *means);
    status = paired_boot_means(paired, entry, base, means, &boots);
    if (status == 0)
        status = signflip_p(means, boots, seed, &pair->p);
    pair->boots = (unsigned)boots;
    free(means);
    return status;
}

static struct interval inverse(struct interval ratio)
{
    return (struct interval){1 / ratio.value, 1 / ratio.high, 1 / ratio.low};
}

static const struct row *find_row(const struct summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->rows[i].name, name) == 0)
            return &summary->rows[i];
    return NULL;
}

static void compare_twin(struct twin *twin, const struct row *row, const struct row *entry,
                         const struct paired *paired, uint64_t seed)
{
    struct ranks_pair pair = {.p = NAN};
    twin->reason = "";
    if (row->reason[0] != '\0')
        twin->reason = row->reason;
    else if (entry == NULL || strcmp(entry->status, "ranked") != 0)
        twin->reason = "its entry is not ranked";
    else if (compare(paired, row->column, entry->column, seed, &pair) != 0)
        twin->reason = "no block holds both";
    if (twin->reason[0] != '\0')
        return;
    twin->ratio = pair.ratio;
    twin->p = pair.p;
    twin->boots = pair.boots;
    twin->differs =
        twin->p < RANKS_ALPHA && fabs(log(twin->ratio.value)) > log(1 + RANKS_DELTA_MIN);
}

/* Twins are at the end of the rows. Of several, which no run makes, the first counts. */
static void take_twin(struct summary *summary, const struct paired *paired, uint64_t seed)
{
    struct twin *twin = &summary->ranking.twin;
    size_t rows = summary->count;
    while (rows > 0 && summary->rows[rows - 1].twin_of != NULL)
        rows--;
    if (rows == summary->count)
        return;
    const struct row *row = &summary->rows[rows];
    summary->count = rows;
    twin->entry = row->twin_of;
    twin->failed = strcmp(row->status, "failed") == 0;
    compare_twin(twin, row, find_row(summary, row->twin_of), paired, seed);
}

static double delta_of(const struct twin *twin)
{
    if (twin->entry == NULL || twin->reason[0] != '\0')
        return RANKS_DELTA_MIN;
    return fmax(RANKS_DELTA_MIN, exp(fabs(log(twin->ratio.value))) - 1);
}

static void add_pair(struct ranking *ranking, const struct row *a, const struct row *b,
                     const struct paired *paired, uint64_t seed)
{
    struct ranks_pair pair = {.upper = a->name, .lower = b->name};
    if (compare(paired, a->column, b->column, seed, &pair) != 0)
        return;
    if (pair.ratio.value < 1) {
        pair.upper = b->name;
        pair.lower = a->name;
        pair.ratio = inverse(pair.ratio);
    }
    ranking->boots = pair.boots > ranking->boots ? pair.boots : ranking->boots;
    ranking->pairs[ranking->pair_count++] = pair;
}

static size_t count_ranked(const struct summary *summary)
{
    size_t ranked = 0;
    while (ranked < summary->count && strcmp(summary->rows[ranked].status, "ranked") == 0)
        ranked++;
    return ranked;
}

static void list_pairs(struct summary *summary, size_t ranked, const struct paired *paired,
                       uint64_t seed)
{
    struct ranking *ranking = &summary->ranking;
    ranking->pairs = mem_alloc(ranked * ranked + 1, sizeof *ranking->pairs);
    for (size_t a = 0; a < ranked; a++)
        for (size_t b = a + 1; b < ranked; b++)
            add_pair(ranking, &summary->rows[a], &summary->rows[b], paired, seed);
    if (ranking->pair_count == 0)
        return;
    ranking->boots_needed = (unsigned)signflip_count_for(RANKS_ALPHA / (double)ranking->pair_count);
    ranking->provisional = ranking->boots < ranking->boots_needed;
}

static void adjust(struct ranking *ranking)
{
    double *p = mem_alloc(ranking->pair_count + 1, sizeof *p);
    for (size_t i = 0; i < ranking->pair_count; i++)
        p[i] = ranking->pairs[i].p;
    holm_adjust(p, ranking->pair_count, p);
    for (size_t i = 0; i < ranking->pair_count; i++)
        ranking->pairs[i].p_adjusted = p[i];
    free(p);
}

static bool was_hammer_limited(const struct summary *summary, const char *name)
{
    const struct row *row = find_row(summary, name);
    return row != NULL && verdict_holds(row, VERDICT_HAMMER);
}

static size_t place_of(const struct summary *summary, const char *name)
{
    return (size_t)(find_row(summary, name) - summary->rows);
}

/* Which pairs are claims, and the ranks that follow from them. */
static void rank_by_claims(struct summary *summary, size_t ranked)
{
    struct ranking *ranking = &summary->ranking;
    bool *outranks = mem_alloc(ranked * ranked + 1, sizeof *outranks);
    unsigned *rank = mem_alloc(ranked + 1, sizeof *rank);
    bool *tied = mem_alloc(ranked + 1, sizeof *tied);
    for (size_t i = 0; i < ranking->pair_count; i++) {
        const struct ranks_pair *pair = &ranking->pairs[i];
        size_t at = place_of(summary, pair->upper) * ranked + place_of(summary, pair->lower);
        outranks[at] = pair->p_adjusted < RANKS_ALPHA && pair->ratio.value > 1 + ranking->delta &&
                       !was_hammer_limited(summary, pair->lower);
    }
    order_ranks(outranks, ranked, rank, tied);
    for (size_t i = 0; i < ranking->pair_count; i++) {
        struct ranks_pair *pair = &ranking->pairs[i];
        size_t at = place_of(summary, pair->upper) * ranked + place_of(summary, pair->lower);
        pair->outranks = outranks[at];
    }
    for (size_t i = 0; i < ranked; i++) {
        summary->rows[i].rank = rank[i];
        summary->rows[i].rank_tied = tied[i];
    }
    free(outranks);
    free(rank);
    free(tied);
}

static void rank_by_rate(struct summary *summary, size_t ranked)
{
    for (size_t i = 0; i < ranked; i++)
        summary->rows[i].rank = (unsigned)i + 1;
}

/* An insertion sort, which leaves rows of one rank in the order of their rates. */
static void sort_by_rank(struct row *rows, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct row row = rows[i];
        size_t at = i;
        for (; at > 0 && rows[at - 1].rank > row.rank; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

void ranks_make(struct summary *summary, const struct paired *paired, uint64_t seed, bool rank)
{
    struct ranking *ranking = &summary->ranking;
    memset(ranking, 0, sizeof *ranking);
    take_twin(summary, paired, seed);
    ranking->delta = delta_of(&ranking->twin);
    size_t ranked = count_ranked(summary);
    list_pairs(summary, ranked, paired, seed);
    adjust(ranking);
    ranking->provisional &= rank;
    if (!rank)
        return;
    if (ranking->provisional)
        rank_by_rate(summary, ranked);
    else
        rank_by_claims(summary, ranked);
    sort_by_rank(summary->rows, ranked);
}

void ranks_free(struct ranking *ranking)
{
    free(ranking->pairs);
    ranking->pairs = NULL;
    ranking->pair_count = 0;
}

bool ranks_inconclusive(const struct ranking *ranking)
{
    return ranking->twin.differs;
}
