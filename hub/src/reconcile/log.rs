//! What a reconciliation tells history: which commits it read, how long each step took, and when those that waited for a person or a
//! merge are on the branch. Kept by the reconciler of an environment.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kedge_hub_types::history::what::Step;
use kedge_hub_types::history::{Entry, Place, What};

use crate::git::Head;
use crate::metrics::StepName;
use crate::platform::Cause;
use crate::store::now;

#[derive(Debug, Default)]
pub(super) struct ReconcileLog {
    /// Read in this reconciliation.
    fresh: Vec<Cause>,
    /// Read before, and not whole on the branch yet.
    waiting: Vec<Cause>,
    steps: Mutex<Vec<Step>>,
}

/// More commits than this don't wait for one merge; the oldest are forgotten.
const WAITING: usize = 50;

impl ReconcileLog {
    pub fn begin(&mut self) {
        self.fresh.clear();
        self.steps.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub fn read<'a>(&mut self, commits: impl Iterator<Item = &'a Cause>) {
        for cause in commits {
            if !self.fresh.iter().any(|known| known.commit == cause.commit) {
                self.fresh.push(cause.clone());
            }
        }
    }

    pub fn measured(&self, step: StepName, took: Duration) {
        let name = match step {
            StepName::Read => "read",
            StepName::Schedule => "schedule",
            StepName::Publish => "publish",
            StepName::Pack => "pack",
            StepName::Issue => "issue",
            StepName::Catalog => return,
        };
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let step = Step { name: name.to_owned(), ended_at: now().0, took_ms };
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    }

    /// `head`: everything that was read is on the branch, with that commit.
    pub fn told(&mut self, environment: &str, head: Option<&Head>) -> Vec<Entry> {
        let place = || Place::environment(environment);
        let steps = std::mem::take(self.steps.get_mut().unwrap_or_else(PoisonError::into_inner));
        let reconciled = |cause: &Cause| {
            let what = What::Walked {
                repo: cause.repo.clone(),
                subject: cause.subject.clone(),
                made_at: Some(cause.made_at.0),
                head: head.map(|head| head.commit.clone()),
                steps: steps.clone(),
            };
            Entry::new(now(), place(), what).commit(&cause.commit).by(&cause.who)
        };
        let mut news: Vec<Entry> = self.fresh.iter().map(reconciled).collect();
        match head {
            Some(head) => news.extend(self.waiting.drain(..).map(|cause| {
                let (branch, subject) = (head.branch.clone(), cause.subject);
                let what = What::Landed { head: head.commit.clone(), branch, subject };
                Entry::new(now(), place(), what).commit(&cause.commit).by(&cause.who)
            })),
            None => {
                self.waiting.append(&mut self.fresh);
                let surplus = self.waiting.len().saturating_sub(WAITING);
                self.waiting.drain(..surplus);
            }
        }
        news
    }
}
