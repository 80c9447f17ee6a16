#!/bin/bash
# A stock `node` http server, as anyone would start one, checked through --url: the report says what
# it is known to fall short of (two Host lines, an invalid Host) and what it does right.
. "$(dirname "$0")/lib.bash"
cp "$repository"/tests/contract/*.md "$root/tests/contract/"

if ! command -v node >/dev/null; then
    skip "a stock node server" "node is not installed"
    exit
fi
cat >"$tmp/stock.js" <<'END'
const server = require('http').createServer((request, response) => response.end('Hello, stock\n'));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
END
node "$tmp/stock.js" >"$tmp/port" &
node_pid=$!
for _ in $(seq 200); do
    [ -s "$tmp/port" ] && break
    sleep 0.05
done
url=http://127.0.0.1:$(cat "$tmp/port")

some=
for id in A01 A02 A04 B04 B06 B10 C01 C02 C04 D01 E01 E02 E03 F05 G01 G03 G07 H01 H02 H12 I01 I03 I04; do
    some="$some --case $id"
done
# shellcheck disable=SC2086
show check --url "$url" --seed 3 $some --format json
cp "$tmp/out" "$tmp/check.json"
exits "exit status: a gating case failed" 1
json "two Host lines and an invalid Host are taken" "$tmp/check.json" \
    '[.subjects[0].cases[] | select(.id == "E02" or .id == "E03") | .verdict] == ["failed", "failed"]'
json "its content is not that of the contract" "$tmp/check.json" \
    '.subjects[0].cases[] | select(.id == "I04") | .verdict == "failed" and (.problem | test("Hello, stock"))'
json "its handler answers before a body has come" "$tmp/check.json" \
    '.subjects[0].cases[] | select(.id == "C04") | .verdict == "failed"'
# E01: Node 18 asks for no Host at all, Node 20 does (requireHostHeader).
json "all else is right, though its content is its own" "$tmp/check.json" \
    '[.subjects[0].cases[] | select(.verdict == "failed") | .id] - ["E01"] == ["C04", "E02", "E03", "I04"]'
json "what needs its process is not tried" "$tmp/check.json" \
    '[.subjects[0].cases[] | select(.verdict == "skipped") | .id] == ["H12"]'
show check --url "$url" --seed 3 --case E02
has "the text: the case" "$tmp/out" '^  E02 FAILED  MUST, gates  two Host lines are refused$'
has "the text: the rule" "$tmp/out" '^    why +RFC 9112 3\.2: '
has "the text: what came" "$tmp/out" '^    came +HTTP/1\.1 200 OK'
has "the text: what is wrong" "$tmp/out" '^    so +expected status 400, came 200$'
kill "$node_pid"
wait "$node_pid" 2>/dev/null
nothing_left "nothing is left behind"
