#!/bin/bash
# Standard input, output and error are closed, full, or read by someone who has seen enough.
. "$(dirname "$0")/lib.bash"

entry plain plain
program() { timeout -k 10 60 "$showdown" --root "$root" --build "$tmp/build" "$@"; }

program run $brief <&- >&- 2>&-
is "all three closed: exit status" "$?" 0
program run $brief </dev/null >&-
is "output closed: exit status" "$?" 0
for record in "$root"/results/*-*; do
    json "closed files: the record holds nothing but its lines" <(jq -s . "$record/slices.jsonl") \
        'all(.[]; has("type")) and any(.[]; .type == "slice")'
done

for command in "run $brief" report "report --format json" "report --format csv" list "list --json" \
    "run --help" --help --version; do
    program $command </dev/null >/dev/full 2>"$tmp/err"
    is "$command on a full disk: exit status" "$?" 1
    has "$command on a full disk: the message" "$tmp/err" "output"
    program $command </dev/null 2>"$tmp/err" | true
    is "$command for a reader that has gone: exit status" "${PIPESTATUS[0]}" 0
    has_not "$command for a reader that has gone: no complaint" "$tmp/err" "output"
done
nothing_left "nothing is left behind"
