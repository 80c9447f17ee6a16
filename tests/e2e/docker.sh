#!/bin/bash
# The wrapper of the container engine, held against a fake one: what it asks for, what it says when
# there is bad luck, and that it leaves nothing. tests/e2e needs no engine; docker/ci tries a real one.
. "$(dirname "$0")/lib.bash"

mkdir "$tmp/bin" "$tmp/fake" "$root/results"
cp -r "$repository/docker" "$root/"
cat >"$tmp/bin/docker" <<'END'
#!/bin/bash
# Keeps what it was asked in $FAKE/log; $FAKE/ill names what is wrong with it.
printf '%s\n' "$*" >>"$FAKE/log"
ill=$(cat "$FAKE/ill" 2>/dev/null)
refuse() { echo "Error response from daemon: $1" >&2; exit 1; }
case $1/$ill in
info/down) refuse "Cannot connect to the Docker daemon at unix:///var/run/docker.sock." ;;
info/denied) refuse "permission denied while trying to connect to the Docker daemon socket" ;;
info/no-cpuset) echo "false [name=seccomp,profile=default]" ;;
info/no-seccomp) echo "true []" ;;
info/*) echo "true [name=seccomp,profile=default]" ;;
image/*) [ "$ill" != no-image ] && echo sha256:0123456789abcdef ;;
pull/*) refuse "no such host" ;;
build/full) refuse "write /showdown/x: no space left on device" ;;
build/broken) echo "the compiler's words"; exit 1 ;;
run/hybrid | start/hybrid) refuse "crun: cgroups in hybrid mode not supported, drop all controllers from cgroupv2" ;;
run/*) echo '{"defaultAction": "SCMP_ACT_ERRNO"}' ;;
create/full) refuse "mkdir /var/lib/docker/overlay2/x: no space left on device" ;;
create/no-profile) refuse "Decoding seccomp profile failed" ;;
create/no-mount) refuse "invalid mount config: bind source path does not exist" ;;
create/*) echo 42 ;;
start/limit) refuse "OCI runtime create failed: error setting rlimit type 7: operation not permitted" ;;
start/slow)
    for i in $(seq 100); do
        [ -e "$FAKE/signal" ] && { echo partial table; exit 130; }
        sleep 0.1
    done ;;
start/fails) exit 3 ;;
start/*) echo a table ;;
kill/*) echo "$3" >>"$FAKE/signal" ;;
container/*) echo running ;;
esac
END
cat >"$tmp/bin/podman" <<'END'
#!/bin/sh
echo "cannot set up a user namespace" >&2
exit 1
END
chmod +x "$tmp/bin/docker" "$tmp/bin/podman"
export FAKE=$tmp/fake PATH=$tmp/bin:$PATH
unset ENGINE CPUS FILES RESULTS SECCOMP BASE DEBIAN_SNAPSHOT MIRROR SUDO_UID SUDO_GID
cpus=$(sed -n 's/^Cpus_allowed_list:[ \t]*//p' /proc/self/status)

wrap() { # ILL ARGUMENT…
    echo "$1" >"$FAKE/ill"
    rm -f "$FAKE/log" "$FAKE/signal"
    shift
    timeout 60 "$root/docker/run" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    status=$?
    grep "^create" "$FAKE/log" >"$tmp/created" 2>/dev/null
}

wrap well run --quick
exits "a run: exit status" 0
has "a run: what the program prints" "$tmp/out" "a table"
has "no network" "$tmp/created" "--network none"
has "no capability" "$tmp/created" "--cap-drop ALL"
has "no new privileges" "$tmp/created" "--security-opt no-new-privileges"
has "removed by the engine when it ends" "$tmp/created" "--rm "
has "the root can't be written" "$tmp/created" "--read-only"
has "the caller's user" "$tmp/created" "--user $(id -u):$(id -g) "
has "the CPUs of this shell" "$tmp/created" "--cpuset-cpus $cpus "
has "the limit of open files" "$tmp/created" "--ulimit nofile=[0-9]+:[0-9]+"
has "the profile with io_uring" "$tmp/created" "seccomp=build/seccomp-0123456789ab.json"
has "the digest for the record" "$tmp/created" "SHOWDOWN_IMAGE=sha256:0123456789abcdef"
has "the results' folder" "$tmp/created" "--volume $root/results:/showdown/results "
has "the arguments" "$tmp/created" " run --quick\$"
has "the commit is built in" "$FAKE/log" "^build .*--build-arg VERSION="
has "says where the record is" "$tmp/err" "$root/results"
wrap well run
has_not "the profile is read out of the image once" "$FAKE/log" "^run "
SECCOMP=default wrap well run
has_not "SECCOMP=default: no profile is given" "$tmp/created" "seccomp="
RESULTS=$tmp/elsewhere wrap well run
has "RESULTS: another folder" "$tmp/created" "--volume $tmp/elsewhere:"

wrap fails run
exits "the program's exit status is the wrapper's" 3

wrap down run
exits "no engine runs: exit status" 1
has "no engine runs: how to start it" "$tmp/err" "systemctl start docker.*dockerd"
wrap denied run
exits "no permission: exit status" 1
has "no permission: the remedy" "$tmp/err" "sudo.*usermod -aG docker"
ENGINE=podman wrap well run
exits "podman does not work: exit status" 1
has "podman does not work: its words" "$tmp/err" "user namespace"
mkdir "$tmp/tools"
for tool in sh cat cut date dirname env git grep head id mkdir mktemp mv rm sed seq tail tr uname; do
    ln -s "$(command -v $tool)" "$tmp/tools/"
done
(cd "$root" && PATH=$tmp/tools docker/run run >"$tmp/out" 2>"$tmp/err" </dev/null)
is "no engine at all: exit status" "$?" 1
has "no engine at all: what to install" "$tmp/err" "apt-get install docker.io.*make showdown"

wrap no-cpuset run
exits "no cpuset: goes on" 0
has "no cpuset: says so" "$tmp/err" "no cpuset"
has_not "no cpuset: none is asked for" "$tmp/created" "--cpuset-cpus"
CPUS=0 wrap no-cpuset run --quick
has "no cpuset, CPUS given: kept inside" "$tmp/created" "--entrypoint tini .* -- taskset -c 0 showdown run --quick\$"
CPUS=0,4000 wrap well run
exits "more CPUs than there are: exit status" 1
has "more CPUs than there are: which" "$tmp/err" "no CPU 4000.*it has [0-9]"
for wrong in x 0-x 1- -3 0..1; do
    CPUS=$wrong wrap well run
    exits "CPUS=$wrong: usage" 2
done

wrap no-seccomp run
exits "no seccomp: goes on" 0
has "no seccomp: says so" "$tmp/err" "no seccomp"
wrap no-profile run
exits "the profile is refused: exit status" 1
has "the profile is refused: the remedy" "$tmp/err" "SECCOMP=default"
wrap limit run
exits "the limit of open files is refused: exit status" 1
has "the limit of open files is refused: the remedy" "$tmp/err" "FILES="
wrap no-mount run
has "results can't be mounted: the remedy" "$tmp/err" "RESULTS=DIR"
wrap hybrid run
exits "a runtime that does not know the cgroups: exit status" 1
has "a runtime that does not know the cgroups: the remedy, at the run" "$tmp/err" "apt-get install runc"
rm "$root"/build/seccomp-*.json
wrap hybrid run
has "a runtime that does not know the cgroups: the remedy, at its first container" "$tmp/err" "apt-get install runc"
wrap full run
exits "a full disk: exit status" 1
has "a full disk: the remedy" "$tmp/err" "disk is full.*prune"
wrap broken run
exits "the image can't be built: exit status" 1
has "the image can't be built: the builder's words" "$tmp/err" "the compiler's words"
has "the image can't be built: the remedy" "$tmp/err" "MIRROR="
BASE=no/such@sha256:00 wrap no-image run
exits "a base that is not to be had: exit status" 1
has "a base that is not to be had: which" "$tmp/err" "BASE=no/such@sha256:00"

: >"$tmp/file"
RESULTS=$tmp/file/results wrap well run
exits "results can't be made: exit status" 1
has "results can't be made: the remedy" "$tmp/err" "RESULTS=DIR"
if [ "$(id -u)" = 0 ]; then
    mkdir "$tmp/read-only"
    if mount -t tmpfs -o ro tmpfs "$tmp/read-only" 2>/dev/null; then
        RESULTS=$tmp/read-only wrap well run
        exits "results can't be written: exit status" 1
        has "results can't be written: the remedy" "$tmp/err" "RESULTS=DIR"
        umount "$tmp/read-only"
    else
        skip "results can't be written" "mounting is refused here"
    fi
else
    mkdir -m 555 "$tmp/read-only"
    RESULTS=$tmp/read-only wrap well run
    exits "results can't be written: exit status" 1
    has "results can't be written: the remedy" "$tmp/err" "RESULTS=DIR"
fi

for signal in INT TERM HUP; do
    echo slow >"$FAKE/ill"
    rm -f "$FAKE/log" "$FAKE/signal"
    env --default-signal=INT "$root/docker/run" run >"$tmp/out" 2>"$tmp/err" </dev/null &
    wrapper=$!
    for i in $(seq 100); do grep -q '^start' "$FAKE/log" 2>/dev/null && break; sleep 0.1; done
    sleep 0.3
    kill -"$signal" "$wrapper"
    wait "$wrapper"
    is "SIG$signal: the exit status is the program's" "$?" 130
    is "SIG$signal: passed on, once" "$(cat "$FAKE/signal")" "$signal"
    has "SIG$signal: what was measured is printed" "$tmp/out" "partial table"
    has "SIG$signal: the container is removed" "$FAKE/log" "^rm -f showdown-"
done

wrap well
exits "no command: usage" 2
wrap well --nonsense
exits "an unknown flag: usage" 2
ENGINE=lxc wrap well run
exits "an unknown engine: exit status" 1

cat >"$tmp/default.json" <<'END'
{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
  {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
  {"names": ["clone3", "io_uring_setup"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}
END
"$root/docker/seccomp" "$tmp/default.json" >"$tmp/profile.json"
json "the profile: io_uring is allowed" "$tmp/profile.json" \
    '[.syscalls[] | select(.action == "SCMP_ACT_ALLOW") | .names[]] | contains(["io_uring_setup", "io_uring_enter", "io_uring_register"])'
json "the profile: io_uring is nowhere refused" "$tmp/profile.json" \
    '[.syscalls[] | select(.action != "SCMP_ACT_ALLOW") | .names[]] == ["clone3"]'
json "the profile: the rest is as it was" "$tmp/profile.json" \
    '.defaultAction == "SCMP_ACT_ERRNO" and .syscalls[0].names == ["read", "write"]'
echo '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}' >"$tmp/default.json"
"$root/docker/seccomp" "$tmp/default.json" >"$tmp/out" 2>"$tmp/err"
is "the profile: one that allows all is none" "$([ $? != 0 ]; echo $?)" 0

mkdir -p "$tmp/apt/sources.list.d"
touch "$tmp/apt/sources.list.d/debian.sources"
"$root/docker/apt-sources" "$tmp/apt"
is "apt: nothing asked, nothing changed" "$(ls "$tmp/apt")" "sources.list.d"
DEBIAN_SNAPSHOT=20260501T000000Z "$root/docker/apt-sources" "$tmp/apt"
has "apt: a day of the past" "$tmp/apt/sources.list" \
    "valid-until=no\] http://snapshot.debian.org/archive/debian-security/20260501T000000Z bookworm-security main"
is "apt: and nothing of today" "$(ls "$tmp/apt/sources.list.d")" ""
rm -rf "$root/docker" "$root/build"
nothing_left "nothing is left behind"
