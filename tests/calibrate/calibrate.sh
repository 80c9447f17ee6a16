#!/bin/bash
# Does the harness find what is planted? Six results: two identical servers are not told apart, a
# slower one is, intervals hold the truth, and neighbours, a load generator that is too slow, errors,
# a trend and a warm-up without end are named. Each line says what was planted, what was found, and
# from which record; the records stay in results/calibrate/. docs/METHOD.md, Calibration.
#   CALIBRATE_SECONDS=480 tests/calibrate/calibrate.sh
# of measuring, all in all; with less, runs are shorter and there are fewer.
. "$(dirname "$0")/../e2e/lib.bash"
cd "$repository" || exit 1
planted_entry=libev
. tests/bench/planted.bash

seconds=${CALIBRATE_SECONDS:-480}
records=$repository/results/calibrate
began=$(date +%s)
passed=0 failed=0

finish_run() {
    trap - EXIT
    for pid in $(left_behind); do
        kill -KILL "$pid" 2>/dev/null
    done
    rm -rf "$tmp"
}
trap finish_run EXIT

# A part of the time, which is 480 s unless told otherwise.
part() { # SECONDS: prints it in milliseconds
    echo "$(($1 * seconds * 1000 / 480))ms"
}

result() { # STATUS: 0 is a pass; TITLE PLANTED FOUND RECORD
    local word=pass
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)) word=FAIL
    fi
    printf '%s  %s\nplanted %s\nfound %s [%s]\n' "$word" "$2" "$3" "$4" "$(basename "$5")" |
        fold -s -w 108 | sed '2,$s/^/      /'
}

latest() { readlink -f "$records/latest"; }

resampled() { # TITLE WHAT RECORD
    local line planted found status=0
    line=$("$build/calibrate/resample" "$2" "$3" 2>"$tmp/err") || status=$?
    IFS=$'\t' read -r planted found <<<"$line"
    result "$status" "$1" "${planted:-?}" "${found:-$(cat "$tmp/err")}" "$3"
}

# Runs entries of the temporary root; the report is in $tmp/out.
measure() { # FLAG...
    show run "$@" --seed 7 --format json --results "$records"
}

# The report holds what the condition asks for; what was found is a string that jq makes of it, and
# of $told, the line of the table's foot on what is unsteady.
judged() { # TITLE PLANTED CONDITION FOUND
    local failed_it=1 found told
    holds "$tmp/out" "$3" >/dev/null && failed_it=0
    told=$("$showdown" --root "$root" report "$(latest)" 2>/dev/null | sed -n 's/^unsteady: //p')
    found=$(jq -r --arg told "$told" "
        def percent: if . == null then \"?\" else . * 1000 | round / 10 | tostring + \"%\" end;
        def figure: if . == null then \"?\" else . * 1e4 | round / 1e4 | tostring end; $4" "$tmp/out" 2>&1)
    [ -s "$tmp/out" ] || found=$(tail -c 500 "$tmp/err")
    result "$failed_it" "$1" "$2" "$found" "$(latest)"
}

# ---- (1), (2), (3): libev against its own copy, and against one with a spin in each request

checkout plain 0
checkout same 0
jq -rn --arg commit "$(git describe --always --dirty 2>/dev/null)" --arg at "$(date -u +%FT%TZ)" \
    --arg cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" \
    --arg kernel "$(uname -r)" --arg cores "$(nproc)" \
    '"calibrate: \($cores) x \($cpu), Linux \($kernel), showdown \($commit), \($at)"'
printf 'measuring for %s s and a little more; the first line comes after half of it\n\n' "$seconds"

calibrate_spin 3 "$(part 40)"
checkout slower "$SPIN"

compare plain same 11 "$(part 160)" --boots 320
resampled "(1) A/A, real runs" runs "$(latest)"
compare plain same 12 "$(part 100)"
session=$(latest)
resampled "(1) A/A, drawn runs" chance "$session"
resampled "(2) power" power "$session"
compare plain slower 13 "$(part 100)"
[ "$(compared outcome)" = slower ]
result $? "(2) power, a real run" "a spin of $SPIN turns a request, 3% of its requests a second" \
    "$(compared outcome): $(compared ratio) ($(compared ratio_low) to $(compared ratio_high))" \
    "$(latest)"
resampled "(3) coverage" coverage "$session"

# ---- (4): others on a core for half of the run

entry plain plain
entry other plain
if [ "$(nproc)" = 1 ]; then
    result 1 "(4) neighbours" "nothing" "one CPU only: a hog leaves no core to itself" none
else
    for place in server hammer; do
        cpu=$(jq .plan.server_cpu "$(latest)/run.json")
        [ $place = hammer ] && cpu=$(jq '.plan.hammer_cpus[0]' "$(latest)/run.json")
        hog "$cpu" "$((12 * seconds / 480 / 2 + 1))"
        measure plain other --twin plain --boots 12 --budget "$(part 12)" --slice 50ms
        kill "$hog_pid" 2>/dev/null
        wait "$hog_pid" 2>/dev/null
        judged "(4) neighbours, the $place's core" \
            "an endless loop on it for half of a run of two equal servers, 12 boots" \
            'all(.entries[]; .verdicts | index("neighbours")) and (any(.pairs[]; .outranks) | not)' \
            '(.entries | map("\(.name): \(.verdict), it waited \(.server_waited | percent), the load "
            + "generator \(.hammer_waited | percent)") | join("; ")) + "; "
            + (.pairs[0] | "ratio \(.ratio | figure), p \(.p_adjusted | figure), "
            + if .outranks then "a false rank" else "no rank claimed" end)'
    done
fi

# ---- (5), (6): a load generator without room, errors, a trend, a warm-up without end

measure plain other --twin none --boots 2 --budget "$(part 6)" --slice 200ms --hammer-burn 50us
judged "(5) hammer" "the load generator spins 50 us before each request" \
    'all(.entries[]; (.verdicts | index("hammer")) and .server_busy < 0.9) and (any(.pairs[]; .outranks) | not)' \
    '.entries | map("\(.name): \(.verdicts | join(" and ")), server busy \(.server_busy | percent), load generator "
    + "\(.hammer_busy | percent)") | join("; ")'

entry wrong wrong-body-after 30000
measure wrong plain --twin none --boots 1 --budget "$(part 4)" --slice 50ms
judged "(6) errors" "a wrong body from the 30,000th answer on, beside a plain server" \
    '(.entries | map({(.name): .verdict}) | add) as $v | $v.wrong == "errors" and $v.plain != "errors"' \
    '.entries | map("\(.name): \(.verdict), \(.reason // "no error")") | join("; ")'

# Chance names a plain server in one run of 20 at most (stats/drift.h), and there are two such runs:
# where it did, a second run is judged, and the result says so. What is planted must be in both.
unsteady() { # ENTRY TITLE PLANTED
    local plain='[.entries[] | select(.name != $planted and (.verdicts | index("unsteady")))] | length'
    local named='[.entries[] | select(.name == $planted and (.verdicts | index("unsteady")))] | length'
    local condition="($plain) == 0 and ($named) == 1" again=""
    condition=${condition//\$planted/\"$1\"}
    measure "$1" plain other third --twin none --boots 1 --budget "$(part 10)" --slice 50ms
    if holds "$tmp/out" --arg planted "$1" "($plain) > 0 and ($named) == 1" >/dev/null; then
        again="a plain one was named in $(basename "$(latest)"), so once more: "
        measure "$1" plain other third --twin none --boots 1 --budget "$(part 10)" --slice 50ms
    fi
    judged "$2" "$3, beside three plain ones" "$condition" \
        "\"$again\" + (.entries | map(\"\(.name): \(.verdicts | join(\" and \"))\") | join(\"; \")) + \"; \" + \$told"
}
entry third plain
entry ages ages 100
unsteady ages "(6) trend" "a server slower by 20 us a request for each second of its age"
entry warms warms 500
unsteady warms "(6) warm-up" "500 us a request over the age in seconds: never warm"

printf '\ncalibrate: %s of %s pass, in %s s; records in %s\n' "$passed" "$((passed + failed))" \
    "$(($(date +%s) - began))" "${records#"$repository/"}"
[ "$failed" = 0 ]
