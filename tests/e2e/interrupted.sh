#!/bin/bash
# Ctrl-C, SIGTERM and SIGKILL in the middle of a run: the record is kept, the partial table printed
# where that is possible, nothing is left behind, and the run can be taken up again.
. "$(dirname "$0")/lib.bash"
set -m # each background job is a process group of its own, as in a terminal

entry plain plain
entry late delay 1
entry stubborn ignore-term

start_run() { # ARGUMENT...: a run in the background; returns once slices are being written
    "$showdown" --root "$root" --build "$tmp/build" run "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
    run_pid=$!
    for i in $(seq 200); do
        slices=$(cat "$root"/results/*/slices.jsonl 2>/dev/null | grep -c '"type":"slice"')
        [ "$slices" -gt 4 ] && break
        sleep 0.05
    done
}

wait_run() { # waits at most 10 s; sets $status
    for i in $(seq 100); do
        kill -0 "$run_pid" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$run_pid" 2>/dev/null && echo "# had to be killed after 10 s"
    wait "$run_pid" 2>/dev/null
    status=$?
}

start_run plain late --boots 3 --budget 60s --slice 50ms --seed 3
kill -INT -- -"$run_pid"
wait_run
exits "Ctrl-C: exit status 130" 130
has "Ctrl-C: the partial table has a row for each" "$tmp/out" '(^|[^a-z])plain([^a-z]|$)'
has "Ctrl-C: … and for the other" "$tmp/out" '(^|[^a-z])late([^a-z]|$)'
has "Ctrl-C: says where the record lies" "$tmp/out" 'results/'
nothing_left "Ctrl-C: nothing is left behind"
record=$(ls -d "$root"/results/*-* | head -1)
is "Ctrl-C: every slice on disk is whole" \
    "$(jq -c . "$record/slices.jsonl" 2>&1 >/dev/null | head -1)" ""
before=$(wc -l <"$record/slices.jsonl")
head -n "$before" "$record/slices.jsonl" >"$tmp/slices.before"

show report "$record" --format json
exits "the interrupted run can be reported" 0
rm -rf "$root/results"

start_run plain stubborn --boots 2 --budget 60s --slice 50ms --seed 3
kill -TERM "$run_pid"
wait_run
is "SIGTERM: ends by itself, not with success" "$([ "$status" != 0 ] && [ "$status" != 137 ]; echo $?)" 0
nothing_left "SIGTERM: nothing is left behind"
rm -rf "$root/results"

start_run plain stubborn --boots 2 --budget 60s --slice 50ms --seed 3
kill -KILL "$run_pid"
wait_run
nothing_left "SIGKILL: nothing is left behind, not even a server that ignores SIGTERM"
record=$(ls -d "$root"/results/*-* | head -1)
show report "$record" --format json
exits "SIGKILL: what was measured can be reported" 0
json "SIGKILL: with the answers counted" "$tmp/out" '[.entries[].requests] | add > 0'
rm -rf "$root/results"

start_run plain late --boots 2 --budget 3s --slice 50ms --seed 3
kill -INT -- -"$run_pid"
wait_run
record=$(ls -d "$root"/results/*-* | head -1)
cp "$record/slices.jsonl" "$tmp/slices.before"
show run --resume "$record" --format json
cp "$tmp/out" "$tmp/resumed.json"
exits "resumed: ends well" 0
json "resumed: both are ranked" "$tmp/resumed.json" '[.entries[].status] == ["ranked", "ranked"]'
is "resumed: no slice of the first part is lost or changed" \
    "$(head -c "$(wc -c <"$tmp/slices.before")" "$record/slices.jsonl" | cmp - "$tmp/slices.before" 2>&1)" ""
is "resumed: slices were added" \
    "$([ "$(wc -l <"$record/slices.jsonl")" -gt "$(wc -l <"$tmp/slices.before")" ]; echo $?)" 0
is "resumed: no second record was made" "$(ls -d "$root"/results/*-* | wc -l)" 1
show run --resume "$record" --format json
exits "resumed when already whole: ends well" 0
is "resumed when already whole: the same table" \
    "$(jq -S .entries "$tmp/out" | cksum)" "$(jq -S .entries "$tmp/resumed.json" | cksum)"
printf '{"half a li' >>"$record/slices.jsonl"
show report "$record" --format json
exits "a last line cut short by a crash does not spoil the record" 0
nothing_left "resumed: nothing is left behind"
rm -rf "$root/results"

# A harness held up while it measures, as by Ctrl-Z or by a neighbour who takes its core: the slice
# says nothing of the server.
start_run plain late --twin none --boots 1 --budget 10s --slice 1s --timeout 300ms --format json --seed 3
for _ in 1 2 3; do
    kill -STOP "$run_pid"
    sleep 0.6
    kill -CONT "$run_pid"
    sleep 0.9
done
wait_run
exits "held up for longer than an answer may take: exit status" 0
row "held up: plain is ranked" "$tmp/out" plain '.status == "ranked"'
row "held up: late is ranked" "$tmp/out" late '.status == "ranked"'
json "held up: the spoilt slices are counted" "$tmp/out" '[.entries[].spoilt // 0] | add > 0'
