//! What a selector names: whole streams, and within them assignments. What doesn't fit is named with the reason; a single cluster
//! can't be chosen, because a stream's clusters share one signed state.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use kedge_api::assignments::AssignmentSummary;
use kedge_api::operations::{ChosenStream, HeldAssignment, NotApplicable, OperationSelector};
use kedge_model::kinds::PromotionPolicy;
use kedge_model::wire::{DesiredState, Envelope, Mode, Stream};

use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::page::MAX_CHANGES;
use crate::store::StoreError;
use crate::store::api::states::StateFilter;
use crate::store::catalog::{Filter, Kind, Visible};

/// What a selector came to.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Assignments of streams, as their newest state has them.
    pub streams: BTreeMap<Stream, BTreeSet<String>>,
    pub not_applicable: Vec<NotApplicable>,
    pub held: Vec<HeldAssignment>,
}

/// Assignments by cluster type, as the schedule has them.
pub type Scheduled = BTreeMap<String, BTreeMap<String, String>>;

/// What a selector names.
#[derive(Debug)]
pub struct Chooser<'a>(pub &'a OperationSelector);

impl Chooser<'_> {
    /// Whole streams, and what doesn't fit; nothing at all is refused.
    pub async fn resolve(&self, state: &ApiState) -> Result<Selection, ApiError> {
        let selection = self.select(state).await?;
        match selection.streams.is_empty() {
            true => Err(self.nothing(&selection)),
            false => Ok(selection),
        }
    }

    /// The same, and what went back may be nowhere now.
    pub async fn select(&self, state: &ApiState) -> Result<Selection, ApiError> {
        let rings = self.rings(state).await?;
        let scheduled = scheduled(state, &Visible::All, &self.0.environment).await?;
        self.check_names(&scheduled)?;
        let mut selection = Selection::default();
        let filter = StateFilter {
            environment: Some(self.0.environment.clone()),
            cluster_type: self.0.cluster_type.clone(),
            ring: self.0.ring.clone(),
            limit: MAX_CHANGES,
            ..StateFilter::default()
        };
        let mut stateless: BTreeSet<(String, String)> = self
            .types(&scheduled)
            .flat_map(|cluster_type| rings.iter().map(move |ring| (cluster_type.to_owned(), ring.clone())))
            .collect();
        for seen in state.store.newest_states(&Visible::All, &filter).await? {
            let Stream { cluster_type, ring, .. } = &seen.stream;
            if !rings.contains(ring) {
                continue;
            }
            stateless.remove(&(cluster_type.clone(), ring.clone()));
            let desired = desired(&seen.envelope)?;
            for entry in &desired.entries {
                if !self.names(&scheduled, cluster_type, &entry.assignment) {
                    continue;
                }
                match entry.mode {
                    Mode::Apply(_) => {
                        let chosen = selection.streams.entry(seen.stream.clone()).or_default();
                        chosen.insert(entry.assignment.clone());
                    }
                    Mode::Observe(_) => selection.not_applicable.push(NotApplicable {
                        cluster_type: cluster_type.clone(),
                        ring: Some(ring.clone()),
                        assignment: Some(entry.assignment.clone()),
                        why: "another reconciler applies it (Flux, Argo CD or a script); Kedge only observes it"
                            .to_owned(),
                    }),
                }
            }
        }
        for (cluster_type, ring) in stateless {
            selection.not_applicable.push(NotApplicable {
                cluster_type,
                ring: Some(ring),
                assignment: None,
                why: "nothing was issued for this stream yet".to_owned(),
            });
        }
        selection.held = self.held(state, &selection).await?;
        Ok(selection)
    }

    /// The rings of the environment that are meant; an unknown one is refused.
    async fn rings(&self, state: &ApiState) -> Result<Vec<String>, ApiError> {
        let known =
            state.store.catalog_row(Kind::Environment, &Visible::All, &self.0.environment, &self.0.environment).await?;
        if known.is_none() {
            let message = format!("there is no environment `{}`", self.0.environment);
            let error = ApiError::new(axum::http::StatusCode::NOT_FOUND, "UnknownName", message);
            return Err(error.hint("`kedge get environments` lists them"));
        }
        let policies = state.store.policies().await?;
        let all = rings_of(policies.in_force().map(|policy| &**policy), &self.0.environment);
        match &self.0.ring {
            None => Ok(all),
            Some(ring) if all.contains(ring) => Ok(vec![ring.clone()]),
            Some(ring) => Err(unprocessable(
                "UnknownRing",
                format!("{} has no ring {ring}", self.0.environment),
                format!("its rings are: {}", all.join(", ")),
            )
            .near(ring, all.iter().map(String::as_str))),
        }
    }

    /// A mistyped name would choose nothing.
    fn check_names(&self, scheduled: &Scheduled) -> Result<(), ApiError> {
        if let Some(cluster_type) = &self.0.cluster_type
            && !scheduled.contains_key(cluster_type)
        {
            let types: Vec<&str> = scheduled.keys().map(String::as_str).collect();
            let message = format!("no assignment of {} is on cluster type {cluster_type}", self.0.environment);
            let error = unprocessable("UnknownClusterType", message, format!("there are: {}", types.join(", ")));
            return Err(error.near(cluster_type, types));
        }
        if let Some(workload) = &self.0.workload {
            let known: BTreeSet<&str> =
                scheduled.values().flat_map(|names| names.values()).map(String::as_str).collect();
            if !known.contains(workload.as_str()) {
                let names: Vec<&str> = known.into_iter().collect();
                let message = format!("no workload {workload} is scheduled in {}", self.0.environment);
                let error = unprocessable("UnknownWorkload", message, format!("there are: {}", names.join(", ")));
                return Err(error.near(workload, names));
            }
        }
        Ok(())
    }

    fn types<'a>(&'a self, scheduled: &'a Scheduled) -> impl Iterator<Item = &'a str> {
        let wanted = move |name: &&String| {
            let named = self.0.cluster_type.as_ref().is_none_or(|wanted| wanted == *name);
            let runs = |names: &BTreeMap<String, String>| {
                self.0.workload.as_ref().is_none_or(|workload| names.values().any(|of| of == workload))
            };
            named && scheduled.get(*name).is_some_and(runs)
        };
        scheduled.keys().filter(wanted).map(String::as_str)
    }

    pub(super) fn names(&self, scheduled: &Scheduled, cluster_type: &str, assignment: &str) -> bool {
        let Some(workload) = &self.0.workload else { return true };
        scheduled.get(cluster_type).and_then(|names| names.get(assignment)) == Some(workload)
    }

    async fn held(&self, state: &ApiState, selection: &Selection) -> Result<Vec<HeldAssignment>, ApiError> {
        let held = state.store.held_clusters(&self.0.environment).await?;
        let chosen = held
            .into_iter()
            .filter(|held| selection.streams.get(&held.stream).is_some_and(|names| names.contains(&held.assignment)));
        let view = |held: crate::store::api::rollouts::HeldCluster| HeldAssignment {
            cluster: held.cluster,
            cluster_type: held.stream.cluster_type,
            ring: held.stream.ring,
            assignment: held.assignment,
            by: held.by,
        };
        Ok(chosen.map(view).collect())
    }

    fn nothing(&self, selection: &Selection) -> ApiError {
        let why: BTreeSet<String> =
            selection.not_applicable.iter().map(|unfit| format!("{}: {}", unfit.cluster_type, unfit.why)).collect();
        let message = match why.is_empty() {
            true => format!("nothing in {} fits", self.0.environment),
            false => {
                format!("nothing in {} fits: {}", self.0.environment, why.into_iter().collect::<Vec<_>>().join("; "))
            }
        };
        unprocessable("NothingFits", message, "`kedge get assignments` shows what runs where".to_owned())
    }
}

impl Selection {
    pub async fn chosen(&self, state: &ApiState, environment: &str) -> Result<Vec<ChosenStream>, ApiError> {
        let mut members: BTreeMap<Stream, u64> = BTreeMap::new();
        for of in state.store.population(environment).await? {
            *members.entry(of.stream).or_default() += u64::try_from(of.count).unwrap_or_default();
        }
        let view = |(stream, names): (&Stream, &BTreeSet<String>)| ChosenStream {
            cluster_type: stream.cluster_type.clone(),
            ring: stream.ring.clone(),
            assignments: names.iter().cloned().collect(),
            clusters: members.get(stream).copied().unwrap_or_default(),
        };
        Ok(self.streams.iter().map(view).collect())
    }
}

/// What the schedule has in an environment: by cluster type, the workload of each assignment.
pub async fn scheduled(state: &ApiState, visible: &Visible, environment: &str) -> Result<Scheduled, ApiError> {
    let mut filter = Filter { environment: Some(environment.to_owned()), limit: MAX_CHANGES, ..Filter::default() };
    let mut scheduled = Scheduled::new();
    loop {
        let (shown, next) = state.store.catalog_page(Kind::Assignment, visible, &filter).await?;
        for shown in &shown {
            let view: AssignmentSummary = serde_json::from_str(&shown.body).map_err(corrupt)?;
            scheduled.entry(view.cluster_type).or_default().insert(view.target, view.workload);
        }
        match next {
            Some(next) => filter.from = Some(next),
            None => return Ok(scheduled),
        }
    }
}

/// Without a policy for it, an environment has one ring.
pub fn rings_of(policy: Option<&PromotionPolicy>, environment: &str) -> Vec<String> {
    let rules = policy.and_then(|policy| policy.environment(environment));
    match rules {
        Some(rules) => rules.rings.iter().map(|ring| ring.name.clone()).collect(),
        None => vec![Stream::ALL.to_owned()],
    }
}

pub fn desired(envelope: &[u8]) -> Result<DesiredState, ApiError> {
    let envelope = Envelope::from_json(envelope).map_err(corrupt)?;
    Ok(serde_json::from_slice(&envelope.payload).map_err(corrupt)?)
}

fn unprocessable(reason: &'static str, message: String, hint: String) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, reason, message).hint(hint)
}

fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
