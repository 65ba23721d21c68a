//! The power is cut at every step of a transaction, found by watching the journal being written: after the boot the host has the old
//! or the new state, completely, and says which.

use std::env;

use kedge_tests::lab::host::cut::{Cut, Moment};
use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::lab::host::{DebianHost, Network};
use kedge_tests::world::line::{FIRST, Line, await_local};
use kedge_tests::world::workload::Workload;

/// Every write of the assignment's journal, and dpkg's own.
const JOURNAL: &str = "/var/lib/kedge-agent/records";
const MOMENTS: [Moment; 2] =
    [Moment { folder: JOURNAL, ending: ".new" }, Moment { folder: "/var/lib/dpkg/updates", ending: "" }];

/// Of dpkg's many writes only so many are cuts, at distances; `KEDGE_TEST_ROUNDS` takes more of them.
const DPKG_EVERY: usize = 12;

fn wanted(folder: &str, number: usize) -> bool {
    let rounds = env::var("KEDGE_TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_usize).max(1);
    folder == JOURNAL || number.is_multiple_of((DPKG_EVERY / rounds).max(1))
}

/// Boots each disk that was left, without any network, and compares.
fn judge(cuts: &[Cut], old: &Fingerprint, new: &Fingerprint, keys: [&str; 2]) {
    assert!(
        cuts.iter().filter(|cut| cut.file.starts_with(JOURNAL)).count() >= 5,
        "the journal is written often: {cuts:?}"
    );
    let mut ends = [0, 0];
    for cut in cuts {
        let at = format!("cut before write {} of {}", cut.number, cut.file);
        let host = DebianHost::boot_on(cut.image(), Network::Out);
        // Whatever it could not do without the network is failed, not half done.
        let seen = await_local(&host, FIRST, |one| one["condition"] == "Converged" || one["condition"] == "Failed");
        let running = seen["running"].as_str().unwrap_or_default().to_owned();
        let which = keys.iter().position(|key| *key == running);
        let which = which.unwrap_or_else(|| panic!("{at}: neither the old nor the new one runs: {seen}"));
        [old, new][which].assert_same(&Fingerprint::of(&host), &format!("{at}; {seen}"));
        ends[which] += 1;
        eprintln!("{at} ({} kB written since): {}", cut.bytes() / 1024, ["old", "new"][which]);
    }
    eprintln!("{} cuts: {} times the old state, {} times the new", cuts.len(), ends[0], ends[1]);
}

#[test]
fn a_power_cut_at_every_step_of_an_upgrade_leaves_the_old_or_the_new_state() {
    let Some(mut line) = Line::start() else { return };
    let first = line.await_converged(FIRST)["running"].clone();
    let old = Fingerprint::of(&line.host);
    let Line { host, world, .. } = &mut line;
    let cuts = {
        let world = &*world;
        host.cuts_during(&MOMENTS, &wanted, |host| {
            Workload::tool(FIRST, "2.0")
                .file(&format!("/srv/{FIRST}/more.txt"), "more.txt", "more\n", "mode: \"0600\"")
                .push(&world.sample.hello_gitops, "line-test");
            await_local(host, FIRST, |one| one["condition"] == "Converged" && one["running"] != first);
        })
    };
    let second = await_local(&line.host, FIRST, |one| one["condition"] == "Converged")["running"].clone();
    let new = Fingerprint::of(&line.host);
    judge(&cuts, &old, &new, [first.as_str().unwrap(), second.as_str().unwrap()]);
}
