#!/bin/bash
# What limits a row is planted and must be found: others on either core, a throttled load generator,
# wrong answers, a server that grows slower, and one that never gets warm. The machine may have
# other neighbours while this runs: so what is looked for is that a verdict holds, not that it is
# the only one.
. "$(dirname "$0")/lib.bash"

finds() { # TITLE FILE ENTRY VERDICT [JQ-CONDITION]
    row "$1" "$2" "$3" "(.verdicts | index(\"$4\")) != null and (${5:-true})"
}

# With others on both cores for most of the time nothing planted can be told from what they do.
crowded() { # TITLE FILE: true, and a skip, if so
    holds "$2" 'any(.entries[]; .foreign > 0.3)' >/dev/null || return 1
    skip "$1" "others had over 30% of both cores"
}

entry plain plain
entry other plain
show run $brief --format json
cp "$tmp/out" "$tmp/plain.json"
exits "a run of sound stubs ends well" 0
row "a verdict is given, and it is the first of all that hold" "$tmp/plain.json" plain \
    '.verdict == .verdicts[0]'
json "both agree with Little's law, or are marked" "$tmp/plain.json" \
    'all(.entries[]; .little > 0.5 and .little < 1.5)'
server_cpu=$(jq .plan.server_cpu "$root/results/latest/run.json")
hammer_cpu=$(jq '.plan.hammer_cpus[0]' "$root/results/latest/run.json")

if [ "$(jq .plan.one_cpu "$root/results/latest/run.json")" = true ]; then
    skip "a hog on either core" "there is one CPU only"
else
    for place in server hammer; do
        cpu=$server_cpu
        [ $place = hammer ] && cpu=$hammer_cpu
        hog "$cpu" 5
        show run --boots 3 --budget 9s --slice 100ms --seed 7 --format json
        kill "$hog_pid" 2>/dev/null
        wait "$hog_pid" 2>/dev/null
        cp "$tmp/out" "$tmp/hog.json"
        for name in plain other; do
            finds "a hog on the $place's core for half of the run: $name" "$tmp/hog.json" $name \
                neighbours ".${place}_waited > 0.05 or .${place}_foreign > 0.1"
        done
        show report
        has "a hog on the $place's core: the foot says so" "$tmp/out" "^neighbours: others took"
    done
fi

show run --boots 1 --budget 4s --slice 200ms --seed 7 --hammer-burn 50us --format json
cp "$tmp/out" "$tmp/burn.json"
crowded "a load generator that burns 50 us a request" "$tmp/burn.json" || for name in plain other; do
    finds "a load generator that burns 50 us a request is the limit: $name" "$tmp/burn.json" $name \
        hammer '.server_busy < 0.9 and (.verdicts | index("server")) == null'
done
show report
has "a burn is told in the foot" "$tmp/out" "hammer-burn: .* 50000 ns"

entry wrong wrong-body-after 3000
show run wrong plain $brief --format json
cp "$tmp/out" "$tmp/wrong.json"
row "wrong answers: the verdict" "$tmp/wrong.json" wrong '.verdict == "errors"'
rm -r "$root/servers/wrong"

entry third plain
entry ages ages 100
show run --boots 1 --budget 8s --slice 50ms --seed 7 --format json
cp "$tmp/out" "$tmp/ages.json"
crowded "a server that grows slower" "$tmp/ages.json" || {
    finds "a server that grows slower" "$tmp/ages.json" ages unsteady \
        '.drift_change < 0.9 and .drift_p < 0.05'
    show report
    has "a server that grows slower: the foot" "$tmp/out" "ages was .*% slower in the second half"
}
rm -r "$root/servers/ages" "$root/servers/third"

entry warms warms 500
# Told by its warm-up, or, where noise has that end by chance, by its slices.
show run --boots 1 --budget 8s --slice 50ms --seed 7 --format json
cp "$tmp/out" "$tmp/warms.json"
crowded "a server that never gets warm" "$tmp/warms.json" || {
    finds "a server that never gets warm" "$tmp/warms.json" warms unsteady
    show report
    has "a server that never gets warm: the foot" "$tmp/out" \
        "warms was (still warming up .* in 1 of 1 boots|.*% faster in the second half)"
}

# Two calls a request, recv and send, beside the waits that are shared by many.
if jq -se 'any(.[]; .type == "cost" and has("syscalls"))' "$root/results/latest/slices.jsonl" \
    >/dev/null; then
    jq -s '[.[] | select(.type == "cost" and .entry == "plain")] |
        {per_req: ((map(.syscalls) | add) / (map(.valid) | add))}' \
        "$root/results/latest/slices.jsonl" >"$tmp/cost.json"
    json "system calls a request are counted" "$tmp/cost.json" '.per_req > 1.5 and .per_req < 4.5'
else
    skip "system calls a request are counted" "the tracepoint may not be used here"
fi
nothing_left "nothing is left behind"
