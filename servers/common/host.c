#include "host.h"

#include <ctype.h>
#include <string.h>

/* unreserved and sub-delims of RFC 3986, letters and digits aside. */
static const char NAME_MARKS[] = "-._~!$&'()*+,;=";

static bool is_hex(char c)
{
    return isxdigit((unsigned char)c) != 0;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr(NAME_MARKS, c) != NULL);
}

static size_t reg_name_len(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len) {
        if (is_name_char(text[i]))
            i++;
        else if (text[i] == '%' && len - i >= 3 && is_hex(text[i + 1]) && is_hex(text[i + 2]))
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
        if (text[i] != ':' && !is_name_char(text[i]))
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
    while (i < len && isdigit((unsigned char)text[i]))
        i++;
    return i == len;
}
