//! From a wish to a plan: resolve with apt's simulation, fetch every archive that comes, secure every archive that goes, keep the
//! configuration files, and only then say what the steps are. Nothing on the host is changed here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kedge_model::wire::Digest;

use super::apt::{Apt, AptError, Archive, Ask, Exact, World};
use super::resolve::{self, Change, Stand};
use super::simulation::Simulation;
use super::status::{Of, Status};
use super::{Debs, conffile, on_disk};
use crate::apply::{DebPlan, DebWish};
use crate::objects::digest_of;
use crate::record::{DebOriginal, Failure};
use crate::step::{DebInstall, DebRemove, DebsStep, FileBefore};
use crate::trace::{Tracer, shorten};

/// The archives of a change.
#[derive(Debug, Default)]
struct Archives {
    coming: BTreeMap<Exact, (Digest, Archive)>,
    going: BTreeMap<Exact, Digest>,
}

/// Stays free beside what a change needs: dpkg's own files, logs, our ledgers.
const RESERVE: u64 = 32 * 1024 * 1024;

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
        let archives = Archives {
            coming: self.fetch(asks, &changes, trace)?,
            going: self.secure(wish, &status, &changes, trace).map_err(AptError::Other)?,
        };
        Ok((status, changes, archives))
    }

    /// Every archive that comes is an object afterwards.
    fn fetch(
        &mut self,
        asks: &[Ask],
        changes: &[Change],
        trace: &mut Tracer<'_>,
    ) -> Result<BTreeMap<Exact, (Digest, Archive)>, AptError> {
        let given = |name: &str| {
            asks.iter().find_map(|ask| match ask {
                Ask::Archive { name: asked, digest, .. } if asked == name => Some(*digest),
                _ => None,
            })
        };
        let (mut coming, mut absent, mut size) = (BTreeMap::new(), Vec::new(), 0_u64);
        for exact in changes.iter().filter_map(|change| there(&change.after)) {
            if let Some(digest) = given(&exact.name).or_else(|| self.known.archive(exact, &self.objects)) {
                coming.insert(exact.clone(), digest);
                continue;
            }
            let offer =
                self.apt.offer(exact).ok_or_else(|| AptError::Missing(format!("no source offers {}", exact.spec())))?;
            match offer.digest.filter(|digest| self.objects.has(digest)) {
                Some(digest) => _ = coming.insert(exact.clone(), digest),
                None => {
                    size += offer.size;
                    absent.push((exact.clone(), offer));
                }
            }
        }
        if !absent.is_empty() {
            self.room(self.apt.free().map_err(AptError::Other)?.archives, size, "the archives")
                .map_err(AptError::Other)?;
            let line = trace.begin(format!("download {} debs, {} kB", absent.len(), size / 1000));
            let folder = self.empty_folder("download").map_err(AptError::Other)?;
            let debs: Vec<Exact> = absent.iter().map(|(exact, _)| exact.clone()).collect();
            if let Err(error) = self.apt.download(&debs, &folder) {
                trace.end(line, &said(&error));
                return Err(error);
            }
            trace.end(line, &debs.iter().map(Exact::spec).collect::<Vec<_>>().join("\n"));
            for (exact, offer) in absent {
                let path = folder.join(&offer.file);
                let digest = self.adopt(&path, offer.digest.as_ref()).map_err(AptError::Other)?;
                coming.insert(exact, digest);
            }
        }
        let mut archives = BTreeMap::new();
        let mut unpacked = 0;
        for (exact, digest) in coming {
            let archive = self.apt.inspect(&self.objects.path(&digest)).map_err(AptError::Other)?;
            unpacked += archive.installed_kib * 1024;
            self.known.remember(&exact, digest, &self.objects);
            archives.insert(exact, (digest, archive));
        }
        self.room(self.apt.free().map_err(AptError::Other)?.unpacked, unpacked, "the unpacked debs")
            .map_err(AptError::Other)?;
        Ok(archives)
    }

    /// Every archive that goes is an object afterwards, or there is a reason to refuse.
    fn secure(
        &mut self,
        wish: &DebWish,
        status: &Status,
        changes: &[Change],
        trace: &mut Tracer<'_>,
    ) -> Result<BTreeMap<Exact, Digest>, Failure> {
        let mut going = BTreeMap::new();
        for change in changes.iter().filter(|change| there(&change.before) != there(&change.after)) {
            let Some(exact) = there(&change.before) else { continue };
            let line = trace.begin(format!("secure {} {}, which is installed now", exact.name, exact.version));
            match self.secure_one(exact, status) {
                Ok((digest, from)) => {
                    trace.end(line, from);
                    self.known.remember(exact, digest, &self.objects);
                    going.insert(exact.clone(), digest);
                }
                Err(failure) if wish.no_rollback && !failure.passes => {
                    trace.end(line, &format!("no way back, which this workload accepts: {}", failure.message));
                }
                Err(failure) => {
                    trace.fail(line, &failure, "");
                    return Err(failure);
                }
            }
        }
        Ok(going)
    }

    /// Files that somebody changed return only in an archive made of them; else a source's archive is the exact one.
    fn secure_one(&mut self, exact: &Exact, status: &Status) -> Result<(Digest, &'static str), Failure> {
        if let Some(digest) = self.known.archive(exact, &self.objects) {
            return Ok((digest, "kept from its installation"));
        }
        let altered = self.apt.altered(&exact.name);
        if altered && let Ok(digest) = self.repacked(exact, status) {
            return Ok((digest, "repacked from its installed files, which differ from what it brought"));
        }
        if let Some(path) = self.apt.cached(exact)
            && self
                .apt
                .inspect(&path)
                .is_ok_and(|archive| archive.version == exact.version && archive.architecture == exact.architecture)
        {
            let digest = self.objects.put_copy(&path).map_err(|error| on_disk(&path, &error))?;
            return Ok((digest, "from apt's cache"));
        }
        if let Some(offer) = self.apt.offer(exact) {
            if let Some(digest) = offer.digest.filter(|digest| self.objects.has(digest)) {
                return Ok((digest, "among the objects"));
            }
            self.room(self.apt.free()?.archives, offer.size, "the way back")?;
            let folder = self.empty_folder("download")?;
            if self.apt.download(std::slice::from_ref(exact), &folder).is_ok() {
                return Ok((
                    self.adopt(&folder.join(&offer.file), offer.digest.as_ref())?,
                    "downloaded from its source",
                ));
            }
        }
        let digest = self.repacked(exact, status)?;
        Ok((digest, "repacked from its installed files: no source offers it"))
    }

    fn repacked(&self, exact: &Exact, status: &Status) -> Result<Digest, Failure> {
        let Some(deb) = status.debs.get(&exact.name) else {
            return Err(Failure::new("NoWayBack", format!("dpkg doesn't know {}", exact.name)));
        };
        let installed =
            super::stanza::Stanza::new(&deb.paragraph).field("Installed-Size").and_then(|size| size.parse().ok());
        self.room(self.apt.free()?.archives, installed.unwrap_or(0) * 1024, "the way back")?;
        let path = self.empty_folder("repacked")?.join("way-back.deb");
        self.apt.repack(&exact.name, deb, &path)?;
        self.adopt(&path, None)
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
            lead(&mut plan.forward, &change.name, &change.after, coming);
            lead(&mut plan.back, &change.name, &change.before, going);
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

    fn room(&self, free: u64, need: u64, what: &str) -> Result<(), Failure> {
        if need.saturating_add(RESERVE) <= free {
            return Ok(());
        }
        let (need, free) = (need.div_ceil(1_000_000), free / 1_000_000);
        Err(Failure::passing("DiskFull", format!("{what} need {need} MB, {free} MB are free and 32 MB must stay so")))
    }

    /// A folder of ours without what an interrupted attempt left.
    fn empty_folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.work.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| on_disk(&folder, &error))?;
        }
        fs::create_dir_all(&folder).map_err(|error| on_disk(&folder, &error))?;
        Ok(folder)
    }

    /// Moved, not copied.
    fn adopt(&self, path: &Path, promised: Option<&Digest>) -> Result<Digest, Failure> {
        let digest = digest_of(path).map_err(|error| on_disk(path, &error))?;
        if promised.is_some_and(|promised| *promised != digest) {
            let message = format!("{} is not what its source's index promised", path.display());
            return Err(Failure::passing("Network", message));
        }
        self.objects.adopt(path, &digest).map_err(|error| on_disk(path, &error))?;
        Ok(digest)
    }
}

fn there(stand: &Stand) -> Option<&Exact> {
    match stand {
        Stand::There { exact, .. } => Some(exact),
        Stand::Absent | Stand::ConfigOnly => None,
    }
}

/// Purging removes what the deb brought; only what was there before it has to come again.
fn of_original(change: &Change, paths: BTreeSet<String>, original: &BTreeMap<String, FileBefore>) -> BTreeSet<String> {
    if change.after == Stand::Absent { original.keys().cloned().collect() } else { paths }
}

/// The part of a step that brings a deb to where it should stand. Without an archive there is no way, which was accepted.
fn lead(step: &mut DebsStep, name: &str, to: &Stand, archive: Option<Digest>) {
    let name = name.to_owned();
    match (to, archive) {
        (Stand::There { exact, auto }, Some(archive)) => {
            let (architecture, version) = (exact.architecture.clone(), exact.version.clone());
            step.install.push(DebInstall { name, architecture, version, archive, auto: *auto });
        }
        (Stand::There { .. }, None) => {}
        (Stand::ConfigOnly, _) => step.remove.push(DebRemove { name, purge: false }),
        (Stand::Absent, _) => step.remove.push(DebRemove { name, purge: true }),
    }
}

fn said(error: &AptError) -> String {
    match error {
        AptError::Missing(said) | AptError::Network(said) | AptError::Refused(said) => said.clone(),
        AptError::Other(failure) => format!("{}: {}", failure.reason, failure.message),
    }
}
