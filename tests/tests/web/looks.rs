//! Every page at the widths of a phone, a desk and a wall, in light and dark: nothing sticks out, nothing complains, and people with
//! other senses can use it.

use kedge_tests::lab::browser::{Browser, Light, axe};
use serde_json::{Value, json};

use crate::scene;

/// A small phone, a phone, a tablet, a desk, a wall.
const WIDTHS: [u32; 5] = [360, 390, 820, 1024, 1920];

/// A phone on a factory floor gets no more than this.
const MOST_BYTES: usize = 50_000;

#[test]
fn every_page_fits_every_width_without_a_complaint() {
    let Some(plant) = scene::plant() else { return };
    let Some(browser) = scene::window(&plant.world.api) else { return };
    plant.push_main("A change to look at");
    plant.await_converged("prod");
    let mut wrong = Vec::new();
    for (name, path) in scene::addresses(&plant) {
        for width in WIDTHS {
            browser.resize(width, 900);
            browser.open(&plant.world.api.url(&path));
            wrong.extend(look(&browser, name, width));
            if let Some(picture) = scene::picture(&format!("{name}-{width}")) {
                browser.picture(&picture);
            }
        }
        wrong.extend(too_large(&browser, name));
        browser.resize(1024, 900);
        browser.light(Light::Dark);
        browser.open(&plant.world.api.url(&path));
        if let Some(picture) = scene::picture(&format!("{name}-dark")) {
            browser.picture(&picture);
        }
        browser.light(Light::Light);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with the page as it is now.
fn look(browser: &Browser, name: &str, width: u32) -> Vec<String> {
    let wide = browser.run("return document.documentElement.scrollWidth", json!([])).as_u64().unwrap();
    let mut wrong: Vec<String> = Vec::new();
    if wide > u64::from(width) {
        let script = "return [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)\
                      .slice(0, 5).map((one) => one.tagName + '.' + one.className + ' ' + one.textContent.slice(0, 40))";
        wrong.push(format!("{name} at {width} is {wide} wide: {}", browser.run(script, json!([]))));
    }
    // An address that is refused is one complaint of the browser itself.
    let complaints = browser.complaints().into_iter().filter(|line| !(name == "refused" && line.contains("404")));
    wrong.extend(complaints.map(|line| format!("{name} at {width}: {line}")));
    wrong
}

fn too_large(browser: &Browser, name: &str) -> Option<String> {
    let text = browser.run_waiting("return (await (await fetch(location.href)).text()).length");
    let bytes = usize::try_from(text.as_u64().unwrap_or(0)).unwrap();
    let _ = browser.complaints();
    (bytes > MOST_BYTES).then(|| format!("{name} has {bytes} bytes"))
}

#[test]
fn people_with_other_senses_can_use_every_page() {
    let Some(axe) = axe() else { return };
    let Some(plant) = scene::plant() else { return };
    let Some(browser) = scene::window(&plant.world.api) else { return };
    let mut wrong = Vec::new();
    for (name, path) in scene::addresses(&plant) {
        for light in [Light::Light, Light::Dark] {
            browser.light(light);
            browser.open(&plant.world.api.url(&path));
            wrong.extend(violations(&browser, &axe).into_iter().map(|one| format!("{name} in {light:?}: {one}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What WCAG 2.1 AA forbids, with the elements.
fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    browser.run(&format!("{axe}\nwindow.axe = axe;"), json!([]));
    let found = browser.run_waiting(
        "const found = await window.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}); \
         return found.violations.map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + ' ' + \
         node.any.map((any) => any.message).join('; '))])",
    );
    let found = found.as_array().unwrap_or_else(|| panic!("axe says {found}")).clone();
    found.iter().map(Value::to_string).collect()
}

#[test]
fn everything_can_be_read_without_a_script() {
    let Some(plant) = scene::plant() else { return };
    let Some(browser) = scene::window(&plant.world.api) else { return };
    browser.scripts(false);
    for (name, path) in scene::addresses(&plant) {
        browser.open(&plant.world.api.url(&path));
        let text = browser.text();
        assert!(text.contains("Kedge") && text.len() > 100, "{name}: {text}");
    }
    browser.open(&plant.world.api.url("/"));
    let text = browser.text();
    assert!(scene::CHAIN.iter().all(|environment| text.contains(environment)), "{text}");
}

#[test]
fn keys_search_and_go() {
    let Some(plant) = scene::plant() else { return };
    let Some(browser) = scene::window(&plant.world.api) else { return };
    browser.press("gc");
    browser.await_script("g c goes to the clusters", "return location.pathname === '/clusters'");
    browser.press("/");
    browser.await_script("/ goes to the search", "return document.activeElement.id === 'find'");
    browser.press("dev-press-1\u{e007}");
    browser.await_script("Enter searches", "return location.pathname === '/search'");
    browser.await_text("dev-press-1");
    browser.run("document.activeElement.blur()", json!([]));
    browser.press("?");
    browser.await_script("? shows the keys", "return location.pathname === '/keys'");
}
