//! What a run is about, drawn from its seed: the policy, the fleet, how much goes wrong. Read by everything else, changed by nothing.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::kinds::{
    Amount, Approval, ApproverRole, Check, Empty, EnvironmentPolicy, Freeze, Late, Members, Probe, Promoter,
    PromotionPolicy, Ring, Then, Window,
};
use kedge_model::{Labels, Selector};

use crate::chance::Chance;

/// 2026-11-16T12:00:00Z, a Monday.
pub const START: i64 = 1_794_830_400_000;
pub const SECOND: i64 = 1_000;
pub const MINUTE: i64 = 60 * SECOND;
/// At most so many rings has an environment.
pub const RINGS: usize = 4;
/// The environments, by their place in the policy.
const NAMES: [&str; 4] = ["dev", "qa", "perf", "prod"];

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub policy: Arc<PromotionPolicy>,
    pub types: Vec<ClusterType>,
    pub workloads: usize,
    /// Every (type, workload), the types in order.
    pub assignments: Vec<(usize, usize)>,
    /// The assignments of each type: places in the list above.
    pub of_type: Vec<Vec<usize>>,
    pub fleet: Vec<Place>,
    /// Faults end here; until then all of them may happen.
    pub calm: i64,
    /// Each in a thousand.
    pub faults: Faults,
}

#[derive(Clone, Debug)]
pub struct ClusterType {
    pub name: String,
    /// Places in the list of workloads.
    pub workloads: Vec<usize>,
}

/// Where a cluster belongs at the beginning.
#[derive(Clone, Debug)]
pub struct Place {
    pub environment: usize,
    pub cluster_type: usize,
    pub labels: Labels,
    /// Joins so late.
    pub joins: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// The hub dies between two steps.
    pub death: u64,
    /// Another hub takes over between two steps of this one, which doesn't notice.
    pub takeover: u64,
    /// A message is lost.
    pub loss: u64,
    /// An answer was forged or is an old one.
    pub forgery: u64,
    /// An agent crashes while it applies.
    pub crash: u64,
    /// A commit is bad.
    pub bad: u64,
}

impl Plan {
    pub fn draw(seed: u64, clusters: usize) -> Plan {
        let mut chance = Chance::new(seed);
        let workloads = 1 + chance.below(3);
        let types = (0..1 + chance.below(3))
            .map(|number| {
                let mut list: Vec<usize> = (0..workloads).filter(|_| chance.permille(700)).collect();
                if list.is_empty() {
                    list.push(number % workloads);
                }
                ClusterType { name: format!("type-{number}"), workloads: list }
            })
            .collect::<Vec<_>>();
        let policy = policy(&mut chance, clusters);
        let fleet = (0..clusters).map(|_| place(&mut chance, policy.environments.len(), types.len())).collect();
        let severity = chance.below(4) as u64;
        let faults = Faults {
            death: severity * 5,
            takeover: severity * 4,
            loss: severity * 15,
            forgery: severity * 3,
            crash: severity * 20,
            bad: 100 + severity * 100,
        };
        let calm = START + chance.between(20, 50) * MINUTE;
        let of_each = types.iter().enumerate();
        let assignments: Vec<(usize, usize)> =
            of_each.flat_map(|(number, kind)| kind.workloads.iter().map(move |work| (number, *work))).collect();
        let of_type = (0..types.len())
            .map(|kind| (0..assignments.len()).filter(|place| assignments[*place].0 == kind).collect())
            .collect();
        Plan { seed, policy: Arc::new(policy), types, workloads, assignments, of_type, fleet, calm, faults }
    }

    /// The stream of an environment, a type and a ring, all by their places.
    pub fn stream(&self, environment: usize, cluster_type: usize, ring: usize) -> usize {
        (environment * self.types.len() + cluster_type) * RINGS + ring
    }

    pub fn environments(&self) -> usize {
        self.policy.environments.len()
    }

    pub fn rules(&self, environment: usize) -> &EnvironmentPolicy {
        &self.policy.environments[environment]
    }
}

fn policy(chance: &mut Chance, clusters: usize) -> PromotionPolicy {
    let mut names: Vec<&str> = NAMES.to_vec();
    names.truncate(2 + chance.below(3));
    let mut environments: Vec<EnvironmentPolicy> =
        names.iter().enumerate().map(|(place, name)| environment(chance, place, name, &names)).collect();
    for ring in environments.iter_mut().flat_map(|rules| &mut rules.rings) {
        // One by one through thousands takes longer than a run should.
        if let Amount::Number(number) = &mut ring.max_unavailable {
            *number += clusters as u64 / 100;
        }
    }
    let promoter = if chance.permille(200) { Promoter::External } else { Promoter::Kedge };
    PromotionPolicy { promoter, environments }
}

fn environment(chance: &mut Chance, place: usize, name: &str, names: &[&str]) -> EnvironmentPolicy {
    let after = match (place, chance.below(3)) {
        (0, _) => vec![],
        // qa and perf side by side, prod after both.
        (2, 0) => vec![names[0].to_owned()],
        (3, 0) => vec![names[1].to_owned(), names[2].to_owned()],
        _ => vec![names[place - 1].to_owned()],
    };
    let mut rules = EnvironmentPolicy::new(name, after);
    let count = 1 + chance.below(RINGS);
    rules.rings = (0..count).map(|number| ring(chance, number, number + 1 == count)).collect();
    rules.late = if chance.permille(300) { Late::Reopen } else { Late::Show };
    if chance.permille(150) {
        // Monday 12:10 to 20:00, then on Tuesday.
        let from = 720 + u16::try_from(chance.below(30)).unwrap_or_default();
        rules.windows = vec![Window { days: vec![1, 2], from, to: 1_200, time_zone: "UTC".to_owned() }];
    }
    if chance.permille(50) {
        let (from, to) = ("2026-11-14".to_owned(), "2026-11-16".to_owned());
        // Over at 13:00 in UTC.
        rules.freezes = vec![Freeze { from, to, time_zone: "Pacific/Noumea".to_owned(), reason: String::new() }];
    }
    if chance.permille(100) {
        rules.counts.workloads = vec!["work-0".to_owned()];
    }
    rules
}

fn ring(chance: &mut Chance, number: usize, last: bool) -> Ring {
    let members = match (last, chance.below(3)) {
        (true, _) => Members::Rest,
        (_, 0) => Members::Selected(Selector::label("ring", format!("r{number}"))),
        _ => Members::Share(500 + u32::try_from(chance.below(3_000)).unwrap_or_default()),
    };
    let mut ring = Ring::new(&format!("r{number}"), members);
    ring.soak = Duration::from_secs(chance.below(120) as u64);
    ring.gate.empty = if chance.permille(300) { Empty::Pass } else { Empty::Wait };
    ring.gate.reached = match chance.below(4) {
        0 => Amount::Number(1 + chance.below(3) as u64),
        1 => Amount::Share(8_000),
        _ => Amount::Share(5_000),
    };
    ring.gate.converged = *chance.pick(&[10_000, 10_000, 9_000, 7_500]).unwrap_or(&10_000);
    if chance.permille(400) {
        ring.gate.failed = Amount::Share(1_000);
        ring.failure.budget = Amount::Share(1_500);
    }
    ring.failure.then = if chance.permille(300) { Then::Rollback } else { Then::Pause };
    ring.max_unavailable =
        if chance.permille(500) { Amount::Share(2_500) } else { Amount::Number(1 + chance.below(20) as u64) };
    if chance.permille(150) {
        let people = 1 + u32::try_from(chance.below(2)).unwrap_or_default();
        ring.approval = Some(Approval { people, role: ApproverRole::Platform, not_author: chance.permille(500) });
    }
    if chance.permille(150) {
        ring.gate.checks = vec![Check {
            name: "slo".to_owned(),
            probe: Probe::CommitStatus { context: "slo".to_owned() },
            every: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
        }];
    }
    ring
}

fn place(chance: &mut Chance, environments: usize, types: usize) -> Place {
    let joins = if chance.permille(900) { START } else { START + chance.between(0, 30) * MINUTE };
    Place { environment: chance.below(environments), cluster_type: chance.below(types), labels: labels(chance), joins }
}

pub fn labels(chance: &mut Chance) -> Labels {
    Labels::from([("ring".to_owned(), format!("r{}", chance.below(6)))])
}
