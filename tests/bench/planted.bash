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
# and compared, in the same machine minute: 1000 turns are about 1 us, a sixth of a request. A small one
# costs less than its share of it (66 turns cost 1.4% for 3%), probably since a server that is not quite
# full spins in time it would have waited. So a second one is compared, of twice the turns that the first
# makes of the wish, and the wish lies on the line through both, in the time a request. Needs the checkout
# `plain`.
calibrate_spin() { # PERCENT BUDGET
    local large small turns
    checkout coarse 1000
    compare plain coarse 1 "$2"
    large=$(compared ratio)
    turns=$(jq -rn --argjson share "$1" --argjson r "$large" \
        '2 * (1 / (1 - $share / 100) - 1) / ((1 / $r - 1) / 1000) | round')
    checkout fine "$turns"
    compare plain fine 2 "$2"
    small=$(compared ratio)
    SPIN=$(jq -rn --argjson share "$1" --argjson l "$large" --argjson s "$small" --argjson turns "$turns" \
        '((1 / $l - 1 / $s) / (1000 - $turns)) as $slope |
        $turns - (1 / $s - 1 / (1 - $share / 100)) / $slope | round | if . < 1 then 1 else . end')
}
