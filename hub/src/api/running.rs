//! What clusters run of an assignment, ring by ring, as they reported it: the packages, and the configuration inside the platform's
//! package, beside what Git says. Git may be ahead after a rollback, between rings, or while something fails.

mod configuration;

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::assignments::{RunningAssignment, RunningConfiguration};
use kedge_model::wire::{Digest, Stream};

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::desired::{Streams, WantedEntry};
use super::drift::contents;
use super::fleet::add_condition;
use super::page::moment;
use super::rollouts::selection;
use crate::catalog::StoredValue;
use crate::compare::rendered::Hidden;
use crate::pack::Delivered;
use crate::store::api::conditions::MemberFilter;
use crate::store::api::contents::Content;
use crate::store::api::drift::RunningSum;
use crate::store::catalog::Visible;
pub(crate) use configuration::Git;

/// What runs of an assignment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    /// By ring, the most frequent first.
    pub rings: Vec<RunningAssignment>,
    /// What each ring should run is among them too.
    pub configurations: Vec<RunningConfiguration>,
    /// The configuration that each ring was given.
    pub delivered: BTreeMap<String, String>,
}

/// So many clusters that somebody changed something on are named.
const DRIFTED_ON: usize = 5;

/// Whose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub environment: &'a str,
    pub cluster_type: &'a str,
    pub target: &'a str,
}

/// Where a configuration is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Package(Digest),
    /// Another reconciler applies the branch: the commit that it should have reached.
    Branch {
        ring: String,
    },
}

impl Place {
    fn id(&self) -> String {
        match self {
            Place::Package(digest) => digest.to_string(),
            Place::Branch { ring } => format!("branch of {ring}"),
        }
    }
}

/// What runs of an assignment that the caller may see.
pub(crate) async fn of(state: &ApiState, caller: &Caller, asked: Asked<'_>, git: &Git) -> Result<Running, ApiError> {
    let Asked { environment, cluster_type, target } = asked;
    let desired = state.desired.streams(&state.store).await?;
    let wanted = wanted(&desired, asked);
    let filter = MemberFilter {
        environment: Some(environment.to_owned()),
        cluster_type: Some(cluster_type.to_owned()),
        assignments: Some(vec![target.to_owned()]),
        ..MemberFilter::default()
    };
    let sums = state.store.running_sums(&Visible::All, &filter).await?;
    let drifts = state.store.drift_sums(&Visible::All, &filter).await?;
    let mut groups = grouped(sums, drifts);
    for group in groups.values_mut().filter(|group| group.drifted) {
        let stream = Stream::new(environment, cluster_type, &group.ring);
        group.drifted_on = state.store.drifted_on(&stream, target, &group.packages, DRIFTED_ON).await?;
    }
    let named: BTreeSet<&String> = groups.values().map(|group| &group.packages).collect();
    let named: Vec<String> = named.into_iter().filter(|name| !name.is_empty()).cloned().collect();
    let contents = contents(state, &named, &desired).await?;
    // Each place once, with the commit that it came from.
    let mut places: BTreeMap<Place, Option<String>> = BTreeMap::new();
    let mut delivered = BTreeMap::new();
    for (ring, entry) in &wanted {
        let place = place(entry, ring);
        delivered.insert(ring.clone(), place.id());
        places.insert(place, entry.platform_commit.clone());
    }
    let mut rings: Vec<RunningAssignment> = Vec::new();
    for mut group in groups.into_values() {
        let entry = wanted.get(&group.ring);
        let wanted = entry.map_or("", |entry| entry.packages.as_str());
        group.as_desired = wanted == group.packages && !group.drifted;
        let found = known(&group, entry, &contents);
        if let Some((content, at)) = found {
            group.version = content.version;
            group.commit = Some(content.workload_commit).filter(|commit| !commit.is_empty());
            let commit = Some(content.platform_commit).filter(|commit| !commit.is_empty());
            group.platform_commit.clone_from(&commit);
            if !group.drifted {
                group.configuration = at.as_ref().map(Place::id);
                places.extend(at.map(|at| (at, commit)));
            }
        }
        if group.conditions.unknown > 0 {
            let stream = Stream::new(environment, cluster_type, &group.ring);
            group.offline_since = state.store.offline_since(&stream).await?.map(|since| moment(since.0));
        }
        rings.push(group);
    }
    let order = |ring: &str| desired_order(&wanted, ring);
    rings.sort_by(|one, other| {
        (order(&one.ring), &one.ring).cmp(&(order(&other.ring), &other.ring)).then(other.count.cmp(&one.count))
    });
    let configurations = read(state, caller, asked, git, places).await?;
    Ok(Running { rings, configurations, delivered })
}

/// By ring, packages, and whether somebody changed what runs: those are a group of their own.
fn grouped(sums: Vec<RunningSum>, drifts: Vec<RunningSum>) -> BTreeMap<(String, String, bool), RunningAssignment> {
    let mut left: BTreeMap<(String, String, &str), u64> = BTreeMap::new();
    for sum in &drifts {
        *left.entry((sum.stream.ring.clone(), sum.running.clone(), sum.condition.as_str())).or_default() += sum.count;
    }
    let mut groups: BTreeMap<(String, String, bool), RunningAssignment> = BTreeMap::new();
    for RunningSum { stream, running, condition, count, .. } in sums {
        // Counts and reports are read one after the other: never more than there are.
        let of = left.get_mut(&(stream.ring.clone(), running.clone(), condition.as_str()));
        let drifted = of.map_or(0, |left| {
            let taken = count.min(*left);
            *left -= taken;
            taken
        });
        for (drifted, count) in [(false, count - drifted), (true, drifted)] {
            if count > 0 {
                let key = (stream.ring.clone(), running.clone(), drifted);
                let group = groups.entry(key).or_insert_with(|| RunningAssignment {
                    ring: stream.ring.clone(),
                    packages: running.clone(),
                    drifted,
                    ..RunningAssignment::default()
                });
                group.count += count;
                add_condition(&mut group.conditions, condition, count);
            }
        }
    }
    groups
}

/// What the rings of a cluster type should run of an assignment.
fn wanted<'a>(desired: &'a Streams, asked: Asked<'_>) -> BTreeMap<String, &'a WantedEntry> {
    let own = desired
        .iter()
        .filter(|(stream, _)| stream.environment == asked.environment && stream.cluster_type == asked.cluster_type);
    own.filter_map(|(stream, state)| Some((stream.ring.clone(), state.entries.get(asked.target)?))).collect()
}

fn place(entry: &WantedEntry, ring: &str) -> Place {
    match entry.platform {
        Some(digest) => Place::Package(digest),
        None => Place::Branch { ring: ring.to_owned() },
    }
}

/// What a group's packages are, and where their configuration is.
fn known(
    group: &RunningAssignment,
    entry: Option<&&WantedEntry>,
    contents: &BTreeMap<String, Content>,
) -> Option<(Content, Option<Place>)> {
    if let Some(content) = contents.get(&group.packages) {
        return Some((content.clone(), content.platform.map(Place::Package)));
    }
    let entry = entry.filter(|entry| entry.packages == group.packages && !group.packages.is_empty())?;
    let content = Content { platform_commit: entry.platform_commit.clone().unwrap_or_default(), ..Content::default() };
    Some((content, Some(place(entry, &group.ring))))
}

/// Rings that are in force come before those that are left over.
fn desired_order(wanted: &BTreeMap<String, &WantedEntry>, ring: &str) -> usize {
    usize::from(!wanted.contains_key(ring))
}

async fn read(
    state: &ApiState,
    caller: &Caller,
    asked: Asked<'_>,
    git: &Git,
    places: BTreeMap<Place, Option<String>>,
) -> Result<Vec<RunningConfiguration>, ApiError> {
    let packages: BTreeSet<Digest> = places
        .keys()
        .filter_map(|place| match place {
            Place::Package(digest) => Some(*digest),
            Place::Branch { .. } => None,
        })
        .collect();
    let delivered = state.services.delivered(&packages).await?;
    let hidden = git.hidden(caller);
    let mut views = Vec::new();
    for (place, commit) in places {
        let (content, commit) = match &place {
            Place::Package(digest) => (delivered.get(digest).cloned().unwrap_or(Delivered::Gone), commit),
            Place::Branch { ring } => on_branch(state, asked, ring).await?,
        };
        views.push(git.view(place.id(), commit, content, &hidden));
    }
    Ok(views)
}

/// What the branch says that another reconciler reads, at the commit that the ring's state names.
async fn on_branch(state: &ApiState, asked: Asked<'_>, ring: &str) -> Result<(Delivered, Option<String>), ApiError> {
    let stream = Stream::new(asked.environment, asked.cluster_type, ring);
    let Some(seen) = state.store.state_of(&stream, None).await? else { return Ok((Delivered::Gone, None)) };
    let Some(source) = selection::desired(&seen.envelope)?.source else { return Ok((Delivered::Gone, None)) };
    let folder = format!("{}/{}", asked.cluster_type, asked.target);
    let folders = [folder.clone()];
    let found = state.services.rendered(&source.repo, &source.branch, &source.commit, &folders).await?;
    let read = found.and_then(|mut found| found.remove(&folder));
    let delivered = read.map_or(Delivered::Gone, |file| Delivered::Read(file.map(std::sync::Arc::new)));
    Ok((delivered, Some(source.commit)))
}

/// What the catalog hides from a caller.
fn hides(stored: &[StoredValue], caller: &Caller) -> Hidden {
    if caller.sees_secrets() {
        return Hidden { nothing: true, ..Hidden::default() };
    }
    let secret = stored.iter().filter(|value| value.is_secret());
    Hidden { keys: secret.map(|value| value.key().to_owned()).collect(), ..Hidden::default() }
}
