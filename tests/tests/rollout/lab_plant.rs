//! The plant itself, without a policy: boxes converge, fall ill by content, hang, are cut off, are killed and come back.

use kedge_tests::world::plant::{LINE, PRESS, Plant};

#[test]
fn twenty_boxes_converge_and_follow_both_teams() {
    let Some(mut plant) = Plant::start(None) else { return };
    let began = std::time::Instant::now();
    plant.add("dev", LINE, "", 8);
    plant.add("stage", LINE, "", 4);
    plant.add("prod", LINE, "", 4);
    plant.add("prod", PRESS, "", 4);
    eprintln!("twenty joined in {:?}", began.elapsed());
    for environment in ["dev", "stage", "prod"] {
        plant.await_converged(environment);
    }
    eprintln!("twenty converged in {:?}", began.elapsed());

    let dev: Vec<String> = plant.boxes("dev").map(str::to_owned).collect();
    let names: Vec<&str> = dev.iter().map(String::as_str).collect();
    let began = std::time::Instant::now();
    plant.push_app("dev", "version 2");
    plant.await_text(&names, "version 2");
    plant.await_converged("dev");
    eprintln!("a change of the application reached eight in {:?}", began.elapsed());
    assert_eq!(plant.text_on("prod-press-1").as_deref(), Some("version 1"));

    let began = std::time::Instant::now();
    plant.push_environment("dev", "Line of dev");
    plant.await_so("the platform's value is there", kedge_tests::world::plant::MOVED_WITHIN, |plant| {
        names.iter().all(|name| plant.setting_on(name, "CLUSTER_NAME").as_deref() == Some("Line of dev"))
    });
    eprintln!("a change of the platform reached eight in {:?}", began.elapsed());
    assert_eq!(plant.greeting_on("dev-factory-line-1").as_deref(), Some("Hello"));
}

#[test]
fn one_box_that_is_sick_of_a_content_goes_back_alone_and_one_that_was_away_gets_what_is_current() {
    let Some(mut plant) = Plant::start(None) else { return };
    plant.add("dev", LINE, "", 2);
    plant.add_with_cable("dev", LINE, "", "dev-factory-line-3");
    plant.await_converged("dev");

    plant.agent("dev-factory-line-1").write("sick-of", "version 2\n");
    plant.agent("dev-factory-line-3").cable.as_ref().unwrap().cut();
    plant.push_app("dev", "version 2");
    plant.await_text(&["dev-factory-line-2"], "version 2");
    plant.await_condition("dev-factory-line-1", "Failed");
    plant.await_text(&["dev-factory-line-1"], "version 1");
    plant.await_condition("dev-factory-line-3", "Unknown");
    assert_eq!(plant.text_on("dev-factory-line-3").as_deref(), Some("version 1"));

    plant.agent("dev-factory-line-2").freeze();
    plant.agent("dev-factory-line-1").kill();
    plant.push_app("dev", "version 3");
    plant.agent("dev-factory-line-3").cable.as_ref().unwrap().mend();
    plant.agent("dev-factory-line-1").start_again();
    plant.agent("dev-factory-line-2").thaw();
    plant.await_text(&["dev-factory-line-1", "dev-factory-line-2", "dev-factory-line-3"], "version 3");
    plant.await_converged("dev");
}
