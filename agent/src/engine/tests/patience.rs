//! Changes that wait for their health beside each other, as on a cluster.

use super::*;

fn lab() -> Lab {
    let lab = Lab::new();
    lab.host.patient();
    lab
}

/// Other files and debs for each, so that only their health is between them.
fn plain(name: &str, version: &str) -> Order {
    let mut order = order(name, version);
    let goal = order.goal.as_mut().unwrap();
    (goal.debs, goal.units) = (Vec::new(), Vec::new());
    order
}

fn is_open(lab: &Lab, name: &str) -> bool {
    lab.record(name).transaction.is_some()
}

#[test]
fn one_that_waits_for_its_health_keeps_nobody_from_going_on() {
    let mut lab = lab();
    lab.host.answer(&[Err("not yet"), Err("not yet")]);
    lab.engine.apply_all(vec![plain("slow", "1"), plain("other", "1")]);
    assert!(is_open(&lab, "slow") && is_open(&lab, "other"), "both were applied, and both wait");
    let tended = lab.engine.tend();
    assert_eq!((tended.ended, tended.next), (false, Some(Duration::from_secs(1))));
    lab.time.wait(Duration::from_secs(1));
    lab.engine.tend();
    lab.time.wait(Duration::from_secs(6));
    assert_eq!(lab.engine.tend(), Tended { ended: true, next: None });
    assert_eq!((lab.outcome("slow"), lab.outcome("other")), (Outcome::Committed, Outcome::Committed));
}

#[test]
fn one_that_never_becomes_healthy_goes_back_when_its_time_is_over() {
    let mut lab = lab();
    lab.engine.apply(plain("w", "1"));
    lab.time.wait(Duration::from_secs(6));
    lab.engine.tend();
    let before = lab.host.world();
    lab.host.answer(&[Err("no image"); 100]);
    lab.engine.apply(plain("w", "2"));
    for _ in 0..40 {
        lab.time.wait(Duration::from_secs(1));
        lab.engine.tend();
    }
    assert_eq!(lab.host.world(), before);
    let Outcome::RolledBack(why) = lab.outcome("w") else { panic!("{:?}", lab.outcome("w")) };
    assert!(why.message.contains("no image"), "{why:?}");
}

#[test]
fn what_is_wanted_by_now_ends_the_wait_for_what_was_wanted() {
    let mut lab = lab();
    lab.host.answer(&[Err("no image")]);
    lab.engine.apply(plain("w", "1"));
    lab.engine.apply(plain("w", "2"));
    lab.time.wait(Duration::from_secs(6));
    lab.engine.tend();
    let record = lab.record("w");
    assert_eq!(record.running.unwrap().packages.version.as_deref(), Some("2"));
    assert_eq!((record.failed, record.counter), (None, 2));
}

#[test]
fn a_restart_of_the_agent_waits_again() {
    let mut lab = lab();
    lab.host.answer(&[Err("not yet"), Err("not yet")]);
    lab.engine.apply(plain("w", "1"));
    let mut lab = lab.reboot();
    assert!(is_open(&lab, "w"));
    lab.time.wait(Duration::from_secs(1));
    lab.engine.tend();
    lab.time.wait(Duration::from_secs(6));
    assert!(lab.engine.tend().ended);
    assert_eq!(lab.outcome("w"), Outcome::Committed);
}
