/* The name that was probably meant: for messages about one that is not known.
 */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stddef.h>

/* The nearest of `names` by edit distance (Levenshtein 1966), the first of equals; NULL if none is
 * near. Near is: at most a third of the letters differ (but one always may), or one holds the
 * other. */
const char *near_name(const char *name, const char *const *names, size_t count);

#endif
