#!/bin/sh
# Our load generator beside wrk and h2load, against the server that does least.
#   ROUNDS=10 SECONDS_EACH=1 CASES="64 256 1000 p16" BENCH_PORT=8127 tests/bench/hammer.sh
set -eu
cd "$(dirname "$0")/../.."
server=limit-epoll
build=${BUILD:-build}
scripts/setup bench "$server"
make --no-print-directory "$build/showdown" "entry-$server" "$build/bench/hammer"
exec "$build/bench/hammer" "$build/showdown" "$build/servers/$server" "${BENCH_PORT:-8127}" \
    "${ROUNDS:-10}" "${SECONDS_EACH:-1}" ${CASES:-}
