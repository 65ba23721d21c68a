//! Who isn't logged in yet: how often they may try, what is written down, and which way a browser may come.

use axum::http::{Method, StatusCode, header};
use serde_json::Value;

use super::browser::Browser;
use crate::api::tests::fixture::Hub;

const PUBLIC: &str = "https://kedge.example.com";

async fn refused_logins(hub: &Hub) -> Vec<Value> {
    let audit = hub.get(&hub.platform, "/audit?action=login").await.ok();
    audit.body["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_cookie_that_nobody_knows_buys_no_more_tries() {
    let hub = Hub::with_rates(100_000, 2).await;
    let made_up = format!("kedge={}", "0".repeat(64));
    for cookie in ["a=b", "kedge=nonsense", made_up.as_str()] {
        let mut browser = Browser::new(&hub);
        browser.cookie = cookie.to_owned();
        let mut refused = 0;
        for _ in 0..20 {
            let answer = browser.post("/login", &[("token", "kedge_guess")]).await;
            refused += usize::from(answer.status == StatusCode::TOO_MANY_REQUESTS);
        }
        assert!(refused >= 14, "{cookie}: {refused} of 20");
        assert_eq!(browser.get("/").await.status, StatusCode::TOO_MANY_REQUESTS, "{cookie}");
    }
}

#[tokio::test]
async fn a_session_is_no_reason_to_guess_at_tokens_faster() {
    let hub = Hub::with_rates(100_000, 3).await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let cookie = browser.cookie.clone();
    let mut refused = 0;
    for _ in 0..20 {
        let answer = browser.post("/login", &[("token", "kedge_guess")]).await;
        refused += usize::from(answer.status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(refused >= 12, "{refused} of 20");
    browser.cookie = cookie;
    for _ in 0..20 {
        browser.page("/").await;
    }
}

#[tokio::test]
async fn a_session_of_a_revoked_token_is_limited_like_a_stranger() {
    let hub = Hub::with_rates(100_000, 3).await;
    let mut browser = Browser::of(&hub, &hub.team).await;
    let id = hub.get(&hub.team, "/whoami").await.ok().body["token"].as_str().unwrap().to_owned();
    hub.delete(&hub.administrator, &format!("/access-tokens/{id}")).await.ok();
    let mut refused = 0;
    for _ in 0..20 {
        refused += usize::from(browser.get("/").await.status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(refused >= 12, "{refused} of 20");
}

#[tokio::test]
async fn refused_logins_are_written_down_and_do_not_fill_the_log() {
    let hub = Hub::new().await;
    let mut browser = Browser::new(&hub);
    for _ in 0..50 {
        browser.post("/login", &[("token", &format!("kedge_{}_{}", "0".repeat(16), "0".repeat(64)))]).await;
        browser.get(&format!("/login/{}", "0".repeat(64))).await;
        hub.get("kedge_guess", "/clusters").await.refused(401, "BadToken");
    }
    let written = refused_logins(&hub).await;
    assert_eq!(written.len(), 1, "{written:?}");
    let first = &written[0];
    assert_eq!((&first["result"], &first["address"]), (&"refused: UnknownToken".into(), &"10.0.0.7".into()));
    assert_eq!(first["who"], "unknown");
}

#[tokio::test]
async fn a_login_says_where_it_came_from() {
    let hub = Hub::new().await;
    Browser::of(&hub, &hub.viewer).await;
    let audit = hub.get(&hub.platform, "/audit?action=session.begin").await.ok();
    assert_eq!(audit.body["items"][0]["address"], "10.0.0.7", "{}", audit.text);
}

#[tokio::test]
async fn behind_a_proxy_with_tls_cookies_and_browsers_stay_with_tls() {
    let hub = Hub::with(|config| config.public_url = Some(PUBLIC.to_owned())).await;
    let mut browser = Browser::new(&hub);
    let origin = [(header::HOST, "127.0.0.1:7480"), (header::ORIGIN, PUBLIC)];
    let answer = browser.send(Method::POST, "/login", Some(&[("token", &hub.viewer)]), &origin).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("__Host-kedge=") && cookie.contains("; Secure"), "{cookie}");
    browser.page("/").await;
    for path in ["/login", "/healthz", "/api/v1/clusters", "/nothing"] {
        let answer = browser.get(path).await;
        assert_eq!(answer.headers[header::STRICT_TRANSPORT_SECURITY], "max-age=31536000", "{path}");
    }
    let plain = Hub::new().await;
    let answer = Browser::new(&plain).get("/login").await;
    assert!(!answer.headers.contains_key(header::STRICT_TRANSPORT_SECURITY), "no TLS, no promise of it");
}

#[tokio::test]
async fn with_a_public_url_forms_come_from_there_alone() {
    let hub = Hub::with(|config| config.public_url = Some(PUBLIC.to_owned())).await;
    for origin in ["http://kedge.example.com", "https://kedge.example.com:8443", "https://127.0.0.1:7480", "null"] {
        let headers = [(header::HOST, "127.0.0.1:7480"), (header::ORIGIN, origin)];
        let answer = Browser::new(&hub).send(Method::POST, "/login", Some(&[("token", &hub.viewer)]), &headers).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{origin}");
        assert!(answer.text.contains(PUBLIC), "the way out: {}", answer.text);
    }
}
