//! Which machine this is: a copy of a disk that runs elsewhere has another machine id, and must join by itself. An agent of a cluster
//! belongs to the cluster, whichever node it runs on: there the id is the cluster's, which `run` leaves in the state folder.

use std::fs::{self, File};
use std::io::{self, Read as _};
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

/// The cluster's id, below the state folder.
const CLUSTER_FILE: &str = "cluster-id";

/// Leaves the cluster's id for everybody who asks on this node.
pub fn remember_cluster(paths: &Paths, id: &str) -> io::Result<()> {
    fs::write(paths.state().join(CLUSTER_FILE), format!("{id}\n"))
}

/// Whether an agent of a cluster ran here.
pub fn is_of_cluster(paths: &Paths) -> bool {
    paths.state().join(CLUSTER_FILE).exists()
}

/// The digest of the machine's id; none where the host has no id. Below a `--root` the machine is still this one.
pub fn digest(paths: &Paths) -> Option<Digest> {
    let cluster = || read(&paths.state().join(CLUSTER_FILE));
    cluster().or_else(|| read(&paths.place(FILE))).or_else(|| read(Path::new(FILE)))
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
    fn an_agent_of_a_cluster_belongs_to_the_cluster_and_not_to_its_node() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::below(root.path());
        std::fs::create_dir_all(root.path().join("etc")).unwrap();
        std::fs::create_dir_all(paths.state()).unwrap();
        std::fs::write(root.path().join("etc/machine-id"), "node-1").unwrap();
        let of_node = digest(&paths);
        remember_cluster(&paths, "0d1f").unwrap();
        let of_cluster = digest(&paths);
        assert!(of_cluster.is_some() && of_cluster != of_node);
        std::fs::write(root.path().join("etc/machine-id"), "node-2").unwrap();
        assert_eq!(digest(&paths), of_cluster);
    }

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
