/* Allocation that does not fail: a harness out of memory ends with a line on standard error and
 * status 1, since it could measure nothing further. Sizes are checked for overflow.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t count, size_t size) __attribute__((malloc)); /* zeroed */
void *mem_grow(void *old, size_t count, size_t size); /* as realloc; new part not zeroed */
char *mem_copy_string(const char *text) __attribute__((malloc));
char *mem_format(const char *format, ...) __attribute__((malloc, format(printf, 1, 2)));

#endif
