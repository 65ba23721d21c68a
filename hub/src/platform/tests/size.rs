//! What a change costs in a platform of 10,000 assignments: a figure of `./tests/bench figures`.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::super::testing::{Scene, config, registration, workload};
use super::*;
use crate::git::testing::Remote;

const CLUSTER_TYPES: usize = 100;
const APPLICATIONS: usize = 100;

/// Our own part of a change, in a release build.
const BOUND: Duration = Duration::from_millis(100);

#[tokio::test]
async fn figure_a_changed_value_costs_little_in_a_large_platform() {
    let scene = Scene::new().await;
    let mut registrations = String::new();
    for number in 0..APPLICATIONS {
        let app = Remote::new(scene.path(), &format!("app-{number}"));
        app.commit("main", &[("workload/workload.yaml", &workload(&format!("w{number}"), &["dev"]))]);
        write!(registrations, "---\n{}", registration(&format!("w{number}"), &app.path())).unwrap();
    }
    scene.main(&[("registrations/all.yaml", &registrations), ("registrations/hello.yaml", "")]);
    let types: Vec<(String, String)> = (0..CLUSTER_TYPES)
        .map(|number| {
            let text = super::super::testing::CLUSTER_TYPE.replace("name: drone", &format!("name: type{number}"));
            (format!("cluster-types/{number}.yaml"), text)
        })
        .collect();
    let configs: Vec<(String, String)> = (0..300)
        .map(|number| {
            let labels = format!("platform-config: \"true\", workload: w{}", number % APPLICATIONS);
            let text =
                config(&format!("c{number}"), &format!("K{number}"), "v").replace("platform-config: \"true\"", &labels);
            (format!("configs/{number}.yaml"), text)
        })
        .collect();
    let push = |value: &str| {
        let own =
            config("own", "OWN", value).replace("platform-config: \"true\"", "platform-config: \"true\", workload: w7");
        let all = [("configs/own.yaml", own.as_str()), ("cluster-types/drone.yaml", "")];
        let files: Vec<(&str, &str)> =
            types.iter().chain(&configs).map(|(path, text)| (path.as_str(), text.as_str())).chain(all).collect();
        scene.dev(&files)
    };
    push("one");
    let mirrors = scene.mirrors();
    let mut reader = reader(&scene, &mirrors).await;
    let begun = Instant::now();
    let first = reader.read(TERM, None).await.unwrap();
    println!("first read: {:?}, {} objects", begun.elapsed(), first.platform.objects.len());
    assert_eq!(first.platform.failing, []);
    let begun = Instant::now();
    let mut scheduler = Scheduler::new(first.platform);
    println!("first schedule: {:?}", begun.elapsed());
    assert_eq!(scheduler.schedule().assignments.len(), CLUSTER_TYPES * APPLICATIONS);

    for value in ["two", "three", "four"] {
        push(value);
        mirrors.fetch_now(&scene.control_plane.path()).await.unwrap();
        let begun = Instant::now();
        let update = reader.read(TERM, Some(scheduler.platform())).await.unwrap();
        let read = begun.elapsed();
        assert_eq!(update.changes.len(), 1, "{:?}", update.changes);
        let delta = scheduler.update(update.changes);
        let whole = begun.elapsed();
        println!("read {read:?}, schedule {:?}, {} rendered", whole - read, delta.rendered);
        assert_eq!(delta.changed.len(), CLUSTER_TYPES);
        println!("FIGURE changed_value_{value} {}", whole.as_millis());
        assert!(whole < BOUND, "{whole:?}");
    }
}
