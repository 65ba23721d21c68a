//! The agent's modules in one direction, from values to the wiring: each uses only what stands before it. `docs/architecture.md` says what
//! each is for.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use kedge_direction::{Direction, read_modules};

const AGENT: Direction<'_> = Direction {
    low_to_high: &[
        // Values and the simplest of what is outside.
        "causes", "clock", "command", "goal", "objects", "paths", "told", "alive", "archive", "contact", "daemon",
        "drift", "external", "observed", "step",
        // What is remembered of each assignment, and what was configured.
        "config", "record", "store", // What is pure: what has to be done, and how.
        "bind", "identity", "plan", "records", "tally", "tasks", "trace", "content", "desired", "facts", "health",
        "holds", "link", // What is outside: the hub, the cluster, peers, files.
        "cluster", "join", "observe", "report", "swarm", "airgap", "apply",
        // What changes the host, and what talks to others.
        "engine", "peers", "overview", "worker", "metrics", // The wiring, and what people type.
        "run", "commands",
    ],
    exceptions: &[],
};

#[test]
fn modules_use_only_what_is_below_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let violations = read_modules(&source).unwrap().violations(&AGENT);
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} against the direction:\n{}", lines.len(), lines.join("\n"));
}
