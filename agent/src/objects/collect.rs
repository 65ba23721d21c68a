//! Which objects go when nothing needs them any more: the oldest first, and only as far as the disk needs it, or after a month. Run
//! calls it before it downloads and once a day.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kedge_model::wire::Digest;
use nix::sys::statvfs::statvfs;

use super::Objects;

/// Long enough for a rollback to content that was there last week, without a download.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Nobody writes one object for so long: a cut left it.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

struct Candidate {
    age: Duration,
    size: u64,
    path: PathBuf,
}

impl Objects {
    /// Makes room: afterwards `need` bytes are free, if what nobody needs was enough. Says how many bytes went. What is in `keep`
    /// stays whatever happens.
    pub fn collect(&self, keep: &BTreeSet<Digest>, need: u64) -> io::Result<u64> {
        self.collect_at(keep, need, SystemTime::now(), free)
    }

    fn collect_at(
        &self,
        keep: &BTreeSet<Digest>,
        need: u64,
        now: SystemTime,
        free: impl Fn(&Path) -> io::Result<u64>,
    ) -> io::Result<u64> {
        let mut candidates = self.candidates(keep, now)?;
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.age));
        let mut freed = 0;
        for candidate in candidates {
            if candidate.age < KEPT && free(&self.folder)? >= need {
                break;
            }
            fs::remove_file(&candidate.path)?;
            freed += candidate.size;
        }
        Ok(freed)
    }

    fn candidates(&self, keep: &BTreeSet<Digest>, now: SystemTime) -> io::Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) else { continue };
            let age = metadata.modified().ok().and_then(|then| now.duration_since(then).ok()).unwrap_or_default();
            let goes = match name.strip_prefix("sha256-").and_then(|hex| format!("sha256:{hex}").parse().ok()) {
                Some(digest) => !keep.contains(&digest),
                None => name.ends_with(".new") && age > ABANDONED,
            };
            if goes && metadata.is_file() {
                candidates.push(Candidate { age, size: metadata.len(), path: entry.path() });
            }
        }
        Ok(candidates)
    }
}

/// What the agent may still write there.
pub fn free(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    #[allow(clippy::useless_conversion, reason = "the fields are 32 bits wide on armhf")]
    Ok(u64::from(disk.blocks_available()).saturating_mul(u64::from(disk.fragment_size())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const DAY: u64 = 24 * 3600;

    struct World {
        _folder: tempfile::TempDir,
        objects: Objects,
        now: SystemTime,
    }

    impl World {
        fn new() -> World {
            let folder = tempfile::tempdir().unwrap();
            let objects = Objects::open(&folder.path().join("objects")).unwrap();
            World { _folder: folder, objects, now: SystemTime::now() }
        }

        fn put(&self, text: &str, days: u64) -> Digest {
            let digest = self.objects.put(text.as_bytes()).unwrap();
            let file = self.objects.read(&digest).unwrap();
            file.set_modified(self.now - Duration::from_secs(days * DAY)).unwrap();
            digest
        }

        /// A disk that has `at_first` bytes, and more with every question.
        fn collect(&self, keep: &[Digest], need: u64, at_first: u64) -> u64 {
            let asked = Cell::new(at_first);
            let free = |_: &Path| Ok(asked.replace(asked.get() + 10));
            self.objects.collect_at(&keep.iter().copied().collect(), need, self.now, free).unwrap()
        }
    }

    #[test]
    fn nothing_goes_while_there_is_room() {
        let world = World::new();
        let old = world.put("old", 29);
        assert_eq!(world.collect(&[], 5, 100), 0);
        assert!(world.objects.has(&old));
    }

    #[test]
    fn the_oldest_goes_first_and_only_as_many_as_needed() {
        let world = World::new();
        let [young, old, oldest] = [("a", 1), ("bb", 5), ("ccc", 9)].map(|(text, days)| world.put(text, days));
        // Room for 15 is there after the first two questions.
        assert_eq!(world.collect(&[], 15, 0), 5);
        assert_eq!([young, old, oldest].map(|digest| world.objects.has(&digest)), [true, false, false]);
    }

    #[test]
    fn what_is_referenced_stays_even_on_a_full_disk_and_after_a_year() {
        let world = World::new();
        let (running, other) = (world.put("running", 400), world.put("other", 1));
        world.collect(&[running], u64::MAX, 0);
        assert!(world.objects.has(&running) && !world.objects.has(&other));
    }

    #[test]
    fn after_a_month_unused_objects_and_leftovers_go() {
        let world = World::new();
        let (old, young) = (world.put("old", 31), world.put("young", 3));
        let leftover = world.objects.begin().unwrap();
        leftover.file.set_modified(world.now - Duration::from_secs(40 * DAY)).unwrap();
        world.collect(&[], 0, 100);
        assert!(!world.objects.has(&old) && world.objects.has(&young));
        assert!(!leftover.temporary.exists());
    }

    #[test]
    fn being_wanted_again_makes_an_object_young() {
        let world = World::new();
        let digest = world.put("old", 31);
        world.objects.put(b"old").unwrap();
        world.collect(&[], 0, 100);
        assert!(world.objects.has(&digest));
    }

    #[test]
    fn the_disk_tells_its_room() {
        assert!(free(Path::new("/")).unwrap() > 0);
    }
}
