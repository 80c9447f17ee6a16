#!/bin/bash
# report: the JSON object has the keys and units that it promises, a figure not known is absent, and
# every format is made from the record alone, byte for byte the same each time.
. "$(dirname "$0")/lib.bash"

entry plain plain
entry late delay 1
entry wrong wrong-body
manifest absent no-such-program --port '{port}'
entry limit-stub plain
echo 'status = reference' >>"$root/servers/limit-stub/entry.conf"
sed 's/^name = .*/name = known-broken/' "$root/servers/plain/entry.conf" >"$tmp/broken.conf"
mkdir "$root/servers/known-broken"
{ cat "$tmp/broken.conf"; echo 'status = broken: planted'; } >"$root/servers/known-broken/entry.conf"
show run -c 16 --boots 3 --budget 3s --slice 50ms --seed 7 --format json
cp "$tmp/out" "$tmp/run.json"
exits "an entry failed: exit status" 1
record=$(ls -d "$root"/results/*-* | head -1)

json "the object's keys" "$tmp/run.json" \
    '["schema", "run", "machine", "workload", "entries"] - keys == []'
json "schema names its version" "$tmp/run.json" '.schema | tostring | test("[0-9]")'
json "every entry has a name and a known status" "$tmp/run.json" 'all(.entries[];
    (.name | length > 0) and
    (.status | IN("ranked", "reference", "skipped", "failed", "broken")))'
json "one row an entry" "$tmp/run.json" \
    '[.entries[].name] | sort == ["absent", "known-broken", "late", "limit-stub", "plain", "wrong"]'
figures='["req_per_s", "req_per_s_low", "req_per_s_high", "share_of_limit", "latency_p50_us",
    "latency_p99_us", "cpu_us_per_req", "bytes_per_response", "rss_peak_bytes", "requests"]'
json "a ranked entry has every figure, and each is a number above 0" "$tmp/run.json" \
    '.entries[] | select(.name == "plain") as $row | all('"$figures"'[]; $row[.] > 0) and
     $row.errors == 0 and ($row.rank | type == "number") and ($row.verdict | type == "string")'
json "the reference has figures and no rank" "$tmp/run.json" \
    '.entries[] | select(.name == "limit-stub") |
     .status == "reference" and .req_per_s > 0 and (has("rank") | not)'
json "what did not run has no figures" "$tmp/run.json" \
    '[.entries[] | select(.name | IN("absent", "known-broken")) as $row |
      '"$figures"'[] | select($row[.] != null)] == []'
json "no figure is null or 0 in place of unknown" "$tmp/run.json" \
    '[.entries[] as $row | '"$figures"'[] as $key |
      select(($row | has($key)) and ($row[$key] == null or $row[$key] == 0))] == []'
json "whoever is not ranked or reference has a reason" "$tmp/run.json" 'all(.entries[];
    (.status | IN("ranked", "reference")) or (.reason | length > 0))'
json "the interval holds the rate" "$tmp/run.json" 'all(.entries[] | select(has("req_per_s_low"));
    .req_per_s_low <= .req_per_s and .req_per_s <= .req_per_s_high)'
json "p50 is no more than p99" "$tmp/run.json" 'all(.entries[] | select(has("latency_p50_us"));
    .latency_p50_us <= .latency_p99_us)'
row "the share of the limit is the ratio of the rates" "$tmp/run.json" plain \
    "(.share_of_limit - .req_per_s / $(field "$tmp/run.json" limit-stub req_per_s)) |
     . > -0.1 and . < 0.1"
row "memory is in bytes" "$tmp/run.json" plain '.rss_peak_bytes > 500000 and .rss_peak_bytes < 1e9'
json "ranks are in the order of the rates" "$tmp/run.json" \
    '[.entries[] | select(.status == "ranked")] | sort_by(.rank) | .[0].req_per_s >= .[-1].req_per_s'
json "the machine is described" "$tmp/run.json" '.machine | .kernel and .cpus_online'
json "run.json in the record is JSON with the seed and what was asked for" "$record/run.json" \
    '.schema and ([.. | objects | .seed? // empty] | index(7)) and
     ([.. | strings] | any(. == "--slice"))'
json "slices: each names its entry" <(jq -s . "$record/slices.jsonl") \
    'length > 6 and all(.[] | select(has("entry")); .entry | type == "string")'
is "latest points at the newest" "$(readlink -f "$root/results/latest")" "$(readlink -f "$record")"

show report --format json
is "report: the same object as run printed" "$(jq -S . "$tmp/out" | cksum)" \
    "$(jq -S . "$tmp/run.json" | cksum)"
for format in json table markdown csv; do
    show report --format "$format"
    exits "report --format $format: exit status" 0
    cp "$tmp/out" "$tmp/first"
    show report "$record" --format "$format"
    is "report --format $format: the same bytes again" "$(cksum <"$tmp/first")" \
        "$(cksum <"$tmp/out")"
    for name in plain late wrong absent known-broken limit-stub; do
        has "report --format $format: names $name" "$tmp/out" "$name"
    done
done
show report --format table
has "table: the reason of a failure" "$tmp/out" "Hello Mars"
has "table: the columns" "$tmp/out" "req/s.*limit.*p50.*p99.*CPU.*sys/req.*B/resp.*MiB.*HTTP.*verdict"
show report --format csv
is "csv: every line has as many fields" \
    "$(sed 's/"[^"]*"//g' "$tmp/out" | awk -F, '{print NF}' | sort -u | wc -l)" 1
show report --format markdown
has "markdown: a table" "$tmp/out" '^\|.*\|$'
nothing_left "nothing is left behind"
