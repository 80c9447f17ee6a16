#!/bin/bash
# Does `showdown compare` tell a build that is 3% slower from one that is not? Two copies of the libev
# entry are made in a temporary folder; into one a spin is planted, so long that it costs 3% of the
# requests a second; each way is compared RUNS times, and the right answers are counted.
#   RUNS=10 SLOWER=3 BUDGET=100s ENTRY=libev tests/bench/compare.sh
#
# The spin is calibrated in the same machine minute: a large one is planted first and compared, and
# the time of one request is what it took in the ratio to what was planted (both scale with the clock,
# so the share holds when the clock moves). SPIN=N leaves calibrating out.
set -eu
cd "$(dirname "$0")/../.."
runs=${RUNS:-10} slower=${SLOWER:-3} budget=${BUDGET:-100s} entry=libev
build=$(cd "${BUILD:-build}" && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/bench-compare.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# A checkout as compare takes it: servers/ and build/servers/libev. $2: turns of the spin a request.
checkout() { # FOLDER TURNS
    mkdir -p "$tmp/$1"
    cp -r Makefile servers scripts "$tmp/$1/"
    if [ "$2" != 0 ]; then
        awk -v turns="$2" '
            /size_t bytes = http1_feed/ {
                print "    /* Planted: each turn needs the one before it, so that none can be left out. */"
                print "    static volatile unsigned long sink;"
                print "    unsigned long spin = sink;"
                print "    for (int turn = 0; turn < " turns "; turn++)"
                print "        spin = spin * 6364136223846793005UL + 1442695040888963407UL;"
                print "    sink = spin;"
                planted = 1
            }
            { print }
            END { exit !planted }' "servers/$entry/main.c" >"$tmp/$1/servers/$entry/main.c"
    fi
    make --no-print-directory -s -C "$tmp/$1" BUILD=build "entry-$entry" >&2
}

compare() { # OLD NEW SEED BUDGET: JSON in $tmp/out, exit status in $status
    status=0
    "$build/showdown" --root . --build "$build" compare --entry "$entry" --old "$tmp/$1" \
        --new "$tmp/$2" --seed "$3" --budget "$4" --results "$tmp/results" --format json \
        >"$tmp/out" 2>"$tmp/err" || status=$?
    case $status in
    0 | 3 | 4) ;;
    *)
        cat "$tmp/err" >&2
        exit 1
        ;;
    esac
}

field() { jq -r ".entries[0].$1" "$tmp/out"; }

checkout plain 0
checkout same 0
if [ -z "${SPIN:-}" ]; then
    # 1000 turns are about 1 us, a sixth of a request: the ratio r gives (1/r - 1)/1000 of a request a
    # turn, and 3% less is 1/0.97 - 1 of a request.
    checkout coarse 1000
    compare plain coarse 1 "${CALIBRATE:-60s}"
    SPIN=$(jq -r --argjson share "$slower" \
        '.entries[0] | (1 / (1 - $share / 100) - 1) / ((1 / .ratio - 1) / 1000) | round' "$tmp/out")
    printf 'calibrated: 1000 turns a request: req/s %.4f (%.4f..%.4f), CPU %.2f -> %.2f us a request\n' \
        "$(field ratio)" "$(field ratio_low)" "$(field ratio_high)" "$(field cpu_us_per_req_a)" \
        "$(field cpu_us_per_req_b)"
fi
checkout slower "$SPIN"
echo "planted: $SPIN turns a request, $slower% fewer requests a second"

count() { # NAME NEW WANTED-STATUS
    local right=0 i began
    for i in $(seq "$runs"); do
        began=$(date +%s)
        compare plain "$2" "$((100 + i))" "$budget"
        [ "$status" = "$3" ] && right=$((right + 1))
        printf '%s %2d: %s, %.4f (%.4f..%.4f), mean %.4f (%.4f..%.4f), exit %s, %s s\n' "$1" "$i" \
            "$(field outcome)" "$(field ratio)" "$(field ratio_low)" "$(field ratio_high)" \
            "$(field ratio_of_all)" "$(field ratio_of_all_low)" "$(field ratio_of_all_high)" \
            "$status" "$(($(date +%s) - began))"
    done
    echo "$1: $right of $runs right"
    wrong=$((wrong + runs - right))
}

wrong=0
count unchanged same 0
count "$slower% slower" slower 3
[ "$wrong" = 0 ]
