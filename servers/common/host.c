#include "host.h"

enum { NAME = 1, HEX = 2, DIGIT = 4 };

/* unreserved and sub-delims of RFC 3986, 2.2 and 2.3; a table, since this is read a byte at a time
 * for every request. */
static const unsigned char class_of[256] = {
    ['0' ... '9'] = NAME | HEX | DIGIT,
    ['A' ... 'F'] = NAME | HEX,
    ['a' ... 'f'] = NAME | HEX,
    ['G' ... 'Z'] = NAME,
    ['g' ... 'z'] = NAME,
    ['-'] = NAME,
    ['.'] = NAME,
    ['_'] = NAME,
    ['~'] = NAME,
    ['!'] = NAME,
    ['$'] = NAME,
    ['&'] = NAME,
    ['\''] = NAME,
    ['('] = NAME,
    [')'] = NAME,
    ['*'] = NAME,
    ['+'] = NAME,
    [','] = NAME,
    [';'] = NAME,
    ['='] = NAME,
};

static bool is(int class, char c)
{
    return (class_of[(unsigned char)c] & class) != 0;
}

static size_t reg_name_len(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len) {
        if (is(NAME, text[i]))
            i++;
        else if (text[i] == '%' && len - i >= 3 && is(HEX, text[i + 1]) && is(HEX, text[i + 2]))
            i += 3;
        else
            break;
    }
    return i;
}

/* Returns 0 if the bracket is not closed or holds what no literal may. */
static size_t ip_literal_len(const char *text, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        if (text[i] == ']')
            return i > 1 ? i + 1 : 0;
        if (text[i] != ':' && !is(NAME, text[i]))
            return 0;
    }
    return 0;
}

bool host_is_valid(const char *text, size_t len)
{
    if (len == 0)
        return true;
    size_t i = text[0] == '[' ? ip_literal_len(text, len) : reg_name_len(text, len);
    if (i == 0)
        return false;
    if (i < len && text[i++] != ':')
        return false;
    while (i < len && is(DIGIT, text[i]))
        i++;
    return i == len;
}
