//! The order of environments, and the commit of `main` that each is at.

use std::collections::BTreeMap;

use kedge_api::fleet::{FleetEnvironment, FleetRing, NextCommit};
use kedge_model::kinds::PromotionPolicy;
use kedge_model::wire::Stream;

use super::standing::stand;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::page::moment;
use crate::api::promotions::phase_word;
use crate::store::catalog::Visible;
use crate::store::promotion::PromotionRow;

/// Where environments stand: in the order in which a commit reaches them; those that no policy names come last, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order(Vec<String>);

impl Order {
    pub async fn of(state: &ApiState) -> Result<Order, ApiError> {
        let policies = state.store.policies().await?;
        Ok(Order(policies.in_force().map(|policy| chain(policy)).unwrap_or_default()))
    }

    /// Those that a policy names.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// To sort by.
    pub fn place(&self, name: &str) -> (usize, String) {
        (self.0.iter().position(|known| known == name).unwrap_or(self.0.len()), name.to_owned())
    }

    /// `dev, stage, prod`
    pub fn listed(&self, mut names: Vec<String>) -> String {
        names.sort_by_cached_key(|name| self.place(name));
        names.join(", ")
    }
}

/// In the order in which a commit reaches them; those that no policy names come last.
pub(super) async fn along_the_chain(
    state: &ApiState,
    visible: &Visible,
    environments: BTreeMap<String, FleetEnvironment>,
    workload: Option<&str>,
) -> Result<Vec<FleetEnvironment>, ApiError> {
    let policies = state.store.policies().await?;
    let order = Order(policies.in_force().map(|policy| chain(policy)).unwrap_or_default());
    let mut found: Vec<FleetEnvironment> = environments.into_values().collect();
    found.sort_by_cached_key(|one| order.place(&one.name));
    let rows = if *visible == Visible::All { state.store.promotions().await? } else { BTreeMap::new() };
    for (order, environment) in found.iter_mut().enumerate() {
        environment.order = order;
        environment.types.sort_by(|one, other| one.name.cmp(&other.name));
        let rules = policies.in_force().and_then(|policy| policy.environment(&environment.name));
        environment.after = rules.map(|rules| rules.after.clone()).unwrap_or_default();
        let place = |ring: &FleetRing| {
            let known = rules.and_then(|rules| rules.rings.iter().position(|known| known.name == ring.name));
            (known.unwrap_or(usize::MAX), ring.name.clone())
        };
        environment.rings.sort_by_key(place);
        environment.types.iter_mut().for_each(|found| found.rings.sort_by_key(place));
        let row = rows.get(&environment.name);
        if let Some(row) = row {
            promote(environment, row);
        }
        let rings: Vec<String> = match rules {
            Some(rules) => rules.rings.iter().map(|ring| ring.name.clone()).collect(),
            None => vec![Stream::ALL.to_owned()],
        };
        stand(environment, state, visible, &rings, workload, row).await?;
    }
    Ok(found)
}

/// Names of a policy's environments, each behind those that it comes after.
pub(crate) fn chain(policy: &PromotionPolicy) -> Vec<String> {
    let mut placed: Vec<String> = Vec::new();
    let mut left: Vec<_> = policy.environments.iter().collect();
    while !left.is_empty() {
        let known = |name: &String| policy.environment(name).is_none() || placed.contains(name);
        // A circle is refused elsewhere; here it only must not turn for ever.
        let next = left.iter().position(|rules| rules.after.iter().all(known)).unwrap_or(0);
        placed.push(left.remove(next).name.clone());
    }
    placed
}

fn promote(environment: &mut FleetEnvironment, row: &PromotionRow) {
    let standing = &row.standing;
    let commit = row.in_force.clone().or_else(|| standing.current.clone());
    if let Some(commit) = commit {
        let of = standing.promotions.iter().find(|promotion| promotion.commit == commit);
        environment.promoted_subject = of.map(|promotion| promotion.subject.clone());
        environment.promoted_author = of.map(|promotion| promotion.author.clone());
        environment.promoted_at = of.and_then(|of| of.entered_at).map(|at| moment(at.0));
        environment.promotion = of.map(|promotion| phase_word(&promotion.phase).to_owned());
        environment.promoted_commit = Some(commit);
    }
    environment.trouble = row.trouble.clone();
    let waits = standing.promotions.iter().find(|promotion| promotion.phase == kedge_rollout::PromotionPhase::Waiting);
    environment.next = waits.map(|promotion| NextCommit {
        commit: promotion.commit.clone(),
        subject: promotion.subject.clone(),
        waits_for: promotion.waits_for.clone(),
    });
}
