/* Errors as values. A function that can fail returns 0 or -errno and fills the `struct err` that
 * its caller owns; only cli/ prints. The text says what was tried, what came, and the remedy; one
 * that does not fit ends in "...".
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

struct err {
    int code;        /* a positive errno value, 0 for none */
    char text[1024]; /* one sentence, no newline at the end */
};

/* Fills `err` (which may be NULL) and returns -code, so that `return err_set(...)` reads well. The
 * arguments may point into err->text. */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "<text>: " before what `err` (not NULL) says. Returns -err->code. */
int err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
