/* Hello World on libwebsockets' HTTP server, on its own loop, after the shape of its minimal
 * examples: one protocol callback, headers made by the library's calls, one write an answer.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <libwebsockets.h>

#include "../common/host.h"
#include "../common/server.h"

enum {
    HEAD_MAX_BYTES = 16 * 1024,
    ANSWER_MAX_BYTES = 1024,
    KEEPALIVE_TIMEOUT_S = 60,
    REQUEST_TIMEOUT_S = 55,
};

/* What libwebsockets keeps for each connection. */
struct request {
    unsigned status;
    bool is_head;
};

static struct lws_context *context;
static volatile sig_atomic_t ended;

static const char *date(void)
{
    static time_t made_at = -1;
    static char text[sizeof "Sun, 06 Nov 1994 08:49:37 GMT"];
    time_t now = time(NULL);
    if (now != made_at) {
        struct tm utc;
        gmtime_r(&now, &utc);
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
        made_at = now;
    }
    return text;
}

static const char *body_of(unsigned status)
{
    switch (status) {
    case HTTP_STATUS_OK:
        return "Hello World\n";
    case HTTP_STATUS_NOT_FOUND:
        return "Not Found\n";
    case HTTP_STATUS_METHOD_NOT_ALLOWED:
        return "Method Not Allowed\n";
    default:
        return "Bad Request\n";
    }
}

/* RFC 9112, 3.2: a Host that is missing, doubled or malformed is refused. */
static bool host_field_is_valid(struct lws *wsi)
{
    char host[1024];
    char version[16] = "";
    int len = lws_hdr_total_length(wsi, WSI_TOKEN_HOST);

    if (len == 0)
        return lws_hdr_copy(wsi, version, sizeof version, WSI_TOKEN_HTTP) > 0 &&
               strcmp(version, "HTTP/1.0") == 0;
    if (lws_hdr_fragment_length(wsi, WSI_TOKEN_HOST, 1) > 0)
        return false;
    len = lws_hdr_copy(wsi, host, sizeof host, WSI_TOKEN_HOST);
    return len > 0 && host_is_valid(host, (size_t)len);
}

/* RFC 9112, 6.2, 6.3. Returns whether a body is on its way; *valid is left alone if it is in order.
 */
static bool has_body(struct lws *wsi, bool *valid)
{
    char length[32] = "";
    if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0)
        *valid = false; /* the library reads no chunks from a client */
    if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) == 0)
        return false;
    int len = lws_hdr_copy(wsi, length, sizeof length, WSI_TOKEN_HTTP_CONTENT_LENGTH);
    if (len <= 0 || strspn(length, "0123456789") != (size_t)len ||
        lws_hdr_fragment_length(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH, 1) > 0)
        *valid = false;
    return strtoull(length, NULL, 10) > 0;
}

static bool list_has(const char *list, const char *word)
{
    size_t word_len = strlen(word);
    while (*list != '\0') {
        list += strspn(list, ", \t");
        size_t len = strcspn(list, ", \t");
        if (len == word_len && strncasecmp(list, word, word_len) == 0)
            return true;
        list += len;
    }
    return false;
}

/* The library compares the whole value with close and with keep-alive. */
static bool is_kept(struct lws *wsi)
{
    char version[16] = "", connection[1024] = "";
    lws_hdr_copy(wsi, version, sizeof version, WSI_TOKEN_HTTP);
    lws_hdr_copy(wsi, connection, sizeof connection, WSI_TOKEN_CONNECTION);
    return !list_has(connection, "close") &&
           (strcmp(version, "HTTP/1.1") == 0 || list_has(connection, "keep-alive"));
}

static int add_header(struct lws *wsi, enum lws_token_indexes name, const char *value, uint8_t **p,
                      uint8_t *end)
{
    return lws_add_http_header_by_token(wsi, name, (const uint8_t *)value, (int)strlen(value), p,
                                        end);
}

static int answer(struct lws *wsi, unsigned status, bool is_head, bool keep)
{
    uint8_t buffer[LWS_PRE + ANSWER_MAX_BYTES];
    uint8_t *start = &buffer[LWS_PRE], *p = start, *end = &buffer[sizeof buffer - 1];
    const char *body = body_of(status);

    keep = keep && status != HTTP_STATUS_BAD_REQUEST && is_kept(wsi);

    if (lws_add_http_common_headers(wsi, status, "text/plain", strlen(body), &p, end) ||
        add_header(wsi, WSI_TOKEN_HTTP_DATE, date(), &p, end) ||
        (status == HTTP_STATUS_METHOD_NOT_ALLOWED &&
         add_header(wsi, WSI_TOKEN_HTTP_ALLOW, "GET, HEAD", &p, end)) ||
        add_header(wsi, WSI_TOKEN_CONNECTION, keep ? "keep-alive" : "close", &p, end) ||
        lws_finalize_http_header(wsi, &p, end))
        return -1;
    if (!is_head)
        p = (uint8_t *)memcpy(p, body, strlen(body)) + strlen(body);
    if (lws_write(wsi, start, (size_t)(p - start), LWS_WRITE_HTTP_FINAL) < 0)
        return -1;
    return lws_http_transaction_completed(wsi) || !keep ? -1 : 0;
}

/* Called when the head is there. With a body the answer waits for its end. */
static int on_head(struct lws *wsi, struct request *request, bool keep)
{
    char *target = NULL;
    int len = 0;
    bool valid = host_field_is_valid(wsi);
    bool body = has_body(wsi, &valid);
    int method = lws_http_get_uri_and_method(wsi, &target, &len);

    request->is_head = method == LWSHUMETH_HEAD;
    if (!valid)
        return answer(wsi, HTTP_STATUS_BAD_REQUEST, request->is_head, false);
    if (method != LWSHUMETH_GET && method != LWSHUMETH_HEAD)
        request->status = HTTP_STATUS_METHOD_NOT_ALLOWED;
    else
        request->status = strcmp(target, "/") == 0 ? HTTP_STATUS_OK : HTTP_STATUS_NOT_FOUND;
    return body ? 0 : answer(wsi, request->status, request->is_head, keep);
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t len)
{
    struct request *request = user, upgrade;
    switch (reason) {
    case LWS_CALLBACK_HTTP:
        return on_head(wsi, request, true);
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: /* not taken; there is no room for the request yet */
        on_head(wsi, &upgrade, false);
        return -1;
    case LWS_CALLBACK_HTTP_BODY:
        return 0;
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return answer(wsi, request->status, request->is_head, true);
    default:
        return lws_callback_http_dummy(wsi, reason, user, in, len);
    }
}

static void on_sigterm(int signal_number)
{
    (void)signal_number;
    ended = 1;
    lws_cancel_service(context);
}

int main(int argc, char **argv)
{
    static const struct lws_protocols protocols[] = {
        {.name = "http", .callback = on_event, .per_session_data_size = sizeof(struct request)},
        {.name = NULL},
    };
    struct server_args args;
    char version[64];
    snprintf(version, sizeof version, "libwebsockets %s", lws_get_library_version());
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();

    lws_set_log_level(0, NULL); /* out of descriptors it would write a line each turn */
    struct lws_context_creation_info info = {
        .port = args.port,
        .iface = "127.0.0.1",
        .protocols = protocols,
        .max_http_header_data = HEAD_MAX_BYTES,
        .keepalive_timeout = KEEPALIVE_TIMEOUT_S,
        .timeout_secs = REQUEST_TIMEOUT_S,
        .gid = -1,
        .uid = -1,
    };
    context = lws_create_context(&info);
    if (context == NULL)
        return 1;

    struct sigaction end = {.sa_handler = on_sigterm};
    sigaction(SIGTERM, &end, NULL);
    while (!ended && lws_service(context, 0) >= 0)
        ;
    lws_context_destroy(context);
    return 0;
}
