//! Changes, failures, ways back and removals.

use super::*;

#[test]
fn a_change_is_applied_soaked_committed_and_told() {
    let mut lab = Lab::new();
    lab.host.answer(&[Err("refused"), Err("refused")]);
    lab.engine.apply(order("w", "1"));
    let record = lab.record("w");
    assert_eq!(lab.outcome("w"), Outcome::Committed);
    assert_eq!(record.running.as_ref().unwrap().packages.version.as_deref(), Some("1"));
    assert_eq!((record.transaction, record.failed), (None, None));
    assert_eq!(lab.time.elapsed(), Duration::from_secs(2 + 5), "two tries until healthy, then the soak");
    assert_eq!(
        lab.conditions("w"),
        [("Converging".to_owned(), None, None), ("Converged".to_owned(), Some("1".to_owned()), None)]
    );
    let steps = lab.host.done();
    let at =
        |what: &str| steps.iter().position(|step| step.contains(what)).unwrap_or_else(|| panic!("{what}: {steps:?}"));
    let order = [
        "add user",
        "make folder /etc/kedge",
        "write /etc/kedge",
        "write /srv",
        "install app",
        "reload",
        "enable w",
        "restart w",
    ];
    assert!(order.map(at).is_sorted(), "{steps:?}");
    lab.engine.apply(super::order("w", "1"));
    assert_eq!(lab.host.done(), Vec::<String>::new(), "the same content needs no step");
}

#[test]
fn a_failing_health_check_rolls_back_to_exactly_what_was_there() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    let before = lab.host.world();
    lab.told();
    lab.host.answer(&vec![Err("answers 500"); 100]);
    lab.engine.apply(order("w", "2"));
    assert_eq!(lab.host.world(), before);
    let Outcome::RolledBack(failure) = lab.outcome("w") else { panic!("{:?}", lab.outcome("w")) };
    assert_eq!((failure.reason.as_str(), failure.message.contains("answers 500")), ("HealthCheck", true));
    let told = lab.conditions("w");
    assert_eq!(told.last().unwrap(), &("Failed HealthCheck".to_owned(), Some("1".to_owned()), None));
    assert_eq!(lab.record("w").failed.unwrap().key, packages("2").key());
}

#[test]
fn one_failed_check_in_the_soak_is_a_failure() {
    let mut lab = Lab::new();
    lab.host.answer(&[Ok(()), Ok(()), Ok(()), Err("crashed")]);
    lab.engine.apply(order("w", "1"));
    let Outcome::RolledBack(failure) = lab.outcome("w") else { panic!() };
    assert!(failure.message.contains("after 3 s crashed"), "{}", failure.message);
    assert_eq!(lab.host.world(), empty_host());
}

#[test]
fn a_failing_platform_part_leaves_the_workload_untouched() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    lab.host.done();
    lab.host.fail("write /etc/kedge", 1);
    lab.engine.apply(order("w", "2"));
    let config = "write /etc/kedge/workloads/w/config";
    assert_eq!(lab.host.done(), [config, config], "tried, then put back: no restart, no deb, no other file");
}

#[test]
fn a_failed_way_back_tells_both_reasons_and_the_next_assignment_goes_on() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    lab.host.answer(&vec![Err("dead"); 31]);
    lab.host.fail("install app 1", 2);
    let mut second = order("x", "2");
    second.goal.as_mut().unwrap().debs.clear();
    lab.engine.apply_all(vec![order("w", "2"), second]);
    let Outcome::RollbackFailed { first, back } = lab.outcome("w") else { panic!("{:?}", lab.outcome("w")) };
    assert_eq!((first.reason.as_str(), back.reason.as_str()), ("HealthCheck", "FileFailed"));
    let failure = lab.record("w").failed.unwrap().failure;
    assert!(
        failure.reason == "RollbackFailed" && failure.message.contains("dead") && failure.message.contains("app 1")
    );
    assert_eq!(lab.outcome("x"), Outcome::Committed);
    let file = |path: &str| lab.host.world().paths.get(path).cloned();
    assert!(file("/srv/w/data") == Some(World::file("1")), "the other steps back were done");
}

#[test]
fn a_step_back_that_fails_once_is_tried_again() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    let before = lab.host.world();
    lab.host.answer(&vec![Err("dead"); 31]);
    lab.host.fail("install app 1", 1);
    lab.engine.apply(order("w", "2"));
    assert!(matches!(lab.outcome("w"), Outcome::RolledBack(_)));
    assert_eq!(lab.host.world(), before);
}

#[test]
fn rollback_never_leaves_it_and_a_later_removal_takes_all_of_it() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    let mut second = order("w", "2");
    let goal = second.goal.as_mut().unwrap();
    goal.bounds.no_rollback = true;
    goal.files.remove(2);
    lab.host.fail("install app 2", 1);
    lab.engine.apply(second);
    assert!(matches!(lab.outcome("w"), Outcome::Left(_)));
    assert_eq!(lab.record("w").running.unwrap().key, packages("2").key());
    assert_eq!(lab.words("w").last().unwrap(), "Failed FileFailed");
    lab.engine.remove("w");
    assert_eq!(lab.host.world(), empty_host());
}

#[test]
fn a_goal_that_cannot_be_made_is_refused_told_and_remembered() {
    let mut lab = Lab::new();
    let goal = Err(Failure::new("NotAllowed", "/etc/passwd is outside"));
    lab.engine.apply(Order { goal, ..order("w", "1") });
    assert!(matches!(lab.outcome("w"), Outcome::Refused(_)));
    assert_eq!(lab.words("w"), ["Failed NotAllowed"]);
    assert_eq!(lab.host.changes(), 0);
    let lab = &mut lab.reboot();
    assert_eq!(lab.words("w"), ["Failed NotAllowed"], "told again after a restart");
    lab.engine.retry("w");
    assert_eq!((lab.record("w").failed, lab.words("w")), (None, vec!["Converging".to_owned()]));
}

#[test]
fn removal_returns_everything_and_forgets_the_record() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    lab.engine.apply(order("w", "2"));
    lab.told();
    lab.engine.remove("w");
    assert_eq!(lab.host.world(), empty_host());
    assert!(lab.engine.records().get("w").is_none());
    assert!(lab.told().iter().any(|told| matches!(told, Told::Gone { assignment, .. } if assignment == "w")));
    assert!(lab.reboot().engine.records().all().is_empty());
}

#[test]
fn a_failed_removal_is_rolled_back_told_and_waits() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    let before = lab.host.world();
    lab.host.fail("remove app", 1);
    lab.engine.remove("w");
    assert_eq!(lab.host.world(), before);
    assert_eq!(lab.record("w").upkeep.unwrap().tries, 1);
    assert_eq!(lab.words("w").last().unwrap(), "Failed FileFailed");
    lab.engine.remove("w");
    assert_eq!(lab.host.world(), empty_host());
}

#[test]
fn forgetting_changes_nothing_on_the_host() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    let (before, changes) = (lab.host.world(), lab.host.changes());
    lab.engine.forget("w");
    assert_eq!((lab.host.world(), lab.host.changes()), (before, changes));
    assert!(lab.reboot().engine.records().all().is_empty());
}

#[test]
fn a_version_that_another_runs_with_is_refused_until_the_other_goes() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    lab.engine.apply(order("x", "2"));
    assert_eq!(lab.outcome("w"), Outcome::Committed);
    let Outcome::Refused(failure) = lab.outcome("x") else { panic!() };
    assert_eq!(failure.reason, "DebConflict");
    assert!(failure.message.contains("app 2") && failure.message.contains("w runs with 1"), "{}", failure.message);
    lab.engine.remove("w");
    assert_eq!(lab.record("x").failed.unwrap().tries, 0, "its turn now");
    lab.engine.apply(order("x", "2"));
    assert_eq!(lab.outcome("x"), Outcome::Committed);
}

#[test]
fn of_two_that_want_different_versions_and_neither_runs_both_fail() {
    let mut lab = Lab::new();
    lab.engine.apply_all(vec![order("w", "1"), order("x", "2")]);
    for name in ["w", "x"] {
        assert!(matches!(lab.outcome(name), Outcome::Refused(failure) if failure.reason == "DebConflict"));
    }
    lab.engine.apply(order("w", "1"));
    assert!(matches!(lab.outcome("w"), Outcome::Refused(_)), "also when one is tried again alone");
    lab.engine.apply_all(vec![order("x", "1")]);
    assert_eq!(lab.outcome("x"), Outcome::Committed);
    lab.engine.apply(order("w", "1"));
    assert_eq!(lab.outcome("w"), Outcome::Committed);
}

#[test]
fn two_that_share_a_deb_are_upgraded_together_and_the_last_one_takes_it_away() {
    let mut lab = Lab::new();
    lab.engine.apply_all(vec![order("w", "1"), order("x", "1")]);
    lab.engine.apply_all(vec![order("w", "2"), order("x", "2")]);
    assert_eq!((lab.outcome("w"), lab.outcome("x")), (Outcome::Committed, Outcome::Committed));
    lab.engine.remove("w");
    assert_eq!(lab.host.world().debs["app"].version.as_deref(), Some("2"));
    lab.engine.remove("x");
    assert_eq!(lab.host.world(), empty_host());
}

#[test]
fn a_deb_that_was_there_before_returns_to_its_version_and_marks() {
    let mut lab = Lab::new();
    let state = crate::observed::DebState { version: Some("1".to_owned()), whole: true, ..Default::default() };
    lab.host.change(|world| {
        world.debs.insert("app".to_owned(), state.clone());
        world.paths.insert("/usr/share/app".to_owned(), World::file("1"));
    });
    let before = lab.host.world();
    lab.engine.apply(order("w", "1"));
    lab.engine.apply(order("w", "2"));
    let original = lab.record("w").running.unwrap().original.debs["app"].clone();
    assert_eq!((original.state, original.archive.is_some()), (state, true));
    lab.engine.remove("w");
    // The dependency that came with it went with it.
    assert_eq!(lab.host.world(), before);
}

#[test]
fn a_raised_counter_restarts_only() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    lab.host.done();
    lab.engine.apply(Order { restart: 1, ..order("w", "1") });
    assert_eq!(lab.host.done(), ["restart w.service"]);
    assert_eq!((lab.record("w").last.unwrap().cause, lab.record("w").running.unwrap().restart), (Cause::Restart, 1));
}

#[test]
fn files_that_change_are_kept_first() {
    let mut lab = Lab::new();
    lab.host.change(|world| {
        world.paths.insert("/srv/w".to_owned(), PathState::Folder { owner: Owner::root(), mode: 0o700 });
        world.paths.insert("/srv/w/data".to_owned(), World::file("theirs"));
    });
    let before = lab.host.world();
    lab.engine.apply(order("w", "1"));
    assert!(lab.host.kept().contains("/srv/w/data"));
    assert!(crate::records::objects(&lab.record("w")).contains(&Digest::of(b"theirs")));
    lab.engine.remove("w");
    assert_eq!(lab.host.world(), before);
}

#[test]
fn a_stop_during_health_leaves_the_journal_and_the_next_start_goes_on() {
    let mut lab = Lab::new();
    lab.time.stop_at(Some(Duration::from_secs(3)));
    lab.engine.apply(order("w", "1"));
    assert!(lab.record("w").transaction.is_some());
    lab.time.stop_at(None);
    lab.host.change(|world| _ = world.up.remove("w.service"));
    let mut lab = lab.reboot();
    assert_eq!(lab.outcome("w"), Outcome::Committed);
    let trace = lab.record("w").last.unwrap().trace;
    assert!(trace.iter().any(|line| line.what.contains("during the health checks")), "{trace:#?}");
    assert_eq!(lab.words("w"), ["Converging", "Converged", "Converged"]);
}

#[test]
fn a_full_disk_before_the_first_step_changes_nothing_and_passes() {
    let mut lab = Lab::new();
    lab.disk.set_full(true);
    lab.engine.apply(order("w", "1"));
    assert_eq!((lab.host.changes(), lab.host.world()), (0, empty_host()));
    assert_eq!(lab.words("w"), ["Failed DiskFull"]);
    lab.disk.set_full(false);
    assert_eq!(lab.engine.look(&Scope::All, &BTreeSet::new()), None);
    let mut lab = lab.reboot();
    assert!(lab.record("w").failed.unwrap().failure.passes, "written as soon as it could be");
    lab.engine.apply(order("w", "1"));
    assert_eq!(lab.outcome("w"), Outcome::Committed);
}

#[test]
fn a_small_change_costs_three_syncs_per_journal_write() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    let before = lab.disk.syncs();
    let mut next = order("w", "2");
    let goal = next.goal.as_mut().unwrap();
    *goal = super::goal("w", "1");
    goal.files[2].content = Digest::of(b"2");
    lab.engine.apply(next);
    // Begin, one step, health, commit.
    assert_eq!(lab.disk.syncs() - before, 4 * 3);
}

#[test]
fn a_broken_record_is_adopted_again_without_a_step() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    let world = lab.host.world();
    for which in ["w.a", "w.b"] {
        lab.disk.write(&Paths::host().records().join(which), b"garbage").unwrap();
    }
    let (records, found) = Records::open(Arc::new(lab.disk.clone()), &Paths::host()).unwrap();
    assert!(matches!(&found[..], [crate::records::Found::SetAside { .. }]) && records.all().is_empty());
    lab.host.done();
    let mut lab = Lab::boot(lab.host, lab.disk, lab.time);
    lab.engine.apply(order("w", "1"));
    assert_eq!((lab.host.done(), lab.outcome("w")), (Vec::new(), Outcome::Committed));
    lab.engine.remove("w");
    assert_eq!(lab.host.world().paths, world.paths, "what was there before this record stays");
}

#[test]
fn a_dependency_that_somebody_else_needs_by_now_stays_and_the_rest_goes() {
    let mut lab = Lab::new();
    lab.engine.apply(order("w", "1"));
    lab.host.change(|world| world.lib_needed = true);
    lab.engine.remove("w");
    let world = lab.host.world();
    assert_eq!(world.debs.keys().collect::<Vec<_>>(), ["lib"]);
    assert!(lab.engine.records().all().is_empty());
}

#[test]
fn a_goal_that_no_journal_can_hold_is_refused_for_good() {
    let mut lab = Lab::new();
    let mut huge = order("w", "1");
    let goal = huge.goal.as_mut().unwrap();
    let file = goal.files[2].clone();
    goal.files.extend((0..10_000).map(|at| FileGoal { path: format!("/srv/w/{at}"), ..file.clone() }));
    lab.engine.apply(huge);
    let failure = lab.record("w").failed.unwrap().failure;
    assert_eq!((failure.reason.as_str(), failure.passes, lab.host.changes()), ("BadPackage", false, 0));
}

#[test]
fn very_many_files_share_journal_writes_and_a_failure_still_goes_back_exactly() {
    let mut lab = Lab::new();
    let mut many = order("w", "1");
    let goal = many.goal.as_mut().unwrap();
    let file = goal.files[2].clone();
    goal.files.extend((0..400).map(|at| FileGoal { path: format!("/srv/w/{at}"), ..file.clone() }));
    let syncs = lab.disk.syncs();
    lab.host.fail("write /srv/w/99", 1);
    lab.engine.apply(many.clone());
    assert_eq!(lab.host.world(), empty_host());
    let back = lab.record("w").last.unwrap().back.len();
    assert!(back < 420, "what wasn't written isn't taken back: {back}");
    many.restart = 1;
    lab.engine.apply(many);
    assert_eq!(lab.outcome("w"), Outcome::Committed);
    assert!(lab.disk.syncs() - syncs < 3 * 160, "{}", lab.disk.syncs() - syncs);
}
