//! The way of a change, once from end to end: a `kedge init` platform, a push, a commit, a signed state, an agent that
//! joins, fetches, reports, and people who look at it.

use std::time::{Duration, Instant};

use kedge_model::wire::Digest;
use kedge_tests::lab::await_true;
use kedge_tests::world::{Database, SOON, World};

use crate::each_database::on_each_database;

on_each_database![a_platform_becomes_signed_states_that_an_agent_runs_and_people_see];

/// With a webhook a change is there in seconds, also in a debug build on a busy machine.
const SECONDS: Duration = Duration::from_secs(10);

fn a_platform_becomes_signed_states_that_an_agent_runs_and_people_see(database: Database) {
    let Some(world) = World::start(database) else { return };
    world.await_first_states();

    // The commit is what `kedge render` writes, byte for byte, and what was there stays.
    let rendered = world.rendered("dev");
    let published = world.sample.published("dev");
    for (path, bytes) in &rendered {
        assert_eq!(
            published.get(path).map(|found| String::from_utf8_lossy(found)),
            Some(String::from_utf8_lossy(bytes)),
            "{path}"
        );
    }
    let others: Vec<_> = published.keys().filter(|path| !rendered.contains_key(*path)).collect();
    assert!(others.iter().all(|path| *path == "README.md"), "{others:?}");

    // An agent joins with a person's token and gets the signed state with packages that are what they say.
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    let state = drone.agent.state.clone().unwrap();
    assert_eq!((state.stream.environment.as_str(), state.stream.cluster_type.as_str()), ("dev", "drone"));
    assert_eq!(state.entries.len(), 1);
    let packages = drone.packages();
    for package in &packages {
        let bytes = drone.fetch(package);
        assert_eq!((bytes.len() as u64, Digest::of(&bytes)), (package.size, package.digest));
    }
    assert_eq!(packages.len(), 2);
    drone.converge();
    assert!(!drone.look().unwrap().want_status, "the hub has the document");

    people_see_it(&world);

    // One changed value: one commit, one stream moves, the others stay.
    let before = [world.api.generation("dev", "large"), world.api.generation("dev", "factory-line")];
    let held = drone.hold();
    let began = Instant::now();
    let commit = world.sample.change_drones("Quadcopter");
    let (mut drone, answer) = held.answer(SECONDS);
    answer.unwrap();
    assert!(began.elapsed() < SECONDS);
    assert_eq!(drone.agent.generation.0, 2);
    assert_eq!([world.api.generation("dev", "large"), world.api.generation("dev", "factory-line")], before);
    let now = drone.packages();
    assert_eq!(now[0].commit, world.git.head("gitops", "dev").unwrap(), "from the branch's head");
    assert_ne!(now[0].digest, packages[0].digest, "the platform package changed");
    assert_eq!(now[1].digest, packages[1].digest, "the workload package didn't");
    world.sample.gitops.fetch();
    let log = world.sample.gitops.log("origin/dev");
    assert!(format!("{} {}", log[0].subject, log[0].body).contains(&commit[..7]), "{log:?}");
    drone.converge();
    await_true("the count is of the new packages", SOON, || world.count("hello-functional-test", "Converged") == 1);

    // An application's own push moves its workload package alone.
    world
        .sample
        .hello_gitops
        .change("functional-test/extra.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: extra\n");
    let kustomization =
        std::fs::read_to_string(world.sample.hello_gitops.path("functional-test/kustomization.yaml")).unwrap();
    world.sample.hello_gitops.change("functional-test/kustomization.yaml", &format!("{kustomization}  - extra.yaml\n"));
    drone.await_generation(3);
    let last = drone.packages();
    assert_eq!((last[0].digest, last[1].digest != now[1].digest), (now[0].digest, true));
}

fn people_see_it(world: &World) {
    let clusters = world.kedge.run(["get", "clusters"]);
    assert!(clusters.contains("drone-1"), "{clusters}");
    let assignments = world.kedge.run(["get", "assignments", "--environment", "dev"]);
    for name in ["drone/hello-functional-test", "large/hello-functional-test", "factory-line/hello-line-test"] {
        assert!(assignments.contains(name), "{name} isn't in\n{assignments}");
    }
    let described = world.kedge.run(["describe", "cluster", "drone-1"]);
    assert!(described.contains("Converged") && described.contains("hello-functional-test"), "{described}");
    for kind in ["cluster-types", "workloads", "environments"] {
        assert!(!world.kedge.run(["get", kind]).trim().is_empty(), "{kind}");
    }
    let json = world.kedge.json(["get", "clusters"]);
    assert!(json.to_string().contains("drone-1"), "{json}");
    await_true("one cluster runs it", SOON, || world.count("hello-functional-test", "Converged") == 1);
    // Provenance: which policy chose it, and which file set a value.
    let assignment = world.api.get("/api/v1/assignments/dev/drone/hello-functional-test");
    let text = assignment.to_string();
    for word in ["functional-test", "40-type-drone", "cluster-types/north/drone/config.yaml"] {
        assert!(text.contains(word), "{word} isn't in {text}");
    }
}

#[test]
fn a_hub_without_a_file_starts_with_defaults_in_its_data_folder() {
    use std::os::unix::fs::PermissionsExt;
    let Some(mut world) = World::prepare(Database::Sqlite, |_, _| {}) else { return };
    world.hub.start_again();
    let data = &world.hub.places().data;
    let mode = |path: &str| std::fs::metadata(data.join(path)).map(|found| found.permissions().mode() & 0o777).unwrap();
    assert_eq!((mode(""), mode("keys"), mode("hub.db")), (0o700, 0o700, 0o600));
    assert_eq!((mode("admin-token"), mode("platform-token")), (0o600, 0o600));
    let said = world.hub.log();
    let line = "token is in";
    assert_eq!(said.matches(line).count(), 2, "the path of each is said once\n{said}");
    for token in [kedge_tests::world::admin_token(&world.hub), kedge_tests::world::platform_token(&world.hub)] {
        assert!(!said.contains(&token), "never the token itself");
    }
    world.hub.stop();
    world.hub.start_again();
    assert_eq!(world.hub.log().matches(line).count(), 2, "and never again");
}
