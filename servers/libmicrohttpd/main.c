/* Hello World on libmicrohttpd with one thread: the program owns the loop and lets the library run
 * whenever its epoll descriptor is readable. The answers are made once and shared by all.
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
#include <unistd.h>

#include <microhttpd.h>

#include "../common/host.h"
#include "../common/server.h"

enum {
    CONNECTION_BYTES = 10 * 1024, /* a head of 8,000 bytes and an answer; zeroed at every request */
    CONNECTION_LIMIT = 1 << 20,   /* leaves it to the limit of open files */
    TIMEOUT_S = 60,
    HANGUP_TIMEOUT_S = 1,
    SWEEP_S = 5,
    TURN_MAX_MS = 250,
    EMPTY_TURNS_MAX = 100,
    EMPTY_TURN_MS = 10,
};

/* Volatile, so that it stands in memory to the end: a leak checker then tells what the library
 * still holds from what it has lost. */
static struct MHD_Daemon *volatile daemon_running;
static struct MHD_Response *hello;
static struct MHD_Response *not_found;
static struct MHD_Response *bad_request;
static struct MHD_Response *not_allowed;
static struct MHD_Response *not_implemented;

/* A connection, in the list of all. */
struct client {
    struct client *next, **link;
    int fd;
    time_t heard_s; /* when it came, or last brought a head, some of a body, or a request's end */
};

static struct client *clients;
static time_t now_s;         /* as of the turn of the loop */
static unsigned empty_turns; /* on end, in which the library called nothing of ours */

struct fields {
    int host;
    int content_length;
    int transfer_encoding;
    bool has_body;
    bool expects; /* anything */
    bool valid;
};

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

/* The library glues a folded line to the name of the field above it: of "Transfer-Encoding:
 * chunked" and " a" it makes "Transfer-Encodinga: chunked", and takes no notice of the coding. */
static bool is_folded(const char *name, size_t len, const char *above)
{
    size_t above_len = strlen(above);
    return len > above_len && strncasecmp(name, above, above_len) == 0;
}

static enum MHD_Result note_field(void *cls, enum MHD_ValueKind kind, const char *name,
                                  size_t name_len, const char *value, size_t value_len)
{
    (void)kind;
    struct fields *seen = cls;

    if (!is_token(name, name_len) || !value_is_valid(value, value_len) ||
        is_folded(name, name_len, "Connection") || is_folded(name, name_len, "Content-Length") ||
        is_folded(name, name_len, "Transfer-Encoding")) {
        seen->valid = false;
    } else if (strcasecmp(name, "Host") == 0) {
        seen->host++;
        if (!host_is_valid(value, without_trailing_blanks(value, value_len)))
            seen->valid = false;
    } else if (strcasecmp(name, "Content-Length") == 0) {
        seen->content_length++;
        seen->has_body = seen->has_body || value[strspn(value, "0")] != '\0';
    } else if (strcasecmp(name, "Expect") == 0) {
        seen->expects = true;
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        seen->transfer_encoding++;
        seen->has_body = true;
        if (strcasecmp(value, "chunked") != 0)
            seen->valid = false;
    }
    return MHD_YES;
}

/* What the library takes and RFC 9112 does not: a Host that is missing, doubled or malformed (3.2),
 * names that are no tokens (5.1), control characters in values (RFC 9110, 5.5), Transfer-Encoding
 * in HTTP/1.0, beside Content-Length, twice, or other than chunked (6.1), a second Content-Length
 * (6.3). */
static bool head_is_valid(const struct fields *seen, const char *version)
{
    bool http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;

    if (!seen->valid || seen->host > 1 || (seen->host == 0 && !http_1_0))
        return false;
    if (seen->transfer_encoding > 0)
        return seen->transfer_encoding == 1 && seen->content_length == 0 && !http_1_0;
    return seen->content_length <= 1;
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

static bool is_root(const char *target)
{
    if (strncasecmp(target, "http://", 7) == 0) {
        target = strchr(target + 7, '/');
        if (target == NULL)
            return true;
    }
    return strcmp(target, "/") == 0;
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

static enum MHD_Result answer(struct MHD_Connection *connection, const char *target,
                              const char *method)
{
    if (!target_is_valid(target))
        return MHD_queue_response(connection, MHD_HTTP_BAD_REQUEST, bad_request);
    if (strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0)
        return is_root(target) ? MHD_queue_response(connection, MHD_HTTP_OK, hello)
                               : MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, not_found);
    if (is_method_of_rfc_9110(method))
        return MHD_queue_response(connection, MHD_HTTP_METHOD_NOT_ALLOWED, not_allowed);
    return MHD_queue_response(connection, MHD_HTTP_NOT_IMPLEMENTED, not_implemented);
}

/* Called once when the head is there, once for every piece of a body, and once when the request is
 * whole. An answer given at the first call makes the library close the connection if there is a
 * body. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *target,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_len, void **request)
{
    static char head_seen;
    (void)cls;
    (void)body;

    struct client *client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    client->heard_s = now_s;
    empty_turns = 0;

    if (*request == NULL) {
        struct fields seen = {.valid = true};
        *request = &head_seen;
        MHD_get_connection_values_n(connection, MHD_HEADER_KIND, note_field, &seen);
        if (!head_is_valid(&seen, version))
            return MHD_queue_response(connection, MHD_HTTP_BAD_REQUEST, bad_request);
        /* The library would send 100 and then lose a request that stands behind this one. */
        return seen.expects && !seen.has_body ? answer(connection, target, method) : MHD_YES;
    }
    if (*body_len > 0) {
        *body_len = 0;
        return MHD_YES;
    }
    return answer(connection, target, method);
}

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

static struct MHD_Response *make_response(const char *body)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(body), (char *)(uintptr_t)body, MHD_RESPMEM_PERSISTENT);
    if (response != NULL)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
    return response;
}

static void make_responses(void)
{
    hello = make_response("Hello World\n");
    not_found = make_response("Not Found\n");
    bad_request = make_response("Bad Request\n");
    MHD_add_response_header(bad_request, MHD_HTTP_HEADER_CONNECTION, "close");
    not_allowed = make_response("Method Not Allowed\n");
    MHD_add_response_header(not_allowed, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    not_implemented = make_response("Not Implemented\n");
}

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

int main(int argc, char **argv)
{
    struct server_args args;
    char version[64];
    snprintf(version, sizeof version, "libmicrohttpd %s", MHD_get_version());
    server_args_parse(&args, argc, argv, version);
    server_ignore_sigpipe();
    int fd = server_listen(&args);
    make_responses();
    hangups_fd = epoll_create1(EPOLL_CLOEXEC);

    daemon_running = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_TURBO, args.port, NULL, NULL, on_request, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTION_LIMIT, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)TIMEOUT_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL,
        MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    if (daemon_running == NULL) {
        fputs("cannot start libmicrohttpd\n", stderr);
        return 1;
    }
    serve(daemon_running);
    /* Nothing is freed: to take twenty thousand connections apart one by one takes a second. */
    return 0;
}
