#!/bin/bash
# Servers that do not start, die, hang, fork, flood or do not end: each row says what happened with
# the last lines that the server printed, the others are measured, nothing is left behind.
. "$(dirname "$0")/lib.sh"

entry plain plain
entry dies die-after 3000
entry exits exit-after 3000
entry dies-at-once die-after 0
entry hangs hang-after 3000
entry silent never-ready
entry patient slow-start 1
entry forks forks
entry fork-child fork-child
entry stubborn ignore-term
entry floods flood-stderr
manifest absent "$tmp/build/no-such-program" --port '{port}'
manifest misused "$stub" no-such-mode --port '{port}'
show run -c 8 $brief --format json
cp "$tmp/out" "$tmp/run.json"
is "the exit status says that an entry failed" "$status" 1
json "every entry has a row" "$tmp/run.json" '.entries | length == 13'
for name in plain patient; do
    row "$name: ranked" "$tmp/run.json" "$name" '.status == "ranked"'
done

failed() { # ENTRY REASON-REGEX
    row "$1: not ranked" "$tmp/run.json" "$1" \
        '(.status == "failed" or .status == "skipped") and (has("rank") | not)'
    row "$1: the row says what happened" "$tmp/run.json" "$1" ".reason | test(\"$2\"; \"i\")"
}
failed dies 'signal 6|abort'
failed dies 'dies after 3000 answers'
failed exits 'status 3'
failed exits 'exits after 3000 answers'
failed dies-at-once 'signal 6|abort'
failed dies-at-once 'dies after 0 answers'
failed hangs 'timed out|no answer|hang|stopped answering'
failed hangs 'hangs after 3000 answers'
failed silent 'not ready|no answer|listen|within'
failed silent 'listens on nothing'
failed floods 'wrote|flood'
failed floods 'one of very many lines'
failed absent 'no-such-program'
failed misused 'status 2'
failed forks 'exited|fork|background|ended'
row "stubborn: the row says that SIGTERM did nothing" "$tmp/run.json" stubborn \
    '[.reason, .verdict] | map(. // "") | join(" ") | test("SIGTERM")'
row "fork-child: ranked, or the row says why not" "$tmp/run.json" fork-child \
    '.status == "ranked" or (.reason | length > 0)'
nothing_left "nothing is left behind"

show run plain $brief --format json
is "the good server alone: exit status 0" "$status" 0
