//! The fake disk itself: what it loses, keeps and refuses.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use super::*;

fn found(disk: &FakeDisk, path: &Path) -> Vec<Option<Vec<u8>>> {
    let mut found: Vec<_> = disk.survivors().iter().map(|disk| disk.read(path, 100).ok()).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn what_is_not_synced_may_be_lost_torn_or_kept() {
    let (disk, path) = (FakeDisk::new(), Path::new("/x/file"));
    disk.make_folder(Path::new("/x")).unwrap();
    disk.write(path, b"1234").unwrap();
    let torn = Some(b"12\0\0".to_vec());
    assert_eq!(found(&disk, path), [None, Some(Vec::new()), torn.clone(), Some(b"1234".to_vec())]);
    disk.sync_file(path).unwrap();
    assert_eq!(found(&disk, path), [None, Some(b"1234".to_vec())]);
    disk.sync_folder(Path::new("/x")).unwrap();
    assert_eq!(found(&disk, path), [Some(b"1234".to_vec())]);
}

#[test]
fn renames_survive_in_their_order() {
    let disk = FakeDisk::new();
    let [one, two, three] = ["/x/1", "/x/2", "/x/3"].map(Path::new);
    disk.make_folder(Path::new("/x")).unwrap();
    disk.write(one, b"old").unwrap();
    disk.sync_file(one).unwrap();
    disk.sync_folder(Path::new("/x")).unwrap();
    disk.rename(one, two).unwrap();
    disk.rename(two, three).unwrap();
    let names: Vec<_> = disk.survivors().iter().map(|disk| disk.list(Path::new("/x")).unwrap()).collect();
    assert_eq!(names, [[one], [two], [three]]);
}

#[test]
fn after_a_cut_nothing_works() {
    let (disk, path) = (FakeDisk::new(), Path::new("/x/file"));
    disk.make_folder(Path::new("/x")).unwrap();
    disk.cut_at(1);
    assert!(disk.write(path, b"1").is_err());
    assert!(disk.read(path, 9).is_err() && disk.sync_folder(Path::new("/x")).is_err());
    disk.survivors().iter().for_each(|disk| disk.write(path, b"1").unwrap());
}

#[test]
fn a_full_disk_takes_a_part_and_says_so() {
    let (disk, path) = (FakeDisk::new(), Path::new("/x/file"));
    disk.make_folder(Path::new("/x")).unwrap();
    disk.set_full(true);
    assert_eq!(disk.write(path, b"1234").unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.read(path, 9).unwrap(), b"12");
    disk.set_full(false);
    disk.write(path, b"1234").unwrap();
}
