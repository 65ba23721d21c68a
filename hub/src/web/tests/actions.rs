//! What people do on the pages of the fleet: each first says what it will do, and is done by the caller's own right.

use axum::http::{StatusCode, header};

use super::browser::Browser;
use crate::api::tests::fixture::Hub;

const HELLO: &str = "hello-functional-test";
const SPY: &str = "spy-functional-test";

#[tokio::test]
async fn a_hold_says_what_it_will_do_and_is_then_done() {
    let hub = Hub::new().await;
    let id = hub.cluster(1, "drone-1", "drone", "{}").await;
    let (page, path) = (format!("/clusters/{id}"), format!("/clusters/{id}/hold"));
    let mut browser = Browser::of(&hub, &hub.platform).await;
    assert!(browser.page(&page).await.contains(&format!("{path}?assignment={HELLO}")));
    let ask = browser.page(&format!("{path}?assignment={HELLO}")).await;
    assert!(ask.contains("Nothing of hello-functional-test is changed, repaired or removed on drone-1"), "{ask}");
    let answer = browser.post(&path, &[("assignment", HELLO), ("reason", "a new sensor")]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "without our word nothing is done");
    let csrf = browser.csrf().await;
    let fields = [("csrf", csrf.as_str()), ("assignment", HELLO), ("reason", "a new sensor")];
    let answer = browser.post(&path, &fields).await;
    assert_eq!(
        (answer.status, answer.headers[header::LOCATION].to_str().unwrap()),
        (StatusCode::SEE_OTHER, page.as_str())
    );
    assert_eq!(hub.services.asked(), [format!("anna holds {HELLO} on {id}"), format!("changed {id}")]);
    let audit = hub.get(&hub.platform, "/audit").await.ok();
    assert!(audit.text.contains("cluster.hold") && audit.text.contains("a new sensor"), "{}", audit.text);
}

#[tokio::test]
async fn who_may_not_hold_sees_no_way_to() {
    let hub = Hub::new().await;
    let id = hub.cluster(1, "drone-1", "drone", "{}").await;
    let path = format!("/clusters/{id}/hold");
    let mut viewer = Browser::of(&hub, &hub.viewer).await;
    assert!(!viewer.page(&format!("/clusters/{id}")).await.contains("Hold…"));
    assert_eq!(viewer.get(&format!("{path}?assignment={HELLO}")).await.status, StatusCode::FORBIDDEN);
    let csrf = viewer.csrf().await;
    let answer = viewer.post(&path, &[("csrf", &csrf), ("assignment", HELLO)]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let mut team = Browser::of(&hub, &hub.team).await;
    let page = team.page(&format!("/clusters/{id}")).await;
    assert!(page.contains(&format!("{path}?assignment={HELLO}")) && !page.contains(SPY), "{page}");
    let csrf = team.csrf().await;
    let answer = team.post(&path, &[("csrf", &csrf), ("assignment", SPY)]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
    assert!(hub.services.asked().is_empty());
}

#[tokio::test]
async fn what_nobody_holds_can_not_be_released() {
    let hub = Hub::new().await;
    let id = hub.cluster(1, "drone-1", "drone", "{}").await;
    let mut browser = Browser::of(&hub, &hub.platform).await;
    let answer = browser.get(&format!("/clusters/{id}/release?assignment={HELLO}")).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.text.contains("kedge-agent unhold"), "{}", answer.text);
    let csrf = browser.csrf().await;
    let fields = [("csrf", csrf.as_str()), ("assignment", HELLO)];
    let answer = browser.post(&format!("/clusters/{id}/release"), &fields).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "a hold that came meanwhile is released");
}

#[tokio::test]
async fn removals_are_confirmed_by_the_platform_team_after_they_are_listed() {
    let hub = Hub::new().await;
    let path = "/environments/dev/confirm/drone";
    let mut browser = Browser::of(&hub, &hub.platform).await;
    assert!(browser.page("/problems").await.contains(path) && browser.page("/environments/dev").await.contains(path));
    let ask = browser.page(path).await;
    assert!(ask.contains("1 of 1 assignments are removed") && ask.contains("drone/x"), "{ask}");
    let csrf = browser.csrf().await;
    let answer = browser.post(path, &[("csrf", &csrf)]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert_eq!(hub.services.asked(), ["anna confirms dev/drone"]);
    assert_eq!(browser.get("/environments/dev/confirm/large").await.status, StatusCode::CONFLICT);
    for token in [&hub.viewer, &hub.team] {
        let mut other = Browser::of(&hub, token).await;
        assert_eq!(other.get(path).await.status, StatusCode::FORBIDDEN);
        assert!(!other.page("/problems").await.contains(path));
        let csrf = other.csrf().await;
        assert_eq!(other.post(path, &[("csrf", &csrf)]).await.status, StatusCode::FORBIDDEN);
    }
    assert!(hub.services.asked().is_empty());
}

#[tokio::test]
async fn a_repository_is_fetched_now_by_whom_it_concerns() {
    let hub = Hub::new().await;
    let (own, foreign) = ("https://git.example/harbour/hello", "https://git.example/secret/spy");
    let mut platform = Browser::of(&hub, &hub.platform).await;
    let page = platform.page("/problems").await;
    assert!(page.contains(foreign) && page.contains("it doesn&#39;t answer") && page.contains("Fetch now"), "{page}");
    let csrf = platform.csrf().await;
    let answer = platform.post("/problems/fetch", &[("csrf", &csrf), ("url", foreign)]).await;
    assert_eq!(answer.headers[header::LOCATION], "/problems#repositories");
    assert_eq!(hub.services.asked(), [format!("fetch {foreign}")]);
    let mut team = Browser::of(&hub, &hub.team).await;
    let csrf = team.csrf().await;
    assert_eq!(team.post("/problems/fetch", &[("csrf", &csrf), ("url", foreign)]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(team.post("/problems/fetch", &[("csrf", &csrf), ("url", own)]).await.status, StatusCode::SEE_OTHER);
    let mut viewer = Browser::of(&hub, &hub.viewer).await;
    assert!(!viewer.page("/problems").await.contains("Fetch now"));
    let csrf = viewer.csrf().await;
    assert_eq!(viewer.post("/problems/fetch", &[("csrf", &csrf), ("url", own)]).await.status, StatusCode::FORBIDDEN);
}
