# Sourced by the scripts beside it: which container engine there is, what it can do, and what to do
# when there is none. `program` is the name to complain under.
#   ENGINE   docker or podman; without it, the first that answers
# shellcheck shell=sh

say() { echo "$program: $*" >&2; }
die() {
    say "$@"
    exit 1
}

# What docker's client says, turned into what to do about it.
docker_remedy() {
    case $1 in
    *"ermission denied"*)
        echo "you may not talk to Docker's engine; run this with sudo, or join the group and log in anew: sudo usermod -aG docker \$USER"
        ;;
    *) echo "Docker's engine does not run; start it: sudo systemctl start docker, or without an init system: sudo dockerd &" ;;
    esac
}

# Sets $engine, or ends with the remedy.
find_engine() {
    refusal=
    for engine in ${ENGINE:-docker podman}; do
        case $engine in
        docker | podman) ;;
        *) die "ENGINE=$engine: docker or podman" ;;
        esac
        command -v "$engine" >/dev/null || continue
        if [ "$engine" = docker ]; then
            about=$(docker info --format '{{.CPUSet}} {{.SecurityOptions}}' 2>&1)
        else
            about=$(podman info --format '{{.Host.CgroupControllers}} {{.Host.Security}}' 2>&1)
        fi && {
            [ -z "$refusal" ] || say "$refusal; going on with podman"
            return
        }
        [ "$engine" = podman ] && about="podman does not work here: $about" || about=$(docker_remedy "$about")
        refusal=${refusal:-$about}
    done
    die "${refusal:-no container engine: install one (Debian: apt-get install docker.io, or podman), or run natively: make showdown}"
}

has_cpuset() {
    case $engine/$about in
    docker/false*) return 1 ;;
    docker/*) return 0 ;;
    *cpuset*) return 0 ;;
    esac
    # Root's podman makes its own cgroups, and names no controllers where they are of version 1.
    [ "$(id -u)" = 0 ] && [ -d /sys/fs/cgroup/cpuset ]
}
has_seccomp() {
    case $engine/$about in
    docker/*seccomp*) return 0 ;;
    docker/*) return 1 ;;
    esac
    [ "$(podman info --format '{{.Host.Security.SECCOMPEnabled}}')" = true ]
}
is_rootless() {
    case $engine/$about in
    docker/*rootless*) return 0 ;;
    docker/*) return 1 ;;
    esac
    [ "$(podman info --format '{{.Host.Security.Rootless}}')" = true ]
}
