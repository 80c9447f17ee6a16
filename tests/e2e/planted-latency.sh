#!/bin/bash
# What is planted in time must be reported: delays, slow answers at their rank, a slower server.
. "$(dirname "$0")/lib.bash"

entry plain plain
entry late delay 5
show run plain late -c 8 $brief --format json
cp "$tmp/out" "$tmp/late.json"
exits "a run of two stubs ends well" 0
row "5 ms late: p50 is 5 ms and what waking takes" "$tmp/late.json" late \
    '.latency_p50_us >= 5000 and .latency_p50_us < 7000'
row "5 ms late: p99 is no less than p50" "$tmp/late.json" late '.latency_p99_us >= .latency_p50_us'
row "5 ms late: no more than 8 connections can ask" "$tmp/late.json" late \
    '.req_per_s > 400 and .req_per_s <= 1600'
jq -s 'map(select(.type == "slice") | .little) | sort' "$root/results/latest/slices.jsonl" \
    >"$tmp/little.json"
json "Little's law holds in the median slice" "$tmp/little.json" \
    '.[length / 2 | floor] > 0.9 and .[length / 2 | floor] < 1.1'
row "the plain stub takes less than 2 ms" "$tmp/late.json" plain '.latency_p50_us < 2000'
json "the plain stub comes first" "$tmp/late.json" \
    '[.entries[] | select(.status == "ranked") | .name] == ["plain", "late"]'
row "it has rank 1" "$tmp/late.json" plain '.rank == 1'
row "the late one has rank 2" "$tmp/late.json" late '.rank == 2'

# Every 50th late is 2% of the answers, so p99 is among them; every 200th is 0.5%, so it is not.
entry two-percent every 50 200
entry half-percent every 200 200
show run two-percent half-percent -c 64 --boots 1 --budget 10s --slice 500ms --seed 7 --format json
cp "$tmp/out" "$tmp/every.json"
exits "a run of servers with slow answers ends well" 0
row "2% of the answers 200 ms late: p99 shows it" "$tmp/every.json" two-percent \
    '.latency_p99_us > 195000 and .latency_p99_us < 230000'
row "2% of the answers 200 ms late: p50 does not" "$tmp/every.json" two-percent \
    '.latency_p50_us < 20000'
row "0.5% of the answers 200 ms late: p99 does not" "$tmp/every.json" half-percent \
    '.latency_p99_us < 100000'
row "slow answers are answers, no errors" "$tmp/every.json" two-percent '.errors == 0'

# CPU time a request is planted exactly; the rate follows it where the server is the limit.
entry slow-0 slow 0
echo 'status = reference' >>"$root/servers/slow-0/entry.conf"
entry slow-50 slow 50
show run slow-50 --boots 1 --budget 6s --slice 50ms --seed 7 --format json
cp "$tmp/out" "$tmp/slow.json"
ratio=$(jq -n --argjson a "$(field "$tmp/slow.json" slow-0 cpu_us_per_req)" \
    --argjson b "$(field "$tmp/slow.json" slow-50 cpu_us_per_req)" '$b / $a' 2>&1)
jq -n "{ratio: $ratio}" >"$tmp/ratio.json" 2>/dev/null
json "50% more CPU time a request is found" "$tmp/ratio.json" '.ratio > 1.2 and .ratio < 1.9'
if holds "$tmp/slow.json" 'any(.entries[]; .foreign > 0.5)' >/dev/null; then
    skip "its share of the faster one is below 1 beyond doubt" "others had over half of both cores"
else
    row "its share of the faster one is below 1 beyond doubt" "$tmp/slow.json" slow-50 \
        '.share_of_limit_high < 1 and .share_of_limit > 0.4'
fi
rm -r "$root/servers/slow-0"

entry restless restless 30
show run plain restless $brief
has "a server busy without a request is named" "$tmp/out" \
    '^restless: used ([5-9]|[1-3][0-9])[0-9.]*% of a core while it should have been idle'
nothing_left "nothing is left behind"
