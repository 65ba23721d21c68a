//! What somebody sees who types `kedge up` and then does what it suggests.

use kedge_tests::lab::http;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::fleet::{CONVERGED_WITHIN, SEEN_WITHIN, Up, environment};

const ENVIRONMENTS: [&str; 3] = ["dev", "stage", "prod"];

#[test]
fn a_fleet_converges_promotes_a_change_and_every_suggestion_works_as_printed() {
    let Some(mut up) = Up::start(&[]) else { return };
    let ready = up.await_event("ready", CONVERGED_WITHIN);
    let page = ready["page"].as_str().unwrap();
    http::use_ring();
    let browser = reqwest::blocking::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
    let answer = browser.unwrap().get(page).send().unwrap();
    assert!(answer.status().is_redirection(), "{}", answer.status());
    assert!(answer.headers().contains_key("set-cookie"), "the link logs in");

    let converged = up.await_event("converged", CONVERGED_WITHIN);
    let picture = up.await_fleet("all of it", |picture| picture["converged"] == true);
    for name in ENVIRONMENTS {
        assert!(environment(&picture, name)["converged"].as_u64() >= Some(5), "{picture}");
    }
    up.await_event("arrived", SEEN_WITHIN);

    let tries = converged["try"].as_array().unwrap();
    assert_eq!(tries.len(), 3);
    let commands = |at: usize| -> Vec<&str> {
        tries[at]["commands"].as_array().unwrap().iter().map(|command| command.as_str().unwrap()).collect()
    };

    // A value is changed and pushed.
    for command in commands(0) {
        up.ok(command);
    }
    let head = up.ok("git -C work rev-parse HEAD").trim().to_owned();
    up.await_fleet("the change is everywhere", |picture| {
        picture["converged"] == true
            && ENVIRONMENTS.iter().all(|name| {
                let environment = environment(picture, name);
                environment["commit"] == head.as_str() && environment["state"] == "Passed"
            })
    });
    let written = up.ok("cat agents/prod-drone-2/root/etc/kedge/workloads/hello-edge/platform-config.env");
    assert!(written.contains("Ahoy"), "{written}");

    // An agent is killed, and comes back.
    let [kill, start] = commands(1)[..] else { panic!("{tries:?}") };
    up.ok(kill);
    let unknown = |picture: &Value| environment(picture, "prod")["unknown"].as_u64();
    up.await_fleet("what it ran is Unknown", |picture| unknown(picture) > Some(0));
    up.ok(start);
    up.await_fleet("it is back", |picture| unknown(picture) == Some(0) && picture["converged"] == true);

    // A health check is broken, and mended.
    let [change, push, look, mend] = commands(2)[..] else { panic!("{tries:?}") };
    up.ok(change);
    up.ok(push);
    let told = up.shell(look);
    assert_eq!(told.code, 3, "{}", told.text);
    assert!(told.text.contains("HealthCheck"), "{}", told.text);
    let broken = up.await_fleet("dev has failed", |picture| environment(picture, "dev")["failed"].as_u64() > Some(0));
    for name in ["stage", "prod"] {
        assert_eq!(environment(&broken, name)["commit"], head.as_str(), "{broken}");
    }
    up.ok(mend);
    up.await_fleet("dev is well again", |picture| {
        let dev = environment(picture, "dev");
        dev["failed"] == 0 && dev["converged"] == 6
    });

    assert!(up.end(Signal::SIGINT).success());
    up.assert_gone(false);
}

#[test]
fn a_kept_fleet_goes_on_where_it_was_and_may_grow() {
    let Some(mut up) = Up::start(&["--keep", "--agents", "3"]) else { return };
    let first = up.await_event("ready", CONVERGED_WITHIN);
    up.await_event("arrived", CONVERGED_WITHIN + SEEN_WITHIN);
    let commit = environment(&up.await_fleet("all of it", |picture| picture["converged"] == true), "prod").clone();

    let mut up = up.again(&["--agents", "4"]);
    let second = up.await_event("ready", CONVERGED_WITHIN);
    assert_eq!(first["api"], second["api"], "the page keeps its address");
    up.await_event("converged", CONVERGED_WITHIN);
    let picture = up.await_fleet("all of it", |picture| picture["converged"] == true);
    assert_eq!(environment(&picture, "prod")["commit"], commit["commit"]);
    assert_eq!(environment(&picture, "prod")["clusters"], 2);
    assert!(up.events().iter().all(|event| event["event"] != "arrived"), "a first change comes once");
    assert!(up.end(Signal::SIGTERM).success());
    up.assert_gone(true);
}
