#!/bin/bash
# showdown doctor on this machine, and its findings in the record and under the table.
. "$(dirname "$0")/lib.bash"

show doctor --json
exits "doctor --json: exit status" 0
cp "$tmp/out" "$tmp/doctor.json"
json "each finding has a key, what was found, and its effect" "$tmp/doctor.json" \
    '.findings | length > 15 and all(.[]; (.key | length > 0) and (.found | length > 0) and
     (.effect | length > 20) and (.doubt | type == "boolean"))'
json "each doubt has a remedy, and no unknown is a doubt" "$tmp/doctor.json" \
    'all(.findings[]; (.doubt | not) or (.known and (.remedy | length > 0)))'
json "all that the issue asks for is looked at" "$tmp/doctor.json" \
    '[.findings[].key] | contains(["governor", "turbo", "smt", "steal", "load", "others", "files",
      "ports", "somaxconn", "tcp", "io_uring", "counters", "container", "quota", "machine",
      "mitigations", "clock", "swap", "huge pages", "power"])'
is "the file limit is this shell's" \
    "$(jq -r '.findings[] | select(.key == "files").found' "$tmp/doctor.json" | sed 's/:.*//')" \
    "soft $(ulimit -Sn), hard $(ulimit -Hn)"
show doctor
exits "doctor: exit status" 0
has "doctor: a finding in plain text" "$tmp/out" "^[ !] clock "
has "doctor: how many are doubts" "$tmp/out" "^[0-9]+ of [0-9]+ findings are doubts"
show doctor please
exits "doctor with an argument: exit status" 2
show doctor --server-cpu 1000
exits "doctor with a CPU that is not there: exit status" 2

if "$build/stubs/no-uring" 1 true 2>/dev/null; then
    "$build/stubs/no-uring" 1 "$showdown" doctor --json >"$tmp/refused.json"
    json "io_uring refused: found by trying" "$tmp/refused.json" \
        '.findings[] | select(.key == "io_uring") | .found | test("refused: Operation not perm")'
    json "a seccomp filter: a doubt" "$tmp/refused.json" \
        '.findings[] | select(.key == "seccomp") | .doubt'
else
    skip "io_uring refused" "seccomp filters are refused here"
fi

entry plain plain
first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
taskset -c "$first" "$showdown" --root "$root" --build "$tmp/build" run $brief \
    >"$tmp/out" 2>"$tmp/err" </dev/null
has "run: a doubt stands under the table" "$tmp/out" "^Doubt, cores: CPU $first alone"
has "run: and where to read more" "$tmp/out" "showdown doctor"
json "run.json holds the findings" "$root/results/latest/run.json" \
    '.machine.doctor | length > 15 and any(.[]; .key == "cores" and .doubt)'
jq '.machine.doctor = [{key: "planted", found: "elsewhere", doubt: true}]' \
    "$root/results/latest/run.json" >"$tmp/run.json"
cp "$tmp/run.json" "$root/results/latest/run.json"
show report
has "report: doubts come from the record, not from this machine" "$tmp/out" \
    "^Doubt, planted: elsewhere"
has_not "report: and no others" "$tmp/out" "^Doubt, cores"
