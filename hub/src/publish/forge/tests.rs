//! Pull requests on a stand-in for both forges.

use serde_json::json;

use super::fake::{Fake, REPO};
use super::*;
use crate::git::Secret;

fn forge(fake: &Fake, username: Option<&str>) -> Forge {
    let address = Address::of(REPO, &[fake.config()]).unwrap().unwrap();
    let secret = Secret { username: username.map(str::to_owned), secret: "s3cret".to_owned() };
    Forge { client: Client::new(address.kind, &secret, REPO).unwrap(), address }
}

#[tokio::test]
async fn both_forges_open_find_tell_label_and_close() {
    for (kind, authorization) in [(ForgeKind::GitHub, "Bearer s3cret"), (ForgeKind::Gitea, "token s3cret")] {
        let fake = Fake::start(kind).await;
        let forge = forge(&fake, None);
        assert_eq!(forge.find("kedge/dev", "dev").await.unwrap(), None);
        let pull = forge.open("kedge/dev", "dev", "title", "body").await.unwrap();
        assert_eq!(fake.state().authorization, authorization);
        assert_eq!((pull.number, pull.state), (1, PullState::Open));
        assert_eq!(forge.find("kedge/dev", "dev").await.unwrap().unwrap().number, 1);
        assert_eq!(forge.find("kedge/dev", "qa").await.unwrap(), None);
        assert!(forge.open("kedge/dev", "dev", "title", "body").await.unwrap_err().is_conflict());
        assert_eq!(forge.tell(1, "new", "text").await.unwrap().title, "new");

        forge.label(&pull, "promoted", true).await.unwrap();
        assert_eq!(fake.labels_of(1), ["promoted"]);
        let pull = forge.get(1).await.unwrap();
        forge.label(&pull, "promoted", true).await.unwrap();
        forge.label(&pull, "promoted", false).await.unwrap();
        assert!(fake.labels_of(1).is_empty());
        assert_eq!(fake.state().labels.len(), 1);

        assert_eq!(forge.close(1).await.unwrap().state, PullState::Closed);
        fake.set(1, json!({"merged": true}));
        assert_eq!(forge.get(1).await.unwrap().state, PullState::Merged);
        assert!(forge.get(7).await.unwrap_err().is_missing());
    }
}

#[tokio::test]
async fn a_user_and_a_password_go_as_basic_authentication_to_gitea() {
    let fake = Fake::start(ForgeKind::Gitea).await;
    forge(&fake, Some("me")).find("a", "b").await.unwrap();
    assert_eq!(fake.state().authorization, "Basic bWU6czNjcmV0");
}

#[tokio::test]
async fn lists_are_read_to_their_end() {
    let fake = Fake::start(ForgeKind::Gitea).await;
    let forge = forge(&fake, None);
    for number in 0..120 {
        forge.open(&format!("branch-{number}"), "dev", "t", "b").await.unwrap();
        fake.state().labels.push(json!({"id": number, "name": format!("label-{number}")}));
    }
    assert_eq!(forge.find("branch-119", "dev").await.unwrap().unwrap().number, 120);
    let pull = forge.get(1).await.unwrap();
    forge.label(&pull, "label-119", true).await.unwrap();
    assert_eq!(fake.labels_of(1), ["label-119"]);
    assert_eq!(fake.state().labels.len(), 120);
}

#[tokio::test]
async fn a_fork_with_the_same_branch_name_isnt_ours() {
    let fake = Fake::start(ForgeKind::GitHub).await;
    let forge = forge(&fake, None);
    forge.open("kedge/dev", "dev", "t", "b").await.unwrap();
    fake.set(1, json!({"head": {"ref": "kedge/dev", "repo": {"full_name": "evil/gitops"}}}));
    assert_eq!(forge.find("kedge/dev", "dev").await.unwrap(), None);
}

#[tokio::test]
async fn what_a_forge_answers_says_what_happens_next() {
    let fake = Fake::start(ForgeKind::GitHub).await;
    let forge = forge(&fake, None);
    for (status, headers, next) in [
        (401, vec![], Next::Stalled),
        (403, vec![], Next::Stalled),
        (404, vec![], Next::Retry(None)),
        (403, vec![("retry-after", "17")], Next::Retry(Some(Duration::from_secs(17)))),
        (429, vec![("retry-after", "5")], Next::Retry(Some(Duration::from_secs(5)))),
        (429, vec![], Next::Retry(None)),
        (422, vec![], Next::Wait),
        (500, vec![], Next::Retry(None)),
        (502, vec![], Next::Retry(None)),
        (301, vec![("location", "https://elsewhere.example/")], Next::Stalled),
    ] {
        fake.fail(status, &headers, r#"{"message": "because"}"#);
        let error = forge.get(1).await.unwrap_err();
        assert_eq!(error.next(), next, "{status} {error}");
        assert!(!format!("{error:?}").contains("s3cret"));
    }
    fake.fail(200, &[], "not json");
    assert!(matches!(forge.get(1).await.unwrap_err(), ForgeError::Malformed(..)));
    fake.fail(200, &[], &"x".repeat(17 * 1024 * 1024));
    assert!(matches!(forge.get(1).await.unwrap_err(), ForgeError::TooLong(_)));
    let gone =
        Forge { address: Address { api: "http://127.0.0.1:9".to_owned(), ..forge.address }, client: forge.client };
    assert_eq!(gone.get(1).await.unwrap_err().next(), Next::Retry(None));
}
