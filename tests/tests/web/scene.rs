//! A plant and somebody who looks at it.

use std::path::PathBuf;

use kedge_tests::lab::browser::Browser;
use kedge_tests::world::api::Api;
use kedge_tests::world::plant::{LINE, PRESS, Plant, assignment};
use kedge_tests::world::policy::Policy;
use serde_json::json;

pub(crate) const CHAIN: [&str; 3] = ["dev", "stage", "prod"];

/// Two boxes of one type and one of the other in every environment, all converged; dev has two rings.
pub(crate) fn plant() -> Option<Plant> {
    let policy = Policy::chain(&CHAIN).ring("dev", "canary", &["selector: {matchLabels: {ring: canary}}"]).ring(
        "dev",
        "rest",
        &[],
    );
    let mut plant = Plant::start(Some(&policy))?;
    plant.add("dev", LINE, "ring=canary", 1);
    plant.add("dev", PRESS, "ring=canary", 1);
    for environment in CHAIN {
        plant.add(environment, LINE, "", if environment == "dev" { 1 } else { 2 });
        plant.add(environment, PRESS, "", 1);
    }
    CHAIN.iter().for_each(|environment| plant.await_converged(environment));
    Some(plant)
}

/// A window of a person with this token, on the fleet's page.
pub(crate) fn window(who: &Api) -> Option<Browser> {
    let browser = Browser::start()?;
    log_in(&browser, who);
    Some(browser)
}

pub(crate) fn log_in(browser: &Browser, who: &Api) {
    let link = who.post("/api/v1/login-links", json!({}));
    browser.open(&who.url(link["path"].as_str().unwrap()));
}

/// Every page there is, by the name of its picture.
pub(crate) fn addresses(plant: &Plant) -> Vec<(&'static str, String)> {
    let (api, target) = (&plant.world.api, assignment("dev"));
    let cluster = plant.seen("dev-factory-line-1");
    let workloads = api.list("/api/v1/workloads?environment=dev");
    let workload = workloads[0]["name"].as_str().unwrap();
    let rollout = plant.rollouts("dev").first().map_or(1, |rollout| rollout["id"].as_u64().unwrap());
    let commit = plant.named("dev").expect("a commit is in dev");
    [
        ("fleet", "/".to_owned()),
        ("environment", "/environments/dev".to_owned()),
        ("type", format!("/types/dev/{LINE}")),
        ("clusters", "/clusters".to_owned()),
        ("cluster", format!("/clusters/{}", cluster["id"].as_str().unwrap())),
        ("conditions", "/conditions?environment=dev".to_owned()),
        ("workloads", "/workloads".to_owned()),
        ("workload", format!("/workloads/{workload}")),
        ("assignment", format!("/assignments/dev/{LINE}/{target}")),
        ("rollouts", "/rollouts".to_owned()),
        ("rollout", format!("/rollouts/{rollout}")),
        ("problems", "/problems".to_owned()),
        ("drift", "/drift".to_owned()),
        ("history", "/history".to_owned()),
        ("commit", format!("/commits/{commit}")),
        ("compare", "/compare?left=dev&right=prod".to_owned()),
        ("plan", "/plan".to_owned()),
        ("search", "/search?q=hello".to_owned()),
        ("nothing-found", "/search?q=nothing-is-called-so".to_owned()),
        ("keys", "/keys".to_owned()),
        ("refused", "/clusters/nobody".to_owned()),
    ]
    .into()
}

/// Where pictures go; nowhere unless the folder is named.
pub(crate) fn picture(name: &str) -> Option<PathBuf> {
    std::env::var_os("KEDGE_PICTURES").map(|folder| PathBuf::from(folder).join(format!("{name}.png")))
}
