//! Everything before the first change: looks, refuses what can't work, has debs downloaded and files kept for the way back, and plans.

use super::Engine;
use crate::goal::Goal;
use crate::observed::PathState;
use crate::plan::debs::{DebPlan, DebWish};
use crate::plan::{self, Planned, Question, debs, paths, subjects};
use crate::record::{Failure, Running};
use crate::trace::Tracer;

impl Engine {
    /// Nothing of the host is changed. `goal` none: a removal.
    pub(super) fn prepare(
        &mut self,
        assignment: &str,
        goal: Option<&Goal>,
        restart: bool,
        trace: &mut Tracer<'_>,
    ) -> Result<Planned, Failure> {
        let others = self.others(assignment, goal);
        if let Some(goal) = goal {
            others.check(goal)?;
            plan::owners::check(assignment, goal, &self.names())?;
            self.check_versions(assignment, goal, &others)?;
        }
        let running: Option<Running> = self.records.get(assignment).and_then(|record| record.running.clone());
        let subjects = subjects::of(goal, running.as_ref().map(|running| &running.original));
        let observed = self.host.look(&subjects)?;
        if let Some(goal) = goal {
            let known = self.records.get(assignment).map(|record| record.claimed.clone()).unwrap_or_default();
            plan::claimed::check(goal, &observed, running.as_ref(), &known)?;
        }
        let wish = debs::wish(goal, running.as_ref(), &others);
        let debs = match &wish {
            DebWish { want, give_back, .. } if want.is_empty() && give_back.is_empty() => DebPlan::default(),
            wish => self.prepare_debs(wish, running.as_ref(), trace)?,
        };
        let objects = self.objects.clone();
        let question = Question {
            goal,
            running: running.as_ref(),
            restart,
            observed: &observed,
            debs: &debs,
            others: &others,
            objects: &objects,
        };
        for path in paths::to_keep(&question)? {
            let kept = self.host.keep(&path)?;
            match observed.paths.get(&path) {
                Some(PathState::File { content, .. }) if *content != kept => {
                    return Err(Failure::passing("FileFailed", format!("{path} changes while it is read")));
                }
                _ => {}
            }
        }
        plan::plan(&question)
    }

    /// A dependency that somebody else needs by now stays; it doesn't keep our debs from going.
    fn prepare_debs(
        &mut self,
        wish: &DebWish,
        running: Option<&Running>,
        trace: &mut Tracer<'_>,
    ) -> Result<DebPlan, Failure> {
        let prepared = self.host.prepare_debs(wish, trace);
        match (&prepared, debs::without_dependencies(wish, running)) {
            (Err(failure), Some(less)) if failure.reason == "AptRefused" => match less.give_back.is_empty() {
                true if less.want.is_empty() => Ok(DebPlan::default()),
                _ => self.host.prepare_debs(&less, trace),
            },
            _ => prepared,
        }
    }
}
