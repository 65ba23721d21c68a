//! Key sets as they came, on disk: who was away for months follows them one by one, also from a peer. A file in the cache; what is lost
//! of it the hub still has.

use std::fs;
use std::path::PathBuf;

use kedge_model::wire::Envelope;

use crate::paths::Paths;

const FILE: &str = "key-sets.json";
/// As many as a store keeps.
const MOST: usize = kedge_peer::pace::MAX_KEY_SETS;
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// In the order in which they came.
pub fn read(paths: &Paths) -> Vec<Envelope> {
    let place = place(paths);
    if fs::metadata(&place).map_or(true, |file| file.len() > MAX_BYTES) {
        return Vec::new();
    }
    let read: Option<Vec<Envelope>> = fs::read(place).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    read.unwrap_or_default().into_iter().take(MOST).collect()
}

pub fn add(paths: &Paths, mut all: Vec<Envelope>, new: &[Envelope]) {
    all.extend_from_slice(new);
    let from = all.len().saturating_sub(MOST);
    let written = write(paths, &all[from..]);
    if let Err(error) = written {
        tracing::warn!(%error, "new keys of the hub can't be kept for peers");
    }
}

fn write(paths: &Paths, all: &[Envelope]) -> std::io::Result<()> {
    let place = place(paths);
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    let temporary = place.with_extension("new");
    fs::write(&temporary, serde_json::to_vec(all)?)?;
    fs::rename(temporary, place)
}

fn place(paths: &Paths) -> PathBuf {
    paths.cache().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_key_sets_stay() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        assert!(read(&paths).is_empty());
        let envelope = |number: usize| Envelope {
            payload_type: "t".to_owned(),
            payload: number.to_string().into_bytes(),
            signatures: Vec::new(),
        };
        for number in 0..MOST + 3 {
            add(&paths, read(&paths), &[envelope(number)]);
        }
        let kept = read(&paths);
        assert_eq!((kept.len(), kept.first()), (MOST, Some(&envelope(3))));
        fs::write(place(&paths), b"[{").unwrap();
        assert!(read(&paths).is_empty());
    }
}
