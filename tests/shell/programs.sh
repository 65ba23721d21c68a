# shellcheck shell=bash
# Programs that no Debian package has: built once, kept in $KEDGE_CACHE/programs by version. Sourced by tests/run and
# tests/bench, after env.sh.
# shellcheck disable=SC2034 # the caller reads `why`

gitea_version=v1.26.0
# The module's checksum, as `go mod download` computes it: what the proxy gives must be this.
gitea_sum=h1:fJP9dqLbzKrKWUVnCVTfVersZdVDuyJQLEDzCAOmKKA=

# need_gitea: sets KEDGE_GITEA to the folder with the program `gitea` and what it reads at run time. When that can't
# be, `why` says so and it is false.
need_gitea() {
    local home=$KEDGE_CACHE/programs/gitea-$gitea_version
    export KEDGE_GITEA=$home
    if [[ -x $home/gitea ]]; then return 0; fi
    unset KEDGE_GITEA
    need_go || return 1
    mkdir -p "$KEDGE_CACHE/programs"
    # Two runs must not build at once into one folder; the second finds what the first made.
    (
        flock 7
        if [[ ! -x $home/gitea ]]; then build_gitea "$home"; fi
    ) 7>"$KEDGE_CACHE/programs/.gitea.lock" || {
        why="Gitea doesn't build here; the words of Go are in $KEDGE_CACHE/gitea.log"
        return 1
    }
    export KEDGE_GITEA=$home
}

# need_postgres: true when its server is there, or could be installed. When not, `why` says so.
need_postgres() {
    if has_postgres; then return 0; fi
    # Debian keeps these programs off the path, so what counts is the second look.
    need initdb postgresql || true
    has_postgres || {
        why="PostgreSQL isn't here and can't be installed (Debian's package postgresql)"
        return 1
    }
}

has_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

need_go() {
    command -v go >/dev/null || PATH="/usr/local/go/bin:$PATH"
    command -v go >/dev/null || {
        why="Go isn't here (Gitea is built with it)"
        return 1
    }
}

# build_gitea FOLDER: from the Go module proxy, with SQLite, and without the scripts of its pages (the proxy has none).
build_gitea() {
    local home=$1 part=$1.part module sum
    say "Building Gitea $gitea_version, once (5 minutes or more; into $home)"
    rm -rf "$part"
    {
        module=$(go mod download -json "code.gitea.io/gitea@$gitea_version") || return 1
        sum=$(sed -n 's/^[[:space:]]*"Sum": "\(.*\)",*$/\1/p' <<<"$module")
        if [[ $sum != "$gitea_sum" ]]; then
            echo "the module's checksum is $sum, and $gitea_sum is expected"
            return 1
        fi
        module=$(sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p' <<<"$module")
        mkdir -p "$part"
        # The module cache is read-only, and a copy that keeps that couldn't be removed.
        cp -r --no-preserve=mode "$module/." "$part/" || return 1
        # One package at a time: it may be built while tests run on the same two cores.
        (cd "$part" && CGO_ENABLED=1 GOFLAGS='-buildvcs=false -p=1' nice -n 10 \
            go build -trimpath -ldflags '-s -w' -tags 'sqlite sqlite_unlock_notify timetzdata' -o "$part.gitea" .) || return 1
        keep_what_runs "$part" || return 1
        mv "$part.gitea" "$part/gitea" && chmod -R a+rX "$part" && rm -rf "$home" && mv "$part" "$home" || return 1
    } >"$KEDGE_CACHE/gitea.log" 2>&1
}

# The sources aren't read at run time; texts, templates and public files are.
keep_what_runs() {
    find "$1" -mindepth 1 -maxdepth 1 ! -name options ! -name templates ! -name public -exec rm -rf {} +
}
