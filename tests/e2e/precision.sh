#!/bin/bash
# run --precision: boots are added until every interval is narrow enough or the budget ends, and the
# table says which.
. "$(dirname "$0")/lib.bash"

entry plain plain
entry late delay 5
record() { ls -d "$root"/results/2*-* | tail -1; }

# A precision that any machine reaches at the first look.
show run plain late -c 4 --precision 50% --twin none --budget 60s --slice 20ms --seed 7
exits "reached: exit status" 0
has "reached: the table says so" "$tmp/out" \
    "^Precision: reached after 1[2-9] boots and [0-9]+ s: every interval is within \+-50%, the widest \+-[0-9.]+% \((plain|late)\)\.$"
boots=$(jq -s '[.[] | select(.type == "slice") | .boot] | max + 1' "$(record)/slices.jsonl")
is "reached: the boots in the record are those" "$(tail -1 "$(record)/slices.jsonl" | jq .boots)" "$boots"
show report "$(record)" --format json
json "reached: in JSON" "$tmp/out" '.run.ended_by == "precision" and .run.complete and .run.precision.wanted == 0.5
    and .run.precision.widest < 0.5 and .run.precision.more_s == 0'
json "reached: the widest is that of the table" "$tmp/out" '.run.precision as $p | [.entries[] |
    ((.req_per_s_high - .req_per_s_low) / 2 / .req_per_s)] | max - $p.widest | fabs < 1e-6'
show run --resume "$(record)"
exits "reached and taken up: exit status" 0
has "reached and taken up: nothing to do" "$tmp/err" "complete with its $boots boots"
rm -rf "$root/results"

# One that no machine reaches.
show run plain late -c 4 --precision 0.1% --twin none --budget 9s --slice 20ms --seed 7
exits "not reached: exit status" 0
has "not reached: the table says how long more" "$tmp/out" \
    "^Precision: the budget ended first, after [0-9]+ boots: the widest interval is \+-[0-9.]+% \((plain|late)\), \+-0.1% was wanted\. About [0-9.]+ (s|min|h) more would be needed\.$"
rm -rf "$root/results"

# Interrupted: the run that goes on keeps looking.
"$showdown" --root "$root" --build "$tmp/build" run plain late -c 4 --precision 50% --twin none --budget 60s --slice 20ms \
    --seed 7 >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
for i in $(seq 400); do
    grep -q '"boot":1' "$root"/results/2*/slices.jsonl 2>/dev/null && break
    sleep 0.05
done
kill -INT $pid
wait $pid
status=$?
exits "interrupted: exit status" 130
has "interrupted: the table says how it stood" "$tmp/out" "^Precision: interrupted after [0-9]+ boots"
show run --resume "$(record)" --format json
exits "interrupted and taken up: exit status" 0
json "interrupted and taken up: reached" "$tmp/out" '.run.ended_by == "precision" and .run.complete'
nothing_left "nothing is left behind"
