/* Servers under their keeper. The stubs are this program itself, started with "stub MODE PORT
 * MARK"; MARK is in the command line of every process of a test, so that none is overlooked. */
#include "base/clock.h"
#include "base/mem.h"
#include "entry/server.h"
#include "folder.h"
#include "host/usage.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

/* ---- stubs */

static int stub_listen_with(unsigned port, int option)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;
    setsockopt(fd, SOL_SOCKET, option, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 16) != 0) {
        perror("stub: listen");
        _exit(4);
    }
    return fd;
}

static int stub_listen(unsigned port)
{
    return stub_listen_with(port, SO_REUSEADDR);
}

/* Answers each connection's first bytes with `answer`; NULL: closes without one. */
static void stub_answer_at(int listener, const char *answer)
{
    for (;;) {
        char request[1024];
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        if (recv(fd, request, sizeof request, 0) > 0 && answer != NULL)
            send(fd, answer, strlen(answer), MSG_NOSIGNAL);
        close(fd);
    }
}

static void stub_answer(unsigned port, const char *answer)
{
    stub_answer_at(stub_listen(port), answer);
}

/* Closing a socket with linger time 0 resets the connection (socket(7), SO_LINGER). */
static void stub_reset(unsigned port)
{
    int listener = stub_listen(port);
    const struct linger at_once = {.l_onoff = 1};
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(fd);
    }
}

/* Drops its first connections for half a second, as one that is still loading may. */
static void stub_drop_then_answer(unsigned port, const char *answer)
{
    int listener = stub_listen(port);
    uint64_t until_ns = clock_now_ns() + 500 * NS_PER_MS;
    while (clock_now_ns() < until_ns) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        if (poll(&p, 1, 20) == 1)
            close(accept(listener, NULL, NULL));
    }
    stub_answer_at(listener, answer);
}

#define RIGHT_ANSWER                                                                               \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello World\n"

static void stub_end(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

static void ignore(int signal_number)
{
    signal(signal_number, SIG_IGN);
}

static void pause_for_ever(void)
{
    for (;;)
        pause();
}

/* A child in the same group, and one that leaves session and parent; all deaf to SIGTERM. Returns
 * when both are there and nobody else. */
static void stub_family(void)
{
    int ends[2];
    char byte = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        _exit(6);
    ignore(SIGTERM);
    if (fork() == 0) {
        if (fork() == 0) {
            setsid();
            if (fork() == 0)
                pause_for_ever();
            _exit(0);
        }
        wait(NULL);
        if (write(ends[1], &byte, 1) != 1)
            _exit(6);
        pause_for_ever();
    }
    if (read(ends[0], &byte, 1) != 1)
        _exit(6);
}

/* Each generation forks the next and ends: whoever looks finds the last one gone. Every eighth
 * leaves the group. Bounded, should nobody end it. */
static void stub_chain(void)
{
    for (int i = 0; i < 20000; i++) {
        if (i % 8 == 0)
            setsid();
        if (fork() != 0)
            _exit(0);
    }
    _exit(0);
}

/* Four times each process forks: 16, some of which leave the group; then each pauses. */
static void stub_spread(void)
{
    for (int level = 0; level < 4; level++)
        if (fork() == 0 && level == 2)
            setsid();
    pause_for_ever();
}

static void stub_flood(void)
{
    char line[1024];
    memset(line, 'f', sizeof line);
    line[sizeof line - 1] = '\n';
    for (;;)
        if (write(STDERR_FILENO, line, sizeof line) < 0)
            pause();
}

static void stub_print_signals(void)
{
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < SIGRTMIN; i++) {
        struct sigaction action;
        if (sigismember(&blocked, i) == 1)
            printf("blocked %d\n", i);
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            printf("ignored %d\n", i);
    }
}

static void stub_print_files(void)
{
    for (int fd = 0; fd < 256; fd++) {
        char path[64];
        char target[256];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(path, target, sizeof target);
        if (size > 0)
            printf("%d %.*s\n", fd, (int)(size < 5 ? size : 5), target);
    }
}

static void stub_print_start(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    char folder[1024] = "";
    if (getcwd(folder, sizeof folder) == NULL)
        _exit(5);
    printf("session %d files %llu cpu %d folder %s\n", getsid(0) == getpid(),
           (unsigned long long)files.rlim_cur, sched_getcpu(), folder);
}

static void stub_workers(unsigned port)
{
    signal(SIGTERM, stub_end);
    for (int i = 0; i < 2; i++)
        if (fork() == 0) { /* ends 50 ms after its parent */
            signal(SIGTERM, SIG_DFL);
            while (getppid() != 1 && getppid() == getpgrp())
                poll(NULL, 0, 5);
            poll(NULL, 0, 50);
            _exit(0);
        }
    stub_answer(port, RIGHT_ANSWER);
}

static int stub(const char *mode, unsigned port)
{
    alarm(60);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(mode, "good") == 0) {
        signal(SIGTERM, stub_end);
        stub_answer(port, RIGHT_ANSWER);
    } else if (strcmp(mode, "slow") == 0) {
        poll(NULL, 0, 300);
        stub_answer(port, RIGHT_ANSWER);
    } else if (strcmp(mode, "exit") == 0) {
        fputs("first\ncannot open its library\n", stderr);
        return 3;
    } else if (strcmp(mode, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    } else if (strcmp(mode, "stubborn") == 0) {
        ignore(SIGTERM);
        stub_answer(port, RIGHT_ANSWER);
    } else if (strcmp(mode, "family") == 0) {
        stub_family();
        stub_answer(port, RIGHT_ANSWER);
    } else if (strcmp(mode, "workers") == 0) {
        stub_workers(port);
    } else if (strcmp(mode, "chain") == 0) {
        stub_chain();
    } else if (strcmp(mode, "spread") == 0) {
        stub_spread();
    } else if (strcmp(mode, "flood") == 0) {
        stub_flood();
    } else if (strcmp(mode, "deaf") == 0) {
        fputs("waiting for Godot\n", stderr);
        pause_for_ever();
    } else if (strcmp(mode, "silent") == 0) {
        stub_listen(port);
        pause_for_ever();
    } else if (strcmp(mode, "closing") == 0) {
        stub_answer(port, NULL);
    } else if (strcmp(mode, "resetting") == 0) {
        stub_reset(port);
    } else if (strcmp(mode, "loading") == 0) {
        stub_drop_then_answer(port, RIGHT_ANSWER);
    } else if (strcmp(mode, "sharing") == 0) {
        stub_answer_at(stub_listen_with(port, SO_REUSEPORT), RIGHT_ANSWER);
    } else if (strcmp(mode, "wrong") == 0) {
        fputs("not in the mood\n", stderr);
        stub_answer(port, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHallo");
    } else if (strcmp(mode, "malformed") == 0) {
        stub_answer(port, "HTTP/1.1 200 OK\nContent-Length: 12\n\nHello World\n");
    } else if (strcmp(mode, "short") == 0) {
        stub_answer(port, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHello");
    } else if (strcmp(mode, "background") == 0) {
        if (fork() != 0)
            return 0;
        setsid();
        stub_answer(port, RIGHT_ANSWER);
    } else if (strcmp(mode, "signals") == 0) {
        stub_print_signals();
    } else if (strcmp(mode, "files") == 0) {
        stub_print_files();
    } else if (strcmp(mode, "start") == 0) {
        stub_print_start();
    } else if (strcmp(mode, "long") == 0) {
        for (int i = 0; i < 1000; i++)
            printf("line %d\n", i);
    } else if (strcmp(mode, "binary") == 0) {
        fputs("a\033[1mb\xFF\xC3\xA9\t\xE2\x82", stdout);
    } else if (strcmp(mode, "large") == 0) {
        void *bytes = mmap(NULL, 200 << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        return bytes == MAP_FAILED;
    }
    return 0;
}

/* ---- what tests share */

static char mark[64];

static char *request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
static const struct http_expect expected = {
    .status = 200, .content_type = "text/plain", .body = "Hello World\n", .body_bytes = 12};

/* The processes whose command line holds `mark`: the stubs, but not the keepers, which are forks
 * of this program. */
static int count_marked(void)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    struct dirent *item;
    while ((item = readdir(proc)) != NULL) {
        char path[300];
        char line[1024];
        snprintf(path, sizeof path, "/proc/%s/cmdline", item->d_name);
        int fd = isdigit((unsigned char)item->d_name[0]) ? open(path, O_RDONLY) : -1;
        if (fd < 0)
            continue;
        ssize_t size = read(fd, line, sizeof line);
        close(fd);
        if (size > 0 && memmem(line, (size_t)size, mark, strlen(mark)) != NULL)
            count++;
    }
    closedir(proc);
    return count;
}

static bool become(int (*count)(void), int wanted, int limit_ms)
{
    for (int ms = 0; ms < limit_ms; ms += 5) {
        if (count() == wanted)
            return true;
        poll(NULL, 0, 5);
    }
    return count() == wanted;
}

static void new_mark(void)
{
    static int number;
    snprintf(mark, sizeof mark, "mark-%d-%d", getpid(), ++number);
}

/* The caller frees nothing: server_start has no use for its arguments afterwards. */
static int try_start(const char *mode, struct server_start *start, struct server **server,
                     struct err *err)
{
    static uint64_t seed;
    char port[16];
    new_mark();
    assert_int_equal(server_free_port((uint64_t)getpid() * 1000 + seed++, &start->port, err), 0);
    snprintf(port, sizeof port, "%u", start->port);
    char *argv[] = {"/proc/self/exe", "stub", (char *)(uintptr_t)mode, port, mark, NULL};
    start->argv = argv;
    if (start->folder == NULL)
        start->folder = "/";
    int status = server_start(start, server, err);
    start->argv = NULL;
    return status;
}

static struct server *start(const char *mode)
{
    struct server_start how = {0};
    struct server *server;
    struct err err = {0};
    if (try_start(mode, &how, &server, &err) != 0)
        fail_msg("%s", err.text);
    return server;
}

static int wait_ready(struct server *server, unsigned limit_ms, struct err *err)
{
    uint64_t took_ns = 0;
    int status = server_wait_ready(server, request, strlen(request), &expected,
                                   limit_ms * NS_PER_MS, &took_ns, err);
    assert_int_equal(status == 0, took_ns > 0);
    return status;
}

static enum server_state wait_end(struct server *server, char *detail, size_t size)
{
    uint64_t deadline = clock_now_ns() + 10 * NS_PER_S;
    enum server_state state;
    while ((state = server_poll(server, detail, size)) == SERVER_RUNNING &&
           clock_now_ns() < deadline)
        poll(NULL, 0, 2);
    return state;
}

static void stop_and_count(struct server *server, struct server_stop *stop)
{
    server_stop(server, stop);
    assert_int_equal(count_marked(), 0);
}

/* After each test: no keeper is left, not even as a zombie. One that is, is ended, so that it
 * spoils no other test. */
static int end_of_test(void **state)
{
    (void)state;
    if (waitpid(-1, NULL, WNOHANG) == -1)
        return 0;
    pid_t pids[HOST_TREE_MAX];
    for (int i = host_tree(getpid(), pids) - 1; i > 0; i--)
        kill(pids[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return -1;
}

static void assert_holds(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" does not hold \"%s\"", text, part);
}

/* What a stub that prints and ends has printed. */
static void output_of(const char *mode, struct server_start *how, char *text, size_t size)
{
    struct server *server;
    struct err err = {0};
    char detail[256];
    if (try_start(mode, how, &server, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(wait_end(server, detail, sizeof detail), SERVER_EXITED);
    server_output(server, text, size);
    stop_and_count(server, NULL);
}

/* ---- the life of a good server */

static void a_good_server_is_ready_and_ends(void **state)
{
    (void)state;
    struct server *server = start("good");
    struct err err = {0};
    char detail[256];
    assert_int_equal(wait_ready(server, 5000, &err), 0);
    assert_int_equal(server_poll(server, detail, sizeof detail), SERVER_RUNNING);
    pid_t pids[8];
    assert_int_equal(server_pids(server, pids, 8), 1);
    assert_int_equal(pids[0], server_pid(server));
    struct server_stop stop;
    stop_and_count(server, &stop);
    assert_false(stop.ignored_term);
    assert_false(stop.left_children);
    assert_int_equal(stop.exit_status, 0);
    assert_true(stop.took_ns > 0 && stop.took_ns < 2 * NS_PER_S);
    assert_true(stop.rss_peak_bytes > 100000);
}

static void a_slow_starter_is_waited_for(void **state)
{
    (void)state;
    struct server *server = start("slow");
    struct err err = {0};
    uint64_t took_ns;
    assert_int_equal(server_wait_ready(server, request, strlen(request), &expected, 5 * NS_PER_S,
                                       &took_ns, &err),
                     0);
    assert_true(took_ns >= 300 * NS_PER_MS);
    stop_and_count(server, NULL);
}

static void a_stopped_server_hears_sigterm(void **state)
{
    (void)state;
    struct server *server = start("good");
    assert_int_equal(wait_ready(server, 5000, NULL), 0);
    kill(server_pid(server), SIGSTOP);
    struct server_stop stop;
    stop_and_count(server, &stop);
    assert_false(stop.ignored_term);
    assert_int_equal(stop.exit_status, 0);
}

static void workers_that_end_by_themselves_are_let(void **state)
{
    (void)state;
    struct server *server = start("workers");
    assert_int_equal(wait_ready(server, 5000, NULL), 0);
    pid_t pids[8];
    assert_int_equal(server_pids(server, pids, 8), 3);
    assert_int_equal(pids[0], server_pid(server));
    assert_int_equal(server_pids(server, pids, 2), 2);
    struct server_stop stop;
    stop_and_count(server, &stop);
    assert_false(stop.left_children);
    assert_int_equal(stop.exit_status, 0);
}

/* ---- how it starts */

static void nothing_of_the_harness_is_inherited(void **state)
{
    (void)state;
    char text[SERVER_OUTPUT_KEEP];
    int leaks[] = {open("/dev/zero", O_RDONLY), socket(AF_INET, SOCK_STREAM, 0), dup(0)};
    struct server *other = start("good"); /* its control socket neither */
    output_of("files", &(struct server_start){0}, text, sizeof text);
    server_stop(other, NULL);
    for (int i = 0; i < 3; i++)
        close(leaks[i]);
    assert_string_equal(text, "0 /dev/\n1 pipe:\n2 pipe:\n");
}

static void signals_are_reset(void **state)
{
    (void)state;
    char text[SERVER_OUTPUT_KEEP];
    sigset_t set;
    sigset_t before;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &before);
    ignore(SIGPIPE);
    ignore(SIGINT);
    output_of("signals", &(struct server_start){0}, text, sizeof text);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_string_equal(text, "");
}

static void session_folder_files_and_cpu_are_set(void **state)
{
    (void)state;
    char text[SERVER_OUTPUT_KEEP];
    char expected_text[200];
    struct rlimit before;
    struct rlimit low;
    cpu_set_t allowed;
    getrlimit(RLIMIT_NOFILE, &before);
    assert_true(before.rlim_max >= 512);
    low = (struct rlimit){.rlim_cur = 256, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    sched_getaffinity(0, sizeof allowed, &allowed);
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &allowed))
        cpu++;
    output_of("start",
              &(struct server_start){.cpus = &cpu, .cpu_count = 1, .files = 512, .folder = "/usr"},
              text, sizeof text);
    setrlimit(RLIMIT_NOFILE, &before);
    snprintf(expected_text, sizeof expected_text, "session 1 files 512 cpu %d folder /usr\n", cpu);
    assert_string_equal(text, expected_text);
}

static void what_cannot_start_is_named(void **state)
{
    (void)state;
    struct server *server;
    struct err err = {0};
    char *root = folder_make();
    char *plain = mem_format("%s/plain", root);
    folder_print(root, "plain", "no program");

    char *absent[] = {"no-such-program", "-x", NULL};
    struct server_start how = {.argv = absent, .folder = "/"};
    assert_int_equal(server_start(&how, &server, &err), -ENOENT);
    assert_null(server);
    assert_string_equal(err.text, "cannot start no-such-program: not found on PATH");
    absent[0] = "/no/such/file";
    assert_int_equal(server_start(&how, &server, &err), -ENOENT);
    assert_string_equal(err.text, "cannot start /no/such/file: No such file or directory");
    absent[0] = plain;
    assert_int_equal(server_start(&how, &server, &err), -EACCES);
    assert_holds(err.text, "/plain: Permission denied");
    chmod(plain, 0755);
    assert_int_equal(server_start(&how, &server, &err), -ENOEXEC);
    assert_holds(err.text, "/plain: Exec format error");

    absent[0] = "/proc/self/exe";
    how.folder = "/no/such/folder";
    assert_int_equal(server_start(&how, &server, &err), -ENOENT);
    assert_string_equal(err.text,
                        "cannot start /proc/self/exe: its folder /no/such/folder: No such "
                        "file or directory");
    how.folder = "/";
    how.cpus = (const int[]){1023};
    how.cpu_count = 1;
    assert_int_equal(server_start(&how, &server, &err), -EINVAL);
    assert_holds(err.text, "pinning it to CPU 1023: Invalid argument");
    absent[0] = NULL;
    assert_int_equal(server_start(&how, &server, &err), -EINVAL);
    free(plain);
    folder_remove(root);
}

/* ---- servers that are never ready */

static void one_that_exits_says_why(void **state)
{
    (void)state;
    struct server *server = start("exit");
    struct err err = {0};
    char detail[256];
    assert_int_equal(wait_ready(server, 5000, &err), -ECHILD);
    assert_string_equal(err.text,
                        "ended before it was ready: exited with status 3; its last output: "
                        "first | cannot open its library");
    assert_int_equal(server_poll(server, detail, sizeof detail), SERVER_EXITED);
    pid_t pids[4];
    assert_int_equal(server_pids(server, pids, 4), 0);
    struct server_stop stop;
    stop_and_count(server, &stop);
    assert_int_equal(WEXITSTATUS(stop.exit_status), 3);
    assert_int_equal(stop.took_ns, 0);
    assert_false(stop.ignored_term);
}

static void one_that_crashes_names_the_signal(void **state)
{
    (void)state;
    struct server *server = start("crash");
    struct err err = {0};
    char detail[256];
    assert_int_equal(wait_ready(server, 5000, &err), -ECHILD);
    assert_string_equal(err.text, "ended before it was ready: killed by signal 11 (Segmentation "
                                  "fault); it printed nothing");
    assert_int_equal(server_poll(server, detail, sizeof detail), SERVER_SIGNALED);
    stop_and_count(server, NULL);
}

static void one_that_never_listens_is_given_up(void **state)
{
    (void)state;
    struct server *server = start("deaf");
    struct err err = {0};
    uint64_t before = clock_now_ns();
    assert_int_equal(wait_ready(server, 200, &err), -ETIMEDOUT);
    assert_true(clock_now_ns() - before >= 200 * NS_PER_MS);
    assert_holds(err.text, "did not listen on 127.0.0.1:");
    assert_holds(err.text, " within 0.");
    assert_holds(err.text, "; its last output: waiting for Godot");
    stop_and_count(server, NULL);
}

static void one_that_never_answers_is_given_up(void **state)
{
    (void)state;
    struct server *server = start("silent");
    struct err err = {0};
    assert_int_equal(wait_ready(server, 1500, &err), -ETIMEDOUT);
    assert_holds(err.text, "listens on 127.0.0.1:");
    assert_holds(err.text, ", but did not answer within ");
    stop_and_count(server, NULL);
}

static void one_that_closes_is_given_up(void **state)
{
    (void)state;
    struct server *server = start("closing");
    struct err err = {0};
    assert_int_equal(wait_ready(server, 1500, &err), -ETIMEDOUT);
    assert_holds(err.text, "closes connections on 127.0.0.1:");
    stop_and_count(server, NULL);
}

static void one_that_drops_every_connection_is_given_up_early(void **state)
{
    (void)state;
    uint64_t before = clock_now_ns();
    struct server *server = start("resetting");
    struct err err = {0};
    assert_int_equal(wait_ready(server, 30000, &err), -ETIMEDOUT);
    assert_true(clock_now_ns() - before < 20 * NS_PER_S);
    assert_holds(err.text, "resets connections on 127.0.0.1:");
    stop_and_count(server, NULL);
    before = clock_now_ns();
    server = start("closing");
    assert_int_equal(wait_ready(server, 30000, &err), -ETIMEDOUT);
    assert_true(clock_now_ns() - before < 20 * NS_PER_S);
    assert_holds(err.text, "closes connections on 127.0.0.1:");
    stop_and_count(server, NULL);
}

static void one_that_drops_its_first_connections_gets_ready(void **state)
{
    (void)state;
    struct server *server = start("loading");
    struct err err = {0};
    if (wait_ready(server, 30000, &err) != 0)
        fail_msg("%s", err.text);
    stop_and_count(server, NULL);
}

/* The stub listens with SO_REUSEPORT, and so does this process on the same port. */
static void a_foreign_listener_is_named(void **state)
{
    (void)state;
    struct server *server;
    struct server_start how = {0};
    struct err err = {0};
    assert_int_equal(try_start("sharing", &how, &server, &err), 0);
    assert_int_equal(wait_ready(server, 5000, &err), 0);
    int foreign = stub_listen_with(how.port, SO_REUSEPORT);
    int status = 0;
    for (int i = 0; i < 8 && status == 0; i++) /* some find our deaf socket, some the stub's */
        status = wait_ready(server, 100, &err);
    close(foreign);
    assert_int_equal(status, -EADDRINUSE);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "process %d (", getpid());
    assert_holds(err.text, wanted);
    assert_holds(err.text, "take another port");
    assert_int_equal(wait_ready(server, 5000, &err), 0);
    stop_and_count(server, NULL);
}

static void wrong_answers_are_quoted(void **state)
{
    (void)state;
    struct err err = {0};
    struct server *server = start("wrong");
    assert_int_equal(wait_ready(server, 5000, &err), -EPROTO);
    assert_holds(err.text, "answers wrongly: ");
    assert_holds(err.text, "Hallo");
    assert_holds(err.text, "; its last output: not in the mood");
    stop_and_count(server, NULL);
    server = start("malformed");
    assert_int_equal(wait_ready(server, 5000, &err), -EPROTO);
    assert_holds(err.text, "answers wrongly: ");
    assert_holds(err.text, "LF");
    stop_and_count(server, NULL);
    server = start("short");
    assert_int_equal(wait_ready(server, 5000, &err), -EPROTO);
    assert_holds(err.text, "closed");
    stop_and_count(server, NULL);
}

static void one_that_goes_into_the_background_is_told(void **state)
{
    (void)state;
    struct server *server = start("background");
    struct err err = {0};
    char detail[256];
    assert_int_equal(wait_end(server, detail, sizeof detail), SERVER_EXITED);
    assert_string_equal(detail, "exited with status 0 while its children lived on: it forks into "
                                "the background; run it in the foreground");
    assert_int_equal(wait_ready(server, 5000, &err), -ECHILD);
    assert_holds(err.text, "it forks into the background; run it in the foreground");
    assert_true(become(count_marked, 0, 2000)); /* the keeper ends it unasked */
    struct server_stop stop;
    stop_and_count(server, &stop);
    assert_true(stop.left_children);
}

static void do_nothing(int signal_number)
{
    (void)signal_number;
}

static void an_interrupted_wait_returns(void **state)
{
    (void)state;
    struct server *server = start("deaf");
    struct sigaction action = {.sa_handler = do_nothing};
    timer_t timer;
    struct sigaction before;
    sigaction(SIGALRM, &action, &before);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
    struct itimerspec soon = {.it_value = {.tv_nsec = 100000000},
                              .it_interval = {.tv_nsec = 20000000}};
    timer_settime(timer, 0, &soon, NULL);
    struct err err = {0};
    assert_int_equal(wait_ready(server, 5000, &err), -EINTR);
    timer_delete(timer);
    sigaction(SIGALRM, &before, NULL);
    stop_and_count(server, NULL);
}

/* ---- servers that do not end */

static void one_that_ignores_sigterm_is_killed(void **state)
{
    (void)state;
    struct server *server = start("stubborn");
    assert_int_equal(wait_ready(server, 5000, NULL), 0);
    struct server_stop stop;
    stop_and_count(server, &stop);
    assert_true(stop.ignored_term);
    assert_true(WIFSIGNALED(stop.exit_status));
    assert_true(stop.took_ns >= 2 * NS_PER_S && stop.took_ns < 4 * NS_PER_S);
}

static void descendants_that_hide_are_found(void **state)
{
    (void)state;
    struct server *server = start("family");
    assert_int_equal(wait_ready(server, 5000, NULL), 0);
    assert_int_equal(count_marked(), 3);
    pid_t pids[8];
    assert_int_equal(server_pids(server, pids, 8), 3);
    kill(server_pid(server), SIGKILL);
    char detail[256];
    assert_int_equal(wait_end(server, detail, sizeof detail), SERVER_SIGNALED);
    assert_true(become(count_marked, 0, 2000));
    struct server_stop stop;
    stop_and_count(server, &stop);
    assert_true(stop.left_children);
}

static void a_chain_of_forks_is_caught(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct server *server = start("chain");
        poll(NULL, 0, 30);
        stop_and_count(server, NULL);
    }
}

static void many_processes_are_ended(void **state)
{
    (void)state;
    struct server *server = start("spread");
    assert_true(become(count_marked, 16, 5000)); /* two to the fourth */
    stop_and_count(server, NULL);
}

static void a_flood_is_stopped(void **state)
{
    (void)state;
    struct server *server = start("flood");
    char detail[256];
    char text[100];
    assert_int_equal(wait_end(server, detail, sizeof detail), SERVER_FLOODED);
    assert_string_equal(detail,
                        "wrote over 1024 KiB to standard output and error, and was ended: it "
                        "floods; a server writes nothing per request");
    assert_true(become(count_marked, 0, 2000));
    server_output(server, text, sizeof text);
    assert_string_equal(text + 90, "ffffffff\n");
    stop_and_count(server, NULL);
}

/* ---- the harness or the keeper dies */

static pid_t parent_of(pid_t pid)
{
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1)
            parent = 0;
        fclose(file);
    }
    return parent;
}

static pid_t watched_keeper;

static int keeper_lives(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", watched_keeper);
    char text[128] = "";
    int fd = open(path, O_RDONLY);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    close(fd);
    return size > 0 && strstr(text, ") Z") == NULL;
}

static void a_killed_harness_leaves_nothing(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    new_mark();
    pid_t harness = fork();
    if (harness == 0) {
        char *argv[] = {"/proc/self/exe", "stub", "family", "0", mark, NULL};
        struct server_start how = {.argv = argv, .folder = "/"};
        struct server *servers[2];
        for (int i = 0; i < 2; i++)
            if (server_start(&how, &servers[i], NULL) != 0)
                _exit(1);
        pid_t pid = server_pid(servers[0]);
        if (write(ends[1], &pid, sizeof pid) != sizeof pid)
            _exit(1);
        pause_for_ever();
    }
    pid_t server;
    assert_int_equal(read(ends[0], &server, sizeof server), sizeof server);
    close(ends[0]);
    close(ends[1]);
    watched_keeper = parent_of(server);
    assert_true(watched_keeper > 1 && watched_keeper != harness);
    assert_true(become(count_marked, 6, 3000));
    kill(harness, SIGKILL);
    waitpid(harness, NULL, 0);
    assert_true(become(count_marked, 0, 3000));
    assert_true(become(keeper_lives, 0, 3000));
}

static void a_killed_keeper_is_told(void **state)
{
    (void)state;
    struct server *server = start("good");
    assert_int_equal(wait_ready(server, 5000, NULL), 0);
    kill(parent_of(server_pid(server)), SIGKILL);
    char detail[256];
    assert_int_equal(wait_end(server, detail, sizeof detail), SERVER_SIGNALED);
    assert_holds(detail, "something killed its keeper");
    assert_true(become(count_marked, 0, 2000));
    struct server_stop stop;
    stop_and_count(server, &stop);
    assert_int_equal(stop.exit_status, -1);
}

static void the_keeper_sleeps(void **state)
{
    (void)state;
    struct server *server = start("good");
    assert_int_equal(wait_ready(server, 5000, NULL), 0);
    pid_t keeper = parent_of(server_pid(server));
    struct host_usage before;
    struct host_usage after;
    poll(NULL, 0, 20);
    assert_int_equal(host_usage_read(&keeper, 1, &before, NULL), 0);
    poll(NULL, 0, 300);
    assert_int_equal(host_usage_read(&keeper, 1, &after, NULL), 0);
    assert_int_equal(after.cpu_ns, before.cpu_ns);
    assert_int_equal(after.switches_voluntary, before.switches_voluntary);
    stop_and_count(server, NULL);
}

/* ---- memory and output */

static void the_harness_s_memory_is_not_the_server_s(void **state)
{
    (void)state;
    size_t size = 120 << 20;
    void *ballast =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_ptr_not_equal(ballast, MAP_FAILED);
    struct server *server = start("good");
    assert_int_equal(wait_ready(server, 5000, NULL), 0);
    struct server_stop stop;
    stop_and_count(server, &stop);
    assert_in_range(stop.rss_peak_bytes, 100000, 100 << 20);

    char detail[256];
    server = start("exit"); /* it ends unseen below the harness's own peak: not known */
    wait_end(server, detail, sizeof detail);
    stop_and_count(server, &stop);
    assert_int_equal(stop.rss_peak_bytes, 0);

    server = start("large");
    wait_end(server, detail, sizeof detail);
    stop_and_count(server, &stop);
    assert_in_range(stop.rss_peak_bytes, 200 << 20, 400 << 20);
    munmap(ballast, size);
}

static void the_last_lines_are_kept(void **state)
{
    (void)state;
    char text[SERVER_OUTPUT_KEEP];
    output_of("long", &(struct server_start){0}, text, sizeof text);
    size_t size = strlen(text);
    assert_int_equal(strncmp(text, "line ", 5), 0);
    assert_string_equal(text + size - 9, "line 999\n");
    assert_true(size > SERVER_OUTPUT_KEEP - 20);
    output_of("long", &(struct server_start){0}, text, 30);
    assert_string_equal(text, "line 997\nline 998\nline 999\n");
    output_of("long", &(struct server_start){0}, text, 6);
    assert_string_equal(text, " 999\n"); /* no whole line fits */
    output_of("long", &(struct server_start){0}, text, 1);
    assert_string_equal(text, "");
}

static void output_is_made_printable(void **state)
{
    (void)state;
    char text[100];
    output_of("binary", &(struct server_start){0}, text, sizeof text);
    assert_string_equal(text, "a?[1mb?\xC3\xA9\t??");
}

/* ---- ports */

static void a_free_port_is_free_and_a_used_one_told(void **state)
{
    (void)state;
    struct err err = {0};
    unsigned port;
    unsigned again;
    char expected_text[200];
    assert_int_equal(server_free_port(42, &port, &err), 0);
    assert_in_range(port, 1024, 65535);
    assert_int_equal(server_port_check(port, &err), 0);
    int listener = stub_listen(port);
    assert_int_equal(server_port_check(port, &err), -EADDRINUSE);
    snprintf(expected_text, sizeof expected_text, "port %u is in use on 127.0.0.1; take another,",
             port);
    assert_holds(err.text, expected_text);
    assert_int_equal(server_free_port(42, &again, &err), 0);
    assert_int_not_equal(again, port);
    close(listener);
    assert_int_equal(server_port_check(0, &err), -EINVAL);
    assert_int_equal(server_port_check(65536, &err), -EINVAL);
}

static void stopping_nothing_is_safe(void **state)
{
    (void)state;
    server_stop(NULL, NULL);
}

#define TEST(function) cmocka_unit_test_teardown(function, end_of_test)

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "stub") == 0)
        return stub(argv[2], (unsigned)atoi(argv[3]));
    const struct CMUnitTest tests[] = {
        TEST(a_good_server_is_ready_and_ends),
        TEST(a_slow_starter_is_waited_for),
        TEST(a_stopped_server_hears_sigterm),
        TEST(workers_that_end_by_themselves_are_let),
        TEST(nothing_of_the_harness_is_inherited),
        TEST(signals_are_reset),
        TEST(session_folder_files_and_cpu_are_set),
        TEST(what_cannot_start_is_named),
        TEST(one_that_exits_says_why),
        TEST(one_that_crashes_names_the_signal),
        TEST(one_that_never_listens_is_given_up),
        TEST(one_that_never_answers_is_given_up),
        TEST(one_that_closes_is_given_up),
        TEST(one_that_drops_every_connection_is_given_up_early),
        TEST(one_that_drops_its_first_connections_gets_ready),
        TEST(a_foreign_listener_is_named),
        TEST(wrong_answers_are_quoted),
        TEST(one_that_goes_into_the_background_is_told),
        TEST(an_interrupted_wait_returns),
        TEST(one_that_ignores_sigterm_is_killed),
        TEST(descendants_that_hide_are_found),
        TEST(a_chain_of_forks_is_caught),
        TEST(many_processes_are_ended),
        TEST(a_flood_is_stopped),
        TEST(a_killed_harness_leaves_nothing),
        TEST(a_killed_keeper_is_told),
        TEST(the_keeper_sleeps),
        TEST(the_harness_s_memory_is_not_the_server_s),
        TEST(the_last_lines_are_kept),
        TEST(output_is_made_printable),
        TEST(a_free_port_is_free_and_a_used_one_told),
        TEST(stopping_nothing_is_safe),
    };
    return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
