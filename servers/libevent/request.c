#include "request.h"

#include <string.h>
#include <strings.h>

#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>

#include "../common/host.h"

struct fields {
    int host;
    int content_length;
    int transfer_encoding;
    bool body_expected;
    bool close;
    bool keep_alive;
    bool valid;
};

static bool is_token(const char *name)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    size_t len = strspn(name, token);
    return len > 0 && name[len] == '\0';
}

static bool value_is_valid(const char *value)
{
    for (; *value != '\0'; value++)
        if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f)
            return false;
    return true;
}

/* RFC 9110, 4.2.1: an http URI without a host is invalid. */
static bool lacks_host(const char *target)
{
    return strncasecmp(target, "http://", 7) == 0 && strchr("/?", target[7]) != NULL;
}

/* Visible ASCII and no fragment: RFC 3986 has no other characters. */
static bool target_is_valid(const char *target)
{
    if (lacks_host(target))
        return false;
    for (; *target != '\0'; target++)
        if (*target <= ' ' || *target > '~' || *target == '#')
            return false;
    return true;
}

static bool list_has(const char *list, const char *word)
{
    size_t word_len = strlen(word);
    while (*list != '\0') {
        list += strspn(list, ", \t");
        size_t len = strcspn(list, ",");
        size_t bare = len;
        while (bare > 0 && (list[bare - 1] == ' ' || list[bare - 1] == '\t'))
            bare--;
        if (bare == word_len && strncasecmp(list, word, word_len) == 0)
            return true;
        list += len;
    }
    return false;
}

static void note_content_length(struct fields *seen, const char *value)
{
    size_t digits = strspn(value, "0123456789");
    seen->content_length++;
    seen->valid = seen->valid && digits > 0 && value[digits] == '\0';
    seen->body_expected = seen->body_expected || value[strspn(value, "0")] != '\0';
}

static void note_field(struct fields *seen, const char *name, const char *value)
{
    /* evhttp skips the spaces before a value, but no tabs. */
    value += strspn(value, " \t");
    if (!is_token(name) || !value_is_valid(value)) {
        seen->valid = false;
    } else if (strcasecmp(name, "Host") == 0) {
        seen->host++;
        seen->valid = seen->valid && host_is_valid(value, strlen(value));
    } else if (strcasecmp(name, "Content-Length") == 0) {
        note_content_length(seen, value);
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        seen->transfer_encoding++;
        seen->valid = seen->valid && strcasecmp(value, "chunked") == 0;
        seen->body_expected = true;
    } else if (strcasecmp(name, "Connection") == 0) {
        seen->close = seen->close || list_has(value, "close");
        seen->keep_alive = seen->keep_alive || list_has(value, "keep-alive");
    }
}

static bool framing_is_valid(const struct fields *seen, bool http_1_0)
{
    if (seen->transfer_encoding > 0)
        return seen->transfer_encoding == 1 && seen->content_length == 0 && !http_1_0;
    return seen->content_length <= 1;
}

void request_view_read(struct request_view *view, struct evhttp_request *req)
{
    struct fields seen = {
        .valid = req->major == 1 && req->minor <= 9 && target_is_valid(req->uri),
    };
    bool http_1_0 = req->minor == 0;

    for (const struct evkeyval *h = req->input_headers->tqh_first; h != NULL; h = h->next.tqe_next)
        note_field(&seen, h->key, h->value);
    bool host_valid = seen.host == 1 || (seen.host == 0 && http_1_0);
    view->valid = seen.valid && host_valid && framing_is_valid(&seen, http_1_0);
    view->has_body = seen.body_expected;
    view->persistence =
        !seen.close && (seen.keep_alive || !http_1_0) ? PERSISTENCE_KEEP : PERSISTENCE_CLOSE;
}

bool request_target_is_root(const struct evhttp_request *req)
{
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
    return path != NULL &&
           (strcmp(path, "/") == 0 || (path[0] == '\0' && req->uri[0] != '\0' &&
                                       evhttp_uri_get_scheme(req->uri_elems) != NULL));
}

void request_set_persistence(struct evhttp_request *req, enum persistence persistence)
{
    /* evhttp answers in the version it was asked in, and takes a name it does not serve for a
     * proxy's, whose connections live by other rules. */
    req->major = 1;
    req->minor = req->minor == 0 ? 0 : 1;
    req->flags &= ~EVHTTP_PROXY_REQUEST;

    while (evhttp_remove_header(req->input_headers, "Connection") == 0)
        ;
    if (persistence == PERSISTENCE_CLOSE)
        evhttp_add_header(req->input_headers, "Connection", "close");
    else if (req->minor == 0)
        evhttp_add_header(req->input_headers, "Connection", "keep-alive");
}
