#!/usr/bin/env bash
# What this entry promises beyond the contract: any script runs, in luvit's manner. Prints TAP.
#   BUILD=build servers/luvit/test.sh
set -u
cd "$(dirname "$0")/../.."
luvit=$PWD/${BUILD:-build}/servers/luvit
if [ ! -x "$luvit" ]; then
    echo "ok 1 - luvit scripts # skip not built: the table says what it needs"
    exit 0
fi
tmp=$(mktemp -d)
pid=
cleanup() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null
    rm -rf "$tmp"
}
trap cleanup EXIT
tests=0
check() { # TITLE SEEN WANTED
    tests=$((tests + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $tests - $1"
    else
        printf 'not ok %s - %s\n#   got:    %s\n#   wanted: %s\n' "$tests" "$1" "$2" "$3"
    fi
}
port=
start() { # SCRIPT: runs it on a free port, until it answers a connection
    for attempt in 1 2 3 4 5; do
        port=$((20000 + (RANDOM + $$ + attempt) % 12000))
        "$luvit" "$1" "$port" 2>"$tmp/err" &
        pid=$!
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
            sleep 0.05
        done
        kill "$pid" 2>/dev/null
        wait "$pid"
    done
    echo "Bail out! $1 does not start: $(cat "$tmp/err")"
    exit 1
}
stop() {
    kill "$pid"
    wait "$pid"
    check "$1: SIGTERM ends it with status 0" "$?" 0
    pid=
}
url() { echo "http://127.0.0.1:$port$1"; }

head -c 300000 /dev/urandom >"$tmp/body"
start servers/luvit/examples/echo.lua
curl -s --max-time 10 --data-binary "@$tmp/body" -H 'Content-Type: image/png' -D "$tmp/head" -o "$tmp/back" "$(url /)"
check "echo.lua: the body comes back whole" "$(cmp "$tmp/body" "$tmp/back" 2>&1)" ""
check "echo.lua: the type as well" "$(grep -ci '^content-type: image/png' "$tmp/head")" 1
stop echo.lua

cat >"$tmp/user.lua" <<'LUA'
local http, timer = require('http'), require('timer')
http.createServer(function(req, res)
  if req.url == '/error' then
    error('planted in the handler')
  elseif req.url == '/later' then
    timer.setTimeout(50, function()
      res:writeHead(202, { ['X-Method'] = req.method, ['Content-Length'] = 6 })
      res:finish('later\n')
    end)
  else
    res:setHeader('Set-Cookie', { 'a=1', 'b=2' })
    res:write('part ')
    res:write('by ')
    res:finish('part\n')
  end
end):listen(tonumber(process.argv[2]))
LUA
start "$tmp/user.lua"
check "parts without a length arrive as one" "$(curl -s --max-time 5 "$(url /)")" "part by part"
check "an answer may come later, with writeHead" \
    "$(curl -s --max-time 5 -X PUT -o /dev/null -w '%{http_code} %{size_download}' "$(url /later)")" "202 6"
check "requests of one connection keep their order" \
    "$(curl -s --max-time 5 "$(url /later)" "$(url /)")" "$(printf 'later\npart by part')"
check "an error in a handler is answered with 500" \
    "$(curl -s --max-time 5 -o /dev/null -w '%{http_code}' "$(url /error)")" 500
check "and its traceback is printed" "$(grep -c 'user.lua:4.*planted in the handler' "$tmp/err")" 1
check "and the server goes on" "$(curl -s --max-time 5 "$(url /)")" "part by part"
stop user.lua

"$luvit" "$tmp/absent.lua" 2>"$tmp/err"
check "a script that is not there: status" "$?" 1
check "a script that is not there: its name" "$(grep -c 'absent.lua' "$tmp/err")" 1
echo 'return (' >"$tmp/broken.lua"
"$luvit" "$tmp/broken.lua" 2>"$tmp/err"
check "a script that does not parse: status" "$(($? != 0))" 1
check "a script that does not parse: where" "$(grep -c 'broken.lua:[12]:' "$tmp/err")" 1
echo "1..$tests"
