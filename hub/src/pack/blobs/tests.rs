//! Blobs: read back by digest, stored once, kept while somebody needs them.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn blobs() -> (tempfile::TempDir, Blobs) {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&folder.path().join("packages")).unwrap();
    (folder, blobs)
}

fn unfinished(blobs: &Blobs) -> usize {
    fs::read_dir(blobs.folder.join(UNFINISHED)).unwrap().count()
}

#[test]
fn a_blob_is_read_back_by_its_digest() {
    let (_folder, blobs) = blobs();
    let blob = blobs.put(b"hello").unwrap();
    assert_eq!(blob, BlobRef { digest: Digest::of(b"hello"), size: 5 });
    assert_eq!(blobs.read(&blob.digest, 100).unwrap(), b"hello");
    let (mut file, size) = blobs.open_range(&blob.digest, 3).unwrap();
    let mut rest = String::new();
    file.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), size), ("lo", 5));
    assert!(matches!(blobs.open_blob(&Digest::of(b"other")), Err(BlobError::Missing(_))));
}

#[test]
fn the_same_content_is_stored_once_also_by_two_hubs() {
    let (folder, blobs) = blobs();
    let other = Blobs::open(&folder.path().join("packages")).unwrap();
    let threads: Vec<_> = [blobs.clone(), other]
        .into_iter()
        .map(|blobs| {
            std::thread::spawn(move || {
                for number in 0..50_u32 {
                    blobs.put(&number.to_le_bytes().repeat(100)).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for number in 0..50_u32 {
        let content = number.to_le_bytes().repeat(100);
        assert_eq!(blobs.read(&Digest::of(&content), 1000).unwrap(), content);
    }
    assert_eq!(unfinished(&blobs), 0);
}

#[test]
fn a_batch_is_visible_only_after_its_commit() {
    let (_folder, blobs) = blobs();
    let mut batch = blobs.batch();
    let made: Vec<_> = (0..40_u32).map(|number| batch.add(&number.to_le_bytes()).unwrap()).collect();
    assert!(made.iter().all(|blob| blobs.size(&blob.digest).is_none()));
    batch.commit().unwrap();
    assert!(made.iter().all(|blob| blobs.claim(blob)));
    let mut given_up = blobs.batch();
    given_up.add(b"never").unwrap();
    drop(given_up);
    assert_eq!((unfinished(&blobs), blobs.size(&Digest::of(b"never"))), (0, None));
}

#[test]
fn content_other_than_expected_leaves_nothing() {
    let (_folder, blobs) = blobs();
    let mut writer = blobs.writer(100).unwrap();
    writer.push(b"evil").unwrap();
    assert!(matches!(writer.finish(Some(&Digest::of(b"good"))), Err(BlobError::Other { .. })));
    let mut writer = blobs.writer(3).unwrap();
    assert!(matches!(writer.push(b"evil"), Err(BlobError::TooLarge { limit: 3 })));
    drop(writer);
    assert_eq!((unfinished(&blobs), blobs.size(&Digest::of(b"evil"))), (0, None));
}

#[test]
fn a_damaged_blob_is_never_read_as_good() {
    let (_folder, blobs) = blobs();
    let blob = blobs.put(b"hello").unwrap();
    fs::write(blobs.path(&blob.digest), b"hellO").unwrap();
    assert!(matches!(blobs.read(&blob.digest, 100), Err(BlobError::Other { .. })));
    fs::write(blobs.path(&blob.digest), b"hel").unwrap();
    assert!(!blobs.claim(&blob));
    assert_eq!(blobs.put(b"hello").unwrap(), blob);
    assert!(blobs.claim(&blob));
}

#[test]
fn what_is_needed_stays_and_the_rest_goes_after_its_time() {
    let (_folder, blobs) = blobs();
    let (needed, unneeded) = (blobs.put(b"needed").unwrap(), blobs.put(b"unneeded").unwrap());
    let names = BTreeSet::from([needed.digest]);
    let now = SystemTime::now();
    let day = |number: u32| now + DAY * number;
    assert_eq!(blobs.collect(&names, DAY * 30, day(29)).unwrap().deleted, 0);
    let swept = blobs.collect(&names, DAY * 30, day(31)).unwrap();
    assert_eq!(swept, Collected { kept: 1, deleted: 1, deleted_bytes: 8 });
    assert_eq!((blobs.size(&needed.digest), blobs.size(&unneeded.digest)), (Some(6), None));
    // Its thirty days begin when it was last needed, not when it was made.
    assert_eq!(blobs.collect(&BTreeSet::new(), DAY * 30, day(60)).unwrap().deleted, 0);
    assert_eq!(blobs.collect(&BTreeSet::new(), DAY * 30, day(62)).unwrap().deleted, 1);
}

#[test]
fn what_a_killed_hub_left_is_swept_and_foreign_files_stay() {
    let (_folder, blobs) = blobs();
    let blob = blobs.put(b"x").unwrap();
    let folder = blobs.path(&blob.digest).parent().unwrap().to_owned();
    fs::write(blobs.folder.join(UNFINISHED).join("1-1-00"), b"half").unwrap();
    fs::write(folder.join("README"), b"mine").unwrap();
    let later = SystemTime::now() + DAY * 90;
    assert_eq!(blobs.collect(&BTreeSet::new(), DAY * 30, later).unwrap().deleted, 1);
    assert_eq!(unfinished(&blobs), 0);
    assert!(folder.join("README").exists());
}

/// A file system of 64 KiB that goes when it is dropped.
struct Small(tempfile::TempDir);

impl Small {
    /// None where nothing may be mounted, which is said.
    fn new() -> Option<Small> {
        let folder = tempfile::tempdir().unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        if mount.is_ok_and(|status| status.success()) {
            return Some(Small(folder));
        }
        println!("KEDGE-SKIP pack::blobs::full_disk: nothing can be mounted here");
        None
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing_half_written() {
    let Some(disk) = Small::new() else { return };
    let blobs = Blobs::open(disk.0.path()).unwrap();
    let kept = blobs.put(&[1; 1000]).unwrap();
    let big = vec![2; 200_000];
    let error = blobs.put(&big).unwrap_err();
    assert!(matches!(error, BlobError::Full { .. }), "{error:?}");
    assert_eq!((unfinished(&blobs), blobs.size(&Digest::of(&big))), (0, None));
    let mut writer = blobs.writer(u64::MAX).unwrap();
    assert!(matches!(writer.push(&big), Err(BlobError::Full { .. })));
    drop(writer);
    assert_eq!(unfinished(&blobs), 0);
    // What was there is whole, and there is room again.
    assert_eq!(blobs.read(&kept.digest, 2000).unwrap(), [1; 1000]);
    assert!(blobs.put(&[3; 1000]).is_ok());
}
