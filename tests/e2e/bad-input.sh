#!/bin/bash
# Bad input: a message that names the thing and the remedy, exit status 2, nothing written.
. "$(dirname "$0")/lib.bash"

entry plain plain
entry planet plain

refused() { # TITLE REGEX ARGUMENT...: usage error whose message matches
    local title=$1 regex=$2
    shift 2
    show "$@"
    exits "$title: exit status" 2
    has "$title: the message" "$tmp/err" "$regex"
    is "$title: nothing on standard output" "$(head -c 500 "$tmp/out")" ""
}

refused "an unknown entry" "^showdown: .*plane.*plain|^showdown: .*plane.*planet" run plane $brief
refused "an unknown entry to serve" "plian.*plain" serve plian --port 1
refused "an unknown flag of run" "--bogus" run plain --bogus
refused "a slice longer than the budget" "--budget" run plain --slice 1h --budget 1s
refused "more boots than the budget holds" "--boots" run plain --boots 1000 --budget 5s
refused "an unknown flag of report" "--bogus" report --bogus
refused "an unknown flag of hammer" "--bogus" hammer --bogus http://127.0.0.1:1/
refused "an unknown flag of list" "--bogus" list --bogus
refused "an unknown command" "unknown command 'rnu'" rnu
refused "a value left out" "--seed" run plain --seed
refused "no connection" "-c" run plain -c 0
refused "a number that is none" "-c.*many" run plain -c many
refused "a negative number" "-c" run plain -c -5
refused "too many connections" "-c" run plain -c 99999999999
refused "a duration without sense" "--budget.*soon" run plain --budget soon
refused "a number with a sign" "-c.*\\+3" run plain -c +3
refused "a number with a blank" "-c" run plain -c " 3"
refused "a duration with a sign" "--budget.*\\+3s" run plain --budget +3s
refused "a duration in hexadecimal" "--budget.*0x10s" run plain --budget 0x10s
refused "a duration with an exponent" "--budget.*1e1s" run plain --budget 1e1s
refused "a duration of days" "--budget.*24h.*100h" run plain --budget 100h
refused "hammer: a duration of days" "-d.*24h.*100h" hammer -d 100h http://127.0.0.1:1/
refused "a core with a sign" "--server-cpu.*\\+0" run plain --server-cpu +0
for workers in 0 65 x -1 ""; do
    refused "workers of '$workers'" "--workers takes a whole number from 1 to 64" run plain --workers "$workers"
done
refused "more cores than workers" "--server-cpus names 2 cores for 1 worker" run plain --server-cpus 0,1
refused "a worker's core that is not there" "CPU 4000.*server" run plain --workers 2 --server-cpus 0,4000
refused "a worker's core twice" "named twice" run plain --workers 2 --server-cpus 0,0 --hammer-cpus 1
refused "a worker's core that is the load generator's" "CPU 1 is the server's.*allowed are" \
    run plain --workers 2 --server-cpus 0,1 --hammer-cpus 1
for precision in 0% 200% 1 abc -1% 1%% +1% ""; do
    refused "a precision of '$precision'" "--precision takes a percentage from 0.1% to 50%, such as 1%" \
        run plain --precision "$precision"
done
refused "a precision of a first look" "--quick.*--precision.*leave one" run plain --quick --precision 1%
refused "a precision of few boots" "--precision.*12 boots.*--boots 11" run plain --boots 11 --precision 1%
refused "a precision in no time" "12 boots.*--budget" run plain --budget 100ms --precision 1%
refused "the hammer on a core that is not there" "CPU 1000.*load generator" run plain --hammer-cpus 1000
refused "the hammer on a core twice" "named twice" run plain --hammer-cpus 0,0
refused "the hammer on no list" "--hammer-cpus.*0,2-3" run plain --hammer-cpus 0,
refused "an empty budget" "--budget" run plain --budget 0s
refused "no boots" "--boots" run plain --boots 0
refused "an unknown workload" "hullo.*hello" run plain -w hullo
refused "an unknown engine" "--engine.*quic" run plain --engine quic
refused "an unknown format" "--format.*yaml" run plain --format yaml
refused "a core that is not there" "4000" run plain --server-cpu 4000
refused "hammer: -n with -d" "-n.*-d|-d.*-n" hammer -n 10 -d 1s http://127.0.0.1:1/
refused "hammer: no connection" "-c" hammer -c 0 http://127.0.0.1:1/
refused "hammer: no URL" "URL" hammer
refused "hammer: not HTTP" "https" hammer https://127.0.0.1:1/
refused "hammer: more threads than connections" "-t" hammer -c 2 -t 3 -n 1 http://127.0.0.1:1/
refused "hammer: a header without a colon" "colon|-H" hammer -n 1 -H nonsense http://127.0.0.1:1/
refused "serve: no port" "--port" serve plain
refused "serve: a port beyond 65535" "--port" serve plain --port 70000
is "no record was made" "$(ls "$root/results" 2>/dev/null)" ""

show hammer -c 1 -n 1 http://127.0.0.1:1/
exits "hammer: nothing listens: exit status" 1
has "hammer: nothing listens: the message" "$tmp/err" "127.0.0.1:1.*refused|refused.*127.0.0.1:1"

# Root may raise the limit, so another user asks.
limited() { # ARGUMENT...
    local as=
    [ "$(id -u)" != 0 ] || as="setpriv --reuid 65534 --regid 65534 --clear-groups"
    (ulimit -n 256; $as "$showdown" --root "$root" "$@") >"$tmp/out" 2>"$tmp/err" </dev/null
    status=$?
}
limited run plain -c 1000 $brief
exits "more connections than the file limit: exit status" 2
has "more connections than the file limit: the remedy" "$tmp/err" "ulimit -H?n"
limited hammer -c 1000 -n 1 http://127.0.0.1:1/
exits "hammer: more connections than the file limit: exit status" 2
has "hammer: more connections than the file limit: the remedy" "$tmp/err" "ulimit -H?n"

conf=$root/servers/plain/entry.conf
cp "$conf" "$tmp/good.conf"
spoilt() { # TITLE REGEX: the manifest was spoilt; the message says where (a missing key has no line)
    show list
    exits "$1: exit status" 1
    has "$1: file, line and what is wrong" "$tmp/err" "servers/plain/entry.conf:([0-9]+:)? .*($2)"
    cp "$tmp/good.conf" "$conf"
}
echo 'colour = red' >>"$conf"
spoilt "a manifest with an unknown key" "colour"
sed -i 's/^title = .*/title = $(shell id)/' "$conf"
spoilt 'a manifest with a $' '\$'
sed -i 's/^name = .*/name = plane/' "$conf"
spoilt "a manifest with another name than its folder's" "plane"
sed -i 's/^title = .*/title =/' "$conf"
spoilt "a manifest with a missing value" "title"
sed -i '/^run = /d' "$conf"
spoilt "a manifest without a key it needs" "run"
echo 'title = again' >>"$conf"
spoilt "a manifest with a key twice" "title"
echo 'no equals sign' >>"$conf"
spoilt "a manifest with a line that is none" "no equals sign|="
sed -i 's/ {port}$/ {prot}/' "$conf"
spoilt "a manifest with an unknown placeholder" "prot"
sed -i 's/^layer = .*/layer = cake/' "$conf"
spoilt "a manifest with an unknown layer" "cake"
show list
exits "the good manifest again: exit status" 0

for command in "" list run report serve hammer; do
    show $command --help
    exits "${command:-showdown} --help: exit status" 0
    has "${command:-showdown} --help: shows an example" "$tmp/out" "example"
done
show --version
has "--version" "$tmp/out" "^showdown [0-9a-f.v]+"

rm -rf "$root/results"
show report "$root/nowhere"
exits "report of a folder that is not there: exit status" 1
has "report of a folder that is not there: the message" "$tmp/err" "nowhere"
show report
exits "report before the first run: exit status" 1
has "report before the first run: says how to make one" "$tmp/err" "run"
mkdir "$tmp/empty"
show report "$tmp/empty"
exits "report of a folder that holds no record: exit status" 1
has "report of a folder that holds no record: the message" "$tmp/err" "run.json"

mv "$root/servers" "$tmp/no-servers"
mkdir "$root/servers"
show run
exits "no entry at all: exit status" 1
has "no entry at all: the message" "$tmp/err" "servers holds an entry.conf"
manifest unready no-such-program --port '{port}'
echo 'needs = no-such-program' >>"$root/servers/unready/entry.conf"
show run $brief
exits "no entry ready: exit status" 1
has "no entry ready: the message" "$tmp/err" "ready|can run"

# A FIFO where a text should be would be waited for without end.
rm -rf "$root/servers" "$root/results"
mkdir "$root/servers"
manifest configured "$stub" plain --port '{port}' --config '{config}'
echo 'config = server.conf' >>"$root/servers/configured/entry.conf"
mkfifo "$root/servers/configured/server.conf" "$root/tests/contract/Z99.md"
SHOW_TIMEOUT=10 show serve configured --port "$next_port"
exits "a FIFO as config: exit status" 1
has "a FIFO as config: the message" "$tmp/err" "server\.conf: not a regular file"
SHOW_TIMEOUT=10 show check --list
exits "a FIFO as page: exit status" 1
has "a FIFO as page: the message" "$tmp/err" "Z99\.md: not a regular file"
rm "$root/tests/contract/Z99.md"
mkdir "$tmp/piped"
mkfifo "$tmp/piped/run.json"
SHOW_TIMEOUT=10 show report "$tmp/piped"
exits "a FIFO as record: exit status" 1
has "a FIFO as record: the message" "$tmp/err" "run\.json: not a regular file"
nothing_left "nothing is left behind"
