/* System calls of live processes: a child makes a known number of them. */
#include "host/calls.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int to_child[2], from_child[2];

static void *call_100_times(void *context)
{
    (void)context;
    for (int i = 0; i < 100; i++)
        syscall(SYS_getppid);
    return NULL;
}

/* On 'c' calls 100 times, on 't' in a thread, on 'f' in a child; answers each with a byte. */
static _Noreturn void obey(void)
{
    char wish;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(to_child[0], &wish, 1) == 1) {
        pthread_t thread;
        if (wish == 'c')
            call_100_times(NULL);
        if (wish == 't' && pthread_create(&thread, NULL, call_100_times, NULL) == 0)
            pthread_join(thread, NULL);
        pid_t pid = wish == 'f' ? fork() : -1;
        if (pid == 0) {
            call_100_times(NULL);
            _exit(0);
        }
        if (pid > 0)
            waitpid(pid, NULL, 0);
        if (write(from_child[1], &wish, 1) != 1)
            break;
    }
    _exit(0);
}

static void ask(char wish)
{
    char answer = 0;
    assert_int_equal(write(to_child[1], &wish, 1), 1);
    assert_int_equal(read(from_child[0], &answer, 1), 1);
    assert_int_equal(answer, wish);
}

static uint64_t getppids(struct calls *calls)
{
    struct calls_counts counts;
    calls_read(calls, &counts);
    return counts.by_number[SYS_getppid];
}

static pid_t parent;

/* As a server is: the child of a child, since a tracer's stops and a parent's wait do not mix. */
static pid_t start(void)
{
    int found[2];
    pid_t child = 0;
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(from_child), 0);
    assert_int_equal(pipe(found), 0);
    parent = fork();
    if (parent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child = fork();
        if (child == 0)
            obey();
        _exit(write(found[1], &child, sizeof child) != (ssize_t)sizeof child ||
              waitpid(child, NULL, 0) != child);
    }
    assert_int_equal(read(found[0], &child, sizeof child), sizeof child);
    close(found[0]);
    close(found[1]);
    return child;
}

static void end(pid_t child)
{
    int status;
    kill(child, SIGTERM);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(from_child[i]);
    }
}

static void every_call_counts_once(void **state)
{
    (void)state;
    pid_t child = start();
    struct calls *calls;
    struct err err;
    if (calls_watch(&child, 1, &calls, &err) == -EPERM) {
        end(child);
        print_message("%s\n", err.text);
        skip();
    }
    ask('c');
    assert_int_equal(getppids(calls), 100);
    ask('x');
    assert_int_equal(getppids(calls), 100);
    ask('t');
    assert_int_equal(getppids(calls), 200);
    ask('f');
    assert_int_equal(getppids(calls), 300);
    struct calls_counts counts;
    calls_read(calls, &counts);
    assert_true(counts.total > 300);
    /* After c, x and t; the one after f may come later than this look. */
    assert_true(counts.by_number[SYS_read] >= 3);
    end(child);
    calls_end(calls);
}

/* A child of someone else is not waited for by the tracer. */
static void other_children_are_not_reaped(void **state)
{
    (void)state;
    pid_t child = start();
    struct calls *calls;
    if (calls_watch(&child, 1, &calls, NULL) == -EPERM) {
        end(child);
        skip();
    }
    pid_t other = fork();
    if (other == 0)
        _exit(7);
    int status = 0;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(WEXITSTATUS(status), 7);
    end(child);
    calls_end(calls);
    calls_end(NULL);
}

static void calls_have_names(void **state)
{
    (void)state;
    char text[16];
    assert_string_equal(calls_name(SYS_read, text), "read");
    assert_string_equal(calls_name(SYS_epoll_ctl, text), "epoll_ctl");
    assert_string_equal(calls_name(9999, text), "call 9999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_counts_once),
        cmocka_unit_test(other_children_are_not_reaped),
        cmocka_unit_test(calls_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
