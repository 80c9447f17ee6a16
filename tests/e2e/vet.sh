#!/bin/bash
# What make check-entry must find, in a template's entry with one fault at a time. That it goes
# through the whole contract is seen in adding.sh; here two pages of it will do.
. "$(dirname "$0")/lib.bash"

whole_tree

find tests/contract -name '*.md' ! -name A02.md ! -name D01.md -delete
make -s new ENTRY=mine TEMPLATE=c >/dev/null
broken() { # TITLE TEXT SED-SCRIPT FILE
    cp "$4" "$tmp/kept"
    sed -i "$3" "$4"
    make -s check-entry ENTRY=mine >"$tmp/out" 2>&1
    is "$1: fails" "$(($? != 0))" 1
    prints "$1: is told" "$tmp/out" "$2"
    cp "$tmp/kept" "$4"
}
broken "an unknown key" "manifest   FAIL  servers/mine/entry.conf:3: unknown key 'titel'" 's/^title/titel/' servers/mine/entry.conf
broken "what does not compile" "build      FAIL" 's/^static int loop_fd/static imt loop_fd/' servers/mine/main.c
broken "a library that apt does not bring" "build      FAIL  nosuchlib not found: apt in entry.conf" 's/^pkgs = .*/pkgs = llhttp nosuchlib/' servers/mine/entry.conf
broken "another language" "manifest   FAIL  servers/mine/entry.conf" 's/^sources = main.c/sources = main.go/' servers/mine/entry.conf
broken "a server that ends under load" "the server exited with status 9; it last printed 'full" 's/^    c->fd = fd;/    static int count; if (++count > 40) { fputs("full", stderr); exit(9); }\n    c->fd = fd;/' servers/mine/main.c
broken "a server that prints" "output     FAIL  it prints under load" 's/^        reply_refresh();.*/        reply_refresh(); puts("x"); fflush(stdout);/' servers/mine/main.c
broken "a server that ignores SIGTERM" "SIGTERM    FAIL  ignored for 2 s" 's/        running = false;/        running = true;/' servers/mine/main.c
broken "a server that keeps memory" "memory     FAIL  grew from" 's/^    if (bytes > 0)$/    char *volatile kept = malloc(64); *kept = 1;\n    if (bytes > 0)/' servers/mine/main.c

# One that owns up to what it can't do, and one that does so without need.
sed -i 's/^status = active/status = broken: prints all it reads/' servers/mine/entry.conf
make -s check-entry ENTRY=mine >"$tmp/out" 2>&1
is "broken without need: fails" "$(($? != 0))" 1
prints "broken without need: is told" "$tmp/out" "status     FAIL  nothing fails, but the manifest says broken"
sed -i 's/^        reply_refresh();.*/        reply_refresh(); puts("x"); fflush(stdout);/' servers/mine/main.c
make -s check-entry ENTRY=mine >"$tmp/out" 2>&1
is "broken as it says: is no failure" "$?" 0
prints "broken as it says: what fails is told" "$tmp/out" "output     FAIL  it prints under load"
