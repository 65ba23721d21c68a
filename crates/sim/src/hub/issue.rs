//! What each stream holds, from what is saved: composed again and again, issued when it differs.

use super::Stop;
use crate::database::State;
use crate::world::World;

impl World {
    pub(super) fn issue(&mut self, term: u64, environment: usize) -> Result<(), Stop> {
        for kind in 0..self.plan.types.len() {
            for ring in 0..self.plan.rules(environment).rings.len() {
                let stream = self.plan.stream(environment, kind, ring);
                let next = self.compose(environment, kind, ring);
                if self.db.states[stream].last() == Some(&next) {
                    continue;
                }
                let generation = self.db.states[stream].len() as u64 + 1;
                self.survive()?;
                if term != self.db.term || self.db.states[stream].len() as u64 + 1 != generation {
                    return Err(Stop::Over);
                }
                self.check_state(environment, kind, ring, &next)?;
                self.oracle.issue(stream, generation, &next)?;
                self.tell(|| format!("stream {environment}/{kind}/{ring}: generation {generation} is {next:?}"));
                self.db.states[stream].push(next);
                self.report.states += 1;
                for lane in &mut self.db.rollouts[environment] {
                    if let Some(saved) = lane.last_mut().filter(|saved| saved.rollout.rings[ring].state.is_new()) {
                        saved.first.entry((ring, kind)).or_insert(generation);
                    }
                }
                self.survive()?;
            }
        }
        Ok(())
    }

    /// The newest state, with what the lanes' newest rollouts say about this ring.
    fn compose(&self, environment: usize, kind: usize, ring: usize) -> State {
        let mut state = self.db.states[self.plan.stream(environment, kind, ring)].last().cloned().unwrap_or_default();
        for saved in self.db.rollouts[environment].iter().filter_map(|lane| lane.last()) {
            let progress = &saved.rollout.rings[ring];
            for (item, (assignment, to)) in saved.to.iter().enumerate() {
                let Some(place) = self.plan.of_type[kind].iter().position(|known| known == assignment) else {
                    continue;
                };
                let returned = progress.state == kedge_rollout::RingState::Returned;
                match &saved.before[ring] {
                    Some(before) if returned => state[place][saved.part] = before[item],
                    _ if progress.state.is_new() => state[place][saved.part] = *to,
                    _ => {}
                }
            }
        }
        state
    }
}
