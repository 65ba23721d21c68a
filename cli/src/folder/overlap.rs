//! Whether an output folder and a control plane's files lie inside each other: the next run would read what this one
//! wrote. Asked by `OutputFolder` before anything is looked at.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::FolderError;

/// Both as they really are, links followed. A control plane that can't be found is left to its reader.
pub(super) fn check(output: &Path, control_plane: &Path) -> Result<(), FolderError> {
    let Ok(inputs) = control_plane.canonicalize() else { return Ok(()) };
    let unreadable = |source| FolderError::Unreadable { path: output.to_owned(), source };
    let outputs = real_path(output).map_err(unreadable)?;
    let (path, control_plane) = (output.to_owned(), control_plane.to_owned());
    if outputs.starts_with(&inputs) {
        Err(FolderError::InsideControlPlane { path, control_plane })
    } else if inputs.starts_with(&outputs) {
        Err(FolderError::AroundControlPlane { path, control_plane })
    } else {
        Ok(())
    }
}

/// What doesn't exist yet is judged by the nearest folder above it that does.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut existing = std::path::absolute(path)?;
    let mut missing: Vec<OsString> = Vec::new();
    let mut real = loop {
        match existing.canonicalize() {
            Ok(real) => break real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A file in the way and the like: whoever opens the folder says so.
            Err(_) => break existing,
        }
        let Some(last) = existing.components().next_back() else { break existing };
        missing.push(last.as_os_str().to_owned());
        if !existing.pop() {
            break existing;
        }
    };
    for part in missing.iter().rev() {
        match Path::new(part).components().next() {
            Some(Component::ParentDir) => drop(real.pop()),
            _ => real.push(part),
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn folders_inside_each_other_are_refused_through_links_and_missing_folders_too() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("plane/deep")).unwrap();
        symlink("plane", at("link")).unwrap();
        let inside = ["plane", "plane/out", "plane/new/er", "link/out", "new/../plane/out", "link/deep/../out"];
        for output in inside {
            let error = check(&at(output), &at("plane")).unwrap_err();
            assert!(matches!(error, FolderError::InsideControlPlane { .. }), "{output}: {error}");
        }
        let error = check(folder.path(), &at("link")).unwrap_err();
        assert!(matches!(error, FolderError::AroundControlPlane { .. }), "{error}");
        for output in ["planes", "out", "plane/../out", "new/plane"] {
            assert!(check(&at(output), &at("plane")).is_ok(), "{output}");
        }
        assert!(check(&at("nowhere/out"), &at("nowhere")).is_ok());
    }
}
