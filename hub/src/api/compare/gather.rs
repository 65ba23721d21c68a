//! One side of a comparison: first the names, then, of the workloads on the page, what they run and with which configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_api::comparisons::ComparedSide;
use kedge_model::wire::Digest;

use super::reported::{self, Reported};
use super::states::{self, Opened, Published};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::caller::Caller;
use crate::api::names;
use crate::api::page::moment;
use crate::catalog::StoredValue;
use crate::compare::rendered::{self, Hidden};
use crate::compare::{Place, Side, SideName, Value, Values, Workload};
use crate::pack::Delivered;
use crate::pack::configurations::Rendered;
use crate::store::StoreError;
use crate::store::api::compare::AssignmentLine;
use crate::store::api::names::NameKind;
use crate::store::catalog::{Kind, Visible};
use crate::store::tokens::Role;

/// What is known of a side without reading texts.
#[derive(Debug)]
pub(super) struct Known {
    name: SideName,
    cluster_types: BTreeSet<String>,
    /// Targets by workload, also those that run nowhere.
    workloads: BTreeMap<String, BTreeSet<String>>,
    /// Of now; at an earlier time only the states know.
    lines: Vec<AssignmentLine>,
    states: Vec<Opened>,
}

/// Published files that one comparison reads; a hundred thousand would take minutes.
const MAX_FILES: usize = 5000;
/// Commits of a GitOps branch that one comparison looks into.
const MAX_COMMITS: usize = 50;

impl Known {
    pub async fn of(state: &ApiState, caller: &Caller, name: SideName) -> Result<Known, ApiError> {
        let (environment, visible) = (name.environment.as_str(), caller.visible());
        let found = state.store.catalog_row(Kind::Environment, &visible, environment, environment).await?;
        if found.is_none() {
            return Err(names::absent(state, &visible, NameKind::Environment, environment, None).await);
        }
        match name.at {
            None => Known::now(state, &visible, name).await,
            Some(_) => Known::then(state, &visible, name).await,
        }
    }

    async fn now(state: &ApiState, visible: &Visible, name: SideName) -> Result<Known, ApiError> {
        let (environment, cluster_type) = (name.environment.as_str(), name.cluster_type.as_deref());
        if let Some(cluster_type) = cluster_type
            && state.store.catalog_row(Kind::ClusterType, visible, environment, cluster_type).await?.is_none()
        {
            let kind = NameKind::ClusterType;
            return Err(names::absent(state, visible, kind, cluster_type, Some(environment)).await);
        }
        let lines = state.store.assignment_lines(visible, environment, cluster_type).await?;
        let whose = Whose::of(state, visible, environment).await?;
        let mut workloads: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let assigned: BTreeSet<&str> = lines.iter().map(|line| line.target.as_str()).collect();
        for (target, workload) in &whose.here {
            if cluster_type.is_none() || assigned.contains(target.as_str()) {
                workloads.entry(workload.clone()).or_default().insert(target.clone());
            }
        }
        let cluster_types = match cluster_type {
            Some(cluster_type) => BTreeSet::from([cluster_type.to_owned()]),
            None => state.store.cluster_type_names(environment).await?.into_iter().collect(),
        };
        let seen = state.store.states_at(environment, cluster_type, None).await?;
        let policies = state.store.policies().await?;
        let seen = states::current(seen, policies.in_force().map(AsRef::as_ref), environment);
        let states = states::open(seen).await?;
        Ok(Known { cluster_types, workloads, lines, states, name })
    }

    async fn then(state: &ApiState, visible: &Visible, name: SideName) -> Result<Known, ApiError> {
        let (environment, cluster_type) = (name.environment.as_str(), name.cluster_type.as_deref());
        let at = name.at.map(|at| at.0);
        let seen = states::latest(state.store.states_at(environment, cluster_type, at).await?);
        if seen.is_empty() {
            return Err(nothing_then(state, &name).await?);
        }
        let states = states::open(seen).await?;
        let whose = Whose::of(state, visible, environment).await?;
        let mut workloads: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for target in states.iter().flat_map(|one| one.entries.keys()) {
            if let Some(workload) = whose.workload(target) {
                workloads.entry(workload).or_default().insert(target.clone());
            }
        }
        let cluster_types = states.iter().map(|one| one.cluster_type.clone()).collect();
        Ok(Known { cluster_types, workloads, lines: Vec::new(), states, name })
    }

    pub fn workloads(&self) -> impl Iterator<Item = &str> {
        self.workloads.keys().map(String::as_str)
    }

    pub fn view(&self, caller: &Caller) -> ComparedSide {
        let source = self.states.iter().filter_map(|one| one.source.as_ref()).next_back();
        ComparedSide {
            name: self.name.to_string(),
            environment: self.name.environment.clone(),
            cluster_type: self.name.cluster_type.clone(),
            at: self.name.at.map(|at| moment(at.0.0)),
            commit: source.filter(|_| caller.role != Role::Application).map(|source| source.commit.clone()),
        }
    }

    /// Where clusters report now that somebody changed what they run of these workloads.
    pub async fn changed(&self, state: &ApiState, names: &BTreeSet<String>) -> Result<Vec<String>, ApiError> {
        let own = self.workloads.iter().filter(|(name, _)| names.contains(*name));
        let targets: Vec<String> = own.flat_map(|(_, targets)| targets.iter().cloned()).collect();
        match self.name.at {
            None => reported::changed(state, &self.name, targets).await,
            Some(_) => Ok(Vec::new()),
        }
    }

    /// These workloads, with what runs of each and with which configuration. At an earlier time: with what was delivered.
    pub async fn side(&self, state: &ApiState, caller: &Caller, names: &BTreeSet<String>) -> Result<Side, ApiError> {
        let mut side = Side {
            environment: self.name.environment.clone(),
            cluster_type: self.name.cluster_type.clone(),
            cluster_types: self.cluster_types.clone(),
            workloads: BTreeMap::new(),
        };
        let mut owner: BTreeMap<&str, &str> = BTreeMap::new();
        for (workload, targets) in self.workloads.iter().filter(|(name, _)| names.contains(*name)) {
            side.workloads.insert(workload.clone(), Workload { targets: targets.clone(), places: Vec::new() });
            owner.extend(targets.iter().map(|target| (target.as_str(), workload.as_str())));
        }
        let reported = match self.name.at {
            None => {
                let targets = owner.keys().map(|target| (*target).to_owned()).collect();
                reported::of(state, &self.name, targets).await?
            }
            Some(_) => Reported::default(),
        };
        let mut places = self.places(&owner, &reported);
        self.add_composed(state, caller, &mut places).await?;
        self.add_delivered(state, caller, &mut places).await?;
        for (place, _) in places {
            let workload = owner.get(place.target.as_str()).and_then(|name| side.workloads.get_mut(*name));
            if let Some(workload) = workload {
                workload.places.push(place);
            }
        }
        Ok(side)
    }

    /// Each target on each cluster type, with what its rings run, and where its configuration is read.
    fn places(&self, owner: &BTreeMap<&str, &str>, reported: &Reported) -> Vec<(Place, Whence)> {
        let mut found: BTreeMap<(&str, &str), (Place, Whence)> = BTreeMap::new();
        let empty = |cluster_type: &str, target: &str| Place {
            cluster_type: cluster_type.to_owned(),
            target: target.to_owned(),
            ..Place::default()
        };
        for line in self.lines.iter().filter(|line| owner.contains_key(line.target.as_str())) {
            let place = Place { quarantined: line.quarantined, ..empty(&line.cluster_type, &line.target) };
            let whence = Whence { content: line.content.clone(), published: Vec::new() };
            found.insert((&line.cluster_type, &line.target), (place, whence));
        }
        for one in &self.states {
            for (target, published) in one.entries.iter().filter(|(target, _)| owner.contains_key(target.as_str())) {
                let key = (one.cluster_type.as_str(), target.as_str());
                // Now the catalog says what there is: a state may still hold what is about to go.
                if self.name.at.is_none() && !found.contains_key(&key) {
                    continue;
                }
                let (place, whence) =
                    found.entry(key).or_insert_with(|| (empty(&one.cluster_type, target), Whence::default()));
                for published in reported.of(&one.cluster_type, target, published) {
                    place.runs.push(published.run.clone());
                    whence.published.push(published);
                }
            }
        }
        found.into_values().collect()
    }

    /// What Git says, where nothing was delivered yet.
    async fn add_composed(
        &self,
        state: &ApiState,
        caller: &Caller,
        places: &mut [(Place, Whence)],
    ) -> Result<(), ApiError> {
        let with_secrets = caller.sees_secrets();
        let fresh: Vec<String> = {
            let fresh = places.iter().filter(|(place, _)| self.is_only_in_git(place));
            fresh.map(|(_, whence)| whence.content.clone()).collect()
        };
        let values = composed(state, &self.name.environment, fresh.iter()).await?;
        let values: BTreeMap<&String, Arc<Values>> =
            values.iter().map(|(digest, stored)| (digest, Arc::new(shown(stored, with_secrets)))).collect();
        for (place, whence) in places.iter_mut().filter(|(place, _)| self.is_only_in_git(place)) {
            place.values = match whence.content.is_empty() {
                true => Some(vec![Arc::default()]),
                false => values.get(&whence.content).map(|values| vec![Arc::clone(values)]),
            };
        }
        Ok(())
    }

    fn is_only_in_git(&self, place: &Place) -> bool {
        self.name.at.is_none() && place.runs.is_empty()
    }

    /// Where its files are published. States of types that Kedge delivers don't say it.
    async fn branch(&self, state: &ApiState) -> Result<Option<(String, String)>, ApiError> {
        match self.states.iter().find_map(|one| one.source.as_ref()) {
            Some(source) => Ok(Some((source.repo.clone(), source.branch.clone()))),
            None => Ok(state.store.publish_target(&self.name.environment).await?),
        }
    }

    /// The values inside the packages that were delivered; where a package is gone, as they were written to the branch.
    async fn add_delivered(
        &self,
        state: &ApiState,
        caller: &Caller,
        places: &mut [(Place, Whence)],
    ) -> Result<(), ApiError> {
        let hidden = self.hidden(state, caller, places).await?;
        let packages: BTreeSet<Digest> = {
            let all = places.iter().flat_map(|(_, whence)| &whence.published);
            all.filter_map(platform_package).take(MAX_FILES).collect()
        };
        let delivered = state.services.delivered(&packages).await?;
        let read = |one: &Published| match delivered.get(&platform_package(one)?)? {
            Delivered::Read(file) => Some(file.clone()),
            Delivered::Gone | Delivered::Unreadable(_) => None,
        };
        let mut missing: Vec<(String, String)> = Vec::new();
        for (place, whence) in places.iter() {
            let gone = whence.published.iter().filter(|one| read(one).is_none());
            missing.extend(gone.filter_map(|one| Some((one.commit.clone()?, folder(place)))));
        }
        let texts = self.published(state, missing).await?;
        for (place, whence) in places.iter_mut().filter(|(_, whence)| !whence.published.is_empty()) {
            let at = folder(place);
            let of = |one: &Published| match read(one) {
                Some(file) => rendered::values(file.as_deref(), &hidden).map(Arc::new),
                None => {
                    let text = texts.get(one.commit.as_ref()?)?.get(&at)?;
                    rendered::values(text.as_ref(), &hidden).map(Arc::new)
                }
            };
            place.values = whence.published.iter().map(of).collect();
        }
        Ok(())
    }

    /// Configuration files of commits of the branch, by commit and folder.
    async fn published(
        &self,
        state: &ApiState,
        missing: Vec<(String, String)>,
    ) -> Result<BTreeMap<String, BTreeMap<String, Option<Rendered>>>, ApiError> {
        let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (commit, folder) in missing.into_iter().take(MAX_FILES) {
            if wanted.len() < MAX_COMMITS || wanted.contains_key(&commit) {
                wanted.entry(commit).or_default().insert(folder);
            }
        }
        let mut texts = BTreeMap::new();
        if wanted.is_empty() {
            return Ok(texts);
        }
        let Some((repo, branch)) = self.branch(state).await? else { return Ok(texts) };
        for (commit, folders) in wanted {
            let folders: Vec<String> = folders.into_iter().collect();
            if let Some(found) = state.services.rendered(&repo, &branch, &commit, &folders).await? {
                texts.insert(commit, found);
            }
        }
        Ok(texts)
    }

    /// What a caller doesn't see of published values: also what the catalog hides of the same workloads.
    async fn hidden(&self, state: &ApiState, caller: &Caller, places: &[(Place, Whence)]) -> Result<Hidden, ApiError> {
        if caller.sees_secrets() {
            return Ok(Hidden { nothing: true, ..Hidden::default() });
        }
        let (environment, visible) = (&self.name.environment, caller.visible());
        let targets: BTreeSet<&str> = places.iter().map(|(place, _)| place.target.as_str()).collect();
        let lines = state.store.assignment_lines(&visible, environment, None).await?;
        let contents = lines.iter().filter(|line| targets.contains(line.target.as_str())).map(|line| &line.content);
        let stored = composed(state, environment, contents).await?;
        let secret = stored.values().flatten().filter(|value| value.is_secret());
        Ok(Hidden { keys: secret.map(|value| value.key().to_owned()).collect(), ..Hidden::default() })
    }
}

/// Where the configuration of a place is: what Git says, and what was delivered to each ring and runs there.
#[derive(Clone, Debug, Default)]
struct Whence {
    content: String,
    published: Vec<Published>,
}

/// Whose a target is, as far as the caller may know.
#[derive(Debug)]
struct Whose {
    here: BTreeMap<String, String>,
    elsewhere: BTreeMap<String, String>,
    /// For a target that is no longer anywhere, by its name; only who sees everything may guess.
    workloads: BTreeSet<String>,
}

impl Whose {
    async fn of(state: &ApiState, visible: &Visible, environment: &str) -> Result<Whose, ApiError> {
        let here = state.store.target_lines(visible, Some(environment)).await?;
        let all = state.store.target_lines(visible, None).await?;
        let workloads = match visible {
            Visible::All => all.iter().map(|line| line.workload.clone()).collect(),
            Visible::Workspaces(_) => BTreeSet::new(),
        };
        let map = |lines: Vec<crate::store::api::compare::TargetLine>| {
            lines.into_iter().map(|line| (line.name, line.workload)).collect()
        };
        Ok(Whose { here: map(here), elsewhere: map(all), workloads })
    }

    fn workload(&self, target: &str) -> Option<String> {
        if let Some(known) = self.here.get(target).or_else(|| self.elsewhere.get(target)) {
            return Some(known.clone());
        }
        if self.workloads.is_empty() {
            return None;
        }
        let mut longest = target.match_indices('-').rev().map(|(at, _)| &target[..at]);
        Some(longest.find(|name| self.workloads.contains(*name)).unwrap_or(target).to_owned())
    }
}

async fn nothing_then(state: &ApiState, name: &SideName) -> Result<ApiError, ApiError> {
    let first = state.store.first_state(&name.environment, name.cluster_type.as_deref()).await?;
    let error = ApiError::new(axum::http::StatusCode::NOT_FOUND, "NothingThen", format!("nothing is known of {name}"));
    Ok(match first {
        Some(first) => error.hint(format!("its first desired state is of {}", moment(first.0))),
        None => error.hint("it never had a desired state"),
    })
}

async fn composed<'a>(
    state: &ApiState,
    environment: &str,
    digests: impl Iterator<Item = &'a String>,
) -> Result<BTreeMap<String, Vec<StoredValue>>, ApiError> {
    let digests: BTreeSet<&String> = digests.filter(|digest| !digest.is_empty()).collect();
    let digests: Vec<String> = digests.into_iter().cloned().collect();
    let bodies = state.store.composed_values(environment, &digests).await?;
    let parse = |(digest, body): (String, String)| {
        let stored = serde_json::from_str(&body);
        let stored = stored.map_err(|error| StoreError::Corrupt(format!("the catalog's values: {error}")))?;
        Ok((digest, stored))
    };
    let parsed: Result<_, StoreError> = bodies.into_iter().map(parse).collect();
    Ok(parsed?)
}

fn shown(stored: &[StoredValue], with_secrets: bool) -> Values {
    let value = |one: &StoredValue| {
        let (exact, shown) = one.both();
        let shown = if with_secrets { exact } else { shown };
        (one.key().to_owned(), Value { exact: exact.clone(), shown: shown.clone() })
    };
    stored.iter().map(value).collect()
}

fn folder(place: &Place) -> String {
    format!("{}/{}", place.cluster_type, place.target)
}

/// The package that holds its configuration; none: another reconciler applies it.
fn platform_package(one: &Published) -> Option<Digest> {
    one.run.content.as_ref()?;
    one.run.platform.as_ref()?.parse().ok()
}
