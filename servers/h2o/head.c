#include "head.h"

#include <stddef.h>
#include <string.h>

#include "../common/host.h"

struct fields {
    int host;
    int content_length;
    int transfer_encoding;
    bool host_valid;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool starts_with(const char *line, size_t len, const char *name, size_t name_len)
{
    return len >= name_len && memcmp(line, name, name_len) == 0;
}

static bool host_line_is_valid(const char *value, size_t len)
{
    while (len > 0 && is_blank(value[0])) {
        value++;
        len--;
    }
    while (len > 0 && is_blank(value[len - 1]))
        len--;
    return host_is_valid(value, len);
}

static void note_line(struct fields *seen, const char *line, size_t len)
{
    static const char host[] = "host:";
    static const char content_length[] = "content-length:";
    static const char transfer_encoding[] = "transfer-encoding:";

    if (starts_with(line, len, host, sizeof host - 1)) {
        seen->host++;
        seen->host_valid = host_line_is_valid(line + sizeof host - 1, len - (sizeof host - 1));
    } else if (starts_with(line, len, content_length, sizeof content_length - 1)) {
        seen->content_length++;
    } else if (starts_with(line, len, transfer_encoding, sizeof transfer_encoding - 1)) {
        seen->transfer_encoding++;
    }
}

static const char *skip_line(const char *at)
{
    /* h2o has found the end of the head, so there is a line feed ahead of any end of input. */
    return (const char *)rawmemchr(at, '\n') + 1;
}

bool head_is_valid(const char *head, bool http_1_0)
{
    struct fields seen = {0};

    /* h2o lets one empty line stand before the request line. */
    if (head[0] == '\r' || head[0] == '\n')
        head = skip_line(head);
    for (const char *line = skip_line(head), *next;; line = next) {
        next = skip_line(line);
        size_t len = (size_t)(next - line) - 1;
        if (len > 0 && line[len - 1] == '\r')
            len--;
        if (len == 0)
            break;
        if (is_blank(line[0]))
            return false;
        note_line(&seen, line, len);
    }
    if (seen.host > 1 || (seen.host == 0 && !http_1_0) || (seen.host == 1 && !seen.host_valid))
        return false;
    if (seen.transfer_encoding > 0)
        return seen.transfer_encoding == 1 && seen.content_length == 0 && !http_1_0;
    return seen.content_length <= 1;
}
