# shellcheck shell=bash
# Programs that no Debian package has: built once, kept in $KEDGE_CACHE/programs by version. Sourced by tests/run and
# tests/bench, after env.sh.
# shellcheck disable=SC2034,SC2154 # the caller reads `why`, and sets `root`

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
    need_go Gitea || return 1
    mkdir -p "$KEDGE_CACHE/programs"
    # Two runs must not build at once into one folder; the second finds what the first made.
    (
        flock 7
        if [[ ! -x $home/gitea ]]; then build_gitea "$home"; fi
    ) 7>"$KEDGE_CACHE/programs/.gitea.lock" || {
        why="Gitea doesn't build here; the output of Go is in $KEDGE_CACHE/gitea.log"
        return 1
    }
    export KEDGE_GITEA=$home
}

axe_version=4.10.3
# Of the npm package's file axe.min.js.
axe_sum=880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb

# need_axe: sets KEDGE_AXE to the text of axe-core, which npm has. When that can't be, `why` says so and it is false.
need_axe() {
    local home=$KEDGE_CACHE/programs/axe-core-$axe_version
    export KEDGE_AXE=$home/package/axe.min.js
    if [[ -f $KEDGE_AXE ]]; then return 0; fi
    why="axe-core $axe_version can't be fetched (npm pack); the output of npm is in $KEDGE_CACHE/axe.log"
    need npm npm || {
        why="npm isn't installed and can't be installed here (it provides axe-core)"
        return 1
    }
    mkdir -p "$home.part"
    {
        (cd "$home.part" && npm pack --silent "axe-core@$axe_version" && tar xzf axe-core-*.tgz package/axe.min.js) || return 1
        sha256sum --check --status <<<"$axe_sum  $home.part/package/axe.min.js" || {
            echo "another text than expected: $(sha256sum "$home.part/package/axe.min.js")"
            return 1
        }
        rm -rf "$home" && mv "$home.part" "$home" || return 1
    } >"$KEDGE_CACHE/axe.log" 2>&1
}

# need_openapi: sets KEDGE_OPENAPI to the folder with a linter of OpenAPI and a generator of clients, which npm has. What they are
# made of is in tests/lab/openapi/package-lock.json, each with its checksum. When that can't be, `why` says so and it is false.
need_openapi() {
    local module=$root/tests/lab/openapi sum home
    sum=$(sha256sum <"$module/package-lock.json")
    home=$KEDGE_CACHE/programs/openapi-${sum:0:12}
    export KEDGE_OPENAPI=$home
    if [[ -f $home/complete ]]; then return 0; fi
    unset KEDGE_OPENAPI
    need npm npm || {
        why="npm isn't installed and can't be installed here (it provides a linter for OpenAPI and a generator of clients)"
        return 1
    }
    mkdir -p "$KEDGE_CACHE/programs"
    (
        flock 7
        if [[ ! -f $home/complete ]]; then
            say "Fetching a linter for OpenAPI and a generator of clients, once (1 minute; into $home)"
            fetch_openapi "$module" "$home" >"$KEDGE_CACHE/openapi.log" 2>&1
        fi
    ) 7>"$KEDGE_CACHE/programs/.openapi.lock" || {
        why="the linter for OpenAPI can't be fetched (npm ci); the output of npm is in $KEDGE_CACHE/openapi.log"
        return 1
    }
    export KEDGE_OPENAPI=$home
}

# fetch_openapi MODULE FOLDER: what the lockfile names, and no script of it is run.
fetch_openapi() {
    local module=$1 home=$2 part=$2.part
    rm -rf "$part" && mkdir -p "$part" && cp "$module/package.json" "$module/package-lock.json" "$part" || return 1
    (cd "$part" && npm ci --ignore-scripts --no-audit --no-fund) || return 1
    touch "$part/complete" && rm -rf "$home" && mv "$part" "$home"
}

# need_postgres: true when its server is there, or could be installed. When not, `why` says so.
need_postgres() {
    if has_postgres; then return 0; fi
    # Debian keeps these programs off the path, so what counts is the second look.
    need initdb postgresql || true
    has_postgres || {
        why="PostgreSQL isn't installed and can't be installed here (Debian's package postgresql)"
        return 1
    }
}

has_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

# need_prometheus: true when the program is there, or could be installed. When not, `why` says so.
need_prometheus() {
    need prometheus prometheus || {
        why="Prometheus isn't installed and can't be installed here (Debian's package prometheus)"
        return 1
    }
}

# Raised when the recipe below changes, so that nobody boots an old disk.
debian_recipe=1

# need_debian: sets KEDGE_DEBIAN to the folder with the disks of a Debian 12 with systemd: `plain.img`, and `ansible.img`
# with Ansible. When that can't be, `why` says so and it is false.
need_debian() {
    local home=$KEDGE_CACHE/programs/debian-bookworm-$debian_recipe
    need systemd-nspawn systemd-container && need debootstrap debootstrap && need mkfs.ext4 e2fsprogs || {
        why="systemd-nspawn, debootstrap or mkfs.ext4 isn't installed and can't be installed here"
        return 1
    }
    mkdir -p "$KEDGE_CACHE/programs"
    (
        flock 7
        if [[ ! -f $home/ansible.img ]]; then build_debian "$home"; fi
    ) 7>"$KEDGE_CACHE/programs/.debian.lock" || {
        why="the disk of a Debian host can't be created here; the output of debootstrap is in $KEDGE_CACHE/debian.log"
        return 1
    }
    export KEDGE_DEBIAN=$home
}

# build_debian FOLDER: from Debian's mirror, once.
build_debian() {
    local home=$1 part=$1.part tree=$1.part/tree
    say "Creating the disk of a Debian host, once (2 minutes; into $home)"
    rm -rf "$part"
    {
        mkdir -p "$part"
        debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,iproute2,ca-certificates,libfaketime \
            bookworm "$tree" || return 1
        make_disk "$tree" "$part/plain.img" || return 1
        chroot "$tree" apt-get update </dev/null || return 1
        chroot "$tree" env DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends install ansible-core </dev/null || return 1
        make_disk "$tree" "$part/ansible.img" || return 1
        rm -rf "$tree" "$home" && mv "$part" "$home" || return 1
    } >"$KEDGE_CACHE/debian.log" 2>&1
}

# make_disk FOLDER FILE: a sparse ext4 disk with the folder's content. What comes from apt's sources is for the tests to say.
make_disk() {
    local sources
    sources=$(cat "$1/etc/apt/sources.list")
    rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/cache/apt/*.bin "$1"/var/lib/apt/lists/*
    # Each boot has the name that it is given.
    rm -f "$1/etc/hostname"
    : >"$1/etc/apt/sources.list"
    truncate -s 2G "$2"
    mkfs.ext4 -q -L kedge-host -E lazy_itable_init=0,lazy_journal_init=0 -d "$1" "$2" || return 1
    printf '%s\n' "$sources" >"$1/etc/apt/sources.list"
}

# need_go NAME: true when Go is there, to build NAME with.
need_go() {
    command -v go >/dev/null || PATH="/usr/local/go/bin:$PATH"
    command -v go >/dev/null || {
        why="Go isn't installed, and $1 is built with it"
        return 1
    }
}

# need_kubernetes: sets KEDGE_KUBERNETES to the folder with kube-apiserver, kube-controller-manager, kube-scheduler and
# kubectl, and KEDGE_KWOK to the one with kwok. When that can't be, `why` says so and it is false.
need_kubernetes() {
    local home
    need etcd etcd-server || {
        why="etcd isn't installed and can't be installed here (Debian's package etcd-server)"
        return 1
    }
    export KEDGE_KUBERNETES=${KUBEBUILDER_ASSETS:-}
    if ! has_programs "$KEDGE_KUBERNETES" kube-apiserver kube-controller-manager kube-scheduler kubectl; then
        unset KEDGE_KUBERNETES
        need_built kubernetes Kubernetes "7 minutes" || return 1
        export KEDGE_KUBERNETES=$home
    fi
    need_built kwok kwok "3 minutes" || return 1
    export KEDGE_KWOK=$home
}

# need_flux: sets KEDGE_FLUX_SOURCE and KEDGE_FLUX_KUSTOMIZE to the folders with a controller and its CRDs. When that can't
# be, `why` says so and it is false.
need_flux() {
    local home
    need_built flux-source "Flux's source-controller" "1 minute" || return 1
    export KEDGE_FLUX_SOURCE=$home
    need_built flux-kustomize "Flux's kustomize-controller" "6 minutes" || return 1
    export KEDGE_FLUX_KUSTOMIZE=$home
}

# need_renderers: sets KEDGE_KUSTOMIZE and KEDGE_HELM to the folders with these programs, and has bubblewrap installed, in which the
# hub runs them. When that can't be, `why` says so and it is false.
need_renderers() {
    local home
    need bwrap bubblewrap || {
        why="bubblewrap isn't installed and can't be installed here (Debian's package bubblewrap)"
        return 1
    }
    need_built kustomize kustomize "1 minute" || return 1
    export KEDGE_KUSTOMIZE=$home
    need_built helm Helm "4 minutes" || return 1
    export KEDGE_HELM=$home
}

# has_programs FOLDER PROGRAM…
has_programs() {
    local folder=$1 program
    shift
    [[ -n $folder ]] || return 1
    for program; do [[ -x $folder/$program ]] || return 1; done
}

# need_built MODULE NAME TIME: sets `home` to the folder with the programs that the Go module tests/lab/MODULE names. Kept by its
# version and go.sum, which holds the checksum of everything that they are made of.
need_built() {
    local module=$root/tests/lab/$1 name=$2 time=$3 log=$KEDGE_CACHE/$1.log version sum
    version=$(sed -n 's/^\(require\)\?[[:space:]]*[a-z0-9./-]* \(v[0-9.]*\)$/\2/p' "$module/go.mod" | head -n 1)
    sum=$(sha256sum <"$module/go.sum")
    home=$KEDGE_CACHE/programs/$1-$version-${sum:0:12}
    if [[ -f $home/complete ]]; then return 0; fi
    need_go "$name" || return 1
    mkdir -p "$KEDGE_CACHE/programs"
    (
        flock 7
        if [[ ! -f $home/complete ]]; then
            say "Building $name $version, once ($time or more; into $home)"
            build_module "$module" "$home" "$version" >"$log" 2>&1
        fi
    ) 7>"$KEDGE_CACHE/programs/.$1.lock" || {
        why="$name doesn't build here; the output of Go is in $log"
        return 1
    }
}

# build_module MODULE FOLDER VERSION: every program that its tools.go names, and the CRDs beside their sources.
build_module() {
    local module=$1 home=$2 version=$3 part=$2.part package folder
    rm -rf "$part" && mkdir -p "$part" || return 1
    cd "$module" || return 1
    export CGO_ENABLED=0 GOFLAGS='-buildvcs=false -mod=readonly'
    while read -r package; do
        nice -n 10 go build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
            -o "$part/" "$package" || return 1
        folder=$(go list -f '{{.Module.Dir}}' "$package")/config/crd/bases
        # The module cache is read-only, and a copy that keeps that couldn't be removed.
        if [[ -d $folder ]]; then cp -r --no-preserve=mode "$folder" "$part/crds" || return 1; fi
    done < <(sed -n 's/^[[:space:]]*_ "\(.*\)"$/\1/p' tools.go)
    touch "$part/complete" && chmod -R a+rX "$part" && rm -rf "$home" && mv "$part" "$home"
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
