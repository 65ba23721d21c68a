//! A package: a compressed tar of a stranger's choice, as it is and compressed by us so that the tar itself is reached.

#![no_main]

use std::sync::LazyLock;

use kedge_agent::archive;
use kedge_agent::objects::Objects;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// In memory where the machine has such a folder: each file of a package is written and synced.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder for objects")
});

fuzz_target!(|bytes: &[u8]| {
    let objects = Objects::open(&FOLDER.path().join("objects")).expect("objects open");
    read(bytes, &objects);
    if let Ok(compressed) = zstd::encode_all(bytes, 1) {
        read(&compressed, &objects);
    }
    _ = std::fs::remove_dir_all(FOLDER.path().join("objects"));
});

fn read(package: &[u8], objects: &Objects) {
    let Ok(listing) = archive::read(package, objects) else { return };
    for (path, listed) in &listing.files {
        assert!(!path.starts_with('/') && !path.split('/').any(|part| part == ".."), "{path:?} leaves the package");
        assert!(objects.has(&listed.digest), "{path:?} is listed and isn't there");
    }
}
