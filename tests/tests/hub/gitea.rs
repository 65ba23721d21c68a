//! Pull request mode against a real Gitea, which also sends the webhooks: the hub itself would look only after an hour.

use kedge_tests::lab::git::Checkout;
use kedge_tests::lab::git_server::GitServer;
use kedge_tests::lab::gitea::{Gitea, PullRequest};
use kedge_tests::lab::{await_some, await_true};
use kedge_tests::world::sample::{REPOSITORIES, Sample};
use kedge_tests::world::settings::{Credential, Forge};
use kedge_tests::world::{Database, HOOK_SECRET, SOON, World, secret_file};

/// The sample with its GitOps repository at Gitea, where dev is published by pull request.
struct Forged {
    world: World,
    gitea: Gitea,
}

impl Forged {
    fn start() -> Option<Forged> {
        let gitea = Gitea::start()?;
        let git = GitServer::start();
        REPOSITORIES.iter().filter(|name| **name != "gitops").for_each(|name| drop(git.create(name)));
        gitea.create_repository("gitops");
        let sample =
            Sample::pushed_to(&|name| if name == "gitops" { gitea.push_url(name) } else { git.url(name) }, &|name| {
                if name == "gitops" { gitea.clone_url(name) } else { git.url(name) }
            })?;
        await_true("gitea knows the branches", SOON, || gitea.branches("gitops").len() == 3);
        let mut world = World::assemble(Database::Sqlite, git, sample, |settings, _| {
            let prefix = format!("{}/", gitea.url());
            let file = tempfile::Builder::new().prefix("kedge-token-").tempdir().unwrap().keep();
            settings.credentials.push(Credential {
                prefix: prefix.clone(),
                username: Some(gitea.owner().to_owned()),
                secret_file: secret_file(&file, "token", gitea.token()),
                workspaces: Vec::new(),
            });
            settings.forges.push(Forge { prefix, kind: "gitea" });
            settings.by_pull_request.push("dev".to_owned());
            settings.hosts.push(gitea.url().trim_start_matches("http://").to_owned());
        })?;
        gitea.create_webhook("gitops", &world.hub.url("/hooks/git"), HOOK_SECRET);
        world.hub.start_again();
        world.meet();
        Some(Forged { world, gitea })
    }

    fn open(&self) -> Vec<PullRequest> {
        self.gitea.pull_requests("gitops", "open").into_iter().filter(|request| request.base == "dev").collect()
    }

    fn await_open(&self) -> PullRequest {
        await_some("the pull request is there", SOON, || self.open().pop())
    }

    /// Changes the drones and waits until the pull request's branch has moved on.
    fn change_and_await(&self, name: &str, request: &PullRequest) -> PullRequest {
        self.world.sample.change_drones(name);
        await_some("the pull request moves on", SOON, || {
            self.open().into_iter().find(|now| now.commit != request.commit)
        })
    }
}

#[test]
fn one_pull_request_is_updated_and_a_squash_merge_becomes_a_state() {
    let Some(forged) = Forged::start() else { return };
    let (world, gitea) = (&forged.world, &forged.gitea);
    let first = forged.await_open();
    assert_eq!(first.base, "dev");
    assert_eq!(world.api.generation("dev", "drone"), None, "nothing is desired before the merge");

    let second = forged.change_and_await("Updated", &first);
    assert_eq!(second.number, first.number, "updated, not heaped");
    assert_eq!(gitea.pull_requests("gitops", "all").iter().filter(|request| request.base == "dev").count(), 1);
    assert!(second.body.contains("drone/hello-functional-test"), "{}", second.body);

    gitea.merge("gitops", second.number, "squash");
    for cluster_type in ["drone", "factory-line", "large"] {
        world.await_generation("dev", cluster_type, 1);
    }
    assert!(forged.open().is_empty(), "recognised by its content, though the commit is another");
    let rendered = world.rendered("dev");
    let published = world.sample.published("dev");
    assert!(rendered.iter().all(|(path, bytes)| published.get(path) == Some(bytes)), "exactly what render writes");

    // The next change is the next pull request.
    world.sample.change_drones("Next");
    let third = await_some("the next pull request", SOON, || forged.open().pop());
    assert_ne!(third.number, second.number);
    assert_eq!(world.api.generation("dev", "drone"), Some(1));
    gitea.merge("gitops", third.number, "merge");
    world.await_generation("dev", "drone", 2);
    assert_eq!(world.api.generation("dev", "large"), Some(1), "only what changed moved");
}

#[test]
fn a_moved_main_commit_labels_the_pull_request_promoted() {
    let Some(forged) = Forged::start() else { return };
    let (world, gitea) = (&forged.world, &forged.gitea);
    let first = forged.await_open();
    gitea.merge("gitops", first.number, "merge");
    world.await_generation("dev", "drone", 1);
    let plane = &world.sample.control_plane;
    let before = plane.head("main");
    world.sample.edit("main", "configs/common.yaml", "\ndata:\n", "\ndata:\n  PROMOTED: \"yes\"\n");
    let after = plane.head("main");
    world.sample.edit("dev", "base-repo.yaml", &before, &after);
    let labelled = await_some("the label", SOON, || {
        forged.open().into_iter().find(|request| request.labels.iter().any(|label| label == "promoted"))
    });
    gitea.merge("gitops", labelled.number, "rebase");
    world.await_generation("dev", "drone", 2);
    let plain = {
        world.sample.change_drones("Not promoted");
        forged.await_open()
    };
    assert!(plain.labels.is_empty(), "{:?}", plain.labels);
}

#[test]
fn a_closed_pull_request_is_declined_until_its_content_changes() {
    let Some(forged) = Forged::start() else { return };
    let (world, gitea) = (&forged.world, &forged.gitea);
    let first = forged.await_open();
    gitea.close("gitops", first.number);
    await_true("the hub says declined", SOON, || world.api.publish("dev")["outcome"] == "declined");
    // A commit that changes no rendered file asks no second time.
    world.sample.control_plane.change("README.md", "more words\n");
    let delivered = |commit: &str| world.git.requests("control-plane").wanted.iter().any(|wanted| wanted == commit);
    let commit = world.sample.control_plane.head("dev");
    await_true("the hub has read it", SOON, || delivered(&commit));
    assert!(forged.open().is_empty(), "declined stays declined");

    world.sample.change_drones("Another content");
    let second = forged.await_open();
    gitea.merge("gitops", second.number, "merge");
    world.await_generation("dev", "drone", 1);
}

#[test]
fn a_foreign_commit_on_our_branch_is_never_overwritten() {
    let Some(forged) = Forged::start() else { return };
    let (world, gitea) = (&forged.world, &forged.gitea);
    let first = forged.await_open();
    let person = Checkout::clone(&gitea.push_url("gitops"));
    person.switch(&first.head);
    let foreign = person.change("drone/hello-functional-test/platform-config.yaml", "mine: true\n");
    world.sample.change_drones("Ours");
    await_true("the foreign commit is said", SOON, || {
        let publish = world.api.publish("dev");
        publish["link"] == first.head.as_str() && publish["message"].to_string().contains("left alone")
    });
    person.fetch();
    assert_eq!(person.head(&format!("origin/{}", first.head)), foreign, "it is still the branch's head");
    // A person merges it: what the branch says is delivered, as a hand edit.
    gitea.merge("gitops", first.number, "merge");
    world.await_generation("dev", "drone", 1);
}

#[test]
fn a_hand_edit_of_our_file_is_delivered_and_flagged() {
    let Some(forged) = Forged::start() else { return };
    let (world, gitea) = (&forged.world, &forged.gitea);
    gitea.merge("gitops", forged.await_open().number, "merge");
    world.await_generation("dev", "drone", 1);
    let person = Checkout::clone(&gitea.push_url("gitops"));
    person.switch("dev");
    let file = "drone/hello-functional-test/platform-config.yaml";
    let text = std::fs::read_to_string(person.path(file)).unwrap();
    person.change(file, &text.replace("Drone", "By hand"));
    world.await_generation("dev", "drone", 2);
    await_true("the edit is flagged", SOON, || {
        world.api.get("/api/v1/environments/dev").to_string().contains(file) || world.api.has_problem(&[file])
    });
}
