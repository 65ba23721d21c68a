# shellcheck shell=bash
# The suites: which tests belong to each, and what each needs. Sourced by tests/run.
#
# A test is known as PACKAGE::PATH, or PACKAGE/FILE::PATH when it is in a tests/ folder. A new suite is one line at
# the end of this file, and a function prepare_NAME when it needs something that may be missing: it installs that, or
# sets `reason`, and then each of the suite's tests is skipped with that reason.
# shellcheck disable=SC2034 # the runner reads what is set here

declare -a suites=()
declare -A about=() weight=() at_once=() owns=()

# suite NAME quick|heavy TESTS-AT-ONCE REGEX ABOUT: the suite's tests are those whose name matches the regex.
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
    need git git || say "git isn't here and can't be installed: tests that need it are skipped"
}

prepare_kalypso() {
    if [[ -z ${KEDGE_KALYPSO:-} ]]; then
        reason="KEDGE_KALYPSO isn't set (the folder with real Kalypso pairs and vectors)"
    fi
}

cores=$(nproc)
suite unit quick "$cores" '' "every test of the workspace that needs nothing from outside"
suite kalypso quick "$cores" '/kalypso|/go_templates|::kalypso_' "real pairs and vectors of Kalypso, from the folder that KEDGE_KALYPSO names"
