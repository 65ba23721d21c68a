//! The agent's modules depend in one direction, from values to the wiring. A module names modules of layers above its own line only.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use kedge_layers::{Layers, violations};

const LAYERS: Layers<'static> = &[
    // Values and the simplest of what is outside.
    &["causes", "clock", "command", "goal", "objects", "paths", "told"],
    &["alive", "archive", "contact", "daemon", "drift", "external", "observed", "step"],
    // What is remembered of each assignment, and what was configured.
    &["config", "record", "store"],
    // What is pure: what has to be done, and how.
    &["bind", "identity", "plan", "records", "tally", "tasks", "trace"],
    &["content", "desired", "facts", "health", "holds", "link"],
    // What is outside: the hub, the cluster, peers, files.
    &["cluster", "join", "observe", "report", "swarm"],
    &["airgap", "apply"],
    // What changes the host, and what talks to others.
    &["engine", "peers"],
    &["overview", "worker"],
    &["metrics"],
    // The wiring, and what people type.
    &["run"],
    &["commands"],
];

#[test]
fn modules_depend_in_one_direction() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let found = violations(&sources, LAYERS, &[]).unwrap();
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}
