#!/bin/bash
# docs/ADDING.md, run as written in a copy of the tree: each block of commands, and of the lines shown
# under it what does not change from run to run. Then the other templates, and what is refused.
. "$(dirname "$0")/lib.bash"

rm -rf "$root"
mkdir -p "$root"
(cd "$repository" && git ls-files -z --cached --others --exclude-standard | xargs -0 cp -a --parents -t "$root")
cp -a "$build" "$root/build"
unset MAKEFLAGS MAKELEVEL BUILD SAN
cd "$root" || exit 1

# step N: the Nth block's commands in $tmp/step, and what is shown under it in $tmp/shown.
step() {
    awk -v n="$1" -v step="$tmp/step" -v shown="$tmp/shown" '
        /^```sh$/ { block++; inside = 1; next }
        /^```$/ { inside = 0; after = block; next }
        inside && block == n { print > step }
        !inside && after == n && /^    / { print substr($0, 5) > shown; seen = 1; next }
        !inside && after == n && seen && !/^$/ { after = 0 }
    ' docs/ADDING.md
}

# What is the same in each run: words up to the first that holds a figure.
constant() {
    sed -E 's/[^ ]*[0-9].*//; s/ +$//'
}

steps=$(grep -c '^```sh$' docs/ADDING.md)
is "the page has its five blocks" "$steps" 5
for n in $(seq "$steps"); do
    rm -f "$tmp/step" "$tmp/shown"
    step "$n"
    bash -e "$tmp/step" >"$tmp/out" 2>"$tmp/err" </dev/null
    is "block $n ends well: $(head -1 "$tmp/step")" "$? $(tail -3 "$tmp/err")" "0 $(tail -3 "$tmp/err")"
    [ -e "$tmp/shown" ] || continue
    while read -r line; do
        prints "block $n prints: $line" "$tmp/out" "$line"
    done < <(constant <"$tmp/shown" | grep .)
done
has "the new row is in the table" "$tmp/out" "mine"

# A template's gate, with nothing changed in it.
template() { # NAME KIND
    make -s new ENTRY="$1" TEMPLATE="$2" >/dev/null
    make -s "entry-$1" >"$tmp/make.log" 2>&1
    is "template $2 builds" "$? $(cat "$tmp/make.log")" "0 "
    build/showdown check "$1" --gate-only >"$tmp/out" 2>&1
    is "template $2 passes what gates" "$? $(grep FAILED "$tmp/out")" "0 "
    rm -r "servers/$1"
}
template a-script lua
if [ -e /usr/lib/nginx/modules/ngx_http_echo_module.so ]; then
    template a-program command
else
    skip "template command" "nginx is not installed"
fi

refused() { # TITLE TEXT ARGUMENT…
    local title=$1 text=$2
    shift 2
    make -s new "$@" >"$tmp/out" 2>&1
    is "$title: refused" "$(($? != 0))" 1
    prints "$title: why" "$tmp/out" "$text"
}
refused "no name" "no name: make new ENTRY=name TEMPLATE=c" TEMPLATE=c
refused "a bad name" "may hold a-z, 0-9" ENTRY=Mine TEMPLATE=c
refused "a folder that is there" "exists already" ENTRY=mine TEMPLATE=c
refused "the shared folder" "is taken" ENTRY=common TEMPLATE=c
refused "the word for every entry" "stands for every entry" ENTRY=all TEMPLATE=c
refused "no template" "no template" ENTRY=other
refused "an unknown template" "unknown template 'rust'; templates: c command lua" ENTRY=other TEMPLATE=rust
refused "a way out" "unknown template" ENTRY=other TEMPLATE=../servers

# What check-entry must find; that it goes through the whole contract was seen above.
find tests/contract -name '*.md' ! -name A02.md ! -name D01.md -delete
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
