//! The lab's Gitea: what the hub's pull request mode needs of it, over its API.

use std::time::Duration;

use kedge_tests::lab::await_true;
use kedge_tests::lab::git::Checkout;
use kedge_tests::lab::gitea::Gitea;
use kedge_tests::lab::inbox::Inbox;

const SOON: Duration = Duration::from_secs(30);

/// A Gitea with a repository `platform` whose main branch has one commit.
fn forge() -> Option<(Gitea, Checkout)> {
    let gitea = Gitea::start()?;
    gitea.create_repository("platform");
    let checkout = Checkout::init_for(&gitea.push_url("platform"));
    checkout.change("README.md", "hello\n");
    // Gitea looks at a push after it has answered; what a test does next must not count as before it.
    await_true("gitea knows the branch", SOON, || gitea.branches("platform") == ["main"]);
    Some((gitea, checkout))
}

fn propose(gitea: &Gitea, checkout: &Checkout, branch: &str) -> u64 {
    checkout.switch("main");
    checkout.create_branch(branch);
    checkout.change(branch, "news\n");
    gitea.create_pull_request("platform", branch, "main", "News").number
}

#[test]
fn a_pull_request_is_made_labelled_commented_and_merged() {
    let Some((gitea, checkout)) = forge() else { return };
    let number = propose(&gitea, &checkout, "news");
    let open = gitea.pull_requests("platform", "open");
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].number, open[0].head.as_str(), open[0].base.as_str()), (number, "news", "main"));
    assert_eq!(open[0].commit, checkout.head("news"));

    gitea.create_label("platform", "promoted");
    let path = format!("/repos/{}/platform/issues/{number}/labels", gitea.owner());
    gitea.post(&path, serde_json::json!({"labels": ["promoted"]}));
    gitea.comment("platform", number, "looks right");
    let seen = gitea.pull_request("platform", number);
    assert_eq!(
        (seen.labels, gitea.comments("platform", number)),
        (vec!["promoted".into()], vec!["looks right".into()])
    );

    gitea.merge("platform", number, "squash");
    assert!(gitea.pull_request("platform", number).merged);
    assert_eq!(checkout.read_remote("main", "news").as_deref(), Some("news\n"));
    assert_ne!(checkout.head("origin/main"), checkout.head("news"), "a squash is a new commit");
}

#[test]
fn a_closed_pull_request_is_declined_not_merged() {
    let Some((gitea, checkout)) = forge() else { return };
    let number = propose(&gitea, &checkout, "news");
    gitea.close("platform", number);
    let seen = gitea.pull_request("platform", number);
    assert_eq!((seen.state.as_str(), seen.merged), ("closed", false));
    assert!(gitea.pull_requests("platform", "open").is_empty());
    assert_eq!(checkout.read_remote("main", "news"), None);
}

#[test]
fn a_push_reaches_the_webhook_with_both_signatures() {
    let Some((gitea, checkout)) = forge() else { return };
    let inbox = Inbox::start();
    gitea.create_webhook("platform", &inbox.url("/hooks/git"), "s3cret");
    let commit = checkout.change("a", "1");
    // Gitea works off its queue of pushes when it likes: the one that made the repository may come to the new hook too.
    let message =
        std::iter::repeat_with(|| inbox.next(SOON)).find(|message| message.json()["after"] == commit.as_str());
    let message = message.unwrap();
    assert_eq!(message.header("x-gitea-event"), "push");
    assert!(message.is_signed_with("s3cret"));
    assert_eq!(message.header("x-hub-signature-256"), format!("sha256={}", message.header("x-gitea-signature")));
    let body = message.json();
    assert_eq!((body["ref"].as_str(), body["after"].as_str()), (Some("refs/heads/main"), Some(commit.as_str())));
    assert_eq!(body["repository"]["clone_url"], gitea.clone_url("platform"));
}

#[test]
fn a_protected_branch_takes_no_push_and_no_stranger_gets_in() {
    let Some((gitea, checkout)) = forge() else { return };
    assert!(Checkout::try_clone(&gitea.clone_url("platform")).is_err());
    gitea.protect_branch("platform", "main");
    checkout.commit("by hand");
    assert!(checkout.try_push("main").unwrap_err().contains("protected branch"));
}

#[test]
fn a_restart_keeps_repositories_and_address() {
    let Some((mut gitea, checkout)) = forge() else { return };
    let url = gitea.url();
    gitea.restart();
    assert_eq!((gitea.url(), gitea.branches("platform")), (url, vec!["main".to_owned()]));
    checkout.change("a", "1");
}
