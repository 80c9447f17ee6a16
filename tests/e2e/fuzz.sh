#!/bin/bash
# The fuzz driver for servers, short and seeded: nothing in a good server, and what is planted in a
# bad one is found.
. "$(dirname "$0")/lib.bash"
cp "$repository"/tests/contract/*.md "$root/tests/contract/"
entry good plain
entry dying die-after 40
entry wrong wrong-body-after 60

fuzz() {
    timeout 60 "$build/fuzz/servers" --root "$root" --build "$tmp/build" --seed 9 "$@" >"$tmp/out" 2>"$tmp/err"
    status=$?
}

fuzz --seconds 3 good
exits "a good server: exit status" 0
has "a good server: rounds and seed are told" "$tmp/out" '^ok - good: [0-9]{3,} rounds, seed 9$'
fuzz --seconds 3 dying
exits "a server that dies: exit status" 1
has "a server that dies: found" "$tmp/out" '^not ok - dying: '
has "a server that dies: how, and what it printed" "$tmp/out" 'dies after 40 answers'
has "a server that dies: the last inputs" "$tmp/out" '^# +round [0-9]+, [0-9]+ bytes: '
fuzz --seconds 3 wrong
exits "a server that answers wrongly: exit status" 1
has "a server that answers wrongly: found" "$tmp/out" 'Hello Mars'
fuzz nobody
exits "an unknown entry: exit status" 2
nothing_left "nothing is left behind"
