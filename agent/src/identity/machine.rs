//! Which machine this is: a copy of a disk that runs elsewhere has another machine id, and must join by itself.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use kedge_model::wire::Digest;

use crate::paths::Paths;

const FILE: &str = "/etc/machine-id";
/// The id is 32 digits.
const MOST: u64 = 4096;
/// What is hashed begins with what it is: the digest is no other program's.
const PREFIX: &str = "kedge machine 1\0";
/// systemd's word for an image that hasn't booted yet.
const UNINITIALIZED: &str = "uninitialized";

/// The digest of the machine's id; none where the host has no id. Below a `--root` the machine is still this one.
pub fn digest(paths: &Paths) -> Option<Digest> {
    read(&paths.place(FILE)).or_else(|| read(Path::new(FILE)))
}

fn read(path: &Path) -> Option<Digest> {
    let mut text = String::new();
    File::open(path).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    let id = text.trim();
    (!id.is_empty() && id != UNINITIALIZED).then(|| Digest::of(format!("{PREFIX}{id}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_id_is_another_machine_and_an_empty_one_is_none() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("machine-id");
        let with = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        assert_eq!(with("abc\n"), with("abc"));
        assert_ne!(with("abc"), with("abd"));
        assert_eq!((with("\n"), with("uninitialized\n")), (None, None));
        assert_eq!(read(&root.path().join("none")), None);
    }
}
