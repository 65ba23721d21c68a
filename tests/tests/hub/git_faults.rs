//! What a broken input may do: nothing. Repositories that fail, lie, are rewritten, deleted or emptied; files that can't be
//! read; URLs that an application team must not name; webhooks of strangers.

use http::Method;
use kedge_tests::lab::git_server::Fault;
use kedge_tests::lab::inbox::signature;
use kedge_tests::lab::{await_some, await_true, git};
use kedge_tests::world::sample::{self, edit};
use kedge_tests::world::{Database, HOOK_SECRET, SOON, World};
use serde_json::{Value, json};

use crate::each_database::on_each_database;

on_each_database![a_broken_yaml_file_removes_nothing_and_is_shown_with_its_line];

/// A hub that looks at its repositories every second.
fn polling() -> Option<World> {
    let world = World::start_with(Database::Sqlite, |settings, _| settings.poll = "1s".to_owned())?;
    for environment in ["dev", "stage", "prod"] {
        for cluster_type in sample::CLUSTER_TYPES {
            world.await_generation(environment, cluster_type, 1);
        }
    }
    Some(world)
}

fn generations(world: &World) -> Vec<Option<u64>> {
    sample::CLUSTER_TYPES.iter().map(|cluster_type| world.api.generation("dev", cluster_type)).collect()
}

#[test]
fn a_failing_repository_keeps_its_last_good_commit_and_delays_no_other() {
    let Some(world) = polling() else { return };
    let before = world.sample.published("dev");
    for (round, fault) in [Fault::Status(500), Fault::Nonsense, Fault::CutShort].into_iter().enumerate() {
        let known = world.api.generation("dev", "drone").unwrap();
        world.git.fail("hello", Some(fault));
        let failing = await_some("the failing repository is shown", SOON, || world.api.failing("/hello.git"));
        assert!(failing["since"].is_string() && !failing["error"].as_str().unwrap().is_empty(), "{failing}");
        world.sample.change_drones(&format!("Drone {round}"));
        world.await_generation("dev", "drone", known + 1);
        assert_eq!(world.sample.published("dev").len(), before.len(), "{fault:?}: nothing is removed");
        world.git.fail("hello", None);
        await_true("the mended repository is no problem any more", SOON, || world.api.failing("/hello.git").is_none());
    }
}

#[test]
fn a_server_that_is_down_changes_nothing_and_the_hub_catches_up() {
    let Some(world) = polling() else { return };
    let (before, head) = (generations(&world), world.git.head("gitops", "dev"));
    world.git.go_down();
    await_true("the control plane is shown as failing", SOON, || world.api.failing("control-plane.git").is_some());
    assert_eq!((generations(&world), world.git.head("gitops", "dev")), (before.clone(), head));
    assert_eq!(world.api.status_of("/readyz"), 200, "it serves what it has");
    world.git.come_back();
    world.sample.change_drones("After the storm");
    world.await_generation("dev", "drone", before[0].unwrap() + 1);
    await_true("nothing fails any more", SOON, || world.api.failing("control-plane.git").is_none());
}

#[test]
fn a_force_push_is_followed_and_said() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let checkout = &world.sample.control_plane;
    world.sample.change_drones("First past");
    world.await_generation("dev", "drone", 2);
    let text = std::fs::read_to_string(checkout.path("cluster-types/north/drone/config.yaml")).unwrap();
    checkout.write("cluster-types/north/drone/config.yaml", &text.replace("First past", "Another past"));
    checkout.git(["commit", "--quiet", "--all", "--amend", "-m", "Another past"]);
    checkout.force_push("dev");
    world.await_generation("dev", "drone", 3);
    let config = &world.sample.published("dev")["drone/hello-functional-test/platform-config.yaml"];
    assert!(String::from_utf8_lossy(config).contains("Another past"));
    await_true("the rewritten branch is said", SOON, || {
        let repositories = world.api.list("/api/v1/repositories");
        repositories.iter().any(|repository| repository["forced"].to_string().contains("dev"))
    });
}

#[test]
fn a_deleted_or_emptied_branch_removes_nothing() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let (before, published) = (generations(&world), world.sample.published("dev"));
    let checkout = &world.sample.control_plane;
    checkout.switch("dev");
    let head = checkout.head("dev");

    checkout.delete_remote_branch("dev");
    await_true("the deleted branch is shown", SOON, || world.api.failing("control-plane.git").is_some());
    assert_eq!((generations(&world), world.sample.published("dev")), (before.clone(), published.clone()));
    checkout.push("dev");
    await_true("the branch is back", SOON, || world.api.failing("control-plane.git").is_none());

    checkout.create_orphan("empty");
    checkout.git(["commit", "--quiet", "--allow-empty", "-m", "All is gone"]);
    checkout.git(["push", "--quiet", "--force", "origin", "empty:refs/heads/dev"]);
    await_true("the emptied branch is shown", SOON, || world.api.failing("control-plane.git").is_some());
    assert_eq!((generations(&world), world.sample.published("dev")), (before.clone(), published.clone()));
    checkout.git(["push", "--quiet", "--force", "origin", &format!("{head}:refs/heads/dev")]);
    checkout.switch("dev");

    // The application's only branch, too.
    git::finish(git::command(&world.git.path("hello")).args(["config", "receive.denyDeleteCurrent", "ignore"]))
        .unwrap();
    world.sample.hello.delete_remote_branch("main");
    await_true("the application's repository is shown", SOON, || world.api.failing("/hello.git").is_some());
    world.sample.change_drones("Still flying");
    world.await_generation("dev", "drone", before[0].unwrap() + 1);
    assert_eq!(world.sample.published("dev").len(), published.len());
}

fn a_broken_yaml_file_removes_nothing_and_is_shown_with_its_line(database: Database) {
    let Some(mut world) = World::start(database) else { return };
    world.await_first_states();
    let published = world.sample.published("dev");
    let file = "cluster-types/north/drone/cluster-type.yaml";
    let checkout = &world.sample.control_plane;
    let text = std::fs::read_to_string(checkout.path(file)).unwrap();
    checkout.change(file, &text.replace("metadata:", "metadata: [unclosed"));
    let line = 1 + text.lines().position(|line| line == "metadata:").unwrap();
    await_true("the file is shown", SOON, || world.api.has_problem(&[file]));
    let problem = world.api.problems().into_iter().find(|problem| problem.to_string().contains(file)).unwrap();
    assert!(problem.to_string().contains(&line.to_string()), "line {line} of {problem}");

    // What was good stays in force, and other changes flow; also after a restart.
    let large = world.api.generation("dev", "large").unwrap();
    world.sample.edit("dev", "cluster-types/south/large/config.yaml", "CLUSTER_NAME: Large", "CLUSTER_NAME: Huge");
    world.await_generation("dev", "large", large + 1);
    world.hub.kill();
    world.hub.start_again();
    world.sample.edit("dev", "cluster-types/south/large/config.yaml", "CLUSTER_NAME: Huge", "CLUSTER_NAME: Vast");
    world.await_generation("dev", "large", large + 2);
    assert_eq!(world.api.generation("dev", "drone"), Some(1), "nothing changed for drones");
    let now = world.sample.published("dev");
    assert_eq!(now.keys().collect::<Vec<_>>(), published.keys().collect::<Vec<_>>());

    edit(&world.sample.control_plane, file, "metadata: [unclosed", "metadata:");
    await_true("the mended file is no problem any more", SOON, || !world.api.has_problem(&[file]));
}

#[test]
fn a_manifests_repository_that_application_teams_must_not_name_is_refused_and_shown() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("touched");
    let (hello, file) = (&world.sample.hello, "workload/hello.yaml");
    let good = world.git.url("hello-gitops");
    let text = std::fs::read_to_string(hello.path(file)).unwrap();
    let hostile = [
        world.git.path("hello-gitops").display().to_string(),
        format!("file://{}", world.git.path("hello-gitops").display()),
        "http://169.254.169.254/latest/meta-data.git".to_owned(),
        "https://elsewhere.example.com/app.git".to_owned(),
        format!("ssh://-oProxyCommand=touch%20{}/x.git", marker.display()),
        format!("ext::sh -c touch% {}", marker.display()),
    ];
    for url in hostile {
        // Only the first target: the others of the application go on.
        hello.change(file, &text.replacen(&good, &url, 1));
        // What is no address at all is refused with its Workload, which keeps its last good version.
        let refusal = || {
            let shown = |problem: &Value| {
                ["hello-functional-test", "TextRefused"].iter().any(|word| problem.to_string().contains(word))
            };
            world.api.problems().into_iter().find(shown)
        };
        let seen = await_some(&format!("{url} is refused"), SOON, refusal);
        assert_eq!(world.api.generation("dev", "drone"), Some(1), "{url}: what runs stays: {seen}");
        assert!(!marker.exists(), "{url} ran a command");
        hello.change(file, &text);
        await_true("all is well again", SOON, || refusal().is_none());
    }
    let reached: Vec<_> = world.api.list("/api/v1/repositories");
    assert!(!format!("{reached:?}").contains("169.254"), "{reached:?}");
}

#[test]
fn only_refs_that_moved_are_fetched() {
    let Some(world) = polling() else { return };
    world.git.forget_requests();
    let asked = |name: &str| world.git.requests(name);
    await_true("every repository was looked at twice", SOON, || {
        ["control-plane", "hello", "hello-gitops"].iter().all(|name| asked(name).greetings >= 2)
    });
    for name in sample::REPOSITORIES {
        assert_eq!(asked(name).fetches, 0, "{name} has no news");
    }
    let commit = world.sample.change_drones("Moved");
    world.await_generation("dev", "drone", 2);
    let requests = asked("control-plane");
    assert!(requests.fetches >= 1 && requests.wanted.iter().all(|wanted| *wanted == commit), "{requests:?}");
    assert_eq!((asked("hello").fetches, asked("hello-gitops").fetches), (0, 0));
}

#[test]
fn a_webhook_with_a_wrong_signature_is_refused_and_does_nothing() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    world.git.forget_requests();
    let body =
        json!({"ref": "refs/heads/dev", "repository": {"clone_url": world.git.url("control-plane")}}).to_string();
    let send = |headers: &[(&str, &str)], body: &str| {
        let mut request = world.api.client().post(world.hub.url("/hooks/git"));
        request = request.header("content-type", "application/json").header("x-github-event", "push");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        // The hub may hang up before it has read a body that is too large.
        request.body(body.to_owned()).send().map_or(413, |answer| answer.status().as_u16())
    };
    let wrong = signature("not the secret", body.as_bytes());
    assert!((400..500).contains(&send(&[], &body)), "unsigned");
    assert!((400..500).contains(&send(&[("x-hub-signature-256", &wrong)], &body)), "signed by a stranger");
    assert!((400..500).contains(&send(&[("x-hub-signature-256", "sha256=00")], &body)), "cut");
    let huge = " ".repeat(2 << 20);
    assert_eq!(send(&[("x-hub-signature-256", &signature(HOOK_SECRET, huge.as_bytes()))], &huge), 413);
    assert_eq!(world.git.requests("control-plane").total, 0, "nobody was asked");

    let right = signature(HOOK_SECRET, body.as_bytes());
    assert!((200..300).contains(&send(&[("x-hub-signature-256", &right)], &body)));
    await_true("the signed one is followed", SOON, || world.git.requests("control-plane").total > 0);
    let gitea = right.trim_start_matches("sha256=");
    assert!((200..300).contains(&send(&[("x-gitea-event", "push"), ("x-gitea-signature", gitea)], &body)));
    assert_eq!(world.api.ask(Method::GET, "/hooks/git", None, &[]).status, 405);
}

/// The platform team grants the application one more repository, and lets dev have it.
fn list_source(world: &World, known: &str, more: &str) {
    let (sample, list) = (&world.sample, format!("sources: [{known:?}]"));
    let old = sample.control_plane.head("main");
    let main = sample.edit("main", "workloads/hello.yaml", &list, &format!("sources: [{known:?}, {more:?}]"));
    sample.edit("dev", "base-repo.yaml", &old, &main);
}

#[test]
fn a_tenant_gets_no_repository_that_it_was_not_granted() {
    use kedge_tests::lab::git_server::Login;
    use kedge_tests::world::secret_file;
    use kedge_tests::world::settings::Credential;
    let Some(mut world) = World::prepare(Database::Sqlite, |settings, git| {
        let login = |name: &str, prefix: String, workspaces: Vec<String>| {
            let name = format!("kedge-{name}-{}", std::process::id());
            let secret_file = secret_file(&std::env::temp_dir(), &name, "s3cret");
            Credential { prefix, username: Some("kedge".into()), secret_file, workspaces }
        };
        let prefix = git.url("control-plane").trim_end_matches("/control-plane.git").to_owned();
        settings.credentials.push(login("platform", prefix, Vec::new()));
        let team = vec!["hello-team".to_owned()];
        settings.credentials.push(login("team", git.url("hello-gitops"), team));
    }) else {
        return;
    };
    world.git.require(Some(Login { user: "kedge".into(), password: "s3cret".into() }));
    world.hub.start_again();
    world.meet();
    world.await_first_states();
    // The platform's own credential reads every repository here; the application team names one of the platform's.
    let (other, good) = (world.git.url("control-plane"), world.git.url("hello-gitops"));
    let text = std::fs::read_to_string(world.sample.hello.path("workload/hello.yaml")).unwrap();
    world.sample.hello.git(["remote", "set-url", "origin", &world.git.url_with_login("hello")]);
    world.sample.hello.change("workload/hello.yaml", &text.replacen(&good, &other, 1));
    let named = other.trim_end_matches(".git");
    await_true("the other team's repository is refused", SOON, || {
        world.api.has_problem(&["hello-functional-test", named, "isn't among the sources of workspace hello-team"])
            && world.api.has_problem(&["`spec.sources` of WorkloadRegistration `hello`"])
    });
    // Though it is listed then: the platform's credential isn't the workspace's.
    world.sample.control_plane.git(["remote", "set-url", "origin", &world.git.url_with_login("control-plane")]);
    list_source(&world, &good, &other);
    await_true("there is no credential for the workspace", SOON, || {
        world.api.has_problem(&["hello-functional-test", "`workspaces`"])
    });
    assert!(!world.hub.log().contains("s3cret"), "a secret is in the log");
}

#[test]
fn a_login_is_sent_to_its_own_server_only() {
    use kedge_tests::lab::git_server::{GitServer, Login};
    use kedge_tests::world::secret_file;
    use kedge_tests::world::settings::Credential;
    let stranger = GitServer::start();
    stranger.create("app");
    stranger.require(Some(Login { user: "kedge".into(), password: "s3cret".into() }));
    let Some(mut world) = World::prepare(Database::Sqlite, |settings, git| {
        let file = secret_file(&std::env::temp_dir(), &format!("kedge-login-{}", std::process::id()), "s3cret");
        let prefix = git.url("control-plane").trim_end_matches("/control-plane.git").to_owned();
        let workspaces = vec!["hello-team".to_owned()];
        settings.credentials.push(Credential { prefix, username: Some("kedge".into()), secret_file: file, workspaces });
        let host = stranger.url("").trim_start_matches("http://").split('/').next().unwrap().to_owned();
        settings.hosts.push(host);
    }) else {
        return;
    };
    world.git.require(Some(Login { user: "kedge".into(), password: "s3cret".into() }));
    world.hub.start_again();
    world.meet();
    world.await_first_states();
    // The application team names a server on a port of its own, which the platform team listed: it must not see the login.
    let (url, good) = (stranger.url("app"), world.git.url("hello-gitops"));
    world.sample.control_plane.git(["remote", "set-url", "origin", &world.git.url_with_login("control-plane")]);
    list_source(&world, &good, &url);
    let text = std::fs::read_to_string(world.sample.hello.path("workload/hello.yaml")).unwrap();
    world.sample.hello.git(["remote", "set-url", "origin", &world.git.url_with_login("hello")]);
    world.sample.hello.change("workload/hello.yaml", &text.replacen(&good, &url, 1));
    await_true("the stranger's repository is shown", SOON, || world.api.has_problem(&["hello-functional-test"]));
    let requests = stranger.requests("app");
    assert!(requests.total > 0, "the stranger was asked");
    assert_eq!(requests.total, requests.unauthorized, "every request came without the login: {requests:?}");
    assert!(!world.hub.log().contains("s3cret"), "a secret is in the log");
}
