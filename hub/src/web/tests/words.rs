//! What people say on pages: first what it will do, then the word, by a form of ours, by who may.

use axum::http::{StatusCode, header};
use kedge_model::kinds::Offline;
use kedge_model::wire::Timestamp;
use kedge_rollout::Phase;

use super::browser::Browser;
use crate::api::tests::fixture::Hub;
use crate::api::tests::rollouts::{fleet, govern, leader, rolls};

async fn words(hub: &Hub) -> i64 {
    sqlx::query_scalar("SELECT COUNT(*) FROM rollout_words").fetch_one(hub.store.pool()).await.unwrap()
}

#[tokio::test]
async fn an_action_says_what_it_will_do_and_then_does_it() {
    let hub = Hub::new().await;
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    fleet(&hub).await;
    let mut browser = Browser::of(&hub, &hub.platform).await;
    let page = browser.page("/rollouts/7").await;
    for word in ["pause", "override", "abort", "rollback"] {
        assert!(page.contains(&format!("href=\"/rollouts/7/{word}\"")), "{word} is offered");
    }
    assert!(!page.contains("/rollouts/7/resume"), "what can't be done now isn't offered");
    let page = browser.page("/rollouts/7/rollback").await;
    assert!(page.contains("69 clusters now, 4 when they return"), "{page}");
    assert!(page.contains("in the audit log") && page.contains("required"));
    let page = browser.page("/rollouts/7/override").await;
    assert!(page.contains("Although it still waits for") && page.contains("2 of 4 minutes soaked"));
    let page = browser.page("/rollouts/7/pause").await;
    assert!(page.contains("27 clusters in rings ahead keep what they have"), "{page}");
    let csrf = browser.csrf().await;
    let refused = browser.post("/rollouts/7/pause", &[("reason", "lunch")]).await;
    assert_eq!((refused.status, words(&hub).await), (StatusCode::FORBIDDEN, 0));
    let taking = leader(&hub, None);
    let done = browser.post("/rollouts/7/pause", &[("csrf", &csrf), ("reason", "lunch")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(done.headers[header::LOCATION], "/rollouts/7");
    assert_eq!(words(&hub).await, 1);
    let needed = browser.post("/rollouts/7/rollback", &[("csrf", &csrf), ("reason", " ")]).await;
    assert_eq!(needed.status, StatusCode::BAD_REQUEST);
    assert!(needed.text.contains("needs a written reason"));
    taking.abort();
}

#[tokio::test]
async fn who_may_not_act_gets_no_button_and_no_way_around() {
    let hub = Hub::new().await;
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    fleet(&hub).await;
    for token in [&hub.viewer, &hub.team] {
        let mut browser = Browser::of(&hub, token).await;
        let page = browser.page("/rollouts/7").await;
        assert!(!page.contains("/rollouts/7/pause") && !page.contains("class=\"actions\""));
        let asked = browser.page("/rollouts/7/pause").await;
        assert!(asked.contains("This isn't possible now") && !asked.contains("name=\"reason\""));
        let csrf = browser.csrf().await;
        let refused = browser.post("/rollouts/7/pause", &[("csrf", &csrf), ("reason", "mine")]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let refused = browser.post("/promotions/dev/promote", &[("csrf", &csrf)]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let refused = browser.post("/policy/approve", &[("csrf", &csrf)]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(words(&hub).await, 0);
}

#[tokio::test]
async fn what_has_ended_offers_only_the_way_back() {
    let hub = Hub::new().await;
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| rollout.phase = Phase::Complete { at: Timestamp(2000) }).await;
    let mut browser = Browser::of(&hub, &hub.platform).await;
    let page = browser.page("/rollouts/7").await;
    assert!(page.contains("/rollouts/7/rollback") && !page.contains("/rollouts/7/abort"));
    let asked = browser.page("/rollouts/7/pause").await;
    assert!(asked.contains("This isn't possible now"));
    assert_eq!(browser.get("/rollouts/7/nonsense").await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("/rollouts/8").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_pasted_plan_is_asked_of_the_hub_as_it_was_written() {
    let hub = Hub::new().await;
    let mut browser = Browser::of(&hub, &hub.platform).await;
    let csrf = browser.csrf().await;
    hub.services.asked();
    let fields = [("csrf", csrf.as_str()), ("environment", "dev"), ("path0", "a.yaml"), ("text0", "kind: \"<A>\"\r\n")];
    let answer = browser.post("/plan", &fields).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert!(answer.text.contains("<h2>Result</h2>") && answer.text.contains("&#60;A&#62;"));
    assert_eq!(hub.services.asked(), ["plan dev None None [\"a.yaml\"]"]);
    let mut team = Browser::of(&hub, &hub.team).await;
    let csrf = team.csrf().await;
    let answer = team.post("/plan", &[("csrf", &csrf), ("environment", "dev"), ("path0", "a"), ("text0", "")]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(answer.text.contains("push a branch and plan that"));
}
