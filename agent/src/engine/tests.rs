//! The engine on a host made of maps; the submodules have one subject each.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod cuts;
mod drift;
mod patience;
mod real;
mod transactions;

use std::collections::BTreeSet;

use kedge_durable::Disk;
use kedge_durable::fake::FakeDisk;
use kedge_model::kinds::{Conflicts, Destination, Drift, Rollback, Scope as DeliveryScope};
use kedge_model::wire::{ApplyParameters, Digest, PackageRef};
use kedge_status::Condition;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::fake::{FakeHost, FakeTime, World};
use super::*;
use crate::goal::{
    Bounds, Check, FileGoal, FolderGoal, ObjectGoal, ObjectId, ObjectTerms, OnDrift, Owner, Part, Probe, Stage,
    UnitGoal,
};
use crate::observed::PathState;
use crate::record::{Outcome, Record};

/// Packages that are called by their content.
pub(crate) fn packages(name: &str) -> Packages {
    let package = |part: &str| PackageRef {
        digest: Digest::of(format!("{part} {name}").as_bytes()),
        size: 1,
        repo: "https://git.example/app".to_owned(),
        commit: "c0ffee".to_owned(),
        artifacts: Vec::new(),
    };
    Packages {
        parameters: ApplyParameters {
            to: Destination::Host,
            namespace: None,
            scope: DeliveryScope::Namespace,
            conflicts: Conflicts::Fail,
            service_account: None,
            timeout_seconds: 60,
            soak_seconds: 0,
            rollback: Rollback::Auto,
            drift: Drift::Repair,
        },
        platform: package("platform"),
        workload: package("workload"),
        version: Some(name.to_owned()),
    }
}

/// A user, a folder, a platform file, a workload file, a deb and a unit, of this version.
fn goal(name: &str, version: &str) -> Goal {
    let file = |path: String, part| FileGoal {
        path,
        content: Digest::of(version.as_bytes()),
        size: 1,
        owner: Owner::root(),
        mode: 0o644,
        part,
    };
    let config = format!("/etc/kedge/workloads/{name}/config");
    Goal {
        user: Some(format!("kedge-{name}")),
        folders: vec![FolderGoal { path: format!("/srv/{name}"), owner: Owner::root(), mode: 0o750 }],
        files: vec![
            file(config.clone(), Part::Platform),
            file(format!("/etc/systemd/system/{name}.service"), Part::Workload),
            file(format!("/srv/{name}/data"), Part::Workload),
        ],
        debs: vec![DebGoal { name: "app".to_owned(), version: version.to_owned(), file: None }],
        units: vec![UnitGoal {
            name: format!("{name}.service"),
            enabled: true,
            running: true,
            restart_on: vec![config],
        }],
        health: vec![Check { probe: Probe::Tcp("127.0.0.1:1".to_owned()), timeout_seconds: 1 }],
        bounds: Bounds { timeout_seconds: 30, soak_seconds: 5, ..Bounds::default() },
        // No host has both; the engine treats all alike.
        objects: vec![
            object(name, "Namespace", Stage::Namespaces, "always"),
            object(name, "Deployment", Stage::Rest, version),
            object(&format!("{name}-{version}"), "ConfigMap", Stage::Rest, version),
        ],
        ..Goal::default()
    }
}

/// Of the workload, in its own namespace.
fn object(name: &str, kind: &str, stage: Stage, content: &str) -> ObjectGoal {
    let id = ObjectId {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespace: (stage != Stage::Namespaces).then(|| name.to_owned()),
        name: name.to_owned(),
    };
    let terms = ObjectTerms {
        id,
        content: Digest::of(content.as_bytes()),
        part: Part::Workload,
        stage,
        account: None,
        take: false,
        keep: false,
        recreate: false,
        drift: OnDrift::Repair,
    };
    terms.into()
}

fn order(name: &str, version: &str) -> Order {
    Order {
        assignment: name.to_owned(),
        packages: packages(version),
        generation: Generation(7),
        restart: 0,
        goal: Ok(goal(name, version)),
    }
}

fn empty_host() -> World {
    let mut world = World::default();
    for path in ["/etc", "/etc/systemd", "/etc/systemd/system", "/srv", "/usr", "/usr/share"] {
        world.paths.insert(path.to_owned(), PathState::Folder { owner: Owner::root(), mode: 0o755 });
    }
    world
}

/// An agent on a host and a disk that outlive it.
struct Lab {
    host: FakeHost,
    disk: FakeDisk,
    time: FakeTime,
    engine: Engine,
    told: UnboundedReceiver<Told>,
}

impl Lab {
    fn new() -> Lab {
        let disk = FakeDisk::new();
        disk.make_folder(Paths::host().records().as_path()).unwrap();
        Lab::boot(FakeHost::of(empty_host()).powered_with(&disk), disk, FakeTime::default())
    }

    fn boot(host: FakeHost, disk: FakeDisk, time: FakeTime) -> Lab {
        let (records, found) = Records::open(Arc::new(disk.clone()), &Paths::host()).unwrap();
        assert!(found.iter().all(|one| matches!(one, crate::records::Found::Healed { .. })), "{found:?}");
        let (tell, told) = unbounded_channel();
        let clock = Arc::new(time.clone());
        let engine = Engine::open(Box::new(host.clone()), records, clock, tell, Box::new(time.clone()), &Paths::host());
        Lab { host, disk, time, engine, told }
    }

    /// The process ends; another one starts and recovers.
    fn reboot(self) -> Lab {
        let mut lab = Lab::boot(self.host, self.disk, self.time);
        lab.engine.recover();
        lab
    }

    fn record(&self, name: &str) -> Record {
        self.engine.records().get(name).unwrap().clone()
    }

    fn outcome(&self, name: &str) -> Outcome {
        self.record(name).last.unwrap().outcome.unwrap()
    }

    fn told(&mut self) -> Vec<Told> {
        std::iter::from_fn(|| self.told.try_recv().ok()).collect()
    }

    /// Conditions of an assignment, as they were told.
    fn conditions(&mut self, name: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let mut all = Vec::new();
        for told in self.told() {
            if let Told::AssignmentStatus { assignment, condition, version, drift, .. } = told
                && assignment == name
            {
                let condition = match condition {
                    Condition::Failed { reason, .. } => format!("Failed {reason}"),
                    other => other.word().to_owned(),
                };
                all.push((condition, version, drift));
            }
        }
        all
    }

    /// The conditions' words alone.
    fn words(&mut self, name: &str) -> Vec<String> {
        self.conditions(name).into_iter().map(|(word, _, _)| word).collect()
    }
}
