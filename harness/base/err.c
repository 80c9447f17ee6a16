#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that does not fit ends in "..." so that nobody takes the part for the whole. */
static void mark_cut(char *text, size_t size, int wanted)
{
    if (wanted >= 0 && (size_t)wanted < size)
        return;
    size_t at = size - 4;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80)
        at--; /* never within a UTF-8 character */
    memcpy(text + at, "...", 4);
}

int err_set(struct err *err, int code, const char *format, ...)
{
    if (err == NULL)
        return -code;
    /* The arguments may point into err->text. */
    char text[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mark_cut(text, sizeof text, wanted);
    memcpy(err->text, text, sizeof text);
    err->code = code;
    return -code;
}

int err_prefix(struct err *err, const char *format, ...)
{
    char text[2 * sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    int prefix = vsnprintf(text, sizeof err->text, format, arguments);
    va_end(arguments);
    mark_cut(text, sizeof err->text, prefix);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, ": %s", err->text);
    return err_set(err, err->code, "%s", text);
}
