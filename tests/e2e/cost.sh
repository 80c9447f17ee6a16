#!/bin/bash
# showdown cost: counts that repeat, planted growth that is found, and what is said where it can't
# count. System calls need ptrace, instructions valgrind.
. "$(dirname "$0")/lib.bash"

entry plain plain

# ---- without valgrind
mkdir -p "$tmp/bin"
for program in sh env node; do
    path=$(command -v "$program") && ln -s "$path" "$tmp/bin/$program"
done
timeout 60 env PATH="$tmp/bin" "$showdown" --root "$root" --build "$tmp/build" cost plain \
    >"$tmp/out" 2>"$tmp/err"
is "valgrind is missing: exit status" "$?" 1
has "valgrind is missing: the package is named" "$tmp/err" "apt-get install valgrind"
has "valgrind is missing: and what can be had without" "$tmp/err" "--only syscalls"

# ---- usage
show cost nothing-of-that-name
exits "an unknown entry: exit status" 2
show cost --only cycles
exits "an unknown --only: exit status" 2
show cost -n 1
exits "too few requests: exit status" 2
show cost --threshold much
exits "a threshold that is no number: exit status" 2
show cost plain --only syscalls --against "$tmp/none.json"
exits "--against a file that is not there: exit status" 1
has "--against a file that is not there: the message" "$tmp/err" "none.json"
echo '{"schema": 1}' >"$tmp/none.json"
show cost plain --only syscalls --against "$tmp/none.json"
has "--against a file without costs: the message" "$tmp/err" "holds no costs"

# ---- system calls
show cost plain -n 500 --only syscalls --save "$tmp/calls.json" --format json
if holds "$tmp/out" '.entries[0].absent.syscalls' >/dev/null; then
    skip "system calls" "$(jq -r '.entries[0].absent.syscalls' "$tmp/out")"
else
    exits "system calls: exit status" 0
    json "the stub receives, sends and waits once a request" "$tmp/out" \
        '.entries[0].syscalls | (.epoll_wait // .epoll_pwait) > 0.99 and .recvfrom > 0.99 and
         .sendto > 0.99 and all(.[]; . < 1.02)'
    json "the sum is that of the calls" "$tmp/out" \
        '.entries[0] | (.syscalls_per_req - ([.syscalls[]] | add)) | . < 0.01 and . > -0.01'
    json "what was not asked for is not there, nor called absent" "$tmp/out" \
        '.entries[0] | has("instructions_per_req") or has("absent") | not'
    show cost plain -n 500 --only syscalls --against "$tmp/calls.json"
    exits "the same again: no growth" 0
    entry plain split 100
    show cost plain -n 500 --only syscalls --against "$tmp/calls.json"
    exits "a planted second send: exit status" 3
    has "a planted second send: named" "$tmp/out" "plain: sys/req grew from (2.99|3.0[0-9]) to [4-9]"
    entry plain plain
    show cost plain -n 500 -p 16 --only syscalls --against "$tmp/calls.json"
    exits "another load does not compare: exit status" 2
    has "another load does not compare: the difference" "$tmp/err" "pipeline 1, and these have 16"
fi

# ---- entries that can't be counted
entry wrong wrong-body
show cost wrong -n 500 --only syscalls
exits "an entry that answers wrongly: exit status" 1
has "an entry that answers wrongly: the reason" "$tmp/out" "^wrong failed: .*Hello"
entry never exit-at-start
show cost never -n 500 --only syscalls
exits "an entry that does not start: exit status" 1
rm -r "$root/servers/wrong" "$root/servers/never"

# ---- instructions
if command -v valgrind >/dev/null; then
    entry jitted plain
    echo 'jit = a made-up compiler' >>"$root/servers/jitted/entry.conf"
    SHOW_TIMEOUT=150 show cost -n 1000 --save "$tmp/costs.json"
    exits "instructions: exit status" 0
    json "instructions and allocations are there" "$tmp/costs.json" \
        '.entries[] | select(.name == "plain") | .instructions_per_req > 500 and
         .allocations_per_req < 1 and (.functions | length > 3)'
    json "functions are most instructions first, and objects add up" "$tmp/costs.json" \
        '.entries[] | select(.name == "plain") |
         (.functions[0].instructions_per_req >= .functions[1].instructions_per_req) and
         (([.objects[]] | add) / .instructions_per_req | . > 0.999 and . < 1.001)'
    has "a JIT: said so" "$tmp/out" "^jitted without instructions: a made-up compiler compiles"
    json "a JIT: no instructions, but system calls" "$tmp/costs.json" \
        '.entries[] | select(.name == "jitted") |
         (has("instructions_per_req") | not) and (has("syscalls_per_req") or .absent.syscalls)'
    show cost plain -n 1000 --only instructions --format json
    json "the same again, to 0.5%" "$tmp/out" \
        "(.entries[0].instructions_per_req /
          $(jq '.entries[] | select(.name == "plain").instructions_per_req' "$tmp/costs.json"))
         | . > 0.995 and . < 1.005"
    entry plain informational
    show cost plain -n 1000 --only instructions --against "$tmp/costs.json" --threshold 5%
    exits "a planted second answer: exit status" 3
    has "a planted second answer: named" "$tmp/out" "plain: instr/req grew from .*5% is allowed"
    show cost plain -n 1000 --only instructions --against "$tmp/costs.json" --threshold 900
    exits "a threshold above it: exit status" 0
else
    skip "instructions" "valgrind is not installed"
fi
nothing_left "nothing is left behind"
