//! Plans over a control plane of real repositories.

use crate::git::Mirrors;
use crate::git::testing::git;
use crate::platform::testing::{Scene, config, workload};
use crate::store::Term;

use super::*;

const TERM: Term = Term(0);

struct Bench {
    scene: Scene,
    mirrors: Mirrors,
    previews: Previews,
}

impl Bench {
    async fn new() -> Bench {
        let scene = Scene::new().await;
        let mirrors = scene.mirrors();
        let reader = scene.reader(&mirrors);
        let declared = reader.environments(TERM).await.unwrap();
        let mut environment = reader.environment(declared.environments["dev"].clone()).await.unwrap();
        environment.read(TERM, None).await.unwrap();
        let previews = Previews::new(reader, scene.store.clone());
        Bench { scene, mirrors, previews }
    }

    /// A branch that begins at another one, with these files changed.
    fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) -> String {
        let work = self.scene.path().join("control-plane-work");
        git(&work, &["checkout", "--quiet", "--force", "-B", name, from]);
        for (path, text) in files {
            let path = work.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match text.is_empty() {
                true => std::fs::remove_file(path).unwrap(),
                false => std::fs::write(path, text).unwrap(),
            }
        }
        git(&work, &["add", "--all", "."]);
        git(&work, &["commit", "--quiet", "-m", &format!("Try {name}")]);
        git(&work, &["push", "--quiet", "--force", "origin", name]);
        git(&work, &["rev-parse", "HEAD"])
    }

    async fn plan(&self, revision: &str) -> Result<PlanDetail, PreviewError> {
        self.previews.plan(wish(revision), platform()).await
    }

    async fn paste(&self, files: &[(&str, Option<&str>)], part: Option<Part>) -> Result<PlanDetail, PreviewError> {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.map(str::to_owned))).collect();
        let wish = Wish { environment: "dev".to_owned(), part, files, ..Wish::default() };
        self.previews.plan(wish, platform()).await
    }

    async fn sql(&self, text: &'static str) {
        let mut tx = self.scene.store.write().await.unwrap();
        sqlx::query(text).execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
    }
}

fn wish(revision: &str) -> Wish {
    Wish { environment: "dev".to_owned(), revision: Some(revision.to_owned()), ..Wish::default() }
}

fn platform() -> Audience {
    Audience { token: "anna".to_owned(), with_secrets: true, visible: Visible::All }
}

fn changed(plan: &PlanDetail) -> Vec<(&str, &str)> {
    plan.assignments.iter().map(|one| (one.name.as_str(), one.change.as_str())).collect()
}

#[tokio::test]
async fn a_value_on_a_branch_reaches_its_assignment_and_clusters() {
    let bench = Bench::new().await;
    bench
        .sql(
            "INSERT INTO population (environment, cluster_type, ring, presence, count) VALUES \
             ('dev', 'drone', 'all', 'Reporting', 5), ('dev', 'drone', 'all', 'Unknown', 2), \
             ('dev', 'other', 'all', 'Reporting', 9)",
        )
        .await;
    let commit = bench.branch("east", "dev", &[("configs/region.yaml", &config("region", "REGION", "east"))]);
    for revision in ["east", commit.as_str(), &commit[..10]] {
        let plan = bench.plan(revision).await.unwrap();
        assert_eq!(changed(&plan), [("drone/hello-dev", "changed")], "{revision}: {plan:#?}");
        let value = &plan.assignments[0].values[0];
        assert_eq!(value.key, "REGION");
        assert_eq!((value.before.as_ref().unwrap(), value.after.as_ref().unwrap()), (&"west".into(), &"east".into()));
        assert_eq!(plan.assignments[0].files[0].name, "platform-config.yaml");
        assert_eq!((plan.clusters.online, plan.clusters.offline, plan.clusters.total), (5, 2, 7));
        assert_eq!(
            (plan.to.of.as_deref(), plan.to.environment.as_deref()),
            (Some("environment"), Some(commit.as_str()))
        );
        assert_eq!(plan.from.environment.as_deref(), Some(bench.scene.control_plane.head("dev").as_str()));
        assert_eq!(plan.summary, "1 of 1 assignment on 1 of 1 cluster type");
    }
    assert_eq!(bench.plan("dev").await.unwrap().assignments, [], "what is in force changes nothing");
}

#[tokio::test]
async fn a_branch_of_main_is_planned_as_its_promotion() {
    let bench = Bench::new().await;
    let commit = bench.branch("site", "main", &[("configs/site.yaml", &config("site", "SITE", "north"))]);
    let plan = bench.plan("site").await.unwrap();
    assert_eq!(changed(&plan), [("drone/hello-dev", "changed")], "{plan:#?}");
    assert_eq!((plan.to.of.as_deref(), plan.to.main.as_deref()), (Some("main"), Some(commit.as_str())));
    assert_eq!(plan.to.subject.as_deref(), Some("Try site"));
    let before = bench.plan("site~1").await.unwrap();
    assert_eq!(before.assignments, [], "{before:#?}");
}

#[tokio::test]
async fn pasted_files_lie_over_the_branch_that_has_them() {
    let bench = Bench::new().await;
    let east = config("region", "REGION", "east");
    let plan = bench.paste(&[("./configs/region.yaml", Some(&east))], None).await.unwrap();
    assert_eq!(changed(&plan), [("drone/hello-dev", "changed")], "{plan:#?}");
    assert_eq!((plan.pasted[0].of.as_str(), plan.pasted[0].change.as_str()), ("environment", "replaced"));

    let plan = bench.paste(&[("registrations/hello.yaml", None)], None).await.unwrap();
    assert_eq!((plan.pasted[0].of.as_str(), plan.pasted[0].change.as_str()), ("main", "removed"));
    assert_eq!(changed(&plan), [("drone/hello-dev", "removed")], "{plan:#?}");

    let broken = bench.paste(&[("configs/region.yaml", Some("kind: ["))], None).await.unwrap();
    assert_eq!(changed(&broken), [], "the last good value stays: {broken:#?}");
    assert!(broken.problems.iter().any(|problem| problem.new), "{broken:#?}");
}

#[tokio::test]
async fn a_removal_that_waits_is_told_before() {
    let bench = Bench::new().await;
    bench
        .sql(
            "INSERT INTO published_files (environment, path, blob_id) VALUES \
             ('dev', 'drone/hello-dev/reconciler.yaml', '0000000000000000000000000000000000000000')",
        )
        .await;
    let plan = bench.paste(&[("registrations/hello.yaml", None)], None).await.unwrap();
    let waits = plan.per_type[0].waits.as_ref().unwrap();
    assert_eq!((waits.removed.as_slice(), waits.confirmed), (["hello-dev".to_owned()].as_slice(), 1));
}

#[tokio::test]
async fn a_new_application_is_fetched_and_not_followed() {
    let bench = Bench::new().await;
    let other = crate::git::testing::Remote::new(bench.scene.path(), "other");
    other.commit("main", &[("workload/workload.yaml", &workload("other", &["dev"]))]);
    let registration = crate::platform::testing::registration("other", &other.path());
    let missing = crate::platform::testing::registration("gone", "/nowhere/gone.git");
    let files = [("registrations/other.yaml", registration.as_str()), ("registrations/gone.yaml", missing.as_str())];
    bench.branch("more", "main", &files);
    let plan = bench.plan("more").await.unwrap();
    assert_eq!(changed(&plan), [("drone/other-dev", "added")], "{plan:#?}");
    assert!(plan.problems.iter().any(|problem| problem.new && problem.finding.message.contains("gone")));
    assert!(bench.mirrors.status().iter().all(|repo| !repo.is_failing()), "{:#?}", bench.mirrors.status());
}

#[tokio::test]
async fn what_is_not_there_is_refused_and_fails_nothing() {
    let bench = Bench::new().await;
    let tick = bench.scene.store.newest_tick().await.unwrap();
    for revision in ["nowhere", "0123456789abcdef0123456789abcdef01234567", "dev:x", "@{-1}", "~1", "a b"] {
        let refused = bench.plan(revision).await;
        assert!(matches!(refused, Err(PreviewError::Revision { .. })), "{revision}: {refused:?}");
    }
    for path in ["", "../x", "."] {
        let refused = bench.paste(&[(path, Some("x"))], None).await;
        assert!(matches!(refused, Err(PreviewError::Path { .. })), "{path}: {refused:?}");
    }
    let large = "x".repeat(MAX_TEXT + 1);
    assert!(matches!(bench.paste(&[("a", Some(&large))], None).await, Err(PreviewError::TooMuch { .. })));
    let elsewhere = Wish { environment: "prod".to_owned(), ..wish("dev") };
    assert!(matches!(bench.previews.plan(elsewhere, platform()).await, Err(PreviewError::NoEnvironment(_))));
    assert!(bench.mirrors.status().iter().all(|repo| !repo.is_failing()));
    assert_eq!(bench.scene.store.newest_tick().await.unwrap(), tick, "nothing was written");
}

#[tokio::test]
async fn one_plan_of_a_token_at_a_time() {
    let bench = Bench::new().await;
    let turn = bench.previews.turn("anna").unwrap();
    assert!(matches!(bench.plan("dev").await, Err(PreviewError::Busy)));
    drop(turn);
    bench.plan("dev").await.unwrap();
}

#[tokio::test]
async fn others_see_their_own_part_without_secrets() {
    let bench = Bench::new().await;
    let secret = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db, labels: {platform-config: \"true\"}}\n\
                  data: {DB_PASSWORD: hunter2}\n";
    bench.branch("db", "dev", &[("configs/db.yaml", secret)]);
    let ask = async |visible: Visible| {
        let audience = Audience { token: "t".to_owned(), with_secrets: false, visible };
        bench.previews.plan(wish("db"), audience).await.unwrap()
    };
    let viewer = ask(Visible::All).await;
    assert!(viewer.assignments[0].values[0].redacted);
    assert!(!format!("{viewer:?}").contains("hunter2"));
    let own = ask(Visible::Workspaces(vec!["team".to_owned()])).await;
    assert_eq!((own.assignments.len(), own.from.environment), (1, None));
    let others = ask(Visible::Workspaces(vec!["others".to_owned()])).await;
    assert_eq!((others.assignments.len(), others.per_type.len()), (0, 0), "{others:#?}");
    assert!(bench.plan("db").await.unwrap().assignments[0].values[0].after == Some("hunter2".into()));
}
