#!/bin/bash
# report on records made by hand: ranks with ties, the A/A line, INCONCLUSIVE with exit status 4, pairs,
# and where the record lies. Rates are planted, so what must come out is known.
. "$(dirname "$0")/lib.bash"

# FOLDER BOOTS TWIN: a and b take turns to lead by 4%, c is 10% behind, the twin of a makes TWIN of its rate.
record() {
    mkdir -p "$1"
    jq -n '{schema: 1, started: "2026-01-01T00:00:00Z", argv: ["run"],
        plan: {workload: "hello", summary: "GET /", connections: 64, seed: 1, slice_ns: 100000000,
            hammer_cpus: [0], boots: 12}, machine: {},
        entries: [(("a", "b", "c") | {name: ., status: "active"}),
            {name: "a twin", twin_of: "a", status: "twin"}]}' >"$1/run.json"
    jq -nc --argjson boots "$2" --argjson twin "$3" 'range($boots) as $boot | range(1; 3) as $block |
        (["a", 1], ["b", if $boot % 2 == 0 then 1.04 else 1 / 1.04 end], ["c", 0.9], ["a twin", $twin]) |
        {type: "slice", entry: .[0], boot: $boot, block: $block, valid: 20000000,
         window_ns: (1000000000 / .[1] | floor)}' >"$1/slices.jsonl"
    echo '{"type":"end","interrupted":false}' >>"$1/slices.jsonl"
}

record "$root/results/good" 12 1.002
show report "$root/results/good"
exits "a run to rely on: exit status" 0
has "table: two that lead in turn share a rank" "$tmp/out" '^1= +a '
has "table: and the other" "$tmp/out" '^1= +b '
has "table: the one behind both is third" "$tmp/out" '^3 +c '
has "table: the A/A line" "$tmp/out" '^A/A: a, .*1\.0020.*p 0\.000'
has_not "table: the twin is no row" "$tmp/out" 'a twin'
has "table: where the record lies" "$tmp/out" "^record: $root/results/good\$"
is "table: no line but that of the folder is over 120 columns" \
    "$(grep -v ^record: "$tmp/out" | awk 'length > 120')" ""
ln -s good "$root/results/latest"
cp "$tmp/out" "$tmp/first"
show report
is "the latest is the same to the byte" "$(cksum <"$tmp/first")" "$(cksum <"$tmp/out")"
show report --format json
json "json: ranks are numbers, and ties are told" "$tmp/out" \
    '[.entries[] | [.name, .rank, .rank_tied]] ==
     [["b", 1, true], ["a", 1, true], ["c", 3, false]] or
     [.entries[] | [.name, .rank, .rank_tied]] ==
     [["a", 1, true], ["b", 1, true], ["c", 3, false]]'
json "json: the twin" "$tmp/out" '.twin | .entry == "a" and .ratio > 1.001 and .ratio < 1.003 and
     .ratio_low <= .ratio and .ratio <= .ratio_high and .p < 0.001 and .differs == false and
     .delta == 0.01'
json "json: conclusive, and not provisional" "$tmp/out" \
    '.inconclusive == false and .ranks_provisional == false'
json "json: each pair once" "$tmp/out" '[.pairs[] | [.upper, .lower] | sort] | sort ==
     [["a", "b"], ["a", "c"], ["b", "c"]]'
has "json: where the record lies is not in it" "$tmp/err" "^record: $root/results/good\$"
show report --pairs
has "pairs: told apart" "$tmp/out" '^a / c +1\.1111 +1\.1111 +1\.1111 +0\.00049 +0\.001 +faster$'
has "pairs: not told apart" "$tmp/out" '^(a / b|b / a) .* not told apart$'
show report --pairs --format markdown
has "pairs: in Markdown" "$tmp/out" '^\| a / c \|'
show report --pairs --format csv
is "pairs: of csv nothing else" "$(head -1 "$tmp/out") $(wc -l <"$tmp/out")" \
    "upper,lower,ratio,ratio_low,ratio_high,p,p_adjusted,outranks,boots 4"

record "$root/results/bad" 12 1.05
for format in table json markdown csv; do
    show report "$root/results/bad" --format "$format"
    exits "the twin differs: report --format $format: exit status" 4
    cp "$tmp/out" "$tmp/$format"
done
is "table: headed INCONCLUSIVE" "$(head -c 13 "$tmp/table")" "INCONCLUSIVE:"
has "markdown: headed INCONCLUSIVE" "$tmp/markdown" '^## INCONCLUSIVE$'
json "json: inconclusive, with the reason" "$tmp/json" \
    '.inconclusive == true and (.inconclusive_reason | length > 0) and .twin.differs'
has "csv: says so in each row" "$tmp/csv" '^1,a,ranked,.*,true,1$'
json "what the twin showed is the least that counts" "$tmp/json" '.delta > 0.0499 and .delta < 0.0501'

record "$root/results/brief" 3 1.05
show report "$root/results/brief"
exits "three boots show nothing of a twin: exit status" 0
has "three boots: ranks are provisional" "$tmp/out" '^1\? +[ab] '
has "three boots: the foot says so" "$tmp/out" 'provisional.*3 boots'
show report "$root/results/brief" --format json
json "three boots: json says so" "$tmp/out" '.ranks_provisional and .rank_boots_needed == 7'
nothing_left "nothing is left behind"
