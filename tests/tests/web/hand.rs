//! Nothing moves under the hand: while text is selected, the pointer is down or a field has the focus, news waits. A connection that
//! is lost is said within seconds.

use serde_json::json;

use crate::scene;

const LINE: &str = "document.querySelector('[data-line]')";

#[test]
fn a_selection_stays_and_a_lost_connection_is_said() {
    let Some(plant) = scene::plant() else { return };
    let Some(browser) = scene::window(&plant.world.api) else { return };
    browser.await_script("the page is live", &format!("return {LINE}.dataset.line === 'live'"));

    // Somebody selects a name; a change comes.
    let select = "const name = document.querySelector('#way h2 a'); window.name_of = name; \
                  getSelection().selectAllChildren(name);";
    browser.run(select, json!([]));
    let commit = plant.push_main("While somebody reads");
    let short: String = commit.chars().take(7).collect();
    let waits = format!("return {LINE}.dataset.line === 'held'");
    browser.await_script("news waits for who selects", &waits);
    let kept = browser.run("return window.name_of.isConnected && !getSelection().isCollapsed", json!([]));
    assert_eq!(kept, true, "the selection stayed");
    browser.run("getSelection().removeAllRanges()", json!([]));
    let shown = format!("return document.querySelector('#way').innerText.includes('{short}')");
    browser.await_script("the news is shown as soon as the hand is off", &shown);

    // A press that began before the news ends on what it began on.
    browser.run(
        "document.querySelector('#way').dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}))",
        json!([]),
    );
    browser.run("window.pressed = document.querySelector('#way')", json!([]));
    plant.push_main("While somebody presses");
    browser.await_script("news waits for who presses", &waits);
    assert_eq!(browser.run("return window.pressed.isConnected", json!([])), true, "what is pressed stayed");
    browser.run("window.pressed.dispatchEvent(new PointerEvent('pointerup', {bubbles: true}))", json!([]));
    browser.await_script("the news is shown", "return !window.pressed.isConnected");

    // Answers don't come any more.
    browser.run("window.fetch = () => Promise.reject(new Error('gone'))", json!([]));
    plant.push_main("Nobody sees this");
    let lost =
        format!("return {LINE}.dataset.line === 'lost' && {LINE}.textContent.startsWith('connection lost since ')");
    browser.await_script("the page says that the connection is lost", &lost);
}
