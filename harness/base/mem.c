#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void out_of_memory(size_t count, size_t size)
{
    fprintf(stderr, "showdown: out of memory (%zu times %zu bytes asked for)\n", count, size);
    exit(1);
}

void *mem_alloc(size_t count, size_t size)
{
    void *new = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (new == NULL)
        out_of_memory(count, size);
    return new;
}

void *mem_grow(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        out_of_memory(count, size);
    void *new = realloc(old, bytes > 0 ? bytes : 1);
    if (new == NULL)
        out_of_memory(count, size);
    return new;
}

char *mem_copy_string(const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(mem_alloc(bytes, 1), text, bytes);
}

char *mem_format(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        out_of_memory(1, strlen(format));
    va_end(arguments);
    return text;
}
