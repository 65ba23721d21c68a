//! Pull request mode against a real Gitea: the hub's publisher with its mirrors, people in Gitea's pages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kedge_hub::config::{Config, Credential, Environment, Forge, ForgeKind, PublishMode};
use kedge_hub::git::Mirrors;
use kedge_hub::publish::{
    Cause, GitOpsTarget, Next, Outcome, PublishError, PublishJob, Published, Publisher, PullState,
};
use kedge_hub::store::{Store, Term};
use kedge_model::{AssignmentId, Labels, Origin, Source};
use kedge_scheduler::{Assignment, ConfigFile, Configuration, Files, Outcome as Rendered, Schedule, Target};
use kedge_tests::lab::await_some;
use kedge_tests::lab::git::Checkout;
use kedge_tests::lab::gitea::Gitea;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const SOON: Duration = Duration::from_secs(30);

/// A publisher whose GitOps repository is on the forge. Gitea's own calls block, so they are made outside of `runtime`.
struct Scene {
    gitea: Gitea,
    folder: TempDir,
    runtime: Runtime,
    publisher: Publisher,
    mirrors: Mirrors,
    target: GitOpsTarget,
}

impl Scene {
    fn new(mode: PublishMode) -> Option<Scene> {
        let gitea = Gitea::start()?;
        gitea.create_repository("gitops");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), gitea.token()).unwrap();
        let mut config = Config::default_at(folder.path());
        config.git.control_plane = Some(gitea.clone_url("gitops"));
        config.git.credentials = vec![Credential {
            prefix: gitea.url(),
            platform: true,
            workspaces: Vec::new(),
            username: None,
            secret_file: Some(folder.path().join("token")),
            ssh_key_file: None,
        }];
        config.git.forges = vec![Forge { prefix: gitea.url(), kind: ForgeKind::Gitea, api: None }];
        config.environments = BTreeMap::from([("dev".to_owned(), Environment { publish: mode })]);
        let runtime = Runtime::new().unwrap();
        let url = format!("sqlite:{}", folder.path().join("hub.db").display());
        let (publisher, mirrors) = runtime.block_on(async {
            let store = Store::open(&url).await.unwrap();
            let mirrors = Mirrors::new(&config.git, folder.path().join("mirrors"), store.clone()).unwrap();
            (Publisher::new(mirrors.clone(), store, &config), mirrors)
        });
        let repo = gitea.clone_url("gitops");
        let target = GitOpsTarget { repo, branch: "dev".to_owned(), path: ".".to_owned() };
        Some(Scene { gitea, folder, runtime, publisher, mirrors, target })
    }

    fn try_publish(&self, schedule: &Schedule) -> Result<Published, PublishError> {
        let causes = [Cause {
            repo: "https://git.example/platform".to_owned(),
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            subject: "Raise the value".to_owned(),
            author: "Ann".to_owned(),
        }];
        let job = PublishJob { environment: "dev", target: &self.target, schedule, delta: None, causes: &causes };
        self.runtime.block_on(self.publisher.publish(Term(0), job))
    }

    /// As the hub does: Gitea looks at a first push after it has answered, and knows no pull requests before that.
    fn publish(&self, words: &str) -> Published {
        await_some("the schedule is published", SOON, || match self.try_publish(&schedule(words)) {
            Err(error) if matches!(error.next(), Next::Retry(_)) => None,
            published => Some(published.unwrap()),
        })
    }

    /// The poll comes round, or the webhook.
    fn notice(&self) {
        self.runtime.block_on(self.mirrors.fetch_now(&self.target.repo)).unwrap();
    }

    fn merge(&self, number: u64, style: &str) {
        self.gitea.merge("gitops", number, style);
        self.notice();
    }
}

fn number(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::PullRequest { number, state: PullState::Open, .. } => u64::try_from(*number).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// `drone/hello-test=value` is an assignment with that value.
fn schedule(words: &str) -> Schedule {
    let promoted_commit = Some("c0ffee".to_owned());
    let mut schedule = Schedule { environment: "dev".to_owned(), promoted_commit, ..Schedule::default() };
    let source = Arc::new(Source { repo: "r".to_owned(), revision: None });
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        let (cluster_type, target) = name.split_once('/').unwrap();
        let (workload, short_name) = target.split_once('-').unwrap();
        schedule.cluster_types.insert(cluster_type.into());
        let id = AssignmentId { cluster_type: cluster_type.into(), target: target.into() };
        let target = Target {
            name: target.into(),
            short_name: short_name.to_owned(),
            workload: workload.into(),
            workspace: "team".to_owned(),
            registration: None,
            environment: "dev".to_owned(),
            labels: Labels::new(),
            platform_labels: BTreeSet::new(),
            manifests: BTreeMap::new(),
            schemas: Vec::new(),
            origin: Origin { source: Arc::clone(&source), file: "f.yaml".into(), line: 1, column: 1 },
        };
        let files = Files {
            reconciler: format!("name: {}\n", target.name).into(),
            namespace: format!("namespace: {}\n", target.name).into(),
            config: Some((ConfigFile::Yaml, format!("value: {value}\n").into())),
        };
        let assignment = Assignment {
            id: id.clone(),
            target: Arc::new(target),
            policies: Vec::new(),
            configuration: Arc::new(Configuration::default()),
            outcome: Rendered::Rendered(files),
            warnings: Vec::new(),
        };
        schedule.assignments.insert(id, Arc::new(assignment));
    }
    schedule
}

#[test]
fn one_pull_request_is_opened_updated_squashed_declined_and_opened_again() {
    let Some(scene) = Scene::new(PublishMode::PullRequest) else { return };
    let gitea = &scene.gitea;
    let published = scene.publish("drone/a-t=1 drone/b-t=1 drone/c-t=1");
    assert_eq!(number(&published.outcome), 1);
    let seen = gitea.pull_request("gitops", 1);
    assert_eq!(
        (seen.head.as_str(), seen.base.as_str(), seen.labels.clone()),
        ("kedge/dev", "dev", vec!["promoted".to_owned()])
    );

    assert_eq!(number(&scene.publish("drone/a-t=2 drone/b-t=1 drone/c-t=1").outcome), 1);
    assert_eq!(gitea.pull_requests("gitops", "open").len(), 1);
    assert_ne!(gitea.pull_request("gitops", 1).commit, seen.commit);
    assert!(scene.runtime.block_on(async { scene.mirrors.status() }).iter().all(|status| !status.is_failing()));

    scene.merge(1, "squash");
    let published = scene.publish("drone/a-t=2 drone/b-t=1 drone/c-t=1");
    assert_eq!((published.outcome, published.foreign.len()), (Outcome::Unchanged, 0));
    assert_eq!(gitea.branches("gitops"), ["dev"]);
    let people = Checkout::clone(&gitea.push_url("gitops"));
    assert_eq!(people.read_remote("dev", "drone/a-t/platform-config.yaml").as_deref(), Some("value: 2\n"));
    assert_eq!(published.head.unwrap().commit, people.head("origin/dev"));

    // Most of it goes: the pull request says so, and its merge is a person's word.
    assert_eq!(number(&scene.publish("drone/a-t=3").outcome), 2);
    let body = gitea.get(&format!("/repos/{}/gitops/pulls/2", gitea.owner()))["body"].as_str().unwrap().to_owned();
    assert!(body.contains("loses 2 of its 3 assignments"), "{body}");
    assert!(gitea.pull_request("gitops", 2).labels.is_empty(), "main did not move");
    gitea.close("gitops", 2);
    for _ in 0..2 {
        assert!(matches!(scene.publish("drone/a-t=3").outcome, Outcome::Declined { number: 2, .. }));
    }
    gitea.reopen("gitops", 2);
    assert_eq!(number(&scene.publish("drone/a-t=3").outcome), 2);
    scene.merge(2, "rebase");
    assert_eq!(scene.publish("drone/a-t=3").outcome, Outcome::Unchanged);
    assert_eq!(gitea.branches("gitops"), ["dev"]);
    assert_eq!(gitea.pull_requests("gitops", "open").len(), 0);
}

#[test]
fn commits_of_people_on_our_branch_stay_and_what_they_merge_is_flagged() {
    let Some(scene) = Scene::new(PublishMode::PullRequest) else { return };
    let gitea = &scene.gitea;
    scene.publish("drone/a-t=1");
    let people = Checkout::clone(&gitea.push_url("gitops"));
    people.switch("kedge/dev");
    let theirs = people.change("drone/a-t/platform-config.yaml", "value: better\n");
    for words in ["drone/a-t=1", "drone/a-t=2"] {
        match scene.publish(words).outcome {
            Outcome::ForeignCommits { branch, commit, .. } => {
                assert_eq!((branch.as_str(), commit.as_str()), ("kedge/dev", theirs.as_str()));
            }
            other => panic!("{other:?}"),
        }
    }
    scene.gitea.merge("gitops", 1, "merge");
    // Gitea answers before everybody sees the merged branch.
    let published = await_some("the merge is noticed", SOON, || {
        scene.notice();
        Some(scene.publish("drone/a-t=1")).filter(|published| published.outcome == Outcome::Unchanged)
    });
    assert_eq!(published.foreign[0].path, "drone/a-t/platform-config.yaml");
    // Their branch is theirs to delete; then we ask again.
    people.delete_remote_branch("kedge/dev");
    assert_eq!(number(&scene.publish("drone/a-t=2").outcome), 2);
}

#[test]
fn a_protected_branch_refuses_a_direct_publish_and_says_the_way_out() {
    let Some(scene) = Scene::new(PublishMode::Direct) else { return };
    assert!(matches!(scene.publish("drone/a-t=1").outcome, Outcome::Committed(_)));
    scene.gitea.protect_branch("gitops", "dev");
    let error = scene.try_publish(&schedule("drone/a-t=2")).unwrap_err();
    assert_eq!(error.next(), Next::Wait, "{error:?}");
    assert!(error.hint().unwrap().contains("pull-request"));
}

#[test]
fn a_token_that_is_not_taken_needs_a_person() {
    let Some(scene) = Scene::new(PublishMode::PullRequest) else { return };
    scene.publish("drone/a-t=1");
    std::fs::write(scene.folder.path().join("token"), "wrong").unwrap();
    let error = scene.try_publish(&schedule("drone/a-t=2")).unwrap_err();
    assert_eq!(error.next(), Next::Stalled, "{error:?}");
    assert!(!format!("{error:?}").contains("wrong"));
}
