//! The loop of a host that joined: it asks the hub, takes what can be believed, fetches content, gives jobs to the applier and reports
//! what became true. Every decision is made here, one event at a time; what takes time is under way beside it.

mod agenda;
mod content;
mod inbox;
mod observing;
mod sharing;
mod talk;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kedge_status::Severity;
use tokio::time::Instant;

use super::Site;
use super::host::chain;
use super::house::{Event, House};
use super::hub::Hub;
use crate::airgap::looked;
use crate::contact::Contact;
use crate::desired::{Memory, OpenedMemory};
use crate::drift::Subject;
use crate::external::External;
use crate::holds::Holds;
use crate::identity::Identity;
use crate::link::LinkError;
use crate::observe::Observer;
use crate::report::{Reporter, facts};
use crate::told::Told;
use crate::worker::{Heard, Job};
use agenda::Agenda;
use content::Content;
use sharing::Sharing;
use talk::Talk;

pub(super) struct Desk<H> {
    site: Site,
    identity: Identity,
    /// None: this identity may not talk, and why is a warning.
    hub: Option<Arc<H>>,
    memory: Memory,
    reporter: Reporter,
    holds: Holds,
    external: External,
    /// None: nothing is seen of other reconcilers here.
    observer: Option<Observer>,
    held: BTreeSet<String>,
    talk: Talk,
    content: Content,
    agenda: Agenda,
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

impl<H: Hub> Desk<H> {
    pub(super) fn open(
        site: Site,
        identity: Identity,
        memory: OpenedMemory,
        link: Result<Arc<H>, LinkError>,
    ) -> Desk<H> {
        let key = identity.signing_key().public();
        let (mut reporter, mut healed) = Reporter::open(&site.disk, &site.paths, key, Arc::clone(&site.clock));
        healed.extend(memory.healed);
        let facts = match &site.cluster {
            None => facts::gather(&site.paths),
            Some(cluster) => {
                reporter.take_over();
                cluster.facts.clone()
            }
        };
        for (name, value) in facts {
            reporter.fact(name, &value);
        }
        let (holds, external) =
            (Holds::on(Arc::clone(&site.disk), &site.paths), External::on(Arc::clone(&site.disk), &site.paths));
        let observer =
            site.cluster.as_ref().map(|around| Observer::new(around.cluster.client().clone(), around.runtime.clone()));
        let mut desk = Desk {
            hub: None,
            memory: memory.memory,
            reporter,
            holds,
            external,
            observer,
            held: BTreeSet::new(),
            talk: Talk::new(),
            content: Content::default(),
            agenda: Agenda::new(site.cluster.is_some()),
            sharing: Sharing::default(),
            flush_at: None,
            // Time that passed while nobody was here is counted by the hub's.
            holds_at: Some(Instant::now()),
            holds_counted: Instant::now(),
            // What came while nobody was here.
            inbox_at: Some(Instant::now()),
            site,
            identity,
        };
        // As the reporter counts: from the beginning, until the first look has ended.
        looked::note(&desk.site.paths, desk.site.clock.now());
        desk.warn_while("LedgerHealed", Severity::Warning, (!healed.is_empty()).then(|| healed.join("; ")));
        match link {
            Ok(hub) => {
                desk.reporter.clear_warning("MachineChanged");
                desk.hub = Some(hub);
            }
            Err(error) => {
                let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                let said = format!("{}{hint}", error.sentence());
                tracing::error!(said, "the hub isn't talked to; what runs goes on");
                desk.reporter.warn(error.code(), Severity::Error, &said);
            }
        }
        // A cut may have come between the two ledgers that know the hub's holds.
        desk.keep_hub_holds();
        desk.read_holds();
        desk
    }

    pub(super) async fn serve(&mut self, house: &mut House) -> Ended {
        let name = self.hub.as_ref().map_or_else(|| self.identity.hub().to_owned(), |hub| hub.name());
        tracing::info!(cluster = %self.identity.cluster(), stream = %self.memory.membership().stream, hub = name, "joined");
        loop {
            house.keep_up(&self.held);
            self.work(house);
            self.flush();
            let wake = self.wake();
            tokio::select! {
                event = house.event(wake) => match event {
                    Event::Stop => return Ended::Stopped,
                    Event::Deserted => return Ended::Deserted,
                    Event::Heard(heard) => self.hear(heard, house),
                    Event::Noticed(subjects) => if self.notice(&subjects, house) {
                        return Ended::Replaced;
                    },
                    Event::Time => {}
                },
                polled = self.talk.poll.end() => if self.polled(polled, house) {
                    return Ended::Replaced;
                },
                sent = self.talk.send.end() => self.sent(sent),
                fetched = self.content.fetch.end() => self.fetched(fetched),
                () = observing::next(&mut self.observer) => self.agenda.soon(),
                news = self.sharing.news() => self.take_news(news, house),
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
    fn work(&mut self, house: &mut House) {
        if self.inbox_at.is_some_and(|at| Instant::now() >= at) {
            self.read_inbox(house);
        }
        if self.agenda.is_due() {
            self.refresh(house);
        }
        if self.holds_at.is_some_and(|at| Instant::now() >= at) {
            self.count_holds(house);
        }
        self.fetch_next(house);
        self.share();
        self.talk();
    }

    fn wake(&self) -> Option<Instant> {
        let talk = if self.hub.is_some() { self.talk.wake() } else { None };
        let shared = [self.sharing.wake(), self.inbox_at, self.holds_at].into_iter().flatten().min();
        [self.agenda.due(), talk, self.content.wake(), shared, self.flush_at].into_iter().flatten().min()
    }

    fn hear(&mut self, heard: Heard, house: &mut House) {
        match heard {
            Heard::Told(told) => {
                self.tell(&told);
                // What came with it is written with it.
                while let Some(told) = house.worker.told_already() {
                    self.tell(&told);
                }
            }
            Heard::Ready => {
                self.reporter.clear_warning("ApplierBroke");
                // A new applier knows nothing of what is wanted.
                self.agenda.forget_desire();
                self.agenda.soon();
            }
            Heard::Done { assignments, again, .. } => {
                self.agenda.done(&assignments);
                if let Some(again) = again {
                    house.look_again(again, &*self.site.clock);
                }
            }
            Heard::Tended => self.agenda.soon(),
            Heard::Broke { assignments, why } => {
                let what = if assignments.is_empty() { "at start".to_owned() } else { assignments.join(", ") };
                tracing::error!(what, why, "the applier broke down and is made again");
                self.reporter.warn("ApplierBroke", Severity::Error, &format!("the applier broke down ({what}): {why}"));
                self.agenda.done(&assignments);
            }
        }
    }

    fn tell(&mut self, told: &Told) {
        self.reporter.tell(told);
        self.sharing.soon();
        match told {
            Told::Looked { at } => looked::note(&self.site.paths, *at),
            _ => self.talk.news(),
        }
    }

    /// True: the host joined again.
    fn notice(&mut self, subjects: &BTreeSet<Subject>, house: &mut House) -> bool {
        // A hold of a moment ago counts before what was touched since is looked at.
        if subjects.contains(&Subject::Holds) || self.holds.held().is_ok_and(|held| !held.keys().eq(&self.held)) {
            let released = self.read_holds();
            for assignment in released {
                // A person has worked on it: what failed before may go well now.
                self.agenda.give(&assignment);
                house.give(Job::Retry(assignment));
            }
            house.look_soon();
            self.agenda.soon();
        }
        if subjects.contains(&Subject::Inbox) {
            self.read_inbox(house);
        }
        if subjects.contains(&Subject::External) {
            self.agenda.soon();
        }
        // The link's own renewal is noticed too, with the same cluster.
        subjects.contains(&Subject::Identity)
            && Identity::read(&*self.site.disk, &self.site.paths)
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
    fn count_holds(&mut self, house: &mut House) {
        let passed = self.holds_counted.elapsed();
        self.holds_counted = Instant::now();
        let hub = Contact::read(&self.site.paths).hub_time;
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
            self.follow_holds(house);
            self.agenda.soon();
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
