/* Ports and files, told before a run. */
#include "hammer/ports.h"
#include "hammer/worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct in_addr sources[LOAD_SOURCES_MAX];
static unsigned count;
static struct err err;

static int plan(const char *ip, unsigned connections, bool close_each, unsigned max)
{
    struct hammer_config config = {.connections = connections, .close_each = close_each};
    inet_pton(AF_INET, ip, &config.address.sin_addr);
    return ports_plan(&config, sources, max, &count, &err);
}

static void test_few_connections_need_no_plan(void **state)
{
    (void)state;
    assert_int_equal(plan("127.0.0.1", 64, false, LOAD_SOURCES_MAX), 0);
    assert_int_equal(count, 0);
    assert_int_equal(plan("192.0.2.1", 64, false, LOAD_SOURCES_MAX), 0);
    assert_int_equal(count, 0);
}

static void test_many_are_spread_over_loopback(void **state)
{
    (void)state;
    assert_int_equal(plan("127.0.0.1", 100000, false, LOAD_SOURCES_MAX), 0);
    assert_true(count >= 2);
    assert_true(count <= LOAD_SOURCES_MAX);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(ntohl(sources[i].s_addr) >> 24, 127);
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(sources[i].s_addr, sources[j].s_addr);
    }
}

static void test_a_connection_a_request_is_spread(void **state)
{
    (void)state;
    assert_int_equal(plan("127.0.0.1", 1, true, LOAD_SOURCES_MAX), 0);
    assert_true(count >= 4);
}

static void test_too_many_for_the_addresses(void **state)
{
    (void)state;
    assert_int_equal(plan("127.0.0.1", 1000000, false, 1), -EADDRNOTAVAIL);
    assert_non_null(strstr(err.text, "ip_local_port_range"));
}

static void test_too_many_for_a_foreign_address(void **state)
{
    (void)state;
    assert_int_equal(plan("192.0.2.1", 70000, false, LOAD_SOURCES_MAX), -EADDRNOTAVAIL);
    assert_non_null(strstr(err.text, "ip_local_port_range"));
}

static void test_files_beyond_any_limit(void **state)
{
    (void)state;
    const struct hammer_config config = {.connections = 4000000000u, .threads = 1};
    assert_int_equal(ports_reserve_files(&config, &err), -EMFILE);
    assert_non_null(strstr(err.text, "ulimit"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_connections_need_no_plan),
        cmocka_unit_test(test_many_are_spread_over_loopback),
        cmocka_unit_test(test_a_connection_a_request_is_spread),
        cmocka_unit_test(test_too_many_for_the_addresses),
        cmocka_unit_test(test_too_many_for_a_foreign_address),
        cmocka_unit_test(test_files_beyond_any_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
