/* Ranks from a relation "a is shown to be faster than b" that knows no more than what was shown.
 *
 * An entry's rank is 1 and as many as outrank it: each rank is a claim about the entries above it,
 * and about no others. Numbers are left out after a tie (1 1 3). What was shown need not settle all
 * pairs, and so a tie need not be mutual: a may be told from b, and c, between them, from neither;
 * then a and c have rank 1 and b has rank 2.
 *
 * Who outranks one that outranks another outranks that one too, shown or not: it follows, and can
 * be wrong only if one of the two is. So of two where one outranks the other, that one has the
 * lower rank. Should the relation go round in a circle, those on it do not outrank each other.
 */
#ifndef STATS_ORDER_H
#define STATS_ORDER_H

#include <stdbool.h>
#include <stddef.h>

/* outranks[a * count + b]: a is shown to be faster than b; what follows from it is added. Fills
 * rank[] from 1, and tied[]: another has the same rank. */
void order_ranks(bool *outranks, size_t count, unsigned *rank, bool *tied);

#endif
