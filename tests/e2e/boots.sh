#!/bin/bash
# What a boot does before its blocks: a server with a JIT is warmed by more and longer windows, and
# what requests cost is counted in the first two boots only.
. "$(dirname "$0")/lib.bash"

entry plain plain
entry compiled plain
echo 'jit = none, for this test' >>"$root/servers/compiled/entry.conf"
show run plain compiled -c 4 --boots 3 --budget 9s --slice 50ms --seed 7 --twin none
exits "exit status" 0
lines=$root/results/latest/slices.jsonl
boots() { jq -s --arg name "$1" "[.[] | select(.type == \"boot\" and .entry == \$name)] | $2" "$lines"; }
is "a JIT: eight windows of 50 ms at least, in each boot" \
    "$(boots compiled 'map(.warm_windows >= 8 and .warm_ns >= 400000000) | all and length == 3')" true
is "a JIT: its manifest's word is in the record" \
    "$(jq -r '.entries[] | select(.name == "compiled") | .jit' "$root/results/latest/run.json")" "none, for this test"
if jq -se 'any(.[]; .type == "cost")' "$lines" >/dev/null; then
    is "costs are counted in two boots" \
        "$(jq -sc '[.[] | select(.type == "cost") | .boot] | unique' "$lines")" "[0,1]"
else
    skip "costs are counted in two boots" "no counter is allowed here"
fi
nothing_left "nothing is left behind"
