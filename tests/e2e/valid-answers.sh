#!/bin/bash
# Answers that are right in an unusual shape are right: the entry is ranked and its bytes counted.
. "$(dirname "$0")/lib.bash"

head='HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n'
plain_bytes=$(printf "${head}Content-Length: 12\r\n\r\nHello World\n" | wc -c)
chunk_bytes=$(printf "${head}Transfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n7\r\n World\n\r\n0\r\n\r\n" | wc -c)
hint_bytes=$(printf 'HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n' | wc -c)

entry plain plain
entry chunked chunked
entry informational informational
entry one-byte split 1
entry three-writes split 48
show run -c 8 $brief --format json
cp "$tmp/out" "$tmp/run.json"
exits "the run ends well" 0
for name in plain chunked informational one-byte three-writes; do
    row "$name: ranked" "$tmp/run.json" "$name" '.status == "ranked"'
    row "$name: answers and no errors" "$tmp/run.json" "$name" '.requests > 0 and .errors == 0'
done
row "plain: bytes of an answer" "$tmp/run.json" plain ".bytes_per_response == $plain_bytes"
row "chunked: bytes of an answer" "$tmp/run.json" chunked ".bytes_per_response == $chunk_bytes"
row "informational: bytes of an answer, the 103 included" "$tmp/run.json" informational \
    ".bytes_per_response == $((hint_bytes + plain_bytes))"
row "three-writes: bytes of an answer" "$tmp/run.json" three-writes \
    ".bytes_per_response == $plain_bytes"

show run plain chunked -w pipelined -c 4 $brief --format json
exits "pipelined: the run ends well" 0
json "pipelined: both are ranked" "$tmp/out" '[.entries[].status] == ["ranked", "ranked"]'
json "pipelined: no errors" "$tmp/out" 'all(.entries[]; .errors == 0)'
json "pipelined: the report names the workload" "$tmp/out" \
    '.workload | tostring | test("pipelined")'

show run plain three-writes -w close -c 8 $brief --format json
exits "close: the run ends well" 0
json "close: both are ranked" "$tmp/out" '[.entries[].status] == ["ranked", "ranked"]'
json "close: no errors" "$tmp/out" 'all(.entries[]; .errors == 0)'
if [ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 2100 ]; then
    show run plain -c 2000 $brief --format json
    exits "2000 connections: the run ends well" 0
    row "2000 connections: ranked without an error" "$tmp/out" plain \
        '.status == "ranked" and .errors == 0'
    json "2000 connections: all were open at once" <(jq -s . "$root/results/latest/slices.jsonl") \
        'all(.[] | select(.type == "slice"); .connections == 2000)'
else
    skip "2000 connections" "the file limit is $(ulimit -Hn)"
fi
nothing_left "nothing is left behind"
