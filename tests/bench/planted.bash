# Shared by what compares two builds of one entry: checkouts with a spin planted in each request, and
# the comparison. Source it from the repository's root with $tmp (a folder), $build (absolute) and
# $planted_entry set.
# shellcheck shell=bash

# A checkout as compare takes it: servers/ and build/servers/NAME. $2: turns of the spin a request.
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
            END { exit !planted }' "servers/$planted_entry/main.c" \
            >"$tmp/$1/servers/$planted_entry/main.c"
    fi
    make --no-print-directory -s -C "$tmp/$1" BUILD=build "entry-$planted_entry" >&2
}

compare() { # OLD NEW SEED BUDGET [FLAG...]: JSON in $tmp/compared, exit status in $status
    local old=$1 new=$2 seed=$3 budget=$4
    shift 4
    status=0
    "$build/showdown" --root . --build "$build" compare --entry "$planted_entry" \
        --old "$tmp/$old" --new "$tmp/$new" --seed "$seed" --budget "$budget" \
        --results "${records:-$tmp/results}" --format json "$@" \
        >"$tmp/compared" 2>"$tmp/err" </dev/null || status=$?
    case $status in
    0 | 3 | 4) ;;
    *)
        cat "$tmp/err" >&2
        exit 1
        ;;
    esac
}

compared() { jq -r ".entries[0].$1" "$tmp/compared"; }

# Sets SPIN to the turns that cost $1 per cent of the requests a second. A large spin is planted first
# and compared, in the same machine minute: 1000 turns are about 1 us, a sixth of a request. The ratio
# r gives (1/r - 1)/1000 of a request a turn, and 3% less is 1/0.97 - 1 of a request. Both scale with
# the clock, so the share holds when the clock moves. Needs the checkout `plain`.
calibrate_spin() { # PERCENT BUDGET
    checkout coarse 1000
    compare plain coarse 1 "$2"
    SPIN=$(jq -r --argjson share "$1" \
        '.entries[0] | (1 / (1 - $share / 100) - 1) / ((1 / .ratio - 1) / 1000) | round' \
        "$tmp/compared")
}
