/* Throws random bytes, mutated requests and faults of connections at servers, and looks whether
 * each still lives, serves and stays small: seeded, bounded in time.
 *
 *   servers [--root DIR] [--build DIR] [--seconds N] [--seed N] ENTRY...
 *
 * All entries that can run but the references, if none is named. Each gets its own process, its
 * seconds, and a GET / every 64 rounds that must be answered as the contract has it. At the end the
 * descriptors must have come back, and memory be within MEMORY_MAX of what it was after the first
 * tenth. A failure prints the seed, the round and the last inputs; --seed repeats the same bytes,
 * though not the same timing. The status is 1 if any entry failed.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "entry/entry.h"
#include "entry/launch.h"
#include "host/usage.h"
#include "judge/page.h"
#include "judge/script.h"
#include "judge/talk.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    INPUT_MAX = 65536,
    CONNECTIONS = 24,
    ROUNDS_A_LOOK = 64,
    LAST_INPUTS = 8,
    MUTATIONS_MAX = 6,
    FILES_MORE = 4
};

#define MEMORY_MAX (64ULL << 20) /* a collected heap of 50 MiB breathes */

struct input {
    size_t size;
    char bytes[INPUT_MAX];
};

struct fuzz {
    const struct page_list *pages;
    struct random random;
    struct talk_peer peer;
    struct server *server;
    int fds[CONNECTIONS];
    struct input last[LAST_INPUTS];
    uint64_t rounds;
};

/* ---- inputs */

static void append(struct input *input, const char *bytes, size_t size)
{
    if (size > INPUT_MAX - input->size)
        size = INPUT_MAX - input->size;
    memcpy(input->bytes + input->size, bytes, size);
    input->size += size;
}

static void add_random_bytes(struct fuzz *f, struct input *input)
{
    size_t size = 1 + random_below(&f->random, random_below(&f->random, 10) == 0 ? 20000 : 300);
    while (size-- > 0) {
        char byte = (char)random_below(&f->random, 256);
        append(input, &byte, 1);
    }
}

/* What some page sends. */
static void add_page(struct fuzz *f, struct input *input)
{
    const struct page *page = &f->pages->items[random_below(&f->random, f->pages->count)];
    struct script script = {0};
    if (page->count == 0)
        return;
    const struct page_variant *variant = &page->variants[random_below(&f->random, page->count)];
    for (size_t i = 0; i < variant->count; i++)
        if (!variant->steps[i].expects && variant->steps[i].times_high <= 64)
            script_add(&script, &variant->steps[i], f->peer.host, 0, &f->random);
    if (script.size > 0)
        append(input, script.bytes, script.size);
    script_clear(&script);
}

/* Pieces that parsers stumble over. */
static void insert_token(struct fuzz *f, struct input *input, size_t at)
{
    static const char *const tokens[] = {"\r\n",
                                         "\r\n\r\n",
                                         "\n",
                                         "\r",
                                         ":",
                                         " ",
                                         "\t",
                                         "\0",
                                         "GET / ",
                                         "HTTP/1.1",
                                         "HTTP/1.",
                                         "Content-Length: 5\r\n",
                                         "ffffffff",
                                         "0\r\n\r\n",
                                         "Transfer-Encoding: chunked\r\n",
                                         "Host: a\r\n",
                                         "Connection: close\r\n",
                                         "Expect: 100-continue\r\n",
                                         "-1",
                                         "18446744073709551615",
                                         ";=\""};
    const char *token = tokens[random_below(&f->random, sizeof tokens / sizeof tokens[0])];
    size_t size = token[0] == '\0' ? 1 : strlen(token);
    if (input->size + size > INPUT_MAX)
        return;
    memmove(input->bytes + at + size, input->bytes + at, input->size - at);
    memcpy(input->bytes + at, token, size);
    input->size += size;
}

static void mutate(struct fuzz *f, struct input *input)
{
    for (uint64_t left = random_below(&f->random, MUTATIONS_MAX); left > 0 && input->size > 1;
         left--) {
        size_t at = random_below(&f->random, input->size);
        size_t size = 1 + random_below(&f->random, input->size - at < 32 ? input->size - at : 32);
        switch (random_below(&f->random, 5)) {
        case 0:
            input->bytes[at] = (char)random_below(&f->random, 256);
            break;
        case 1:
            input->bytes[at] ^= (char)(1 << random_below(&f->random, 8));
            break;
        case 2: /* left out */
            memmove(input->bytes + at, input->bytes + at + size, input->size - at - size);
            input->size -= size;
            break;
        case 3: /* said again */
            if (input->size + size > INPUT_MAX)
                break;
            memmove(input->bytes + at + size, input->bytes + at, input->size - at);
            input->size += size;
            break;
        default:
            insert_token(f, input, at);
            break;
        }
    }
}

static const struct input *make_input(struct fuzz *f)
{
    struct input *input = &f->last[f->rounds % LAST_INPUTS];
    input->size = 0;
    if (random_below(&f->random, 5) == 0)
        add_random_bytes(f, input);
    else
        for (uint64_t left = 1 + random_below(&f->random, 4); left > 0; left--)
            add_page(f, input);
    mutate(f, input);
    return input;
}

/* ---- connections */

static void drain(int fd)
{
    char bytes[65536];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
}

/* Ends a connection in one of three ways. */
static void end(struct fuzz *f, int *fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    uint64_t how = random_below(&f->random, 3);
    if (how == 0)
        setsockopt(*fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    else if (how == 1)
        shutdown(*fd, SHUT_WR);
    close(*fd);
    *fd = -1;
}

/* One input on one connection, in one or more pieces; it may stay open for the rounds to come. */
static bool run_round(struct fuzz *f)
{
    int *fd = &f->fds[random_below(&f->random, CONNECTIONS)];
    const struct input *input = make_input(f);
    f->rounds++;
    if (*fd >= 0 && random_below(&f->random, 2) == 0)
        end(f, fd);
    if (*fd < 0)
        *fd = talk_connect(&f->peer);
    if (*fd < 0)
        return false;
    for (size_t at = 0; at < input->size;) {
        size_t size = random_below(&f->random, 3) == 0
                          ? 1 + random_below(&f->random, input->size - at)
                          : input->size - at;
        ssize_t sent = send(*fd, input->bytes + at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0)
            break; /* closed, or it takes no more */
        at += (size_t)sent;
        if (random_below(&f->random, 2) == 0)
            drain(*fd);
        if (random_below(&f->random, 16) == 0)
            poll(NULL, 0, 1);
    }
    if (random_below(&f->random, 4) == 0)
        end(f, fd);
    return true;
}

static void end_all(struct fuzz *f)
{
    for (int i = 0; i < CONNECTIONS; i++)
        if (f->fds[i] >= 0)
            end(f, &f->fds[i]);
}

/* ---- a server */

static uint64_t memory_of(const struct fuzz *f)
{
    pid_t pids[HOST_TREE_MAX];
    struct host_usage usage = {0};
    host_usage_read(pids, server_pids(f->server, pids, HOST_TREE_MAX), &usage, NULL);
    return usage.rss_bytes;
}

static int files_of(const struct fuzz *f)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)server_pid(f->server));
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

static void show_inputs(const struct fuzz *f)
{
    for (uint64_t i = f->rounds > LAST_INPUTS ? f->rounds - LAST_INPUTS : 0; i < f->rounds; i++) {
        const struct input *input = &f->last[i % LAST_INPUTS];
        printf("#   round %llu, %zu bytes: ", (unsigned long long)i, input->size);
        for (size_t j = 0; j < input->size && j < 400; j++) {
            unsigned char c = (unsigned char)input->bytes[j];
            if (c >= ' ' && c <= '~' && c != '\\')
                putchar(c);
            else
                printf("\\x%02x", c);
        }
        putchar('\n');
    }
}

/* Whether it lives and serves; else says what is wrong. */
static bool is_well(struct fuzz *f)
{
    char text[1024];
    char output[SERVER_OUTPUT_KEEP] = "";
    bool alive = server_poll(f->server, text, sizeof text) == SERVER_RUNNING;
    if (alive && talk_is_served(&f->peer, text, sizeof text))
        return true;
    server_output(f->server, output, sizeof output);
    printf("#   the server %s\n#   it last printed: %s\n", text, output);
    return false;
}

static bool came_back(struct fuzz *f, int files_before)
{
    for (int i = 0; i < 100 && files_of(f) > files_before + FILES_MORE; i++)
        poll(NULL, 0, 50);
    if (files_of(f) <= files_before + FILES_MORE)
        return true;
    printf("#   %d descriptors are open, %d were before\n", files_of(f), files_before);
    return false;
}

static bool stayed_small(struct fuzz *f, uint64_t early)
{
    uint64_t now = memory_of(f);
    if (now <= early + MEMORY_MAX)
        return true;
    printf("#   memory grew from %llu to %llu KiB\n", (unsigned long long)(early >> 10),
           (unsigned long long)(now >> 10));
    return false;
}

static bool fuzz_server(struct fuzz *f, unsigned seconds)
{
    uint64_t began_ns = clock_now_ns();
    uint64_t deadline_ns = began_ns + seconds * NS_PER_S;
    int files = files_of(f);
    uint64_t early = 0;
    bool right = true;
    for (int i = 0; i < CONNECTIONS; i++)
        f->fds[i] = -1;
    while (right && clock_now_ns() < deadline_ns) {
        right = run_round(f);
        if (early == 0 && clock_now_ns() > began_ns + (deadline_ns - began_ns) / 10)
            early = memory_of(f);
        if (!right || f->rounds % ROUNDS_A_LOOK == 0)
            right = is_well(f);
    }
    end_all(f);
    right = right && is_well(f) && came_back(f, files) && stayed_small(f, early);
    if (!right)
        show_inputs(f);
    return right;
}

static int start(const struct entry *entry, uint64_t seed, struct fuzz *f, struct err *err)
{
    unsigned port;
    uint64_t took_ns;
    if (server_free_port(seed, &port, err) != 0)
        return -1;
    const struct entry_launch launch = {.port = port};
    int status = entry_launch(entry, &launch, &f->server, err);
    if (status != 0)
        return status;
    const struct http_expect any = {0};
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[100];
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", port);
    status =
        server_wait_ready(f->server, request, strlen(request), &any, 10 * NS_PER_S, &took_ns, err);
    return status != 0 ? status : talk_meet(&f->peer, &address, err);
}

/* Ends the server; what it says to that, such as a sanitizer's list of leaks, goes to `output`. */
static void end_server(struct fuzz *f, struct server_stop *stop, char *output, size_t output_bytes)
{
    char detail[256];
    if (f->server != NULL && server_poll(f->server, detail, sizeof detail) == SERVER_RUNNING) {
        kill(server_pid(f->server), SIGTERM);
        for (int i = 0; i < 200; i++) {
            if (server_poll(f->server, detail, sizeof detail) != SERVER_RUNNING)
                break;
            poll(NULL, 0, 10);
        }
    }
    if (f->server != NULL)
        server_output(f->server, output, output_bytes);
    server_stop(f->server, stop);
}

/* The exit status is looked at as well: a sanitizer reports its leaks when the process ends. */
static bool fuzz_entry(const struct entry *entry, const struct page_list *pages, uint64_t seed,
                       unsigned seconds)
{
    struct fuzz *f = mem_alloc(1, sizeof *f);
    struct server_stop stop = {0};
    struct err err = {0};
    f->pages = pages;
    random_seed(&f->random, seed);
    bool right = start(entry, seed, f, &err) == 0;
    if (!right)
        printf("#   %s\n", err.text);
    else
        right = fuzz_server(f, seconds);
    char output[SERVER_OUTPUT_KEEP] = "";
    end_server(f, &stop, output, sizeof output);
    if (right && (stop.exit_status != 0 || stop.ignored_term)) {
        printf("#   it ended on SIGTERM with wait status 0x%04x\n#   it last printed: %s\n",
               (unsigned)stop.exit_status, output);
        right = false;
    }
    printf("%sok - %s: %llu rounds, seed %llu\n", right ? "" : "not ", entry->name,
           (unsigned long long)f->rounds, (unsigned long long)seed);
    fflush(stdout);
    free(f);
    return right;
}

/* ---- the program */

static int fuzz_all(const struct entry_list *list, const struct page_list *pages, char **names,
                    int count, uint64_t seed, unsigned seconds)
{
    struct err err;
    int failed = 0;
    for (int i = 0; i < count; i++) {
        const struct entry *entry = entry_find(list, names[i], &err);
        if (entry == NULL) {
            fprintf(stderr, "servers: %s\n", err.text);
            return 2;
        }
        failed += !fuzz_entry(entry, pages, seed, seconds);
    }
    for (size_t i = 0; count == 0 && i < list->count; i++)
        if (list->items[i].ready && list->items[i].status == ENTRY_ACTIVE)
            failed += !fuzz_entry(&list->items[i], pages, seed, seconds);
    return failed > 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"root", required_argument, NULL, 'r'},
                                            {"build", required_argument, NULL, 'b'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"seed", required_argument, NULL, 'n'},
                                            {0}};
    const char *given_root = ".";
    const char *given_build = "build";
    uint64_t seed = clock_now_ns() % 1000000;
    unsigned seconds = 60;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'r')
            given_root = optarg;
        else if (option == 'b')
            given_build = optarg;
        else if (option == 's')
            seconds = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'n')
            seed = strtoull(optarg, NULL, 10);
        else
            return 2;
    }
    char root[PATH_MAX], build[PATH_MAX];
    struct entry_list list;
    struct page_list pages;
    struct err err;
    signal(SIGPIPE, SIG_IGN);
    /* Of servers built with the address sanitizer: by default it holds back 256 MiB of what was
     * freed, which would pass for a leak here. */
    setenv("ASAN_OPTIONS", "quarantine_size_mb=16", 0);
    if (realpath(given_root, root) == NULL || realpath(given_build, build) == NULL) {
        fprintf(stderr, "servers: %s or %s: no such folder\n", given_root, given_build);
        return 2;
    }
    char *folder = mem_format("%s/tests/contract", root);
    int status = 2;
    if (entry_list_read(root, build, &list, &err) != 0)
        fprintf(stderr, "servers: %s\n", err.text);
    else if (page_list_read(folder, &pages, &err) != 0)
        fprintf(stderr, "servers: %s\n", err.text);
    else {
        status = fuzz_all(&list, &pages, argv + optind, argc - optind, seed, seconds);
        page_list_free(&pages);
    }
    free(folder);
    entry_list_free(&list);
    return status;
}
