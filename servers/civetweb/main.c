/* Hello World on civetweb: its own threads accept, parse and keep the connections, each worker one
 * connection at a time; the entry answers in a request handler and holds the head against RFC 9112
 * where civetweb does not.
 */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <civetweb.h>

#include "../common/host.h"
#include "../common/server.h"

enum {
    FIELDS_MAX = sizeof((struct mg_request_info *)NULL)->http_headers / sizeof(struct mg_header)
};

/* Volatile, so that it stands in memory to the end: a leak checker then tells what the library
 * still holds from what it has lost. */
static struct mg_context *volatile running;

struct head {
    int host;
    int content_length;
    int transfer_encoding;
    bool valid;
    bool close;
    bool keep_alive; /* said by the first Connection field, the only one that civetweb reads */
    bool connection; /* there is one */
    bool expects_100;
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

static size_t without_trailing_blanks(const char *text, size_t len)
{
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    return len;
}

static bool list_has(const char *list, const char *word)
{
    size_t word_len = strlen(word);
    while (*list != '\0') {
        list += strspn(list, ", \t");
        size_t len = strcspn(list, ",");
        if (without_trailing_blanks(list, len) == word_len &&
            strncasecmp(list, word, word_len) == 0)
            return true;
        list += len;
    }
    return false;
}

static bool is_number(const char *value)
{
    size_t digits = strspn(value, "0123456789");
    return digits > 0 && digits <= 18 && without_trailing_blanks(value, strlen(value)) == digits;
}

static void note_connection(struct head *head, const char *value)
{
    head->close = head->close || list_has(value, "close");
    if (!head->connection)
        head->keep_alive = list_has(value, "keep-alive");
    head->connection = true;
}

static void note_field(struct head *head, const char *name, const char *value)
{
    if (!is_token(name) || !value_is_valid(value)) {
        head->valid = false;
    } else if (strcasecmp(name, "Host") == 0) {
        head->host++;
        if (!host_is_valid(value, without_trailing_blanks(value, strlen(value))))
            head->valid = false;
    } else if (strcasecmp(name, "Content-Length") == 0) {
        head->content_length++;
        head->valid = head->valid && is_number(value);
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        head->transfer_encoding++;
        head->valid = head->valid && strcasecmp(value, "chunked") == 0;
    } else if (strcasecmp(name, "Connection") == 0) {
        note_connection(head, value);
    } else if (strcasecmp(name, "Expect") == 0) {
        head->expects_100 = strcasecmp(value, "100-continue") == 0;
    }
}

/* Visible ASCII and no fragment: RFC 3986 has no other characters. */
static bool target_is_valid(const char *target)
{
    for (; *target != '\0'; target++)
        if (*target <= ' ' || *target > '~' || *target == '#')
            return false;
    return true;
}

static bool http_1_0(const struct mg_request_info *request)
{
    return strcmp(request->http_version, "1.0") == 0;
}

/* What civetweb takes and RFC 9112 does not: a Host that is missing, doubled or malformed (3.2),
 * names that are no tokens (5.1), Transfer-Encoding in HTTP/1.0, beside Content-Length or twice
 * (6.1), a second Content-Length or one that is no number (6.3). And civetweb looks at no field
 * beyond its table, not even at one that frames the body. */
static void read_head(struct head *head, const struct mg_request_info *request)
{
    *head = (struct head){
        .valid = request->num_headers < FIELDS_MAX && target_is_valid(request->request_uri) &&
                 (request->query_string == NULL || target_is_valid(request->query_string))};
    for (int i = 0; i < request->num_headers; i++)
        note_field(head, request->http_headers[i].name, request->http_headers[i].value);

    if (head->host > 1 || (head->host == 0 && !http_1_0(request)))
        head->valid = false;
    if (head->content_length + head->transfer_encoding > 1 ||
        (head->transfer_encoding == 1 && http_1_0(request)))
        head->valid = false;
}

/* civetweb's own rule, but that it would not see a close on a second line. */
static bool is_kept(const struct head *head, const struct mg_request_info *request)
{
    return !head->close && (head->connection ? head->keep_alive : !http_1_0(request));
}

/* Each worker makes the text for itself, once a second. */
static const char *date(void)
{
    static _Thread_local time_t made_at;
    static _Thread_local char text[sizeof "Sun, 06 Nov 1994 08:49:37 GMT"];
    time_t now = time(NULL);
    if (now != made_at) {
        struct tm utc;
        gmtime_r(&now, &utc);
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
        made_at = now;
    }
    return text;
}

/* One write, so one segment; mg_send_http_ok would send every line of the head by itself. `fields`
 * are whole lines. Returns the status, as handlers do. */
static int reply(struct mg_connection *conn, int status, const char *fields, const char *body,
                 bool keep)
{
    bool head_only = strcmp(mg_get_request_info(conn)->request_method, "HEAD") == 0;
    if (!keep)
        mg_disable_connection_keep_alive(conn);
    mg_printf(conn,
              "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
              "%sConnection: %s\r\n\r\n%s",
              status, mg_get_response_code_text(conn, status), date(), strlen(body), fields,
              keep ? "keep-alive" : "close", head_only ? "" : body);
    return status;
}

/* False if the body is malformed or does not come. */
static bool read_body(struct mg_connection *conn)
{
    char piece[4 * 1024];
    long long left = mg_get_request_info(conn)->content_length;
    int got;
    while ((got = mg_read(conn, piece, sizeof piece)) > 0)
        left -= got;
    return got == 0 && left <= 0;
}

static int on_request(struct mg_connection *conn, void *arg)
{
    (void)arg;
    const struct mg_request_info *request = mg_get_request_info(conn);
    struct head head;
    read_head(&head, request);
    if (!head.valid)
        return reply(conn, 400, "", "Bad Request\n", false);

    /* civetweb leaves the interim answer to its user. */
    if (head.expects_100 && !http_1_0(request) &&
        (head.transfer_encoding > 0 || request->content_length > 0))
        mg_printf(conn, "HTTP/1.1 100 Continue\r\n\r\n");
    if (!read_body(conn))
        return reply(conn, 400, "", "Bad Request\n", false);

    bool keep = is_kept(&head, request);
    if (strcmp(request->request_method, "GET") != 0 && strcmp(request->request_method, "HEAD") != 0)
        return reply(conn, 405, "Allow: GET, HEAD\r\n", "Method Not Allowed\n", keep);
    if (strcmp(request->local_uri_raw, "/") != 0)
        return reply(conn, 404, "", "Not Found\n", keep);
    return reply(conn, 200, "", "Hello World\n", keep);
}

/* What civetweb refuses by itself before there is a handler; its own page has no length. */
static int on_error(struct mg_connection *conn, int status, const char *message)
{
    (void)message;
    mg_disable_connection_keep_alive(conn);
    mg_printf(conn,
              "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n"
              "Connection: close\r\n\r\nError\n",
              status, mg_get_response_code_text(conn, status), date());
    return 0;
}

/* Anything logged goes to standard error else. */
static int on_log(const struct mg_connection *conn, const char *message)
{
    (void)conn;
    (void)message;
    return 1;
}

static struct mg_context *start(uint16_t port)
{
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    const char *options[] = {"listening_ports",
                             address,
                             "num_threads",
                             "4096",
                             "connection_queue",
                             "4096",
                             "listen_backlog",
                             "4096",
                             "tcp_nodelay",
                             "1",
                             "enable_keep_alive",
                             "yes",
                             "keep_alive_timeout_ms",
                             "60000",
                             "request_timeout_ms",
                             "55000",
                             "decode_url",
                             "no",
                             "enable_auth_domain_check",
                             "no",
                             NULL};
    const struct mg_callbacks callbacks = {
        .http_error = on_error, .log_message = on_log, .log_access = on_log};
    struct mg_context *context = mg_start(&callbacks, NULL, options);
    if (context != NULL)
        mg_set_request_handler(context, "/", on_request, NULL);
    return context;
}

int main(int argc, char **argv)
{
    struct server_args args;
    char version[64];
    snprintf(version, sizeof version, "civetweb %s", mg_version());
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();

    /* Blocked in all threads, since they inherit it. */
    sigset_t term;
    int signal;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);

    mg_init_library(MG_FEATURES_DEFAULT);
    running = start(args.port);
    if (running == NULL) {
        fprintf(stderr, "civetweb does not start on 127.0.0.1:%u\n", args.port);
        return 1;
    }
    sigwait(&term, &signal);
    /* mg_stop would wait until every worker has looked up from its connection, up to 2 s. */
    return 0;
}
