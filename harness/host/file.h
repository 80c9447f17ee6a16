/* Small text files of /proc and /sys, read whole. Private to host/.
 */
#ifndef HOST_FILE_H
#define HOST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads at most size - 1 bytes and ends them with NUL. Returns the number of bytes, or -errno with
 * `text` empty. */
int host_file_read(const char *path, char *text, size_t size);

/* The number after "\nkey:" (or at the start) in the text of a /proc file; false if it isn't
 * there. */
bool host_file_number(const char *text, const char *key, uint64_t *number);

#endif
