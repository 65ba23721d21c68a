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
    for next in
        ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "/\0/x", "/\u{7f}"]
    {
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
async fn a_page_that_listens_hears_nothing_after_its_token_is_revoked() {
    let hub = Hub::new().await;
    let mut browser = Browser::of(&hub, &hub.team).await;
    let id = hub.get(&hub.team, "/whoami").await.ok().body["token"].as_str().unwrap().to_owned();
    let revoke = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        hub.delete(&hub.administrator, &format!("/access-tokens/{id}")).await.ok();
        hub.cluster(1, "drone-1", "drone", "{}").await.to_string()
    };
    let listen = tokio::time::timeout(std::time::Duration::from_secs(8), browser.get("/live"));
    let (heard, _) = tokio::join!(listen, revoke);
    let heard = heard.expect("the stream ends");
    assert_eq!(heard.text.matches("event: tick").count(), 1, "{}", heard.text);
}

#[tokio::test]
async fn what_hides_in_a_name_is_shown_as_such() {
    let hub = Hub::new().await;
    hub.cluster(1, "dr\u{200b}one\u{202e}1", "drone", "{}").await;
    let page = Browser::of(&hub, &hub.viewer).await.page("/clusters").await;
    assert!(page.contains("dr\u{fffd}one\u{fffd}1") && !page.contains(['\u{200b}', '\u{202e}']));
}

#[tokio::test]
async fn a_login_link_works_once() {
    let hub = Hub::new().await;
    let made = hub.post(&hub.platform, "/login-links", Value::Null).await.ok();
    let path = made.body["path"].as_str().unwrap().to_owned();
    let looks = Browser::new(&hub).send(Method::HEAD, &path, None, &[]).await;
    assert!(looks.headers.get(header::SET_COOKIE).is_none(), "a look doesn't use it up");
    let mut browser = Browser::new(&hub);
    assert_eq!(browser.get(&path).await.status, StatusCode::SEE_OTHER);
    assert!(browser.page("/").await.contains("anna (platform)"));
    let again = Browser::new(&hub).get(&path).await;
    assert_eq!(again.status, StatusCode::GONE);
    assert!(again.text.contains("kedge open"));
}

async fn link(hub: &Hub, token: &str) -> String {
    let made = hub.post(token, "/login-links", Value::Null).await.ok();
    made.body["path"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_sets_a_cookie_is_kept_by_nobody() {
    let hub = Hub::new().await;
    let mut browser = Browser::new(&hub);
    let path = link(&hub, &hub.platform).await;
    let answer = browser.get(&path).await;
    assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
    let answer = Browser::new(&hub).post("/login", &[("token", &hub.viewer)]).await;
    assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
}

#[tokio::test]
async fn a_link_from_another_site_asks_before_it_logs_in() {
    let hub = Hub::new().await;
    let site = |site: &'static str| [(header::HeaderName::from_static("sec-fetch-site"), site)];
    let path = link(&hub, &hub.platform).await;
    let mut browser = Browser::new(&hub);
    let asked = browser.send(Method::GET, &path, None, &site("cross-site")).await;
    assert_eq!((asked.status, asked.headers.get(header::SET_COOKIE)), (StatusCode::OK, None));
    assert!(asked.text.contains("Log in as anna") && asked.text.contains(&format!("action=\"{path}\"")));
    let foreign = browser.send(Method::POST, &path, Some(&[]), &site("cross-site")).await;
    assert_eq!((foreign.status, foreign.headers.get(header::SET_COOKIE)), (StatusCode::FORBIDDEN, None));
    let answer = browser.send(Method::POST, &path, Some(&[]), &site("same-origin")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert!(browser.page("/").await.contains("anna (platform)"));
    assert_eq!(Browser::new(&hub).post(&path, &[]).await.status, StatusCode::GONE);
    // A terminal's.
    let typed = link(&hub, &hub.platform).await;
    let answer = Browser::new(&hub).send(Method::GET, &typed, None, &site("none")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_link_does_not_silently_make_somebody_else_of_a_browser() {
    let hub = Hub::new().await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let path = link(&hub, &hub.platform).await;
    let asked = browser.get(&path).await;
    assert_eq!((asked.status, asked.headers.get(header::SET_COOKIE)), (StatusCode::OK, None));
    assert!(asked.text.contains("logged in as victor") && asked.text.contains("Log in as anna"), "{}", asked.text);
    assert!(browser.page("/").await.contains("victor (viewer)"));
    browser.post(&path, &[]).await;
    assert!(browser.page("/").await.contains("anna (platform)"));
    // One's own session is renewed at once.
    let own = link(&hub, &hub.platform).await;
    assert_eq!(browser.get(&own).await.status, StatusCode::SEE_OTHER);
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
