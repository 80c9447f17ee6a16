#include "base/near.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

#define NAME_MAX_COMPARED 64

/* Levenshtein's distance, by rows; names longer than the rows are as far as can be. */
static size_t distance(const char *a, const char *b)
{
    size_t width = strlen(b);
    if (width >= NAME_MAX_COMPARED)
        return SIZE_MAX;
    size_t row[NAME_MAX_COMPARED];
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t above = row[j];
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = least(replaced, least(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[width];
}

const char *near_name(const char *name, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t best_distance = 0;
    for (size_t i = 0; i < count; i++) {
        const char *other = names[i];
        size_t d = distance(name, other);
        bool holds =
            strlen(name) >= 2 && (strstr(other, name) != NULL || strstr(name, other) != NULL);
        if ((d <= 1 || d * 3 <= strlen(other) || holds) && (best == NULL || d < best_distance)) {
            best = other;
            best_distance = d;
        }
    }
    return best;
}
