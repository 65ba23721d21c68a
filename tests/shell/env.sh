# shellcheck shell=bash
# Where things are kept between runs, and how a missing program is installed. Sourced by up, tests/run, tests/bench and .ci/run.

# The caller may run without a HOME; a tilde then means what the password file says.
export HOME="${HOME:-$(cd ~ && pwd)}"

# Outside the clone, so that a fresh clone needn't begin from nothing.
export KEDGE_CACHE="${KEDGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kedge}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$KEDGE_CACHE/target}"
mkdir -p "$KEDGE_CACHE" "$CARGO_TARGET_DIR"
KEDGE_CACHE=$(cd "$KEDGE_CACHE" && pwd) CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)

say() { printf '%s\n' "$*" >&2; }

# die CODE MESSAGE…
die() {
    local code=$1
    shift
    printf 'Error: %s\n' "$@" >&2
    exit "$code"
}

# need PROGRAM PACKAGE…: true when the program is there, or could be installed from Debian's packages.
need() {
    local program=$1
    shift
    command -v "$program" >/dev/null && return 0
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || return 1
    say "Installing $* (for $program)"
    local log="$KEDGE_CACHE/apt.log"
    if ! install_packages "$@" >"$log" 2>&1; then
        say "  apt-get failed; its output is in $log"
        return 1
    fi
    command -v "$program" >/dev/null
}

# A fresh machine has no package lists yet: then, and only then, they are fetched.
install_packages() {
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends)
    "${apt[@]}" install "$@" </dev/null || { "${apt[@]}" update </dev/null && "${apt[@]}" install "$@" </dev/null; }
}

# Cargo and a linker; without them there is nothing to run.
need_rust() {
    command -v cargo >/dev/null || PATH="$HOME/.cargo/bin:$PATH"
    command -v cargo >/dev/null || die 1 "cargo isn't installed. Install Rust from https://rustup.rs and try again."
    need cc gcc libc6-dev || die 1 "there is no C compiler, and Rust needs one to link. Install one: sudo apt-get install gcc libc6-dev"
}

now_ms() {
    local micros=${EPOCHREALTIME//[.,]/}
    printf '%s' $((micros / 1000))
}

# 850 ms, 12 s, 3 min 05 s
human() {
    local ms=$1 s=$((($1 + 500) / 1000))
    if ((ms < 1000)); then
        printf '%d ms' "$ms"
    elif ((s < 60)); then
        printf '%d s' "$s"
    else
        printf '%d min %02d s' $((s / 60)) $((s % 60))
    fi
}
