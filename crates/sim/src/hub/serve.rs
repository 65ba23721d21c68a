//! Polls: documents are taken and acknowledged, states are served as far as the permits go.

use kedge_rollout::permits;

use crate::agent::{Answer, Offer, Request};
use crate::database::Condition;
use crate::plan::{MINUTE, SECOND};
use crate::world::{Broken, World};

/// The next contact is promised within this.
const PROMISE: i64 = MINUTE + 15 * SECOND;

impl World {
    /// None: the hub died over it.
    pub(crate) fn serve(&mut self, cluster: usize, request: Request) -> Result<Option<Answer>, Broken> {
        let now = self.hub_now().0;
        let place = &self.plan.fleet[cluster];
        let (environment, kind) = (place.environment, place.cluster_type);
        let row = &mut self.db.clusters[cluster];
        self.dirty |= row.promise < now;
        row.promise = now + PROMISE;
        if let Some(document) = request.document.filter(|_| request.version > row.version) {
            (row.version, row.entries) = (request.version, document);
            self.dirty = true;
        }
        if let Some(stream) = request.stream {
            (row.stream, row.generation) = (stream, request.generation);
        }
        let ended = row.entries.iter().all(|(_, condition)| *condition != Condition::Converging);
        if row.served.is_some_and(|(stream, generation)| row.stream == stream && row.generation >= generation) && ended
        {
            row.served = None;
        }
        let (ring, sequence, acknowledged) = (row.ring, row.sequence, row.version);
        if !self.calm() && self.chance.permille(self.plan.faults.death / 4) {
            self.report.deaths += 1;
            self.hub.down_until = self.now + self.chance.between(SECOND, 30 * SECOND);
            return Ok(None);
        }
        let stream = self.plan.stream(environment, kind, ring);
        let membership = (request.sequence < sequence).then_some((stream, sequence));
        let known = if request.stream == Some(stream) { request.generation } else { 0 };
        let newest = self.db.states[stream].len() as u64;
        self.free(environment, ring, now);
        let may =
            membership.is_none() && known < newest && self.take((environment, kind, ring), cluster, known, now)?;
        let state = may.then(|| self.db.states[stream].last().cloned()).flatten();
        let state = state.map(|state| Offer { stream, generation: newest, state });
        Ok(Some(Answer { acknowledged, membership, state }))
    }

    /// A permit ends with a final condition of what was served last, or when its cluster goes away.
    fn free(&mut self, environment: usize, ring: usize, now: i64) {
        let (plan, clusters) = (&self.plan, &mut self.db.clusters);
        let Some(taken) = self.db.permits.get_mut(&(environment, ring)) else { return };
        taken.retain(|cluster, generation| {
            let row = &mut clusters[*cluster];
            let stream = plan.stream(environment, plan.fleet[*cluster].cluster_type, ring);
            let ended = row.entries.iter().all(|(_, condition)| *condition != Condition::Converging);
            if row.promise < now {
                // Away: its place is another's from here on.
                row.served = None;
            }
            row.promise >= now && !(row.stream == stream && row.generation >= *generation && ended)
        });
    }

    fn take(
        &mut self,
        (environment, kind, ring): (usize, usize, usize),
        cluster: usize,
        known: u64,
        now: i64,
    ) -> Result<bool, Broken> {
        let rules = &self.plan.policy.environments[environment].rings[ring];
        // Who has the content already isn't held up by a rollout that stopped or waits.
        let held = self.db.rollouts[environment].iter().filter_map(|lane| lane.last()).any(|saved| {
            let first = saved.first.get(&(ring, kind));
            first.is_some_and(|first| known < *first) && saved.rollout.closed(&rules.name, self.hub_now()).is_some()
        });
        if held {
            return Ok(false);
        }
        let members = self.db.members.get(&(environment, ring)).copied().unwrap_or_default();
        let limit = permits(rules.max_unavailable, members);
        let stream = self.plan.stream(environment, kind, ring);
        let newest = self.db.states[stream].len() as u64;
        let taken = self.db.permits.entry((environment, ring)).or_default();
        if !taken.contains_key(&cluster) && taken.len() as u64 >= limit {
            return Ok(false);
        }
        taken.insert(cluster, newest);
        self.db.clusters[cluster].served = Some((stream, newest));
        self.check_permits(environment, ring, limit, now)?;
        Ok(true)
    }
}
