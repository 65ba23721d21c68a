//! What an output folder keeps and loses.

use std::collections::BTreeMap;

use kedge_model::{Failing, Platform, Problem};
use kedge_scheduler::{Existing, Schedule, plan_output, schedule};

use crate::written::{REGISTRATION, WORKLOAD, platform_with, read};

fn existing(schedule: &Schedule, more: &[&str]) -> BTreeMap<String, Existing> {
    let ours = schedule.files().map(|(path, text)| {
        let file = if path.ends_with("README.md") { Existing::Readme(text.to_string()) } else { Existing::Other };
        (path, file)
    });
    ours.chain(more.iter().map(|path| ((*path).to_owned(), Existing::Other))).collect()
}

#[test]
fn what_is_gone_is_deleted_and_what_is_not_ours_stays() {
    let before = schedule(&platform_with(&[]));
    let mut platform = platform_with(&[]);
    let large = platform.objects.keys().find(|id| id.name == "large").unwrap().clone();
    platform.objects.remove(&large);
    let there = existing(
        &before,
        &["docs/README.md", "large/hello-test/notes.txt", "drone/hello-old/reconciler.yaml", "x/y/reconciler.yaml"],
    );
    let plan = plan_output(&there, &schedule(&platform), &|_| None);
    let deleted: Vec<&str> = plan.delete.iter().map(String::as_str).collect();
    assert_eq!(
        deleted,
        [
            "drone/hello-old/reconciler.yaml",
            "large/README.md",
            "large/hello-test/namespace.yaml",
            "large/hello-test/platform-config.yaml",
            "large/hello-test/reconciler.yaml"
        ]
    );
}

#[test]
fn a_failing_platform_input_deletes_nothing() {
    let mut platform = platform_with(&[]);
    platform.objects.retain(|id, _| id.name != "large");
    platform
        .failing
        .push(Failing { registration: None, problem: Problem::error("NotYaml", "types.yaml can't be read") });
    let there = existing(&schedule(&platform_with(&[])), &[]);
    let plan = plan_output(&there, &schedule(&platform), &|_| None);
    assert!(plan.delete.is_empty());
    assert!(plan.kept.iter().any(|kept| kept.folder == "large/hello-test"));
}

#[test]
fn a_failing_application_protects_its_own_assignments_only() {
    let mut platform = platform_with(&[]);
    platform.failing.push(Failing {
        registration: Some("greeting".into()),
        problem: Problem::error("RepositoryFailed", "no route"),
    });
    let there =
        existing(&schedule(&platform), &["drone/other-test/reconciler.yaml", "drone/hello-old/reconciler.yaml"]);
    let plan = plan_output(&there, &schedule(&platform), &|_| None);
    let deleted: Vec<&str> = plan.delete.iter().map(String::as_str).collect();
    assert_eq!(deleted, ["drone/hello-old/reconciler.yaml"]);
    assert_eq!(plan.kept[0].folder, "drone/other-test");
}

#[test]
fn while_an_application_fails_a_folder_that_may_be_its_own_stays() {
    let mut platform = platform_with(&[]);
    platform
        .failing
        .push(Failing { registration: Some("other".into()), problem: Problem::error("RepositoryFailed", "no route") });
    let there =
        existing(&schedule(&platform), &["drone/hello-more-t/namespace.yaml", "drone/hello-gone-t/namespace.yaml"]);
    let read = |path: &str| {
        let workload = if path.contains("more") { "hello-more" } else { "hello" };
        path.ends_with("namespace.yaml").then(|| format!("workload: {workload}\n"))
    };
    let plan = plan_output(&there, &schedule(&platform), &read);
    let deleted: Vec<&str> = plan.delete.iter().map(String::as_str).collect();
    assert_eq!(deleted, ["drone/hello-gone-t/namespace.yaml"], "hello-more may be a workload of the failing one");
}

#[test]
fn a_name_that_is_claimed_twice_deletes_nothing() {
    let before = schedule(&platform_with(&[]));
    let mut platform = platform_with(&[&REGISTRATION.replace("greeting", "other")]);
    read(&mut platform, "theirs.yaml", WORKLOAD, Some("other"));
    let plan = plan_output(&existing(&before, &[]), &schedule(&platform), &|_| None);
    assert!(plan.delete.is_empty(), "{:?}", plan.delete);
}

#[test]
fn another_branch_or_another_name_deletes_nothing() {
    let there = existing(&schedule(&platform_with(&[])), &[]);
    let mut main = platform_with(&[]);
    main.objects.retain(|id, _| id.kind != kedge_model::Kind::ClusterType);
    let misnamed = Platform { environment: "dve".to_owned(), ..platform_with(&[]) };
    for (platform, code) in [(main, "NoClusterType"), (misnamed, "NoTarget")] {
        let schedule = schedule(&platform);
        assert!(plan_output(&there, &schedule, &|_| None).delete.is_empty(), "{code}");
        assert!(schedule.problems.iter().any(|problem| problem.code == code), "{code}");
    }
}

#[test]
fn a_quarantined_assignment_keeps_its_published_files() {
    let before = schedule(&platform_with(&[]));
    let mut platform = platform_with(&[]);
    platform.objects.retain(|id, _| id.name != "cfg");
    let plan = plan_output(&existing(&before, &[]), &schedule(&platform), &|_| None);
    assert!(plan.delete.is_empty());
    assert!(!plan.write.contains_key("drone/hello-test/reconciler.yaml"));
}
