# Shared by the end-to-end tests: a root of its own for each script, entries made of stub servers,
# and checks that print TAP. Source it first; it ends the script with its sum by itself.
#
# The program and the stub are copied into the temporary folder, so that whatever they leave behind
# can be told from the processes of anyone else by the path of its program.
# shellcheck shell=bash
set -u
repository=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$repository" && cd "${BUILD:-build}" && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/e2e.XXXXXX")
chmod 755 "$tmp"
mkdir -p "$tmp/build" "$tmp/root/servers" "$tmp/tmpdir"
chmod 1777 "$tmp/tmpdir"
# Four rules of the contract, so that a run's gate sends few requests: who wants all takes all.
mkdir -p "$tmp/root/tests/contract"
cp "$repository"/tests/contract/{A02,B02,D01,D10}.md "$tmp/root/tests/contract/"
cp "$build/showdown" "$build/stubs/stub" "$tmp/build/"
showdown=$tmp/build/showdown
stub=$tmp/build/stub
root=$tmp/root
export TMPDIR=$tmp/tmpdir LC_ALL=C
tests=0

# Pids of all processes whose program lies in the temporary folder.
left_behind() {
    local exe
    for exe in /proc/[0-9]*/exe; do
        case $(readlink "$exe" 2>/dev/null) in
        "$tmp"/*) basename "$(dirname "$exe")" ;;
        esac
    done
}

finish() {
    local status=$? pid
    for pid in $(left_behind); do
        kill -KILL "$pid" 2>/dev/null
    done
    if [ -n "${E2E_KEEP:-}" ]; then
        echo "# kept: $tmp"
    else
        rm -rf "$tmp"
    fi
    echo "1..$tests"
    exit "$status"
}
trap finish EXIT

pass() {
    tests=$((tests + 1))
    echo "ok $tests - $1"
}

fail() { # TITLE TEXT of what was seen
    tests=$((tests + 1))
    echo "not ok $tests - $1"
    printf '%s\n' "$2" | sed 's/^/#   /'
}

skip() { # TITLE REASON
    tests=$((tests + 1))
    echo "ok $tests - $1 # skip $2"
}

is() { # TITLE GOT WANTED
    if [ "$2" = "$3" ]; then
        pass "$1"
    else
        fail "$1" "got:    $2
wanted: $3"
    fi
}

exits() { # TITLE STATUS: that of the last `show`
    if [ "$status" = "$2" ]; then
        pass "$1"
    else
        fail "$1" "exit status $status, not $2
$(tail -c 2000 "$tmp/err")
$(tail -c 2000 "$tmp/out")"
    fi
}

has() { # TITLE FILE EXTENDED-REGEX: some line of the file matches
    if grep -Eq -- "$3" "$2"; then
        pass "$1"
    else
        fail "$1" "no line matches: $3
$(head -c 3000 "$2")"
    fi
}

prints() { # TITLE FILE TEXT: some line of the file holds the text, its signs for themselves
    if grep -Fq -- "$3" "$2"; then
        pass "$1"
    else
        fail "$1" "no line holds: $3
$(head -c 3000 "$2")"
    fi
}

has_not() { # TITLE FILE EXTENDED-REGEX
    if grep -Eq -- "$3" "$2"; then
        fail "$1" "a line matches: $3
$(head -c 3000 "$2")"
    else
        pass "$1"
    fi
}

# jq 1.6 takes any condition for true of an empty file.
holds() { # FILE JQ-ARGUMENT...
    local text
    text=$(cat "$1")
    shift
    [ -n "$text" ] && jq -e "$@" <<<"$text" 2>&1
}

json() { # TITLE FILE JQ-CONDITION
    local seen
    if seen=$(holds "$2" "$3"); then
        pass "$1"
    else
        fail "$1" "condition: $3
gives: $seen
$(head -c 4000 "$2")"
    fi
}

row() { # TITLE FILE ENTRY JQ-CONDITION on the entry's object in a report
    local object seen=
    object=$(jq --arg name "$3" '.entries[] | select(.name == $name)' "$2" 2>&1)
    if [ -n "$object" ] && seen=$(printf '%s' "$object" | jq -e "$4" 2>&1); then
        pass "$1"
    else
        fail "$1" "condition: $4
gives: ${seen:-}
row: $object"
    fi
}

field() { # FILE ENTRY KEY
    jq -r --arg name "$2" --arg key "$3" '.entries[] | select(.name == $name) | .[$key]' "$1"
}

manifest() { # NAME RUN...: servers/NAME/entry.conf
    local name=$1
    shift
    mkdir -p "$root/servers/$name"
    cat >"$root/servers/$name/entry.conf" <<END
name = $name
title = $name
language = C
library = none
layer = server
parser = own
model = epoll
tuning = stock
run = $*
END
}

entry() { # NAME MODE [NUMBER...]: an entry that is the stub in that mode
    local name=$1
    shift
    manifest "$name" "$stub" "$@" --port '{port}'
}

# The whole tree and its build as they stand, in place of the root, and there from now on.
whole_tree() {
    rm -rf "$root"
    mkdir -p "$root"
    (cd "$repository" && git ls-files -z --cached --others --exclude-standard | xargs -0 cp -a --parents -t "$root")
    cp -a "$build" "$root/build"
    unset MAKEFLAGS MAKELEVEL BUILD SAN
    cd "$root" || exit 1
}

# Runs the program: output in $tmp/out, messages in $tmp/err, its exit status in $status.
show() {
    timeout -k 10 "${SHOW_TIMEOUT:-100}" "$showdown" --root "$root" --build "$tmp/build" "$@" \
        >"$tmp/out" 2>"$tmp/err" </dev/null
    status=$?
}

# As short as a run can be and still measure.
brief="--boots 1 --budget 2s --slice 50ms --seed 7"

# A stub beside the harness, for hammer: sets $port and $stub_pid once it listens.
next_port=$((${E2E_PORT:-20000} + $$ % 40 * 12))
serve_stub() { # MODE [NUMBER...]
    local i
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        port=$next_port
        next_port=$((next_port + 1))
        listens && continue
        "$stub" "$@" --port "$port" 2>"$tmp/stub.err" &
        stub_pid=$!
        for i in $(seq 200); do
            listens && return
            sleep 0.02
        done
    done
    echo "Bail out! no stub server could be started: $*"
    exit 1
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

stop_stub() {
    kill "$stub_pid" 2>/dev/null
    wait "$stub_pid" 2>/dev/null
}

# An endless loop on one core, in the background; its pid in $hog_pid.
hog() { # CPU SECONDS
    timeout "$2" taskset -c "$1" bash -c 'while :; do :; done' &
    hog_pid=$!
}

# Nothing may be left of what the program started: no process, no temporary file. A keeper takes a
# moment to see that its harness is gone: up to 5 s.
nothing_left() { # TITLE
    local left=x i
    for i in $(seq 50); do
        left=$(left_behind)
        [ -n "$left" ] || break
        sleep 0.1
    done
    { for i in $left; do tr '\0' ' ' <"/proc/$i/cmdline"; echo; done
      find "$TMPDIR" -mindepth 1
      find "$root" -mindepth 1 -maxdepth 1 ! -name servers ! -name results ! -name tests; } >"$tmp/left" 2>/dev/null
    is "$1" "$(head -c 2000 "$tmp/left")" ""
}
