#!/bin/bash
# Adding an entry touches one folder: a copy of the tree gets a throwaway entry in C, make builds
# it, run shows its row, and no other file has changed.
. "$(dirname "$0")/lib.bash"

cp -r "$repository/Makefile" "$repository/harness" "$repository/scripts" "$tmp/root/"
cp -r "$repository/servers/common" "$repository/servers/entry.mk" "$root/servers/"
entry plain plain
(cd "$root" && find . -type f -exec cksum {} + | sort -k3) >"$tmp/before"

mkdir "$root/servers/throwaway"
cp "$repository/tests/stubs/stub.c" "$root/servers/throwaway/main.c"
cat >"$root/servers/throwaway/entry.conf" <<'END'
name = throwaway
title = added by a test
language = C
library = none
layer = server
parser = own
model = epoll
tuning = stock
sources = main.c
run = {bin} plain --port {port}
END
(cd "$root" && env -u MAKEFLAGS -u MAKELEVEL make BUILD="$tmp/build" servers) >"$tmp/make.log" 2>&1
is "make builds the new entry" "$?" 0
is "its program is there" "$([ -x "$tmp/build/servers/throwaway" ]; echo $?)" 0
show list
has "list names it" "$tmp/out" "throwaway"
show run $brief --format json
exits "run: exit status" 0
row "its row is there, ranked" "$tmp/out" throwaway '.status == "ranked" and .req_per_s > 0'
show report
has "its row is in the table" "$tmp/out" "throwaway"
rm -r "$root/results" "$root/servers/throwaway"
(cd "$root" && find . -type f -exec cksum {} + | sort -k3) >"$tmp/after"
is "no other file changed" "$(diff "$tmp/before" "$tmp/after")" ""

# One in C++: a compiler or a header that is missing skips it, with what it needs, and fails nothing.
make_servers() { (cd "$root" && env -u MAKEFLAGS -u MAKELEVEL make BUILD="$tmp/build" "$@" servers) >"$tmp/make.log" 2>&1; }
mkdir "$root/servers/plusplus"
echo 'int main() { return nullptr != nullptr; }' >"$root/servers/plusplus/main.cc"
manifest="name = plusplus
title = added by a test
language = C++
library = none
layer = server
sources = main.cc
apt = g++ libnosuch-dev
run = {bin} --port {port}"
echo "$manifest" >"$root/servers/plusplus/entry.conf"
if command -v g++ >/dev/null; then
    make_servers CXX=g++
    is "C++: make builds it" "$?" 0
    is "C++: its program is there" "$([ -x "$tmp/build/servers/plusplus" ]; echo $?)" 0
    printf '%s\nheaders = vector no/such.hpp\n' "$manifest" >"$root/servers/plusplus/entry.conf"
    make_servers CXX=g++
    is "no header: make passes" "$?" 0
    has "no header: what it needs is said" "$tmp/make.log" \
        '^skipped plusplus: no/such.hpp not found; needs: g\+\+ libnosuch-dev$'
else
    skip "C++: make builds it; a missing header" "no g++"
fi
make_servers CXX=nosuch-c++
is "no C++ compiler: make passes" "$?" 0
has "no C++ compiler: what it needs is said" "$tmp/make.log" \
    '^skipped plusplus: nosuch-c\+\+ not found; needs: g\+\+ libnosuch-dev$'
show list
has "list: it was not built" "$tmp/out" 'plusplus .*not built; needs apt packages: g\+\+ libnosuch-dev'

# One built by a command of its own, as another language has it; and where that command is missing.
mkdir "$root/servers/made"
cp "$repository/tests/stubs/stub.c" "$root/servers/made/server.c"
sed 's/^name = .*/name = made/; s/^sources = .*/build = cc -D_GNU_SOURCE -o {bin} {dir}\/server.c/; s/^run = .*/run = {bin} plain --port {port}/' \
    <<<"$manifest" >"$root/servers/made/entry.conf"
make_servers ENTRIES=made
is "a build command: make runs it" "$? $([ -x "$tmp/build/servers/made" ]; echo $?)" "0 0"
show run made $brief --format json
row "a build command: its row is ranked" "$tmp/out" made '.status == "ranked"'
touch -d "1 hour ago" "$tmp/build/servers/made"
make_servers ENTRIES=made
is "a build command: made anew when a file of the folder is newer" \
    "$(find "$tmp/build/servers/made" -mmin -30 | wc -l)" 1
sed -i 's/^build = cc/build = nosuch-compiler/' "$root/servers/made/entry.conf"
make_servers ENTRIES=made
is "no build command: make passes" "$?" 0
has "no build command: what it needs is said" "$tmp/make.log" "^skipped made: nosuch-compiler not found"
