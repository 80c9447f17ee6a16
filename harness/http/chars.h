/* Character classes of HTTP, and comparison without case, both free of the locale. Private to
 * http/.
 */
#ifndef HTTP_CHARS_H
#define HTTP_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool chars_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool chars_is_blank(char c) /* OWS and BWS, RFC 9110 5.6.3 */
{
    return c == ' ' || c == '\t';
}

static inline char chars_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* tchar, RFC 9110 5.6.2 */
static inline bool chars_is_token(char c)
{
    static const bool tchar[256] = {
        ['0' ... '9'] = true,  ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['!'] = true,
        ['#' ... '\''] = true, ['*'] = true,         ['+'] = true,         ['-'] = true,
        ['.'] = true,          ['^' ... '`'] = true, ['|'] = true,         ['~'] = true,
    };
    return tchar[(unsigned char)c];
}

/* What a field value, a reason phrase and a quoted pair may hold: HTAB, SP, VCHAR and obs-text
 * (RFC 9110 5.5, RFC 9112 4). */
static inline bool chars_is_text(char c)
{
    unsigned char u = (unsigned char)c;
    return u == '\t' || (u >= ' ' && u != 0x7f);
}

/* True if the `size` bytes of `text` are those of `string`, case aside. */
static inline bool chars_equal(const char *text, size_t size, const char *string)
{
    if (strlen(string) != size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (chars_lower(text[i]) != chars_lower(string[i]))
            return false;
    return true;
}

#endif
