//! The same on SQLite and on PostgreSQL.

use super::*;
use crate::{Term, now, test_database};

const TERM: Term = Term(0);

fn names(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn intent(commit: &str) -> Publication {
    Publication {
        repo: "r".to_owned(),
        branch: "dev".to_owned(),
        base: None,
        commit: commit.to_owned(),
        content: "c".to_owned(),
        subject: "dev: s".to_owned(),
        changes: Blobs::from([("a".to_owned(), Some("1".to_owned())), ("b".to_owned(), None)]),
        state: PublicationState::Intended,
        created_at: now(),
    }
}

#[tokio::test]
async fn what_is_published_is_remembered_on_sqlite() {
    let (_folder, store) = test_database::sqlite().await;
    remember(&store).await;
    agree(&store).await;
}

#[tokio::test]
async fn what_is_published_is_remembered_on_postgresql() {
    let Some(store) = test_database::postgres().await else { return };
    remember(&store).await;
    agree(&store).await;
}

async fn remember(store: &Store) {
    store.set_publish_target(TERM, "dev", "r", "dev").await.unwrap();
    assert_eq!(store.publish_target("dev").await.unwrap(), Some(("r".to_owned(), "dev".to_owned())));
    store.intend(TERM, "dev", &intent("one")).await.unwrap();
    store.intend(TERM, "dev", &intent("two")).await.unwrap();
    assert_eq!(store.intended_publication("dev").await.unwrap().unwrap().commit, "two");

    let files: Blobs = (0..700).map(|number| (format!("f{number}"), Some(format!("{number}")))).collect();
    let edit = HandEdit { path: "f1".to_owned(), commit: "c".to_owned(), author: "Ann".to_owned(), since: now() };
    let ask = Ask { commit: "c".to_owned(), base: "b".to_owned(), content: "d".to_owned(), changes: Blobs::new() };
    let row = PullRequestRow {
        branch: "kedge/dev".to_owned(),
        asked: Some(ask),
        intended: None,
        number: None,
        url: None,
        state: RequestState::Open,
        updated_at: now(),
    };
    let settlement = Settlement {
        files,
        hand_edits: Some(vec![edit.clone()]),
        intent: Some(PublicationState::Published),
        pull_request: Some(row.clone()),
        ..Settlement::default()
    };
    store.settle(TERM, "dev", &settlement).await.unwrap();
    assert_eq!(store.published_files("dev").await.unwrap().len(), 700);
    assert_eq!(store.hand_edits("dev").await.unwrap(), [edit]);
    assert_eq!(store.intended_publication("dev").await.unwrap(), None);
    let states: Vec<_> = store.publications("dev", 9).await.unwrap().into_iter().map(|row| row.state).collect();
    assert_eq!(states, [PublicationState::Published, PublicationState::Superseded]);
    let known = store.pull_request("dev").await.unwrap().unwrap();
    assert_eq!(PullRequestRow { updated_at: row.updated_at, ..known }, row);

    let files = Blobs::from([("f0".to_owned(), None), ("f1".to_owned(), Some("new".to_owned()))]);
    store.settle(TERM, "dev", &Settlement { files, ..Settlement::default() }).await.unwrap();
    let files = store.published_files("dev").await.unwrap();
    assert_eq!((files.len(), files["f1"].as_str(), files.contains_key("f0")), (699, "new", false));

    store.set_publish_target(TERM, "dev", "r", "other").await.unwrap();
    assert!(store.published_files("dev").await.unwrap().is_empty());
    assert_eq!(store.pull_request("dev").await.unwrap(), None);
    let late = Settlement { confirmed: BTreeMap::from([("t".to_owned(), names("a"))]), ..Settlement::default() };
    assert!(matches!(store.settle(Term(7), "dev", &late).await, Err(StoreError::Fenced(_))));
}

async fn agree(store: &Store) {
    let confirmed = BTreeMap::from([("drone".to_owned(), names("a b c"))]);
    let waiting = BTreeMap::from([("drone".to_owned(), (names("b c"), 3)), ("large".to_owned(), (names("x"), 1))]);
    let settlement = Settlement { confirmed, waiting: Some(waiting.clone()), ..Settlement::default() };
    store.settle(TERM, "dev", &settlement).await.unwrap();
    assert_eq!(store.confirmed("dev", "drone").await.unwrap().unwrap().assignments, names("a b c"));
    assert_eq!(store.confirmed_size("dev", "drone").await.unwrap(), Some(3));
    assert_eq!(store.confirmed_size("dev", "other").await.unwrap(), None);
    assert!(store.approved_environments().await.unwrap().is_empty());

    assert_eq!(store.approve_removal("dev", "nobody", "ann", None).await.unwrap(), None);
    let approved = store.approve_removal("dev", "drone", "ann", None).await.unwrap().unwrap();
    assert_eq!((approved.gone, approved.of), (names("b c"), 3));
    assert_eq!(store.approved_environments().await.unwrap(), ["dev"]);
    // More is gone since: the word stands for what it was given for.
    let waiting = BTreeMap::from([("drone".to_owned(), (names("a b c"), 3))]);
    store.settle(TERM, "dev", &Settlement { waiting: Some(waiting), ..Settlement::default() }).await.unwrap();
    let [row] = &store.waiting_removals(None).await.unwrap()[..] else { panic!("one waits") };
    let approval = row.approval.clone().unwrap();
    assert_eq!((row.gone.clone(), approval.gone, approval.who), (names("a b c"), names("b c"), "ann".to_owned()));
    assert!(store.waiting_removals(Some("qa")).await.unwrap().is_empty());

    let confirmed = BTreeMap::from([("drone".to_owned(), names("a"))]);
    let settlement = Settlement { confirmed, waiting: Some(BTreeMap::new()), ..Settlement::default() };
    store.settle(TERM, "dev", &settlement).await.unwrap();
    assert_eq!(store.confirmed_sets("dev").await.unwrap(), BTreeMap::from([("drone".to_owned(), names("a"))]));
    assert!(store.waiting_removals(None).await.unwrap().is_empty());
}
