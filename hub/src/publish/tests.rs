//! Direct mode, between two bare repositories.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kedge_model::Problem;
use kedge_scheduler::{Outcome as Rendered, README_TEXT};

use super::fixture::{Lab, assignment, git, schedule};
use super::*;

const TEN: &str = "drone/a-t=1 drone/b-t=1 drone/c-t=1 drone/d-t=1 drone/e-t=1 drone/f-t=1 drone/g-t=1 drone/h-t=1 drone/i-t=1 drone/j-t=1";

fn committed(published: &Published) -> &str {
    match &published.outcome {
        Outcome::Committed(commit) => commit,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_first_publish_begins_the_branch_with_exactly_the_files_of_the_schedule() {
    let lab = Lab::direct().await;
    let wanted = schedule("drone/hello-test=1 large/");
    let published = lab.try_publish(&wanted).await.unwrap();
    let files: BTreeMap<String, String> =
        wanted.files().map(|(path, text)| (path, text.trim_end().to_owned())).collect();
    assert_eq!(lab.files("dev"), files);
    assert_eq!(published.head.as_ref().unwrap().commit, lab.head("dev"));
    assert_eq!(committed(&published), lab.head("dev"));
    assert_eq!(git(&lab.folders.origin, &["show", "dev:drone/README.md"]), README_TEXT);
    let modes = git(&lab.folders.origin, &["ls-tree", "-r", "--format=%(objectmode)", "dev"]);
    assert!(modes.lines().all(|mode| mode == "100644"));
    git(&lab.folders.origin, &["fsck", "--strict"]);
    let message = git(&lab.folders.origin, &["log", "-1", "--format=%an <%ae>%n%B", "dev"]);
    let content = message.rsplit_once("Kedge-Content: ").unwrap().1.trim().to_owned();
    assert_eq!(
        message.trim_end(),
        format!(
            "Kedge <kedge@example.org>\n\
             dev: 1 assignment new, 2 cluster types new (drone/hello-test)\n\n\
             https://git.example/platform@0123456789ab Raise the value\n\n\
             - drone/hello-test new\n\n\
             Kedge-Environment: dev\n\
             Kedge-Cause: https://git.example/platform@0123456789abcdef0123456789abcdef01234567\n\
             Kedge-Content: {content}"
        )
    );
}

#[tokio::test]
async fn no_difference_makes_no_commit_and_no_traffic() {
    let lab = Lab::direct().await;
    lab.publish("drone/a-t=1").await;
    let (pushes, fetches) = (lab.folders.pushes.load(Ordering::Relaxed), lab.folders.fetches.load(Ordering::Relaxed));
    assert_eq!(lab.publish("drone/a-t=1").await.outcome, Outcome::Unchanged);
    assert_eq!(lab.commits("dev"), 1);
    assert_eq!(lab.folders.pushes.load(Ordering::Relaxed), pushes);
    assert_eq!(lab.folders.fetches.load(Ordering::Relaxed), fetches);
}

#[tokio::test]
async fn a_change_touches_its_file_and_files_of_others_stay() {
    let lab = Lab::direct().await;
    lab.publish("drone/a-t=1 drone/b-t=1").await;
    lab.edit("dev", "docs/notes.md", Some("mine")).await;
    lab.edit("dev", "drone/a-t/extra.txt", Some("mine")).await;
    lab.edit("dev", ".github/workflows/x.yaml", Some("on: push")).await;
    let published = lab.publish("drone/a-t=2 drone/b-t=1").await;
    assert!(published.foreign.is_empty());
    assert_eq!(git(&lab.folders.origin, &["diff", "--name-only", "dev~1", "dev"]), "drone/a-t/platform-config.yaml");
    assert_eq!(lab.files("dev")["drone/a-t/platform-config.yaml"], "value: 2");
    lab.publish("drone/b-t=1").await;
    let files = lab.files("dev");
    assert!(!files.contains_key("drone/a-t/reconciler.yaml"));
    for path in ["docs/notes.md", "drone/a-t/extra.txt", ".github/workflows/x.yaml"] {
        assert!(files.contains_key(path), "{path}");
    }
}

#[tokio::test]
async fn a_folder_without_files_is_gone() {
    let lab = Lab::direct().await;
    lab.publish("drone/a-t drone/b-t large/").await;
    lab.publish("drone/b-t").await;
    assert_eq!(git(&lab.folders.origin, &["ls-tree", "--name-only", "dev", "drone/"]), "drone/README.md\ndrone/b-t");
    assert_eq!(git(&lab.folders.origin, &["ls-tree", "--name-only", "dev"]), ".github\ndrone");
    git(&lab.folders.origin, &["fsck", "--strict"]);
}

#[tokio::test]
async fn a_branch_that_moved_is_built_upon() {
    let lab = Lab::direct().await;
    lab.publish("drone/a-t=1").await;
    let work = lab.clone("dev");
    std::fs::write(work.join("notes.md"), "mine").unwrap();
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-q", "-m", "Notes"]);
    *lab.folders.race.lock().unwrap() = Some((work, "dev".to_owned()));
    let published = lab.publish("drone/a-t=2").await;
    assert_eq!(committed(&published), lab.head("dev"));
    assert_eq!(lab.commits("dev"), 3);
    let files = lab.files("dev");
    assert_eq!((files["notes.md"].as_str(), files["drone/a-t/platform-config.yaml"].as_str()), ("mine", "value: 2"));
}

#[tokio::test]
async fn a_push_whose_answer_was_lost_is_recognised_as_done() {
    let mut lab = Lab::direct().await;
    lab.publish("drone/a-t=1").await;
    lab.folders.lose_answer.store(true, Ordering::Relaxed);
    let error = lab.try_publish(&schedule("drone/a-t=2")).await.unwrap_err();
    assert_eq!(error.next(), Next::Retry(None));
    for _ in 0..2 {
        lab.restart();
        assert_eq!(lab.publish("drone/a-t=2").await.outcome, Outcome::Unchanged);
        assert_eq!(lab.commits("dev"), 2);
    }
    assert_eq!(
        lab.store.publications("dev", 9).await.unwrap()[0].state,
        crate::store::publish::PublicationState::Published
    );
}

#[tokio::test]
async fn a_schedule_that_went_back_during_an_interruption_is_published() {
    let mut lab = Lab::direct().await;
    lab.publish("drone/a-t=1").await;
    lab.folders.lose_answer.store(true, Ordering::Relaxed);
    lab.try_publish(&schedule("drone/a-t=2")).await.unwrap_err();
    lab.restart();
    let published = lab.publish("drone/a-t=1").await;
    assert!(published.foreign.is_empty());
    committed(&published);
    assert_eq!(lab.files("dev")["drone/a-t/platform-config.yaml"], "value: 1");
}

#[tokio::test]
async fn a_commit_that_never_arrived_is_made_again() {
    let mut lab = Lab::direct().await;
    lab.publish("drone/a-t=1").await;
    lab.folders.refuse.store(true, Ordering::Relaxed);
    let error = lab.try_publish(&schedule("drone/a-t=2")).await.unwrap_err();
    assert_eq!(error.next(), Next::Wait);
    assert!(error.hint().unwrap().contains("pull-request"));
    lab.folders.refuse.store(false, Ordering::Relaxed);
    lab.restart();
    committed(&lab.publish("drone/a-t=2").await);
    assert_eq!(lab.commits("dev"), 2);
}

#[tokio::test]
async fn a_hand_edit_is_delivered_and_flagged_until_the_schedule_changes_that_file() {
    let lab = Lab::direct().await;
    lab.publish("drone/a-t=1 drone/b-t=1").await;
    lab.edit("dev", "drone/a-t/platform-config.yaml", Some("value: by hand\n")).await;
    let by_hand = lab.head("dev");
    for words in ["drone/a-t=1 drone/b-t=1", "drone/a-t=1 drone/b-t=2"] {
        let published = lab.publish(words).await;
        let told: Vec<_> = published.foreign.iter().map(|edit| (&*edit.path, &*edit.commit, &*edit.author)).collect();
        assert_eq!(told, [("drone/a-t/platform-config.yaml", &*by_hand, "Ann")]);
        assert_eq!(lab.files("dev")["drone/a-t/platform-config.yaml"], "value: by hand");
        assert_eq!(published.head.unwrap().commit, lab.head("dev"));
    }
    let published = lab.publish("drone/a-t=3 drone/b-t=2").await;
    assert!(published.foreign.is_empty() && lab.store.hand_edits("dev").await.unwrap().is_empty());
    assert_eq!(lab.files("dev")["drone/a-t/platform-config.yaml"], "value: 3");
}

#[tokio::test]
async fn files_that_people_add_or_delete_by_hand_stay_so() {
    let mut lab = Lab::direct().await;
    lab.publish("drone/a-t=1 drone/b-t=1").await;
    lab.edit("dev", "drone/c-t/reconciler.yaml", Some("name: c-t\n")).await;
    lab.edit("dev", "drone/a-t/namespace.yaml", None).await;
    lab.restart();
    let published = lab.publish("drone/a-t=1 drone/b-t=2").await;
    let told: Vec<_> = published.foreign.iter().map(|edit| &*edit.path).collect();
    assert_eq!(told, ["drone/a-t/namespace.yaml", "drone/c-t/reconciler.yaml"]);
    let files = lab.files("dev");
    assert!(files.contains_key("drone/c-t/reconciler.yaml") && !files.contains_key("drone/a-t/namespace.yaml"));
    // Removed by the schedule, it goes whatever people did to it.
    lab.publish("drone/b-t=2 drone/d-t").await;
    assert!(!lab.files("dev").keys().any(|path| path.starts_with("drone/a-t/")));
}

#[tokio::test]
async fn a_removal_of_more_than_half_waits_per_cluster_type_and_others_go_on() {
    let lab = Lab::direct().await;
    lab.publish(&format!("{TEN} large/x-t=1")).await;
    let before = lab.files("dev");
    let published = lab.publish("drone/a-t=2 drone/new-t=1 large/x-t=2").await;
    committed(&published);
    assert_eq!(published.waiting["drone"].gone.len(), 9);
    let after = lab.files("dev");
    for (path, text) in before.iter().filter(|(path, _)| path.starts_with("drone/")) {
        assert_eq!(after.get(path), Some(text));
    }
    assert!(!after.contains_key("drone/new-t/reconciler.yaml"));
    assert_eq!(after["large/x-t/platform-config.yaml"], "value: 2");
    assert_eq!(lab.store.confirmed_size("dev", "drone").await.unwrap(), Some(10));

    let nobody = lab.publisher.confirm("dev", "large", "ann", None).await.unwrap_err();
    assert!(matches!(nobody, PublishError::NothingWaits { .. }));
    lab.publisher.confirm("dev", "drone", "ann", None).await.unwrap();
    assert_eq!(lab.store.approved_environments().await.unwrap(), ["dev"]);
    let published = lab.publish("drone/a-t=2 drone/new-t=1 large/x-t=2").await;
    assert!(published.waiting.is_empty());
    assert_eq!(lab.files("dev").keys().filter(|path| path.starts_with("drone/")).count(), 7);
    assert_eq!(lab.store.confirmed_size("dev", "drone").await.unwrap(), Some(2));
    assert!(lab.store.waiting_removals(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_confirmation_covers_what_was_shown_and_nothing_more() {
    let mut lab = Lab::direct().await;
    lab.publish(TEN).await;
    lab.publish("drone/a-t=1 drone/b-t=1").await;
    lab.publisher.confirm("dev", "drone", "ann", None).await.unwrap();
    lab.restart();
    let published = lab.publish("drone/a-t=1").await;
    assert_eq!(published.waiting["drone"].gone.len(), 9);
    assert_eq!(lab.commits("dev"), 1);
    committed(&lab.publish("drone/a-t=1 drone/b-t=1").await);
}

#[tokio::test]
async fn removals_in_small_steps_add_up() {
    let lab = Lab::direct().await;
    lab.publish(TEN).await;
    let words: Vec<&str> = TEN.split(' ').collect();
    for left in (5..10).rev() {
        assert!(lab.publish(&words[..left].join(" ")).await.waiting.is_empty(), "{left}");
    }
    assert_eq!(lab.publish(&words[..4].join(" ")).await.waiting["drone"].of, 10);
}

#[tokio::test]
async fn a_cluster_type_that_is_gone_waits_too() {
    let lab = Lab::direct().await;
    lab.publish("drone/a-t=1 large/x-t=1").await;
    let published = lab.publish("large/x-t=1").await;
    assert_eq!((published.outcome, published.waiting["drone"].of), (Outcome::Unchanged, 1));
    assert!(lab.files("dev").contains_key("drone/README.md"));
}

#[tokio::test]
async fn a_branch_from_before_is_guarded_from_the_first_publish_on() {
    let lab = Lab::direct().await;
    lab.publish(TEN).await;
    // As with another database: nothing is known of what was published.
    let other = Store::open(&format!("sqlite:{}", lab.folder.path().join("other.db").display())).await.unwrap();
    let remote = Arc::clone(&lab.folders) as Arc<dyn Remote>;
    let lab = Lab { publisher: Publisher::over(remote, other.clone(), &lab.config), store: other, ..lab };
    assert_eq!(lab.publish("drone/a-t=1").await.waiting["drone"].gone.len(), 9);
    // And what is the same already is taken over without a commit.
    assert_eq!(lab.publish(TEN).await.outcome, Outcome::Unchanged);
    lab.edit("dev", "drone/a-t/platform-config.yaml", Some("by hand")).await;
    assert_eq!(lab.publish(TEN).await.foreign.len(), 1);
}

#[tokio::test]
async fn a_quarantined_assignment_keeps_its_files_and_counts_as_there() {
    let lab = Lab::direct().await;
    lab.publish("drone/a-t=1 drone/b-t=1 drone/c-t=1").await;
    let mut broken = schedule("drone/a-t=2");
    for target in ["b-t", "c-t"] {
        let reason = Problem::error("TemplateFails", "it can't be rendered");
        let quarantined = assignment("drone", target, Rendered::Quarantined(vec![reason]));
        broken.assignments.insert(quarantined.id.clone(), Arc::new(quarantined));
    }
    let published = lab.try_publish(&broken).await.unwrap();
    assert!(published.waiting.is_empty());
    let files = lab.files("dev");
    assert_eq!(files["drone/a-t/platform-config.yaml"], "value: 2");
    assert!(files.contains_key("drone/b-t/reconciler.yaml"));
    assert_eq!(lab.publish("drone/a-t=2 drone/b-t=1 drone/c-t=1").await.outcome, Outcome::Unchanged);
}

#[tokio::test]
async fn another_branch_starts_anew() {
    let mut lab = Lab::direct().await;
    lab.publish("drone/a-t=1").await;
    lab.target.branch = "dev2".to_owned();
    committed(&lab.publish("drone/a-t=1").await);
    assert_eq!(lab.files("dev2"), lab.files("dev"));
    lab.target.branch = "dev".to_owned();
    assert_eq!(lab.publish("drone/a-t=1").await.outcome, Outcome::Unchanged);
}

#[tokio::test]
async fn a_branch_that_was_deleted_is_published_anew() {
    let lab = Lab::direct().await;
    lab.publish(TEN).await;
    git(&lab.folders.origin, &["branch", "-D", "dev"]);
    lab.folders.fetch("", "dev").await.unwrap();
    let published = lab.publish(TEN).await;
    assert_eq!((committed(&published), published.foreign.len()), (&*lab.head("dev"), 0));
    assert_eq!(lab.files("dev").len(), 32);
    // And the guard hasn't forgotten.
    git(&lab.folders.origin, &["branch", "-D", "dev"]);
    lab.folders.fetch("", "dev").await.unwrap();
    let published = lab.publish("drone/a-t=1").await;
    assert_eq!((published.head, published.waiting["drone"].gone.len()), (None, 9));
}

#[tokio::test]
async fn a_stale_leader_pushes_nothing() {
    let lab = Lab::direct().await;
    lab.publish("drone/a-t=1").await;
    let wanted = schedule("drone/a-t=2");
    let job = PublishJob { environment: "dev", target: &lab.target, schedule: &wanted, delta: None, causes: &[] };
    assert!(lab.publisher.publish(Term(7), job).await.is_err());
    assert_eq!(lab.commits("dev"), 1);
}

#[tokio::test]
async fn a_mirror_that_cannot_be_written_publishes_nothing() {
    let lab = Lab::direct().await;
    lab.publish("drone/a-t=1").await;
    // A file where a folder of objects should be: writing fails for root too.
    let objects = lab.folders.mirror.join("objects");
    for first in 0..=255 {
        let place = objects.join(format!("{first:02x}"));
        if !place.exists() {
            std::fs::write(place, "full").unwrap();
        }
    }
    let many: Vec<String> = (0..200).map(|number| format!("drone/n{number}-t={number}")).collect();
    let error = lab.try_publish(&schedule(&format!("drone/a-t=1 {}", many.join(" ")))).await.unwrap_err();
    assert!(matches!(error, PublishError::Tree(TreeError::Write { .. })), "{error:?}");
    assert_eq!(error.next(), Next::Retry(None));
    assert_eq!(lab.commits("dev"), 1);
}

#[tokio::test]
async fn one_value_writes_one_file_three_folders_and_a_commit() {
    let size: usize = std::env::var("KEDGE_TEST_ASSIGNMENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let lab = Lab::direct().await;
    let word = |number: usize| format!("type{}/w{number}-t={number}", number % 10);
    let words: Vec<String> = (0..size).map(word).collect();
    let mut schedule = schedule(&words.join(" "));
    lab.try_publish(&schedule).await.unwrap();
    let count = || {
        let told = git(&lab.folders.mirror, &["count-objects", "-v"]);
        let number = |name: &str| -> usize {
            let line = told.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().parse().unwrap()
        };
        number("count:") + number("in-pack:")
    };
    for value in ["other", "another"] {
        let before = count();
        schedule.assignments.extend(super::fixture::schedule(&format!("type7/w7-t={value}")).assignments);
        let start = std::time::Instant::now();
        lab.try_publish(&schedule).await.unwrap();
        println!("{size} assignments, one changed: {:?}", start.elapsed());
        assert_eq!(count(), before + 5);
    }
    assert_eq!(git(&lab.folders.origin, &["diff", "--name-only", "dev~1", "dev"]), "type7/w7-t/platform-config.yaml");
}
