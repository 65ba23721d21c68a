//! The loop of a host that joined: it asks the hub, takes what can be believed, fetches content, gives jobs to the applier and reports
//! what became true. Every decision is made here, one event at a time; what takes time is under way beside it.

mod content;
mod inbox;
mod observing;
mod sharing;
mod talk;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kedge_status::Severity;
use tokio::time::Instant;

use super::AgentContext;
use super::hub::Hub;
use super::runtime::{AgentRuntime, Event};
use super::surroundings::Observer;
use crate::airgap::looked;
use crate::causes::chain;
use crate::contact::Contact;
use crate::desired::{Memory, OpenedMemory};
use crate::drift::Subject;
use crate::external::External;
use crate::holds::Holds;
use crate::identity::Identity;
use crate::link::LinkError;
use crate::report::{Reporter, facts};
use crate::told::Told;
use crate::worker::{Heard, Job};
use content::Content;
use sharing::Sharing;
use talk::Talk;
use tasks::Tasks;

pub(super) struct SyncLoop<H> {
    context: AgentContext,
    identity: Identity,
    /// None: this identity may not talk, and why is a warning.
    hub: Option<Arc<H>>,
    memory: Memory,
    reporter: Reporter,
    holds: Holds,
    external: External,
    /// None: nothing is seen of other reconcilers here.
    observer: Option<Box<dyn Observer>>,
    held: BTreeSet<String>,
    talk: Talk,
    content: Content,
    tasks: Tasks,
    sharing: Sharing,
    /// When peers' holds are counted again; none: there are none.
    holds_at: Option<Instant>,
    holds_counted: Instant,
    /// When what was told is tried to be written once more.
    flush_at: Option<Instant>,
    /// When the inbox is looked into once more.
    inbox_at: Option<Instant>,
}

/// Why the loop ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Stopped,
    /// The host joined again: begin with the new identity.
    Replaced,
    Deserted,
}

/// How exactly a hold ends; each count is a write.
const COUNT_HOLDS: Duration = Duration::from_secs(600);
/// A disk that is full may have room again.
const FLUSH_AGAIN: Duration = Duration::from_secs(30);

impl<H: Hub> SyncLoop<H> {
    pub(super) fn open(
        context: AgentContext,
        identity: Identity,
        memory: OpenedMemory,
        link: Result<Arc<H>, LinkError>,
    ) -> SyncLoop<H> {
        let key = identity.signing_key().public();
        let (mut reporter, mut healed) = Reporter::open(&context.disk, &context.paths, key, Arc::clone(&context.clock));
        healed.extend(memory.healed);
        let facts = match &context.cluster {
            None => facts::gather(&context.paths),
            Some(cluster) => {
                reporter.take_over();
                cluster.facts()
            }
        };
        for (name, value) in facts {
            reporter.fact(name, &value);
        }
        let (holds, external) = (
            Holds::on(Arc::clone(&context.disk), &context.paths),
            External::on(Arc::clone(&context.disk), &context.paths),
        );
        let observer = context.cluster.as_ref().map(|around| around.observer());
        let doors = context.cluster.as_ref().and_then(|around| around.doors(&context.paths, &context.objects));
        let mut sync_loop = SyncLoop {
            hub: None,
            memory: memory.memory,
            reporter,
            holds,
            external,
            observer,
            held: BTreeSet::new(),
            talk: Talk::new(),
            content: Content::default(),
            tasks: Tasks::new(context.cluster.is_some()),
            sharing: Sharing::new(doors),
            flush_at: None,
            // Time that passed while nobody was here is counted by the hub's.
            holds_at: Some(Instant::now()),
            holds_counted: Instant::now(),
            // What came while nobody was here.
            inbox_at: Some(Instant::now()),
            context,
            identity,
        };
        // As the reporter counts: from the beginning, until the first look has ended.
        looked::note(&sync_loop.context.paths, sync_loop.context.clock.now());
        sync_loop.warn_while("LedgerHealed", Severity::Warning, (!healed.is_empty()).then(|| healed.join("; ")));
        match link {
            Ok(hub) => {
                sync_loop.reporter.clear_warning("MachineChanged");
                sync_loop.hub = Some(hub);
            }
            Err(error) => {
                let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                let said = format!("{}{hint}", error.sentence());
                tracing::error!(said, "the hub isn't talked to; what runs goes on");
                sync_loop.reporter.warn(error.code(), Severity::Error, &said);
            }
        }
        // A cut may have come between the two ledgers that know the hub's holds.
        sync_loop.keep_hub_holds();
        sync_loop.read_holds();
        sync_loop
    }

    pub(super) async fn serve(&mut self, agent: &mut AgentRuntime) -> Ended {
        let name = self.hub.as_ref().map_or_else(|| self.identity.hub().to_owned(), |hub| hub.name());
        tracing::info!(cluster = %self.identity.cluster(), stream = %self.memory.membership().stream, hub = name, "joined");
        loop {
            agent.keep_up(&self.held);
            self.work(agent);
            self.flush();
            let wake = self.wake();
            tokio::select! {
                event = agent.event(wake) => match event {
                    Event::Stop => return Ended::Stopped,
                    Event::Deserted => return Ended::Deserted,
                    Event::Heard(heard) => self.hear(heard, agent),
                    Event::Noticed(subjects) => if self.notice(&subjects, agent) {
                        return Ended::Replaced;
                    },
                    Event::Time => {}
                },
                polled = self.talk.poll.end() => if self.polled(polled, agent) {
                    return Ended::Replaced;
                },
                sent = self.talk.send.end() => self.sent(sent),
                fetched = self.content.fetch.end() => self.fetched(fetched),
                () = observing::next(&mut self.observer) => self.tasks.soon(),
                news = self.sharing.news() => self.take_news(news, agent),
            }
        }
    }

    /// What is told while the agent stops.
    pub(super) fn last_word(&mut self, heard: Heard) {
        if let Heard::Told(told) = heard {
            self.reporter.tell(&told);
            self.flush();
        }
    }

    /// Begins whatever is due.
    fn work(&mut self, agent: &mut AgentRuntime) {
        if self.inbox_at.is_some_and(|at| Instant::now() >= at) {
            self.read_inbox(agent);
        }
        if self.tasks.is_due() {
            self.refresh(agent);
        }
        if self.holds_at.is_some_and(|at| Instant::now() >= at) {
            self.count_holds(agent);
        }
        self.fetch_next(agent);
        self.share();
        self.talk();
    }

    fn wake(&self) -> Option<Instant> {
        let talk = if self.hub.is_some() { self.talk.wake() } else { None };
        let shared = [self.sharing.wake(), self.inbox_at, self.holds_at].into_iter().flatten().min();
        [self.tasks.due(), talk, self.content.wake(), shared, self.flush_at].into_iter().flatten().min()
    }

    fn hear(&mut self, heard: Heard, agent: &mut AgentRuntime) {
        match heard {
            Heard::Told(told) => {
                self.tell(&told);
                // What came with it is written with it.
                while let Some(told) = agent.worker.told_already() {
                    self.tell(&told);
                }
            }
            Heard::Ready => {
                self.reporter.clear_warning("ApplierBroke");
                // A new applier knows nothing of what is wanted.
                self.tasks.forget_desire();
                self.tasks.soon();
            }
            Heard::Done { assignments, again, .. } => {
                self.tasks.done(&assignments);
                if let Some(again) = again {
                    agent.look_again(again, &*self.context.clock);
                }
            }
            Heard::Tended => self.tasks.soon(),
            Heard::Broke { assignments, why } => {
                let what = if assignments.is_empty() { "at start".to_owned() } else { assignments.join(", ") };
                tracing::error!(what, why, "the applier broke down and is made again");
                self.reporter.warn("ApplierBroke", Severity::Error, &format!("the applier broke down ({what}): {why}"));
                self.tasks.done(&assignments);
            }
        }
    }

    fn tell(&mut self, told: &Told) {
        self.reporter.tell(told);
        self.sharing.soon();
        match told {
            Told::Looked { at } => looked::note(&self.context.paths, *at),
            _ => self.talk.news(),
        }
    }

    /// True: the host joined again.
    fn notice(&mut self, subjects: &BTreeSet<Subject>, agent: &mut AgentRuntime) -> bool {
        // A hold of a moment ago counts before what was touched since is looked at.
        if subjects.contains(&Subject::Holds) || self.holds.held().is_ok_and(|held| !held.keys().eq(&self.held)) {
            let released = self.read_holds();
            for assignment in released {
                // A person has worked on it: what failed before may go well now.
                self.tasks.give(&assignment);
                agent.give(Job::Retry(assignment));
            }
            agent.look_soon();
            self.tasks.soon();
        }
        if subjects.contains(&Subject::Inbox) {
            self.read_inbox(agent);
        }
        if subjects.contains(&Subject::External) {
            self.tasks.soon();
        }
        // The link's own renewal is noticed too, with the same cluster.
        subjects.contains(&Subject::Identity)
            && Identity::read(&*self.context.disk, &self.context.paths)
                .is_ok_and(|now| now.is_some_and(|now| now.cluster() != self.identity.cluster()))
    }

    /// Those that are no longer held.
    fn read_holds(&mut self) -> BTreeSet<String> {
        let all = match self.holds.read() {
            Ok(all) => all,
            Err(error) => {
                tracing::error!(error = chain(&error), "the holds can't be read; those known stay in force");
                return BTreeSet::new();
            }
        };
        self.reporter.holds(&all);
        self.talk.news();
        self.sharing.soon();
        let held: BTreeSet<String> = all.into_iter().map(|held| held.assignment).collect();
        let before = std::mem::replace(&mut self.held, held);
        for assignment in self.held.difference(&before) {
            tracing::info!(assignment, "held: it is left alone");
        }
        before.difference(&self.held).cloned().collect()
    }

    /// Their age begins now.
    fn count_holds_soon(&mut self) {
        self.holds_at = Some(Instant::now());
    }

    /// Peers' holds grow older, and end.
    fn count_holds(&mut self, agent: &mut AgentRuntime) {
        let passed = self.holds_counted.elapsed();
        self.holds_counted = Instant::now();
        let hub = Contact::read(&self.context.paths).hub_time;
        match self.holds.count(passed, hub) {
            Ok(soon) => {
                let said = soon.iter().map(|held| {
                    let name = &held.assignment;
                    format!(
                        "the hold of {name} by {} ends within a day: kedge-agent hold {name} on this host keeps it",
                        held.by
                    )
                });
                let said: Vec<String> = said.collect();
                self.warn_while("HoldEnds", Severity::Warning, (!said.is_empty()).then(|| said.join("; ")));
            }
            Err(error) => tracing::warn!(error = chain(&error), "the age of holds can't be kept; they stay in force"),
        }
        if self.holds.held().is_ok_and(|held| !held.keys().eq(&self.held)) {
            self.follow_holds(agent);
            self.tasks.soon();
        }
        self.holds_at = self.holds.has_peers().then(|| Instant::now() + COUNT_HOLDS);
    }

    fn warn_while(&mut self, code: &str, severity: Severity, message: Option<String>) {
        match message {
            Some(message) => self.reporter.warn(code, severity, &message),
            None => self.reporter.clear_warning(code),
        }
    }

    /// What was told is on disk; if it can't be, it is tried again later.
    pub(super) fn flush(&mut self) {
        if self.flush_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.flush_at = None;
        if let Err(error) = self.reporter.flush() {
            tracing::warn!(error = chain(&error), "the status isn't on disk yet; trying again");
            self.flush_at = Some(Instant::now() + FLUSH_AGAIN);
        }
    }
}
