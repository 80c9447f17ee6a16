/* Hello World on libsoup's SoupServer, on GLib's loop: the library accepts, parses, keeps the
 * connection and writes; the entry answers in the default handler, and minds what libsoup leaves
 * open: time limits, and a listener that gives up.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <glib-unix.h>
#include <libsoup/soup.h>

#include "../common/host.h"
#include "../common/server.h"

enum {
    SILENCE_S = 60, /* of a client, in the middle of anything */
    REQUEST_S = 55, /* from a request's first byte to its answer */
    SWEEP_S = 5,
    ACCEPTS_A_TURN = 256,
    ACCEPT_PAUSE_MS = 100,
    HANGUP_LOOK_MS = 20,
};

/* A connection, in the list of all; lives as long as its socket. */
struct client {
    struct client *next, **link;
    GSocket *socket;
    GSocketAddress *address;
    time_t begun_s; /* when the request that is coming in began; 0 between requests */
    guint hung_up;  /* the source that looks whether it has got its answers, or 0 */
};

static struct client *clients;
static SoupServer *server;
static int listen_fd;
static int hangups_fd; /* waits, apart from the library, for clients that have sent their FIN */

static time_t now_s(void)
{
    return (time_t)(g_get_monotonic_time() / G_USEC_PER_SEC);
}

/* ---- what a request says of itself */

struct fields {
    int host;
    bool host_is_empty;
    int content_length;
    int transfer_encoding;
    bool valid;
    bool close;
    bool keep_alive;
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

static bool is_number(const char *value)
{
    size_t digits = strspn(value, "0123456789");
    return digits > 0 && digits <= 18 && value[digits] == '\0';
}

static void note_field(struct fields *seen, const char *name, const char *value)
{
    if (!is_token(name) || !value_is_valid(value)) {
        seen->valid = false;
    } else if (strcasecmp(name, "Host") == 0) {
        seen->host++;
        seen->host_is_empty = value[0] == '\0';
        seen->valid = seen->valid && host_is_valid(value, strlen(value));
    } else if (strcasecmp(name, "Content-Length") == 0) {
        seen->content_length++;
        seen->valid = seen->valid && is_number(value);
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        seen->transfer_encoding++;
        seen->valid = seen->valid && strcasecmp(value, "chunked") == 0;
    } else if (strcasecmp(name, "Connection") == 0) {
        seen->close = seen->close || soup_header_contains(value, "close");
        seen->keep_alive = seen->keep_alive || soup_header_contains(value, "keep-alive");
    }
}

/* What libsoup takes and RFC 9112 does not: a Host that is missing, doubled or malformed (3.2),
 * names that are no tokens (5.1), Transfer-Encoding in HTTP/1.0, beside Content-Length or twice
 * (6.1), a second Content-Length (6.3), an absolute target without a host (RFC 9110, 4.2.1). */
static struct fields read_fields(SoupServerMessage *msg, bool http_1_0)
{
    struct fields seen = {.valid = true};
    SoupMessageHeadersIter iter;
    const char *name, *value;
    soup_message_headers_iter_init(&iter, soup_server_message_get_request_headers(msg));
    while (soup_message_headers_iter_next(&iter, &name, &value))
        note_field(&seen, name, value);

    if (seen.host > 1 || (seen.host == 0 && !http_1_0))
        seen.valid = false;
    if (g_uri_get_host(soup_server_message_get_uri(msg))[0] == '\0' && !seen.host_is_empty)
        seen.valid = false;
    if (seen.content_length + seen.transfer_encoding > 1 ||
        (seen.transfer_encoding == 1 && http_1_0))
        seen.valid = false;
    return seen;
}

/* ---- answers */

static const char *date(void)
{
    static char text[sizeof "Sun, 06 Nov 1994 08:49:37 GMT"];
    static time_t made_at;
    time_t now = time(NULL);
    if (now != made_at) {
        struct tm utc;
        gmtime_r(&now, &utc);
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
        made_at = now;
    }
    return text;
}

static void answer(SoupServerMessage *msg, unsigned status, const char *body)
{
    soup_server_message_set_status(msg, status, NULL);
    soup_server_message_set_response(msg, "text/plain", SOUP_MEMORY_STATIC, body, strlen(body));
}

static void on_request(SoupServer *soup, SoupServerMessage *msg, const char *path,
                       GHashTable *query, gpointer data)
{
    (void)soup;
    (void)query;
    (void)data;
    SoupMessageHeaders *headers = soup_server_message_get_response_headers(msg);
    const char *method = soup_server_message_get_method(msg);
    bool http_1_0 = soup_server_message_get_http_version(msg) == SOUP_HTTP_1_0;
    struct fields seen = read_fields(msg, http_1_0);

    /* libsoup would answer HTTP/1.0 in kind; and sets the Date when the head has come, but drops it
     * with the interim answer to Expect. */
    soup_server_message_set_http_version(msg, SOUP_HTTP_1_1);
    soup_message_headers_replace(headers, "Date", date());
    if (!seen.valid || seen.close || (http_1_0 && !seen.keep_alive))
        soup_message_headers_replace(headers, "Connection", "close");
    else if (http_1_0)
        soup_message_headers_replace(headers, "Connection", "keep-alive");

    if (!seen.valid) {
        answer(msg, SOUP_STATUS_BAD_REQUEST, "Bad Request\n");
    } else if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) {
        if (soup_server_message_is_options_ping(msg))
            answer(msg, SOUP_STATUS_BAD_REQUEST, "Bad Request\n");
        else if (strcmp(path, "/") == 0)
            answer(msg, SOUP_STATUS_OK, "Hello World\n");
        else
            answer(msg, SOUP_STATUS_NOT_FOUND, "Not Found\n");
    } else {
        soup_message_headers_replace(headers, "Allow", "GET, HEAD");
        answer(msg, SOUP_STATUS_METHOD_NOT_ALLOWED, "Method Not Allowed\n");
    }
}

/* libsoup would send 100 to HTTP/1.0 as well, unless it has its answer when the head has come. */
static void on_head(SoupServer *soup, SoupServerMessage *msg, const char *path, GHashTable *query,
                    gpointer data)
{
    bool expects =
        (soup_message_headers_get_expectations(soup_server_message_get_request_headers(msg)) &
         SOUP_EXPECTATION_CONTINUE) != 0;
    if (soup_server_message_get_http_version(msg) != SOUP_HTTP_1_0 || !expects)
        return;
    on_request(soup, msg, path, query, data);
    soup_message_headers_replace(soup_server_message_get_response_headers(msg), "Connection",
                                 "close");
}

/* ---- connections */

static void forget_client(gpointer data)
{
    struct client *client = data;
    *client->link = client->next;
    if (client->next != NULL)
        client->next->link = client->link;
    if (client->hung_up != 0)
        g_source_remove(client->hung_up);
    g_object_set_data(G_OBJECT(client->address), "client", NULL);
    g_object_unref(client->address);
    g_free(client);
}

/* Its messages know its address, and by that they find it. */
static void add_client(GSocket *socket, GSocketAddress *address)
{
    struct client *client = g_new(struct client, 1);
    *client = (struct client){.next = clients,
                              .link = &clients,
                              .socket = socket,
                              .address = g_object_ref(address),
                              .begun_s = now_s()};
    if (clients != NULL)
        clients->link = &client->next;
    clients = client;
    g_object_set_data(G_OBJECT(address), "client", client);
    g_object_set_data_full(G_OBJECT(socket), "client", client, forget_client);
    g_socket_set_timeout(socket, SILENCE_S);

    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = client};
    epoll_ctl(hangups_fd, EPOLL_CTL_ADD, g_socket_get_fd(socket), &event);
}

static void note_begin(SoupServerMessage *msg, time_t begun_s)
{
    GSocketAddress *address = soup_server_message_get_remote_address(msg);
    struct client *client = g_object_get_data(G_OBJECT(address), "client");
    if (client != NULL)
        client->begun_s = begun_s;
}

/* Emitted when a connection is there, and from then on at the first byte of each request but the
 * first. An answer that libsoup gives by itself, to what it can't parse, has this Date. */
static void on_started(SoupServer *soup, SoupServerMessage *msg, gpointer data)
{
    (void)soup;
    (void)data;
    note_begin(msg, now_s());
    soup_message_headers_replace(soup_server_message_get_response_headers(msg), "Date", date());
}

/* Emitted as request-finished or as request-aborted. */
static void on_finished(SoupServer *soup, SoupServerMessage *msg, gpointer data)
{
    (void)soup;
    (void)data;
    note_begin(msg, 0);
}

/* libsoup 3.2 forgets a connection that ends between two requests, and leaves its descriptor open;
 * what has been sent before the end it answers first. */
static gboolean close_when_idle(gpointer data)
{
    struct client *client = data;
    if (client->begun_s != 0)
        return G_SOURCE_CONTINUE;
    GSocket *socket = client->socket;
    client->hung_up = 0;
    g_socket_close(socket, NULL);
    g_object_set_data(G_OBJECT(socket), "client", NULL);
    return G_SOURCE_REMOVE;
}

static gboolean on_hangups(gint fd, GIOCondition condition, gpointer data)
{
    (void)condition;
    (void)data;
    struct epoll_event events[64];
    int count = epoll_wait(fd, events, 64, 0);
    for (int i = 0; i < count; i++) {
        struct client *client = events[i].data.ptr;
        if (client->hung_up == 0)
            client->hung_up = g_timeout_add(HANGUP_LOOK_MS, close_when_idle, client);
    }
    return G_SOURCE_CONTINUE;
}

/* The socket's own timeout is one of silence: a client may send a byte of its head now and then. */
static gboolean cut_off_slow_clients(gpointer data)
{
    (void)data;
    time_t now = now_s();
    for (const struct client *client = clients; client != NULL; client = client->next)
        if (client->begun_s != 0 && now - client->begun_s > REQUEST_S)
            g_socket_shutdown(client->socket, TRUE, TRUE, NULL);
    return G_SOURCE_CONTINUE;
}

/* ---- the listener */

static void watch_listener(void);

static void hand_over(int fd)
{
    GSocket *socket = g_socket_new_from_fd(fd, NULL);
    if (socket == NULL) {
        close(fd);
        return;
    }
    GSocketAddress *ours = g_socket_get_local_address(socket, NULL);
    GSocketAddress *theirs = g_socket_get_remote_address(socket, NULL);
    if (ours != NULL && theirs != NULL) {
        GSocketConnection *connection = g_socket_connection_factory_create_connection(socket);
        add_client(socket, theirs);
        soup_server_accept_iostream(server, G_IO_STREAM(connection), ours, theirs, NULL);
        g_object_unref(connection);
    }
    g_clear_object(&ours);
    g_clear_object(&theirs);
    g_object_unref(socket);
}

static gboolean on_pause_over(gpointer data)
{
    (void)data;
    watch_listener();
    return G_SOURCE_REMOVE;
}

/* As many as wait; a turn of GLib's loop costs a millisecond with a thousand connections. Without
 * descriptors the listener stays readable, and must rest. */
static gboolean on_listener(gint fd, GIOCondition condition, gpointer data)
{
    (void)condition;
    (void)data;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            hand_over(client);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            g_timeout_add(ACCEPT_PAUSE_MS, on_pause_over, NULL);
            return G_SOURCE_REMOVE;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            break;
        }
    }
    return G_SOURCE_CONTINUE;
}

static void watch_listener(void)
{
    g_unix_fd_add_full(G_PRIORITY_HIGH, listen_fd, G_IO_IN, on_listener, NULL, NULL);
}

/* libsoup's own listener accepts one client a turn, and none at all once accept has failed. But
 * without one libsoup keeps no connection. So it has one, on the same socket, and comes too late:
 * of what is ready, GLib calls the higher priority alone. */
static bool listen_here(void)
{
    GSocket *socket = g_socket_new_from_fd(listen_fd, NULL);
    bool listens = socket != NULL && soup_server_listen_socket(server, socket, 0, NULL);
    g_clear_object(&socket);
    watch_listener();
    return listens;
}

static gboolean on_sigterm(gint fd, GIOCondition condition, gpointer loop)
{
    (void)fd;
    (void)condition;
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

/* GLib's own g_unix_signal_add would start a thread. */
static void quit_at_sigterm(GMainLoop *loop)
{
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    g_unix_fd_add(signalfd(-1, &term, SFD_NONBLOCK | SFD_CLOEXEC), G_IO_IN, on_sigterm, loop);
}

/* GObject warns of a negative Content-Length, for one. */
static void drop_log(const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data)
{
    (void)domain;
    (void)level;
    (void)message;
    (void)data;
}

int main(int argc, char **argv)
{
    struct server_args args;
    char version[64];
    snprintf(version, sizeof version, "libsoup %u.%u.%u, GLib %u.%u.%u", soup_get_major_version(),
             soup_get_minor_version(), soup_get_micro_version(), glib_major_version,
             glib_minor_version, glib_micro_version);
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    listen_fd = server_listen(&args);

    g_log_set_default_handler(drop_log, NULL);
    GMainLoop *loop = g_main_loop_new(NULL, FALSE);
    quit_at_sigterm(loop);
    hangups_fd = epoll_create1(EPOLL_CLOEXEC);
    g_unix_fd_add(hangups_fd, G_IO_IN, on_hangups, NULL);
    server = soup_server_new("raw-paths", TRUE, NULL);
    soup_server_add_handler(server, NULL, on_request, NULL, NULL);
    soup_server_add_early_handler(server, NULL, on_head, NULL, NULL);
    g_signal_connect(server, "request-started", G_CALLBACK(on_started), NULL);
    g_signal_connect(server, "request-finished", G_CALLBACK(on_finished), NULL);
    g_signal_connect(server, "request-aborted", G_CALLBACK(on_finished), NULL);
    if (!listen_here()) {
        fputs("libsoup does not listen\n", stderr);
        return 1;
    }
    g_timeout_add_seconds(SWEEP_S, cut_off_slow_clients, NULL);
    g_main_loop_run(loop);
    g_main_loop_unref(loop);
    /* Nothing is freed: to take twenty thousand connections apart one by one takes a second. */
    return 0;
}
