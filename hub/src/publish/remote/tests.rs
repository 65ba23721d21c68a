//! Publishing through real mirrors to a real server over HTTP.

use std::sync::atomic::Ordering;

use super::*;
use crate::config::PublishMode;
use crate::git::testing::{Remote as Repository, Server, settings, store};
use crate::git::{self, Mirrors, Trust};
use crate::publish::error::Next;
use crate::publish::fixture::{config, schedule};
use crate::publish::{GitOpsTarget, Outcome, PublishError, PublishJob, Published, Publisher};
use crate::store::{Store, Term};

struct Scene {
    root: tempfile::TempDir,
    server: Server,
    gitops: Repository,
    store: Store,
    target: GitOpsTarget,
    mode: PublishMode,
}

impl Scene {
    async fn new(mode: PublishMode) -> Scene {
        let root = tempfile::tempdir().unwrap();
        let repositories = root.path().join("repositories");
        let gitops = Repository::new(&repositories, "gitops");
        let server = Server::start(&repositories);
        let store = store(root.path()).await;
        let target = GitOpsTarget { repo: server.url("gitops"), branch: "dev".to_owned(), path: ".".to_owned() };
        Scene { root, server, gitops, store, target, mode }
    }

    /// As after a start of the hub.
    fn publisher(&self) -> (Publisher, Mirrors) {
        let mut config = config(self.mode, Vec::new());
        config.git = settings(&self.server.url("gitops"));
        let mirrors = Mirrors::new(&config.git, self.root.path().join("mirrors"), self.store.clone()).unwrap();
        (Publisher::new(mirrors.clone(), self.store.clone(), &config), mirrors)
    }

    async fn publish(&self, publisher: &Publisher, words: &str) -> Result<Published, PublishError> {
        let wanted = schedule(words);
        let job = PublishJob { environment: "dev", target: &self.target, schedule: &wanted, delta: None, causes: &[] };
        publisher.publish(Term(0), job).await
    }

    fn show(&self, branch: &str, path: &str) -> String {
        git::testing::git(&self.gitops.bare, &["show", &format!("{branch}:{path}")])
    }
}

#[tokio::test]
async fn a_schedule_is_pushed_over_http_and_followed() {
    let scene = Scene::new(PublishMode::Direct).await;
    let (publisher, mirrors) = scene.publisher();
    let published = scene.publish(&publisher, "drone/a-t=1 drone/b-t=1").await.unwrap();
    assert_eq!(published.outcome, Outcome::Committed(scene.gitops.head("dev")));
    let head = published.head.unwrap();
    assert_eq!(mirrors.head(&scene.target.repo, "dev", Trust::Platform).await.unwrap().commit, head.commit);
    assert!(mirrors.status().iter().all(|status| !status.is_failing()), "a branch that we made isn't failing");

    // Somebody else's commit that the hub hasn't seen yet.
    let work = scene.root.path().join("work");
    let run = |arguments: &[&str]| git::testing::git(&work, arguments);
    std::fs::create_dir(&work).unwrap();
    run(&["clone", "--quiet", "--branch", "dev", &scene.gitops.path(), "."]);
    std::fs::write(work.join("notes.md"), "mine").unwrap();
    std::fs::write(work.join("drone/b-t/platform-config.yaml"), "by hand").unwrap();
    run(&["add", "--all"]);
    run(&["commit", "--quiet", "-m", "mine"]);
    run(&["push", "--quiet", "origin", "dev"]);
    let published = scene.publish(&publisher, "drone/a-t=2 drone/b-t=1").await.unwrap();
    assert_eq!(published.outcome, Outcome::Committed(scene.gitops.head("dev")));
    assert_eq!(published.foreign[0].path, "drone/b-t/platform-config.yaml");
    assert_eq!(
        (scene.show("dev", "notes.md"), scene.show("dev", "drone/a-t/platform-config.yaml")),
        ("mine".to_owned(), "value: 2".to_owned())
    );

    // A start later nothing is different, also with the server away.
    drop((publisher, mirrors));
    scene.server.down.store(true, Ordering::SeqCst);
    let (publisher, _mirrors) = scene.publisher();
    let published = scene.publish(&publisher, "drone/a-t=2 drone/b-t=1").await.unwrap();
    assert_eq!((published.outcome, published.head.unwrap().commit), (Outcome::Unchanged, scene.gitops.head("dev")));
    let error = scene.publish(&publisher, "drone/a-t=3 drone/b-t=1").await.unwrap_err();
    assert_eq!(error.next(), Next::Retry(None), "{error:?}");
    scene.server.down.store(false, Ordering::SeqCst);
    scene.publish(&publisher, "drone/a-t=3 drone/b-t=1").await.unwrap();
    assert_eq!(scene.show("dev", "drone/a-t/platform-config.yaml"), "value: 3");
}

#[tokio::test]
async fn a_protected_branch_waits_and_says_the_way_out() {
    let scene = Scene::new(PublishMode::Direct).await;
    let hook = scene.gitops.bare.join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho only pull requests here >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (publisher, _mirrors) = scene.publisher();
    let error = scene.publish(&publisher, "drone/a-t=1").await.unwrap_err();
    assert_eq!(error.next(), Next::Wait);
    let PublishError::Push { source: PushError::Refused { message }, .. } = &error else { panic!("{error:?}") };
    assert!(message.contains("only pull requests here"), "{message}");
    assert!(error.hint().unwrap().contains("pull-request"));
    std::fs::remove_file(hook).unwrap();
    scene.publish(&publisher, "drone/a-t=1").await.unwrap();
}

#[tokio::test]
async fn a_branch_for_people_to_merge_is_pushed_updated_and_deleted() {
    let scene = Scene::new(PublishMode::PullRequest).await;
    let (publisher, mirrors) = scene.publisher();
    for words in ["drone/a-t=1", "drone/a-t=2"] {
        let published = scene.publish(&publisher, words).await.unwrap();
        assert_eq!(published.outcome, Outcome::BranchPushed("kedge/dev".to_owned()));
    }
    assert_eq!(scene.show("kedge/dev", "drone/a-t/platform-config.yaml"), "value: 2");
    git::testing::git(&scene.gitops.bare, &["update-ref", "refs/heads/dev", "refs/heads/kedge/dev"]);
    mirrors.fetch_now(&scene.target.repo).await.unwrap();
    assert_eq!(scene.publish(&publisher, "drone/a-t=2").await.unwrap().outcome, Outcome::Unchanged);
    assert_eq!(git::testing::git(&scene.gitops.bare, &["branch", "--list", "kedge/dev"]), "");
    assert!(mirrors.status().iter().all(|status| !status.is_failing()));
    // With another mirror: what it lost is fetched again.
    drop((publisher, mirrors));
    std::fs::remove_dir_all(scene.root.path().join("mirrors")).unwrap();
    let (publisher, _mirrors) = scene.publisher();
    assert_eq!(scene.publish(&publisher, "drone/a-t=2").await.unwrap().outcome, Outcome::Unchanged);
    let published = scene.publish(&publisher, "drone/a-t=3").await.unwrap();
    assert_eq!(published.outcome, Outcome::BranchPushed("kedge/dev".to_owned()));
}
