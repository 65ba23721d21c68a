//! Environments of real repositories, whole and broken.

mod emptied;
#[cfg(feature = "figures")]
mod size;

use kedge_model::AssignmentId;
use kedge_scheduler::Scheduler;

use super::testing::{Scene, base, config, environment, registration, workload};
use super::*;

const TERM: Term = Term(0);

async fn reader(scene: &Scene, mirrors: &Mirrors) -> EnvironmentReader {
    let reader = scene.reader(mirrors);
    let declared = reader.environments(TERM).await.unwrap();
    reader.environment(declared.environments["dev"].clone()).await.unwrap()
}

fn id(kind: Kind, name: &str) -> ObjectId {
    ObjectId { kind, owner: None, name: name.to_owned() }
}

fn hello() -> AssignmentId {
    AssignmentId { cluster_type: "drone".into(), target: "hello-dev".into() }
}

async fn fetch(scene: &Scene, mirrors: &Mirrors) {
    mirrors.fetch_now(&scene.control_plane.path()).await.unwrap();
    mirrors.fetch_now(&scene.app.path()).await.unwrap();
}

#[tokio::test]
async fn an_environment_is_read_and_a_changed_value_is_one_change() {
    let scene = Scene::new().await;
    let mirrors = scene.mirrors();
    let mut reader = reader(&scene, &mirrors).await;
    let first = reader.read(TERM, None).await.unwrap();
    assert_eq!(first.platform.failing, [], "{:?}", first.platform.problems);
    assert_eq!(first.gitops.as_ref().unwrap().branch, "dev");
    assert_eq!(first.inputs.len(), 3, "dev, main, the application");
    assert_eq!(first.cause.unwrap().subject, "change");
    let mut scheduler = Scheduler::new(first.platform);
    let problems: Vec<_> = scheduler.schedule().all_problems().collect();
    assert!(scheduler.schedule().assignments[&hello()].files().is_some(), "{problems:?}");

    let again = reader.read(TERM, Some(scheduler.platform())).await.unwrap();
    assert!(again.changes.is_empty(), "{:?}", again.changes);
    assert_eq!(again.cause, None);

    let commit = scene.dev(&[("configs/region.yaml", &config("region", "REGION", "east"))]);
    mirrors.fetch_now(&scene.control_plane.path()).await.unwrap();
    let update = reader.read(TERM, Some(scheduler.platform())).await.unwrap();
    assert!(
        matches!(&update.changes[..], [Change::Upsert(object)] if object.meta.name == "region"),
        "{:?}",
        update.changes
    );
    assert_eq!(update.cause.unwrap().commit, commit);
    let delta = scheduler.update(update.changes);
    assert_eq!(delta.changed.len(), 1);
}

#[tokio::test]
async fn what_breaks_stays_as_it_was_also_for_another_leader() {
    let scene = Scene::new().await;
    let mirrors = scene.mirrors();
    let mut reader = reader(&scene, &mirrors).await;
    let good = reader.read(TERM, None).await.unwrap().platform;
    let whole = Scheduler::new(good.clone());

    let duplicate = config("region", "REGION", "twice");
    let elsewhere = base("main", &scene.control_plane.path(), "main", Some(&"1".repeat(40)));
    let breakages: [&[(&str, &str)]; 6] = [
        &[("configs/region.yaml", "kind: [")],
        &[("configs/region.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: region}\ndata: 7\n")],
        &[("configs/again.yaml", &duplicate)],
        &[("base-repo.yaml", "kind: BaseRepo\n")],
        &[("base-repo.yaml", &elsewhere)],
        &[("policies/all.yaml", "\t- x"), ("cluster-types/drone.yaml", "kind: ClusterType")],
    ];
    for files in breakages {
        scene.dev(files);
        mirrors.fetch_now(&scene.control_plane.path()).await.unwrap();
        let update = reader.read(TERM, Some(whole.platform())).await.unwrap();
        assert_eq!(update.platform.broken, [], "{files:?}");
        assert!(!update.platform.failing.is_empty(), "{files:?}");
        assert!(update.platform.objects.values().any(|object| object.stale_since.is_some()), "{files:?}");
        let scheduled = Scheduler::new(update.platform);
        let files_of = |scheduler: &Scheduler| scheduler.schedule().files().collect::<Vec<_>>();
        assert_eq!(files_of(&scheduled), files_of(&whole), "{files:?}");

        // After a restart, or on another hub with mirrors of its own.
        let mirrors = Mirrors::new(
            &crate::git::testing::settings(&scene.control_plane.path()),
            scene.path().join(format!("mirrors-{}", files[0].1.len())),
            scene.store.clone(),
        )
        .unwrap();
        let mut other = self::reader(&scene, &mirrors).await;
        let update = other.read(TERM, None).await.unwrap();
        assert_eq!(files_of(&Scheduler::new(update.platform)), files_of(&whole), "{files:?}");
    }

    scene.dev(&[]);
    mirrors.fetch_now(&scene.control_plane.path()).await.unwrap();
    let mended = reader.read(TERM, None).await.unwrap().platform;
    assert!(mended.objects.values().all(|object| object.stale_since.is_none()));
    assert_eq!(mended.failing, []);
}

#[tokio::test]
async fn a_branch_that_was_emptied_or_deleted_removes_nothing() {
    let scene = Scene::new().await;
    let mirrors = scene.mirrors();
    let mut reader = reader(&scene, &mirrors).await;
    let good = reader.read(TERM, None).await.unwrap().platform;
    scene.control_plane.commit("dev", &[("notes.txt", "moved away")]);
    mirrors.fetch_now(&scene.control_plane.path()).await.unwrap();
    let update = reader.read(TERM, None).await.unwrap();
    assert_eq!(update.platform.objects.len(), good.objects.len());
    assert!(update.platform.failing.iter().any(|failing| failing.registration.is_none()));

    scene.control_plane.delete("dev");
    scene.app.commit("main", &[]);
    fetch(&scene, &mirrors).await;
    let update = reader.read(TERM, None).await.unwrap();
    assert_eq!(update.platform.objects.len(), good.objects.len());
    let region = &update.platform.objects[&id(Kind::ConfigMap, "region")];
    assert!(region.stale_since.is_some());
    let problems: Vec<&str> = update.platform.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert!(problems.iter().any(|text| text.contains("branch main was emptied")), "{problems:?}");
}

#[tokio::test]
async fn an_application_goes_on_while_its_registration_is_broken_and_fails_alone() {
    let scene = Scene::new().await;
    let mirrors = scene.mirrors();
    let mut reader = reader(&scene, &mirrors).await;
    reader.read(TERM, None).await.unwrap();
    scene.main(&[(
        "registrations/hello.yaml",
        "apiVersion: x\nkind: WorkloadRegistration\nmetadata: {name: hello}\nspec: 3\n",
    )]);
    let app = scene.app.commit("main", &[("workload/workload.yaml", &workload("hello", &["dev", "qa"]))]);
    fetch(&scene, &mirrors).await;
    let update = reader.read(TERM, None).await.unwrap();
    assert!(update.platform.objects[&id(Kind::WorkloadRegistration, "hello")].stale_since.is_some());
    let workload = ObjectId { kind: Kind::Workload, owner: Some("hello".to_owned()), name: "hello".to_owned() };
    let revision = update.platform.objects[&workload].origin.source.revision.clone().unwrap();
    assert!(revision.ends_with(&app), "{revision}");
    assert_eq!(update.platform.objects[&workload].stale_since, None);

    // A second application that can't be fetched is its own affair.
    scene.main(&[("registrations/other.yaml", &registration("other", &format!("{}-nowhere", scene.app.path())))]);
    fetch(&scene, &mirrors).await;
    let update = reader.read(TERM, None).await.unwrap();
    assert!(update.platform.failing.iter().all(|failing| failing.registration.as_deref() == Some("other")));
    assert!(Scheduler::new(update.platform).schedule().assignments[&hello()].files().is_some());
}

#[tokio::test]
async fn environments_come_and_go_but_not_by_a_broken_file() {
    let scene = Scene::new().await;
    let mirrors = scene.mirrors();
    let reader = scene.reader(&mirrors);
    let qa = environment("qa", &scene.control_plane.path(), "qa");
    let names = async |files: &[(&str, &str)]| {
        scene.main(files);
        let _ = mirrors.head(&scene.control_plane.path(), "main", Trust::Platform).await;
        mirrors.fetch_now(&scene.control_plane.path()).await.unwrap();
        let declared = reader.environments(TERM).await.unwrap();
        let names: Vec<String> = declared.environments.keys().cloned().collect();
        (names, declared.removed)
    };
    assert_eq!(names(&[(".environments/qa.yaml", &qa)]).await.0, ["dev", "qa"]);
    assert_eq!(names(&[(".environments/qa.yaml", "kind: Environment")]).await.0, ["dev", "qa"]);
    let (left, removed) = names(&[]).await;
    assert_eq!((left, removed), (vec!["dev".to_owned()], vec!["qa".to_owned()]));
    assert_eq!(names(&[(".environments/dev.yaml", "")]).await.0, ["dev"], "emptied");
}

#[tokio::test]
async fn published_names_are_remembered_with_their_tenants() {
    let scene = Scene::new().await;
    let mirrors = scene.mirrors();
    let mut first = reader(&scene, &mirrors).await;
    let tenant =
        |name: &str| Tenant { registration: name.to_owned(), workload: "w".to_owned(), target: "t".to_owned() };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    let tenants = BTreeMap::from([("a".to_owned(), tenant("one")), ("b".to_owned(), tenant("two"))]);
    first.set_published(TERM, &names(&["a", "b", "foreign"]), &tenants).await.unwrap();
    // `a` is still on the branch, though nobody claims it now; `b` is gone.
    first.set_published(TERM, &names(&["a"]), &BTreeMap::new()).await.unwrap();
    let mut second = reader(&scene, &mirrors).await;
    let update = second.read(TERM, None).await.unwrap();
    assert_eq!(update.platform.published, BTreeMap::from([("a".to_owned(), tenant("one"))]));
}
