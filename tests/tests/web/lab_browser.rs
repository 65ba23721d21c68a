//! The browser of the lab sees what there is.

use kedge_tests::lab::browser::{Browser, Light};
use serde_json::json;

#[test]
fn a_browser_reads_clicks_types_and_notices_errors() {
    let Some(browser) = Browser::start() else { return };
    let page = "<title>x</title><input id=a><button onclick=\"document.body.append('pressed ' + a.value)\">Go</button>";
    browser.open(&format!("data:text/html,{page}"));
    browser.type_into("#a", "seven");
    browser.click_text("Go");
    browser.await_text("pressed seven");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.resize(360, 640);
    assert_eq!(browser.run("return innerWidth", json!([])), 360);
    browser.light(Light::Dark);
    assert_eq!(browser.run("return matchMedia('(prefers-color-scheme: dark)').matches", json!([])), true);
    browser.open("data:text/html,<script>nobody.knows()</script>");
    assert!(browser.complaints().iter().any(|line| line.contains("nobody")), "an error is noticed");
}
