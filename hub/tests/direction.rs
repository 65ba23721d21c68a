//! The hub's packages and the modules of the large ones in one direction: each uses only what stands before it in its list.
//! `docs/architecture.md` says what each is for.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use kedge_direction::{Direction, Graph, read_modules, read_packages};

/// Below `hub/`, from low to high, each with its folder. The last one is the wiring.
const PACKAGES: [(&str, &str); 3] = [("kedge-hub-types", "types"), ("kedge-hub-store", "store"), ("kedge-hub", "")];

/// Whose modules have a direction of their own: those of more lines than `LARGE`.
const DIRECTIONS: [(&str, Direction<'_>); 2] = [("kedge-hub-store", STORE), ("kedge-hub", HUB)];
const LARGE: usize = 5_000;

const STORE: Direction<'_> = Direction {
    low_to_high: &[
        "failure",
        "statement",
        // Tables that one module of the hub has to itself.
        "meta",
        "leader",
        "keys",
        "git",
        "platform",
        "events",
        "versions",
        "permits",
        "history",
        "promotion",
        "pack",
        "state",
        "rollout",
        "status",
        "airgap",
        // Whom the hub knows.
        "agents",
        "tokens",
        "people",
        // What people ask for, over many tables.
        "catalog",
        "api",
        "publish",
        "sessions",
        "figures",
        "dump",
    ],
    exceptions: &[],
};

const HUB: Direction<'_> = Direction {
    low_to_high: &[
        // What knows nothing of the hub.
        "private",
        "connections",
        "signal",
        // What the hub is told, and who it is.
        "config",
        "keys",
        "catalog",
        "metrics",
        "history",
        // The way of a change.
        "git",
        "platform",
        "publish",
        "pack",
        "compare",
        "state",
        "permits",
        "status",
        "rollout",
        "agents",
        "promotion",
        "reconcile",
        // What is told of it.
        "events",
        "airgap",
        "preview",
        "links",
        "api",
        "web",
        // The program.
        "backup",
        "run",
        "command",
    ],
    exceptions: &[],
};

fn folder(name: &str) -> PathBuf {
    let hub = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (_, folder) = PACKAGES.iter().find(|(package, _)| *package == name).unwrap();
    hub.join(folder)
}

fn check(graph: &Graph, direction: &Direction<'_>) {
    let violations = graph.violations(direction);
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} against the direction:\n{}", lines.len(), lines.join("\n"));
}

fn lines(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| match path.is_dir() {
        true => lines(&path),
        false => std::fs::read_to_string(&path).unwrap().lines().count(),
    };
    entries.filter(|path| path.is_dir() || path.extension().is_some_and(|end| end == "rs")).map(of).sum()
}

#[test]
fn packages_use_only_what_is_below_them() {
    let folders = PACKAGES.map(|(name, _)| (name, folder(name)));
    let graph = read_packages(&folders.each_ref().map(|(name, folder)| (*name, folder.as_path()))).unwrap();
    check(&graph, &Direction { low_to_high: &PACKAGES.map(|(name, _)| name), exceptions: &[] });
}

#[test]
fn modules_use_only_what_is_below_them() {
    for (name, direction) in DIRECTIONS {
        check(&read_modules(&folder(name).join("src")).unwrap(), &direction);
    }
}

#[test]
fn every_large_package_has_a_direction() {
    for (name, _) in PACKAGES {
        let has_one = DIRECTIONS.iter().any(|(package, _)| *package == name);
        let lines = lines(&folder(name).join("src"));
        assert!(has_one || lines <= LARGE, "{name} has {lines} lines: add the direction of its modules");
    }
}

/// A folder below `hub/` with a manifest is in the list.
#[test]
fn every_package_of_the_hub_has_a_place() {
    let hub = folder("kedge-hub");
    for entry in std::fs::read_dir(&hub).unwrap() {
        let path = entry.unwrap().path();
        if path.join("Cargo.toml").exists() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            assert!(PACKAGES.iter().any(|(_, folder)| *folder == name), "hub/{name} isn't among the packages");
        }
    }
}
