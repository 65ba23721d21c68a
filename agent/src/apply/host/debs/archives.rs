//! The archives of both directions of a change, made objects before anything is changed: those that come from where apt finds them,
//! those that go from wherever they can still be had. Prepare calls it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kedge_model::wire::Digest;

use super::apt::{Apt, AptError, Archive, Ask, Exact};
use super::prepare::said;
use super::resolve::{Change, Stand};
use super::stanza::Stanza;
use super::status::Status;
use super::{Debs, on_disk};
use crate::objects::digest_of;
use crate::plan::debs::DebWish;
use crate::record::Failure;
use crate::trace::Tracer;

/// The archives of a change.
#[derive(Debug, Default)]
pub struct Archives {
    pub coming: BTreeMap<Exact, (Digest, Archive)>,
    pub going: BTreeMap<Exact, Digest>,
    /// The configuration that removed debs left, by name.
    pub left: BTreeMap<String, (Exact, Digest)>,
}

/// Stays free beside what a change needs: dpkg's own files, logs, our ledgers.
const RESERVE: u64 = 32 * 1024 * 1024;

impl<A: Apt> Debs<A> {
    pub(super) fn gather(
        &mut self,
        wish: &DebWish,
        asks: &[Ask],
        status: &Status,
        changes: &[Change],
        trace: &mut Tracer<'_>,
    ) -> Result<Archives, AptError> {
        Ok(Archives {
            coming: self.fetch(asks, changes, trace)?,
            going: self.secure(wish, status, changes, trace).map_err(AptError::Other)?,
            left: self.leavings(wish, status, changes),
        })
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
            let files = absent.iter().map(|(_, offer)| offer.file.as_str()).collect();
            let folder = self.download_folder(&files).map_err(AptError::Other)?;
            if let Err(error) = self.apt.download(&absent, &folder) {
                trace.end(line, &said(&error));
                return Err(error);
            }
            trace.end(line, &absent.iter().map(|(exact, _)| exact.spec()).collect::<Vec<_>>().join("\n"));
            for (exact, offer) in absent {
                let path = folder.join(&offer.file);
                let digest = self.adopt(&path, offer.digest.as_ref()).map_err(AptError::Other)?;
                coming.insert(exact, digest);
            }
        }
        let mut archives = BTreeMap::new();
        let mut unpacked = 0_u64;
        for (exact, digest) in coming {
            let archive = self.apt.inspect(&self.objects.path(&digest)).map_err(AptError::Other)?;
            // Not every deb says how large it is unpacked; it is no smaller than its archive.
            let packed = fs::metadata(self.objects.path(&digest)).map_or(0, |metadata| metadata.len());
            unpacked += packed.max(archive.installed_kib.saturating_mul(1024));
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
                    trace.end(line, &format!("no rollback possible, which this workload accepts: {}", failure.message));
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
        if altered && let Ok(digest) = self.repacked(&exact.name, status) {
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
            let folder = self.download_folder(&BTreeSet::from([offer.file.as_str()]))?;
            let wanted = [(exact.clone(), offer)];
            if self.apt.download(&wanted, &folder).is_ok() {
                let [(_, offer)] = wanted;
                let digest = self.adopt(&folder.join(&offer.file), offer.digest.as_ref())?;
                return Ok((digest, "downloaded from its source"));
            }
        }
        let digest = self.repacked(&exact.name, status)?;
        Ok((digest, "repacked from its installed files: no source offers it"))
    }

    fn repacked(&self, name: &str, status: &Status) -> Result<Digest, Failure> {
        let Some(deb) = status.debs.get(name) else {
            return Err(Failure::new("NoWayBack", format!("dpkg doesn't know {name}")));
        };
        let installed = Stanza::new(&deb.paragraph).field("Installed-Size").and_then(|size| size.parse().ok());
        self.room(self.apt.free()?.archives, installed.unwrap_or(0) * 1024, "the way back")?;
        let path = self.empty_folder("repacked")?.join("way-back.deb");
        self.apt.repack(name, deb, &path)?;
        self.adopt(&path, None)
    }

    /// Where a deb is, or returns to, removed with configuration left, what is left is an archive too. Without it the files return
    /// all the same, and only dpkg remembers another version of them.
    fn leavings(&self, wish: &DebWish, status: &Status, changes: &[Change]) -> BTreeMap<String, (Exact, Digest)> {
        let mut left = BTreeMap::new();
        for change in changes {
            let digest = match (&change.before, &change.after) {
                (Stand::ConfigOnly, _) => self.repacked(&change.name, status).ok(),
                (_, Stand::ConfigOnly) => wish.give_back.get(&change.name).and_then(|original| original.archive),
                _ => None,
            };
            let Some(digest) = digest.filter(|digest| self.objects.has(digest)) else { continue };
            if let Ok(Archive { version, architecture, .. }) = self.apt.inspect(&self.objects.path(&digest)) {
                let exact = Exact { name: change.name.clone(), architecture, version };
                left.insert(change.name.clone(), (exact, digest));
            }
        }
        left
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

    /// What an interrupted download of the same files left stays: apt goes on from there.
    fn download_folder(&self, files: &BTreeSet<&str>) -> Result<PathBuf, Failure> {
        let folder = self.work.join("download");
        fs::create_dir_all(&folder).map_err(|error| on_disk(&folder, &error))?;
        for entry in fs::read_dir(&folder).map_err(|error| on_disk(&folder, &error))?.flatten() {
            if entry.file_name().to_str().is_none_or(|name| !files.contains(name)) {
                fs::remove_file(entry.path()).map_err(|error| on_disk(&entry.path(), &error))?;
            }
        }
        Ok(folder)
    }

    /// Moved, not copied.
    fn adopt(&self, path: &Path, promised: Option<&Digest>) -> Result<Digest, Failure> {
        let digest = digest_of(path).map_err(|error| on_disk(path, &error))?;
        if promised.is_some_and(|promised| *promised != digest) {
            let message = format!("{} is not what its source's index promised", path.display());
            _ = fs::remove_file(path);
            return Err(Failure::passing("Network", message));
        }
        self.objects.adopt(path, &digest).map_err(|error| on_disk(path, &error))?;
        Ok(digest)
    }
}

pub fn there(stand: &Stand) -> Option<&Exact> {
    match stand {
        Stand::There { exact, .. } => Some(exact),
        Stand::Absent | Stand::ConfigOnly => None,
    }
}
