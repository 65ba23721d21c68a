//! Who waits for changes hears of them, and of what went.

use std::time::{Duration, Instant};

use kedge_model::{Kind, ObjectId};
use kedge_scheduler::Change;

use super::fixture::Hub;
use crate::catalog::testing::{region, scheduler};

async fn a_watch_ends_with_the_change_and_shows_only_that(hub: Hub) {
    let mut scheduler = scheduler();
    let tick = hub.get(&hub.viewer, "/assignments").await.ok().tick();
    let path = format!("/assignments?after={tick}&wait=20s");
    let change = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let delta = scheduler.update([region("far-west")]);
        hub.update(&scheduler, Some(&delta)).await;
    };
    let begun = Instant::now();
    let (answer, ()) = tokio::join!(hub.get(&hub.viewer, &path), change);
    assert_eq!(answer.names(), ["drone/hello-functional-test", "drone/spy-functional-test"]);
    assert!(answer.tick() > tick);
    assert!(begun.elapsed() < Duration::from_secs(5));
    let tick = answer.tick();
    let large = ObjectId { kind: Kind::ClusterType, owner: None, name: "large".to_owned() };
    let delta = scheduler.update([Change::Remove(large)]);
    hub.update(&scheduler, Some(&delta)).await;
    let answer = hub.get(&hub.team, &format!("/assignments?after={tick}&wait=20s")).await.ok();
    assert!(answer.names().is_empty());
    assert_eq!(answer.body["removed"][0]["name"], "large/hello-functional-test");
}

async fn a_watch_without_news_ends_empty_in_its_time(hub: Hub) {
    let tick = hub.get(&hub.viewer, "/clusters").await.ok().tick();
    let answer = hub.get(&hub.viewer, &format!("/clusters?after={tick}&wait=100ms")).await.ok();
    assert!(answer.names().is_empty());
    assert_eq!(answer.tick(), tick);
}

async fn a_watch_ends_at_once_when_the_hub_stops(hub: Hub) {
    let tick = hub.get(&hub.viewer, "/clusters").await.ok().tick();
    let path = format!("/clusters?after={tick}&wait=50s");
    let begun = Instant::now();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        hub.stop.send_replace(true);
    };
    let (answer, ()) = tokio::join!(hub.get(&hub.viewer, &path), stop);
    assert!(answer.ok().names().is_empty());
    assert!(begun.elapsed() < Duration::from_secs(5));
}

async fn a_watch_of_a_revoked_token_ends_within_two_seconds(hub: Hub) {
    let tick = hub.get(&hub.viewer, "/clusters").await.ok().tick();
    let id = hub.get(&hub.viewer, "/whoami").await.ok().body["token"].as_str().unwrap().to_owned();
    for (list, revoked) in [("clusters", false), ("clusters", true), ("environments", true)] {
        let path = format!("/{list}?after={tick}&wait={}", if revoked { "50s" } else { "2s" });
        let begun = Instant::now();
        let revoke = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if revoked {
                let sql = "UPDATE api_tokens SET revoked_at = 1 WHERE id = $1";
                sqlx::query(sql).bind(&id).execute(hub.store.pool()).await.unwrap();
            }
        };
        let (answer, ()) = tokio::join!(hub.get(&hub.viewer, &path), revoke);
        match revoked {
            true => drop(answer.refused(401, "TokenRevoked")),
            false => assert!(answer.ok().names().is_empty(), "a token that is good waits on"),
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
        sqlx::query("UPDATE api_tokens SET revoked_at = NULL").execute(hub.store.pool()).await.unwrap();
    }
}

async fn a_watch_that_was_away_too_long_begins_again(hub: Hub) {
    let mut tx = hub.store.write().await.unwrap();
    let floor = sqlx::query("INSERT INTO meta (name, value) VALUES ('catalog.floor', '1000')");
    floor.execute(tx.connection()).await.unwrap();
    sqlx::query("UPDATE ticks SET value = 2000").execute(tx.connection()).await.unwrap();
    tx.commit().await.unwrap();
    tokio::time::sleep(crate::api::ticks::FRESH).await;
    hub.get(&hub.viewer, "/assignments?after=10").await.refused(410, "TooOld");
}

on_each_database! {
    a_watch_ends_with_the_change_and_shows_only_that,
    a_watch_without_news_ends_empty_in_its_time,
    a_watch_ends_at_once_when_the_hub_stops,
    a_watch_of_a_revoked_token_ends_within_two_seconds,
    a_watch_that_was_away_too_long_begins_again,
}
