//! The lab's Git server: protocol, logins, faults, counts and webhooks, with the real `git` as the client.

use std::time::{Duration, Instant};

use kedge_tests::lab::await_true;
use kedge_tests::lab::git::Checkout;
use kedge_tests::lab::git_server::{Fault, GitServer, Login, Refusal, Webhook};
use kedge_tests::lab::inbox::Inbox;

const SOON: Duration = Duration::from_secs(10);

/// A server with a repository `app` that has one commit.
fn served() -> (GitServer, Checkout) {
    let server = GitServer::start();
    server.create("app");
    let checkout = Checkout::init_for(&server.url("app"));
    checkout.change("README.md", "hello\n");
    (server, checkout)
}

#[test]
fn a_push_is_what_the_next_clone_has() {
    let (server, checkout) = served();
    let clone = Checkout::clone(&server.url("app"));
    assert_eq!(clone.read_remote("main", "README.md").as_deref(), Some("hello\n"));
    assert_eq!(server.head("app", "main"), Some(checkout.head("main")));
    assert_eq!(clone.log("main")[0].subject, "Change README.md");
}

#[test]
fn both_protocol_versions_are_spoken() {
    let (server, _checkout) = served();
    for (version, listings) in [("2", 1), ("0", 0)] {
        server.forget_requests();
        let clone = Checkout::init_for(&server.url("app"));
        clone.git(["-c", &format!("protocol.version={version}"), "fetch", "--quiet", "origin"]);
        let requests = server.requests("app");
        assert_eq!((requests.listings, requests.fetches), (listings, 1), "version {version}");
        assert_eq!(requests.wanted, [server.head("app", "main").unwrap()], "version {version}");
    }
}

#[test]
fn a_gzipped_request_is_understood() {
    let server = GitServer::start();
    server.create("app");
    let checkout = Checkout::init_for(&server.url("app"));
    // git compresses requests above 1 kB: many wanted refs make one.
    for number in 0..60 {
        checkout.commit(&format!("number {number}"));
        checkout.git(["tag", &format!("t{number}")]);
    }
    checkout.git(["push", "--quiet", "--tags", "origin", "main"]);
    server.forget_requests();
    let clone = Checkout::clone(&server.url("app"));
    assert_eq!(clone.log("main").len(), 60);
    let requests = server.requests("app");
    assert!(requests.gzipped > 0 && requests.wanted.len() >= 60, "{requests:?}");
}

#[test]
fn a_push_larger_than_gits_buffer_arrives() {
    let (server, checkout) = served();
    let mut noise = String::new();
    let mut state = 1_u64;
    while noise.len() < 3_000_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        noise.push_str(&format!("{state:x}"));
    }
    let commit = checkout.change("noise", &noise);
    assert_eq!(server.head("app", "main"), Some(commit));
}

#[test]
fn a_wrong_login_is_refused() {
    let server = GitServer::start_with_login("ada", "secret");
    server.create("app");
    let checkout = Checkout::init_for(&server.url_with_login("app"));
    checkout.change("a", "1");
    assert!(Checkout::try_clone(&server.url("app")).is_err());
    let wrong = server.url_with_login("app").replace("secret", "guess");
    assert!(Checkout::try_clone(&wrong).unwrap_err().contains("Authentication failed"));
    assert!(Checkout::try_clone(&server.url_with_login("app")).is_ok());
    assert!(server.requests("app").unauthorized >= 2);
}

#[test]
fn a_bearer_token_is_a_login() {
    let server = GitServer::start_with_login("ada", "secret");
    server.create("app");
    let checkout = Checkout::init_for(&server.url("app"));
    checkout.commit("first");
    let push = |token: &str| {
        let header = format!("http.extraHeader=Authorization: Bearer {token}");
        checkout.try_git(["-c", &header, "push", "--quiet", "origin", "main"])
    };
    assert!(push("guess").is_err());
    push("secret").unwrap();
    server.require(Some(Login { user: "ada".into(), password: "rotated".into() }));
    assert!(push("secret").is_err());
}

#[test]
fn a_refused_push_changes_nothing() {
    let (server, checkout) = served();
    let before = server.head("app", "main");
    checkout.commit("not wanted");
    server.refuse_pushes("app", Some(Refusal::Hook));
    assert!(checkout.try_push("main").unwrap_err().contains("this branch is protected"));
    server.refuse_pushes("app", Some(Refusal::Forbidden));
    assert!(checkout.try_push("main").unwrap_err().contains("403"));
    assert_eq!(server.head("app", "main"), before);
    checkout.fetch();
    server.refuse_pushes("app", None);
    checkout.push("main");
    assert_ne!(server.head("app", "main"), before);
}

#[test]
fn a_broken_repository_breaks_no_other() {
    let (server, _checkout) = served();
    server.create("other");
    for fault in [Fault::Status(503), Fault::Nonsense, Fault::CutShort] {
        server.fail("app", Some(fault));
        assert!(Checkout::try_clone(&server.url("app")).is_err(), "{fault:?}");
        assert!(Checkout::try_clone(&server.url("other")).is_ok(), "{fault:?}");
    }
    server.fail("app", None);
    assert!(Checkout::try_clone(&server.url("app")).is_ok());
}

#[test]
fn a_server_that_went_down_comes_back_at_its_address() {
    let (server, _checkout) = served();
    server.go_down();
    assert!(Checkout::try_clone(&server.url("app")).unwrap_err().contains("Failed to connect"));
    server.come_back();
    assert!(Checkout::try_clone(&server.url("app")).is_ok());
}

#[test]
fn a_slow_repository_is_slow() {
    let (server, checkout) = served();
    server.slow_down("app", Duration::from_millis(300));
    let began = Instant::now();
    checkout.fetch();
    assert!(began.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_fetch_without_news_wants_nothing() {
    let (server, checkout) = served();
    let clone = Checkout::clone(&server.url("app"));
    server.forget_requests();
    clone.fetch();
    assert_eq!(server.requests("app").fetches, 0);
    let commit = checkout.change("a", "2");
    clone.fetch();
    assert_eq!(server.requests("app").wanted, [commit]);
}

#[test]
fn a_push_is_told_to_the_webhook() {
    let (server, checkout) = served();
    let inbox = Inbox::start();
    server.notify("app", Webhook { url: inbox.url("/hooks/git"), secret: "s3cret".into() });
    let before = checkout.head("main");
    let after = checkout.change("a", "1");
    let message = inbox.next(SOON);
    assert_eq!((message.path.as_str(), message.header("x-github-event")), ("/hooks/git", "push"));
    assert!(message.is_signed_with("s3cret") && !message.is_signed_with("other"));
    let body = message.json();
    assert_eq!(body["ref"], "refs/heads/main");
    assert_eq!((body["before"].as_str(), body["after"].as_str()), (Some(before.as_str()), Some(after.as_str())));
    assert_eq!(body["repository"]["clone_url"], server.url("app"));
    assert_eq!(body["head_commit"]["message"], "Change a");
    await_true("the delivery is noted", SOON, || server.deliveries().iter().any(|d| d.outcome == Ok(200)));
}

#[test]
fn a_rewritten_and_a_deleted_branch_are_told_as_such() {
    let (server, checkout) = served();
    checkout.create_branch("dev");
    checkout.change("a", "1");
    let inbox = Inbox::start();
    server.notify("app", Webhook { url: inbox.url("/"), secret: String::new() });
    checkout.git(["commit", "--quiet", "--amend", "-m", "Another past"]);
    checkout.force_push("dev");
    assert_eq!(inbox.next(SOON).json()["forced"], true);
    checkout.delete_remote_branch("dev");
    let body = inbox.next(SOON).json();
    assert_eq!((&body["deleted"], &body["forced"]), (&true.into(), &false.into()));
    assert_eq!(server.head("app", "dev"), None);
    assert!(inbox.is_empty());
}
