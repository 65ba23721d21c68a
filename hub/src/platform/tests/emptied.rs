//! Inputs without an object: one that never held any is empty, one that held some was emptied.

use super::*;
use crate::platform::testing::{CLUSTER_TYPE, POLICY, TEMPLATES, gitops};

/// Everything on the environment's branch; main, the base and the application begin with what is given.
fn begin(scene: &Scene, base_files: &[(&str, &str)], app: &[(&str, &str)]) {
    let main = scene.control_plane.path();
    let declared = environment("dev", &main, "dev");
    scene.control_plane.commit("main", &[(".environments/dev.yaml", &declared)]);
    scene.control_plane.commit("base", base_files);
    scene.app.commit("main", app);
    own(scene, Some(&config("region", "REGION", "west")));
}

/// The environment's branch, with a ConfigMap or without.
fn own(scene: &Scene, region: Option<&str>) {
    let base = base("main", &scene.control_plane.path(), "base", None);
    let gitops = gitops("gitops", &scene.gitops.path(), "dev");
    let registration = registration("hello", &scene.app.path());
    let mut files = vec![
        ("base-repo.yaml", base.as_str()),
        ("gitops-repo.yaml", &gitops),
        ("templates.yaml", TEMPLATES),
        ("cluster-types/drone.yaml", CLUSTER_TYPE),
        ("policies/all.yaml", POLICY),
        ("registrations/hello.yaml", &registration),
    ];
    files.extend(region.map(|text| ("configs/region.yaml", text)));
    scene.control_plane.commit("dev", &files);
}

fn codes(platform: &Platform) -> Vec<(&str, bool)> {
    platform.problems.iter().map(|problem| (problem.code, problem.is_error())).collect()
}

#[tokio::test]
async fn a_base_that_never_held_an_object_is_a_warning_and_lets_go_of_what_is_deleted() {
    let app = workload("hello", &["dev"]);
    for files in [&[("README.md", "soon")][..], &[("a.yaml", "# soon\n"), (".gitkeep", "")], &[]] {
        let scene = Scene::new().await;
        begin(&scene, files, &[("workload/workload.yaml", &app)]);
        let mirrors = scene.mirrors();
        let mut reader = reader(&scene, &mirrors).await;
        let update = reader.read(TERM, None).await.unwrap();
        assert_eq!(codes(&update.platform), [("NothingFound", false)], "{files:?}: {:?}", update.platform.problems);
        assert_eq!((update.platform.failing.len(), update.platform.broken.len()), (0, 0), "{files:?}");
        assert!(Scheduler::new(update.platform).schedule().assignments[&hello()].files().is_some());

        own(&scene, None);
        fetch(&scene, &mirrors).await;
        let update = reader.read(TERM, None).await.unwrap();
        assert!(!update.platform.objects.contains_key(&id(Kind::ConfigMap, "region")), "{files:?}");
    }
}

#[tokio::test]
async fn a_base_that_was_emptied_stays_as_it_was_also_for_another_leader() {
    let scene = Scene::new().await;
    let (app, shared) = (workload("hello", &["dev"]), config("shared", "SHARED", "1"));
    begin(&scene, &[("shared.yaml", &shared)], &[("workload/workload.yaml", &app)]);
    let mirrors = scene.mirrors();
    let mut first = reader(&scene, &mirrors).await;
    assert_eq!(codes(&first.read(TERM, None).await.unwrap().platform), []);

    scene.control_plane.commit("base", &[("README.md", "moved away")]);
    fetch(&scene, &mirrors).await;
    let mirrors_of_another = Mirrors::new(
        &crate::git::testing::settings(&scene.control_plane.path()),
        scene.path().join("others"),
        scene.store.clone(),
    )
    .unwrap();
    let mut other = reader(&scene, &mirrors_of_another).await;
    for reader in [&mut first, &mut other] {
        let platform = reader.read(TERM, None).await.unwrap().platform;
        assert_eq!(codes(&platform), [("Emptied", true)], "{:?}", platform.problems);
        assert!(platform.objects[&id(Kind::ConfigMap, "shared")].stale_since.is_some());
        assert!(platform.failing.iter().any(|failing| failing.registration.is_none()));
        assert!(platform.broken.is_empty(), "what has a last good version is in force");
        assert!(Scheduler::new(platform).schedule().assignments[&hello()].files().is_some());
    }

    scene.control_plane.commit("base", &[("shared.yaml", &shared)]);
    fetch(&scene, &mirrors).await;
    let platform = first.read(TERM, None).await.unwrap().platform;
    assert_eq!((codes(&platform), platform.failing.len()), (vec![], 0));
}

#[tokio::test]
async fn an_application_is_failing_only_when_it_had_a_workload() {
    let scene = Scene::new().await;
    begin(&scene, &[("c.yaml", &config("c", "C", "1"))], &[("workload/README.md", "soon")]);
    let mirrors = scene.mirrors();
    let mut reader = reader(&scene, &mirrors).await;
    let platform = reader.read(TERM, None).await.unwrap().platform;
    assert_eq!((codes(&platform), platform.failing.len()), (vec![("NothingFound", false)], 0));

    scene.app.commit("main", &[("workload/workload.yaml", &workload("hello", &["dev"]))]);
    fetch(&scene, &mirrors).await;
    assert_eq!(codes(&reader.read(TERM, None).await.unwrap().platform), []);
    scene.app.commit("main", &[("workload/README.md", "moved")]);
    fetch(&scene, &mirrors).await;
    let platform = reader.read(TERM, None).await.unwrap().platform;
    assert_eq!(codes(&platform), [("Emptied", true)]);
    assert_eq!(platform.failing[0].registration.as_deref(), Some("hello"));
    assert!(Scheduler::new(platform).schedule().assignments[&hello()].files().is_some());
}

#[tokio::test]
async fn an_environment_that_only_begins_is_empty_and_not_unusable() {
    for files in [&[("README.md", "soon")][..], &[]] {
        let scene = Scene::new().await;
        scene.control_plane.commit("dev", files);
        let mirrors = scene.mirrors();
        let mut reader = reader(&scene, &mirrors).await;
        let platform = reader.read(TERM, None).await.unwrap().platform;
        assert_eq!(codes(&platform), [("NothingFound", false)], "{:?}", platform.problems);
        assert!(platform.failing.is_empty() && platform.objects.is_empty());
    }
}
