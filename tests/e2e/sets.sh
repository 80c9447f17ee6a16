#!/bin/bash
# The default set and the extra set: which entries are installed, built and measured by what is asked.
. "$(dirname "$0")/lib.bash"

cp -r "$repository/Makefile" "$repository/harness" "$repository/scripts" "$root/"
cp "$repository/servers/entry.mk" "$root/servers/"
entry plain plain
entry other plain
entry rare plain
echo "set = extra" >>"$root/servers/rare/entry.conf"
entry absent plain
printf '%s\n' "set = extra" "needs = /no/such/file" "apt = no-such-package" >>"$root/servers/absent/entry.conf"

measured() { jq -r '[.entries[].name] | sort | join(" ")' "$tmp/out"; }
show run $brief --twin none --format json
is "without a name: the default set" "$(measured)" "other plain"
show report
has "and the table names what was left out" "$tmp/out" "extra set: absent, rare[.].*ENTRIES=all"
show run all $brief --twin none --format json
is "all: the extra set too" "$(measured)" "absent other plain rare"
show report
has_not "and then nothing was left out" "$tmp/out" "extra set"
show run rare $brief --twin none --format json
is "by name" "$(measured)" "rare"

# What make builds and setup looks for; a fake dpkg has all that the harness needs.
mkdir "$tmp/bin"
cat >"$tmp/bin/dpkg-query" <<'END'
#!/bin/sh
case "$*" in *no-such-package | *docker.io) exit 1 ;; esac
echo installed
END
# What a package's script is told that is about to start its service; with a wait, it takes a while.
cat >"$tmp/bin/apt-get" <<'END'
#!/bin/sh
"$SETUP_POLICY" >/dev/null 2>&1
echo "$1: $?" >>"$SETUP_POLICY.seen"
[ "$1" != install ] || [ ! -e "$SETUP_POLICY.wait" ] || sleep 2
case "$*" in *no-such-package*) exit 100 ;; esac
END
printf '#!/bin/sh\nexec "$@"\n' >"$tmp/bin/sudo"
chmod +x "$tmp"/bin/*
export SETUP_POLICY=$tmp/policy-rc.d
start_setup() { cd "$root" && PATH=$tmp/bin:$PATH exec scripts/setup "$@" >"$tmp/out" 2>&1; }
setup() { (start_setup "$@"); }
setup run
is "setup: nothing of the extra set is looked for" "$? $(cat "$tmp/out")" "0 "
for wish in "run all" "run plain all" "run absent" test; do
    setup $wish
    has "setup $wish: its packages are" "$tmp/out" "Installing with apt: *no-such-package"
done
has "setup: services that it installs are not started" "$SETUP_POLICY.seen" "^install: 101"
has "setup: it says so" "$tmp/out" "with apt: .*; no service of theirs is started$"
gone() { is "$1" "$(ls "$SETUP_POLICY" 2>&1 | grep -c 'No such')" 1; }
gone "setup: and later ones are again"
rm "$SETUP_POLICY.seen"
setup docker
has_not "setup docker: the engine is started" "$SETUP_POLICY.seen" ": 101"
rm "$SETUP_POLICY.seen"
touch "$SETUP_POLICY.wait"
start_setup run absent &
for _ in $(seq 100); do
    ! grep -q '^install' "$SETUP_POLICY.seen" 2>/dev/null || break
    sleep 0.1
done
kill $!
wait $!
is "setup, SIGTERM while apt runs: exit status" $? 143
has "setup, SIGTERM while apt runs: services are not started" "$SETUP_POLICY.seen" "^install: 101"
gone "setup, SIGTERM while apt runs: and later ones are again"
rm "$SETUP_POLICY.wait"
# One that SIGKILL left behind is taken for its own.
printf "#!/bin/sh\n# made by Showdown's scripts/setup, for as long as it runs\nexit 101\n" >"$SETUP_POLICY"
setup run absent
gone "setup: a policy that was left behind is removed"
printf '#!/bin/sh\nexit 7\n' >"$SETUP_POLICY"
chmod +x "$SETUP_POLICY"
setup run absent
has "setup: a policy that is there is obeyed" "$SETUP_POLICY.seen" "^install: 7"
has "setup: and named" "$tmp/out" "as $SETUP_POLICY says\$"
is "setup: and stays" "$(tail -1 "$SETUP_POLICY")" "exit 7"
built() { (cd "$root" && env -u MAKEFLAGS -u MAKELEVEL make -n BUILD="$tmp/build" "$@" 2>&1) | grep -o 'ENTRY=[a-z]*' | sort -u | tr '\n' ' '; }
is "make showdown builds the default set" "$(built showdown)" "ENTRY=other ENTRY=plain "
is "ENTRIES=all builds all" "$(built showdown ENTRIES=all)" "ENTRY=absent ENTRY=other ENTRY=plain ENTRY=rare "
is "ENTRIES=rare builds that one" "$(built showdown ENTRIES=rare)" "ENTRY=rare "
