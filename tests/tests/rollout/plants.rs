//! Plants that several tests begin with.

use std::time::Duration;

use kedge_tests::world::plant::{LINE, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;

/// What must not happen would have happened by then.
pub(crate) const A_WHILE: Duration = Duration::from_secs(6);

pub(crate) const CHAIN: [&str; 3] = ["dev", "stage", "prod"];

/// Names of an environment's boxes.
pub(crate) fn names(plant: &Plant, environment: &str) -> Vec<String> {
    plant.boxes(environment).map(str::to_owned).collect()
}

/// One box of each type in every environment, converged.
pub(crate) fn small(policy: &Policy) -> Option<Plant> {
    let mut plant = Plant::start(Some(policy))?;
    for environment in CHAIN {
        plant.add(environment, LINE, "", 1);
        plant.add(environment, PRESS, "", 1);
    }
    CHAIN.iter().for_each(|environment| plant.await_converged(environment));
    Some(plant)
}

/// The same, and then a policy that is stricter: it holds at once, and what runs already stays.
pub(crate) fn small_then(policy: &Policy) -> Option<Plant> {
    let plant = small(&Policy::chain(&CHAIN))?;
    tighten(&plant, policy);
    Some(plant)
}

/// A stricter policy needs nobody's approval.
pub(crate) fn tighten(plant: &Plant, policy: &Policy) {
    let commit = plant.push_policy(policy);
    plant.await_so("the stricter policy is in force", MOVED_WITHIN, |plant| {
        plant.world.api.get("/api/v1/promotions")["policy"]["commit"] == commit.as_str()
    });
    assert!(!plant.world.api.has_problem(&["PolicyLoosened"]));
}

/// Only dev has boxes: two canaries and three others of one type, one canary of the other type; the rings are `canary` and
/// `rest`.
pub(crate) fn with_rings(policy: Policy) -> Option<Plant> {
    let policy = rings_of(policy);
    let mut plant = Plant::start(Some(&policy))?;
    plant.add("dev", LINE, "ring=canary", 2);
    plant.add("dev", LINE, "", 3);
    plant.add("dev", PRESS, "ring=canary", 1);
    plant.add("dev", PRESS, "", 1);
    plant.await_converged("dev");
    Some(plant)
}

/// Its rings.
pub(crate) fn rings_of(policy: Policy) -> Policy {
    policy.ring("dev", "canary", &["selector: {matchLabels: {ring: canary}}"]).ring("dev", "rest", &[])
}

/// So many seconds from now, RFC 3339.
pub(crate) fn moment(seconds: u32) -> String {
    let when = format!("+{seconds} seconds");
    let ran = std::process::Command::new("date").args(["-u", "-d", &when, "+%Y-%m-%dT%H:%M:%SZ"]).output().unwrap();
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// The boxes of `with_rings`.
pub(crate) const CANARIES: [&str; 3] = ["dev-factory-line-1", "dev-factory-line-2", "dev-press-1"];
pub(crate) const OTHERS: [&str; 4] = ["dev-factory-line-3", "dev-factory-line-4", "dev-factory-line-5", "dev-press-2"];
