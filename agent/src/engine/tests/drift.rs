//! What somebody changed by hand: told, repaired, left alone.

use super::*;

const FILE: &str = "/srv/w/data";

fn edit(lab: &Lab) {
    lab.host.change(|world| _ = world.paths.insert(FILE.to_owned(), World::file("edited")));
}

fn running(mut change: impl FnMut(&mut Goal)) -> Lab {
    let mut lab = Lab::new();
    let mut order = order("w", "1");
    change(order.goal.as_mut().unwrap());
    lab.engine.apply(order);
    lab.told();
    lab.host.done();
    lab
}

fn nobody() -> BTreeSet<String> {
    BTreeSet::new()
}

#[test]
fn an_edited_file_is_told_and_repaired() {
    let mut lab = running(|_| {});
    edit(&lab);
    assert_eq!(lab.engine.look(&Scope::All, &nobody()), None);
    let told = lab.conditions("w");
    let what = format!("{FILE} was edited");
    let drift = Some(what.clone());
    assert_eq!(told[0], ("Converged".to_owned(), Some("1".to_owned()), drift.clone()));
    assert_eq!(told[1], ("Converging".to_owned(), Some("1".to_owned()), drift));
    assert_eq!(told[2], ("Converged".to_owned(), Some("1".to_owned()), None));
    assert_eq!(lab.host.done(), [format!("write {FILE}")]);
    assert_eq!(lab.record("w").last.unwrap().cause, Cause::Drift(what));
}

#[test]
fn everything_that_somebody_may_do_is_repaired() {
    let mut lab = running(|_| {});
    let whole = lab.host.world();
    let changes: [fn(&mut World); 7] = [
        |world| _ = world.paths.remove(FILE),
        |world| _ = world.paths.remove("/etc/kedge/workloads/w/config"),
        |world| _ = world.up.remove("w.service"),
        |world| _ = world.enabled.remove("w.service"),
        |world| world.debs.get_mut("app").unwrap().version = Some("9".to_owned()),
        |world| _ = world.users.remove("kedge-w"),
        |world| {
            world.paths.retain(|path, _| !path.starts_with("/srv/w"));
        },
    ];
    for (at, change) in changes.into_iter().enumerate() {
        lab.host.change(change);
        lab.engine.look(&Scope::Only(BTreeSet::from(["w".to_owned()])), &nobody());
        let mut world = lab.host.world();
        world.paths.insert("/usr/share/app".to_owned(), World::file("1"));
        assert_eq!(world, whole, "change {at}");
    }
}

#[test]
fn held_and_report_are_told_and_not_repaired_ignore_is_not_even_told() {
    let held = BTreeSet::from(["w".to_owned()]);
    for (on_drift, held) in [(crate::goal::OnDrift::Repair, held), (crate::goal::OnDrift::Report, nobody())] {
        let mut lab = running(|goal| goal.bounds.drift = on_drift);
        edit(&lab);
        lab.engine.look(&Scope::All, &held);
        lab.engine.look(&Scope::All, &held);
        assert_eq!(lab.host.done(), Vec::<String>::new());
        let drift = Some(format!("{FILE} was edited"));
        assert_eq!(lab.conditions("w"), [("Converged".to_owned(), Some("1".to_owned()), drift)], "told once");
        lab.host.change(|world| _ = world.paths.insert(FILE.to_owned(), World::file("1")));
        lab.engine.look(&Scope::All, &held);
        assert_eq!(lab.conditions("w"), [("Converged".to_owned(), Some("1".to_owned()), None)], "over");
    }
    let mut lab = running(|goal| goal.bounds.drift = crate::goal::OnDrift::Ignore);
    edit(&lab);
    lab.engine.look(&Scope::All, &nobody());
    assert_eq!((lab.conditions("w"), lab.host.done()), (Vec::new(), Vec::new()));
}

#[test]
fn what_breaks_again_and_again_is_repaired_less_and_less_often() {
    let mut lab = running(|goal| goal.bounds.soak_seconds = 0);
    let mut repaired = Vec::new();
    let began = lab.time.elapsed();
    for _ in 0..600 {
        lab.host.change(|world| _ = world.up.remove("w.service"));
        lab.engine.look(&Scope::All, &nobody());
        if lab.host.done().contains(&"start w.service".to_owned()) {
            repaired.push((lab.time.elapsed() - began).as_secs());
        }
        lab.time.pass(Duration::from_secs(1));
    }
    assert_eq!(repaired, [0, 5, 15, 35, 75, 155, 315]);
}

#[test]
fn a_repair_that_fails_stays_repaired_is_told_and_waits() {
    let mut lab = running(|_| {});
    edit(&lab);
    lab.host.answer(&vec![Err("dead"); 31]);
    lab.engine.look(&Scope::All, &nobody());
    assert!(matches!(lab.outcome("w"), Outcome::Left(_)));
    assert_eq!(lab.host.world().paths[FILE], World::file("1"), "the damage doesn't return");
    assert_eq!(lab.words("w").last().unwrap(), "Failed HealthCheck");
    edit(&lab);
    let until = lab.engine.look(&Scope::All, &nobody()).unwrap();
    assert!(until > lab.time.now(), "later");
    lab.time.pass(Duration::from_secs(60));
    lab.engine.look(&Scope::All, &nobody());
    assert_eq!(lab.words("w").last().unwrap(), "Converged");
    assert_eq!(lab.record("w").upkeep, None);
}

#[test]
fn a_repair_keeps_in_mind_what_failed_before() {
    let mut lab = running(|_| {});
    lab.host.answer(&vec![Err("dead"); 31]);
    lab.engine.apply(order("w", "2"));
    edit(&lab);
    lab.engine.look(&Scope::All, &nobody());
    assert_eq!(lab.host.world().paths[FILE], World::file("1"));
    assert_eq!(lab.record("w").failed.unwrap().key, packages("2").key());
    assert_eq!(lab.words("w").last().unwrap(), "Failed HealthCheck");
}

#[test]
fn folders_above_their_limit_are_warned_about() {
    let mut lab = running(|goal| goal.disk = Some(1024 * 1024));
    let warned = |lab: &mut Lab| {
        lab.engine.look(&Scope::All, &nobody());
        lab.told().iter().any(|told| matches!(told, Told::Warning { code, .. } if code == "DiskLimit.w"))
    };
    assert!(!warned(&mut lab));
    lab.host.use_disk(2 * 1024 * 1024);
    assert!(warned(&mut lab));
}

#[test]
fn a_full_look_says_when_it_ended() {
    let mut lab = running(|_| {});
    lab.engine.look(&Scope::All, &nobody());
    let at = lab.time.now();
    assert_eq!(lab.told().last(), Some(&Told::Looked { at }));
}

#[test]
fn a_unit_that_never_gets_up_is_told_and_left_to_systemd() {
    let mut lab = running(|_| {});
    lab.host.change(|world| _ = world.starting.insert("w.service".to_owned()));
    for _ in 0..3 {
        lab.engine.look(&Scope::All, &nobody());
        lab.time.pass(Duration::from_secs(60));
    }
    let drift = Some("unit w.service is starting again and again".to_owned());
    assert_eq!(lab.conditions("w"), [("Converged".to_owned(), Some("1".to_owned()), drift)]);
    assert_eq!(lab.host.done(), Vec::<String>::new());
}

#[test]
fn a_failed_repair_stays_failed_until_it_is_healthy() {
    let mut lab = running(|_| {});
    edit(&lab);
    lab.host.answer(&[&[Err("dead"); 31][..], &[Err("dead")], &[Ok(())]].concat());
    lab.engine.look(&Scope::All, &nobody());
    lab.told();
    lab.engine.look(&Scope::All, &nobody());
    assert_eq!(lab.words("w"), ["Failed HealthCheck"], "nothing differs, and it still isn't healthy");
    lab.engine.look(&Scope::All, &nobody());
    assert_eq!(lab.words("w"), ["Converged"]);
}

#[test]
fn a_failed_removal_isn_t_forgotten_by_a_look() {
    let mut lab = running(|_| {});
    lab.host.fail("remove app", 1);
    lab.engine.remove("w");
    lab.engine.look(&Scope::All, &nobody());
    assert!(lab.record("w").upkeep.is_some());
}

#[test]
fn an_object_of_which_is_only_to_be_told_keeps_its_words_and_is_left_alone() {
    let mut lab =
        running(|goal| goal.objects[1] = goal.objects[1].with(|terms| terms.drift = crate::goal::OnDrift::Report));
    let deployment = goal("w", "1").objects[1].id.clone();
    lab.host.change(|world| _ = world.objects.insert(deployment.clone(), Digest::of(b"by hand")));
    for _ in 0..2 {
        lab.engine.look(&Scope::All, &nobody());
    }
    let drift = Some(format!("{deployment} was edited"));
    assert_eq!(lab.conditions("w"), [("Converged".to_owned(), Some("1".to_owned()), drift)], "told once");
    assert_eq!(lab.host.done(), Vec::<String>::new());
}
