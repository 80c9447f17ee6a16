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
printf '#!/bin/sh\ncase "$*" in *no-such-package) exit 1 ;; esac\necho installed\n' >"$tmp/bin/dpkg-query"
cat >"$tmp/bin/apt-get" <<'END'
#!/bin/sh
"$SETUP_POLICY" >/dev/null 2>&1
echo "$1: $?" >>"$SETUP_POLICY.seen"
case "$*" in *no-such-package*) exit 100 ;; esac
END
chmod +x "$tmp/bin/dpkg-query" "$tmp/bin/apt-get"
export SETUP_POLICY=$tmp/policy-rc.d
setup() { (cd "$root" && PATH=$tmp/bin:$PATH scripts/setup "$@") >"$tmp/out" 2>&1; }
setup run
is "setup: nothing of the extra set is looked for" "$? $(cat "$tmp/out")" "0 "
for wish in "run all" "run plain all" "run absent" test; do
    setup $wish
    has "setup $wish: its packages are" "$tmp/out" "Installing with apt: *no-such-package"
done
has "setup: services that it installs are not started" "$SETUP_POLICY.seen" "^install: 101"
is "setup: and later ones are again" "$(ls "$SETUP_POLICY" 2>&1 | grep -c 'No such')" 1
printf '#!/bin/sh\nexit 7\n' >"$SETUP_POLICY"
chmod +x "$SETUP_POLICY"
setup run absent
has "setup: a policy that is there is obeyed" "$SETUP_POLICY.seen" "^install: 7"
is "setup: and stays" "$(tail -1 "$SETUP_POLICY")" "exit 7"
built() { (cd "$root" && env -u MAKEFLAGS -u MAKELEVEL make -n BUILD="$tmp/build" "$@" 2>&1) | grep -o 'ENTRY=[a-z]*' | sort -u | tr '\n' ' '; }
is "make showdown builds the default set" "$(built showdown)" "ENTRY=other ENTRY=plain "
is "ENTRIES=all builds all" "$(built showdown ENTRIES=all)" "ENTRY=absent ENTRY=other ENTRY=plain ENTRY=rare "
is "ENTRIES=rare builds that one" "$(built showdown ENTRIES=rare)" "ENTRY=rare "
