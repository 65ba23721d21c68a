//! An environment as the way of a change passes it: its commit, its clusters, its rings from top to bottom, its cluster types.

use std::collections::BTreeSet;

use kedge_api::counts::ConditionCounts;
use kedge_api::fleet::{FleetEnvironment, FleetRing, FleetType, PresenceCounts, RunningCommit, StandingNotice};

use crate::web::links;
use crate::web::part::{Bar, Chip, Four, Text, When};

pub struct Column {
    pub name: String,
    pub link: String,
    /// What its rings run, where that isn't the one commit that Git names.
    pub running: Vec<Runs>,
    /// Why.
    pub notices: Vec<Notice>,
    pub promoted: Option<Promoted>,
    pub next: Option<Next>,
    pub trouble: Option<String>,
    pub clusters: Clusters,
    pub bar: Bar,
    /// None where there is only one.
    pub rings: Vec<Group>,
    pub types: Vec<Group>,
    /// Cluster types that aren't shown.
    pub more_types: usize,
}

/// A commit that rings run.
pub struct Runs {
    pub chip: Option<Chip>,
    pub subject: String,
    /// Empty: all.
    pub rings: String,
    /// Of those that run it: offline, so it is what they reported last.
    pub offline: u64,
}

pub struct Notice {
    pub text: String,
    pub link: Option<String>,
    pub since: Option<When>,
    pub failed: bool,
}

/// The commit that Git names.
pub struct Promoted {
    pub chip: Chip,
    pub subject: String,
    pub at: Option<When>,
    /// `Entered`, `Passed`, …
    pub state: String,
}

/// A commit that waits to come in.
pub struct Next {
    pub chip: Chip,
    pub waits_for: Vec<Text>,
}

/// How many clusters, each number with its list.
pub struct Clusters {
    pub total: u64,
    pub link: String,
    pub silent: u64,
    pub silent_link: String,
    pub silent_since: Option<When>,
    pub joined: u64,
}

/// A ring or a cluster type.
pub struct Group {
    pub name: String,
    pub link: String,
    pub clusters: u64,
    pub clusters_link: String,
    pub bar: Bar,
}

/// So many cluster types stand in a column: those that need somebody first.
const TYPES: usize = 6;

impl Column {
    /// `named` are the commits that stand further along the way.
    pub fn of(environment: &FleetEnvironment, named: &mut BTreeSet<String>) -> Column {
        let name = environment.name.as_str();
        let mut chip = |commit: &str, subject: &str| {
            let chip = Chip::new(commit, subject);
            if named.insert(commit.to_owned()) { chip.moving(format!("c-{commit}")) } else { chip }
        };
        let promoted = environment.promoted_commit.as_deref().map(|commit| {
            let subject = environment.promoted_subject.clone().unwrap_or_default();
            Promoted {
                chip: chip(commit, &subject),
                subject,
                at: When::maybe(environment.promoted_at.as_deref()),
                state: environment.promotion.clone().unwrap_or_default(),
            }
        });
        let as_named = |one: &RunningCommit| Some(&one.commit) == environment.promoted_commit.as_ref();
        let running = match environment.running.as_slice() {
            [one] if as_named(one) => Vec::new(),
            some => some.iter().map(Runs::of).collect(),
        };
        let next = environment.next.as_ref().map(|next| Next {
            chip: chip(&next.commit, &next.subject),
            waits_for: next.waits_for.iter().map(|why| Text::of(why)).collect(),
        });
        let ring = |ring: &FleetRing| {
            let pairs = [("environment", name), ("ring", ring.name.as_str())];
            Group::of(&ring.name, String::new(), ring.clusters, ring.conditions, &pairs)
        };
        let mut types: Vec<_> = environment.types.iter().collect();
        // Those that need somebody are among the shown, and each stays where it is while its numbers change.
        types.sort_by_key(|found| (std::cmp::Reverse(weight(found.conditions)), found.name.clone()));
        let more_types = types.len().saturating_sub(TYPES);
        types.truncate(TYPES);
        types.sort_by(|one, other| one.name.cmp(&other.name));
        let cluster_type = |found: &&FleetType| {
            let pairs = [("environment", name), ("clusterType", found.name.as_str())];
            let link = links::cluster_type(name, &found.name);
            Group::of(&found.name, link, found.clusters, found.conditions, &pairs)
        };
        Column {
            link: links::environment(name),
            running,
            notices: environment.notices.iter().map(Notice::of).collect(),
            promoted,
            next,
            trouble: environment.trouble.clone(),
            clusters: Clusters::of(name, environment),
            bar: four(environment.conditions).bar("/conditions", &[("environment", name)]),
            rings: match environment.rings.len() {
                0 | 1 => Vec::new(),
                _ => environment.rings.iter().map(ring).collect(),
            },
            types: types.iter().map(cluster_type).collect(),
            more_types,
            name: name.to_owned(),
        }
    }
}

impl Runs {
    fn of(one: &RunningCommit) -> Runs {
        Runs {
            chip: (!one.commit.is_empty()).then(|| Chip::new(&one.commit, &one.subject)),
            subject: one.subject.clone(),
            rings: one.rings.join(", "),
            offline: one.offline,
        }
    }
}

impl Notice {
    fn of(notice: &StandingNotice) -> Notice {
        Notice {
            text: notice.text.clone(),
            link: notice.rollout.map(links::rollout),
            since: When::maybe(notice.since.as_deref()),
            failed: !matches!(notice.kind.as_str(), "held" | "paused"),
        }
    }
}

impl Clusters {
    pub fn of(name: &str, environment: &FleetEnvironment) -> Clusters {
        let PresenceCounts { total, unknown, joined, .. } = environment.clusters;
        Clusters {
            total,
            link: links::query("/clusters", &[("environment", name), ("state", "active")]),
            silent: unknown,
            silent_link: links::query(
                "/clusters",
                &[("environment", name), ("condition", "Unknown"), ("state", "active")],
            ),
            silent_since: environment.oldest_unknown.as_deref().map(When::clock),
            joined,
        }
    }
}

impl Group {
    pub fn of(
        name: &str,
        link: String,
        clusters: PresenceCounts,
        conditions: ConditionCounts,
        pairs: &[(&str, &str)],
    ) -> Group {
        let members: Vec<(&str, &str)> = pairs.iter().copied().chain(std::iter::once(("state", "active"))).collect();
        let clusters_link = links::query("/clusters", &members);
        Group {
            name: name.to_owned(),
            link: if link.is_empty() { clusters_link.clone() } else { link },
            clusters: clusters.total,
            clusters_link,
            bar: four(conditions).bar("/conditions", pairs),
        }
    }
}

pub fn four(counts: ConditionCounts) -> Four {
    let ConditionCounts { converged, converging, failed, unknown } = counts;
    Four { converged, converging, failed, unknown }
}

/// What needs somebody stands first.
pub fn weight(counts: ConditionCounts) -> (bool, bool, bool) {
    (counts.failed > 0, counts.converging > 0, counts.unknown > 0)
}
