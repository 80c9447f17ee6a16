#!/bin/bash
# docs/ADDING.md, run as written in a copy of the tree: each block of commands, and of the lines shown
# under it what does not change from run to run. Then the other templates, and what is refused.
. "$(dirname "$0")/lib.bash"

whole_tree

# step N: the Nth block's commands in $tmp/step, and what is shown under it in $tmp/shown.
step() {
    awk -v n="$1" -v step="$tmp/step" -v shown="$tmp/shown" '
        /^```sh$/ { block++; inside = 1; next }
        /^```$/ { inside = 0; after = block; next }
        inside && block == n { print > step }
        !inside && after == n && /^    / { print substr($0, 5) > shown; seen = 1; next }
        !inside && after == n && seen && !/^$/ { after = 0 }
    ' docs/ADDING.md
}

# What is the same in each run: words up to the first that holds a figure.
constant() {
    sed -E 's/[^ ]*[0-9].*//; s/ +$//'
}

steps=$(grep -c '^```sh$' docs/ADDING.md)
is "the page has its five blocks" "$steps" 5
for n in $(seq "$steps"); do
    rm -f "$tmp/step" "$tmp/shown"
    step "$n"
    bash -e "$tmp/step" >"$tmp/out" 2>"$tmp/err" </dev/null
    is "block $n ends well: $(head -1 "$tmp/step")" "$? $(tail -3 "$tmp/err")" "0 $(tail -3 "$tmp/err")"
    [ -e "$tmp/shown" ] || continue
    while read -r line; do
        prints "block $n prints: $line" "$tmp/out" "$line"
    done < <(constant <"$tmp/shown" | grep .)
done
has "the new row is in the table" "$tmp/out" "mine"

# A template's gate, with nothing changed in it.
template() { # NAME KIND
    make -s new ENTRY="$1" TEMPLATE="$2" >/dev/null
    make -s "entry-$1" >"$tmp/make.log" 2>&1
    is "template $2 builds" "$? $(cat "$tmp/make.log")" "0 "
    build/showdown check "$1" --gate-only >"$tmp/out" 2>&1
    is "template $2 passes what gates" "$? $(grep FAILED "$tmp/out")" "0 "
    rm -r "servers/$1"
}
template a-script lua
if [ -e /usr/lib/nginx/modules/ngx_http_echo_module.so ]; then
    template a-program command
else
    skip "template command" "nginx is not installed"
fi

refused() { # TITLE TEXT ARGUMENT…
    local title=$1 text=$2
    shift 2
    make -s new "$@" >"$tmp/out" 2>&1
    is "$title: refused" "$(($? != 0))" 1
    prints "$title: why" "$tmp/out" "$text"
}
refused "no name" "no name: make new ENTRY=name TEMPLATE=c" TEMPLATE=c
refused "a bad name" "may hold a-z, 0-9" ENTRY=Mine TEMPLATE=c
refused "a folder that is there" "exists already" ENTRY=mine TEMPLATE=c
refused "the shared folder" "is taken" ENTRY=common TEMPLATE=c
refused "the word for every entry" "stands for every entry" ENTRY=all TEMPLATE=c
refused "no template" "no template" ENTRY=other
refused "an unknown template" "unknown template 'rust'; templates: c command lua" ENTRY=other TEMPLATE=rust
refused "a way out" "unknown template" ENTRY=other TEMPLATE=../servers

# From here on two pages of the contract will do.
find tests/contract -name '*.md' ! -name A02.md ! -name D01.md -delete

# docs/ci-entry.yml, its commands as they stand: what a branch touches is checked, and nothing else.
cat >"$tmp/git-config" <<'END'
[user]
name = a test
email = test@localhost
END
export GIT_CONFIG_GLOBAL=$tmp/git-config
sed -n '/run: |$/,$p' docs/ci-entry.yml | sed '1d; s/^          //; s/\${{[^}]*}}/main/' >"$tmp/ci"
in_ci() { bash -e "$tmp/ci" >"$tmp/out" 2>&1; }
mv servers/mine "$tmp/mine"
git init -q . && git add -A -f servers docs && git commit -qm before && git update-ref refs/remotes/origin/main HEAD
in_ci
is "a fork's CI: nothing was added" "$? $(cat "$tmp/out")" "0 "
mv "$tmp/mine" servers/mine
git add -f servers/mine && git commit -qm "add mine"
in_ci
is "a fork's CI: checks what the branch adds" "$? $(grep -c '^contract ' "$tmp/out")" "0 1"
sed -i 's/^title/titel/' servers/mine/entry.conf
git commit -qam broken
in_ci
is "a fork's CI: fails where an entry does" "$?" 1
prints "a fork's CI: says why" "$tmp/out" "unknown key 'titel'"
