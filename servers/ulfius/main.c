/* Hello World on ulfius, which routes to callbacks above libmicrohttpd. By itself it makes a thread
 * a connection; here it gets libmicrohttpd's other way, one thread on epoll, with the loop our own.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>

#include <ulfius.h>

#include "../common/host.h"
#include "../common/server.h"

enum {
    CONNECTION_BYTES = 10 * 1024, /* a head of 8,000 bytes and an answer; zeroed at every request */
    CONNECTION_LIMIT = 1 << 20,   /* leaves it to the limit of open files */
    BODY_KEPT_BYTES = 4096,       /* ulfius would keep all of it */
    TIMEOUT_S = 60,
    HANGUP_TIMEOUT_S = 1,
    SWEEP_S = 5,
    TURN_MAX_MS = 250,
    EMPTY_TURNS_MAX = 100,
    EMPTY_TURN_MS = 10,
};

static struct _u_instance ulfius;

/* A connection, in the list of all. */
struct client {
    struct client *next, **link;
    int fd;
    time_t heard_s; /* when it came, or its last request was answered */
};

static struct client *clients;
static time_t now_s;         /* as of the turn of the loop */
static unsigned empty_turns; /* on end, in which the library called nothing of ours */

/* ---- answers */

static bool is_token(const char *name, size_t len)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!is_letter && !(c >= '0' && c <= '9') && (c == '\0' || strchr(marks, c) == NULL))
            return false;
    }
    return len > 0;
}

static size_t without_trailing_blanks(const char *value, size_t len)
{
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        len--;
    return len;
}

static bool value_is_valid(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
            return false;
    return true;
}

/* libmicrohttpd glues a folded line to the name of the field above it: of "Transfer-Encoding:
 * chunked" and " a" it makes "Transfer-Encodinga: chunked", and takes no notice of the coding. */
static bool is_folded(const char *name, const char *above)
{
    size_t above_len = strlen(above);
    return strlen(name) > above_len && strncasecmp(name, above, above_len) == 0;
}

struct fields {
    int host;
    int framing; /* Content-Length and Transfer-Encoding */
    bool chunked;
    bool valid;
};

/* ulfius joins what stands twice by a comma, so Host, and what frames the body, may have none. */
static void note_field(struct fields *seen, const char *name, const char *value)
{
    size_t len = without_trailing_blanks(value, strlen(value));
    if (!is_token(name, strlen(name)) || !value_is_valid(value, strlen(value)) ||
        is_folded(name, "Connection") || is_folded(name, "Content-Length") ||
        is_folded(name, "Transfer-Encoding")) {
        seen->valid = false;
    } else if (strcasecmp(name, "Host") == 0) {
        seen->host++;
        seen->valid = seen->valid && host_is_valid(value, len) && strchr(value, ',') == NULL;
    } else if (strcasecmp(name, "Content-Length") == 0) {
        seen->framing++;
        seen->valid = seen->valid && len > 0 && strspn(value, "0123456789") == len;
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        seen->framing++;
        seen->chunked = true;
        seen->valid = seen->valid && strcasecmp(value, "chunked") == 0;
    }
}

/* What libmicrohttpd takes and RFC 9112 does not: a Host that is missing, doubled or malformed
 * (3.2), names that are no tokens (5.1), Transfer-Encoding in HTTP/1.0, beside Content-Length,
 * twice, or other than chunked (6.1), a second Content-Length (6.3). */
static bool head_is_valid(const struct _u_request *request)
{
    struct fields seen = {.valid = true};
    bool http_1_0 = strcmp(request->http_protocol, MHD_HTTP_VERSION_1_0) == 0;
    const char **names = u_map_enum_keys(request->map_header);
    for (size_t i = 0; names[i] != NULL; i++)
        note_field(&seen, names[i], u_map_get(request->map_header, names[i]));
    return seen.valid && seen.host <= 1 && (seen.host == 1 || http_1_0) && seen.framing <= 1 &&
           !(seen.chunked && http_1_0);
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

/* The path alone, as it was sent; in the absolute form with the authority before it. */
static bool is_root(const char *path)
{
    if (strncasecmp(path, "http://", 7) == 0) {
        path = strchr(path + 7, '/');
        if (path == NULL)
            return true;
    }
    return strcmp(path, "/") == 0;
}

static bool is_method_of_rfc_9110(const char *method)
{
    static const char *const known[] = {MHD_HTTP_METHOD_POST,    MHD_HTTP_METHOD_PUT,
                                        MHD_HTTP_METHOD_DELETE,  MHD_HTTP_METHOD_CONNECT,
                                        MHD_HTTP_METHOD_OPTIONS, MHD_HTTP_METHOD_TRACE};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(method, known[i]) == 0)
            return true;
    return false;
}

static int reply(struct _u_response *response, unsigned status, const char *body)
{
    ulfius_add_header_to_response(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
    ulfius_set_string_body_response(response, status, body);
    return U_CALLBACK_COMPLETE;
}

/* Called when the request is whole. */
static int on_request(const struct _u_request *request, struct _u_response *response, void *data)
{
    (void)data;
    const char *method = request->http_verb;
    empty_turns = 0;

    if (!head_is_valid(request) || !target_is_valid(request->http_url)) {
        ulfius_add_header_to_response(response, MHD_HTTP_HEADER_CONNECTION, "close");
        return reply(response, MHD_HTTP_BAD_REQUEST, "Bad Request\n");
    }
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
        return is_root(request->url_path) ? reply(response, MHD_HTTP_OK, "Hello World\n")
                                          : reply(response, MHD_HTTP_NOT_FOUND, "Not Found\n");
    if (!is_method_of_rfc_9110(method))
        return reply(response, MHD_HTTP_NOT_IMPLEMENTED, "Not Implemented\n");
    ulfius_add_header_to_response(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    return reply(response, MHD_HTTP_METHOD_NOT_ALLOWED, "Method Not Allowed\n");
}

/* ---- connections */

/* Waits, apart from the library, for clients that have sent their FIN. */
static int hangups_fd;

static struct client *add_client(int fd)
{
    struct client *client = malloc(sizeof *client);
    if (client == NULL)
        abort();
    *client = (struct client){.next = clients, .link = &clients, .fd = fd, .heard_s = now_s};
    if (clients != NULL)
        clients->link = &client->next;
    clients = client;
    return client;
}

static void forget_client(struct client *client)
{
    *client->link = client->next;
    if (client->next != NULL)
        client->next->link = client->link;
    free(client);
}

/* The library gives up on a client that is silent, but not on one that sends a byte of its head now
 * and then. The library reads the end, and closes. */
static void cut_off_slow_clients(void)
{
    static time_t next_s;
    if (now_s < next_s)
        return;
    next_s = now_s + SWEEP_S;
    for (const struct client *client = clients; client != NULL; client = client->next)
        if (now_s - client->heard_s > TIMEOUT_S - SWEEP_S)
            shutdown(client->fd, SHUT_RDWR);
}

/* The library stops reading at a short read, and is told of no new edge for a FIN that had come
 * with the data: such a connection would stand until the timeout. */
static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    (void)cls;
    empty_turns = 0;
    if (what != MHD_CONNECTION_NOTIFY_STARTED) {
        forget_client(*context);
        return;
    }
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    epoll_ctl(hangups_fd, EPOLL_CTL_ADD, fd, &event);
    *context = add_client(fd);
}

static void hasten_hangups(void)
{
    struct epoll_event events[64];
    int count;
    do {
        count = epoll_wait(hangups_fd, events, 64, 0);
        for (int i = 0; i < count; i++)
            MHD_set_connection_option(events[i].data.ptr, MHD_CONNECTION_OPTION_TIMEOUT,
                                      (unsigned)HANGUP_TIMEOUT_S);
    } while (count == 64);
}

/* The library would decode %2F and %00 in place, and "/%00" would then read as "/". */
static size_t leave_escaped(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return strlen(text);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode how)
{
    struct client *client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    if (client != NULL)
        client->heard_s = now_s;
    mhd_request_completed(cls, connection, request, how);
}

/* ---- the loop */

/* A descriptor is waited for beside the library's, so that no signal is lost between the test of a
 * flag and the wait. */
static int open_sigterm(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* When it has run out of descriptors, the library drops its listener from the epoll set, and takes
 * it up again at the turn after the one that closes a connection; it does not ask for that turn.
 * And it asks for turns without end, and does nothing in them, while the line of a chunk size is
 * longer than the connection's memory. */
static int wait_ms(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG ms;
    if (MHD_get_timeout(daemon, &ms) != MHD_YES || ms > TURN_MAX_MS)
        return TURN_MAX_MS;
    return ms == 0 && empty_turns > EMPTY_TURNS_MAX ? EMPTY_TURN_MS : (int)ms;
}

static void serve(struct MHD_Daemon *daemon)
{
    enum { LIBRARY, HANGUPS, SIGTERM_SEEN };
    struct pollfd waited[] = {
        [LIBRARY] = {.fd = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                     .events = POLLIN},
        [HANGUPS] = {.fd = hangups_fd, .events = POLLIN},
        [SIGTERM_SEEN] = {.fd = open_sigterm(), .events = POLLIN},
    };
    while (waited[SIGTERM_SEEN].revents == 0) {
        if (poll(waited, 3, wait_ms(daemon)) < 0 && errno != EINTR)
            break;
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        now_s = now.tv_sec;
        cut_off_slow_clients();
        if (waited[HANGUPS].revents != 0)
            hasten_hangups();
        empty_turns++;
        MHD_run(daemon);
    }
    close(waited[SIGTERM_SEEN].fd);
}

static bool start(uint16_t port, int fd)
{
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, NULL},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)ulfius_uri_logger, NULL},
        {MHD_OPTION_LISTEN_SOCKET, fd, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, CONNECTION_LIMIT, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, NULL},
        {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escaped, NULL},
        {MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    if (ulfius_init_instance(&ulfius, port, NULL, NULL) != U_OK)
        return false;
    ulfius.max_post_body_size = BODY_KEPT_BYTES;
    ulfius.check_utf8 = 0; /* it would leave out the fields that are not */
    ulfius_add_endpoint_by_val(&ulfius, "GET", "/", NULL, 0, on_request, NULL);
    ulfius_set_default_endpoint(&ulfius, on_request, NULL);
    return ulfius_start_framework_with_mhd_options(&ulfius, MHD_USE_EPOLL | MHD_USE_TURBO,
                                                   options) == U_OK;
}

int main(int argc, char **argv)
{
    struct server_args args;
    char version[64];
    snprintf(version, sizeof version, "ulfius %s, libmicrohttpd %s", ULFIUS_VERSION_STR,
             MHD_get_version());
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    int fd = server_listen(&args);
    hangups_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!start(args.port, fd)) {
        fputs("cannot start ulfius\n", stderr);
        return 1;
    }
    serve(ulfius.mhd_daemon);
    /* Nothing is freed: to take twenty thousand connections apart one by one takes a second. */
    return 0;
}
