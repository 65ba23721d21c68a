//! Pull request mode, between two bare repositories and with a forge of our own.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::*;
use crate::config::{ForgeKind, PublishMode};
use crate::publish::fixture::{Lab, git, schedule};
use crate::publish::forge::fake::{Fake, REPO};
use crate::publish::remote::Remote;

async fn lab(kind: ForgeKind) -> (Lab, Fake) {
    let fake = Fake::start(kind).await;
    let lab = Lab::with(PublishMode::PullRequest, REPO, vec![fake.config()]).await;
    fake.state().origin = Some(lab.folders.origin.clone());
    (lab, fake)
}

fn number(outcome: &Outcome) -> i64 {
    match outcome {
        Outcome::PullRequest { number, state: PullState::Open, .. } => *number,
        other => panic!("{other:?}"),
    }
}

/// As both forges do: the pull request is marked, and its branch stays.
async fn merge(lab: &Lab, fake: &Fake, number: usize) {
    let head = git(&lab.folders.origin, &["rev-parse", "kedge/dev"]);
    lab.squash("kedge/dev", "dev").await;
    fake.set(number, json!({"state": "closed", "merged": true, "head": {"ref": "kedge/dev", "sha": head}}));
}

fn has_branch(lab: &Lab) -> bool {
    !git(&lab.folders.origin, &["for-each-ref", "refs/heads/kedge/dev"]).is_empty()
}

#[tokio::test]
async fn one_pull_request_is_opened_updated_and_merged_by_squash() {
    for kind in [ForgeKind::GitHub, ForgeKind::Gitea] {
        let (lab, fake) = lab(kind).await;
        let published = lab.publish("drone/a-t=1").await;
        assert_eq!(number(&published.outcome), 1);
        assert!(lab.files("dev").is_empty(), "nothing is on the environment's branch before the merge");
        assert_eq!(published.head.unwrap().commit, lab.head("dev"));
        assert_eq!(lab.files("kedge/dev")["drone/a-t/platform-config.yaml"], "value: 1");
        assert_eq!(fake.labels_of(1), ["promoted"]);

        assert_eq!(number(&lab.publish("drone/a-t=2").await.outcome), 1);
        assert_eq!(lab.files("kedge/dev")["drone/a-t/platform-config.yaml"], "value: 2");
        assert_eq!(lab.commits("kedge/dev"), 2, "one commit on top of the branch, not a heap");
        assert_eq!(fake.state().pulls.len(), 1);

        merge(&lab, &fake, 1).await;
        let published = lab.publish("drone/a-t=2").await;
        assert_eq!(published.outcome, Outcome::Unchanged);
        assert_eq!(published.head.unwrap().commit, lab.head("dev"));
        assert!(!has_branch(&lab) && published.foreign.is_empty());
        assert_eq!(lab.store.pull_request("dev").await.unwrap().unwrap().state, RequestState::Merged);
        assert_eq!(lab.store.confirmed_size("dev", "drone").await.unwrap(), Some(1));

        let published = lab.publish("drone/a-t=3").await;
        assert_eq!(number(&published.outcome), 2);
        assert!(fake.labels_of(2).is_empty(), "main did not move");
    }
}

#[tokio::test]
async fn nothing_new_costs_one_question_and_no_push() {
    let (lab, fake) = lab(ForgeKind::Gitea).await;
    lab.publish("drone/a-t=1").await;
    let pushes = lab.folders.pushes.load(Ordering::Relaxed);
    fake.calls();
    assert_eq!(number(&lab.publish("drone/a-t=1").await.outcome), 1);
    assert_eq!(fake.calls(), ["GET /repos/team/gitops/pulls/1"]);
    assert_eq!(lab.folders.pushes.load(Ordering::Relaxed), pushes);
}

#[tokio::test]
async fn a_moved_environment_branch_is_built_upon() {
    let (lab, fake) = lab(ForgeKind::Gitea).await;
    lab.publish("drone/a-t=1").await;
    lab.edit("dev", "notes.md", Some("mine")).await;
    assert_eq!(number(&lab.publish("drone/a-t=1").await.outcome), 1);
    assert!(lab.files("kedge/dev").contains_key("notes.md"));
    assert_eq!(git(&lab.folders.origin, &["rev-parse", "kedge/dev~1"]), lab.head("dev"));
    assert_eq!(fake.state().pulls.len(), 1);
}

#[tokio::test]
async fn a_closed_pull_request_is_declined_until_its_content_changes() {
    let (mut lab, fake) = lab(ForgeKind::GitHub).await;
    lab.publish("drone/a-t=1").await;
    fake.set(1, json!({"state": "closed"}));
    for _ in 0..2 {
        assert!(matches!(lab.publish("drone/a-t=1").await.outcome, Outcome::Declined { number: 1, .. }));
        lab.restart();
    }
    assert_eq!(number(&lab.publish("drone/a-t=2").await.outcome), 2);
    fake.set(2, json!({"state": "closed"}));
    assert!(matches!(lab.publish("drone/a-t=2").await.outcome, Outcome::Declined { number: 2, .. }));
    // Opened again, it is as if nothing had been.
    fake.set(2, json!({"state": "open"}));
    assert_eq!(number(&lab.publish("drone/a-t=2").await.outcome), 2);
    merge(&lab, &fake, 2).await;
    assert_eq!(lab.publish("drone/a-t=2").await.outcome, Outcome::Unchanged);
}

#[tokio::test]
async fn commits_of_others_on_our_branch_are_never_overwritten() {
    let (lab, fake) = lab(ForgeKind::Gitea).await;
    lab.publish("drone/a-t=1").await;
    // Not yet seen by the hub: the push itself must notice.
    let place = lab.clone("kedge/dev");
    std::fs::write(place.join("drone/a-t/platform-config.yaml"), "value: better\n").unwrap();
    git(&place, &["commit", "-qam", "Better"]);
    git(&place, &["push", "-q", "origin", "kedge/dev"]);
    let theirs = lab.head("kedge/dev");
    for words in ["drone/a-t=2", "drone/a-t=3"] {
        let outcome = lab.publish(words).await.outcome;
        let wanted = Outcome::ForeignCommits {
            branch: "kedge/dev".to_owned(),
            commit: theirs.clone(),
            author: "Ann".to_owned(),
        };
        assert_eq!(outcome, wanted);
        assert_eq!(lab.head("kedge/dev"), theirs);
    }
    // Merged with what they made of it: their file is a hand edit, and what we want since is asked for anew.
    fake.set(1, json!({"fake_commits": [{"sha": git(&lab.folders.origin, &["rev-parse", "kedge/dev~1"])}]}));
    merge(&lab, &fake, 1).await;
    git(&lab.folders.origin, &["branch", "-q", "-D", "kedge/dev"]);
    let published = lab.publish("drone/a-t=1").await;
    assert_eq!((published.outcome, published.foreign.len()), (Outcome::Unchanged, 1));
    assert_eq!(number(&lab.publish("drone/a-t=2").await.outcome), 2);
}

#[tokio::test]
async fn a_merge_of_an_older_state_doesnt_count_for_the_newer_one() {
    let (mut lab, fake) = lab(ForgeKind::Gitea).await;
    lab.publish("drone/a-t=1").await;
    let old = lab.head("kedge/dev");
    // The person's merge and our update cross, and we stop before we hear of it.
    let place = lab.clone("dev");
    git(&place, &["fetch", "-q", "origin", "kedge/dev"]);
    git(&place, &["merge", "-q", "--squash", "FETCH_HEAD"]);
    git(&place, &["commit", "-qm", "Squashed"]);
    fake.state().skip = 1;
    fake.fail(500, &[], "");
    lab.try_publish(&schedule("drone/a-t=2")).await.unwrap_err();
    git(&place, &["push", "-q", "origin", "dev"]);
    fake.set(1, json!({"state": "closed", "merged": true, "head": {"ref": "kedge/dev", "sha": old}, "fake_commits": [{"sha": old}]}));
    lab.restart();
    let published = lab.publish("drone/a-t=2").await;
    assert_eq!(number(&published.outcome), 2);
    assert!(published.foreign.is_empty());
    assert_eq!(lab.files("kedge/dev")["drone/a-t/platform-config.yaml"], "value: 2");
}

#[tokio::test]
async fn a_pull_request_that_nobody_needs_any_more_is_withdrawn() {
    let (lab, fake) = lab(ForgeKind::GitHub).await;
    lab.publish("drone/a-t=1").await;
    merge(&lab, &fake, 1).await;
    assert_eq!(number(&lab.publish("drone/a-t=2").await.outcome), 2);
    assert_eq!(lab.publish("drone/a-t=1").await.outcome, Outcome::Unchanged);
    assert_eq!(fake.state().pulls[1]["state"], "closed");
    assert!(!has_branch(&lab));
    assert_eq!(number(&lab.publish("drone/a-t=2").await.outcome), 3);
}

#[tokio::test]
async fn a_big_removal_is_asked_for_with_a_warning_and_the_merge_confirms() {
    let (lab, fake) = lab(ForgeKind::Gitea).await;
    lab.publish("drone/a-t drone/b-t drone/c-t").await;
    merge(&lab, &fake, 1).await;
    let published = lab.publish("drone/a-t").await;
    assert!(published.waiting.is_empty());
    assert_eq!(number(&published.outcome), 2);
    let body = fake.state().pulls[1]["body"].as_str().unwrap().to_owned();
    assert!(body.contains("Cluster type `drone` loses 2 of its 3 assignments"), "{body}");
    assert_eq!(lab.store.confirmed_size("dev", "drone").await.unwrap(), Some(3));
    merge(&lab, &fake, 2).await;
    assert_eq!(lab.publish("drone/a-t").await.outcome, Outcome::Unchanged);
    assert_eq!(lab.store.confirmed_size("dev", "drone").await.unwrap(), Some(1));
}

#[tokio::test]
async fn a_crash_at_any_call_ends_in_one_pull_request() {
    // So many calls answer, then the forge is away; then the hub starts again.
    for answered in 0..6 {
        let (mut lab, fake) = lab(ForgeKind::Gitea).await;
        fake.state().skip = answered;
        fake.fail(500, &[], "");
        let error = lab.try_publish(&schedule("drone/a-t=1")).await.err();
        assert!(error.is_none_or(|error| error.next() == Next::Retry(None)));
        fake.state().faults.clear();
        lab.restart();
        assert_eq!(number(&lab.publish("drone/a-t=1").await.outcome), 1, "after {answered}");
        assert_eq!((fake.state().pulls.len(), lab.commits("kedge/dev")), (1, 2));
        assert_eq!(fake.labels_of(1), ["promoted"]);
    }
}

#[tokio::test]
async fn a_push_of_our_branch_whose_answer_was_lost_is_recognised() {
    let (mut lab, fake) = lab(ForgeKind::Gitea).await;
    lab.publish("drone/a-t=1").await;
    lab.folders.lose_answer.store(true, Ordering::Relaxed);
    lab.try_publish(&schedule("drone/a-t=2")).await.unwrap_err();
    let pushed = lab.head("kedge/dev");
    lab.restart();
    assert_eq!(number(&lab.publish("drone/a-t=2").await.outcome), 1);
    assert_eq!(lab.head("kedge/dev"), pushed);
    assert!(fake.state().pulls[0]["title"].as_str().unwrap().starts_with("dev: 1 assignment new"));
}

#[tokio::test]
async fn without_a_forge_a_branch_is_pushed_and_its_merge_seen() {
    let lab = Lab::with(PublishMode::PullRequest, "ssh://git.example/gitops", Vec::new()).await;
    for _ in 0..2 {
        assert_eq!(lab.publish("drone/a-t=1").await.outcome, Outcome::BranchPushed("kedge/dev".to_owned()));
    }
    lab.squash("kedge/dev", "dev").await;
    assert_eq!(lab.publish("drone/a-t=1").await.outcome, Outcome::Unchanged);
    assert!(!has_branch(&lab));
    assert_eq!(lab.publish("drone/a-t=2").await.outcome, Outcome::BranchPushed("kedge/dev".to_owned()));
}

#[tokio::test]
async fn content_that_is_there_before_the_forge_marks_it_waits_for_the_mark() {
    let (lab, fake) = lab(ForgeKind::Gitea).await;
    lab.publish("drone/a-t=1").await;
    lab.squash("kedge/dev", "dev").await;
    assert_eq!(lab.publish("drone/a-t=1").await.outcome, Outcome::Unchanged);
    assert_eq!(fake.state().pulls[0]["state"], "open");
    fake.set(1, json!({"state": "closed", "merged": true}));
    assert_eq!(lab.publish("drone/a-t=1").await.outcome, Outcome::Unchanged);
    assert_eq!(lab.store.pull_request("dev").await.unwrap().unwrap().state, RequestState::Merged);
}

#[tokio::test]
async fn a_deleted_environment_branch_is_asked_for_anew_and_confirms_nothing() {
    let (lab, fake) = lab(ForgeKind::Gitea).await;
    lab.publish("drone/a-t drone/b-t").await;
    merge(&lab, &fake, 1).await;
    lab.publish("drone/a-t drone/b-t").await;
    git(&lab.folders.origin, &["branch", "-D", "dev"]);
    lab.folders.fetch("", "dev").await.unwrap();
    let published = lab.publish("drone/a-t drone/b-t").await;
    assert_eq!((published.head, number(&published.outcome)), (None, 2));
    assert_eq!(lab.store.confirmed_size("dev", "drone").await.unwrap(), Some(2));
    assert_eq!(lab.files("kedge/dev").len(), 8);
}
