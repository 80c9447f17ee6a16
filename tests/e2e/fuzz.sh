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
entry grows grows 200000
fuzz --seconds 4 grows
exits "a server that loses memory: exit status" 1
has "a server that loses memory: found" "$tmp/out" '^# +memory grew from [0-9]+ to [0-9]+ KiB'
entry keeps keeps-files
fuzz --seconds 2 keeps
exits "a server that loses descriptors: exit status" 1
has "a server that loses descriptors: found" "$tmp/out" '^# +([0-9]+ descriptors are open, [0-9]+ were|the server )'
# A sanitizer tells of leaks when the process ends, by its status and in words.
entry bad-end bad-end 23
fuzz --seconds 2 bad-end
exits "a server that ends with another status: exit status" 1
has "a server that ends with another status: found" "$tmp/out" 'ended on SIGTERM with wait status 0x1700$'
has "a server that ends with another status: what it printed" "$tmp/out" 'it last printed: stub: planted: ends badly'
fuzz nobody
exits "an unknown entry: exit status" 2
nothing_left "nothing is left behind"
