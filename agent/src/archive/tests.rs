//! Archives by the writer's rules, and everything that breaks one.

use super::*;
use proptest::prelude::*;

/// As the hub writes a package.
pub(crate) fn pack(files: &[(&str, &[u8], bool)]) -> Vec<u8> {
    let mut files = files.to_vec();
    files.sort();
    compress(&tar_of(&files, |_| {}))
}

fn tar_of(files: &[(&str, &[u8], bool)], change: impl Fn(&mut Header)) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes, executable) in files {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(bytes.len() as u64);
        header.set_mode(if *executable { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        change(&mut header);
        builder.append_data(&mut header, path, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

/// A header whose name the library's writer would refuse.
fn tar_named(name: &[u8]) -> Vec<u8> {
    let mut tar = tar_of(&[("x", b"1", false)], |_| {});
    let mut header = Header::new_ustar();
    header.as_mut_bytes().copy_from_slice(&tar[..BLOCK]);
    header.as_mut_bytes()[..100].fill(0);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_cksum();
    tar[..BLOCK].copy_from_slice(header.as_bytes());
    tar
}

fn compress(tar: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(tar, 6).unwrap()
}

fn read_into_folder(package: &[u8]) -> (tempfile::TempDir, Objects, Result<Listing, ArchiveError>) {
    let folder = tempfile::tempdir().unwrap();
    let objects = Objects::open(&folder.path().join("objects")).unwrap();
    let listing = read(package, &objects);
    (folder, objects, listing)
}

fn refusal(tar: &[u8]) -> String {
    match read_into_folder(&compress(tar)).2 {
        Err(ArchiveError::Broken(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_package_becomes_objects() {
    let long = format!("files/{}/{}", "folder".repeat(20), "name".repeat(40));
    let big = vec![7; 2 << 20];
    let package =
        pack(&[("a", b"1", false), ("files/run", b"#!/bin/sh", true), (&long, &big, false), ("empty", b"", false)]);
    let (_folder, objects, listing) = read_into_folder(&package);
    let listing = listing.unwrap();
    assert_eq!(listing.files.len(), 4);
    assert_eq!(listing.files["files/run"], Listed { digest: Digest::of(b"#!/bin/sh"), size: 9, executable: true });
    assert_eq!(objects.read_small(&listing.files[&long].digest, 4 << 20).unwrap(), big);
    assert_eq!(listing.files["empty"].size, 0);
}

#[test]
fn each_broken_rule_is_named() {
    let one: &[(&str, &[u8], bool)] = &[("a", b"1", false)];
    for (tar, expected) in [
        (tar_of(one, |header| header.set_mode(0o4755)), "mode"),
        (tar_of(one, |header| header.set_uid(1)), "owner"),
        (tar_of(one, |header| header.set_mtime(9)), "time"),
        (tar_of(one, |header| header.set_entry_type(EntryType::Symlink)), "regular file"),
        (tar_of(one, |header| header.set_entry_type(EntryType::Directory)), "regular file"),
        (tar_of(one, |header| header.set_entry_type(EntryType::XHeader)), "regular file"),
        (tar_of(&[("b", b"", false), ("a", b"", false)], |_| {}), "order"),
        (tar_of(&[("a", b"", false), ("a", b"", false)], |_| {}), "twice"),
        (tar_named(b"/etc/passwd"), "can't be a path"),
        (tar_named(b"../x"), "can't be a path"),
        (tar_named(b"a//b"), "can't be a path"),
        (tar_named(b"a\\b"), "can't be a path"),
        (tar_named(b"a\nb"), "can't be a path"),
        (tar_named(b"\xff"), "UTF-8"),
        (tar_of(one, |_| {})[..BLOCK].to_vec(), "ends"),
        (tar_of(one, |_| {})[..2 * BLOCK].to_vec(), "ends"),
        ([tar_of(one, |_| {}), vec![0; BLOCK]].concat(), "follows"),
        (vec![1; 2 * BLOCK], "checksum"),
    ] {
        let message = refusal(&tar);
        assert!(message.contains(expected), "{message} instead of {expected}");
    }
}

#[test]
fn a_wrong_checksum_is_refused() {
    let mut tar = tar_of(&[("a", b"1", false)], |_| {});
    tar[0] = b'b';
    assert!(refusal(&tar).contains("checksum"));
}

#[test]
fn a_path_over_the_limit_is_refused_without_reading_it() {
    let long = "x/".repeat(MAX_PATH) + "y";
    let message = refusal(&tar_of(&[(&long, b"1", false)], |_| {}));
    assert!(message.contains("more than 1024 bytes"), "{message}");
}

#[test]
fn too_many_bytes_and_files_are_refused() {
    let zeros = vec![0; (MAX_BYTES + 1) as usize];
    assert!(refusal(&tar_of(&[("a", &zeros, false)], |_| {})).contains("64 MiB"));
    let names: Vec<String> = (0..=MAX_FILES).map(|number| format!("{number:06}")).collect();
    let files: Vec<(&str, &[u8], bool)> = names.iter().map(|name| (name.as_str(), b"".as_slice(), false)).collect();
    assert!(refusal(&tar_of(&files, |_| {})).contains("10000 files"));
}

#[test]
fn a_huge_window_is_refused() {
    use std::io::Write as _;
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&tar_of(&[("a", b"1", false)], |_| {})).unwrap();
    let (_folder, _objects, listing) = read_into_folder(&encoder.finish().unwrap());
    assert!(matches!(listing, Err(ArchiveError::Broken(_))));
}

#[test]
fn a_refused_package_leaves_no_objects() {
    let tar = tar_of(&[("b", b"1", false), ("a", b"2", false)], |_| {});
    let (folder, _objects, listing) = read_into_folder(&compress(&tar));
    assert!(listing.is_err());
    assert_eq!(std::fs::read_dir(folder.path().join("objects")).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_package_is_read_back(files in proptest::collection::btree_map("[a-z]{1,8}(/[a-z]{1,90}){0,3}", (any::<Vec<u8>>(), any::<bool>()), 0..8)) {
        let list: Vec<(&str, &[u8], bool)> = files.iter().map(|(path, (bytes, executable))| (path.as_str(), bytes.as_slice(), *executable)).collect();
        let (_folder, _objects, listing) = read_into_folder(&pack(&list));
        let listing = listing.unwrap();
        prop_assert_eq!(listing.files.len(), files.len());
        for (path, (bytes, executable)) in &files {
            let expected = Listed { digest: Digest::of(bytes), size: bytes.len() as u64, executable: *executable };
            prop_assert_eq!(listing.files[path], expected);
        }
    }

    #[test]
    fn a_changed_package_neither_panics_nor_escapes(at in any::<proptest::sample::Index>(), byte in any::<u8>(), inside in any::<bool>()) {
        let mut tar = tar_of(&[("a/b", b"1", false), ("c", b"23", true)], |_| {});
        let mut package = compress(&tar);
        if inside {
            let at = at.index(tar.len());
            tar[at] = byte;
            package = compress(&tar);
        } else {
            let at = at.index(package.len());
            package[at] = byte;
        }
        let (folder, _objects, listing) = read_into_folder(&package);
        if let Ok(listing) = listing {
            prop_assert!(listing.files.keys().all(|path| is_plain(path)));
        }
        prop_assert!(std::fs::read_dir(folder.path()).unwrap().count() == 1);
    }

    #[test]
    fn no_bytes_panic(bytes in any::<Vec<u8>>()) {
        let _ = read_into_folder(&bytes);
        let _ = read_into_folder(&compress(&bytes));
    }
}
