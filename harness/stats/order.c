#include "stats/order.h"

/* Warshall's transitive closure. */
static void add_what_follows(bool *outranks, size_t count)
{
    for (size_t by = 0; by < count; by++)
        for (size_t a = 0; a < count; a++)
            for (size_t b = 0; b < count && outranks[a * count + by]; b++)
                if (outranks[by * count + b])
                    outranks[a * count + b] = true;
}

static void break_circles(bool *outranks, size_t count)
{
    for (size_t a = 0; a < count; a++)
        for (size_t b = a; b < count; b++)
            if (outranks[a * count + b] && outranks[b * count + a])
                outranks[a * count + b] = outranks[b * count + a] = false;
}

void order_ranks(bool *outranks, size_t count, unsigned *rank, bool *tied)
{
    add_what_follows(outranks, count);
    break_circles(outranks, count);
    for (size_t b = 0; b < count; b++) {
        rank[b] = 1;
        for (size_t a = 0; a < count; a++)
            if (outranks[a * count + b])
                rank[b]++;
    }
    for (size_t a = 0; a < count; a++) {
        tied[a] = false;
        for (size_t b = 0; b < count; b++)
            if (a != b && rank[a] == rank[b])
                tied[a] = true;
    }
}
