//! The power is cut at every step of a transaction, found by watching the journal being written: after the boot, without any network,
//! the host has the old or the new state, completely, and says which.

use std::collections::BTreeMap;
use std::env;

use kedge_tests::lab::await_some;
use kedge_tests::lab::host::cut::{Cut, Moment};
use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::lab::host::{DebianHost, Network};
use kedge_tests::world::line::{CHANGED_WITHIN, FIRST, Line, await_local, local};
use kedge_tests::world::workload::Workload;
use serde_json::Value;

/// Every write of the assignment's journal, and dpkg's own.
const JOURNAL: &str = "/var/lib/kedge-agent/records";
const DPKG: &str = "/var/lib/dpkg/updates";
const MOMENTS: [Moment; 2] = [Moment { folder: JOURNAL, ending: ".new" }, Moment { folder: DPKG, ending: "" }];

/// Of dpkg's many writes only so many are cuts, at distances; `KEDGE_TEST_ROUNDS` takes more of them.
const DPKG_EVERY: usize = 6;
/// A write of the journal is two copies: the cut before the second one finds the first. Both in more rounds.
const COPIES: usize = 2;

fn wanted(folder: &str, number: usize) -> bool {
    let rounds = env::var("KEDGE_TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_usize).max(1);
    match folder {
        // Each write once: of one the first copy, of the next the second.
        JOURNAL => rounds > 1 || number % (2 * COPIES) == 1 || number.is_multiple_of(2 * COPIES),
        _ => number.is_multiple_of((DPKG_EVERY / rounds).max(1)),
    }
}

/// What a host has, and what it says that it runs.
struct State {
    running: Option<String>,
    fingerprint: Fingerprint,
}

impl State {
    /// Once nothing is under way, and nothing began meanwhile.
    fn of(host: &DebianHost) -> State {
        let settled = || {
            let status: Value =
                serde_json::from_str(&host.run(&["kedge-agent", "status", "-o", "json"]).stdout).ok()?;
            let one = local(host, FIRST).unwrap_or_default();
            let is_settled =
                one["underWay"].is_null() && one["condition"] != "Converging" && !status["daemon"].is_null();
            is_settled.then(|| one["running"].as_str().map(str::to_owned))
        };
        await_some("the host has settled", CHANGED_WITHIN, || {
            let running = settled()?;
            let fingerprint = Fingerprint::of(host);
            (settled()? == running).then_some(State { running, fingerprint })
        })
    }
}

/// Boots each disk that was left and compares.
fn judge(cuts: &[Cut], states: [(&str, &State); 2]) {
    assert!(
        cuts.iter().filter(|cut| cut.file.starts_with(JOURNAL)).count() >= 4,
        "the journal is written often: {cuts:?}"
    );
    let (mut ends, mut said) = (BTreeMap::<&str, usize>::new(), 0);
    for cut in cuts {
        let at = format!("cut before write {} of {}", cut.number, cut.file);
        let host = DebianHost::boot_on(cut.image(), Network::Out);
        let found = State::of(&host);
        let why = host.run(&["kedge-agent", "why", FIRST]);
        let same = states.iter().find(|(_, state)| state.running == found.running);
        let (name, state) = same.unwrap_or_else(|| panic!("{at}: it runs {:?}\n{}", found.running, why.stdout));
        state
            .fingerprint
            .assert_same(&found.fingerprint, &format!("{at}; it says that it is the {name}\n{}", why.stdout));
        said += usize::from(why.stdout.contains("power"));
        *ends.entry(name).or_default() += 1;
        eprintln!("{at} ({} kB were written since): {name}", cut.bytes() / 1024);
    }
    // What is gone has no `why`.
    assert!(said > 0 || states.iter().any(|(_, state)| state.running.is_none()), "`why` tells of the cut");
    eprintln!("{} cuts, {ends:?}; `why` told of {said}", cuts.len());
}

/// Pushes without waiting: the host is stopped again and again meanwhile.
fn push(line: &Line, version: &str) {
    let path = format!("/srv/{FIRST}/more.txt");
    let mut workload = Workload::tool(FIRST, version).file(&path, "more.txt", "more\n", "mode: \"0600\"");
    // A boot that finds it sick needn't wait long.
    workload.more.push("timeout: 4s".to_owned());
    workload.push(&line.world.sample.hello_gitops, "line-test");
}

#[test]
fn a_power_cut_at_every_step_of_an_upgrade_leaves_the_old_or_the_new_state() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let old = State::of(&line.host);
    let cuts = line.host.cuts_during(&MOMENTS, &wanted, |host| {
        push(&line, "2.0");
        await_local(host, FIRST, |one| {
            one["condition"] == "Converged" && one["running"].as_str() != old.running.as_deref()
        });
    });
    let new = State::of(&line.host);
    judge(&cuts, [("old state", &old), ("new state", &new)]);
}

#[test]
fn a_power_cut_at_every_step_of_a_change_that_fails_leaves_the_old_state() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let old = State::of(&line.host);
    let cuts = line.host.cuts_during(&MOMENTS, &wanted, |host| {
        push(&line, "3.0");
        await_local(host, FIRST, |one| one["condition"] == "Failed");
    });
    judge(&cuts, [("old state", &old), ("old state", &old)]);
}

#[test]
fn a_power_cut_at_every_step_of_a_removal_leaves_all_of_the_workload_or_nothing() {
    let Some(line) = Line::start_before_join() else { return };
    let clean = State::of(&line.host);
    line.join();
    line.await_converged(FIRST);
    let old = State::of(&line.host);
    let cuts = line.host.cuts_during(&MOMENTS, &wanted, |host| {
        line.remove_target(FIRST);
        line.confirm_removal();
        await_some("it is removed", CHANGED_WITHIN, || local(host, FIRST).is_none().then_some(()));
    });
    judge(&cuts, [("whole workload", &old), ("host without it", &clean)]);
}
