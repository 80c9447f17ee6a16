#!/bin/bash
# The short form of `make calibrate`: what it works out from a session, over sessions made here, whose
# noise is known and the same each time. Neighbours, a slow load generator, errors, a trend and a
# warm-up are planted in verdicts.sh.
. "$(dirname "$0")/lib.bash"
resample=$build/calibrate/resample

# A session of two builds: a folder in $tmp. Rates are 50,000/s and noise, the new one's times RATIO.
session() { # NAME BOOTS BLOCKS PROCESS-NOISE SLICE-NOISE RATIO
    mkdir -p "$tmp/$1"
    cat >"$tmp/$1/run.json" <<END
{"schema": 1, "started": "2026-12-01T00:00:00Z", "argv": ["compare"], "machine": {},
 "plan": {"seed": 1, "server_cpu": 1, "hammer_cpus": [0], "one_cpu": false, "workload": "hello",
          "summary": "GET /", "connections": 64, "pipeline": 1, "slice_ns": 10000000},
 "compare": {"entry": "it", "threshold": 0.02},
 "entries": [{"name": "it old", "status": "active"}, {"name": "it new", "status": "active"}]}
END
    # Park and Miller's generator, and a sum of twelve for a normal draw: the same in every awk.
    awk -v boots="$2" -v blocks="$3" -v process="$4" -v slice="$5" -v ratio="$6" '
        function unit() { x = x * 16807 % 2147483647; return x / 2147483647 }
        function gauss(   i, sum) { for (i = 0; i < 12; i++) sum += unit(); return sum - 6 }
        function line(name, log_rate) {
            printf "{\"type\":\"slice\",\"entry\":\"it %s\",\"boot\":%d,\"block\":%d,", name, b, k
            printf "\"began_ns\":%d,\"window_ns\":1000000000,", 1000 * (b * blocks + k)
            printf "\"valid\":%.3f}\n", 50000 * exp(log_rate)
        }
        BEGIN {
            x = 7
            for (b = 0; b < boots; b++) {
                old = process * gauss()
                new = process * gauss() + log(ratio)
                for (k = 0; k < blocks; k++) {
                    level += 0.02 * gauss()
                    line("old", level + old + slice * gauss())
                    line("new", level + new + slice * gauss())
                }
            }
        }' >"$tmp/$1/slices.jsonl"
}

judge() { # WHAT SESSION: the line in $tmp/out, its exit status in $status
    "$resample" "$1" "$tmp/$2" >"$tmp/out" 2>"$tmp/err"
    status=$?
}

session many 320 6 0.003 0.03 1
judge runs many
exits "40 runs of two equal builds: none is declared different" 0
has "... and there are 40" "$tmp/out" "40 real runs of 8 boots"
session aside 320 6 0.003 0.03 0.96
judge runs aside
exits "40 runs of builds of which one is 4% slower are no A/A" 1
has "... each of them is declared different" "$tmp/out" "by the table's rule 40, by compare 40"
session few 80 6 0.003 0.03 1
judge runs few
exits "10 runs are too few to say" 1

session usual 24 40 0.003 0.04 1
judge chance usual
exits "runs drawn from a session of two equal builds" 0
cp "$tmp/out" "$tmp/first"
judge chance usual
is "the same session gives the same line" "$(cat "$tmp/out")" "$(cat "$tmp/first")"
judge power usual
exits "3% is found, and 1% as often as predicted" 0
judge coverage usual
exits "intervals hold the truth" 0
# A process is off by 0.3%, a slice by 4%: seen again in what the session is taken for.
has "the session's noise is what was put in" "$tmp/out" \
    "processes differ by 0\.[0-6][0-9]%, slices by (3\.[89]|4\.[01])%, drift (1\.[89]|2\.[01])% a block"
session loud 24 40 0.003 0.5 1
judge power loud
exits "3% is not found in noise of 50%" 1

mkdir "$tmp/other"
printf '{"schema": 1, "entries": [], "argv": []}\n' >"$tmp/other/run.json"
: >"$tmp/other/slices.jsonl"
judge power other
exits "a record of something else is refused" 2
