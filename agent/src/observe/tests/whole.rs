//! Assignments: the worst of their objects, at the expected commit.

use kedge_model::wire::{Digest, ObjectRef, Observation, Timestamp};
use kedge_status::Condition;

use super::super::whole::{AGAIN_PATIENCE_MS, Whole, whole};
use super::*;
use crate::external::Sighting;

const NOW: Timestamp = Timestamp(1_794_830_400_000);

fn observation(expected: Option<&str>) -> Observation {
    let object = |api_version: &str, kind: &str| ObjectRef {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: Some("flux-system".to_owned()),
        name: "app".to_owned(),
    };
    Observation {
        objects: vec![
            object("kustomize.toolkit.fluxcd.io/v1beta2", "Kustomization"),
            object("source.toolkit.fluxcd.io/v1beta2", "GitRepository"),
            object("v1", "Secret"),
        ],
        expected_commit: expected.map(str::to_owned),
        content: Digest::of(b"x"),
    }
}

fn source(commit: &str, standing: Standing) -> Judged {
    let revision = format!("dev@sha1:{commit}");
    Judged {
        standing,
        reason: "GitOperationFailed".to_owned(),
        message: "unable to clone".to_owned(),
        revision: Some(revision.clone()),
        commits: vec![revision],
        ..Judged::default()
    }
}

fn applied(commit: &str, attempted: &str, standing: Standing) -> Judged {
    Judged {
        reason: "BuildFailed".to_owned(),
        message: "kustomize build failed".to_owned(),
        attempted: Some(format!("dev@sha1:{attempted}")),
        sources: vec![Name::new(git(), Some("flux-system"), "app")],
        since: Some(Timestamp(5)),
        ..source(commit, standing)
    }
}

fn seen(expected: Option<&str>, source: Judged, applied: Judged, behind: Option<&str>) -> Sighting {
    let facts = facts(&[(git(), "app", source), (kustomization(), "app", applied)]);
    match whole(&observation(expected), &facts, behind, NOW) {
        Whole::Seen(sighting) => sighting,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_ready_at_the_expected_commit_is_converged() {
    let sighting = seen(Some(NEW), source(NEW, Standing::Ready), applied(NEW, NEW, Standing::Ready), None);
    assert_eq!((&sighting.condition, sighting.reached, sighting.drift), (&Condition::Converged, true, None));
    assert_eq!(sighting.version, Some(format!("dev@sha1:{NEW}")));
    assert_eq!(sighting.since, Some(Timestamp(5)));
    let any = seen(None, source(OLD, Standing::Ready), applied(OLD, OLD, Standing::Ready), None);
    assert_eq!((any.condition, any.reached), (Condition::Converged, true));
}

#[test]
fn an_older_commit_is_converging_with_both_named() {
    let sighting = seen(Some(NEW), source(NEW, Standing::Ready), applied(OLD, OLD, Standing::Ready), None);
    assert_eq!((sighting.condition, sighting.reached), (Condition::Converging, false));
    assert_eq!(
        sighting.drift.unwrap(),
        format!("Kustomization flux-system/app is at dev@sha1:{OLD}, and {NEW} is expected")
    );
}

#[test]
fn a_source_that_fails_is_the_reason_of_all() {
    let mut waiting = applied(OLD, OLD, Standing::Failed);
    waiting.waits = true;
    let sighting = seen(Some(NEW), source(OLD, Standing::Failed), waiting, None);
    let message = "GitRepository flux-system/app: unable to clone".to_owned();
    assert_eq!(sighting.condition, Condition::Failed { reason: "GitOperationFailed".to_owned(), message });
    assert_eq!(sighting.version, Some(format!("dev@sha1:{OLD}")));
}

#[test]
fn a_broken_commit_is_failed_and_what_runs_is_the_one_before() {
    let sighting = seen(Some(NEW), source(NEW, Standing::Ready), applied(OLD, NEW, Standing::Failed), None);
    let message = "Kustomization flux-system/app: kustomize build failed".to_owned();
    assert_eq!(sighting.condition, Condition::Failed { reason: "BuildFailed".to_owned(), message });
    assert!(!sighting.reached);
    assert_eq!(sighting.version, Some(format!("dev@sha1:{OLD}")));
    // A commit without the folder fails before anything is tried of it.
    let sighting = seen(Some(NEW), source(NEW, Standing::Ready), applied(OLD, OLD, Standing::Failed), None);
    assert!(matches!(sighting.condition, Condition::Failed { .. }));
}

#[test]
fn what_failed_over_an_older_commit_is_still_converging() {
    let sighting = seen(Some(NEW), source(OLD, Standing::Ready), applied(OLD, OLD, Standing::Failed), None);
    assert_eq!(sighting.condition, Condition::Converging);
    assert!(sighting.drift.unwrap().contains(&format!("failed at dev@sha1:{OLD}, and {NEW} is expected")));
}

#[test]
fn what_is_suspended_says_so_wherever_it_stands() {
    let mut idle = applied(NEW, NEW, Standing::Ready);
    idle.suspended = true;
    let sighting = seen(Some(NEW), source(NEW, Standing::Ready), idle.clone(), None);
    assert_eq!(sighting.condition, Condition::Converged);
    assert_eq!(sighting.drift.as_deref(), Some("Kustomization flux-system/app is suspended"));
    let sighting = seen(Some(OLD), source(OLD, Standing::Ready), idle, None);
    assert!(sighting.drift.unwrap().contains("is suspended at"));
}

#[test]
fn new_files_are_in_force_only_once_the_platform_branch_is_there() {
    let at = |behind| seen(Some(NEW), source(NEW, Standing::Ready), applied(NEW, NEW, Standing::Ready), behind);
    let late = at(Some("the platform is late"));
    assert_eq!((late.condition, late.drift.as_deref()), (Condition::Converging, Some("the platform is late")));
    assert_eq!(at(None).condition, Condition::Converged);
}

#[test]
fn a_controller_that_never_ends_what_it_began_is_seen() {
    let mut again = applied(NEW, NEW, Standing::Ready);
    again.again = Some(Timestamp(NOW.0 - AGAIN_PATIENCE_MS));
    let sighting = seen(Some(NEW), source(NEW, Standing::Ready), again.clone(), None);
    assert_eq!(sighting.condition, Condition::Converged);
    again.again = Some(Timestamp(NOW.0 - AGAIN_PATIENCE_MS - 1));
    let sighting = seen(Some(NEW), source(NEW, Standing::Ready), again, None);
    assert_eq!(sighting.condition, Condition::Converging);
}

#[test]
fn plain_work_is_no_difference_and_who_waits_says_for_what() {
    let busy = |reason: &str, waits: bool| {
        let mut busy = applied(OLD, NEW, Standing::Progressing);
        (busy.reason, busy.waits) = (reason.to_owned(), waits);
        seen(Some(NEW), source(NEW, Standing::Ready), busy, None)
    };
    let working = busy("Progressing", false);
    assert_eq!((working.condition, working.drift), (Condition::Converging, None));
    let waiting = busy("DependencyNotReady", true).drift;
    assert_eq!(waiting.as_deref(), Some("Kustomization flux-system/app: kustomize build failed"));
}

#[test]
fn what_is_not_there_is_awaited_and_what_can_not_be_seen_is_hidden() {
    let mut facts = facts(&[(git(), "app", source(NEW, Standing::Ready))]);
    let Whole::Seen(sighting) = whole(&observation(Some(NEW)), &facts, None, NOW) else { panic!() };
    assert_eq!(sighting.condition, Condition::Converging);
    assert_eq!(sighting.drift.as_deref(), Some("Kustomization flux-system/app isn't in the cluster"));

    let set = |facts: &mut Facts, fare: Fare, listed: bool| {
        let watched = facts.watches.iter_mut().find(|(scope, _)| scope.kind == kustomization()).unwrap().1;
        *watched = Watched { fare, listed };
    };
    set(&mut facts, Fare::NotServed, true);
    let Whole::Hidden(why) = whole(&observation(Some(NEW)), &facts, None, NOW) else { panic!() };
    assert!(why[0].contains("doesn't serve the kind Kustomization (kustomize.toolkit.fluxcd.io)"), "{why:?}");
    set(&mut facts, Fare::Forbidden("User \"x\" cannot list".to_owned()), false);
    assert!(matches!(whole(&observation(Some(NEW)), &facts, None, NOW), Whole::Hidden(_)));
    for fare in [Fare::Begun, Fare::Broken("refused".to_owned())] {
        set(&mut facts, fare, false);
        assert_eq!(whole(&observation(Some(NEW)), &facts, None, NOW), Whole::NotYet);
    }
}

#[test]
fn a_chart_from_git_is_at_the_commit_of_its_source() {
    let release = Judged {
        standing: Standing::Ready,
        revision: Some("1.2.0".to_owned()),
        sources: vec![Name::new(Kind::new(SOURCES, "HelmChart"), Some("flux-system"), "app")],
        ..Judged::default()
    };
    let chart = Judged {
        standing: Standing::Ready,
        sources: vec![Name::new(git(), Some("flux-system"), "app")],
        ..Judged::default()
    };
    let mut wanted = observation(Some(NEW));
    wanted.objects = vec![ObjectRef {
        api_version: "helm.toolkit.fluxcd.io/v2".to_owned(),
        kind: "HelmRelease".to_owned(),
        ..wanted.objects[0].clone()
    }];
    let at = |commit| {
        let helm_chart = Kind::new(SOURCES, "HelmChart");
        let facts = facts(&[
            (helm_release(), "app", release.clone()),
            (helm_chart, "app", chart.clone()),
            (git(), "app", source(commit, Standing::Ready)),
        ]);
        match whole(&wanted, &facts, None, NOW) {
            Whole::Seen(sighting) => sighting,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((at(NEW).condition, at(NEW).version.as_deref()), (Condition::Converged, Some("1.2.0")));
    assert_eq!(at(OLD).condition, Condition::Converging);
}

#[test]
fn a_name_in_several_namespaces_is_not_guessed() {
    let mut facts = facts(&[(kustomization(), "app", applied(NEW, NEW, Standing::Ready))]);
    let mut wanted = observation(Some(NEW));
    wanted.objects.truncate(1);
    wanted.objects[0].namespace = None;
    assert!(matches!(whole(&wanted, &facts, None, NOW), Whole::Seen(_)));
    facts.objects.insert(Name::new(kustomization(), Some("other"), "app"), applied(NEW, NEW, Standing::Ready));
    let Whole::Hidden(why) = whole(&wanted, &facts, None, NOW) else { panic!() };
    assert_eq!(why, ["Kustomization app names no namespace and is in flux-system, other"]);
}
