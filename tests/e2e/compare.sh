#!/bin/bash
# compare: builds of known speed in turns, records of runs, and what is refused with its remedy.
. "$(dirname "$0")/lib.bash"

checkout() { # FOLDER MODE [NUMBER...]: one that holds the entry x
    local folder=$1
    shift
    root=$tmp/$folder entry x "$@"
}
checkout quick slow 0
checkout slow slow 300
turns="--boots 8 --budget 12s --slice 20ms --threshold 10% --seed 7"

# shellcheck disable=SC2086
show compare --entry x --old "$tmp/quick" --new "$tmp/slow" $turns --format json
exits "a build of four times the CPU time: exit status" 3
cp "$tmp/out" "$tmp/slower.json"
json "it is called slower" "$tmp/slower.json" '.outcome == "slower" and .entries[0].name == "x"'
json "its ratio is that of the CPU time" "$tmp/slower.json" \
    '.entries[0] | .ratio_high < 0.9 and .ratio_low <= .ratio and .ratio <= .ratio_high'
json "both builds' folders are named" "$tmp/slower.json" \
    '(.a.folder | endswith("/quick")) and (.b.folder | endswith("/slow"))'
record=$(sed -n 's/^record: //p' "$tmp/err")
json "the record holds the slices of both" <(jq -s . "$record/slices.jsonl") \
    '[.[] | select(.type == "slice") | .entry] | unique == ["x new", "x old"]'
json "both were held against the contract" <(jq -s . "$record/slices.jsonl") \
    '[.[] | select(.type == "gate")] | length == 2'
show compare "$record" --format json
exits "the record again: the same exit status" 3
is "the record again: the same bytes" "$(cksum <"$tmp/out")" "$(cksum <"$tmp/slower.json")"
show compare "$record" --threshold 40%
has "the record again: as a table" "$tmp/out" '^x .*slower$'

# shellcheck disable=SC2086
show compare --entry x --old "$tmp/slow" --new "$tmp/quick" $turns
if [ "$status" = 4 ] && grep -q 'other work took' "$tmp/out"; then
    skip "the other way round: exit status" "others had the cores"
else
    exits "the other way round: exit status" 0
    has "the other way round: faster" "$tmp/out" '^x .*faster$'
fi

show compare --entry x --old "$tmp/quick" --new "$tmp/quick"
exits "one build twice: exit status" 2
has "one build twice: the remedy" "$tmp/err" 'two checkouts'
show compare --entry x --old "$tmp/quick"
exits "no --new: exit status" 2
show compare --entry y --old "$tmp/quick" --new "$tmp/slow"
exits "no such entry: exit status" 2
has "no such entry: which there are" "$tmp/err" "unknown entry 'y'"
show compare --entry x --old "$tmp/quick" --new "$tmp/nowhere"
exits "no such folder: exit status" 2
checkout bare slow 0
echo 'sources = main.c' >>"$tmp/bare/servers/x/entry.conf"
show compare --entry x --old "$tmp/quick" --new "$tmp/bare"
exits "not built: exit status" 1
has "not built: the remedy" "$tmp/err" "make -C .*/bare entry-x"
checkout ends slow 0
sed -i 's/^run = .*/run = \/bin\/false {port}/' "$tmp/ends/servers/x/entry.conf"
# shellcheck disable=SC2086
show compare --entry x --old "$tmp/quick" --new "$tmp/ends" $turns
exits "a build that ends at once: exit status" 1
has "a build that ends at once: it is said which" "$tmp/out" '^x failed in new: '

# Records of runs.
entry x slow 0
entry steady plain
show run x steady --boots 1 --budget 4s --slice 50ms -c 8 --results "$tmp/one"
show run x steady --boots 1 --budget 4s --slice 60ms -c 16 --results "$tmp/two"
entry x slow 300
show run x steady --boots 1 --budget 4s --slice 50ms -c 8 --results "$tmp/three"
show compare "$tmp/one/latest" "$tmp/two/latest"
exits "records of other settings: exit status" 2
has "records of other settings: the connections are named" "$tmp/err" 'connections: 8 in A, 16 in B'
has "records of other settings: the slices too" "$tmp/err" 'slice: 50000000 in A, 60000000 in B'
show compare "$tmp/one/latest" "$tmp/two/latest" --allow connections,slice,settle,colour
exits "an unknown name to allow: exit status" 2
show compare "$tmp/one/latest" "$tmp/two/latest" --allow connections,slice,settle --format json
json "what is meant to differ is allowed" "$tmp/out" '[.entries[].name] | sort == ["steady", "x"]'
show compare "$tmp/one/latest" "$tmp/three/latest" --threshold 10%
exits "x has slowed: exit status" 3
has "x has slowed: it is named" "$tmp/out" '^x .*slower$'
has "x has slowed: what a ratio does not hold is said" "$tmp/out" 'share no block'
show compare "$tmp/one/latest" "$tmp/one/latest"
exits "one record twice: exit status" 2
show compare "$tmp/one/latest"
exits "one record of a run: exit status" 2
show compare
exits "nothing to compare: exit status" 2
nothing_left "nothing is left behind"
