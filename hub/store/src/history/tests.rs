//! The log on both kinds of database: days, late entries, pages, and what goes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;

use kedge_hub_types::history::{Kind, Place, Recorded, What};
use kedge_model::wire::{ClusterId, Stream};
use proptest::prelude::*;
use tempfile::TempDir;

use super::page::{HistoryFilter, Reader};
use super::*;
use crate::{Term, test_database};

const DAY_MS: i64 = 24 * 3600 * 1000;
const TERM: Term = Term(0);

async fn databases() -> Vec<(Option<TempDir>, Store)> {
    let (folder, store) = test_database::sqlite().await;
    let mut all = vec![(Some(folder), store)];
    all.extend(test_database::postgres().await.map(|store| (None, store)));
    all
}

fn cluster(number: u8) -> ClusterId {
    ClusterId::of_public_key(&[number; 32])
}

fn drone() -> Stream {
    Stream::new("dev", "drone", Stream::ALL)
}

/// A failure of an assignment on a cluster, so long ago.
fn failed(ago: i64, target: &str, number: u8) -> Entry {
    let what = What::Condition {
        condition: "Failed".to_owned(),
        reason: Some("HealthCheck".to_owned()),
        message: None,
        version: None,
        running: None,
        desired: None,
    };
    Entry::new(Timestamp(now().0 - ago), Place::cluster(&drone(), cluster(number)).target(target), what)
}

fn owned(mut entry: Entry, workload: &str, workspace: &str) -> Entry {
    (entry.place.workload, entry.place.workspace) = (workload.to_owned(), workspace.to_owned());
    entry
}

fn written(token: &str, who: &str) -> Entry {
    let what = What::Audit {
        action: "cluster.move".to_owned(),
        object: "drone-1".to_owned(),
        role: "application".to_owned(),
        address: String::new(),
        result: "done".to_owned(),
        token: token.to_owned(),
        detail: serde_json::json!({}),
    };
    Entry::new(now(), Place::environment("dev"), what).by(who)
}

/// Every page one after the other.
async fn all(store: &Store, reader: &Reader, filter: HistoryFilter) -> Vec<Recorded> {
    let mut filter = HistoryFilter { limit: filter.limit.max(1), ..filter };
    let mut found = Vec::new();
    loop {
        let (page, next) = store.history_page(reader, &filter).await.unwrap();
        assert!(page.len() <= filter.limit);
        found.extend(page);
        filter.from = next;
        if next.is_none() {
            return found;
        }
    }
}

#[tokio::test]
async fn an_entry_is_in_the_day_it_happened_on_and_pages_go_from_the_newest_to_the_oldest() {
    for (_folder, store) in databases().await {
        store.record(vec![failed(0, "a-x", 1), failed(40 * DAY_MS, "b-x", 1)]).await.unwrap();
        store.record(vec![failed(3 * DAY_MS, "c-x", 2), failed(3 * DAY_MS, "d-x", 2)]).await.unwrap();
        let days = store.history_days().await.unwrap();
        let today = Day::of(now());
        assert_eq!(days.iter().map(|row| row.day).collect::<Vec<_>>(), [today, today.back(3), today.back(40)]);
        assert_eq!(days.iter().map(|row| row.entries).collect::<Vec<_>>(), [1, 2, 1]);
        let found = all(&store, &Reader::All, HistoryFilter { limit: 1, ..HistoryFilter::default() }).await;
        let names: Vec<&str> = found.iter().map(|one| one.place.assignment.as_str()).collect();
        assert_eq!(names, ["drone/a-x", "drone/d-x", "drone/c-x", "drone/b-x"]);
        assert_eq!(found.iter().map(Recorded::is_late).collect::<Vec<_>>(), [false, true, true, true]);
        assert_eq!(found[0].title(), "drone/a-x failed: HealthCheck");
    }
}

#[tokio::test]
async fn every_filter_finds_exactly_what_fits() {
    for (_folder, store) in databases().await {
        let shop = |ago, number| owned(failed(ago, "shop-x", number), "shop", "harbour");
        let spy = |ago, number| owned(failed(ago, "spy-x", number), "spy", "secret");
        let joined = Entry::new(now(), Place::cluster(&drone(), cluster(1)), What::Joined { name: "d".to_owned() });
        let promoted = What::Refused { why: "it hasn't passed dev".to_owned() };
        let promoted = Entry::new(now(), Place::environment("prod"), promoted).commit("3f2a91c0ffee").by("ann");
        let news = vec![shop(0, 1), shop(DAY_MS, 2), spy(0, 1), spy(2 * DAY_MS, 3), joined, promoted];
        store.record(news).await.unwrap();
        store.record(vec![written("t1", "harbour")]).await.unwrap();
        let any = HistoryFilter::default;
        let text = |text: &str| Some(text.to_owned());
        let since = Some(Timestamp(now().0 - DAY_MS / 2));
        for (filter, expected) in [
            (any(), 7),
            (HistoryFilter { workload: text("shop"), ..any() }, 2),
            (HistoryFilter { workload: text("shop"), cluster: text(&cluster(2).to_string()), ..any() }, 1),
            (HistoryFilter { cluster: text(&cluster(1).to_string()), ..any() }, 3),
            (HistoryFilter { environment: text("prod"), ..any() }, 1),
            (HistoryFilter { environment: text("dev"), cluster_type: text("drone"), ..any() }, 5),
            (HistoryFilter { assignment: text("drone/spy-x"), ..any() }, 2),
            (HistoryFilter { kinds: vec![Kind::Condition], ..any() }, 4),
            (HistoryFilter { kinds: vec![Kind::Cluster, Kind::Promotion], ..any() }, 2),
            (HistoryFilter { kinds: vec![Kind::Cluster], environment: text("prod"), ..any() }, 0),
            (HistoryFilter { who: text("ann"), ..any() }, 1),
            (HistoryFilter { commit: text("3f2a91c0ffee"), ..any() }, 1),
            (HistoryFilter { event: text("Failed"), since, ..any() }, 2),
            (HistoryFilter { event: text("Failed"), until: since, ..any() }, 2),
        ] {
            for limit in [1, 3, 100] {
                let filter = HistoryFilter { limit, ..filter.clone() };
                let found = all(&store, &Reader::All, filter.clone()).await;
                assert_eq!(found.len(), expected, "{filter:?}");
            }
        }
        assert_eq!(store.history_commit("3f2a91").await.unwrap().as_deref(), Some("3f2a91c0ffee"));
        assert_eq!(store.history_commit("3f2a92").await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_team_sees_its_workspaces_and_what_it_wrote_itself() {
    for (_folder, store) in databases().await {
        let news = vec![
            owned(failed(0, "shop-x", 1), "shop", "harbour"),
            owned(failed(DAY_MS, "till-x", 1), "till", "quay"),
            owned(failed(0, "spy-x", 1), "spy", "secret"),
            failed(0, "nobodys-x", 1),
            written("mine", "harbour"),
            written("theirs", "harbour"),
        ];
        store.record(news).await.unwrap();
        let reader = |workspaces: &[&str]| Reader::Team {
            workspaces: workspaces.iter().map(|name| (*name).to_owned()).collect(),
            token: "mine".to_owned(),
        };
        let many: Vec<String> = (0..40).map(|number| format!("w{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).chain(["harbour"]).collect();
        for (workspaces, expected) in [(vec!["harbour"], 2), (vec!["harbour", "quay"], 3), (many, 2), (vec![], 1)] {
            for environment in [None, Some("dev".to_owned())] {
                let filter = HistoryFilter { environment, limit: 2, ..HistoryFilter::default() };
                let found = all(&store, &reader(&workspaces), filter).await;
                assert_eq!(found.len(), expected, "{workspaces:?}");
                assert!(found.iter().all(|one| one.place.workspace != "secret"));
            }
        }
        let asked = HistoryFilter { workload: Some("spy".to_owned()), limit: 9, ..HistoryFilter::default() };
        assert!(all(&store, &reader(&["harbour"]), asked).await.is_empty());
    }
}

#[tokio::test]
async fn who_passes_entries_on_gets_each_once_in_the_order_of_recording() {
    for (_folder, store) in databases().await {
        store.record(vec![failed(0, "a-x", 1), failed(5 * DAY_MS, "b-x", 1)]).await.unwrap();
        let first = store.history_after(0, 1).await.unwrap();
        assert_eq!(first.iter().map(|one| one.place.assignment.as_str()).collect::<Vec<_>>(), ["drone/a-x"]);
        // What happened before it, and is told after it, comes after it.
        store.record(vec![failed(9 * DAY_MS, "c-x", 1)]).await.unwrap();
        let rest = store.history_after(first[0].id, 10).await.unwrap();
        assert_eq!(
            rest.iter().map(|one| one.place.assignment.as_str()).collect::<Vec<_>>(),
            ["drone/b-x", "drone/c-x"]
        );
        assert_eq!(store.newest_history().await.unwrap(), rest[1].id);
        assert!(store.history_after(rest[1].id, 10).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_day_that_was_let_go_stays_gone_and_what_is_too_old_is_not_written() {
    for (_folder, store) in databases().await {
        store.record(vec![failed(0, "a-x", 1), failed(5 * DAY_MS, "b-x", 1)]).await.unwrap();
        let old = store.history_days().await.unwrap()[1].day;
        store.drop_history_day(TERM, old).await.unwrap();
        store.record(vec![failed(5 * DAY_MS, "c-x", 1), failed(6 * DAY_MS, "d-x", 1)]).await.unwrap();
        assert_eq!(store.history_days().await.unwrap().len(), 1);
        store.keep_history(Duration::from_secs(3 * 86_400));
        store.record(vec![failed(4 * DAY_MS, "e-x", 1), failed(2 * DAY_MS, "f-x", 1)]).await.unwrap();
        let strange = Entry { at: Timestamp(i64::MAX), ..failed(0, "g-x", 1) };
        let before_time = Entry { at: Timestamp(i64::MIN), ..failed(0, "h-x", 1) };
        store.record(vec![strange, before_time]).await.unwrap();
        let found = all(&store, &Reader::All, HistoryFilter { limit: 9, ..HistoryFilter::default() }).await;
        let names: Vec<&str> = found.iter().map(|one| one.place.assignment.as_str()).collect();
        assert_eq!(names, ["drone/g-x", "drone/a-x", "drone/f-x"]);
        assert!(matches!(store.drop_history_day(Term(7), old).await, Err(StoreError::Fenced(_))));
    }
}

#[tokio::test]
async fn an_assignment_is_known_by_its_workload_and_team_also_after_it_is_gone() {
    let (_folder, store) = test_database::sqlite().await;
    let insert = "INSERT INTO catalog (kind, environment, name, parent, workspace, state, labels, body, detail, content, note, \
         digest, updated_at, tick) VALUES ('deployment-target', 'dev', 'shop-x', 'shop', 'harbour', '', '', '', '', '', '', '', 0, 0)";
    sqlx::query(insert).execute(store.pool()).await.unwrap();
    store.record(vec![failed(0, "shop-x", 1)]).await.unwrap();
    sqlx::query("DELETE FROM catalog").execute(store.pool()).await.unwrap();
    store.learn_owners("dev", [("new-x".to_owned(), Owner { workload: "new".into(), workspace: "quay".into() })]);
    store.record(vec![failed(0, "shop-x", 1), failed(0, "new-x", 1)]).await.unwrap();
    let rollout = Place { workload: "new".to_owned(), ..Place::environment("dev") };
    store.record(vec![Entry::new(now(), rollout, What::Back)]).await.unwrap();
    let found = all(&store, &Reader::All, HistoryFilter { limit: 9, ..HistoryFilter::default() }).await;
    let mut owners: Vec<(&str, &str)> =
        found.iter().map(|one| (one.place.workload.as_str(), one.place.workspace.as_str())).collect();
    owners.sort_unstable();
    assert_eq!(owners, [("new", "quay"), ("new", "quay"), ("shop", "harbour"), ("shop", "harbour")]);
}

#[tokio::test]
async fn more_entries_than_a_statement_takes_are_all_written() {
    for (_folder, store) in databases().await {
        let many: Vec<Entry> = (0..1000).map(|number| failed(number, &format!("a-{number}"), 1)).collect();
        store.record(many).await.unwrap();
        let days: i64 = store.history_days().await.unwrap().iter().map(|row| row.entries).sum();
        assert_eq!(days, 1000);
        let found = all(&store, &Reader::All, HistoryFilter { limit: 500, ..HistoryFilter::default() }).await;
        assert_eq!(found.len(), 1000);
        assert!(found.windows(2).all(|pair| (pair[0].at, pair[0].id) > (pair[1].at, pair[1].id)));
        let mut ids: Vec<i64> = found.iter().map(|one| one.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 1000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// While somebody pages, days come (late entries) and go (the oldest ones): what was there all the time comes exactly once.
    #[test]
    fn paging_shows_every_entry_once_and_in_order_while_days_come_and_go(
        ages in prop::collection::vec(0_i64..12 * DAY_MS, 1..60),
        late in prop::collection::vec(0_i64..12 * DAY_MS, 0..8),
        limit in 1_usize..9,
        drop_after in 0_usize..6,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_folder, store) = test_database::sqlite().await;
            for (index, age) in ages.iter().enumerate() {
                store.record(vec![failed(*age, &format!("old-{index}"), 1)]).await.unwrap();
            }
            let first = store.history_after(0, 1000).await.unwrap();
            let mut filter = HistoryFilter { limit, ..HistoryFilter::default() };
            let (mut found, mut late, mut pages) = (Vec::new(), late.clone(), 0);
            let mut dropped = None;
            loop {
                let (page, next) = store.history_page(&Reader::All, &filter).await.unwrap();
                found.extend(page);
                filter.from = next;
                pages += 1;
                if next.is_none() {
                    break;
                }
                if let Some(age) = late.pop() {
                    store.record(vec![failed(age, "late-x", 2)]).await.unwrap();
                }
                if pages == drop_after && let Some(oldest) = store.history_days().await.unwrap().last() {
                    store.drop_history_day(TERM, oldest.day).await.unwrap();
                    dropped = Some(oldest.day);
                }
            }
            assert!(found.windows(2).all(|pair| (pair[0].at, pair[0].id) > (pair[1].at, pair[1].id)));
            let mut times: BTreeMap<i64, usize> = BTreeMap::new();
            found.iter().for_each(|one| *times.entry(one.id).or_default() += 1);
            for one in &first {
                let seen = times.get(&one.id).copied().unwrap_or_default();
                let may_miss = dropped == Some(Day::of(one.at));
                assert!(seen == 1 || (seen == 0 && may_miss), "{} was seen {seen} times", one.place.assignment);
            }
        });
    }
}
