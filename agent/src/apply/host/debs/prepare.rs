//! From a wish to a plan: resolve with apt's simulation, fetch every archive that comes, secure every archive that goes, keep the
//! configuration files, and only then say what the steps are. Nothing on the host is changed here.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::Digest;

use super::apt::{Apt, AptError, Archive, Ask, Exact, World};
use super::archives::{Archives, there};
use super::resolve::{self, Change, Stand};
use super::simulation::Simulation;
use super::status::{Of, Status};
use super::{Debs, conffile};
use crate::plan::debs::{DebPlan, DebWish};
use crate::record::{DebOriginal, Failure};
use crate::step::{DebInstall, DebRemove, DebsStep, FileBefore};
use crate::trace::{Tracer, shorten};

impl<A: Apt> Debs<A> {
    pub(super) fn plan(&mut self, wish: &DebWish, trace: &mut Tracer<'_>) -> Result<DebPlan, Failure> {
        resolve::admit(wish)?;
        self.inspect_files(wish)?;
        let names: BTreeSet<String> =
            wish.want.iter().map(|deb| &deb.name).chain(wish.give_back.keys()).cloned().collect();
        let status = self.apt.status(Of::Names(&names))?;
        let native = self.apt.native().to_owned();
        let asks =
            resolve::asks(wish, &status, |name, version| self.known.of_version(name, &native, version, &self.objects));
        let (status, changes, archives) = if asks.is_empty() {
            let changes = resolve::changes(wish, &asks, &Simulation::default(), &status)?;
            (status, changes, Archives::default())
        } else {
            self.resolve(wish, &asks, &names, trace)?
        };
        self.steps(wish, &status, &changes, &archives)
    }

    /// A file of the package must be the deb that the workload names.
    fn inspect_files(&self, wish: &DebWish) -> Result<(), Failure> {
        for (deb, digest) in wish.want.iter().filter_map(|deb| deb.file.map(|digest| (deb, digest))) {
            let archive = self.apt.inspect(&self.objects.path(&digest))?;
            let fits = archive.architecture == "all" || archive.architecture == self.apt.native();
            if (&archive.name, &archive.version) != (&deb.name, &deb.version) || !fits {
                let Archive { name, version, architecture, .. } = archive;
                let message = format!(
                    "the file of {} {} holds {name} {version} for {architecture}; this host is {}",
                    deb.name,
                    deb.version,
                    self.apt.native()
                );
                return Err(Failure::new("BadPackage", message));
            }
        }
        Ok(())
    }

    /// With the indexes as they are, and once more with new ones.
    fn resolve(
        &mut self,
        wish: &DebWish,
        asks: &[Ask],
        names: &BTreeSet<String>,
        trace: &mut Tracer<'_>,
    ) -> Result<(Status, Vec<Change>, Archives), Failure> {
        let first = self.attempt(wish, asks, names, trace);
        let error = match first {
            Ok(found) => return Ok(found),
            Err(AptError::Other(failure)) => return Err(failure),
            Err(error) => error,
        };
        let line = trace.begin("refresh the indexes of the apt sources");
        let updated = match self.apt.update() {
            Ok(updated) => updated,
            Err(failure) => {
                trace.fail(line, &failure, &said(&error));
                return Err(failure);
            }
        };
        trace.end(line, &updated.text);
        self.attempt(wish, asks, names, trace).map_err(|error| match error {
            AptError::Other(failure) => failure,
            AptError::Network(said) => Failure::passing("Network", said),
            AptError::Missing(said) if updated.network => Failure::passing(
                "Network",
                format!("{said}; the apt sources can't be reached: {}", updated.failed.join("; ")),
            ),
            AptError::Missing(said) => {
                let sources = self.apt.sources();
                let sources = if sources.is_empty() { "none".to_owned() } else { sources.join(", ") };
                let failed = match updated.failed.as_slice() {
                    [] => String::new(),
                    failed => format!("; some failed: {}", failed.join("; ")),
                };
                Failure::new("DebUnavailable", format!("{said}; sources looked at: {sources}{failed}"))
            }
            AptError::Refused(said) => Failure::new("AptRefused", shorten(&said)),
        })
    }

    fn attempt(
        &mut self,
        wish: &DebWish,
        asks: &[Ask],
        names: &BTreeSet<String>,
        trace: &mut Tracer<'_>,
    ) -> Result<(Status, Vec<Change>, Archives), AptError> {
        let line = trace.begin("simulate the change of debs");
        let simulation = match self.apt.simulate(World::Sources, asks) {
            Ok(simulation) => simulation,
            Err(error) => {
                trace.end(line, &said(&error));
                return Err(error);
            }
        };
        let names = names.iter().chain(simulation.install.keys()).chain(simulation.remove.keys()).cloned().collect();
        let status = self.apt.status(Of::Names(&names)).map_err(AptError::Other)?;
        let changes = match resolve::changes(wish, asks, &simulation, &status) {
            Ok(changes) => changes,
            Err(failure) => {
                trace.fail(line, &failure, "");
                return Err(AptError::Other(failure));
            }
        };
        trace.end(line, &simulation.text);
        let archives = self.gather(wish, asks, &status, &changes, trace)?;
        Ok((status, changes, archives))
    }

    fn steps(
        &self,
        wish: &DebWish,
        status: &Status,
        changes: &[Change],
        archives: &Archives,
    ) -> Result<DebPlan, Failure> {
        let mut plan = DebPlan::default();
        for change in changes {
            let known = status.debs.get(&change.name);
            let mut paths: BTreeSet<String> =
                known.into_iter().flat_map(|deb| &deb.conffiles).map(|conffile| conffile.path.clone()).collect();
            paths.extend(
                there(&change.after)
                    .and_then(|exact| archives.coming.get(exact))
                    .into_iter()
                    .flat_map(|(_, archive)| archive.conffiles.clone()),
            );
            let paths = conffile::follow(paths, &self.root);
            let conffiles = conffile::keep(&paths, &self.objects, &self.root)?;
            plan.back.conffiles.extend(conffile::before(&paths, &conffiles));
            if let Some(original) = wish.give_back.get(&change.name) {
                plan.forward
                    .conffiles
                    .extend(conffile::before(&of_original(change, paths, &original.conffiles), &original.conffiles));
            }
            let coming = there(&change.after).and_then(|exact| archives.coming.get(exact)).map(|(digest, _)| *digest);
            let going = there(&change.before).and_then(|exact| archives.going.get(exact).copied()).or_else(|| {
                // The same version, unpacked again.
                coming.filter(|_| there(&change.before) == there(&change.after))
            });
            let left = archives.left.get(&change.name);
            lead(&mut plan.forward, change, &change.after, coming, left);
            lead(&mut plan.back, change, &change.before, going, left);
            let going = going.or(left.filter(|_| change.before == Stand::ConfigOnly).map(|(_, digest)| *digest));
            let state = status.state(&change.name);
            plan.originals.insert(change.name.clone(), DebOriginal { state, archive: going, conffiles });
        }
        self.holds(wish, status, &mut plan);
        Ok(plan)
    }

    /// What is wanted ends up held; what is given back is held if it was. What a deb's hold was returns with it.
    fn holds(&self, wish: &DebWish, status: &Status, plan: &mut DebPlan) {
        let wanted = wish.want.iter().map(|deb| (&deb.name, Some(true)));
        let returned = resolve::returning(wish);
        let returned =
            returned.map(|(name, original)| (name, original.state.version.as_ref().map(|_| original.state.held)));
        for (name, after) in wanted.chain(returned) {
            let state = status.state(name);
            let before = state.version.as_ref().map(|_| state.held);
            if before == after && !plan.originals.contains_key(name) {
                continue;
            }
            for (step, held) in [(&mut plan.forward, after), (&mut plan.back, before)] {
                match held {
                    Some(true) => step.hold.push(name.clone()),
                    Some(false) => step.unhold.push(name.clone()),
                    None => {}
                }
            }
            plan.originals.entry(name.clone()).or_insert_with(|| DebOriginal { state, ..DebOriginal::default() });
        }
    }
}

/// Purging removes what the deb brought; only what was there before it has to come again.
fn of_original(change: &Change, paths: BTreeSet<String>, original: &BTreeMap<String, FileBefore>) -> BTreeSet<String> {
    if change.after == Stand::Absent { original.keys().cloned().collect() } else { paths }
}

/// The part of a step that brings a deb to where it should stand. Without an archive there is no way, which was accepted.
fn lead(step: &mut DebsStep, change: &Change, to: &Stand, archive: Option<Digest>, left: Option<&(Exact, Digest)>) {
    let mut install = |exact: &Exact, archive: Digest, auto: bool| {
        let Exact { name, architecture, version } = exact.clone();
        step.install.push(DebInstall { name, architecture, version, archive, auto });
    };
    match (to, archive, left) {
        (Stand::There { exact, auto }, Some(archive), _) => return install(exact, archive, *auto),
        (Stand::There { .. }, None, _) => return,
        // Unpacked and removed again: what is left then is what was left before.
        (Stand::ConfigOnly, _, Some((exact, archive))) => install(exact, *archive, false),
        (Stand::ConfigOnly | Stand::Absent, _, _) => {}
    }
    step.remove.push(DebRemove { name: change.name.clone(), purge: *to == Stand::Absent });
}

pub fn said(error: &AptError) -> String {
    match error {
        AptError::Missing(said) | AptError::Network(said) | AptError::Refused(said) => said.clone(),
        AptError::Other(failure) => format!("{}: {}", failure.reason, failure.message),
    }
}
