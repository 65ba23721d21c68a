# shellcheck shell=bash
# The suites: which tests belong to each, and what each needs. Sourced by tests/run.
#
# A test is known as PACKAGE::PATH, or PACKAGE/FILE::PATH when it is in a tests/ folder. A new suite is one line at
# the end of this file, and a function prepare_NAME when it needs something that may be missing: it installs that, or
# sets `reason`, and then each of the suite's tests is skipped with that reason.
# shellcheck disable=SC2034,SC2154 # the runner reads what is set here, and sets `work`

declare -a suites=()
declare -A about=() weight=() at_once=() owns=()

# suite NAME quick|heavy|alone TESTS-AT-ONCE REGEX ABOUT: the suite's tests are those whose name matches the regex. What is alone
# takes long to build and runs only when it is named.
suite() {
    suites+=("$1")
    weight[$1]=$2 at_once[$1]=$3 owns[$1]=$4 about[$1]=$5
}

# The suite of a test: the first whose regex matches; `unit` has all that nobody else asked for.
suite_of() {
    local name
    for name in "${suites[@]}"; do
        if [[ -n ${owns[$name]} && $1 =~ ${owns[$name]} ]]; then
            owner=$name
            return
        fi
    done
    owner=unit
}

prepare_unit() {
    need git git || say "git isn't installed and can't be installed here: tests that need it are skipped"
    need bwrap bubblewrap || say "bubblewrap isn't installed and can't be installed here: tests that need it are skipped"
}

prepare_kalypso() {
    if [[ -z ${KEDGE_KALYPSO:-} ]]; then
        reason="KEDGE_KALYPSO isn't set (the folder with real Kalypso input, output and vectors)"
    fi
}

# A real hub and real Git over HTTP.
prepare_world() {
    need git git || reason="git isn't installed (Debian's package git)"
    # Suites share these parts.
    if [[ -n ${hub_prepared:-} ]]; then return 0; fi
    hub_prepared=yes
    # Parts that run as another user must reach their files below it; what a killed test left there goes with the run.
    chmod 711 "$work"
    mkdir -p "$work/tmp"
    chmod 1777 "$work/tmp"
    export TMPDIR=$work/tmp
    export KEDGE_HUB_BIN=$CARGO_TARGET_DIR/debug/kedge-hub
}

# More real parts around it. What can't be had concerns the tests that need it: they skip themselves, with the reason.
prepare_hub() {
    local why=''
    prepare_world
    need_gitea || export KEDGE_NO_GITEA=$why
    need_openapi || export KEDGE_NO_OPENAPI=$why
    need_renderers || say "$why: tests that need it are skipped"
    need_postgres || {
        say "$why: tests that need it are skipped"
        return 0
    }
    # One for all unit tests, each with a database of its own.
    share postgres KEDGE_TEST_POSTGRES || true
}

# share PART VARIABLE: starts a part of the lab for all tests of a suite, and exports where it is; clean_up ends it.
share() {
    local part=$1 variable=$2 line=''
    if [[ -n ${!variable:-} ]]; then return 0; fi
    "$CARGO_TARGET_DIR/debug/kedge-lab" "$part" </dev/null >"$work/$part.env" 2>"$work/$part.log" 8>&- 9>&- &
    for _ in {1..1200}; do
        if line=$(grep -m1 "^$variable=" "$work/$part.env"); then break; fi
        kill -0 $! 2>/dev/null || break
        sleep 0.1
    done
    if [[ -z $line ]]; then
        say "$part doesn't start:" "$(cat "$work/$part.env" "$work/$part.log")"
        return 1
    fi
    export "$variable=${line#*=}"
}

# A fleet of real agents below folders beside a real hub; no rights of root.
prepare_rollout() {
    local why=''
    prepare_hub
    need_prometheus || export KEDGE_NO_PROMETHEUS=$why
}

# Prometheus and its tool beside them. Without them their tests skip themselves.
prepare_metrics() {
    local why=''
    prepare_hub
    need_prometheus || export KEDGE_NO_PROMETHEUS=$why
}

# The first command of the README, with the programs that the build just made.
prepare_up() {
    need git git || reason="git isn't installed (Debian's package git)"
}

# A real Chromium before a real hub with real agents. Pictures of every page go to a folder for a person to look at.
prepare_web() {
    local why=''
    prepare_hub
    need chromedriver chromium chromium-driver || reason="Chromium isn't installed (Debian's packages chromium and chromium-driver)"
    need_axe || export KEDGE_NO_AXE=$why
    export KEDGE_PICTURES=${KEDGE_PICTURES:-$KEDGE_CACHE/pictures}
}

# A booted Debian host beside a real hub. Its tests say themselves what they lack.
prepare_debian() {
    local why=''
    prepare_hub
    [[ $(id -u) == 0 ]] || {
        reason="booting a Debian host requires root"
        return 0
    }
    need bwrap bubblewrap || say "bubblewrap isn't installed and can't be installed here: tests that need it are skipped"
    need_debian || {
        reason=$why
        return 0
    }
    # Of the program that the build just made: a package for release takes minutes more.
    KEDGE_AGENT_DEB=$("$root/packaging/deb/build" --only kedge-agent --program "$CARGO_TARGET_DIR/debug/kedge-agent" \
        --out "$work/debian" 2>"$work/debian.log" 8>&- 9>&-) ||
        reason="the agent's package can't be built: $(tail -n 1 "$work/debian.log")"
    export KEDGE_AGENT_DEB
}

# A real Kubernetes for all tests, each with names of its own in it, a hub and agents.
prepare_kubernetes() {
    local why=''
    prepare_world
    need_kubernetes || {
        reason=$why
        return 0
    }
    share kubernetes KEDGE_TEST_KUBERNETES || {
        reason="Kubernetes doesn't start here"
        return 0
    }
    # The applier's own tests know no lab; they act as the administrator.
    export KEDGE_TEST_KUBECONFIG=$KEDGE_TEST_KUBERNETES/admin.kubeconfig
}

# The same with Flux's controllers.
prepare_flux() {
    local why=''
    prepare_kubernetes
    need_flux || reason=$why
}

# Real agents below folders: by file, and in networks of their own. What needs root says so itself.
prepare_peers() {
    prepare_world
    need ip iproute2 || true
    need nft nftables || say "nft isn't installed and can't be installed here: tests that lose packets are skipped"
}

# The agent's packages for ARM, cross-compiled, and what runs them here. Kept by the content of their sources.
prepare_arm() {
    local architecture deb code log=$KEDGE_CACHE/arm.log
    need qemu-arm-static qemu-user-static && need_arm_libraries || {
        reason="ARM programs can't run here (Debian's packages qemu-user-static, libc6-arm64-cross, libc6-armhf-cross)"
        return 0
    }
    say "Building the agent's packages for ARM (this takes minutes if their sources changed; the output is in $log)"
    for architecture in arm64 armhf; do
        code=0
        deb=$("$root/packaging/deb/build" "$architecture" --only kedge-agent --out "$work/$architecture" 2>"$log" 9>&-) || code=$?
        if ((code == 3)); then
            reason=$(sed -n 's/^Error: //p' "$log" | tail -n 1)
            return 0
        fi
        # One that doesn't compile is the test's to tell.
        export "KEDGE_${architecture^^}_DEB=${deb:-$log}"
    done
}

need_arm_libraries() {
    local found=(/usr/aarch64-linux-gnu/lib/libc.so.6 /usr/arm-linux-gnueabihf/lib/libc.so.6)
    [[ -e ${found[0]} && -e ${found[1]} ]] && return 0
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || return 1
    install_packages libc6-arm64-cross libc6-armhf-cross >"$KEDGE_CACHE/apt.log" 2>&1
    [[ -e ${found[0]} && -e ${found[1]} ]]
}

cores=$(nproc)
suite unit quick "$cores" '' "all tests that need nothing outside of the workspace"
suite kalypso quick "$cores" '/kalypso|/go_templates|::kalypso_' "comparison with real Kalypso input and output, from the folder that KEDGE_KALYPSO names"
# These modules of the hub do every test on each database there is.
both='airgap|permits::limiter|status'
suite hub heavy "$cores" "^kedge-tests/(hub|agents)::|^kedge-hub(-[a-z]+)?(/[^:]*)?::.*(postgres|::the_real_)|^kedge-hub::($both)::tests::|^kedge-hub-store::(history|promotion)::tests::" "a real hub with real Git over HTTP, Gitea, PostgreSQL, kustomize and Helm around it"
suite rollout heavy $((cores + 2)) '^kedge-tests/rollout::|^kedge-sim(/[^:]*)?::' "promotion through environments and rings with a fleet of real agents, and its simulation"
suite metrics heavy "$cores" '^kedge-tests/metrics::' "metrics in a real Prometheus, alerts, dashboards, and webhooks to real receivers"
suite up heavy 2 '^kedge-tests/up::' "kedge up: a whole fleet on one machine, and the commands that it suggests"
suite web heavy "$cores" '^kedge-tests/web::' "the page in a real Chromium, with a fleet of real agents; screenshots go to KEDGE_PICTURES"
suite debian heavy $((cores + 1)) '^kedge-tests/debian::' "the agent on a booted Debian host, with a real hub, an apt repository and power cuts"
suite kubernetes heavy $((cores + 2)) '^kedge-tests/kubernetes::|^kedge-agent::apply::kubernetes::tests::' "the agent in a real Kubernetes: API server, controllers, scheduler and a node of kwok"
suite flux heavy "$cores" '^kedge-tests/flux::' "real Flux applies what a hub published while the agent observes it; the same with Argo CD's objects"
suite peers heavy "$cores" '^kedge-tests/peers::' "sites whose agents carry for each other, and delivery by file without any network"
suite arm alone "$cores" '^kedge-tests/arm::' "the agent's packages for ARM, started under qemu"
