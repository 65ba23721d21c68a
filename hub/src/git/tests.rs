//! Mirrors of real repositories, on this machine and behind a server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use kedge_model::kinds::SourceRef;
use kedge_platform::GitRepository;

use super::testing::{Remote, Server as GitServer, git, granted, settings, store};
use super::*;
use crate::config;
use crate::store::Store;

struct Scene {
    root: tempfile::TempDir,
    store: Store,
    server: GitServer,
    app: Remote,
}

impl Scene {
    async fn new() -> Scene {
        let root = tempfile::tempdir().unwrap();
        let repositories = root.path().join("repositories");
        let app = Remote::new(&repositories, "app");
        let server = GitServer::start(&repositories);
        let store = store(root.path()).await;
        Scene { root, store, server, app }
    }

    fn config(&self) -> config::Git {
        settings(&self.server.url("control-plane"))
    }

    fn mirrors(&self, config: &config::Git) -> Mirrors {
        Mirrors::new(config, self.root.path().join("mirrors"), self.store.clone()).unwrap()
    }

    fn url(&self) -> String {
        self.server.url("app")
    }

    /// The application's team.
    fn team(&self) -> Trust {
        granted("team", &self.url(), &[&self.server.address])
    }
}

fn failing_of(mirrors: &Mirrors) -> Option<Failure> {
    let [status] = &mirrors.status()[..] else { panic!("one repository is followed") };
    status.failing.clone().or_else(|| status.refs.values().find_map(|tracked| tracked.failing.clone()))
}

#[tokio::test]
async fn a_branch_is_followed_and_an_unmoved_one_costs_one_question() {
    let scene = Scene::new().await;
    let first = scene.app.commit("main", &[("one.yaml", "1")]);
    let mirrors = scene.mirrors(&scene.config());
    let head = mirrors.head(&scene.url(), "main", scene.team()).await.unwrap();
    assert_eq!(head.commit, first);
    assert!(GitRepository::open(&head.path).unwrap().has_commit(&first));

    let before = scene.server.requests();
    mirrors.fetch_now(&scene.url()).await.unwrap();
    assert_eq!(scene.server.requests() - before, 2, "the greeting and the list of refs");

    let mut changed = mirrors.changed();
    let second = scene.app.commit("main", &[("two.yaml", "2")]);
    assert!(mirrors.nudge(&scene.url()));
    let change = changed.recv().await.unwrap();
    let reference = RefName::Branch("main".to_owned());
    assert_eq!(change.what, What::Moved { reference, commit: second.clone(), forced: false });
    assert_eq!(mirrors.head(&scene.url(), "main", scene.team()).await.unwrap().commit, second);
    assert!(!mirrors.nudge("https://elsewhere/x"));
}

#[tokio::test]
async fn a_webhook_on_another_hub_reaches_the_one_that_follows() {
    let scene = Scene::new().await;
    scene.app.commit("main", &[("one.yaml", "1")]);
    let mirrors = scene.mirrors(&scene.config());
    mirrors.head(&scene.url(), "main", scene.team()).await.unwrap();
    let mut changed = mirrors.changed();
    scene.app.commit("main", &[("two.yaml", "2")]);
    let other = Mirrors::new(&scene.config(), scene.root.path().join("others"), scene.store.clone()).unwrap();
    assert!(!other.nudge(&scene.url()), "it follows nothing");
    let told = async {
        while changed.is_empty() {
            mirrors.take_nudges().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        changed.recv().await.unwrap()
    };
    let change = tokio::time::timeout(Duration::from_secs(10), told).await.unwrap();
    assert!(matches!(change.what, What::Moved { .. }));
}

#[tokio::test]
async fn a_branch_that_only_publishing_asked_for_may_go() {
    let scene = Scene::new().await;
    let commit = scene.app.commit("main", &[("one.yaml", "1")]);
    scene.app.commit("kedge/dev", &[("two.yaml", "2")]);
    let mirrors = scene.mirrors(&scene.config());
    let remote: &dyn crate::publish::Remote = &mirrors;
    assert_eq!(remote.head(&scene.url(), "main").await.unwrap().head, Some(commit));
    assert!(remote.fetch(&scene.url(), "kedge/dev").await.unwrap().head.is_some());
    scene.app.delete("kedge/dev");
    assert_eq!(remote.fetch(&scene.url(), "kedge/dev").await.unwrap().head, None);
    assert_eq!(remote.fetch(&scene.url(), "never").await.unwrap().head, None);
    mirrors.fetch_now(&scene.url()).await.unwrap();
    assert!(!mirrors.status()[0].is_failing());

    // An emptied branch is as the server has it, for whoever pushes to it.
    let emptied = scene.app.commit("main", &[]);
    assert_eq!(remote.fetch(&scene.url(), "main").await.unwrap().head, Some(emptied));
}

#[tokio::test]
async fn many_fetches_leave_few_packs_and_lose_nothing() {
    let scene = Scene::new().await;
    let first = scene.app.commit("main", &[("one.yaml", "0")]);
    let mirrors = scene.mirrors(&scene.config());
    mirrors.head(&scene.url(), "main", scene.team()).await.unwrap();
    scene.app.rewind_all("main");
    for number in 0..55 {
        scene.app.commit("main", &[("one.yaml", &format!("{number}"))]);
        mirrors.fetch_now(&scene.url()).await.unwrap();
    }
    let head = mirrors.head(&scene.url(), "main", scene.team()).await.unwrap();
    assert_eq!(head.commit, scene.app.head("main"));
    let packs = std::fs::read_dir(head.path.join("objects/pack")).unwrap().flatten();
    let packs = packs.filter(|file| file.path().extension().is_some_and(|ending| ending == "pack")).count();
    assert!(packs < 20, "{packs}");
    let repo = mirrors.open(&scene.url(), scene.team()).unwrap();
    assert!(repo.has_commit(&head.commit));
    assert!(repo.has_commit(&first), "what was once good stays");
}

#[tokio::test]
async fn a_rewritten_branch_is_followed_and_said() {
    let scene = Scene::new().await;
    scene.app.commit("main", &[("one.yaml", "1")]);
    let second = scene.app.commit("main", &[("two.yaml", "2")]);
    let mirrors = scene.mirrors(&scene.config());
    mirrors.head(&scene.url(), "main", scene.team()).await.unwrap();
    scene.app.rewind("main");
    let third = scene.app.commit("main", &[("three.yaml", "3")]);
    mirrors.fetch_now(&scene.url()).await.unwrap();
    assert_eq!(mirrors.head(&scene.url(), "main", scene.team()).await.unwrap().commit, third);
    let status = mirrors.status();
    let forced = status[0].refs[&RefName::Branch("main".to_owned())].forced.clone().unwrap();
    assert_eq!((forced.from, forced.to), (second, third));
}

#[tokio::test]
async fn a_deleted_or_emptied_branch_fails_and_keeps_its_last_good_commit() {
    let scene = Scene::new().await;
    let good = scene.app.commit("main", &[("one.yaml", "1")]);
    let mirrors = scene.mirrors(&scene.config());
    let head = || mirrors.head(&scene.server.address, "main", scene.team());
    assert!(head().await.is_err(), "a server is no repository");
    mirrors.head(&scene.url(), "main", scene.team()).await.unwrap();

    scene.app.commit("main", &[]);
    mirrors.fetch_now(&scene.url()).await.unwrap();
    assert_eq!(mirrors.head(&scene.url(), "main", scene.team()).await.unwrap().commit, good);
    assert_eq!(failing_of(&mirrors).unwrap().error, "branch main was emptied");

    scene.app.delete("main");
    mirrors.fetch_now(&scene.url()).await.unwrap();
    assert_eq!(mirrors.head(&scene.url(), "main", scene.team()).await.unwrap().commit, good);
    let since = failing_of(&mirrors).unwrap();
    assert_eq!(since.error, "branch main was deleted");

    // Another hub, or this one after a restart, knows it too.
    drop(mirrors);
    let mirrors = scene.mirrors(&scene.config());
    assert_eq!(mirrors.head(&scene.url(), "main", scene.team()).await.unwrap().commit, good);
    assert_eq!(failing_of(&mirrors).unwrap().since, since.since);

    let mended = scene.app.commit("main", &[("two.yaml", "2")]);
    mirrors.fetch_now(&scene.url()).await.unwrap();
    assert_eq!(mirrors.head(&scene.url(), "main", scene.team()).await.unwrap().commit, mended);
    assert_eq!(failing_of(&mirrors), None);
}

#[tokio::test]
async fn a_server_that_hangs_or_is_away_delays_nobody_else() {
    let scene = Scene::new().await;
    let good = scene.app.commit("main", &[("one.yaml", "1")]);
    let other = GitServer::start(&scene.root.path().join("repositories"));
    let mut config = scene.config();
    config.hosts = vec![other.address.trim_start_matches("http://").to_owned()];
    let mirrors = scene.mirrors(&config);
    mirrors.head(&scene.url(), "main", scene.team()).await.unwrap();

    scene.server.hangs.store(true, Ordering::SeqCst);
    mirrors.nudge(&scene.url());
    let granted = granted("team", &scene.url(), &[&other.address]);
    let head = mirrors.head(&other.url("app"), "main", granted).await.unwrap();
    assert_eq!(head.commit, good);
    assert_eq!(mirrors.head(&scene.url(), "main", scene.team()).await.unwrap().commit, good);
    scene.server.hangs.store(false, Ordering::SeqCst);

    scene.server.down.store(true, Ordering::SeqCst);
    let error = mirrors.fetch_now(&scene.url()).await.unwrap_err();
    assert!(matches!(error, MirrorError::Failing { .. }), "{error}");
    let failing = mirrors.status().into_iter().find(|status| status.url == scene.url()).unwrap().failing.unwrap();
    assert!(failing.error.contains("503"), "{failing:?}");
    assert_eq!(mirrors.head(&scene.url(), "main", scene.team()).await.unwrap().commit, good);
    scene.server.down.store(false, Ordering::SeqCst);
    mirrors.fetch_now(&scene.url()).await.unwrap();
}

#[tokio::test]
async fn a_commit_and_a_tag_are_found_and_what_is_not_there_is_said() {
    let scene = Scene::new().await;
    let first = scene.app.commit("main", &[("one.yaml", "1")]);
    let second = scene.app.commit("main", &[("two.yaml", "2")]);
    scene.app.tag("v1", &first);
    let mirrors = scene.mirrors(&scene.config());
    let resolve = async |reference| mirrors.resolve(&scene.url(), &reference, scene.team()).await;
    assert_eq!(resolve(SourceRef::Tag("v1".to_owned())).await.unwrap().commit, first);
    assert_eq!(resolve(SourceRef::Commit(second.clone())).await.unwrap().commit, second);
    assert_eq!(resolve(SourceRef::Branch("main".to_owned())).await.unwrap().commit, second);
    for reference in [
        SourceRef::Branch("nope".to_owned()),
        SourceRef::Tag("nope".to_owned()),
        SourceRef::Commit("1".repeat(40)),
        SourceRef::Commit("abc".to_owned()),
        SourceRef::Branch("a..b".to_owned()),
        SourceRef::Branch("--upload-pack=x".to_owned()),
    ] {
        assert!(resolve(reference).await.is_err());
    }
}

#[tokio::test]
async fn tags_are_listed_with_their_commits_and_nothing_is_fetched() {
    let scene = Scene::new().await;
    let first = scene.app.commit("main", &[("one.yaml", "1")]);
    let second = scene.app.commit("main", &[("two.yaml", "2")]);
    // Annotated ones: the tag is an object of its own.
    scene.app.tag("v1.0.0", &first);
    scene.app.tag("v1.1.0", &second);
    git(&scene.app.bare, &["tag", "plain", &first]);
    let mirrors = scene.mirrors(&scene.config());
    let expected = [("plain", &first), ("v1.0.0", &first), ("v1.1.0", &second)];
    let expected: Vec<(String, String)> = expected.map(|(name, commit)| (name.to_owned(), commit.clone())).to_vec();
    let mut listed = mirrors.tags(&scene.url(), scene.team()).await.unwrap();
    listed.sort();
    assert_eq!(listed, expected);
    let mut local = settings(&scene.app.bare.display().to_string());
    local.hosts.clear();
    let here = Mirrors::new(&local, scene.root.path().join("other"), scene.store.clone()).unwrap();
    let mut listed = here.tags(&scene.app.bare.display().to_string(), Trust::Platform).await.unwrap();
    listed.sort();
    assert_eq!(listed, expected);
    scene.server.down.store(true, Ordering::SeqCst);
    assert!(mirrors.tags(&scene.url(), scene.team()).await.is_err());
}

#[tokio::test]
async fn a_credential_is_sent_to_its_prefix_and_not_after_a_redirect_to_elsewhere() {
    let scene = Scene::new().await;
    let commit = scene.app.commit("main", &[("one.yaml", "1")]);
    let expected = base64::engine::general_purpose::STANDARD.encode("bot:s3cret");
    *scene.server.password.lock().unwrap() = Some(format!("Basic {expected}"));
    let secret = scene.root.path().join("secret");
    std::fs::write(&secret, "s3cret\n").unwrap();
    let mut config = scene.config();
    let plain = scene.mirrors(&config);
    let error = plain.head(&scene.url(), "main", Trust::Platform).await.unwrap_err();
    assert!(error.hint().unwrap().contains("add a credential"), "{error} {:?}", error.hint());
    drop(plain);

    config.credentials = vec![config::Credential {
        prefix: scene.server.address.clone(),
        platform: true,
        workspaces: Vec::new(),
        username: Some("bot".to_owned()),
        secret_file: Some(secret),
        ssh_key_file: None,
    }];
    let mirrors = scene.mirrors(&config);
    mirrors.head(&scene.url(), "main", Trust::Platform).await.ok();
    mirrors.fetch_now(&scene.url()).await.unwrap();
    assert_eq!(mirrors.head(&scene.url(), "main", Trust::Platform).await.unwrap().commit, commit);

    let thief = GitServer::start(&scene.root.path().join("repositories"));
    let moved = [("/away.git".to_owned(), thief.url("app")), ("/renamed.git".to_owned(), "/app.git".to_owned())];
    scene.server.moved.lock().unwrap().extend(moved);
    let error = mirrors.head(&scene.server.url("away"), "main", Trust::Platform).await.unwrap_err();
    assert!(error.to_string().contains("isn't followed"), "{error}");
    assert_eq!(thief.requests(), 0);
    let head = mirrors.head(&scene.server.url("renamed"), "main", Trust::Platform).await.unwrap();
    assert_eq!(head.commit, commit);
}

/// A server that gives nothing without a password, with a credential that serves whom the test says.
fn private_server(scene: &Scene, serves: &[(&str, bool, &[&str])]) -> config::Git {
    let expected = base64::engine::general_purpose::STANDARD.encode("bot:s3cret");
    *scene.server.password.lock().unwrap() = Some(format!("Basic {expected}"));
    let mut config = scene.config();
    for (index, (folder, platform, workspaces)) in serves.iter().enumerate() {
        let secret = scene.root.path().join(format!("secret-{index}"));
        std::fs::write(&secret, "s3cret\n").unwrap();
        config.credentials.push(config::Credential {
            prefix: format!("{}{folder}", scene.server.address),
            platform: *platform,
            workspaces: workspaces.iter().map(|name| (*name).to_owned()).collect(),
            username: Some("bot".to_owned()),
            secret_file: Some(secret),
            ssh_key_file: None,
        });
    }
    config
}

#[tokio::test]
async fn the_platforms_credential_never_fetches_what_a_tenant_named() {
    let scene = Scene::new().await;
    let repositories = scene.root.path().join("repositories");
    let secret = Remote::new(&repositories, "team-b/secret").commit("main", &[("one.yaml", "1")]);
    let own = Remote::new(&repositories, "team-a/app").commit("main", &[("one.yaml", "1")]);
    let mirrors = scene.mirrors(&private_server(&scene, &[("", true, &[])]));
    let (app, other) = (scene.server.url("team-a/app"), scene.server.url("team-b/secret"));
    assert_eq!(mirrors.head(&other, "main", Trust::Platform).await.unwrap().commit, secret);

    let team_a = granted("a", &app, &[]);
    let error = mirrors.head(&other, "main", team_a.clone()).await.unwrap_err();
    assert!(error.to_string().contains(&other.replace(".git", "")), "{error}");
    assert!(error.hint().unwrap().contains("spec.sources"), "{:?}", error.hint());
    // Nor by the commit's id, which is no secret.
    assert!(mirrors.commit(&other, None, &secret, team_a.clone()).await.is_err());
    assert!(matches!(mirrors.look(&other, Some("main"), None, team_a.clone()), Look::Failing(_)));
    assert!(mirrors.open(&other, team_a.clone()).is_none());
    // Though the platform team lists it: its own credential isn't the workspace's, and what it fetched isn't either.
    let listed = granted("a", &app, &[&scene.server.address]);
    let error = mirrors.head(&other, "main", listed.clone()).await.unwrap_err();
    assert!(error.hint().unwrap().contains("`workspaces`"), "{error} {:?}", error.hint());
    assert!(mirrors.commit(&other, Some("main"), &secret, listed.clone()).await.is_err());
    assert!(mirrors.tags(&other, listed).await.is_err());
    // What the platform team registered for the workspace is read with its credential, whoever names it.
    assert_eq!(mirrors.head(&app, "main", team_a).await.unwrap().commit, own);
}

#[tokio::test]
async fn what_one_workspace_fetched_serves_no_other() {
    let scene = Scene::new().await;
    let repositories = scene.root.path().join("repositories");
    let commit = Remote::new(&repositories, "shared/app").commit("main", &[("one.yaml", "1")]);
    let mirrors = scene.mirrors(&private_server(&scene, &[("/shared", false, &["a"])]));
    let url = scene.server.url("shared/app");
    let (a, b) = (granted("a", "https://h/a/x", &[&url]), granted("b", "https://h/b/x", &[&url]));
    let head = mirrors.head(&url, "main", a.clone()).await.unwrap();
    assert_eq!(head.commit, commit);
    assert!(mirrors.head(&url, "main", b.clone()).await.is_err());
    assert!(mirrors.commit(&url, Some("main"), &commit, b.clone()).await.is_err());
    assert!(mirrors.head(&url, "main", Trust::Platform).await.is_err());
    // A push is told to all who follow the address.
    assert!(mirrors.nudge(&url));
    // After a restart, while the server is away, each finds what was its own.
    drop(mirrors);
    scene.server.down.store(true, Ordering::SeqCst);
    let mirrors = scene.mirrors(&private_server(&scene, &[("/shared", false, &["a"])]));
    assert_eq!(mirrors.head(&url, "main", a).await.unwrap().path, head.path);
    assert!(mirrors.head(&url, "main", b).await.is_err());
}

#[tokio::test]
async fn a_path_into_the_mirrors_is_nobodys_source() {
    let root = tempfile::tempdir().unwrap();
    let remote = Remote::new(root.path(), "app");
    remote.commit("main", &[("one.yaml", "1")]);
    let mirrors =
        Mirrors::new(&settings(&remote.path()), root.path().join("mirrors"), store(root.path()).await).unwrap();
    let team = granted("team", "https://h/team/app", &[]);
    let head = mirrors.head(&remote.path(), "main", team.clone()).await.unwrap();
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&head.path, &link).unwrap();
    for path in [head.path.display().to_string(), format!("file://{}", head.path.display()), link.display().to_string()]
    {
        let error = mirrors.head(&path, "main", team.clone()).await.unwrap_err();
        assert!(matches!(error, MirrorError::Refused(_)), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_redirect_leads_no_workspace_out_of_its_sources() {
    let scene = Scene::new().await;
    let repositories = scene.root.path().join("repositories");
    Remote::new(&repositories, "team-b/secret").commit("main", &[("one.yaml", "1")]);
    let moved = ("/team-a/app.git".to_owned(), "/team-b/secret.git".to_owned());
    scene.server.moved.lock().unwrap().extend([moved]);
    let mirrors = scene.mirrors(&scene.config());
    let url = scene.server.url("team-a/app");
    let team_a = granted("a", &scene.server.url("team-a/other"), &[]);
    let error = mirrors.head(&url, "main", team_a).await.unwrap_err();
    assert!(error.to_string().contains("isn't followed"), "{error}");
}

#[tokio::test]
async fn a_repository_at_a_path_is_copied_when_it_moved() {
    let root = tempfile::tempdir().unwrap();
    let remote = Remote::new(root.path(), "control-plane");
    let first = remote.commit("main", &[("one.yaml", "1")]);
    let store = store(root.path()).await;
    let mirrors = Mirrors::new(&settings(&remote.path()), root.path().join("mirrors"), store).unwrap();
    assert_eq!(mirrors.head(&remote.path(), "main", Trust::Platform).await.unwrap().commit, first);
    remote.commit("main", &[("one.yaml", "2")]);
    remote.rewind("main");
    let third = remote.commit("main", &[("one.yaml", "3")]);
    mirrors.fetch_now(&remote.path()).await.unwrap();
    let head = mirrors.head(&remote.path(), "main", Trust::Platform).await.unwrap();
    assert_eq!(head.commit, third);
    assert!(head.path.starts_with(root.path().join("mirrors")));
    let error = mirrors.head("../nowhere", "main", Trust::Platform).await.unwrap_err();
    assert!(error.to_string().contains("there is no Git repository at"), "{error}");
    assert!(!error.to_string().contains("does not appear to be"), "it is said once: {error}");
}

#[tokio::test]
async fn a_push_never_overwrites_a_head_that_nobody_expected() {
    let scene = Scene::new().await;
    let first = scene.app.commit("main", &[("one.yaml", "1")]);
    let mirrors = scene.mirrors(&scene.config());
    for url in [scene.url()] {
        let head = mirrors.head(&url, "main", Trust::Platform).await.unwrap();
        let child = commit_in(&head.path, &first, "ours");
        mirrors.push(&url, &child, "main", Some(&first)).await.unwrap();
        assert_eq!(scene.app.head("main"), child);
        assert_eq!(mirrors.head(&url, "main", Trust::Platform).await.unwrap().commit, child);

        let other = commit_in(&head.path, &first, "other");
        assert!(matches!(mirrors.push(&url, &other, "main", Some(&first)).await, Err(PushError::Moved)));
        assert!(matches!(mirrors.push(&url, &other, "main", None).await, Err(PushError::Moved)));
        assert_eq!(scene.app.head("main"), child);
        mirrors.push(&url, &other, "kedge/dev", None).await.unwrap();
        assert_eq!(scene.app.head("kedge/dev"), other);

        let hook = scene.app.bare.join("hooks/pre-receive");
        std::fs::write(&hook, "#!/bin/sh\necho only pull requests\nexit 1\n").unwrap();
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let next = commit_in(&head.path, &child, "next");
        let error = mirrors.push(&url, &next, "main", Some(&child)).await.unwrap_err();
        assert!(matches!(&error, PushError::Refused { message } if message.contains("only pull requests")), "{error}");
        scene.server.down.store(true, Ordering::SeqCst);
        let error = mirrors.push(&url, &next, "main", Some(&child)).await.unwrap_err();
        assert!(matches!(error, PushError::Unreachable { .. }), "{error}");
        let before = scene.server.requests();
        assert!(mirrors.push(&url, "--all", "main", None).await.is_err());
        assert_eq!(scene.server.requests(), before);
    }
}

#[tokio::test]
async fn addresses_of_applications_that_lead_elsewhere_are_never_contacted() {
    let scene = Scene::new().await;
    let mirrors = scene.mirrors(&scene.config());
    for repo in [
        "/etc",
        "file:///etc",
        "http://169.254.169.254/latest/meta-data",
        "https://evil.example.com/x",
        "ssh://-oProxyCommand=touch%20x/y",
        "ext::touch x",
        "-oProxyCommand=id",
    ] {
        assert!(mirrors.allow(repo, scene.team()).is_err(), "{repo}");
        let error = mirrors.head(repo, "main", scene.team()).await.unwrap_err();
        assert!(matches!(error, MirrorError::Refused(_)), "{repo}: {error}");
    }
    assert!(mirrors.status().is_empty(), "nothing is followed");
}

/// A commit that only the mirror has.
fn commit_in(mirror: &std::path::Path, parent: &str, message: &str) -> String {
    let tree = git(mirror, &["rev-parse", &format!("{parent}^{{tree}}")]);
    git(mirror, &["commit-tree", "-p", parent, "-m", message, &tree])
}
