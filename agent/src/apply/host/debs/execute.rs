//! One step of debs, done: what differs from it is changed in a single run of apt from archives on the disk, then marks, then
//! configuration files. Doing it twice is doing it once.
//!
//! apt-get does it and not `dpkg -i`, because apt orders unpacking and configuring (Pre-Depends, Breaks, removals between them), which
//! dpkg leaves to its caller. To keep apt's own judgement out it sees no sources, indexes or pins: it can choose from the
//! installed debs and the step's archives only, and a simulation of that must say exactly what the step says.

use std::collections::BTreeSet;
use std::fs;

use super::apt::{Apt, AptError, Ask, Broken, Mark, World};
use super::resolve::{Stand, allow, stand};
use super::status::{Of, Status};
use super::version::compare;
use super::{Debs, conffile};
use crate::record::Failure;
use crate::step::{DebInstall, DebRemove, DebsStep};
use crate::trace::{Tracer, shorten};

/// What a step still has to do.
#[derive(Debug, Default)]
struct Todo<'s> {
    install: Vec<&'s DebInstall>,
    remove: Vec<&'s DebRemove>,
    purge: Vec<&'s str>,
    /// Unpacked in that version, but not whole.
    configure: Vec<&'s DebInstall>,
}

/// Runs of apt: one, and another for debs that come only to leave their configuration.
const ROUNDS: usize = 2;

impl<'s> Todo<'s> {
    fn of(step: &'s DebsStep, status: &Status) -> Todo<'s> {
        let mut todo = Todo::default();
        for install in &step.install {
            let state = status.state(&install.name);
            let same = state.version.as_ref() == Some(&install.version);
            let leaves = step.remove.iter().any(|remove| remove.name == install.name);
            let torn = status.debs.get(&install.name).is_some_and(|deb| deb.torn);
            // One that leaves again comes only to leave its configuration.
            if (!same || torn) && (!leaves || state.version.is_some()) {
                todo.install.push(install);
            } else if !state.whole && !leaves {
                todo.configure.push(install);
            }
        }
        for remove in &step.remove {
            let state = status.state(&remove.name);
            let first = todo.install.iter().any(|install| install.name == remove.name);
            if state.version.is_some() && !first {
                todo.remove.push(remove);
            }
            if remove.purge && (state.version.is_some() || state.config_only) {
                todo.purge.push(&remove.name);
            }
        }
        todo
    }

    fn is_empty(&self) -> bool {
        self.install.is_empty() && self.remove.is_empty() && self.configure.is_empty()
    }

    /// Empty when dpkg has only to configure. Otherwise what is to be configured is asked for too: what apt isn't asked to keep it
    /// may take away, to mend what a power cut left.
    fn asks(&self) -> Vec<Ask> {
        if self.install.is_empty() && self.remove.is_empty() {
            return Vec::new();
        }
        let install = self.brought().map(|install| Ask::Archive {
            name: install.name.clone(),
            version: install.version.clone(),
            digest: install.archive,
        });
        install.chain(self.remove.iter().map(|remove| Ask::Remove { name: remove.name.clone() })).collect()
    }

    /// What ends up installed.
    fn brought(&self) -> impl Iterator<Item = &'s DebInstall> {
        self.install.iter().chain(&self.configure).copied()
    }

    /// As a person reads it.
    fn sentence(&self) -> String {
        let install = self.install.iter().map(|install| format!("install {} {}", install.name, install.version));
        let remove = self
            .remove
            .iter()
            .map(|remove| format!("{} {}", if remove.purge { "purge" } else { "remove" }, remove.name));
        let configure = self.configure.iter().map(|deb| format!("configure {}", deb.name));
        install.chain(remove).chain(configure).collect::<Vec<_>>().join(", ")
    }
}

impl<A: Apt> Debs<A> {
    pub(super) fn carry_out(&mut self, step: &DebsStep, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        let names: BTreeSet<String> = named(step).map(str::to_owned).collect();
        names.iter().try_for_each(|name| allow(name))?;
        self.resume(trace)?;
        let mut status = self.apt.status(Of::Names(&names))?;
        if self.unpack_torn(&Todo::of(step, &status), &status, trace)? {
            status = self.apt.status(Of::Names(&names))?;
        }
        for _ in 0..ROUNDS {
            let todo = Todo::of(step, &status);
            if todo.is_empty() {
                break;
            }
            self.transact(step, &todo, &status, &names, trace)?;
            status = self.apt.status(Of::Names(&names))?;
        }
        let purge = Todo::of(step, &status).purge;
        if !purge.is_empty() {
            let line = trace.begin(format!("purge {}", purge.join(", ")));
            finish(trace, line, self.apt.purge(&purge).map_err(Broken::from))?;
            status = self.apt.status(Of::Names(&names))?;
        }
        self.set_marks(step, &status, trace)?;
        let changed = conffile::restore(&step.conffiles, &self.objects, &self.root)?;
        if !changed.is_empty() {
            let line = trace.begin("put configuration files back");
            trace.end(line, &changed.join("\n"));
        }
        Ok(())
    }

    fn transact(
        &self,
        step: &DebsStep,
        todo: &Todo<'_>,
        status: &Status,
        names: &BTreeSet<String>,
        trace: &mut Tracer<'_>,
    ) -> Result<(), Failure> {
        let asks = todo.asks();
        if !asks.is_empty() {
            self.present(todo)?;
            self.agree(todo, &asks)?;
        }
        let brought: BTreeSet<&str> = todo
            .install
            .iter()
            .filter_map(|install| status.debs.get(&install.name))
            .flat_map(|deb| &deb.conffiles)
            .map(|conffile| conffile.path.as_str())
            .collect();
        let cleared = conffile::clear(&step.conffiles, &brought, &self.objects, &self.root)?;
        let line = trace.begin(todo.sentence());
        // apt configures whatever is unpacked; without anything to ask of it dpkg does that.
        let configure: Vec<&str> = todo.configure.iter().map(|deb| deb.name.as_str()).collect();
        let done = if asks.is_empty() { self.apt.configure(&configure) } else { self.apt.transact(&asks) };
        let Err(broken) = done else { return finish(trace, line, done) };
        // Another deb that was broken before makes the whole run fail; ours may be done all the same.
        let after = self.apt.status(Of::Names(names))?;
        if Todo::of(step, &after).is_empty() {
            trace.end(line, &broken.output);
            tracing::warn!(error = %broken.failure.message, "dpkg failed at something else");
            return Ok(());
        }
        conffile::restore(&cleared, &self.objects, &self.root)?;
        finish(trace, line, Err(broken))
    }

    /// What was torn while it was unpacked is unpacked by dpkg itself, in the version it should have: apt wants the version that it
    /// was torn at, which nobody needs any more.
    fn unpack_torn(&self, todo: &Todo<'_>, status: &Status, trace: &mut Tracer<'_>) -> Result<bool, Failure> {
        let torn = |name: &str| status.debs.get(name).is_some_and(|deb| deb.torn);
        let asks: Vec<Ask> =
            todo.asks().into_iter().filter(|ask| matches!(ask, Ask::Archive { .. }) && torn(ask.name())).collect();
        if asks.is_empty() {
            return Ok(false);
        }
        self.present(todo)?;
        let line = trace.begin(format!("unpack again {}", asks.iter().map(Ask::name).collect::<Vec<_>>().join(", ")));
        finish(trace, line, self.apt.unpack(&asks).map_err(Broken::from))?;
        Ok(true)
    }

    fn present(&self, todo: &Todo<'_>) -> Result<(), Failure> {
        match todo.brought().find(|install| !self.objects.has(&install.archive)) {
            Some(gone) => {
                let message = format!("the archive of {} {} ({}) is gone", gone.name, gone.version, gone.archive);
                Err(Failure::new("NoWayBack", message))
            }
            None => Ok(()),
        }
    }

    /// Nothing may come or go that the step doesn't name.
    fn agree(&self, todo: &Todo<'_>, asks: &[Ask]) -> Result<(), Failure> {
        let simulation = self.apt.simulate(World::Archives, asks).map_err(|error| match error {
            AptError::Other(failure) => failure,
            AptError::Missing(said) | AptError::Network(said) | AptError::Refused(said) => {
                Failure::new("AptRefused", shorten(&said))
            }
        })?;
        let refused = |why: String| Err(Failure::new("AptRefused", format!("{why}\n{}", shorten(&simulation.text))));
        let asked = |name: &str| todo.brought().find(|install| install.name == name);
        for (name, arrival) in &simulation.install {
            if asked(name).is_none_or(|install| compare(&install.version, &arrival.version).is_ne()) {
                return refused(format!(
                    "{name} {} would be installed, which isn't part of this step",
                    arrival.version
                ));
            }
        }
        match simulation.remove.keys().find(|name| todo.remove.iter().all(|remove| remove.name != **name)) {
            Some(name) => refused(format!("{name} would be removed, and the workload doesn't ask for that")),
            None => Ok(()),
        }
    }

    fn set_marks(&self, step: &DebsStep, status: &Status, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        let there = |name: &str| status.state(name).version.is_some();
        let auto = |auto: bool| {
            let differs = move |install: &&DebInstall| {
                install.auto == auto && there(&install.name) && status.state(&install.name).auto != auto
            };
            step.install.iter().filter(differs).map(|install| install.name.as_str()).collect::<Vec<_>>()
        };
        let held = |names: &'_ [String], held: bool| -> Vec<String> {
            names.iter().filter(|name| there(name) && status.state(name).held != held).cloned().collect()
        };
        let leaving = |install: &&DebInstall| status.debs.get(&install.name).is_some_and(|deb| deb.leaving);
        let (hold, unhold) = (held(&step.hold, true), held(&step.unhold, false));
        let marks = [
            (Mark::Install, step.install.iter().filter(leaving).map(|install| install.name.as_str()).collect()),
            (Mark::Auto, auto(true)),
            (Mark::Manual, auto(false)),
            (Mark::Hold, hold.iter().map(String::as_str).collect()),
            (Mark::Unhold, unhold.iter().map(String::as_str).collect()),
        ];
        for (mark, names) in marks.into_iter().filter(|(_, names)| !names.is_empty()) {
            let line = trace.begin(format!("mark {} as {}", names.join(", "), mark.word()));
            finish(trace, line, self.apt.mark(mark, &names).map_err(Broken::from))?;
        }
        Ok(())
    }

    /// apt doesn't work while dpkg's journal holds something.
    fn resume(&self, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        if !self.apt.interrupted() {
            return Ok(());
        }
        let line = trace.begin("take in what an interrupted dpkg did");
        finish(trace, line, self.apt.resume().map_err(Broken::from))
    }

    /// What was torn and is known in that version needs no source to be whole again.
    fn unpack_known(&self, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        let mut asks = Vec::new();
        for (name, deb) in self.apt.status(Of::Broken)?.debs.into_iter().filter(|(_, deb)| deb.torn) {
            let Stand::There { exact, .. } = stand(&name, &deb.state) else { continue };
            if let Some(digest) = self.known.archive(&exact, &self.objects) {
                asks.push(Ask::Archive { name, version: exact.version, digest });
            }
        }
        if !asks.is_empty() {
            let line =
                trace.begin(format!("unpack again {}", asks.iter().map(Ask::name).collect::<Vec<_>>().join(", ")));
            // What fails here is judged by what is broken afterwards.
            _ = finish(trace, line, self.apt.unpack(&asks).map_err(Broken::from));
        }
        Ok(())
    }

    pub(super) fn mend(&mut self, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        for left in ["links", "repacked"] {
            _ = fs::remove_dir_all(self.work.join(left));
        }
        self.resume(trace)?;
        if self.apt.status(Of::Broken)?.debs.is_empty() {
            return Ok(());
        }
        self.unpack_known(trace)?;
        let line = trace.begin("configure what an interrupted dpkg left");
        // What fails here is judged by what is broken afterwards.
        _ = finish(trace, line, self.apt.configure(&[]));
        if self.apt.status(Of::Broken)?.debs.is_empty() {
            return Ok(());
        }
        let would = self.apt.fix_broken(false)?;
        let downgrade = would
            .install
            .iter()
            .find(|(_, arrival)| arrival.instead_of.as_ref().is_some_and(|old| compare(&arrival.version, old).is_lt()));
        if let Some(name) = would.remove.keys().next().or(downgrade.map(|(name, _)| name)) {
            let message = format!(
                "repairing dpkg would remove or downgrade {name}, and no workload asks for that\n{}",
                shorten(&would.text)
            );
            return Err(Failure::new("AptRefused", message));
        }
        let line = trace.begin("repair broken dependencies");
        let fixed = self.apt.fix_broken(true).map(|fixed| fixed.text);
        finish(trace, line, fixed.map_err(Broken::from))?;
        let broken = self.apt.status(Of::Broken)?.debs;
        match broken.is_empty() {
            true => Ok(()),
            false => {
                let names = broken.into_keys().collect::<Vec<_>>().join(", ");
                Err(Failure::new("DpkgFailed", format!("still not whole: {names}")))
            }
        }
    }
}

fn named(step: &DebsStep) -> impl Iterator<Item = &str> {
    let install = step.install.iter().map(|install| install.name.as_str());
    let remove = step.remove.iter().map(|remove| remove.name.as_str());
    install.chain(remove).chain(step.hold.iter().chain(&step.unhold).map(String::as_str))
}

fn finish(trace: &mut Tracer<'_>, line: crate::trace::Line, done: Result<String, Broken>) -> Result<(), Failure> {
    match done {
        Ok(output) => {
            trace.end(line, &output);
            Ok(())
        }
        Err(Broken { failure, output }) => {
            trace.fail(line, &failure, &output);
            Err(failure)
        }
    }
}
