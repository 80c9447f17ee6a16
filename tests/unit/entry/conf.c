/* The manifest reader: what it takes, and each error with its file and line. */
#include "entry/entry.h"
#include "folder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GOOD                                                                                       \
    "name = x\n"                                                                                   \
    "title = X\n"                                                                                  \
    "language = C\n"                                                                               \
    "library = libx\n"                                                                             \
    "layer = loop\n"
#define RUN "sources = main.c\nrun = {bin} --port {port}\n"

struct refusal {
    const char *test;
    const char *text;
    size_t size; /* 0: strlen(text) */
    const char *message;
};

#define AT(line, text) "servers/x/entry.conf:" #line ": " text

static const struct refusal refusals[] = {
    {"unknown key", GOOD RUN "colour = red\n", 0,
     AT(8, "unknown key 'colour'; known keys: name title language library layer parser model "
           "tuning jit config sources pkgs needs apt run version workloads status waive notes set "
           "headers build")},
    {"upper case key", "Name = x\n" RUN, 0, AT(1, "unknown key 'Name'; known keys: ")},
    {"make's other assignments", GOOD "pkgs += a\n" RUN, 0, AT(6, "unknown key 'pkgs +'; ")},
    {"dollar", GOOD "notes = $(shell id)\n" RUN, 0,
     AT(6, "a '$'; values are plain text, nothing is expanded")},
    {"backslash at the end", GOOD "pkgs = a \\\n  b\n" RUN, 0,
     AT(6, "a backslash at the line's end; a value is one line")},
    {"missing value", GOOD "\n# none\npkgs =   \n" RUN, 0,
     AT(8, "'pkgs' has no value; leave the line out if there is none")},
    {"repeated key", GOOD RUN "layer = server\n", 0,
     AT(8, "'layer' is given again; first on line 5")},
    {"no equals sign", GOOD "include other.mk\n" RUN, 0,
     AT(6, "'include other.mk' is not of the form key = value")},
    {"leading blank", GOOD "\tpkgs = a\n" RUN, 0,
     AT(6, "a leading blank; start the line with its key")},
    {"comment within a value", GOOD "pkgs = a # for b\n" RUN, 0,
     AT(6, "a '#' within a value; a comment needs a line of its own")},
    {"carriage return", "name = x\r\n" RUN, 0,
     AT(1, "a carriage return at the line's end; save with Unix line ends")},
    {"control character", GOOD "notes = a\033[31mb\n" RUN, 0, AT(6, "a control character (0x1b)")},
    {"not UTF-8", GOOD "title = \xE9\n", 0, AT(6, "not UTF-8")},
    {"NUL byte", "name = x\ntitle = \0\n", 19, AT(2, "a NUL byte; this is no text")},
    {"missing needed key", "name = x\ntitle = X\nlanguage = C\nlayer = loop\n" RUN, 0,
     "servers/x/entry.conf: the key 'library' is missing"},
    {"missing run", GOOD, 0, "servers/x/entry.conf: the key 'run' is missing"},
    {"empty file", "", 0, "servers/x/entry.conf: the key 'name' is missing"},
    {"name of another folder", "title = X\nname = y\nlanguage = C\nlibrary = l\nlayer = loop\n" RUN,
     0, AT(2, "name 'y' is not the folder's, 'x'")},
    {"name with other letters",
     "name = X_1\ntitle = X\nlanguage = C\nlibrary = l\nlayer = loop\n" RUN, 0,
     AT(1, "name 'X_1' may hold a-z, 0-9 and, not at its start, -")},
    {"bad layer", "name = x\ntitle = X\nlanguage = C\nlibrary = l\nlayer = loops\n" RUN, 0,
     AT(5, "layer 'loops' is none of: loop loop+parser server framework")},
    {"bad status", GOOD RUN "status = retired\n", 0,
     AT(8, "status 'retired' is none of: active, reference, broken: REASON")},
    {"sources in another language", GOOD "sources = a.c main.go\nrun = {bin} {port}\n", 0,
     AT(6, "sources: 'main.go' is neither .c nor .cc; another language has a command of its own: "
           "build = ")},
    {"build beside sources", GOOD RUN "build = cc -o {bin} {dir}/main.c\n", 0,
     AT(8, "build beside sources: one of them makes {bin}")},
    {"build to nowhere", GOOD "build = go build\nrun = {bin} {port}\n", 0,
     AT(6, "build has no {bin}: where the program is to be put")},
    {"build with a port", GOOD "build = go {bin} {port}\nrun = {bin} {port}\n", 0,
     AT(6, "build may hold {bin} and {dir}, and no other placeholder")},
    {"build with a quote", GOOD "build = sh -c 'x {bin}'\nrun = {bin} {port}\n", 0,
     AT(6, "build holds a quote; it is a command and its words")},
    {"bad set", GOOD RUN "set = more\n", 0, AT(8, "set 'more' is none of: default, extra")},
    {"broken without a reason", GOOD RUN "status = broken:\n", 0,
     AT(8, "status 'broken:' is none of: active, reference, broken: REASON")},
    {"bad tuning", GOOD RUN "tuning = stocked\n", 0,
     AT(8, "tuning 'stocked' is neither 'stock' nor 'tuned', with ': why' after it")},
    {"unknown placeholder", GOOD "sources = a.c\nrun = {bin} {prot} {port}\n", 0,
     AT(7, "unknown placeholder '{prot}'; known: {bin} {dir} {port} {workers} "
           "{config} {tmp}")},
    {"a config's path without one", GOOD "run = x {config}\n", 0,
     AT(6, "{config} without the key config: no file is made")},
    {"a config elsewhere", GOOD RUN "config = ../x.in\n", 0,
     AT(8, "config '../x.in' is not a file within the entry's folder")},
    {"a config by its whole path", GOOD RUN "config = /etc/x\n", 0,
     AT(8, "config '/etc/x' is not a file within the entry's folder")},
    {"unclosed placeholder", GOOD "sources = a.c\nrun = {bin} {port\n", 0,
     AT(7, "unknown placeholder '{port'; known: ")},
    {"stray brace", GOOD "sources = a.c\nrun = {bin} {port} }\n", 0,
     AT(7, "unknown placeholder '}'; known: ")},
    {"unknown placeholder in version", GOOD RUN "version = {bin} {vers}\n", 0,
     AT(8, "unknown placeholder '{vers}'; known: ")},
    {"bin without sources", GOOD "run = {bin} {port}\n", 0,
     AT(6, "{bin} without sources or build: nothing is built")},
    {"no port", GOOD "run = node {dir}/server.js\n", 0,
     AT(6, "run has no {port}: the server could not be told where to listen")},
    {"quotes", GOOD "run = sh -c 'serve {port}'\n", 0,
     AT(6, "run holds a quote; it is split on blanks and nothing else")},
    {"bad workloads", GOOD RUN "workloads = hello,close\n", 0,
     AT(8, "workloads 'hello,close' may hold names of a-z, 0-9 and -, split on blanks")},
    {"waiver without why", GOOD RUN "waive = G03\n", 0,
     AT(8, "waive 'G03' is not of the form CASE: WHY; CASE: WHY")},
    {"waiver with a blank why", GOOD RUN "waive = G03: \t; F05: b\n", 0,
     AT(8, "waive 'G03: \t; F05: b' is not of the form CASE: WHY; CASE: WHY")},
    {"waiver in small letters", GOOD RUN "waive = g03: a\n", 0, AT(8, "waive 'g03: a' is not ")},
    {"waiver of another form", GOOD RUN "waive = A01: a; G3: b\n", 0,
     AT(8, "waive 'G3: b' is not ")},
    {"waiver of two cases for one why", GOOD RUN "waive = A01 A02: a\n", 0,
     AT(8, "waive 'A01 A02: a' is not ")},
    {"waiver that ends in a semicolon", GOOD RUN "waive = A01: a;\n", 0, AT(8, "waive '' is not ")},
    {"one case waived twice", GOOD RUN "waive = A01: a; F05: b; A01: c\n", 0,
     AT(8, "A01 is waived twice")},
};

#define REFUSALS (sizeof refusals / sizeof refusals[0])

static void is_refused(void **state)
{
    const struct refusal *refusal = *state;
    char *root = folder_make();
    folder_write(root, "servers/x/entry.conf", refusal->text,
                 refusal->size > 0 ? refusal->size : strlen(refusal->text));
    struct entry_list list;
    struct err err = {0};
    int status = entry_list_read(root, "/build", &list, &err);
    folder_remove(root);
    assert_int_equal(status, -EINVAL);
    assert_int_equal(err.code, EINVAL);
    assert_int_equal(list.count, 0);
    if (strncmp(err.text, refusal->message, strlen(refusal->message)) != 0)
        assert_string_equal(err.text, refusal->message);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        char *root = folder_make();
        folder_print(root, "servers/x/other", "");
        char path[4096];
        snprintf(path, sizeof path, "%s/servers/x/entry.conf", root);
        if (kind == 0)
            assert_int_equal(mkfifo(path, 0600), 0);
        else
            assert_int_equal(symlink("/dev/zero", path), 0);
        struct entry_list list;
        struct err err = {0};
        assert_int_equal(entry_list_read(root, "/build", &list, &err), -EINVAL);
        assert_string_equal(err.text, "servers/x/entry.conf: not a regular file; a manifest is a "
                                      "text of key = value lines");
        folder_remove(root);
    }
}

static void too_large_is_refused(void **state)
{
    (void)state;
    char *root = folder_make();
    size_t size = 70000;
    char *text = malloc(size);
    memset(text, '#', size);
    folder_write(root, "servers/x/entry.conf", text, size);
    free(text);
    struct entry_list list;
    struct err err = {0};
    assert_int_equal(entry_list_read(root, "/build", &list, &err), -EINVAL);
    assert_string_equal(err.text, "servers/x/entry.conf: larger than 65535 bytes");
    folder_remove(root);
}

static void a_folder_in_its_place_is_refused(void **state)
{
    (void)state;
    char *root = folder_make();
    folder_print(root, "servers/x/entry.conf/file", "");
    struct entry_list list;
    struct err err = {0};
    assert_int_equal(entry_list_read(root, "/build", &list, &err), -EISDIR);
    assert_string_equal(err.text, "servers/x/entry.conf: Is a directory");
    folder_remove(root);
}

static void all_keys_are_read(void **state)
{
    (void)state;
    char *root = folder_make();
    folder_print(root, "servers/x/entry.conf",
                 "# A comment = with $ and \\\n"
                 "name = x\n"
                 "title=X, the \xC3\xA9lan\n"
                 "language\t=\tC\n"
                 "library = libx  \n"
                 "layer = loop+parser\n"
                 "\n"
                 "parser = its own\n"
                 "model = a = b\n"
                 "tuning = tuned: for speed\n"
                 "jit = X9\n"
                 "config = x.in\n"
                 "sources = main.c ../common/a.c\n"
                 "pkgs = x -ly\n"
                 "headers = x/x.hpp\n"
                 "needs = sh\n"
                 "apt = libx-dev\n"
                 "run = {bin} --port={port} {dir}/a:{dir}/b {workers}\n"
                 "version = {bin} --version\n"
                 "workloads = hello close\n"
                 "status = broken: crashes\n"
                 "notes = none");
    struct entry_list list;
    struct err err = {0};
    assert_int_equal(entry_list_read(root, "/build", &list, &err), 0);
    assert_int_equal(list.count, 1);
    const struct entry *x = &list.items[0];
    assert_string_equal(x->name, "x");
    assert_string_equal(x->title, "X, the \xC3\xA9lan");
    assert_string_equal(x->language, "C");
    assert_string_equal(x->library, "libx");
    assert_string_equal(x->layer, "loop+parser");
    assert_string_equal(x->parser, "its own");
    assert_string_equal(x->model, "a = b");
    assert_string_equal(x->tuning, "tuned: for speed");
    assert_string_equal(x->jit, "X9");
    assert_string_equal(x->config, "x.in");
    assert_string_equal(x->sources, "main.c ../common/a.c");
    assert_string_equal(x->pkgs, "x -ly");
    assert_string_equal(x->headers, "x/x.hpp");
    assert_string_equal(x->needs, "sh");
    assert_string_equal(x->apt, "libx-dev");
    assert_string_equal(x->version, "{bin} --version");
    assert_string_equal(x->workloads, "hello close");
    assert_string_equal(x->notes, "none");
    assert_int_equal(x->status, ENTRY_BROKEN);
    assert_string_equal(x->status_reason, "crashes");
    assert_string_equal(x->binary, "/build/servers/x");
    assert_string_equal(x->folder + strlen(root), "/servers/x");

    char **argv = entry_argv(
        x, x->run, &(struct entry_fill){.port = 8080, .workers = 4, .tmp = "/t", .config = "/t/c"});
    char files[600];
    snprintf(files, sizeof files, "%s/a:%s/b", x->folder, x->folder);
    assert_string_equal(argv[0], "/build/servers/x");
    assert_string_equal(argv[1], "--port=8080");
    assert_string_equal(argv[2], files);
    assert_string_equal(argv[3], "4");
    assert_null(argv[4]);
    entry_argv_free(argv);
    entry_list_free(&list);
    folder_remove(root);
}

static void what_is_not_given_is_empty(void **state)
{
    (void)state;
    char *root = folder_make();
    folder_print(root, "servers/x/entry.conf", GOOD "run = sh {port}\nstatus = reference\n");
    struct entry_list list;
    assert_int_equal(entry_list_read(root, "/build", &list, NULL), 0);
    assert_string_equal(list.items[0].pkgs, "");
    assert_string_equal(list.items[0].notes, "");
    assert_string_equal(list.items[0].status_reason, "");
    assert_int_equal(list.items[0].status, ENTRY_REFERENCE);
    assert_true(list.items[0].ready);
    entry_list_free(&list);
    entry_list_free(&list); /* again does no harm */
    folder_remove(root);
}

static void waivers_are_read_one_by_one(void **state)
{
    (void)state;
    static const struct {
        const char *id, *why;
    } expected[] = {{"G03", "a bug: number 7"}, {"F05", "b"}, {"A01", "c, d"}};
    char *root = folder_make();
    folder_print(root, "servers/x/entry.conf",
                 GOOD RUN "waive = G03:  a bug: number 7 \t;F05:b ;  A01: c, d\n");
    struct entry_list list;
    struct err err = {0};
    char id[ENTRY_CASE_BYTES];
    assert_int_equal(entry_list_read(root, "/build", &list, &err), 0);
    const char *at = list.items[0].waive;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        char *why = entry_next_waiver(&at, id);
        assert_non_null(why);
        assert_string_equal(id, expected[i].id);
        assert_string_equal(why, expected[i].why);
        free(why);
    }
    assert_null(entry_next_waiver(&at, id));
    entry_list_free(&list);
    folder_remove(root);
}

static void folders_without_a_manifest_are_skipped(void **state)
{
    (void)state;
    char *root = folder_make();
    folder_print(root, "servers/common/server.c", "int x;\n");
    folder_print(root, "servers/entry.mk", "all:\n");
    folder_print(root, "servers/.hidden/entry.conf", "nonsense\n");
    struct entry_list list;
    struct err err = {0};
    assert_int_equal(entry_list_read(root, "/build", &list, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/servers holds an entry.conf"));
    folder_print(root, "servers/x/entry.conf", GOOD RUN);
    folder_print(root, "servers/b/entry.conf",
                 "name = b\ntitle = B\nlanguage = C\nlibrary = l\nlayer = server\n" RUN);
    assert_int_equal(entry_list_read(root, "/build", &list, &err), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].name, "b");
    assert_string_equal(list.items[1].name, "x");
    entry_list_free(&list);
    folder_remove(root);
    assert_int_equal(entry_list_read("/nowhere", "/build", &list, &err), -ENOENT);
    assert_non_null(strstr(err.text, "--root names the folder that holds servers/"));
}

/* Reads one entry with these lines added, and says what is missing. */
static char *missing_with(const char *root, const char *lines)
{
    char text[1000];
    char build[500];
    snprintf(text, sizeof text, GOOD "%s", lines);
    snprintf(build, sizeof build, "%s/build", root);
    folder_print(root, "servers/x/entry.conf", text);
    struct entry_list list;
    assert_int_equal(entry_list_read(root, build, &list, NULL), 0);
    char *missing = strdup(list.items[0].missing);
    assert_int_equal(list.items[0].ready, missing[0] == '\0');
    entry_list_free(&list);
    return missing;
}

#define ASSERT_MISSING(root, lines, expected)                                                      \
    do {                                                                                           \
        char *missing = missing_with(root, lines);                                                 \
        assert_string_equal(missing, expected);                                                    \
        free(missing);                                                                             \
    } while (0)

static void what_is_missing_is_named(void **state)
{
    (void)state;
    char *root = folder_make();
    ASSERT_MISSING(root, RUN "apt = libx-dev liby-dev\n",
                   "not built; needs apt packages: libx-dev liby-dev; make showdown builds it");
    ASSERT_MISSING(root, RUN, "not built; make showdown builds it");
    ASSERT_MISSING(root, "needs = sh no-such-program /no/such/file /bin/sh\nrun = a {port}\n",
                   "no-such-program /no/such/file not found");
    ASSERT_MISSING(root, "needs = no-such-program\napt = gone\nrun = a {port}\n",
                   "no-such-program not found; needs apt packages: gone");
    ASSERT_MISSING(root, "needs = sh /bin/sh\nrun = a {port}\n", "");

    char path[600];
    folder_print(root, "build/servers/x", "#!/bin/sh\n");
    snprintf(path, sizeof path, "%s/build/servers/x", root);
    chmod(path, 0755);
    ASSERT_MISSING(root, RUN, "");
    ASSERT_MISSING(root, RUN "needs = no-such-program\n", "no-such-program not found");
    folder_remove(root);
}

static struct entry_list named(struct entry *items, size_t count)
{
    return (struct entry_list){.items = items, .count = count};
}

static void the_nearest_name_is_suggested(void **state)
{
    (void)state;
    struct entry items[] = {{.name = "h2o"},   {.name = "libev"},    {.name = "libevent"},
                            {.name = "libuv"}, {.name = "luvit"},    {.name = "libmicrohttpd"},
                            {.name = "a"},     {.name = "node-http"}};
    struct entry_list list = named(items, sizeof items / sizeof items[0]);
    static const struct {
        const char *asked, *near;
    } cases[] = {{"libub", "libuv"},        {"libevnt", "libevent"}, {"micro", "libmicrohttpd"},
                 {"nodehttp", "node-http"}, {"h20", "h2o"},          {"libeb", "libev"},
                 {"luvitt", "luvit"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = {0};
        char expected[200];
        snprintf(expected, sizeof expected,
                 "unknown entry '%s'; did you mean '%s'? All: h2o libev ", cases[i].asked,
                 cases[i].near);
        assert_null(entry_find(&list, cases[i].asked, &err));
        assert_int_equal(err.code, ENOENT);
        if (strncmp(err.text, expected, strlen(expected)) != 0)
            assert_string_equal(err.text, expected);
    }
    struct err err = {0};
    assert_ptr_equal(entry_find(&list, "luvit", &err), &items[4]);
    assert_null(entry_find(&list, "postgresql", &err));
    assert_non_null(strstr(err.text, "unknown entry 'postgresql'; one of: h2o libev"));
    char long_name[300];
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    assert_null(entry_find(&list, long_name, &err));
    assert_null(entry_find(&list, "", &err));
}

static void hash_of(const char *root, char hex[17])
{
    char folder[500];
    snprintf(folder, sizeof folder, "%s/servers/x", root);
    struct entry entry = {.folder = folder};
    entry_hash(&entry, hex);
}

static void the_hash_is_stable_and_sees_changes(void **state)
{
    (void)state;
    char *root = folder_make();
    char *other = folder_make();
    char first[17];
    char again[17];
    for (int i = 0; i < 2; i++) { /* elsewhere, written in another order */
        folder_print(i == 0 ? root : other, i == 0 ? "servers/x/a.c" : "servers/x/lib/b.c", "1");
        folder_print(i == 0 ? root : other, i == 1 ? "servers/x/a.c" : "servers/x/lib/b.c", "1");
    }
    hash_of(root, first);
    hash_of(other, again);
    assert_string_equal(first, again);
    assert_string_equal(first, "e048207a2f307918"); /* another program made it from the contract */

    folder_print(other, "servers/x/a.c", "2");
    hash_of(other, again);
    assert_string_not_equal(first, again);
    folder_print(other, "servers/x/a.c", "1");
    hash_of(other, again);
    assert_string_equal(first, again);
    folder_print(other, "servers/x/empty", "");
    hash_of(other, again);
    assert_string_not_equal(first, again);
    folder_remove(root);
    folder_remove(other);
}

static void a_version_is_the_first_line(void **state)
{
    (void)state;
    char *root = folder_make();
    struct entry entry = {.folder = root, .binary = "/none", .version = "sh version.sh"};
    folder_print(root, "version.sh", "echo 'x 1.2'; echo more; sleep 100 & exit 0");
    char *version = entry_version(&entry);
    assert_string_equal(version, "x 1.2");
    free(version);
    folder_print(root, "version.sh", "echo no such flag; exit 1");
    assert_null(entry_version(&entry));
    entry.version = "{bin} --version";
    assert_null(entry_version(&entry));
    entry.version = "";
    assert_null(entry_version(&entry));
    folder_remove(root);
}

int main(void)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(too_large_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(a_folder_in_its_place_is_refused),
        cmocka_unit_test(all_keys_are_read),
        cmocka_unit_test(what_is_not_given_is_empty),
        cmocka_unit_test(waivers_are_read_one_by_one),
        cmocka_unit_test(folders_without_a_manifest_are_skipped),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(the_nearest_name_is_suggested),
        cmocka_unit_test(the_hash_is_stable_and_sees_changes),
        cmocka_unit_test(a_version_is_the_first_line),
    };
    enum { OTHERS = sizeof others / sizeof others[0] };
    struct CMUnitTest tests[REFUSALS + OTHERS];
    for (size_t i = 0; i < REFUSALS; i++)
        tests[i] = (struct CMUnitTest){.name = refusals[i].test,
                                       .test_func = is_refused,
                                       .initial_state = (void *)(uintptr_t)&refusals[i]};
    memcpy(tests + REFUSALS, others, sizeof others);
    return _cmocka_run_group_tests("entry.conf", tests, REFUSALS + OTHERS, NULL, NULL);
}
