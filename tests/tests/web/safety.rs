//! Names, labels and messages come from repositories and agents, and none of them becomes a part of a page; and an application team
//! sees its own only.

use kedge_tests::lab::browser::Browser;
use kedge_tests::world::plant::{LINE, Plant, assignment, workload};
use serde_json::json;

use crate::scene;

/// A picture that a page which takes texts for its own would try to load.
const HOSTILE: &str = "\"'><img src=x onerror=window.pwned=1><script>window.pwned=1</script>";

/// Everything that somebody else writes holds the hostile text.
fn poison(plant: &mut Plant) {
    let control = &mut plant.world.sample.control_plane;
    control.commit_as(HOSTILE, "mallory@example.com");
    control.switch("dev");
    control.follow();
    let file = format!("cluster-types/south/{LINE}/config.yaml");
    let text = std::fs::read_to_string(control.path(&file)).unwrap();
    let value = serde_json::to_string(HOSTILE).unwrap();
    control.write(&file, &text.replace("  CLUSTER_NAME: ", &format!("  HOSTILE: {value}\n  CLUSTER_NAME: ")));
    let name = HOSTILE.replace('/', "");
    control.write(&format!("configs/{name}.yaml"), &format!("kind: [{value}\n"));
    control.write(
        "configs/labels.yaml",
        &format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hostile\n  labels: {{{value}: {value}}}\ndata: {{}}\n"
        ),
    );
    control.commit(HOSTILE);
    control.push("dev");
    let gitops = &plant.world.sample.hello_gitops;
    gitops.switch("dev");
    let mut app = workload(assignment("dev"), "version 2");
    let says = format!("echo {} >&2; exit 1", shell_quoted(HOSTILE));
    app.health.push(format!("{{exec: [/bin/sh, -c, {}], timeout: 5s}}", serde_json::to_string(&says).unwrap()));
    app.push(gitops, assignment("dev").strip_prefix("hello-").unwrap());
    let held = plant.world.api.ask(
        http::Method::POST,
        "/api/v1/clusters/stage-press-1/hold",
        Some(&json!({"assignment": assignment("stage"), "reason": HOSTILE})),
        &[],
    );
    assert!(held.status < 300, "{}", held.text);
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[track_caller]
fn is_clean(browser: &Browser, page: &str) {
    let found = browser.run("return [window.pwned || 0, document.images.length]", json!([]));
    assert_eq!(found, json!([0, 0]), "{page} took a text for its own");
    let complaints = browser.complaints();
    let refusals: Vec<&String> = complaints.iter().filter(|line| line.contains("Content Security Policy")).collect();
    assert!(refusals.is_empty(), "{page}: only the policy held it back: {refusals:?}");
}

#[test]
fn no_text_of_others_becomes_a_part_of_a_page() {
    let Some(mut plant) = scene::plant() else { return };
    poison(&mut plant);
    plant.await_condition("dev-factory-line-1", "Failed");
    let person = plant.person(HOSTILE, "platform");
    let Some(browser) = scene::window(&person) else { return };
    let encoded: String = HOSTILE.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let mut pages = scene::addresses(&plant);
    pages.extend([
        ("failed", "/conditions?environment=dev&condition=Failed".to_owned()),
        ("holder", "/clusters/stage-press-1".to_owned()),
        ("asked", format!("/search?q={encoded}")),
        ("filtered", format!("/clusters?environment={encoded}&labelSelector={encoded}")),
        ("compared", format!("/compare?left={encoded}&right={encoded}")),
        ("remembered", format!("/history?workload={encoded}&who={encoded}")),
        ("unknown", format!("/{encoded}")),
        ("login", format!("/login?next={encoded}")),
    ]);
    let mut shown = Vec::new();
    for (name, path) in pages {
        browser.open(&plant.world.api.url(&path));
        is_clean(&browser, name);
        if browser.text().contains("<img src=x onerror") {
            shown.push(name);
        }
    }
    for page in ["assignment", "problems", "history", "holder", "failed", "asked"] {
        assert!(shown.contains(&page), "{page} shows the text as a text; seen on {shown:?}");
    }
}

#[test]
fn an_application_team_sees_and_does_its_own_only() {
    let Some(plant) = scene::plant() else { return };
    let own = plant.person("hello team", "application");
    let token = plant.world.person("others", "application", &["other-team"]);
    let others = plant.world.api.with_token(token["token"].as_str().unwrap());
    let Some(browser) = scene::window(&own) else { return };
    browser.open(&own.url("/workloads"));
    browser.await_text("hello");
    for (name, path) in scene::addresses(&plant) {
        browser.open(&own.url(&path));
        let buttons = browser.run(
            "return [...document.querySelectorAll('main form[method=post] button')].map((one) => one.innerText)",
            json!([]),
        );
        // It may hold and fetch what is its own.
        let allowed = ["plan", "rollout", "rollouts", "cluster", "assignment", "problems"];
        assert!(buttons == json!([]) || allowed.contains(&name), "{name} offers {buttons}");
    }
    let Some(browser) = scene::window(&others) else { return };
    for (name, path) in scene::addresses(&plant) {
        browser.open(&others.url(&path));
        let text = browser.text();
        // A refusal repeats the address, and says the same of what doesn't exist.
        if text.contains("there is no ") {
            continue;
        }
        let told = ["hello-line", "dev-factory-line-1"].into_iter().find(|word| text.contains(word));
        assert_eq!(told, None, "{name} tells another team's: {text}");
    }
}
