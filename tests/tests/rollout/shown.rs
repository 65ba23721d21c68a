//! What is shown is what runs: at every stage of a change, what the hub says of a box's configuration is what is on that box's disk,
//! and what Git says beside it is called so.

use std::collections::BTreeMap;

use kedge_tests::world::plant::{LINE, MOVED_WITHIN, PRESS, Plant, assignment};
use kedge_tests::world::policy::Policy;
use serde_json::Value;

use crate::plants::{CANARIES, OTHERS, rings_of};

const AWAY: &str = "dev-factory-line-away";

/// How many boxes of a ring have a greeting.
type Greetings = BTreeMap<(String, String, String), u64>;

fn of_type(plant: &Plant, cluster_type: &str) -> Value {
    plant.world.api.get(&format!("/api/v1/assignments/dev/{cluster_type}/{}", assignment("dev")))
}

/// As the hub says it: from what clusters reported and what was delivered to them.
fn shown(plant: &Plant) -> Greetings {
    let mut found = Greetings::new();
    for cluster_type in [LINE, PRESS] {
        let whole = of_type(plant, cluster_type);
        for group in whole["running"].as_array().unwrap() {
            let views = whole["configurations"].as_array().unwrap();
            let view = views.iter().find(|view| view["id"] == group["configuration"]);
            let view = view.unwrap_or_else(|| panic!("{group} has no configuration: {whole:#}"));
            let greeting = greeting(view)["value"].as_str().unwrap_or_default().to_owned();
            let place = (cluster_type.to_owned(), group["ring"].as_str().unwrap().to_owned(), greeting);
            *found.entry(place).or_default() += group["count"].as_u64().unwrap();
        }
    }
    found
}

/// As it is on the boxes' disks.
fn on_disk(plant: &Plant) -> Greetings {
    let mut found = Greetings::new();
    for name in plant.boxes("dev") {
        let cluster_type = if name.contains(PRESS) { PRESS } else { LINE };
        let ring = if CANARIES.contains(&name) { "canary" } else { "rest" };
        let place = (cluster_type.to_owned(), ring.to_owned(), plant.greeting_on(name).unwrap_or_default());
        *found.entry(place).or_default() += 1;
    }
    found
}

fn greeting(view: &Value) -> &Value {
    view["values"].as_array().unwrap().iter().find(|value| value["key"] == "GREETING").unwrap()
}

/// What is shown becomes what is there, and stays it.
fn agree(plant: &Plant, stage: &str, greetings: &[(&str, &[&str])]) {
    for (greeting, names) in greetings {
        plant.await_greeting(names, greeting);
    }
    plant.await_so(&format!("{stage}: what is shown is what is on disk"), MOVED_WITHIN, |plant| {
        shown(plant) == on_disk(plant)
    });
    plant.stays_so(&format!("{stage}: it stays so"), std::time::Duration::from_secs(2), |plant| {
        shown(plant) == on_disk(plant)
    });
}

/// What Git says where that isn't what runs in a ring; none: it is the same.
fn git(plant: &Plant, ring: &str) -> Option<String> {
    let whole = of_type(plant, LINE);
    let group = whole["running"].as_array().unwrap().iter().find(|group| group["ring"] == ring).unwrap().clone();
    let views = whole["configurations"].as_array().unwrap();
    let view = views.iter().find(|view| view["id"] == group["configuration"]).unwrap();
    let value = greeting(view);
    assert_eq!(value["differs"].as_bool(), view["asInGit"].as_bool().map(|same| !same), "{view:#}");
    value["git"].as_str().map(str::to_owned)
}

fn described(plant: &Plant) -> String {
    plant.world.kedge.run(["describe", "assignment", &format!("{LINE}/{}", assignment("dev")), "-e", "dev"])
}

#[test]
fn what_is_shown_of_a_configuration_is_what_is_on_disk_at_every_stage() {
    // The canaries are looked at for long: nothing reaches the others by itself.
    let tolerant = "failure: {budget: 100%}";
    let policy = rings_of(Policy::chain(&["dev"]).with("dev", &["soak: 1h", tolerant]));
    let first = rings_of(Policy::chain(&["dev"]).with("dev", &[tolerant]));
    let Some(mut plant) = Plant::start(Some(&first)) else { return };
    plant.add("dev", LINE, "ring=canary", 2);
    plant.add("dev", LINE, "", 3);
    plant.add("dev", PRESS, "ring=canary", 1);
    plant.add("dev", PRESS, "", 1);
    plant.add_with_cable("dev", LINE, "", AWAY);
    plant.await_converged("dev");
    agree(&plant, "at first", &[("Hello", &CANARIES), ("Hello", &OTHERS)]);
    assert_eq!((git(&plant, "canary"), git(&plant, "rest")), (None, None));
    crate::plants::tighten(&plant, &policy);

    let moin = plant.push_main("Moin");
    agree(&plant, "canaries only", &[("Moin", &CANARIES), ("Hello", &OTHERS)]);
    assert_eq!((git(&plant, "canary"), git(&plant, "rest")), (None, Some("Moin".to_owned())));
    let text = described(&plant);
    assert!(text.contains("\"Moin\"") && text.contains("\"Hello\"") && text.contains("Git says"), "{text}");
    let between = plant.world.kedge.json(["compare", "dev", "stage", "--all"]).to_string();
    assert!(between.contains("Moin") && between.contains("Hello"), "{between}");

    let rollout = plant.rollout_of("dev", &moin).unwrap();
    plant.world.kedge.run(["rollout", "rollback", &rollout["id"].to_string(), "--reason", "nobody says that here"]);
    agree(&plant, "rolled back", &[("Hello", &CANARIES), ("Hello", &OTHERS)]);
    assert_eq!((git(&plant, "canary"), git(&plant, "rest")), (Some("Moin".to_owned()), Some("Moin".to_owned())));
    let text = described(&plant);
    let runs = text.find("\"Hello\"").unwrap_or_else(|| panic!("{text}"));
    assert!(text.find("\"Moin\"").is_some_and(|git| git > runs), "what runs comes first: {text}");
    let back = plant.world.kedge.json(["compare", "dev", "stage", "--all"]).to_string();
    assert!(!back.contains("Moin"), "nobody runs it: {back}");

    // One canary goes back by itself, because the new content isn't healthy there.
    plant.agent(CANARIES[0]).write("sick-of", "Ahoj\n");
    plant.push_main("Ahoj");
    plant.await_condition(CANARIES[0], "Failed");
    agree(&plant, "one went back by itself", &[("Ahoj", &CANARIES[1..]), ("Hello", &OTHERS)]);
    assert_eq!(plant.greeting_on(CANARIES[0]).as_deref(), Some("Hello"));

    // One is away while the others go on: it is shown with what it last reported, and since when.
    plant.agent(AWAY).cable.as_ref().unwrap().cut();
    plant.await_condition(AWAY, "Unknown");
    let id = plant.rollout("dev", kedge_tests::world::plant::Lane::Platform).unwrap()["id"].to_string();
    plant.world.kedge.run(["rollout", "override", &id, "--reason", "it is only that box"]);
    agree(&plant, "one is away", &[("Ahoj", &OTHERS)]);
    assert_eq!(plant.greeting_on(AWAY).as_deref(), Some("Hello"));
    let whole = of_type(&plant, LINE);
    let groups = whole["running"].as_array().unwrap();
    let away = groups.iter().find(|group| group["unknown"] == 1).unwrap_or_else(|| panic!("{whole:#}"));
    assert!(away["offlineSince"].as_str().is_some_and(|since| since.ends_with('Z')), "{away}");
    assert_eq!((&away["count"], &away["asDesired"]), (&Value::from(1), &Value::from(false)), "{away}");
}

#[test]
fn a_rolled_back_environment_says_so_first_until_git_asks_for_something_else() {
    let Some(plant) = crate::plants::with_rings(Policy::chain(&["dev"])) else { return };
    let first = plant.push_main("Moin");
    plant.await_rollout("dev", &first, "Complete");
    let second = plant.push_main("Bonjour");
    let rollout = plant.await_rollout("dev", &second, "Complete");
    plant.await_greeting(&OTHERS, "Bonjour");
    let status = || plant.world.kedge.try_run(["status", "dev"]).stdout;
    plant.await_so("all is well", MOVED_WITHIN, |_| {
        status().contains(&second[..10]) && status().contains("Nothing is wrong")
    });

    plant.world.kedge.run(["rollout", "rollback", &rollout["id"].to_string(), "--reason", "customers complain"]);
    plant.await_greeting(&CANARIES, "Moin");
    plant.await_greeting(&OTHERS, "Moin");
    plant.await_so("it says so", MOVED_WITHIN, |_| {
        let said = status();
        let line = said.lines().find(|line| line.starts_with("dev")).unwrap_or_default();
        line.contains(&first[..10]) && !line.contains(&second[..10])
    });
    let said = status();
    assert!(said.contains("was rolled back") && said.contains("customers complain"), "{said}");
    assert!(said.contains(&format!("Git names {}", &second[..10])) && !said.contains("Nothing is wrong"), "{said}");
    assert_eq!(plant.status("dev", &[]).code, 3);
    let steps = plant.world.kedge.run(["history", "commit", &second]);
    assert!(steps.contains("rolledBack") && steps.contains("customers complain"), "{steps}");

    // Git asks for what runs: nothing moves, and nothing can be observed. Once a person says that this is fine, nothing is left to do.
    let third = plant.push_main("Moin");
    plant.await_so("it waits for a person", MOVED_WITHIN, |plant| {
        let told = plant.world.kedge.try_run(["get", "problems", "-e", "dev"]).stdout;
        told.contains("nothing to observe") && told.contains("kedge promote approve dev")
    });
    let said = status();
    assert!(!said.contains(&third[..10]) || !said.contains("Nothing is wrong"), "it hasn't passed yet: {said}");
    plant.world.kedge.run(["promote", "approve", "dev", "--reason", "it is what runs"]);
    plant.await_so("it is settled", MOVED_WITHIN, |_| {
        let said = status();
        said.contains(&third[..10]) && said.contains("Nothing is wrong")
    });
    plant.await_so("the question is answered with yes", MOVED_WITHIN, |plant| plant.status("dev", &[]).code == 0);
    let listed = plant.rollouts("dev");
    let old = listed.iter().find(|one| one["id"] == rollout["id"]).unwrap();
    assert_eq!((old["state"].as_str(), old["settled"].as_bool()), (Some("RolledBack"), Some(true)), "{old}");
    assert_eq!(plant.status("dev", &["--main-commit", &second]).code, 3, "that very commit isn't there");
}
