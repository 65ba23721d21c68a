# shellcheck shell=bash
# Builds the tests, lists them, and runs each in a process of its own, so that a crash or a hang concerns one test
# only. Sourced by tests/run, which sets `root`, `work`, `terminal`, the suites, and the names that were asked for.
# shellcheck disable=SC2154 # those

# A test that hangs is ended after this; a slow machine may need more.
limit=${KEDGE_TEST_TIMEOUT:-600}

# One entry a test, by number.
declare -a id=() exe=() path=() folder=() belongs=()
declare -A tests_of=() ignored=() last=()
declare -A waiting=() started=() passed=() failed=() skipped=()
declare -A tried=()
declare -a failures=() skips=() again=() unsteady=()
rest='' finished=0 finished_ms=0 quiet_since=$SECONDS

build() {
    local began
    began=$(now_ms)
    say "Building the tests (${last[build]:+last time $(human "${last[build]}"); }into $CARGO_TARGET_DIR)"
    # The programs too: tests start them, and some are of a package that has no tests/ folder.
    (cd "$root" && cargo build --workspace --bins --tests --message-format=json-render-diagnostics) \
        </dev/null 9>&- >"$work/build.json" || die 1 "the tests don't build; see the output of cargo above."
    last[build]=$(($(now_ms) - began))
    say "Built in $(human "${last[build]}")"
}

# field NAME: the text of a string field of the JSON message in `line`.
field() {
    local rest=${line#*\""$1"\":\"}
    printf '%s' "${rest%%\"*}"
}

# Finds every test of the binaries that were just built, and the suite that it belongs to.
list() {
    local line binary dir package target listing
    listing=$work/listing
    while IFS= read -r line; do
        binary=$(field executable) dir=$(dirname "$(field manifest_path)")
        package=$(sed -n 's/^name *= *"\(.*\)"/\1/p;T;q' "$dir/Cargo.toml")
        case $line in
        *'"kind":["test"]'*) target="$package/$(line=${line#*\"target\":} field name)" ;;
        *) target=$package ;;
        esac
        list_binary "$binary" "$dir" --ignored >"$listing"
        while IFS= read -r line; do ignored["$target::$line"]=1; done <"$listing"
        list_binary "$binary" "$dir" >"$listing"
        while IFS= read -r line; do add "$target::$line" "$binary" "$line" "$dir"; done <"$listing"
    done < <(grep -E '"profile":\{[^}]*"test":true\}' "$work/build.json" | grep -F '"executable":"')
}

list_binary() {
    local binary=$1 dir=$2
    shift 2
    (cd "$dir" && "$binary" --list --format terse "$@" </dev/null 9>&-) | sed -n 's/: test$//p'
}

add() {
    local owner
    suite_of "$1"
    wanted "$owner" "$1" || return 0
    tests_of[$owner]+="${#id[@]} "
    id+=("$1") exe+=("$2") path+=("$3") folder+=("$4") belongs+=("$owner")
}

# skip SUITE TEST REASON: where everything can be had, only what shell/skips names may be skipped; anything else ran nowhere.
skip() {
    if is_strict && ! may_skip "${id[$2]}"; then
        failed[$1]=$((${failed[$1]:-0} + 1))
        failures+=("$1 $2 it was skipped ($3), and tests/shell/skips doesn't list it: move it to a suite that has what it needs (tests/shell/suites.sh)")
        [[ -e $work/$2.log ]] || : >"$work/$2.log"
        clear_line
        say "FAILED ${id[$2]}: it was skipped, and tests/shell/skips doesn't list it"
        return
    fi
    skips+=("${id[$2]}: $3")
    skipped[$1]=$((${skipped[$1]:-0} + 1))
}

is_strict() {
    [[ ${CI:-} == true ]] || { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null && need_go it; }
}

may_skip() {
    local pattern rest
    while read -r pattern rest; do
        # shellcheck disable=SC2053 # it is a pattern
        if [[ -n $rest && $pattern != '#'* && $1 == $pattern ]]; then return 0; fi
    done <"$root/tests/shell/skips"
    return 1
}

# Suites whose tests mostly wait for real parts run beside each other, as many tests as the machine has room for.
run_suites() {
    local name test began label names=("$@")
    local -a queue=()
    local -A reasons=() under_way=()
    began=$(now_ms) label=${names[*]}
    for name in "${names[@]}"; do
        [[ -n ${tests_of[$name]:-} ]] || continue
        local reason=''
        if declare -F "prepare_$name" >/dev/null; then "prepare_$name"; fi
        reasons[$name]=$reason
    done
    for test in $(slowest_first "${names[@]}"); do
        name=${belongs[test]}
        if [[ -n ${reasons[$name]} ]]; then
            skip "$name" "$test" "${reasons[$name]}"
        elif [[ -n ${ignored[${id[test]}]:-} ]]; then
            skip "$name" "$test" "it is marked #[ignore]; measurements belong in ./tests/bench"
        else
            queue+=("$test")
            continue
        fi
        unset "waiting[$test]"
    done
    while ((${#queue[@]} + ${#started[@]} > 0)); do
        start_next || await "$label"
    done
    for test in "${again[@]}"; do
        start "$test"
        while ((${#started[@]} > 0)); do await "$label"; done
    done
    again=()
    clear_line
    for name in "${names[@]}"; do
        [[ -n ${tests_of[$name]:-} ]] || continue
        say "$name: ${passed[$name]:-0} passed, ${failed[$name]:-0} failed, ${skipped[$name]:-0} skipped"
    done
    if [[ -n ${tests_of[${names[0]}]:-} ]] || ((${#names[@]} > 1)); then say "took $(human $(($(now_ms) - began)))"; fi
}

# Starts the first of the queue whose suite has a place, if the machine has one; false: not now.
start_next() {
    local at test name
    ((${#queue[@]} > 0)) && has_room || return 1
    under_way=()
    for test in "${!started[@]}"; do under_way[${belongs[test]}]=$((${under_way[${belongs[test]}]:-0} + 1)); done
    for at in "${!queue[@]}"; do
        test=${queue[at]} name=${belongs[${queue[at]}]}
        ((${under_way[$name]:-0} < ${at_once[$name]})) || continue
        unset "queue[$at]"
        start "$test"
        return 0
    done
    return 1
}

# One test for each core at once; more where the machine was half idle since the last one began. The kernel counts in hundredths of a second.
room_busy=0 room_idle=0 room_since=0
has_room() {
    local user nice system idle _ now
    if ((${#started[@]} < cores)); then return 0; fi
    ((${#started[@]} < cores * 5)) || return 1
    now=$(now_ms)
    ((now - room_since >= 1500)) || return 1
    read -r _ user nice system idle _ </proc/stat
    # What runs nicely (a build of a part, a fuzzer) gives way to tests.
    idle=$((idle + nice))
    local busy=$((user + system - room_busy)) free=$((idle - room_idle))
    room_busy=$((user + system)) room_idle=$idle room_since=$now
    ((free * 2 >= busy + free))
}

# By the time each took when it last ran, so that no slow one is left alone at the end; new ones may be slow.
slowest_first() {
    local test
    local name
    for name in "$@"; do for test in ${tests_of[$name]:-}; do echo "${last[${id[test]}]:-999999999} $test"; done; done | sort -k1,1nr -k2,2n | cut -d' ' -f2
}

# Shells ignore interrupts in what they start in the background, and a test's own children would inherit that.
start() {
    local test=$1
    (
        exec 9>&-
        ulimit -c 0
        timeout --kill-after=10 "$limit" env --default-signal=INT,QUIT --chdir="${folder[test]}" \
            CARGO_MANIFEST_DIR="${folder[test]}" "${exe[test]}" --exact "${path[test]}" --nocapture \
            </dev/null >"$work/$test.log" 2>&1 8>&- &
        child=$! code=0
        trap 'kill "$child"' TERM
        wait "$child" || code=$?
        echo "$test $code" >&8
    ) 2>/dev/null &
    started[$test]=$(now_ms)
}

# Waits for the next end of a test, or for the time to show that we are still at it.
# A read that times out in the middle of a line keeps what it has for the next.
await() {
    local test code piece='' took
    if IFS= read -r -t 1 -u 8 piece; then
        read -r test code <<<"$rest$piece"
        rest=''
        took=$(($(now_ms) - started[$test]))
        unset "started[$test]" "waiting[$test]"
        finished=$((finished + 1)) finished_ms=$((finished_ms + took))
        judge "${belongs[test]}" "$test" "$code" "$took"
    else
        rest+=$piece
    fi
    show_progress "$1"
}

judge() {
    local name=$1 test=$2 code=$3 took=$4 line why="ended with $3"
    if ((code == 0)); then
        if line=$(grep -a -m1 'KEDGE-SKIP ' "$work/$test.log"); then
            line=${line#*KEDGE-SKIP }
            skip "$name" "$test" "${line#*: }"
        else
            passed[$name]=$((${passed[$name]:-0} + 1))
            last[${id[test]}]=$took
            if [[ -n ${tried[$test]:-} ]]; then unsteady+=("$test ${tried[$test]}"); fi
        fi
        return
    fi
    if ((code == 124)); then why="it didn't end within $limit s"; fi
    if ((code > 128)); then why="killed by SIG$(kill -l $((code - 128)) 2>/dev/null || echo " $((code - 128))")"; fi
    # Real parts on a busy machine: what fails beside others is tried once more alone, and both outcomes are told.
    if [[ -z ${tried[$test]:-} ]]; then
        tried[$test]=$why
        again+=("$test")
        cp "$work/$test.log" "$work/$test.first"
        clear_line
        say "FAILED ${id[test]}, $why; it will run once more, alone"
        return
    fi
    failed[$name]=$((${failed[$name]:-0} + 1))
    failures+=("$name $test $why, after $(human "$took")")
    clear_line
    say "FAILED ${id[test]}"
}

# What is left, from how long each test took last time; one that has never run counts as the average.
estimate() {
    local test left=0 share known=$finished known_ms=$finished_ms unknown=()
    for test in "${!waiting[@]}"; do
        if [[ -z ${last[${id[test]}]:-} ]]; then
            unknown+=("$test")
            continue
        fi
        share=${last[${id[test]}]}
        left=$((left + share / ${at_once[${belongs[test]}]}))
        known=$((known + 1)) known_ms=$((known_ms + share))
    done
    if ((${#unknown[@]} > 0 && known == 0)); then
        printf 'no estimate yet'
        return
    fi
    for test in "${unknown[@]}"; do left=$((left + known_ms / known / ${at_once[${belongs[test]}]})); done
    printf 'about %s left' "$(human "$left")"
}

# On a terminal one line that changes; elsewhere a line every 15 seconds.
show_progress() {
    local test oldest='' line
    if [[ $terminal == yes ]]; then
        ((SECONDS > quiet_since)) || return 0
    else
        ((SECONDS >= quiet_since + 15)) || return 0
    fi
    quiet_since=$SECONDS
    line="$1: $finished of $((finished + ${#waiting[@]})) tests, ${#failures[@]} failed, $(estimate)"
    for test in "${!started[@]}"; do
        if [[ -z $oldest ]] || ((started[$test] < started[$oldest])); then oldest=$test; fi
    done
    if [[ -n $oldest ]] && (($(now_ms) - started[$oldest] > 10000)); then
        line+=" (${id[oldest]} for $(human $(($(now_ms) - started[$oldest]))))"
    fi
    if [[ $terminal == yes ]]; then printf '\r\033[K%.*s' "$(($(tput cols 2>/dev/null || echo 80) - 1))" "$line" >&2; else say "$line"; fi
}

clear_line() {
    if [[ $terminal == yes ]]; then printf '\r\033[K' >&2; fi
}
