//! Policies and Pins of whole control planes.

use kedge_model::ObjectId;

use super::*;
use crate::load::{ControlPlane, Environments, load};
use crate::testing::{Nowhere, TestRepo, folder};
use crate::tree::git::GitRepository;
use crate::{FolderTree, environments};

const WINDOW: &str = "    windows: [{timeZone: Europe/Berlin}]\n";

fn policy(name: &str, rest: &str) -> String {
    format!(
        "apiVersion: kedge.dev/v1alpha1\nkind: PromotionPolicy\nmetadata: {{name: {name}}}\nspec:\n  environments:\n  - name: dev\n  - name: prod\n{rest}"
    )
}

fn kalypso(kind: &str, name: &str, spec: &str) -> String {
    format!("apiVersion: scheduler.kalypso.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

fn pin(spec: &str) -> String {
    format!("apiVersion: kedge.dev/v1alpha1\nkind: Pin\nmetadata: {{name: p}}\nspec: {{version: v1, {spec}}}\n")
}

fn declared(files: &[(&str, &str)]) -> DeclaredPolicy {
    let root = folder(files);
    let source = kedge_model::Source { repo: "here".to_owned(), revision: None };
    Environments::in_tree(&FolderTree::new(root.path(), source), None).unwrap().policy
}

fn codes(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| problem.code).collect()
}

#[test]
fn the_policy_of_main_is_found_wherever_it_is() {
    for place in ["policy.yaml", "promotion/fleet.yaml", ".environments/policy.yaml"] {
        let found = declared(&[(place, &policy("fleet", WINDOW)), ("other.yaml", "a: b\n")]);
        let (object, policy) = found.get().unwrap();
        assert_eq!((&*object.origin.file, policy.environments.len()), (place, 2));
        assert!(found.problems.is_empty());
    }
}

#[test]
fn without_a_policy_there_is_none() {
    let found = declared(&[("x.yaml", &kalypso("Template", "t", "{manifests: []}"))]);
    assert!(matches!(found.state, PolicyState::Absent));
    assert!(matches!(declared(&[]).state, PolicyState::Absent));
}

#[test]
fn of_two_policies_both_are_refused_and_named() {
    let found = declared(&[("a.yaml", &policy("one", "")), ("b.yaml", &policy("two", ""))]);
    assert!(matches!(found.state, PolicyState::Unreadable));
    let [problem] = found.problems.as_slice() else { panic!("{:?}", found.problems) };
    assert_eq!(problem.code, "SeveralPolicies");
    assert!(problem.message.contains("a.yaml:1") && problem.message.contains("b.yaml:1"), "{}", problem.message);
    assert_eq!(problem.related.len(), 1);
    // A broken one beside a good one: nobody knows which was meant.
    let found = declared(&[("a.yaml", &policy("one", "")), ("b.yaml", &policy("two", "  - nmae: x\n"))]);
    assert!(matches!(found.state, PolicyState::Unreadable));
    assert!(codes(&found.problems).contains(&"SeveralPolicies"));
}

#[test]
fn a_policy_that_cannot_be_read_is_not_taken_for_none() {
    let found = declared(&[("a.yaml", &policy("one", "  - {name: dev}\n"))]);
    assert!(matches!(found.state, PolicyState::Unreadable));
    assert_eq!(codes(&found.problems), ["DuplicateName"]);
    let found = declared(&[("a.yaml", "kind: [")]);
    assert!(matches!(found.state, PolicyState::Unreadable), "it may have been one");
}

#[test]
fn a_time_zone_that_does_not_exist_is_refused_at_its_line() {
    let found = declared(&[("a.yaml", &policy("one", "    windows:\n    - {timeZone: Europe/Berln}\n"))]);
    assert!(matches!(found.state, PolicyState::Unreadable));
    let problem = &found.problems[0];
    assert_eq!((problem.code, problem.origin.as_ref().unwrap().line), ("UnknownTimeZone", 9));
}

#[test]
fn a_policy_on_an_environments_branch_is_refused_with_the_way_out() {
    let root = tempfile::tempdir().unwrap();
    let repo = TestRepo::new(root.path().join("cp.git"));
    let dev = kalypso("Environment", "dev", "{controlPlane: {repo: r, branch: dev}}");
    repo.commit("main", &[(".environments/dev.yaml", &dev), ("policy.yaml", &policy("fleet", ""))]);
    repo.commit(
        "dev",
        &[("policy.yaml", &policy("mine", "")), ("t.yaml", &kalypso("Template", "t", "{manifests: []}"))],
    );
    let control_plane = ControlPlane::Git { path: repo.path.clone(), revision: None };
    let platform = load(&control_plane, "dev", &Nowhere).unwrap();
    let problem = platform.problems.iter().find(|problem| problem.code == "PolicyMisplaced").unwrap();
    assert!(problem.is_error() && problem.hint.as_deref().unwrap().contains("`main`"));
    assert!(!platform.objects.contains_key(&ObjectId {
        kind: Kind::PromotionPolicy,
        owner: None,
        name: "mine".into()
    }));
    assert!(platform.failing.is_empty(), "nothing else is held up by it");
    assert_eq!(environments(&repo.path).unwrap().policy.get().unwrap().0.meta.name, "fleet");
    assert!(GitRepository::open(&repo.path).is_ok());
}

#[test]
fn environments_that_are_not_declared_are_named() {
    let found = declared(&[("a.yaml", &policy("fleet", ""))]);
    let (object, policy) = found.get().unwrap();
    assert!(check_chain(object, policy, &["dev".to_owned(), "prod".to_owned()]).is_empty());
    let problems = check_chain(object, policy, &["dev".to_owned()]);
    assert_eq!(codes(&problems), ["UnknownEnvironment"]);
    assert!(problems[0].message.contains("`prod`") && problems[0].hint.as_deref() == Some("the environments are dev"));
}

/// An environment `prod` with a type of each way of delivery and a workload.
fn platform(more: &str) -> kedge_model::Platform {
    let delivery = "{type: reconciler, manifests: [\"apiVersion: kedge.dev/v1alpha1\\nkind: Delivery\\n\"]}";
    let texts = [
        kalypso("Template", "kedge", delivery),
        kalypso("Template", "flux", "{type: reconciler, manifests: [\"kind: Kustomization\"]}"),
        kalypso("ClusterType", "drone", "{reconciler: kedge, namespaceService: ns}"),
        kalypso("ClusterType", "cloud", "{reconciler: flux, namespaceService: ns}"),
        kalypso(
            "Workload",
            "hello",
            "{deploymentTargets: [{name: edge, environment: prod}, {name: test, environment: dev}]}",
        ),
        more.to_owned(),
    ];
    let root = folder(&[("prod/all.yaml", &texts.join("---\n"))]);
    load(&ControlPlane::Folder(root.path().join("prod")), "prod", &Nowhere).unwrap()
}

#[test]
fn rings_that_a_reconciler_cannot_follow_are_a_warning() {
    let rings = "    rings: [{name: canary, share: 10%}, {name: rest}]\n    counts: {clusterTypes: [drone, dron], workloads: [hello]}\n";
    let found = declared(&[("a.yaml", &policy("fleet", rings))]);
    let (object, policy) = found.get().unwrap();
    let problems = check_environment(object, &policy.environments[1], &platform(""));
    assert_eq!(codes(&problems), ["UnknownName", "RingsDontApply"]);
    assert_eq!(
        problems[1].message,
        "rings and maxUnavailable don't apply to cluster type cloud: its reconciler reads the branch's head"
    );
    assert!(!problems[1].is_error());
    assert!(check_environment(object, &policy.environments[0], &platform("")).is_empty(), "dev has no rings");
}

#[test]
fn pins_that_name_what_is_not_there_are_refused() {
    let found = declared(&[("a.yaml", &policy("fleet", "    rings: [{name: canary, share: 10%}, {name: rest}]\n"))]);
    let prod = &found.get().unwrap().1.environments[1];
    let now: jiff::Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
    let check = |spec: &str| check_pins(&platform(&pin(spec)), Some(prod), now);
    assert!(
        check("workload: hello, target: edge, rings: [canary], clusterTypes: [drone], until: 2026-11-17").is_empty()
    );
    for (spec, said) in [
        ("workload: hallo", "the workload `hallo`, which isn't there"),
        ("workload: hello, target: test", "the target `test`, which the workload hello doesn't have in prod"),
        ("workload: hello, rings: [all]", "the ring `all`, which prod doesn't have"),
        ("workload: hello, clusterTypes: [plane]", "the cluster type `plane`"),
    ] {
        let problems = check(spec);
        assert_eq!(codes(&problems), ["UnknownName"], "{spec}");
        assert!(problems[0].is_error() && problems[0].message.contains(said), "{problems:?}");
    }
    let over = check("workload: hello, until: 2026-11-16");
    assert_eq!((codes(&over), over[0].is_error()), (vec!["PinExpired"], false));
    let alone = check_pins(&platform(&pin("workload: hello, rings: [all]")), None, now);
    assert!(alone.is_empty(), "without a policy there is the ring `all`");
}
