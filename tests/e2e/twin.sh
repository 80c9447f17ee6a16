#!/bin/bash
# The twin: one entry is measured a second time as if it were another, and kept by a run that goes on.
. "$(dirname "$0")/lib.bash"

entry plain plain
entry other plain
manifest limit "$stub" plain --port '{port}'
echo 'status = reference' >>"$root/servers/limit/entry.conf"
entry failing error-500
entry lost never-ready
echo 'status = broken: on purpose' >>"$root/servers/lost/entry.conf"

record() { ls -d "$root"/results/2*-* | tail -1; }

slices() { # ENTRY: how many slices the last record holds of it
    jq -r --arg e "$1" 'select(.type == "slice" and .entry == $e) | .block' "$(record)/slices.jsonl" | wc -l
}

twin() { jq -r '.entries[] | select(.twin_of) | .name + " of " + .twin_of + ", " + .status' "$(record)/run.json"; }

refused() { # TITLE REGEX ARGUMENT...
    local title=$1 regex=$2
    shift 2
    show run "$@"
    exits "$title: exit status" 2
    has "$title: the message" "$tmp/err" "$regex"
}

refused "an unknown twin" "--twin.*'plai'.*'plain'" plain --twin plai
refused "a twin that the run does not measure" "--twin other.*name it" plain --twin other
refused "a reference for a twin" "--twin limit.*reference" plain --twin limit
refused "a broken entry for a twin" "--twin lost.*on purpose" plain lost --twin lost
is "no record was made" "$(ls "$root/results" 2>/dev/null)" ""

show run plain $brief --format json
exits "one entry alone: exit status" 0
is "one entry alone: its twin is measured" "$(twin)" "plain twin of plain, twin"
json "one entry alone: the twin is no row" "$tmp/out" '[.entries[].name] == ["plain", "limit"]'
is "the twin has as many slices as its entry" "$(slices "plain twin")" "$(slices plain)"
is "the twin has a process of its own" \
    "$(jq -r 'select(.type == "stop") | .entry' "$(record)/slices.jsonl" | sort | tr '\n' ' ')" "limit plain plain twin "
is "the twin is judged once, as its entry" \
    "$(jq -r 'select(.type == "gate") | .entry' "$(record)/slices.jsonl" | sort | tr '\n' ' ')" "limit plain "
is "the twin's object is its entry's" \
    "$(jq -c '.entries[] | select(.twin_of) | del(.name, .twin_of, .status)' "$(record)/run.json")" \
    "$(jq -c '.entries[] | select(.name == "plain") | del(.name, .status)' "$(record)/run.json")"
cp "$(record)/run.json" "$tmp/first.json"
rm -rf "$root/results"

show run plain other $brief --twin none --format json
exits "--twin none: exit status" 0
is "--twin none: nothing is measured twice" "$(twin)" ""
rm -rf "$root/results"

show run plain other $brief --twin other --format json
exits "--twin other: exit status" 0
is "--twin other: it is other's" "$(twin)" "other twin of other, twin"
rm -rf "$root/results"

show run failing other $brief --format json
exits "one of two fails the gate: exit status" 1
is "one of two fails the gate: the other has the twin" "$(twin)" "other twin of other, twin"
rm -rf "$root/results"

show run failing $brief --twin failing --format json
exits "a twin of one that fails the gate: exit status" 1
is "a twin of one that fails the gate: there is none" "$(twin)" ""
rm -rf "$root/results"

# Seeds draw: of two entries both have a twin sooner or later, and the same seed has the same.
drawn=
for seed in 1 2 3 4 5 6 7 8; do
    show run plain other --boots 1 --budget 1s --slice 20ms --seed $seed
    drawn="$drawn $(jq -r '.entries[] | .twin_of // empty' "$(record)/run.json")"
    rm -rf "$root/results"
done
is "seeds draw now one, now the other" "$(printf '%s\n' $drawn | sort -u | tr '\n' ' ')" "other plain "
show run plain other --boots 1 --budget 1s --slice 20ms --seed 1
is "the same seed draws the same" "$(jq -r ".entries[] | .twin_of // empty" "$(record)/run.json")" "$(printf "%s\n" $drawn | head -1)"
rm -rf "$root/results"

# Its server dies by itself in the first boot: the entry of the same program is measured on, or both
# are out, and the run ends in order.
entry mortal die-after 3000 --late 4
show run mortal other -c 8 --boots 1 --budget 20s --slice 50ms --seed 7 --twin mortal --format json
exits "a twin that dies: exit status" 1
row "a twin that dies: others are measured" "$tmp/out" other '.status == "ranked"'
json "a twin that dies: it is no row" "$tmp/out" '[.entries[].name] | index("mortal twin") == null'
json "a twin that dies: said in the record" <(jq -s '[.[] | select(.type == "failure") | .entry]' "$(record)/slices.jsonl") \
    'index("mortal twin") != null'
nothing_left "a twin that dies: nothing is left behind"
rm -rf "$root/results" "$root/servers/mortal"

# Interrupted and taken up, twice: the twin stays, whatever a new draw would give.
interrupt() { # ARGUMENT...: a run, interrupted once more slices are there
    local before=$(cat "$root"/results/2*/slices.jsonl 2>/dev/null | grep -c '"type":"slice"')
    "$showdown" --root "$root" --build "$tmp/build" run "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
    local pid=$! i
    for i in $(seq 400); do
        [ "$(cat "$root"/results/2*/slices.jsonl 2>/dev/null | grep -c '"type":"slice"')" -gt $((before + 3)) ] && break
        sleep 0.05
    done
    kill -INT $pid
    wait $pid
    status=$?
}
interrupt plain other --boots 3 --budget 6s --slice 50ms --seed 7
exits "interrupted: exit status" 130
kept=$(twin)
interrupt --resume "$(record)"
exits "interrupted again: exit status" 130
is "interrupted again: the twin is kept" "$(twin)" "$kept"
show run --resume "$(record)" --format json
exits "taken up twice: exit status" 0
is "taken up twice: the twin is kept" "$(twin)" "$kept"
is "taken up twice: and has slices in the last boot" \
    "$(jq -r 'select(.type == "slice" and .boot == 2) | .entry' "$(record)/slices.jsonl" | grep -c twin | sed 's/[1-9][0-9]*/some/')" some
json "taken up twice: complete" "$tmp/out" '.run.complete and .run.ended_by == "boots"'
show run --resume "$(record)"
exits "taken up when complete: exit status" 0
has "taken up when complete: says so" "$tmp/err" "^showdown: .*complete.*3 boots.*nothing is left"
before=$(cksum <"$(record)/slices.jsonl")
show run --resume "$(record)"
is "taken up when complete: the record is as it was" "$(cksum <"$(record)/slices.jsonl")" "$before"

# Interrupted while judging: no twin yet; the run that goes on draws it.
rm -rf "$root/results"
"$showdown" --root "$root" --build "$tmp/build" run plain other $brief >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
for i in $(seq 100); do
    grep -q "^judging 3 entries" "$tmp/err" && break
    sleep 0.01
done
kill -INT $pid
wait $pid
status=$?
exits "interrupted while judging: exit status" 130
show run --resume "$(record)" --format json
exits "interrupted while judging, taken up: exit status" 0
is "interrupted while judging, taken up: a twin" "$(twin | sed 's/plain/other/g')" "other twin of other, twin"
nothing_left "nothing is left behind"
