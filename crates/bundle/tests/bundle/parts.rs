//! Bundles on a disk: whole, in parts, half written.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use kedge_bundle::{BundleError, Output, Parts, Reader, find};
use proptest::prelude::*;

use crate::fleet::Fleet;

const BLOB: &[u8] = b"a package that is longer than a part";

fn put(path: &Path, bytes: &[u8], split: Option<u64>) -> usize {
    let mut output = Output::create(path, split).unwrap();
    output.write_all(bytes).unwrap();
    output.finish().unwrap().len()
}

fn check(path: &Path, fleet: &Fleet) -> Result<(), BundleError> {
    Reader::open(Parts::open(path)?)?.verify(&fleet.keys)?.check(|_| {})
}

#[test]
fn a_part_that_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (fleet, path) = (Fleet::new(1), folder.path().join("x.kedge"));
    let count = put(&path, &fleet.bundle(&[BLOB]), Some(100));
    assert!(count > 3);
    check(&path, &fleet).unwrap();
    for said in [path.clone(), folder.path().join("x.kedge.002"), folder.path().to_owned()] {
        assert_eq!(find(&said).unwrap(), std::slice::from_ref(&path));
    }
    let last = folder.path().join(format!("x.kedge.{count:03}"));
    fs::remove_file(&last).unwrap();
    assert!(matches!(check(&path, &fleet), Err(BundleError::Truncated { .. })));
    assert_eq!(Parts::open(&path).unwrap().following(), Some(last));
    fs::remove_file(folder.path().join("x.kedge.002")).unwrap();
    let second = folder.path().join("x.kedge.002");
    assert!(matches!(check(&path, &fleet), Err(BundleError::MissingPart(missing)) if missing == second));
    fs::remove_file(folder.path().join("x.kedge.001")).unwrap();
    assert!(matches!(find(&second), Err(BundleError::MissingPart(_))));
    let first = folder.path().join("x.kedge.001");
    assert!(matches!(check(&path, &fleet), Err(BundleError::MissingPart(missing)) if missing == first));
}

#[test]
fn what_is_written_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.kedge");
    put(&path, b"configuration with secrets", Some(20));
    for file in fs::read_dir(folder.path()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn nothing_appears_before_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.kedge");
    let mut output = Output::create(&path, Some(2)).unwrap();
    output.write_all(b"abcde").unwrap();
    assert!(matches!(find(folder.path()), Err(BundleError::Nothing(_))));
    drop(output);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // Parts of one that was longer don't stay behind.
    assert_eq!(put(&path, b"abcdef", Some(2)), 3);
    assert_eq!(put(&path, b"abc", Some(2)), 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_folder_is_searched_for_regular_files_only() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret"), b"s").unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret"), folder.path().join("a.kedge")).unwrap();
    fs::create_dir(folder.path().join("b.kedge")).unwrap();
    fs::write(folder.path().join(".hidden.kedge"), b"h").unwrap();
    assert!(matches!(find(folder.path()), Err(BundleError::Nothing(_))));
    fs::write(folder.path().join("c.kedge"), b"c").unwrap();
    assert_eq!(find(folder.path()).unwrap(), [folder.path().join("c.kedge")]);
    assert!(matches!(Parts::open(&folder.path().join("b.kedge")), Err(BundleError::File { .. })));
}

#[test]
fn a_pipe_or_a_link_that_is_named_itself_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, link, file) =
        (folder.path().join("a.kedge"), folder.path().join("b.kedge"), folder.path().join("c.kedge"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::write(&file, b"c").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for (path, told) in [(&pipe, "a pipe"), (&link, "a symlink"), (&folder.path().to_owned(), "a folder")] {
        let error = Parts::open(path).unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert!(why.contains(told) && why.contains("not a file"), "{why}");
    }
    assert_eq!(Parts::open(&file).unwrap().length(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn parts_of_any_size_are_one_again(size in 50..2000_u64) {
        let folder = tempfile::tempdir().unwrap();
        let (fleet, path) = (Fleet::new(1), folder.path().join("x.kedge"));
        let bytes = fleet.bundle(&[BLOB]);
        prop_assert_eq!(put(&path, &bytes, Some(size)), bytes.len().div_ceil(size as usize));
        prop_assert!(check(&path, &fleet).is_ok());
    }
}

#[test]
fn a_stick_full_of_symlinks_leads_no_write_to_the_host() {
    let host = tempfile::tempdir().unwrap();
    let stick = tempfile::tempdir().unwrap();
    let precious = host.path().join("identity.a");
    fs::write(&precious, "precious").unwrap();
    let names = ["x.kedge", ".x.kedge.partial", "y.kedge.001", ".y.kedge.001.partial", ".y.kedge.002.partial"];
    for name in names.iter().chain(&["y.kedge.002", "y.kedge.003"]) {
        std::os::unix::fs::symlink(&precious, stick.path().join(name)).unwrap();
    }
    for (name, split) in [("x.kedge", None), ("y.kedge", Some(4))] {
        let mut output = Output::create(&stick.path().join(name), split).unwrap();
        output.write_all(b"status").unwrap();
        for path in output.finish().unwrap() {
            assert!(fs::symlink_metadata(&path).unwrap().is_file(), "{}", path.display());
        }
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert_eq!(fs::read_to_string(stick.path().join("x.kedge")).unwrap(), "status");
    assert!(fs::symlink_metadata(stick.path().join("y.kedge.003")).is_err(), "what a longer one left goes itself");
}

#[test]
fn a_folder_that_is_a_symlink_on_a_stick_is_refused() {
    let host = tempfile::tempdir().unwrap();
    // Another file system than the system's own, on every Linux.
    let stick = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::create_dir(host.path().join("inside")).unwrap();
    std::os::unix::fs::symlink(host.path(), stick.path().join("folder")).unwrap();
    for name in ["folder/x.kedge", "folder/inside/x.kedge"] {
        let error = Output::create(&stick.path().join(name), None).unwrap_err();
        assert!(error.to_string().contains("is a symlink"), "{error}");
    }
    assert_eq!(fs::read_dir(host.path().join("inside")).unwrap().count(), 0);
    // The administrator's own symlinks are followed as ever.
    std::os::unix::fs::symlink(stick.path(), host.path().join("stick")).unwrap();
    let system = std::os::unix::fs::MetadataExt::dev(&fs::metadata("/").unwrap());
    if std::os::unix::fs::MetadataExt::dev(&fs::metadata(host.path()).unwrap()) == system {
        Output::create(&host.path().join("stick/x.kedge"), None).unwrap();
    }
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("door");
    let _door = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let error = Output::create(&path, None).unwrap_err();
    assert!(error.to_string().contains("isn't a file"), "{error}");
    assert!(!fs::symlink_metadata(&path).unwrap().is_file(), "it is still there");
}
