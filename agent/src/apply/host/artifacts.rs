//! Artifacts: big content that stays an object; what a workload sees is a symlink, switched by one rename. The old object stays for the
//! way back until nothing names it. Files asks which object a link makes readable.

use std::path::Path;

use kedge_model::wire::Digest;

use crate::objects::Objects;

/// The content that a symlink leads to, if it is one of ours.
pub fn content(objects: &Objects, target: &Path) -> Option<Digest> {
    let hex = target.file_name()?.to_str()?.strip_prefix("sha256-")?;
    let digest = format!("sha256:{hex}").parse().ok()?;
    (objects.path(&digest) == target).then_some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_of_ours_is_an_artifact() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects")).unwrap();
        let digest = Digest::of(b"model");
        let target = objects.path(&digest);
        assert_eq!(content(&objects, &target), Some(digest));
        assert_eq!(content(&objects, &Path::new("/elsewhere").join(target.file_name().unwrap())), None);
        assert_eq!(content(&objects, Path::new("/etc/shadow")), None);
        assert_eq!(content(&objects, &folder.path().join("objects/sha256-x")), None);
    }
}
