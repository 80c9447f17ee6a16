#!/bin/bash
# A server that answers wrongly is not ranked: its row says what was expected and what came, its
# errors are counted, the others are measured, and the exit status says that something failed.
. "$(dirname "$0")/lib.bash"

failed() { # ENTRY REASON-REGEX
    row "$1: failed, not ranked" "$tmp/run.json" "$1" '.status == "failed" and (has("rank") | not)'
    row "$1: the row says why" "$tmp/run.json" "$1" ".reason | test(\"$2\"; \"i\")"
}

# Wrong from the first answer on: found before any load.
entry plain plain
entry short-length wrong-length 11
entry long-length wrong-length 13
entry other-body wrong-body
entry status-500 error-500
entry bad-http bad-http
entry reset reset
entry early-close early-close
entry no-keepalive no-keepalive
show run -c 8 $brief --format json
cp "$tmp/out" "$tmp/run.json"
exits "wrong at once: the exit status says that an entry failed" 1
row "wrong at once: the right server is ranked" "$tmp/run.json" plain \
    '.status == "ranked" and .rank == 1'
failed short-length 'no answer|body|content-length'
failed long-length 'closed|content-length|no whole answer|12 of 13|within'
failed other-body 'body.*Hello World.*Hello Mars'
failed status-500 'status.*200.*500'
failed bad-http 'status line|HTTP-version|version'
failed reset 'without an answer|reset'
failed early-close 'closed'
failed no-keepalive 'close'
row "a server that never answered rightly has no figures" "$tmp/run.json" other-body \
    '(has("req_per_s") or has("latency_p50_us") or has("cpu_us_per_req")) | not'
show report
has "the table gives the reason" "$tmp/out" '^other-body failed: .*Hello Mars'
rm -r "$root/servers"/{short-length,long-length,other-body,status-500,bad-http}
rm -r "$root/servers"/{reset,early-close,no-keepalive}

# Wrong later: at 8 connections and 4 ms an answer warming up takes some 700 answers, and a slice
# 200; a Date that stands still is wrong after 2 s. Then the run is over, long before its budget.
entry other-body-later wrong-body-after 1200 --late 4
entry reset-later reset-after 1200 --late 4
entry frozen frozen-date
show run other-body-later reset-later frozen -c 8 --boots 1 --budget 60s --slice 50ms --seed 7 \
    --format json
cp "$tmp/out" "$tmp/run.json"
exits "wrong later: the exit status says that an entry failed" 1
failed other-body-later 'wrong answers.*Hello World.*Hello Mars'
failed reset-later 'reset'
failed frozen 'Date'
row "wrong answers under load are counted" "$tmp/run.json" other-body-later '.errors > 0'
row "resets under load are counted" "$tmp/run.json" reset-later '.errors > 0'

entry drops drops-pipelined
show run plain drops -w pipelined -c 4 $brief --format json
cp "$tmp/out" "$tmp/run.json"
exits "a server that drops pipelined requests: exit status" 1
failed drops 'B0?.*expected 200 hello as-often, but nothing came'
row "beside it the right server is ranked" "$tmp/out" plain '.status == "ranked"'

# Right when asked alone, and wrong once busy in shapes that the load does not have: bodies, and
# requests cut in the middle. Conversations beside the warming load find it.
cp "$repository/tests/contract/B11.md" "$root/tests/contract/"
entry body-blind body-blind-after 250
entry cut-blind cut-blind-after 250
show run plain body-blind cut-blind -c 8 $brief --format json
cp "$tmp/out" "$tmp/run.json"
exits "wrong in other shapes under load: exit status" 1
failed body-blind 'warming up: beside the load: B11, .*bod(y|ies)'
failed cut-blind 'warming up: beside the load: B11, .*cut'
row "beside them the right server is ranked" "$tmp/run.json" plain '.status == "ranked"'
json "a boot records how many conversations went well beside the load" \
    <(grep -h '"type":"boot"' "$root"/results/*/slices.jsonl | tail -n 1) '.entry == "plain" and .conversations >= 6'
echo 'waive = B11: for this test' >>"$root/servers/body-blind/entry.conf"
show run body-blind -c 8 $brief --format json
row "what is waived is not looked for beside the load" "$tmp/out" body-blind '.status != "failed"'
nothing_left "nothing is left behind"
