# shellcheck shell=bash
# How the programs of a package are compiled for each architecture, and where what is had for it is kept. Sourced by build, after
# tests/shell/env.sh.
# shellcheck disable=SC2154 # the caller sets `root`

# Versions that were tried together.
zig_version=0.15.2
zigbuild_version=0.24.0
# The oldest C library that the ARM packages run on: Debian 11.
oldest_glibc=2.31

# Rust's name for each of Debian's architectures.
declare -A triple_of=([amd64]=x86_64-unknown-linux-gnu [arm64]=aarch64-unknown-linux-gnu [armhf]=armv7-unknown-linux-gnueabihf)
# The agent is built for its size, the others as everywhere else.
declare -A profile_of=([kedge-agent]=dist [kedge-hub]=release [kedge]=release)
# The agent of a host has nothing of clusters in it: nearly all of a program ends up in memory.
declare -A features_of=([kedge-agent]="--no-default-features --features host" [kedge-hub]="" [kedge]="")
# The package of the workspace, and the folders that it is made of.
declare -A sources_of=([kedge-agent]="agent crates" [kedge-hub]="hub crates packaging/schemas docs" [kedge]="cli crates packaging/schemas packaging/kubernetes")

own_architecture() { dpkg --print-architecture; }

# kept_program ARCHITECTURE PACKAGE: where the program of these sources is kept.
kept_program() { printf '%s' "$KEDGE_CACHE/deb/programs/$1/$2-$(content_of "$2")"; }

# programs ARCHITECTURE FOLDER PACKAGE…: compiles each and puts it into the folder. What was made from the same sources before is
# taken from the cache, also by another clone.
programs() {
    local architecture=$1 binaries=$2 package kept
    local -a missing=()
    shift 2
    for package in "$@"; do
        kept=$(kept_program "$architecture" "$package")
        if [[ -x $kept ]]; then
            install -m 0755 "$kept" "$binaries/$package"
        else
            missing+=("$package")
        fi
    done
    for package in "${missing[@]}"; do
        # Of what is there now: the sources may change while they are compiled.
        kept=$(kept_program "$architecture" "$package")
        compile "$architecture" "$package"
        mkdir -p "${kept%/*}"
        # One of each is enough: the next has other sources.
        find "${kept%/*}" -name "$package-????????????????" -delete
        install -m 0755 "$binaries/$package" "$kept.part"
        mv "$kept.part" "$kept"
    done
}

# The hash of everything that a program is made from.
content_of() {
    local -a folders
    read -ra folders <<<"${sources_of[$1]}"
    (
        cd "$root" || exit
        rustc --version
        declare -p zig_version zigbuild_version oldest_glibc profile_of features_of
        declare -f compile
        find Cargo.toml Cargo.lock rust-toolchain.toml "${folders[@]}" -type f -print0 | sort -z | xargs -0 sha256sum
    ) | sha256sum | cut -c1-16
}

# The day on which these sources were committed last. A day, because C code is compiled again for every other time.
changed_at() {
    local -a folders
    local seconds
    read -ra folders <<<"${sources_of[$1]}"
    seconds=$(git -C "$root" log -1 --format=%ct -- Cargo.toml Cargo.lock rust-toolchain.toml "${folders[@]}" 2>/dev/null || true)
    seconds=${seconds:-$SOURCE_DATE_EPOCH}
    printf '%s' $((seconds - seconds % 86400))
}

# compile ARCHITECTURE PACKAGE
compile() {
    local architecture=$1 package=$2 triple profile=${profile_of[$2]} began
    triple=${triple_of[$architecture]}
    local -a command=("${CARGO:-cargo}" rustc) last=() features
    read -ra features <<<"${features_of[$package]}"
    # Not the tests' folder: paths are hidden, so that the same sources give the same bytes on every machine.
    local -x CARGO_TARGET_DIR=$KEDGE_CACHE/deb/target
    local -x RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    if [[ $architecture == "$(own_architecture)" ]]; then
        command+=(--target "$triple")
        # 190 kB less that every process maps; the C library knows it since 2.36.
        if readelf --version-info --wide /lib/*/libc.so.6 2>/dev/null | grep GLIBC_ABI_DT_RELR >/dev/null; then
            last=(-- -C "link-arg=-Wl,-z,pack-relative-relocs")
        fi
    else
        need_zig
        (cd "$root" && rustup target add "$triple") >/dev/null 2>&1 || die 3 "rustup has no target $triple here."
        command=("${CARGO:-cargo}" zigbuild --target "$triple.$oldest_glibc")
    fi
    # The agent knows when it was made: when its sources last changed, so that the same ones give the same bytes.
    local day
    day=$(changed_at "$package")
    local -x SOURCE_DATE_EPOCH=$day
    began=$(now_ms)
    say "Compiling $package for $architecture ($profile)"
    (cd "$root" && "${command[@]}" --locked --profile "$profile" --package "$package" "${features[@]}" --bin "$package" "${last[@]}") </dev/null >&2 ||
        die 1 "$package doesn't compile for $architecture."
    install -m 0755 "$CARGO_TARGET_DIR/$triple/$profile/$package" "$binaries/$package"
    say "Compiled $package for $architecture in $(human $(($(now_ms) - began)))"
}

# What can't be had ends with 3: there is nothing wrong with the sources.
# Zig compiles and links C for every architecture; cargo-zigbuild tells Cargo how. Both come from PyPI, once.
need_zig() {
    local home=$KEDGE_CACHE/programs/zig-$zig_version-$zigbuild_version
    if [[ ! -x $home/bin/cargo-zigbuild ]]; then
        need pip3 python3-pip || die 3 "pip isn't here (Debian's package python3-pip); zig is had with it."
        say "Fetching zig $zig_version and cargo-zigbuild $zigbuild_version, once (into $home)"
        rm -rf "$home.part"
        pip3 install --quiet --target "$home.part" "ziglang==$zig_version" "cargo-zigbuild==$zigbuild_version" \
            >"$KEDGE_CACHE/zig.log" 2>&1 || die 3 "zig can't be had; the words of pip are in $KEDGE_CACHE/zig.log"
        rm -rf "$home"
        mv "$home.part" "$home"
    fi
    export PATH="$home/bin:$PATH" CARGO_ZIGBUILD_ZIG_PATH=$home/ziglang/zig
    # Objects of other clones are the same; the linker's cache belongs to the rest of the cache.
    export ZIG_GLOBAL_CACHE_DIR=$KEDGE_CACHE/deb/zig CARGO_ZIGBUILD_CACHE_DIR=$KEDGE_CACHE/deb/zigbuild
}

# shared_libraries PROGRAM: the packages that it needs, in the words of a Depends field.
shared_libraries() {
    local library version
    local -a packages=()
    while read -r library; do
        case $library in
        libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux*)
            version=$(readelf --version-info --wide "$1" | sed 's/GLIBC_ABI_DT_RELR/GLIBC_2.36/' | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
            packages+=("libc6 (>= ${version#GLIBC_})")
            ;;
        libgcc_s.so.1) packages+=("libgcc-s1 (>= 4.2)") ;;
        *) die 1 "nobody said which package has $library, which $1 needs." ;;
        esac
    done < <(readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
    printf '%s\n' "${packages[@]}" | sort -u | paste -sd, | sed 's/,/, /g'
}
