//! Which archives are among our objects, by name and version, so that a version that was here returns without a network. A memory
//! only: what it names may have been collected, and then it is fetched again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kedge_model::wire::Digest;

use super::apt::Exact;
use crate::objects::Objects;

#[derive(Debug)]
pub struct Known {
    file: PathBuf,
    archives: BTreeMap<Exact, Digest>,
}

/// More than a host's workloads ever have in use; the rest was collected long ago.
const MAX_KNOWN: usize = 4096;
/// What is read of the file: as many lines of the longest names.
const MAX_FILE: u64 = 2 * 1024 * 1024;

impl Known {
    pub fn open(file: &Path) -> Known {
        let small = fs::metadata(file).is_ok_and(|metadata| metadata.len() <= MAX_FILE);
        let text = if small { fs::read(file).unwrap_or_default() } else { Vec::new() };
        let archives = String::from_utf8_lossy(&text).lines().filter_map(parse).take(MAX_KNOWN).collect();
        Known { file: file.to_owned(), archives }
    }

    pub fn archive(&self, deb: &Exact, objects: &Objects) -> Option<Digest> {
        self.archives.get(deb).copied().filter(|digest| objects.has(digest))
    }

    /// Of this architecture or of none.
    pub fn of_version(&self, name: &str, native: &str, version: &str, objects: &Objects) -> Option<Digest> {
        let exact = |architecture: &str| Exact {
            name: name.to_owned(),
            architecture: architecture.to_owned(),
            version: version.to_owned(),
        };
        self.archive(&exact(native), objects).or_else(|| self.archive(&exact("all"), objects))
    }

    pub fn remember(&mut self, deb: &Exact, digest: Digest, objects: &Objects) {
        if self.archives.insert(deb.clone(), digest) == Some(digest) {
            return;
        }
        self.archives.retain(|_, digest| objects.has(digest));
        let line =
            |(deb, digest): (&Exact, &Digest)| format!("{} {} {} {digest}\n", deb.name, deb.architecture, deb.version);
        let text: String = self.archives.iter().map(line).collect();
        let beside = self.file.with_extension("new");
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &self.file));
        if let Err(error) = written {
            tracing::warn!(file = %self.file.display(), %error, "the list of known archives could not be written; it is fetched again");
        }
    }
}

fn parse(line: &str) -> Option<(Exact, Digest)> {
    let mut words = line.split(' ');
    let (name, architecture, version) = (words.next()?.to_owned(), words.next()?.to_owned(), words.next()?.to_owned());
    let digest = words.next()?.parse().ok()?;
    words.next().is_none().then_some((Exact { name, architecture, version }, digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_collected_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects")).unwrap();
        let (one, two) = (objects.put(b"one").unwrap(), objects.put(b"two").unwrap());
        let exact = |version: &str| Exact {
            name: "app".to_owned(),
            architecture: "all".to_owned(),
            version: version.to_owned(),
        };
        let file = folder.path().join("known");
        let mut known = Known::open(&file);
        known.remember(&exact("1"), one, &objects);
        known.remember(&exact("2"), two, &objects);
        let known = Known::open(&file);
        assert_eq!(known.of_version("app", "amd64", "2", &objects), Some(two));
        objects.remove(&one).unwrap();
        assert_eq!(known.archive(&exact("1"), &objects), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_panic(line in ".{0,120}") {
            _ = parse(&line);
        }
    }
}
