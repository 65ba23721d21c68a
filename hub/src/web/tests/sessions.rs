//! Logging in and out, and forms that aren't ours.

use axum::http::{Method, StatusCode, header};
use serde_json::Value;

use super::browser::Browser;
use crate::api::tests::fixture::Hub;

#[tokio::test]
async fn a_stranger_is_led_to_the_login_and_back() {
    let hub = Hub::new().await;
    let mut browser = Browser::new(&hub);
    let answer = browser.get("/?environment=dev").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(answer.headers[header::LOCATION], "/login?next=%2F%3Fenvironment%3Ddev");
    let token = hub.viewer.clone();
    let answer = browser.post("/login", &[("token", &token), ("next", "/?environment=dev")]).await;
    assert_eq!(answer.headers[header::LOCATION], "/?environment=dev");
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    assert!(!cookie.contains(&token), "the token stays in the hub");
    assert!(browser.page("/").await.contains("victor (viewer)"));
}

#[tokio::test]
async fn a_wrong_token_is_told_why_and_gets_nothing() {
    let hub = Hub::new().await;
    let mut browser = Browser::new(&hub);
    let answer = browser.post("/login", &[("token", "<script>kedge_</script>")]).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.text.contains("this is no access token") && !answer.text.contains("<script>kedge_"));
    assert!(answer.headers.get(header::SET_COOKIE).is_none());
}

#[tokio::test]
async fn after_the_login_nobody_is_led_away() {
    let hub = Hub::new().await;
    for next in ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"] {
        let mut browser = Browser::new(&hub);
        let answer = browser.post("/login", &[("token", &hub.viewer), ("next", next)]).await;
        assert_eq!(answer.headers[header::LOCATION], "/", "{next}");
    }
}

#[tokio::test]
async fn a_form_without_our_word_changes_nothing() {
    let hub = Hub::new().await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let csrf = browser.csrf().await;
    for fields in [&[][..], &[("csrf", "")], &[("csrf", "00")]] {
        let answer = browser.post("/logout", fields).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
    }
    let site = [(header::HeaderName::from_static("sec-fetch-site"), "cross-site")];
    let answer = browser.send(Method::POST, "/logout", Some(&[("csrf", &csrf)]), &site).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let origin = [(header::HOST, "hub.example"), (header::ORIGIN, "https://evil.example")];
    let answer = browser.send(Method::POST, "/login", Some(&[("token", &hub.viewer)]), &origin).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    browser.page("/").await;
    let cookie = browser.cookie.clone();
    browser.post("/logout", &[("csrf", &csrf)]).await;
    browser.cookie = cookie;
    assert_eq!(browser.get("/").await.status, StatusCode::SEE_OTHER, "the session is over");
}

#[tokio::test]
async fn a_revoked_token_ends_its_sessions() {
    let hub = Hub::new().await;
    let mut browser = Browser::of(&hub, &hub.team).await;
    browser.page("/").await;
    let id = hub.get(&hub.team, "/whoami").await.ok().body["token"].as_str().unwrap().to_owned();
    hub.delete(&hub.administrator, &format!("/access-tokens/{id}")).await.ok();
    assert_eq!(browser.get("/").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_login_link_works_once() {
    let hub = Hub::new().await;
    let made = hub.post(&hub.platform, "/login-links", Value::Null).await.ok();
    let path = made.body["path"].as_str().unwrap().to_owned();
    let mut browser = Browser::new(&hub);
    assert_eq!(browser.get(&path).await.status, StatusCode::SEE_OTHER);
    assert!(browser.page("/").await.contains("anna (platform)"));
    let again = Browser::new(&hub).get(&path).await;
    assert_eq!(again.status, StatusCode::GONE);
    assert!(again.text.contains("kedge open"));
}

#[tokio::test]
async fn a_page_may_run_our_script_and_nothing_else() {
    let hub = Hub::new().await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let answer = browser.get("/").await;
    let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(!answer.text.contains("style=") && !answer.text.contains("<style"), "styles are in the sheet");
    assert!(answer.text.len() < 50_000);
    let missing = browser.get("/nothing/here").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert!(missing.text.contains("there is nothing at /nothing/here"));
}
