#!/bin/bash
# hammer against stub servers, with both engines: the counts always add up, and are exactly what the
# stub did.
. "$(dirname "$0")/lib.bash"

hammer() { # ARGUMENT...: $status, and the object in $tmp/out
    show hammer "http://127.0.0.1:$port/" --engine "$engine" --json "$@"
}

adds_up() { # TITLE
    json "$1: the counts add up" "$tmp/out" \
        '.sent == .valid + .wrong + ([.errors[]] | add // 0) + .timed_out + .in_flight'
}

try() { # TITLE JQ-CONDITION
    adds_up "$engine: $1"
    json "$engine: $1" "$tmp/out" "$2"
}

all_engines() {
    serve_stub plain
    hammer -n 1000 -c 10
    exits "$engine: a right server: exit status" 0
    try "1000 requests asked for: exactly those" '.sent == 1000 and .valid == 1000'
    try "all connections were there" '.connections_established == 10 and .reconnects == 0'
    hammer -n 5000 -c 7 -p 16
    try "pipelined" '.valid == 5000 and .wrong == 0'
    hammer -n 2000 -c 5 --close
    try "a connection a request" '.valid == 2000 and .wrong == 0 and .connect_failures == 0'
    hammer -d 300ms -c 9 -t 2
    try "two threads" '.valid > 100 and .connections_established == 9'
    hammer -n 100 -c 2 --expect-body "Hello Mars"
    exits "$engine: a body other than expected: exit status" 1
    try "a body other than expected" '.valid == 0 and .wrong == 100 and
        (.first_fault | test("Hello World"))'
    hammer -n 100 -c 2 -m POST -b "some body" -H "X-Test: yes"
    try "POST with a body" '.valid == 100 and .wrong == 0'
    hammer -n 100 -c 2 -m HEAD
    try "HEAD has no body" '.valid == 100 and .wrong == 0'
    show hammer "http://127.0.0.1:$port/nowhere" --engine "$engine" --json -n 50 -c 1
    try "404 is not a valid answer" '.valid == 0 and .wrong == 50 and .status["404"] == 50'
    stop_stub

    serve_stub delay 5
    hammer -d 600ms -c 8
    try "5 ms late: p50" '.latency_p50_us >= 5000 and .latency_p50_us < 7000'
    try "5 ms late: Little's law" '.little_ratio > 0.9 and .little_ratio < 1.1'
    stop_stub

    serve_stub delay 5
    hammer -d 300ms -c 8 --timeout 2ms
    try "5 ms late, 2 ms allowed: late even where it comes before the sweep" \
        '.valid == 0 and .timed_out > 0'
    stop_stub

    serve_stub delay 60
    hammer -d 300ms -c 8 --timeout 10ms
    try "60 ms late, 10 ms allowed: all time out" '.valid == 0 and .timed_out > 0'
    stop_stub

    serve_stub every 100 200
    hammer -n 5000 -c 4 -d 1s
    exits "$engine: -n beside -d: refused" 2
    hammer -n 1000 -c 1
    try "every hundredth 200 ms late: p50" '.latency_p50_us < 20000'
    try "every hundredth 200 ms late: the longest" \
        '.latency_max_us >= 200000 and .latency_max_us < 260000'
    try "every hundredth 200 ms late: the mean" \
        '.latency_mean_us >= 2000 and .latency_mean_us < 3500'
    stop_stub

    for shape in chunked informational "split 1" "split 48"; do
        serve_stub $shape
        hammer -n 200 -c 3
        try "$shape: all valid" '.valid == 200 and .wrong == 0 and ([.errors[]] | add // 0) == 0'
        stop_stub
    done

    serve_stub error-500
    hammer -n 100 -c 2
    try "status 500: all wrong, counted by status" \
        '.valid == 0 and .wrong == 100 and .status["500"] == 100'
    exits "$engine: status 500: exit status" 1
    stop_stub

    serve_stub wrong-body-after 500
    hammer -n 1000 -c 4 --expect-body 'Hello World
'
    try "right for 500 answers, then wrong" '.valid == 500 and .wrong == 500'
    stop_stub

    serve_stub reset-after 300
    hammer -d 300ms -c 3
    try "reset after 300: exactly 300 valid, the others resets" '.valid == 300 and
        .errors.reset > 0 and .wrong == 0 and .errors.closed == 0 and .reconnects > 0'
    stop_stub

    serve_stub early-close
    hammer -d 300ms -c 3
    try "closed in mid answer: none valid" '.valid == 0 and .errors.closed > 0'
    stop_stub

    serve_stub bad-http
    hammer -d 300ms -c 3
    try "not HTTP: malformed" '.valid == 0 and .errors.malformed > 0 and
        (.first_fault | length > 0)'
    stop_stub

    serve_stub wrong-length 13
    hammer -d 300ms -c 3 --timeout 100ms
    try "a body shorter than its length: none valid, timed out" \
        '.valid == 0 and .timed_out > 0'
    stop_stub

    serve_stub no-keepalive
    hammer -n 200 -c 3
    try "closes after each answer: all valid, connected again" \
        '.valid == 200 and .wrong == 0 and .reconnects > 100'
    stop_stub

    serve_stub hang-after 100
    hammer -d 500ms -c 3 --timeout 100ms
    try "hangs after 100: exactly 100 valid, others time out" '.valid == 100 and .timed_out > 0'
    stop_stub

    serve_stub die-after 100
    hammer -d 300ms -c 3
    try "dies after 100: exactly 100 valid" '.valid == 100 and
        (.errors.reset + .errors.closed) > 0 and .connect_failures > 0'
    wait "$stub_pid" 2>/dev/null

    serve_stub drops-pipelined
    hammer -d 300ms -c 2 -p 8 --timeout 100ms
    try "drops pipelined requests: they time out" '.timed_out > 0'
    stop_stub
}

engine=epoll
all_engines
engine=io_uring
serve_stub plain
hammer -n 1 -c 1
if [ "$status" = 0 ]; then
    stop_stub
    all_engines
else
    stop_stub
    skip "the io_uring engine" "$(head -1 "$tmp/err" | tr '#' ' ')"
fi

serve_stub plain
engine=auto
hammer -n 10 -c 1
json "auto: says which engine it took" "$tmp/out" '.engine | IN("epoll", "io_uring")'
show hammer "http://127.0.0.1:$port/" -n 100 -c 1
exits "plain text: exit status" 0
has "plain text: the rate, with its unit" "$tmp/out" "req/s"
"$showdown" hammer "http://127.0.0.1:$port/" -d 30s -c 2 --json >"$tmp/out" 2>"$tmp/err" &
pid=$!
sleep 0.5
kill -TERM "$pid"
wait "$pid"
is "interrupted: exit status" "$?" 130
try "interrupted: what was counted is printed" '.valid > 0'
stop_stub
nothing_left "nothing is left behind"
