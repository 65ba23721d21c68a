//! Whose a user of a host is: a namespace gets its own, and nobody's account that was there before.

use std::path::Path;

use kedge_model::wire::Digest;

use super::*;
use crate::goal::{FileGoal, FolderGoal, Owner, Part};
use crate::observed::{Observed, UserState};
use crate::plan::debs::DebPlan;
use crate::plan::tests::running;
use crate::plan::{Others, namespaces};
use crate::record::{Original, Record, Running};

fn goal(namespace: &str, user: &str) -> Goal {
    let slice = FileGoal {
        path: format!("/etc/systemd/system/kedge-{}.slice", namespace.replace('-', "_")),
        content: Digest::of(b"slice"),
        size: 1,
        owner: Owner::root(),
        mode: 0o644,
        part: Part::Platform,
    };
    Goal { user: Some(user.to_owned()), namespace: Some(namespace.to_owned()), files: vec![slice], ..Goal::default() }
}

/// As an agent before marks wrote it.
fn old(mut running: Running) -> Running {
    running.goal.namespace = None;
    running
}

fn made(goal: &Goal) -> Running {
    running(goal, Original { users: goal.user.iter().cloned().collect(), ..Original::default() })
}

fn others(all: &[(&str, &Running)]) -> Others {
    let record = |(name, running): &(&str, &Running)| Record {
        assignment: (*name).to_owned(),
        running: Some((*running).clone()),
        ..Record::default()
    };
    Others::of(all.iter().map(record).collect::<Vec<_>>().iter())
}

fn account(uid: u32, comment: &str) -> UserState {
    UserState { account: Some(Account { uid, comment: comment.to_owned() }), has_group: true }
}

fn asked<R>(
    goal: &Goal,
    state: UserState,
    running: Option<&Running>,
    others: &Others,
    then: impl FnOnce(&Question<'_>) -> R,
) -> R {
    let user = goal.user.clone().unwrap();
    let observed = Observed { users: [(user, state)].into(), ..Observed::default() };
    let (debs, objects) = (DebPlan::default(), Path::new("/objects"));
    then(&Question { goal: Some(goal), running, restart: false, observed: &observed, debs: &debs, others, objects })
}

fn checked(goal: &Goal, state: UserState, running: Option<&Running>, others: &Others) -> Result<(), Failure> {
    asked(goal, state, running, others, check)
}

#[test]
fn an_account_of_the_host_is_never_a_tenants() {
    let (goal, nobody) = (goal("dev-svc", "svc-deploy"), Others::default());
    for (state, way_out) in [
        (account(1000, "Ann,,,"), "usermod --comment 'Kedge namespace dev-svc' svc-deploy"),
        (account(998, ""), "usermod"),
        // Of an agent before marks, but of no assignment that is known here.
        (account(998, "Kedge namespace"), "usermod"),
        (account(33, "Kedge namespace dev-svc"), "leave `user` out"),
        (account(65_534, "Kedge namespace dev-svc"), "leave `user` out"),
        // The group `docker` is there before its user.
        (UserState { account: None, has_group: true }, "groupdel svc-deploy"),
    ] {
        let failure = checked(&goal, state, None, &nobody).unwrap_err();
        assert_eq!(failure.reason, "NotAllowed");
        assert!(failure.message.contains("`svc-deploy`") && failure.message.contains(way_out), "{}", failure.message);
    }
    // Nor is it one because a workload ran as that person before this rule.
    let ran = running(&goal, Original::default());
    assert!(checked(&goal, account(1000, "Ann"), Some(&ran), &nobody).is_err());
}

#[test]
fn the_namespaces_own_user_is_used() {
    let own = goal("dev-svc", "svc");
    let nobody = Others::default();
    assert_eq!(checked(&own, UserState::default(), None, &nobody), Ok(()));
    assert_eq!(checked(&own, account(998, "Kedge namespace dev-svc"), None, &nobody), Ok(()));
    // By the record of an older agent: its own, or of its neighbour in the same namespace.
    let before = old(made(&own));
    assert_eq!(checked(&own, account(998, "Kedge namespace"), Some(&before), &nobody), Ok(()));
    let beside = others(&[("dev-other", &before)]);
    assert_eq!(checked(&own, account(998, "Kedge namespace"), None, &beside), Ok(()));
    // By a name that nothing else gets, where the record is lost or a useradd was cut.
    let made_up = goal("dev-svc", &user_of("dev-svc"));
    assert_eq!(checked(&made_up, account(998, "Kedge namespace"), None, &nobody), Ok(()));
    assert_eq!(checked(&made_up, UserState { account: None, has_group: true }, None, &nobody), Ok(()));
}

#[test]
fn an_older_agents_user_is_marked_once_and_stays() {
    let own = goal("dev-svc", "svc");
    let before = old(made(&own));
    let users = asked(&own, account(998, "Kedge namespace"), Some(&before), &Others::default(), plan);
    assert_eq!(users.add, [Step::AddUser { name: "svc".to_owned(), namespace: Some("dev-svc".to_owned()) }]);
    assert_eq!((users.new, users.made), (vec![], vec!["svc".to_owned()]));
    let users = asked(&own, account(998, "Kedge namespace dev-svc"), Some(&before), &Others::default(), plan);
    assert_eq!(users.add, []);
}

#[test]
fn a_user_of_another_namespace_is_refused_and_the_namespace_is_named() {
    let (first, second) = (goal("dev-first", "shared"), goal("dev-second", "shared"));
    let theirs = made(&first);
    let both = others(&[("first-app", &theirs)]);
    let failure = checked(&second, account(998, "Kedge namespace dev-first"), None, &both).unwrap_err();
    assert!(failure.passes && failure.message.contains("belongs to the namespace `dev-first`"), "{}", failure.message);
    // Before marks: the newcomer goes by what is remembered, and of two that have it whoever is judged first keeps it.
    let theirs = old(theirs);
    let both = others(&[("first-app", &theirs)]);
    let failure = checked(&second, account(998, "Kedge namespace"), None, &both).unwrap_err();
    assert!(failure.message.contains("of the assignment first-app"), "{}", failure.message);
    let mine = old(made(&second));
    assert_eq!(checked(&second, account(998, "Kedge namespace"), Some(&mine), &both), Ok(()));
    assert!(checked(&second, account(998, "Kedge namespace dev-first"), Some(&mine), &both).is_err());
}

#[test]
fn a_folder_or_slice_of_another_namespace_is_refused() {
    let folder = |path: &str| FolderGoal { path: path.to_owned(), owner: Owner::root(), mode: 0o750 };
    let mut first = goal("dev-first", "first");
    first.folders = vec![folder("/srv/app"), folder("/etc/kedge/workloads/first-app")];
    let theirs = made(&first);
    let both = others(&[("first-app", &theirs)]);
    let mut second = goal("dev-second", "second");
    let ask = |goal: &Goal| asked(goal, UserState::default(), None, &both, namespaces::check);
    for path in ["/srv/app", "/srv/app/inside", "/srv"] {
        second.folders = vec![folder(path)];
        let failure = ask(&second).unwrap_err();
        assert!(failure.message.contains("`dev-first` (assignment first-app)"), "{}", failure.message);
    }
    second.folders = vec![folder("/srv/application"), folder("/etc/kedge/workloads/second-app")];
    assert_eq!(ask(&second), Ok(()));
    // Another name with the same slice.
    second.files = first.files.clone();
    assert!(ask(&second).unwrap_err().message.contains("the slice kedge-dev_first.slice"));
    // Its neighbour in the namespace shares all of it.
    assert_eq!(ask(&first), Ok(()));
}
