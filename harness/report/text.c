#include "report/text.h"

#include <stdbool.h>
#include <string.h>

/* Bytes of the control character at `text`, 0 if there is none. */
static size_t control_length(const char *text, size_t size)
{
    unsigned char first = (unsigned char)text[0];
    if (first < ' ' || first == 0x7f)
        return 1;
    if (first == 0xc2 && size > 1 && ((unsigned char)text[1] & 0xe0) == 0x80)
        return 2;
    return 0;
}

static void print_escaped(FILE *out, const char *text, size_t size, const char *keep,
                          const char *escape)
{
    for (size_t i = 0; i < size; i++) {
        size_t control = control_length(text + i, size - i);
        bool kept = control == 1 && text[i] != '\0' && strchr(keep, text[i]) != NULL;
        if (control == 0 && strchr(escape, text[i]) != NULL)
            fputc('\\', out);
        fputc(control == 0 || kept ? text[i] : '?', out);
        if (control == 2)
            i++;
    }
}

void text_print(FILE *out, const char *text, size_t size, const char *keep)
{
    print_escaped(out, text, size, keep, "");
}

void text_print_markdown(FILE *out, const char *text, size_t size)
{
    print_escaped(out, text, size, "", "\\`*|<[");
}

void text_copy(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < size; i++) {
        size_t control = control_length(from + i, length - i);
        to[used++] = control == 0 ? from[i] : '?';
        if (control == 2)
            i++;
    }
    to[used] = '\0';
}

size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

struct text_shown text_count(unsigned long count, const char *thing)
{
    struct text_shown shown;
    snprintf(shown.text, sizeof shown.text, "%lu %s%s", count, thing, count == 1 ? "" : "s");
    return shown;
}

struct text_shown text_shown(const char *text)
{
    struct text_shown shown;
    text_copy(shown.text, sizeof shown.text, text);
    return shown;
}
