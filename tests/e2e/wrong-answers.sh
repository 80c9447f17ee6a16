#!/bin/bash
# A server that answers wrongly is not ranked: its row says what was expected and what came, its
# errors are counted, the others are measured, and the exit status says that something failed.
. "$(dirname "$0")/lib.sh"

entry plain plain
entry short-length wrong-length 11
entry long-length wrong-length 13
entry other-body wrong-body
entry other-body-later wrong-body-after 1500 --late 4
entry status-500 error-500
entry bad-http bad-http
entry reset reset
entry reset-later reset-after 1500 --late 4
entry early-close early-close
entry frozen frozen-date
# The faults that come later strike under load: at 8 connections and 4 ms an answer warming up takes some 700
# answers, and a slice 200.
show run -c 8 --boots 1 --budget 6s --slice 50ms --seed 7 --format json
cp "$tmp/out" "$tmp/run.json"
is "the exit status says that an entry failed" "$status" 1
row "the right server is ranked" "$tmp/run.json" plain '.status == "ranked" and .rank == 1'

failed() { # ENTRY REASON-REGEX
    row "$1: failed" "$tmp/run.json" "$1" '.status == "failed" and (has("rank") | not)'
    row "$1: the row says why" "$tmp/run.json" "$1" ".reason | test(\"$2\"; \"i\")"
}
failed short-length 'content-length|11|body'
failed long-length 'content-length|timed out|no answer|within|12|13'
failed other-body 'body.*Hello Mars|Hello World'
failed other-body-later 'body.*Hello Mars|Hello World'
failed status-500 '500'
failed bad-http 'status line|malformed|not HTTP'
failed reset 'reset'
failed reset-later 'reset'
failed early-close 'closed'
failed frozen 'Date'
row "wrong answers under load are counted" "$tmp/run.json" other-body-later '.errors > 0'
row "resets under load are counted" "$tmp/run.json" reset-later '.errors > 0'
row "a server that never answered rightly has no rate" "$tmp/run.json" other-body \
    '(has("req_per_s") or has("latency_p50_us") or has("cpu_us_per_req")) | not'
has "the failures are named on standard error or in the table" "$tmp/err" 'other-body'

entry drops drops-pipelined
show run plain drops -w pipelined -c 4 $brief --format json
is "a server that drops pipelined requests: exit status" "$status" 1
row "a server that drops pipelined requests: failed" "$tmp/out" drops '.status == "failed"'
row "beside it the right server is ranked" "$tmp/out" plain '.status == "ranked"'
nothing_left "nothing is left behind"
