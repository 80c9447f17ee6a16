#!/bin/bash
# run --workers: a second row of several workers beside that of one; and workloads of a manifest.
. "$(dirname "$0")/lib.bash"

manifest plain "$stub" plain --workers '{workers}' --port '{port}'
entry alone plain
record() { ls -d "$root"/results/2*-* | tail -1; }
record_has() { jq -s "$1" "$(record)/slices.jsonl"; }

show run plain alone $brief --twin none --workers 2 --format json
exits "two workers: exit status" 0
json "two workers: a row of its own, unranked" "$tmp/out" \
    '.entries | map(select(.name == "plain*2"))[0] | .workers == 2 and .workers_of == "plain" and .rank == null'
json "two workers: the pair" "$tmp/out" \
    '.workers | length == 1 and .[0].entry == "plain" and .[0].cores == 1 and .[0].ratio == .[0].efficiency'
json "two workers: as many slices as one" <(record_has \
    '[.[] | select(.type == "slice") | .entry] | group_by(.) | map(length) | unique') 'length == 1'
json "two workers: two processes" <(record_has '[.[] | select(.entry == "plain*2" and .processes) | .processes] | unique') '. == [2]'
json "two workers: judged once" <(record_has '[.[] | select(.type == "gate") | .entry] | sort') '. == ["alone", "plain"]'
show report "$(record)"
has "two workers: the foot" "$tmp/out" "^plain: 2 workers on 1 core: [0-9.]+ .*of one, efficiency"
prints "two workers: who takes none" "$tmp/out" "take no workers: alone"
nothing_left "two workers: nothing is left behind"
two=$(record)

show run plain alone --boots 2 --budget 2s --slice 50ms --seed 7 --twin none --workers 2 --stop-after 1
exits "stopped after a boot: exit status" 0
show run --resume "$(record)" --format json
exits "taken up: exit status" 0
json "taken up: with its workers" <(record_has '[.[] | select(.type == "slice" and .boot == 1) | .entry] | unique') \
    '. == ["alone", "plain", "plain*2"]'
show run plain alone $brief --twin none
show compare "$two" "$(record)"
exits "compared with a run of one worker: exit status" 2
has "compared with a run of one worker: refused" "$tmp/err" "workers.*--workers"

show serve alone --port $((${E2E_PORT:-20000} + 900)) --workers 2
exits "serve: an entry that takes no workers" 1
prints "serve: says so" "$tmp/err" "alone takes no workers"

entry picky plain
echo 'workloads = pipelined close' >>"$root/servers/picky/entry.conf"
show run plain picky $brief --twin none
exits "another workload: exit status" 0
has "another workload: skipped, with the reason" "$tmp/out" "^picky skipped: takes part in: pipelined close"
show run picky $brief --twin none
exits "no entry takes part: exit status" 1
has "no entry takes part: says so" "$tmp/err" "takes part in the workload hello"
show run picky $brief --twin none -w close --format json
row "its own workload: it is measured" "$tmp/out" picky '.status == "ranked"'
echo 'workloads = helo' >>"$root/servers/alone/entry.conf"
for command in "run alone" list "vet alone"; do
    show $command
    cat "$tmp/err" >>"$tmp/out"
    has "$command: an unknown workload is named, with its line" "$tmp/out" \
        "servers/alone/entry.conf:10: unknown workload 'helo'; did you mean 'hello'"
done
nothing_left "nothing is left behind"

# The entries themselves, started by hand: a parent and two workers; SIGTERM ends all, and so does a
# worker's end. Their programs are not in the temporary folder, so it is said here if one is left.
port=$((${E2E_PORT:-20000} + 901))
answers() { [ "$(curl -s --max-time 2 "http://127.0.0.1:$port/")" = "Hello World" ]; }
workers_of() { cat "/proc/$1/task/$1/children"; }
for conf in $(grep -l '^run = .*{workers}' "$repository"/servers/*/entry.conf); do
    name=$(basename "$(dirname "$conf")")
    [ -x "$build/servers/$name" ] || continue
    for end in parent worker; do
        "$build/servers/$name" --port "$port" --workers 2 2>"$tmp/err" &
        parent=$!
        answered=no
        for _ in $(seq 100); do answers && answered=yes && break; sleep 0.02; done
        read -r -a workers <<<"$(workers_of $parent)"
        wanted=0 victim=$parent
        [ $end = worker ] && wanted=1 victim=${workers[1]:-$parent}
        kill -TERM "$victim"
        wait "$parent"
        is "$name: two workers answer, and end with their $end" "$answered/${#workers[@]}/$?" "yes/2/$wanted"
        for pid in "${workers[@]}"; do
            if kill -KILL "$pid" 2>/dev/null; then fail "$name: worker $pid is left" "$(cat "$tmp/err")"; fi
        done
    done
done
