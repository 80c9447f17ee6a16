/* Pages: what a page says once read, and what is wrong with one that breaks a rule, by its line. */
#include "judge/page.h"

#include "judge/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                       \
    "# Z01: a title\n\n- level: MUST\n- source: RFC 9112 3\n- gate: yes\n\nThe why\nof "           \
    "it.\n\nMore.\n\n"
#define SEND   "```send\nGET / HTTP/1.1\\r\\n\n\\r\\n\n```\n"
#define EXPECT "```expect\n200 hello\n```\n"

static struct page read_good(const char *text)
{
    struct page page;
    struct err err = {0};
    if (page_read("tests/contract/Z01.md", text, &page, &err) != 0)
        fail_msg("%s", err.text);
    return page;
}

static void expect_refused(const char *text, unsigned line, const char *part)
{
    struct page page;
    struct err err = {0};
    char at[64];
    snprintf(at, sizeof at, "tests/contract/Z01.md:%u: ", line);
    assert_int_equal(page_read("tests/contract/Z01.md", text, &page, &err), -22);
    if (strncmp(err.text, at, strlen(at)) != 0 || strstr(err.text, part) == NULL)
        fail_msg("'%s' does not begin with '%s' and name '%s'", err.text, at, part);
    assert_null(page.id);
}

static void test_head(void **state)
{
    (void)state;
    struct page page = read_good(HEAD SEND EXPECT);
    assert_string_equal(page.id, "Z01");
    assert_string_equal(page.title, "a title");
    assert_string_equal(page.source, "RFC 9112 3");
    assert_string_equal(page.why, "The why of it.");
    assert_int_equal(page.level, PAGE_MUST);
    assert_true(page.gate);
    assert_false(page.slow);
    assert_false(page.load);
    assert_int_equal(page.count, 1);
    assert_string_equal(page.variants[0].title, "a title");
    page_free(&page);
    page = read_good(
        "# Z01: t\n- level: ROBUST\n- source: s\n- gate: no\n- slow: yes\n- fault: resets\nWhy.\n");
    assert_string_equal(page.fault, "resets");
    assert_false(page.load);
    assert_true(page.slow);
    assert_false(page.gate);
    page_free(&page);
    page = read_good(
        "# Z01: t\n- level: MUST\n- source: s\n- gate: yes\n- load: yes\nWhy.\n" SEND EXPECT);
    assert_true(page.load);
    page_free(&page);
}

static void test_variants(void **state)
{
    (void)state;
    struct page page = read_good(HEAD "## first\n\n- times: 7\n\nprose\n\n" SEND EXPECT
                                      "\n## second\n" SEND SEND EXPECT);
    assert_int_equal(page.count, 2);
    assert_string_equal(page.variants[1].title, "second");
    assert_int_equal(page.variants[0].times, 7);
    assert_int_equal(page.variants[1].times, 1);
    assert_int_equal(page.variants[1].count, 3);
    assert_true(page.variants[1].steps[2].expects);
    page_free(&page);
}

static void test_expectations(void **state)
{
    (void)state;
    struct page page =
        read_good(HEAD SEND "```expect\n400|5xx head close, closed\nor 200 as-often\n in sync\n"
                            "or noted: nothing 250ms, no 2xx\n```\n");
    const struct page_step *step = &page.variants[0].steps[1];
    assert_int_equal(step->choice_count, 3);
    const struct page_choice *c = step->choices;
    assert_int_equal(c[0].count, 2);
    assert_int_equal(c[0].items[0].status_count, 2);
    assert_int_equal(c[0].items[0].statuses[0].low, 400);
    assert_int_equal(c[0].items[0].statuses[1].low, 500);
    assert_int_equal(c[0].items[0].statuses[1].high, 599);
    assert_int_equal(c[0].items[0].words, WORD_HEAD | WORD_CLOSE);
    assert_int_equal(c[0].items[1].kind, ITEM_CLOSED);
    assert_int_equal(c[1].items[1].kind, ITEM_IN_SYNC);
    assert_false(c[1].noted);
    assert_true(c[2].noted);
    assert_int_equal(c[2].items[0].quiet_ns, 250000000);
    assert_int_equal(c[2].items[1].kind, ITEM_NO_2XX);
    assert_string_equal(step->text, "400|5xx head close, closed or 200 as-often, in sync "
                                    "or noted: nothing 250ms, no 2xx");
    page_free(&page);
}

static struct script sent(const struct page *page, uint64_t seed, size_t split_at)
{
    struct script script = {0};
    struct random random;
    random_seed(&random, seed);
    for (size_t i = 0; i < page->variants[0].count; i++)
        if (!page->variants[0].steps[i].expects)
            script_add(&script, &page->variants[0].steps[i], "h:1", split_at, &random);
    return script;
}

static void test_bytes(void **state)
{
    (void)state;
    struct page page = read_good(HEAD "```send\na\\r\\n\\t\\s\\0\\\\\\x7b\n{host}\n```\n" EXPECT);
    struct script script = sent(&page, 1, 0);
    assert_int_equal(script.size, 8 + 3);
    assert_memory_equal(script.bytes, "a\r\n\t \0\\{h:1", 11);
    script_clear(&script);
    page_free(&page);
}

static void test_random_words(void **state)
{
    (void)state;
    struct page page =
        read_good(HEAD "```send\n{path} {name} {letters 40} {number 5..9} {method}\n```\n" EXPECT);
    struct script a = sent(&page, 1, 0);
    struct script again = sent(&page, 1, 0);
    struct script other = sent(&page, 2, 0);
    assert_int_equal(a.size, again.size);
    assert_memory_equal(a.bytes, again.bytes, a.size);
    assert_true(a.size != other.size || memcmp(a.bytes, other.bytes, a.size) != 0);
    a.bytes[a.size] = '\0';
    char path[64], name[64], letters[64], method[64];
    unsigned number;
    assert_int_equal(
        sscanf(a.bytes, "%63s %63s %63s %u %63s", path, name, letters, &number, method), 5);
    assert_true(path[0] == '/' && strlen(path) >= 6);
    assert_true(strncmp(name, "X-", 2) == 0);
    assert_int_equal(strlen(letters), 40);
    assert_in_range(number, 5, 9);
    script_clear(&a);
    script_clear(&again);
    script_clear(&other);
    page_free(&page);
}

static void test_chunks(void **state)
{
    (void)state;
    struct page page = read_good(HEAD "```send\n{chunks 500}\n```\n" EXPECT);
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct script s = sent(&page, seed, 0);
        size_t total = 0;
        s.bytes[s.size] = '\0';
        for (char *at = s.bytes; at < s.bytes + s.size;) {
            size_t size = strtoull(at, &at, 16);
            assert_memory_equal(at, "\r\n", 2);
            assert_memory_equal(at + 2 + size, "\r\n", 2);
            at += 2 + size + 2;
            total += size;
        }
        assert_int_equal(total, 500);
        script_clear(&s);
    }
    page_free(&page);
}

static void test_times_and_splits(void **state)
{
    (void)state;
    struct page page = read_good(HEAD "```send times 3..9\nab\n```\n" EXPECT);
    bool differs = false;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct script s = sent(&page, seed, 0);
        assert_in_range(s.times, 3, 9);
        assert_int_equal(s.size, 2 * s.times);
        differs = differs || s.times != 3;
        script_clear(&s);
    }
    assert_true(differs);
    page_free(&page);
    page = read_good(HEAD "```send split bytes\nabcd\n```\n" EXPECT);
    struct script s = sent(&page, 1, 0);
    assert_int_equal(s.mark_count, 3);
    assert_int_equal(s.marks[2].at, 3);
    script_clear(&s);
    page_free(&page);
    page = read_good(HEAD "```send split everywhere\nabcd\n```\n" EXPECT);
    s = sent(&page, 1, 2);
    assert_int_equal(s.mark_count, 1);
    assert_int_equal(s.marks[0].at, 2);
    script_clear(&s);
    page_free(&page);
    page = read_good(HEAD "```send\nab{pause 50ms}c{half-close}\n```\n" EXPECT);
    s = sent(&page, 1, 0);
    assert_int_equal(s.mark_count, 2);
    assert_int_equal(s.marks[0].rest_ns, 50000000);
    assert_int_equal(s.marks[0].at, 2);
    assert_int_equal(s.marks[1].act, SCRIPT_HALF_CLOSE);
    assert_int_equal(s.marks[1].at, 3);
    script_clear(&s);
    page_free(&page);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned line;
        const char *part;
    } bad[] = {
        {"", 0, "first line"},
        {"a title\n", 1, "first line"},
        {"# Z1: t\n", 1, "capital and two digits"},
        {"# Z02: t\n", 1, "not the file's name"},
        {"# Z01: t\n- level: MUSTY\n", 2, "MUSTY"},
        {"# Z01: t\n- levels: MUST\n", 2, "unknown key 'levels'"},
        {"# Z01: t\n- gate: maybe\n", 2, "yes or no"},
        {"# Z01: t\n- fault: none\n", 2, "unknown fault"},
        {"# Z01: t\n- source: a\n- source: b\n", 3, "given again"},
        {"# Z01: t\n- level: MUST\nWhy.\n" SEND EXPECT, 10, "needs"},
        {"# Z01: t\n- level: MUST\n- source: s\n- gate: yes\n- load: yes\n- fault: resets\nWhy.\n",
         7, "beside load"},
        {HEAD, 11, "sends nothing"},
        {HEAD SEND, 12, "does not end with what is expected"},
        {HEAD "```sned\n```\n", 12, "```sned"},
        {HEAD "```send\nGET\n", 12, "does not end"},
        {HEAD "```send\n```\n" EXPECT, 13, "empty"},
        {HEAD "```send\nGET \n```\n" EXPECT, 13, "blank at the line's end"},
        {HEAD "```send\n\\q\n```\n" EXPECT, 13, "unknown escape"},
        {HEAD "```send\n{pat}\n```\n" EXPECT, 13, "unknown placeholder {pat}"},
        {HEAD "```send\n{path\n```\n" EXPECT, 13, "without its '}'"},
        {HEAD "```send\n{letters}\n```\n" EXPECT, 13, "an argument"},
        {HEAD "```send\n{pause 5}\n```\n" EXPECT, 13, "no time"},
        {HEAD "```send times 0\nG\n```\n" EXPECT, 12, "sends nothing"},
        {HEAD "```send split up\nG\n```\n" EXPECT, 12, "split is one of"},
        {HEAD SEND "```expect\n20\n```\n", 17, "'20' is no item"},
        {HEAD SEND "```expect\n200 helo\n```\n", 17, "unknown word 'helo'"},
        {HEAD SEND "```expect\nor 200\n```\n", 17, "before the first"},
        {HEAD SEND "```expect\n200,,closed\n```\n", 17, "missing"},
        {HEAD SEND "```expect\nin sync, closed\n```\n", 12, "stand last"},
        {HEAD SEND "```expect\nin sync\n```\n" SEND EXPECT, 12, "stand last"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_refused(bad[i].text, bad[i].line, bad[i].part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_expectations),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_random_words),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_times_and_splits),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests_name("judge/page", tests, NULL, NULL);
}
