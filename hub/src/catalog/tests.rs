//! Rows follow the schedule: what differs is written, and nothing else.

use kedge_model::{Kind as ObjectKind, ObjectId};
use kedge_scheduler::Change;

use super::testing::{finding, notes, overridden, region, scheduler};
use super::*;
use crate::store::catalog::{Filter, Visible};

/// The same test on SQLite and, where `KEDGE_TEST_POSTGRES` names a server, on PostgreSQL.
macro_rules! on_each_database {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            #[tokio::test]
            async fn sqlite() {
                let (_folder, store) = crate::store::test_database::sqlite().await;
                super::$name(store).await;
            }

            #[tokio::test]
            async fn postgres() {
                if let Some(store) = crate::store::test_database::postgres().await {
                    super::$name(store).await;
                }
            }
        })+
    };
}

async fn names(store: &Store, kind: Kind, after: Option<i64>) -> Vec<String> {
    let filter = Filter { after, limit: 1000, ..Filter::default() };
    let (shown, _) = store.catalog_page(kind, &Visible::All, &filter).await.unwrap();
    shown.into_iter().map(|shown| shown.name).collect()
}

async fn a_platform_becomes_rows(store: Store) {
    update(&store, Term(0), "dev", &scheduler(), None, &notes()).await.unwrap();
    assert_eq!(
        names(&store, Kind::Assignment, None).await,
        ["drone/hello-functional-test", "drone/spy-functional-test", "large/hello-functional-test"]
    );
    assert_eq!(names(&store, Kind::ClusterType, None).await, ["drone", "large"]);
    assert_eq!(names(&store, Kind::Workload, None).await, ["hello", "spy"]);
    assert_eq!(names(&store, Kind::DeploymentTarget, None).await, ["hello-functional-test", "spy-functional-test"]);
    assert_eq!(names(&store, Kind::Environment, None).await, ["dev"]);
    assert_eq!(names(&store, Kind::Repository, None).await.len(), 2);
    assert!(names(&store, Kind::Problem, None).await.len() >= 2, "the quarantine and the notice");
}

async fn comparing_everything_again_writes_nothing(store: Store) {
    update(&store, Term(0), "dev", &scheduler(), None, &notes()).await.unwrap();
    let before = store.current_tick().await.unwrap();
    update(&store, Term(0), "dev", &scheduler(), None, &notes()).await.unwrap();
    assert_eq!(store.current_tick().await.unwrap(), before);
}

async fn a_changed_value_writes_the_assignments_that_have_it(store: Store) {
    let mut scheduler = scheduler();
    update(&store, Term(0), "dev", &scheduler, None, &notes()).await.unwrap();
    let before = store.current_tick().await.unwrap();
    let delta = scheduler.update([region("far-west")]);
    update(&store, Term(0), "dev", &scheduler, Some(&delta), &CatalogNotes::default()).await.unwrap();
    assert_eq!(store.current_tick().await.unwrap(), before + 1, "one transaction");
    assert_eq!(
        names(&store, Kind::Assignment, Some(before)).await,
        ["drone/hello-functional-test", "drone/spy-functional-test"]
    );
    assert!(names(&store, Kind::Workload, Some(before)).await.is_empty());
    let known = store.catalog_row(Kind::Assignment, &Visible::All, "dev", "drone/hello-functional-test").await.unwrap();
    assert!(known.unwrap().values.contains("far-west"));
    // The environment remembers what it wasn't told again.
    let known = store.catalog_row(Kind::Environment, &Visible::All, "dev", "dev").await.unwrap().unwrap();
    let view: EnvironmentSummary = serde_json::from_str(&known.shown.body).unwrap();
    assert_eq!(view.publish.unwrap().outcome, "committed");
    assert_eq!(view.totals.unwrap().quarantined, 1);
}

async fn a_value_that_loses_is_written_where_it_changes_nothing_else(store: Store) {
    let mut scheduler = scheduler();
    update(&store, Term(0), "dev", &scheduler, None, &notes()).await.unwrap();
    let before = store.current_tick().await.unwrap();
    let delta = scheduler.update([overridden("anywhere")]);
    assert!(delta.changed.iter().all(|assignment| &*assignment.id.cluster_type != "drone"), "REGION is west there");
    update(&store, Term(0), "dev", &scheduler, Some(&delta), &CatalogNotes::default()).await.unwrap();
    let known = store.catalog_row(Kind::Assignment, &Visible::All, "dev", "drone/hello-functional-test").await.unwrap();
    let values: serde_json::Value = serde_json::from_str(&known.unwrap().values).unwrap();
    let region = values.as_array().unwrap().iter().find(|value| value["key"] == "REGION").unwrap();
    let lost = &region["candidates"][0];
    assert_eq!((lost["text"].as_str(), lost["origin"]["line"].as_u64()), (Some("anywhere"), Some(7)));
    assert_eq!(region["value"], "west");
    assert!(store.current_tick().await.unwrap() > before);
    let written = store.current_tick().await.unwrap();
    let delta = scheduler.update([overridden("anywhere")]);
    assert!(!delta.same.is_empty());
    update(&store, Term(0), "dev", &scheduler, Some(&delta), &CatalogNotes::default()).await.unwrap();
    assert_eq!(store.current_tick().await.unwrap(), written, "nothing is written twice");
}

async fn what_a_delta_removes_is_gone_and_watchers_hear_of_it(store: Store) {
    let mut scheduler = scheduler();
    update(&store, Term(0), "dev", &scheduler, None, &notes()).await.unwrap();
    let before = store.current_tick().await.unwrap();
    let large = ObjectId { kind: ObjectKind::ClusterType, owner: None, name: "large".to_owned() };
    let delta = scheduler.update([Change::Remove(large)]);
    update(&store, Term(0), "dev", &scheduler, Some(&delta), &CatalogNotes::default()).await.unwrap();
    assert_eq!(names(&store, Kind::ClusterType, None).await, ["drone"]);
    let filter = Filter::default();
    let gone = store.catalog_gone(Kind::Assignment, &Visible::All, &filter, before).await.unwrap().unwrap();
    assert_eq!(gone.into_iter().map(|gone| gone.name).collect::<Vec<_>>(), ["large/hello-functional-test"]);
    let gone = store.catalog_gone(Kind::Problem, &Visible::All, &filter, before).await.unwrap().unwrap();
    assert!(!gone.is_empty(), "its problems go with it");
}

async fn a_full_comparison_mends_what_a_lost_delta_left(store: Store) {
    let mut scheduler = scheduler();
    update(&store, Term(0), "dev", &scheduler, None, &notes()).await.unwrap();
    scheduler.update([region("far-west")]);
    update(&store, Term(0), "dev", &scheduler, None, &CatalogNotes::default()).await.unwrap();
    let known = store.catalog_row(Kind::Assignment, &Visible::All, "dev", "drone/spy-functional-test").await.unwrap();
    assert!(known.unwrap().values.contains("far-west"));
    let values: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM catalog_values").fetch_one(store.pool()).await.unwrap();
    assert_eq!(values, 2, "one for each cluster type; those of before are collected");
}

async fn packing_quarantines_and_mends_without_touching_the_schedule(store: Store) {
    let mut scheduler = scheduler();
    update(&store, Term(0), "dev", &scheduler, None, &notes()).await.unwrap();
    let name = "drone/hello-functional-test".to_owned();
    let broken = finding("KustomizeMissing", "kustomize isn't installed");
    let quarantine = CatalogNotes {
        pack_quarantines: Some(BTreeMap::from([(name.clone(), vec![broken])])),
        ..CatalogNotes::default()
    };
    let nothing = Delta::default();
    update(&store, Term(0), "dev", &scheduler, Some(&nothing), &quarantine).await.unwrap();
    let filter = Filter { state: Some("quarantined".to_owned()), limit: 10, ..Filter::default() };
    let (shown, _) = store.catalog_page(Kind::Assignment, &Visible::All, &filter).await.unwrap();
    assert_eq!(shown.len(), 2);
    // A change of its values keeps the note, an end of it takes it away.
    let delta = scheduler.update([region("far-west")]);
    update(&store, Term(0), "dev", &scheduler, Some(&delta), &CatalogNotes::default()).await.unwrap();
    let (shown, _) = store.catalog_page(Kind::Assignment, &Visible::All, &filter).await.unwrap();
    assert_eq!(shown.len(), 2);
    let mended = CatalogNotes { pack_quarantines: Some(BTreeMap::new()), ..CatalogNotes::default() };
    update(&store, Term(0), "dev", &scheduler, Some(&nothing), &mended).await.unwrap();
    let (shown, _) = store.catalog_page(Kind::Assignment, &Visible::All, &filter).await.unwrap();
    assert_eq!(shown.len(), 1);
    let filter = Filter { name_prefix: Some("pack-".to_owned()), limit: 10, ..Filter::default() };
    assert!(store.catalog_page(Kind::Problem, &Visible::All, &filter).await.unwrap().0.is_empty());
}

async fn a_leader_whose_term_is_over_writes_nothing(store: Store) {
    let outcome = update(&store, Term(9), "dev", &scheduler(), None, &notes()).await;
    assert!(matches!(outcome, Err(StoreError::Fenced(Term(9)))));
    assert!(names(&store, Kind::Assignment, None).await.is_empty());
}

async fn an_environment_that_is_gone_leaves_no_row(store: Store) {
    update(&store, Term(0), "dev", &scheduler(), None, &notes()).await.unwrap();
    forget(&store, Term(0), "dev").await.unwrap();
    for table in ["catalog", "catalog_values"] {
        let count = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}")));
        assert_eq!(count.fetch_one(store.pool()).await.unwrap(), 0, "{table}");
    }
    update(&store, Term(0), "dev", &scheduler(), Some(&Delta::default()), &notes()).await.unwrap();
    assert_eq!(names(&store, Kind::ClusterType, None).await, ["drone", "large"], "it may come back");
}

async fn an_update_can_run_in_a_task_of_its_own(store: Store) {
    let scheduler = scheduler();
    let task = tokio::spawn(async move { update(&store, Term(0), "dev", &scheduler, None, &notes()).await });
    task.await.unwrap().unwrap();
}

on_each_database! {
    a_platform_becomes_rows,
    comparing_everything_again_writes_nothing,
    a_changed_value_writes_the_assignments_that_have_it,
    a_value_that_loses_is_written_where_it_changes_nothing_else,
    what_a_delta_removes_is_gone_and_watchers_hear_of_it,
    a_full_comparison_mends_what_a_lost_delta_left,
    packing_quarantines_and_mends_without_touching_the_schedule,
    a_leader_whose_term_is_over_writes_nothing,
    an_environment_that_is_gone_leaves_no_row,
    an_update_can_run_in_a_task_of_its_own,
}
