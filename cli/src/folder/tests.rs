//! What is recognised as ours, what is refused, and what a change leaves behind.

use std::os::unix::fs::symlink;

use kedge_scheduler::README_TEXT;
use tempfile::TempDir;

use super::*;

fn folder_with(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn plan(write: &[(&str, &str)], delete: &[&str]) -> OutputPlan {
    OutputPlan {
        write: write.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
        delete: delete.iter().map(|path| (*path).to_owned()).collect(),
        kept: Vec::new(),
    }
}

fn names(folder: &Path) -> Vec<String> {
    list(folder).unwrap().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn empty_harmless_and_marked_folders_are_ours() {
    for files in [
        &[][..],
        &[(".git/HEAD", ""), ("README.md", "hello"), ("LICENSE", ""), ("CODEOWNERS", "")],
        &[("drone/README.md", README_TEXT), ("notes.txt", "mine")],
        &[(PROMOTED_COMMIT, "abc"), ("notes.txt", "mine")],
    ] {
        let folder = folder_with(files);
        assert!(OutputFolder::open(folder.path()).is_ok(), "{files:?}");
    }
}

#[test]
fn a_folder_of_somebody_else_is_refused_by_name() {
    let folder = folder_with(&[("src/main.c", ""), ("README.md", "x")]);
    let error = OutputFolder::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("isn't ours: it holds `src`"), "{error}");
    let folder = folder_with(&[("drone/README.md", "This folder contains something else")]);
    assert!(matches!(OutputFolder::open(folder.path()), Err(FolderError::NotOurs { .. })));
}

#[test]
fn only_what_differs_is_written_and_emptied_folders_go() {
    let folder = folder_with(&[
        ("a/README.md", README_TEXT),
        ("a/x/reconciler.yaml", "old"),
        ("a/x/notes.md", "mine"),
        ("a/y/reconciler.yaml", "gone"),
    ]);
    let output = OutputFolder::open(folder.path()).unwrap();
    let plan = plan(
        &[("a/README.md", README_TEXT), ("b/z/reconciler.yaml", "new")],
        &["a/x/reconciler.yaml", "a/y/reconciler.yaml"],
    );
    let work = output.compare(&plan).unwrap();
    assert_eq!((work.write.len(), work.delete.len(), work.unchanged), (1, 2, 1));
    output.apply(&work).unwrap();
    assert_eq!(names(folder.path()), ["a", "b"]);
    assert_eq!(names(&folder.path().join("a")), ["README.md", "x"]);
    assert_eq!(names(&folder.path().join("a/x")), ["notes.md"]);
    assert_eq!(fs::read_to_string(folder.path().join("b/z/reconciler.yaml")).unwrap(), "new");
}

#[test]
fn a_link_on_the_way_is_refused_and_nothing_is_written() {
    let outside = tempfile::tempdir().unwrap();
    let folder = folder_with(&[("a/README.md", README_TEXT)]);
    symlink(outside.path(), folder.path().join("a/x")).unwrap();
    let output = OutputFolder::open(folder.path()).unwrap();
    let plan = plan(&[("a/x/reconciler.yaml", "new")], &[]);
    let error = output.compare(&plan).unwrap_err();
    assert!(error.to_string().ends_with("a/x` is a symbolic link; kedge doesn't write through links"), "{error}");
    assert!(names(outside.path()).is_empty());
}

#[test]
fn a_file_where_a_folder_is_needed_is_named() {
    let folder = folder_with(&[("a/README.md", README_TEXT), ("a/x", "file")]);
    let output = OutputFolder::open(folder.path()).unwrap();
    let plan = plan(&[("a/x/reconciler.yaml", "new")], &[]);
    assert!(matches!(output.compare(&plan), Err(FolderError::InTheWay { found: "a file", wanted: "a folder", .. })));
}

#[test]
fn a_new_folder_is_made_with_its_parents_and_what_a_killed_run_left_goes() {
    let folder = folder_with(&[]);
    let root = folder.path().join("deep/er");
    let output = OutputFolder::open(&root).unwrap();
    let plan = plan(&[("a/README.md", README_TEXT)], &[]);
    output.apply(&output.compare(&plan).unwrap()).unwrap();
    assert_eq!(names(&root), ["a"]);

    fs::create_dir(root.join(".kedge-tmp-1")).unwrap();
    let other = self::plan(&[("a/README.md", "other")], &[]);
    output.apply(&output.compare(&other).unwrap()).unwrap();
    assert_eq!(names(&root), ["a"]);
}
