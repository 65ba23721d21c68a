//! The description of the API as strangers read it: a public linter, and a client that a public generator makes of it, which
//! lists the clusters of a real hub.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kedge_tests::lab::skip;
use kedge_tests::world::cluster::Cluster;
use kedge_tests::world::{Database, World, admin_token};
use serde_json::{Value, json};

/// Where npm put the programs; none, and the test is marked as skipped, where they can't be had.
fn programs() -> Option<PathBuf> {
    let found = std::env::var_os("KEDGE_OPENAPI").map(PathBuf::from);
    if found.is_none() {
        let why = std::env::var("KEDGE_NO_OPENAPI");
        skip(&why.unwrap_or_else(|_| "KEDGE_OPENAPI isn't set (./tests/run hub fetches what it names)".to_owned()));
    }
    found
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Nothing of it asks the network.
fn run(programs: &Path, name: &str, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(programs.join("node_modules/.bin").join(name));
    command.args(arguments).current_dir(folder).env("CI", "true").env("NO_COLOR", "1");
    command.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    command.output().unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
fn succeeds(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn lint(programs: &Path, folder: &Path, description: &str) -> Output {
    let config = repository().join("tests/lab/openapi/redocly.yaml");
    run(
        programs,
        "redocly",
        folder,
        &["lint", "--config", config.to_str().unwrap(), "--format", "stylish", description],
    )
}

#[test]
fn a_public_linter_finds_no_error_in_the_description() {
    let Some(programs) = programs() else { return };
    let folder = tempfile::tempdir().unwrap();
    let committed = repository().join("docs/openapi.json");
    succeeds(lint(&programs, folder.path(), committed.to_str().unwrap()));

    // It would find one.
    let mut broken: Value = serde_json::from_slice(&fs::read(&committed).unwrap()).unwrap();
    broken["paths"]["/clusters"]["get"]["responses"]["200"].as_object_mut().unwrap().remove("description");
    let path = folder.path().join("broken.json");
    fs::write(&path, broken.to_string()).unwrap();
    assert!(!lint(&programs, folder.path(), path.to_str().unwrap()).status.success());
}

#[test]
fn a_client_that_is_generated_from_the_description_lists_the_clusters_of_a_hub() {
    let Some(programs) = programs() else { return };
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let token = world.token("drone", &["--uses", "5"]);
    for number in 0..5 {
        Cluster::join(&token, &format!("drone-{number}"));
    }

    let folder = tempfile::tempdir().unwrap();
    let own = repository().join("tests/lab/openapi");
    for name in ["client.ts", "tsconfig.json", "package.json"] {
        fs::copy(own.join(name), folder.path().join(name)).unwrap();
    }
    std::os::unix::fs::symlink(programs.join("node_modules"), folder.path().join("node_modules")).unwrap();
    let committed = repository().join("docs/openapi.json");
    succeeds(run(&programs, "openapi-typescript", folder.path(), &[committed.to_str().unwrap(), "-o", "schema.ts"]));
    succeeds(run(&programs, "tsc", folder.path(), &[]));
    let list = |token: &str| {
        let mut client = Command::new("node");
        client.arg("out/client.js").arg(world.hub.url("")).arg(token).current_dir(folder.path());
        client.output().unwrap()
    };
    let listed = succeeds(list(&admin_token(&world.hub)));
    let clusters: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected: Vec<Value> =
        (0..5).map(|number| json!({"name": format!("drone-{number}"), "environment": "dev"})).collect();
    assert_eq!(clusters, expected);
    let refused = list("kedge_guess");
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("BadToken"));
}
