//! What runs, from rollouts and reports.

use kedge_api::fleet::RunningCommit;
use kedge_model::wire::PackageRef;
use serde_json::json;

use super::*;

const RINGS: [&str; 2] = ["canary", "rest"];

/// A rollout of a main commit that moves `x` and `y` to content of its name, with the state of each ring.
fn rollout(id: u64, main: &str, states: [RingState; 2], phase: Phase) -> Passage {
    let rings = RINGS.into_iter().zip(states).map(|(ring, state)| (ring.to_owned(), state)).collect();
    let items = ["x", "y"].map(|name| (place(name), change(main))).into();
    let at = Timestamp(i64::try_from(id).unwrap() * 1000);
    Passage { id: RolloutId(id), main: Some(main.to_owned()), subject: format!("Say {main}"), phase, at, rings, items }
}

fn place(name: &str) -> Place {
    ("drone".to_owned(), name.to_owned())
}

fn change(content: &str) -> Change {
    let package: PackageRef = serde_json::from_value(
        json!({"digest": Digest::of(content.as_bytes()).to_string(), "size": 1, "repo": "r", "commit": "c"}),
    )
    .unwrap();
    let parameters = serde_json::from_value(json!({"to": "host", "scope": "namespace", "conflicts": "fail",
        "timeoutSeconds": 1, "soakSeconds": 1, "rollback": "auto", "drift": "repair"}))
    .unwrap();
    let platform = kedge_hub_types::rollout::change::PlatformPart { parameters, package };
    Change { platform: Some(platform), ..Change::default() }
}

/// So many clusters of a ring run content of an assignment.
fn row(ring: &str, name: &str, content: &str, count: u64) -> Row {
    let platform = Some(Digest::of(content.as_bytes()));
    let runs = Runs::Packages { name: content.to_owned(), platform, workload: None };
    Row { ring: ring.to_owned(), place: place(name), runs, deviates: false, count, offline: 0 }
}

fn told(passages: &[Passage], blocked: &[u64], rows: &[Row], broken: &[Broken], base: &str) -> String {
    let rings: Vec<String> = RINGS.map(str::to_owned).to_vec();
    let blocked: BTreeSet<RolloutId> = blocked.iter().map(|id| RolloutId(*id)).collect();
    let stood = None;
    names(&Picture { passages, blocked: &blocked, rows, broken, rings: &rings, base: Some(base), stood })
}

fn names(picture: &Picture<'_>) -> String {
    let one = |one: &RunningCommit| {
        let offline = if one.offline > 0 { format!("-{}", one.offline) } else { String::new() };
        format!("{}{:?}{offline}", one.commit, one.rings)
    };
    running(picture).iter().map(one).collect::<Vec<_>>().join(" ")
}

fn said(passages: &[Passage], blocked: &[u64], base: &str) -> String {
    let unreported = |ring: &str| Row { runs: Runs::Unreported, deviates: true, ..row(ring, "", "", 0) };
    told(passages, blocked, &RINGS.map(unreported), &[], base)
}

fn complete() -> Phase {
    Phase::Complete { at: Timestamp(1) }
}

#[test]
fn before_anybody_reported_the_commit_is_the_one_that_a_ring_was_given_and_kept() {
    use RingState::{Passed, Returned, Rolling, Waiting};
    let at = Timestamp(1);
    let old = || rollout(1, "old", [Passed, Passed], complete());
    let back = || Phase::RolledBack { why: "customers".to_owned(), at };
    assert_eq!(said(&[old()], &[], "old"), "old[]");
    assert_eq!(said(&[old()], &[], "newer"), "newer[]", "it changed nothing");
    let moving = rollout(2, "new", [Rolling, Waiting], Phase::Active);
    assert_eq!(said(&[moving, old()], &[], "new"), r#"new["canary"] old["rest"]"#);
    let returned = || rollout(2, "new", [Returned, Waiting], back());
    assert_eq!(said(&[returned(), old()], &[2], "new"), "old[]");
    assert_eq!(said(&[returned(), old()], &[], "reverted"), "reverted[]", "Git asks for what runs again");
    let fixed = rollout(3, "fix", [Passed, Waiting], Phase::Paused { by: "otto".to_owned(), at });
    assert_eq!(said(&[fixed, returned(), old()], &[], "fix"), r#"fix["canary"] old["rest"]"#);
    assert_eq!(said(&[returned()], &[2], "new"), "[]", "nobody knows what it had before");
}

#[test]
fn clusters_that_went_back_or_never_got_it_are_shown_with_what_they_run() {
    use RingState::{Passed, Stopped, Waiting};
    let old = || rollout(1, "old", [Passed, Passed], complete());
    let stopped = || {
        let phase = Phase::Stopped { ring: "canary".to_owned(), why: "1 failed".to_owned(), at: Timestamp(2) };
        rollout(2, "new", [Stopped, Waiting], phase)
    };
    // Each went back by itself; then a commit that changes nothing came on top.
    let back = [row("canary", "x", "old", 1), row("rest", "x", "old", 2)];
    assert_eq!(told(&[stopped(), old()], &[], &back, &[], "readme"), "old[]");
    let some = [row("canary", "x", "old", 1), row("canary", "x", "new", 2), row("rest", "x", "old", 4)];
    assert_eq!(told(&[stopped(), old()], &[], &some, &[], "new"), r#"old["canary", "rest"] new["canary"]"#);
    // Complete without those that are held or offline.
    let new = rollout(2, "new", [Passed, Passed], complete());
    let rest =
        [row("canary", "x", "new", 1), row("rest", "x", "old", 1), Row { offline: 1, ..row("rest", "x", "old", 1) }];
    assert_eq!(told(&[new, old()], &[], &rest, &[], "new"), r#"new["canary"] old["rest"]-1"#);
}

#[test]
fn a_commit_that_is_broken_is_never_shown_as_running() {
    use RingState::Passed;
    let old = || rollout(1, "old", [Passed, Passed], complete());
    let rows = [row("canary", "x", "old", 1), row("canary", "y", "old", 1), row("rest", "x", "old", 2)];
    let of = |place| Broken { place, main: "bad".to_owned(), since: Timestamp(5000) };
    assert_eq!(told(&[old()], &[], &rows, &[of(Some(place("x")))], "bad"), "old[]");
    assert_eq!(told(&[old()], &[], &rows, &[of(None)], "bad"), "old[]", "a file of main that can't be read");
    // What else it says has arrived.
    let mut part = rollout(2, "bad", [Passed, Passed], complete());
    part.items.remove(&place("x"));
    let rows = [row("canary", "x", "old", 1), row("canary", "y", "bad", 1)];
    assert_eq!(told(&[part, old()], &[], &rows, &[of(Some(place("x")))], "bad"), r#"old["canary"] bad["canary"]"#);
}

#[test]
fn older_rollouts_are_asked_for_only_while_something_is_unexplained() {
    use RingState::Passed;
    let passages = [rollout(2, "new", [Passed, Passed], complete())];
    let held = Row { deviates: true, ..row("rest", "x", "old", 1) };
    assert!(!is_open(&passages, &[row("rest", "x", "new", 3)]));
    assert!(is_open(&passages, std::slice::from_ref(&held)));
    let both = [passages[0].clone(), rollout(1, "old", [Passed, Passed], complete())];
    assert!(!is_open(&both, &[held]));
}

/// Of a commit that has passed: when it came in, in seconds.
fn stood(commit: &str, entered: i64) -> Stood {
    let (entered, passed) = (Timestamp(entered * 1000 + 100), Timestamp(entered * 1000 + 900));
    Stood { commit: commit.to_owned(), subject: String::new(), entered, passed }
}

#[test]
fn of_commits_with_the_same_content_the_newest_that_passed_runs_until_something_else_is_reported() {
    use RingState::{Passed, Rolling, Stopped, Waiting};
    let rings: Vec<String> = RINGS.map(str::to_owned).to_vec();
    let none = BTreeSet::new();
    let rows = [row("canary", "x", "old", 1), row("rest", "x", "old", 2)];
    let told = |passages: &[Passage], broken: &[Broken], base: &str, stood: &[Stood]| {
        let (base, stood) = (Some(base), Some(stood));
        names(&Picture { passages, blocked: &none, rows: &rows, broken, rings: &rings, base, stood })
    };
    let old = || rollout(1, "old", [Passed, Passed], complete());
    // It entered before its rollout began.
    let first = || Stood { passed: Timestamp(1500), ..stood("old", 0) };
    let (readme, more) = (stood("readme", 2), stood("more", 3));
    assert_eq!(told(&[old()], &[], "readme", &[first()]), "old[]", "it hasn't passed yet");
    assert_eq!(told(&[old()], &[], "readme", &[readme.clone(), first()]), "readme[]");
    let both = [more, readme, first()];
    assert_eq!(told(&[old()], &[], "more", &both), "more[]");
    // The next commit changes a package: it is read, rolls, and fails.
    let moving = rollout(5, "bad", [Rolling, Waiting], Phase::Active);
    assert_eq!(told(&[moving, old()], &[], "bad", &both), "more[]");
    let phase = Phase::Stopped { ring: "canary".to_owned(), why: "1 failed".to_owned(), at: Timestamp(6) };
    let stopped = || rollout(5, "bad", [Stopped, Waiting], phase.clone());
    assert_eq!(told(&[stopped(), old()], &[], "bad", &both), "more[]");
    // A person let it pass, and a harmless one came on top: that contains what the clusters don't have.
    let let_pass = Stood { passed: Timestamp(5500), ..stood("bad", 4) };
    let overridden = [vec![stood("later", 7), let_pass], both.to_vec()].concat();
    assert_eq!(told(&[stopped(), old()], &[], "later", &overridden), "more[]");
    // The next commit can't even be rendered.
    let broken = Broken { place: Some(place("x")), main: "bad".to_owned(), since: Timestamp(5000) };
    assert_eq!(told(&[old()], std::slice::from_ref(&broken), "bad", &both), "more[]");
    assert_eq!(told(&[old()], &[broken], "later", &overridden), "more[]");
}

/// Names what runs in an environment whose commits are promoted; the newest rollout comes first.
fn promoted(passages: &[Passage], blocked: &[u64], content: &str, base: &str, stood: &[Stood]) -> String {
    let rings: Vec<String> = RINGS.map(str::to_owned).to_vec();
    let blocked: BTreeSet<RolloutId> = blocked.iter().map(|id| RolloutId(*id)).collect();
    let rows = RINGS.map(|ring| Row { deviates: true, ..row(ring, "x", content, 2) });
    let (base, stood) = (Some(base), Some(stood));
    names(&Picture { passages, blocked: &blocked, rows: &rows, broken: &[], rings: &rings, base, stood })
}

#[test]
fn a_commit_that_found_content_which_went_back_since_does_not_run() {
    use RingState::{Passed, Returned};
    let back = |id: u64, main: &str, at: i64| {
        let phase = Phase::RolledBack { why: "no".to_owned(), at: Timestamp(at * 1000) };
        rollout(id, main, [Returned, Returned], phase)
    };
    let first = || rollout(1, "first", [Passed, Passed], complete());
    let second = || rollout(2, "second", [Passed, Passed], complete());
    let stood_all = [stood("again", 5), stood("second", 2), Stood { passed: Timestamp(1500), ..stood("first", 0) }];
    // Of the third nothing is left; Git has the second's value again, which begins no rollout.
    let before = [back(6, "fourth", 7), back(3, "third", 4), second(), first()];
    assert_eq!(promoted(&before, &[6], "second", "fourth", &stood_all), "again[]");
    // Then the second goes back, too.
    let after = [back(6, "fourth", 7), back(3, "third", 4), back(2, "second", 8), first()];
    assert_eq!(promoted(&after, &[6], "first", "fourth", &stood_all), "first[]");
    let unknown = &after[..3];
    assert_eq!(promoted(unknown, &[6], "first", "fourth", &stood_all), "[]", "nobody knows what brought it");
}

#[test]
fn a_change_of_the_environments_own_branch_that_went_back_leaves_the_commit_below_it() {
    use RingState::{Passed, Returned};
    let first = rollout(1, "first", [Passed, Passed], complete());
    let stood = [stood("readme", 2), Stood { passed: Timestamp(1500), ..stood("first", 0) }];
    // It rolled on top of a commit of main that had changed nothing.
    let phase = Phase::RolledBack { why: "1 failed".to_owned(), at: Timestamp(6000) };
    let mut own = rollout(5, "readme", [Returned, Passed], phase);
    own.items = [(place("x"), change("own"))].into();
    let passages = [own, first];
    assert_eq!(promoted(&passages, &[5], "first", "readme", &stood), "readme[]", "Git asks for the change still");
    assert_eq!(promoted(&passages, &[], "first", "readme", &stood), "readme[]", "and no more");
}
