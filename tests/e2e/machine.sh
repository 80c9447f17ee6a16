#!/bin/bash
# The machine is not as wanted: one core, a full disk, no root, no node, no library, a port in use.
. "$(dirname "$0")/lib.bash"

entry plain plain
entry other plain

first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
taskset -c "$first" "$showdown" --root "$root" --build "$tmp/build" run $brief --format json \
    >"$tmp/out" 2>"$tmp/err" </dev/null
status=$?
is "one core: no failure" "$([ "$status" = 0 ] || [ "$status" = 4 ]; echo $?)" 0
json "one core: nothing is ranked" "$tmp/out" 'all(.entries[]; has("rank") | not)'
json "one core: the figures are there" "$tmp/out" 'all(.entries[]; .req_per_s > 0)'
taskset -c "$first" "$showdown" --root "$root" --build "$tmp/build" report >"$tmp/out" 2>>"$tmp/err"
cat "$tmp/err" >>"$tmp/out"
has "one core: says that it ranks nothing" "$tmp/out" "one (core|CPU)|single (core|CPU)|same (core|CPU)"

# A program that is not on PATH, as node may not be.
mkdir -p "$root/servers/needs-node"
cat >"$root/servers/needs-node/entry.conf" <<'END'
name = needs-node
title = a server on Node
language = JavaScript
library = node:http
layer = framework
parser = llhttp
model = libuv
tuning = stock
needs = no-such-interpreter
apt = nodejs-of-tests
run = no-such-interpreter {dir}/main.js --port {port}
END
mkdir -p "$root/servers/needs-library"
cat >"$root/servers/needs-library/entry.conf" <<'END'
name = needs-library
title = a server whose library is missing
language = C
library = libnosuch
layer = loop
parser = own
model = epoll
tuning = stock
sources = main.c
pkgs = libnosuch
apt = libnosuch-dev
run = {bin} --port {port}
END
mkdir -p "$root/servers/known-broken"
sed 's/^name = .*/name = known-broken/' "$root/servers/plain/entry.conf" \
    >"$root/servers/known-broken/entry.conf"
echo 'status = broken: answers HEAD with a body' >>"$root/servers/known-broken/entry.conf"
show run $brief --format json
cp "$tmp/out" "$tmp/run.json"
exits "missing programs and libraries are no failure" 0
row "a missing program: skipped" "$tmp/run.json" needs-node '.status == "skipped"'
row "a missing program: what it needs" "$tmp/run.json" needs-node \
    '.reason | test("nodejs-of-tests")'
row "a missing library: skipped" "$tmp/run.json" needs-library '.status == "skipped"'
row "a missing library: which package" "$tmp/run.json" needs-library \
    '.reason | test("libnosuch-dev")'
row "a skipped entry has no figures" "$tmp/run.json" needs-node \
    '[has("rank", "req_per_s", "requests", "errors", "rss_peak_bytes")] | any | not'
row "known to be broken: shown as that" "$tmp/run.json" known-broken '.status == "broken"'
row "known to be broken: the reason" "$tmp/run.json" known-broken \
    '.reason | test("answers HEAD with a body")'
row "the others are measured" "$tmp/run.json" plain '.status == "ranked"'
show list
exits "list: exit status" 0
has "list: what is missing" "$tmp/out" "needs-library.*libnosuch-dev"
show list --json
json "list --json: every entry" "$tmp/out" \
    '[.. | objects | .name? // empty] | contains(["plain", "needs-node", "known-broken"])'
show serve needs-library --port 23999
exits "serve of an entry that cannot run: exit status" 1
has "serve of an entry that cannot run: what it needs" "$tmp/err" "libnosuch-dev"
rm -r "$root/servers/needs-node" "$root/servers/needs-library" "$root/servers/known-broken"

serve_stub plain
show serve plain --port "$port"
exits "serve on a port in use: exit status" 1
has "serve on a port in use: the message" "$tmp/err" "$port.*in use|in use.*$port"
stop_stub

"$showdown" --root "$root" --build "$tmp/build" serve plain --port "$port" \
    >"$tmp/out" 2>"$tmp/err" </dev/null &
serve_pid=$!
for i in $(seq 100); do listens && break; sleep 0.05; done
is "serve: the entry answers" "$(curl -s --max-time 2 "http://127.0.0.1:$port/")" "Hello World"
kill -INT "$serve_pid" 2>/dev/null || kill -TERM "$serve_pid"
sleep 0.5
kill -TERM "$serve_pid" 2>/dev/null
wait "$serve_pid"
is "serve: ended by a signal, exit status" "$?" 0
nothing_left "serve: nothing is left behind"
entry exits exit-after 1
"$showdown" --root "$root" --build "$tmp/build" serve exits --port "$port" \
    >"$tmp/out" 2>"$tmp/err" </dev/null &
serve_pid=$!
for i in $(seq 100); do listens && break; sleep 0.05; done
curl -s --max-time 2 "http://127.0.0.1:$port/" "http://127.0.0.1:$port/" >/dev/null
curl -s --max-time 2 "http://127.0.0.1:$port/" "http://127.0.0.1:$port/" >/dev/null
wait "$serve_pid"
is "serve: the server ends by itself, exit status" "$?" 1
has "serve: the server ends by itself, the reason" "$tmp/err" "status 3"
rm -r "$root/servers/exits"

# No io_uring: refused as by Docker's seccomp profile (EPERM), or a kernel without it (ENOSYS).
if "$build/stubs/no-uring" 1 true 2>/dev/null; then
    serve_stub plain
    for refusal in 1 38; do
        "$build/stubs/no-uring" "$refusal" "$showdown" hammer "http://127.0.0.1:$port/" -n 100 -c 4 \
            --json >"$tmp/out" 2>"$tmp/err"
        json "io_uring refused with errno $refusal: hammer takes epoll and says why" "$tmp/out" \
            '.engine == "epoll" and (.engine_reason | test("io_uring")) and .valid == 100'
        "$build/stubs/no-uring" "$refusal" "$showdown" hammer "http://127.0.0.1:$port/" -n 100 -c 4 \
            --engine io_uring >"$tmp/out" 2>"$tmp/err"
        is "io_uring refused with errno $refusal, but asked for: exit status" "$?" 1
        has "io_uring refused with errno $refusal, but asked for: the message" "$tmp/err" "io_uring"
    done
    stop_stub
    "$build/stubs/no-uring" 1 "$showdown" --root "$root" --build "$tmp/build" run $brief \
        --format json >"$tmp/out" 2>"$tmp/err" </dev/null
    is "io_uring refused: run ends well" "$?" 0
    json "io_uring refused: both ranked" "$tmp/out" '[.entries[].status] == ["ranked", "ranked"]'
    if [ -x "$build/servers/limit-uring" ]; then
        "$build/stubs/no-uring" 1 "$build/servers/limit-uring" --port "$next_port" 2>"$tmp/err"
        is "io_uring refused: its reference says that it can't run here" "$?" 77
        has "io_uring refused: its reference says why" "$tmp/err" "refuses io_uring"
    fi
else
    skip "io_uring refused" "seccomp filters are refused here"
fi

if [ "$(id -u)" = 0 ]; then
    rm -rf "$root/results"
    chmod 777 "$root"
    setpriv --reuid 65534 --regid 65534 --clear-groups env TMPDIR="$TMPDIR" \
        timeout 60 "$showdown" --root "$root" --build "$tmp/build" run $brief --format json \
        >"$tmp/out" 2>"$tmp/err" </dev/null
    is "an unprivileged user: exit status" "$?" 0
    json "an unprivileged user: both ranked" "$tmp/out" \
        '[.entries[].status] == ["ranked", "ranked"]'
    rm -rf "$root/results"
    chmod 755 "$root"
    setpriv --reuid 65534 --regid 65534 --clear-groups env TMPDIR="$TMPDIR" \
        timeout 60 "$showdown" --root "$root" --build "$tmp/build" run $brief --format json \
        >"$tmp/out" 2>"$tmp/err" </dev/null
    is "a root folder that may not be written: exit status" "$?" 1
    has "a root folder that may not be written: the message" "$tmp/err" "results.*ermission"
else
    skip "an unprivileged user" "these tests are run by one"
fi

mkdir -p "$root/results"
rm -rf "$root/results"/*
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=64k tmpfs "$root/results" 2>/dev/null; then
    show run --boots 1 --budget 10s --slice 20ms --seed 7
    exits "the disk fills up in the middle: exit status" 1
    has "the disk fills up in the middle: the message" "$tmp/err" "results.*[Nn]o space"
    has "the disk fills up in the middle: what was measured is printed" "$tmp/out" "plain"
    record=$(ls -d "$root"/results/*-* | head -1)
    is "the disk fills up in the middle: every line on it is whole" \
        "$(jq -c . "$record/slices.jsonl" 2>&1 >/dev/null | head -1)" ""
    head -c 100k /dev/zero >"$root/results/ballast" 2>/dev/null
    show run $brief
    exits "a full disk: exit status" 1
    has "a full disk: the message" "$tmp/err" "results.*[Nn]o space"
    umount "$root/results"
    nothing_left "a full disk: nothing is left behind"
else
    skip "a full disk" "mounting a small tmpfs is refused here"
fi
nothing_left "nothing is left behind"
