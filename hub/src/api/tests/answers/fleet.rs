//! The glance: order, promoted commits, problems, and what a workload's own glance leaves out.

use kedge_model::kinds::{EnvironmentPolicy, Promoter, PromotionPolicy};
use kedge_model::wire::{Stream, Timestamp};
use kedge_rollout::{Promotion, PromotionPhase, Standing as Where};
use kedge_status::Condition;
use serde_json::json;

use super::{HELLO, Newcomer, SILENT_SINCE, SPY, Standing, failed, join, report};
use crate::api::fleet::chain;
use crate::api::page::moment;
use crate::api::tests::fixture::Hub;
use crate::store::Term;
use crate::store::promotion::{PolicyRow, PolicySlot, PromotionRow, PromotionSave};

fn policy() -> PromotionPolicy {
    let after = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let environments = vec![
        EnvironmentPolicy::new("prod", after(&["stage"])),
        EnvironmentPolicy::new("stage", after(&["dev"])),
        EnvironmentPolicy::new("dev", Vec::new()),
    ];
    PromotionPolicy { promoter: Promoter::Kedge, environments }
}

pub async fn promote(hub: &Hub) {
    let row = PolicyRow {
        policy: Some(policy().into()),
        digest: "d".to_owned(),
        commit: "c0".to_owned(),
        subject: "policy".to_owned(),
        author: "anna".to_owned(),
        reasons: Vec::new(),
        words: Vec::new(),
        since: Timestamp(0),
    };
    hub.store.save_policies(Term(0), &[(PolicySlot::Force, Some(&row))], &[], &[], Vec::new()).await.unwrap();
    let promotion = |commit: &str, subject: &str, phase| {
        let mut promotion: Promotion = serde_json::from_value(json!({
            "commit": commit, "subject": subject, "author": "Ada <ada@example.org>", "phase": {"phase": "waiting"}, "createdAt": 1000,
        }))
        .unwrap();
        promotion.phase = phase;
        promotion.entered_at = Some(Timestamp(2000));
        promotion
    };
    let mut waiting = promotion("beef1234", "slower", PromotionPhase::Waiting);
    waiting.waits_for = vec!["a window".to_owned()];
    let standing = Where {
        current: Some("c0ffee12".to_owned()),
        promotions: vec![waiting, promotion("c0ffee12", "faster", PromotionPhase::Passed)],
        refused: None,
    };
    let row = PromotionRow { standing, in_force: Some("c0ffee12".to_owned()), trouble: None };
    let save = PromotionSave { rows: [("dev".to_owned(), row)].into(), ..PromotionSave::default() };
    hub.store.save_promotions(Term(0), &save).await.unwrap();
}

#[test]
fn environments_stand_behind_those_they_come_after() {
    assert_eq!(chain(&policy()), ["dev", "stage", "prod"]);
    let mut circle = policy();
    circle.environments[2].after = vec!["prod".to_owned()];
    assert_eq!(chain(&circle).len(), 3);
}

async fn a_glance_shows_environments_along_the_chain(hub: Hub) {
    promote(&hub).await;
    for (number, environment) in (1..).zip(["prod", "elsewhere", "stage", "dev"]) {
        let stream = Stream::new(environment, "drone", Stream::ALL);
        let told = Some(vec![(HELLO, report(Condition::Converged, "new"))]);
        join(&hub, Newcomer { number, name: environment, stream, standing: Standing::Silent, told }).await;
    }
    let view = hub.get(&hub.viewer, "/fleet").await.ok().body;
    let environments = view["environments"].as_array().unwrap();
    let names: Vec<_> = environments.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dev", "stage", "prod", "elsewhere"]);
    let dev = &environments[0];
    assert_eq!((&dev["promotedCommit"], &dev["promotedSubject"]), (&json!("c0ffee12"), &json!("faster")));
    assert_eq!((&dev["promotion"], &dev["promotedAt"]), (&json!("Passed"), &json!(moment(2000))));
    assert_eq!(dev["next"], json!({"commit": "beef1234", "subject": "slower", "waitsFor": ["a window"]}));
    assert_eq!(dev["oldestUnknown"], moment(SILENT_SINCE));
    assert_eq!(dev["clusters"], json!({"known": 0, "unknown": 1, "total": 1, "joined": 0}));
    assert_eq!((&dev["quarantined"], &dev["problems"]["errors"]), (&json!(1), &view["problems"]["errors"]));
    assert_eq!(view["repositories"], json!({"good": 1, "failing": 1}));
    assert_eq!((&dev["order"], &environments[2]["after"]), (&json!(0), &json!(["stage"])));
    // What is the platform's isn't a team's to see.
    let own = hub.get(&hub.team, "/fleet").await.ok();
    assert!(!own.text.contains("c0ffee12") && !own.text.contains("elsewhere"), "{}", own.text);
    assert_eq!(own.body["repositories"], json!({"good": 1, "failing": 0}));
}

async fn a_workloads_glance_counts_its_own(hub: Hub) {
    let drones = Stream::new("dev", "drone", Stream::ALL);
    let told = Some(vec![(HELLO, report(Condition::Converged, "new")), (SPY, report(failed(), "old"))]);
    join(&hub, Newcomer { number: 1, name: "a", stream: drones, standing: Standing::InContact, told }).await;
    let other = Stream::new("dev", "other", Stream::ALL);
    join(&hub, Newcomer { number: 2, name: "b", stream: other, standing: Standing::InContact, told: None }).await;
    let of =
        async |query: &str| hub.get(&hub.viewer, &format!("/fleet{query}")).await.ok().body["environments"][0].clone();
    let all = of("").await;
    assert_eq!((&all["conditions"]["converged"], &all["conditions"]["failed"]), (&json!(1), &json!(1)));
    assert_eq!(all["clusters"]["total"], 2);
    let hello = of("?workload=hello&environment=dev").await;
    assert_eq!(hello["conditions"], json!({"converged": 1, "converging": 0, "failed": 0, "unknown": 0}));
    assert_eq!((&hello["clusters"]["total"], &hello["quarantined"]), (&json!(1), &json!(1)));
    let spy = of("?workload=spy").await;
    assert_eq!((&spy["conditions"]["failed"], &spy["quarantined"]), (&json!(1), &json!(0)));
}

on_each_database! {
    a_glance_shows_environments_along_the_chain,
    a_workloads_glance_counts_its_own,
}
