#!/bin/bash
# Does `showdown compare` tell a build that is 3% slower from one that is not? Two copies of the libev
# entry are made in a temporary folder; into one a spin is planted, so long that it costs 3% of the
# requests a second; each way is compared RUNS times, and the right answers are counted.
#   RUNS=10 SLOWER=3 BUDGET=100s tests/bench/compare.sh
#
# The spin is calibrated first (planted.bash); SPIN=N leaves that out.
set -eu
cd "$(dirname "$0")/../.."
runs=${RUNS:-10} slower=${SLOWER:-3} budget=${BUDGET:-100s} planted_entry=libev
build=$(cd "${BUILD:-build}" && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/bench-compare.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

. tests/bench/planted.bash

checkout plain 0
checkout same 0
if [ -z "${SPIN:-}" ]; then
    calibrate_spin "$slower" "${CALIBRATE:-60s}"
    printf 'calibrated near %s%%: req/s %.4f (%.4f..%.4f), CPU %.2f -> %.2f us a request\n' "$slower" \
        "$(compared ratio)" "$(compared ratio_low)" "$(compared ratio_high)" "$(compared cpu_us_per_req_a)" \
        "$(compared cpu_us_per_req_b)"
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
            "$(compared outcome)" "$(compared ratio)" "$(compared ratio_low)" "$(compared ratio_high)" \
            "$(compared ratio_of_all)" "$(compared ratio_of_all_low)" "$(compared ratio_of_all_high)" \
            "$status" "$(($(date +%s) - began))"
    done
    echo "$1: $right of $runs right"
    wrong=$((wrong + runs - right))
}

wrong=0
count unchanged same 0
count "$slower% slower" slower 3
[ "$wrong" = 0 ]
