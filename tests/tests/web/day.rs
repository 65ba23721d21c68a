//! The story of a day: somebody opens the fleet, a change is pushed and moves before their eyes, one box fails it and is found in three
//! clicks, the change is rolled back, and what happened can be read.

use kedge_tests::world::plant::{Lane, MOVED_WITHIN};
use serde_json::json;

use crate::scene;

/// A mark on the page that is lost when it loads anew.
const MARK: &str = "window.stayed = true";
const STAYED: &str = "return window.stayed === true";

#[test]
fn a_day_with_the_page() {
    let Some(mut plant) = scene::plant() else { return };
    let (ann, base) = (plant.person("ann", "platform"), plant.world.api.url(""));
    let Some(browser) = scene::window(&ann) else { return };
    browser.resize(1280, 900);

    // In the morning everything is all right.
    browser.await_text("All is right");
    browser.run(MARK, json!([]));

    // A change is pushed and moves along the way, without loading anew.
    let commit = plant.push_main("Good morning");
    let short: String = commit.chars().take(7).collect();
    let in_prod = format!(
        "return [...document.querySelectorAll('#way > *')].some((one) => one.innerText.includes('prod') && one.innerText.includes('{short}'))"
    );
    browser.await_script("the commit reaches prod before one's eyes", &in_prod);
    assert_eq!(browser.run(STAYED, json!([])), true, "the page wasn't loaded anew");
    if let Some(picture) = scene::picture("day-morning") {
        browser.picture(&picture);
    }

    // An application's new version fails on one box of the canary.
    plant.agent("dev-factory-line-1").write("sick-of", "version 2\n");
    plant.push_app("dev", "version 2");
    browser.await_script("the page tells of the failure", "return document.body.innerText.includes('1 Failed')");
    assert_eq!(browser.run(STAYED, json!([])), true, "the page wasn't loaded anew");
    if let Some(picture) = scene::picture("day-failure") {
        browser.picture(&picture);
    }

    // Three clicks to the failing box, and its page says why.
    browser.click("#way a[href*='condition=Failed']");
    browser.await_script("the list of failures", "return location.pathname === '/conditions'");
    browser.await_text("dev-factory-line-1");
    browser.click_text("dev-factory-line-1");
    browser.await_script("the box's page", "return location.pathname.startsWith('/clusters/')");
    browser.await_text("HealthCheck");
    browser.await_text("still running");
    if let Some(picture) = scene::picture("day-box") {
        browser.picture(&picture);
    }

    // Roll back: what it will do is said before it does it.
    let rollout = plant.rollout("dev", Lane::Source).expect("the application's rollout");
    browser.open(&format!("{base}/rollouts/{}", rollout["id"]));
    browser.click_text("Roll back");
    browser.await_text("What this does");
    if let Some(picture) = scene::picture("day-rollback") {
        browser.picture(&picture);
    }
    browser.type_into("#reason", "the canary fails");
    browser.click("main form button");
    browser.await_text("the canary fails");
    plant.await_state("dev", Lane::Source, "RolledBack");
    plant.await_converged("dev");
    browser.open(&format!("{base}/"));
    browser.await_text("Needs attention");
    browser.await_text("was rolled back");
    if let Some(picture) = scene::picture("day-rolled-back") {
        browser.picture(&picture);
    }

    // A fix passes, and nothing is left to do.
    let fix = plant.push_app("dev", "version 3");
    plant.await_rollout("dev", &fix, "Complete");
    browser.await_text("All is right");

    // What differs, and what happened.
    browser.open(&format!("{base}/compare?left=dev&right=prod"));
    browser.await_text("hello");
    browser.open(&format!("{base}/history?environment=dev"));
    browser.await_text("dev-factory-line-1");
    browser.await_text("ann");
    browser.open(&format!("{base}/commits/{commit}"));
    browser.await_text("prod");
    plant.await_so("the way of the commit is known to its end", MOVED_WITHIN, |plant| {
        plant.world.api.get(&format!("/api/v1/history/commits/{commit}")).to_string().contains("converged")
    });
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
