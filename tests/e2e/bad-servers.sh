#!/bin/bash
# Servers that do not start, die, hang, fork, flood or do not end: each row says what happened with
# the last lines that the server printed, the others are measured, nothing is left behind.
. "$(dirname "$0")/lib.bash"

failed() { # ENTRY REASON-REGEX
    row "$1: not ranked" "$tmp/run.json" "$1" \
        '(.status == "failed" or .status == "skipped") and (has("rank") | not)'
    row "$1: the row says what happened" "$tmp/run.json" "$1" "[.reason, .output // empty] | any(test(\"$2\"; \"i\"))"
}

# In the middle of a slice: at 8 connections and 4 ms an answer, warming up takes some 700 answers
# and a slice 200. The run ends with the last of them, long before its budget.
entry dies die-after 1200 --late 4
entry exits exit-after 1200 --late 4
entry hangs hang-after 2600 --late 4
show run -c 8 --boots 1 --budget 60s --slice 50ms --timeout 1s --seed 7 --format json
cp "$tmp/out" "$tmp/run.json"
exits "servers that end under load: the exit status says that an entry failed" 1
row "the others are measured on: hangs, the last, has more slices than dies" "$tmp/run.json" hangs \
    ".slices > $(field "$tmp/run.json" dies slices)"
failed dies 'signal 6|abort'
failed dies 'dies after 1200 answers'
failed exits 'status 3'
failed exits 'exits after 1200 answers'
failed hangs 'not answered within|timed out|stopped answering'
failed hangs 'hangs after 2600 answers'
for name in dies exits hangs; do
    row "$name: the lost requests are counted" "$tmp/run.json" "$name" '.errors > 0'
done
nothing_left "servers that end under load: nothing is left behind"
rm -r "$root/servers/dies" "$root/servers/exits" "$root/servers/hangs"

entry plain plain
entry dies-at-once die-after 0
entry silent never-ready
entry patient slow-start 1
entry forks forks
entry fork-child fork-child
entry stubborn ignore-term
entry floods flood-stderr
entry sleepy delay 300
manifest absent "$tmp/build/no-such-program" --port '{port}'
manifest misused "$stub" no-such-mode --port '{port}'
show run -c 8 $brief --format json
cp "$tmp/out" "$tmp/run.json"
exits "the exit status says that an entry failed" 1
json "every entry has a row" "$tmp/run.json" '.entries | length == 11'
for name in plain patient; do
    row "$name: ranked" "$tmp/run.json" "$name" '.status == "ranked"'
done

failed dies-at-once 'signal 6|abort'
failed dies-at-once 'dies after 0 answers'
failed silent 'not ready|no answer|listen|within'
failed silent 'listens on nothing'
failed floods 'wrote|flood'
failed floods 'one of very many lines'
failed sleepy 'no answer within .*slice.*--slice'
failed absent 'no-such-program'
failed misused 'status 2'
failed forks 'exited|fork|background|ended'
failed stubborn 'SIGTERM'
row "fork-child: ranked, or the row says why not" "$tmp/run.json" fork-child \
    '.status == "ranked" or (.reason | length > 0)'
nothing_left "nothing is left behind"

show run plain $brief --format json
exits "the good server alone: exit status 0" 0

# One that says, by status 77, that the machine lacks what it needs, at its start or on a later boot.
cat >"$tmp/lacks" <<'END'
#!/bin/sh
# STARTS: lacks something from the start after so many; then the stub's arguments.
starts=$1
shift
echo >>"$0.starts"
if [ "$(wc -l <"$0.starts")" -gt "$starts" ]; then
    echo "no such device here" >&2
    exit 77
fi
exec "$@"
END
chmod +x "$tmp/lacks"
manifest lacks "$tmp/lacks" 0 "$stub" plain --port '{port}'
show run plain lacks $brief --format json
exits "a server that lacks something is no failure" 0
row "it is skipped, and the row says for what" "$tmp/out" lacks '.status == "skipped" and (.reason | test("no such device here"))'
show check
has "check: it is skipped" "$tmp/out" "^lacks: skipped: .*no such device here"
show check lacks
exits "check: the one that was named can't be checked" 1
