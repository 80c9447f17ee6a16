#!/bin/bash
# A run is taken up only where it can go on as it began; a refusal leaves the record as it was.
. "$(dirname "$0")/lib.bash"

entry plain plain
entry other plain
show run $brief
record=$(ls -d "$root"/results/*-*)
mv "$record" "$tmp/whole"
# As if it had been interrupted in its second boot of two.
jq '.plan.boots = 2' "$tmp/whole/run.json" >"$tmp/run.json"

refused() { # TITLE REGEX: the record in $record is not taken up
    local before
    before=$(cksum <"$record/slices.jsonl")
    show run --resume "$record"
    exits "$1: exit status" 1
    has "$1: the message" "$tmp/err" "^showdown: .*($2)"
    is "$1: the record is as it was" "$(cksum <"$record/slices.jsonl")" "$before"
}

spoil() { # JQ-FILTER: a fresh record with another run.json
    rm -rf "$record"
    cp -r "$tmp/whole" "$record"
    jq "$1" "$tmp/run.json" >"$record/run.json"
}

spoil '.plan.boots = 0'
refused "no boots" "plan"
spoil '.plan.connections = -1'
refused "a negative number of connections" "plan"
spoil '.plan.server_cpu = 1000000'
refused "a server's CPU that is not there" "CPU 1000000"
spoil '.plan.hammer_cpus = [1000000]'
refused "a hammer's CPU that is not there" "CPU"
spoil '.plan.cpus_allowed = 999'
refused "a machine with other CPUs" "999"
spoil '.entries[0].name = null'
refused "an entry without a name" "entry"
spoil '.entries[0].name = "gone"'
refused "an entry that is not there any more" "gone"
spoil '.entries[0].hash = "0"'
refused "an entry that has changed" "changed"
spoil '.showdown = "an older one"'
refused "another version of the harness" "an older one"
spoil '.machine.kernel = "Linux 2.6"'
refused "another kernel" "Linux 2.6"

spoil .
echo '{"type":"failure"}' >>"$record/slices.jsonl"
show run --resume "$record" --format json
exits "a failure of nobody: passed over" 0
json "a failure of nobody: both ranked" "$tmp/out" '[.entries[].status] == ["ranked", "ranked"]'

spoil .
jq '.plan.connections = 300' "$tmp/run.json" >"$record/run.json"
as=
[ "$(id -u)" != 0 ] || as="setpriv --reuid 65534 --regid 65534 --clear-groups"
chmod -R a+rwX "$root/results"
before=$(cksum <"$record/slices.jsonl")
(ulimit -n 64; $as "$showdown" --root "$root" --build "$tmp/build" run --resume "$record") \
    >"$tmp/out" 2>"$tmp/err" </dev/null
is "more connections than files: exit status" "$?" 1
has "more connections than files: the remedy" "$tmp/err" "ulimit -H?n"
is "more connections than files: the record is as it was" \
    "$(cksum <"$record/slices.jsonl")" "$before"
nothing_left "nothing is left behind"
