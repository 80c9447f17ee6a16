/* Growing byte buffers. Most connections are idle most of the time, so a connection owns memory
 * only while there is something in it: buffer_release gives it to a small store of spares, from
 * which the next buffer that needs memory takes it. Out of memory ends the process. */
#ifndef SERVERS_LUVIT_BUFFER_H
#define SERVERS_LUVIT_BUFFER_H

#include <stddef.h>
#include <string.h>

struct buffer {
    char *data;
    size_t length;
    size_t capacity;
};

void buffer_grow(struct buffer *b, size_t more);

/* Makes room for `more` bytes after those that are there. */
static inline void buffer_reserve(struct buffer *b, size_t more)
{
    if (b->capacity - b->length < more)
        buffer_grow(b, more);
}

static inline void buffer_add(struct buffer *b, const void *data, size_t length)
{
    if (length == 0)
        return;
    buffer_reserve(b, length);
    memcpy(b->data + b->length, data, length);
    b->length += length;
}

#define BUFFER_ADD_LITERAL(b, text) buffer_add(b, text, sizeof text - 1)

/* Removes the first `length` bytes. */
void buffer_drop(struct buffer *b, size_t length);

/* Empties the buffer and parts with its memory. */
void buffer_release(struct buffer *b);

#endif
