#include "buffer.h"

#include <stdlib.h>

enum {
    FIRST_BYTES = 4096,
    SPARES = 8,
    SPARE_MAX = 256 * 1024, /* a buffer that has grown larger is not kept */
};

static struct buffer spares[SPARES];
static unsigned spare_count;

void buffer_grow(struct buffer *b, size_t more)
{
    if (b->data == NULL && spare_count > 0)
        *b = spares[--spare_count];
    size_t capacity = b->capacity != 0 ? b->capacity : FIRST_BYTES;
    while (capacity - b->length < more)
        capacity *= 2;
    if (capacity == b->capacity)
        return;
    b->data = realloc(b->data, capacity);
    if (b->data == NULL)
        abort();
    b->capacity = capacity;
}

void buffer_drop(struct buffer *b, size_t length)
{
    b->length -= length;
    if (b->length > 0)
        memmove(b->data, b->data + length, b->length);
}

void buffer_release(struct buffer *b)
{
    if (b->data == NULL)
        return;
    b->length = 0;
    if (spare_count < SPARES && b->capacity <= SPARE_MAX)
        spares[spare_count++] = *b;
    else
        free(b->data);
    *b = (struct buffer){0};
}
