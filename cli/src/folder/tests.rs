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
        write: write.iter().map(|(path, text)| ((*path).to_owned(), (*text).into())).collect(),
        delete: delete.iter().map(|path| (*path).to_owned()).collect(),
        kept: Vec::new(),
    }
}

/// As `render` does it.
fn render(root: &Path, plan: &OutputPlan) -> Result<(), FolderError> {
    let output = OutputFolder::open(root)?;
    let staging = output.begin()?;
    let work = output.compare(plan)?;
    output.apply(staging, &work)
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
    output.apply(output.begin().unwrap(), &work).unwrap();
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
    render(&root, &plan(&[("a/README.md", README_TEXT)], &[])).unwrap();
    assert_eq!(names(&root), ["a"]);

    fs::create_dir(root.join(".kedge-tmp-1")).unwrap();
    render(&root, &plan(&[("a/README.md", "other")], &[])).unwrap();
    assert_eq!(names(&root), ["a"]);
}

#[test]
fn a_first_render_that_was_killed_is_done_by_the_next() {
    // Folders are made before the first README stands in one of them.
    let folder = folder_with(&[(".kedge-tmp-1/0", README_TEXT), (".kedge-tmp-1/1", "new")]);
    fs::create_dir_all(folder.path().join("a/x")).unwrap();
    render(folder.path(), &plan(&[("a/README.md", README_TEXT), ("a/x/reconciler.yaml", "new")], &[])).unwrap();
    assert_eq!(names(folder.path()), ["a"]);
    assert_eq!(names(&folder.path().join("a")), ["README.md", "x"]);
    assert_eq!(fs::read_to_string(folder.path().join("a/x/reconciler.yaml")).unwrap(), "new");
}

#[test]
fn what_a_killed_run_of_the_same_process_number_left_is_swept_away() {
    let own = format!(".kedge-tmp-{}-0/0", std::process::id());
    let folder = folder_with(&[("a/README.md", README_TEXT), (&own, "old")]);
    render(folder.path(), &plan(&[("a/README.md", README_TEXT), ("a/x/reconciler.yaml", "new")], &[])).unwrap();
    assert_eq!(names(folder.path()), ["a"]);
    assert_eq!(fs::read_to_string(folder.path().join("a/x/reconciler.yaml")).unwrap(), "new");
}

#[test]
fn a_folder_where_a_file_is_needed_is_named() {
    let folder = folder_with(&[("a/README.md", README_TEXT), ("a/x/reconciler.yaml/mine", "x")]);
    let error = render(folder.path(), &plan(&[("a/x/reconciler.yaml", "new")], &[])).unwrap_err();
    assert!(error.to_string().ends_with("reconciler.yaml` is a folder, and a file is to be written there"), "{error}");
    assert!(folder.path().join("a/x/reconciler.yaml/mine").is_file());
}

#[test]
fn another_kedge_is_kept_out_and_leaves_the_work_of_the_first_alone() {
    let folder = folder_with(&[]);
    let output = OutputFolder::open(folder.path()).unwrap();
    let mut first = output.begin().unwrap();
    first.write(&[("a/README.md", README_TEXT)]).unwrap();
    let error = output.begin().unwrap_err();
    assert!(error.to_string().starts_with("another kedge is writing to"), "{error}");
    // The same process number, as in two containers that share a folder.
    first.replace().unwrap();
    drop(first);
    assert_eq!(names(folder.path()), ["a"]);
    assert!(output.begin().is_ok());
}

#[test]
fn a_file_that_cannot_be_replaced_stops_before_deletes_and_before_the_promoted_commit() {
    let folder = folder_with(&[("a/README.md", README_TEXT), ("a/x/reconciler.yaml", "old"), (PROMOTED_COMMIT, "1")]);
    let output = OutputFolder::open(folder.path()).unwrap();
    let plan = plan(&[(PROMOTED_COMMIT, "2"), ("a/y/reconciler.yaml", "new")], &["a/x/reconciler.yaml"]);
    let work = output.compare(&plan).unwrap();
    // Comes in the way after it was looked at.
    fs::create_dir_all(folder.path().join("a/y/reconciler.yaml")).unwrap();
    let error = output.apply(output.begin().unwrap(), &work).unwrap_err();
    assert!(error.to_string().ends_with("can't be replaced; 0 of 2 files are written"), "{error}");
    assert!(error.hint().unwrap().contains("again"));
    assert_eq!(fs::read_to_string(folder.path().join(PROMOTED_COMMIT)).unwrap(), "1");
    assert!(folder.path().join("a/x/reconciler.yaml").is_file());
    assert_eq!(names(folder.path()), [".github", "a"]);
}

#[test]
fn the_readme_of_a_cluster_type_goes_last_so_that_a_later_run_knows_the_rest() {
    let folder = folder_with(&[("a/README.md", README_TEXT), ("a/x/reconciler.yaml", "old")]);
    let output = OutputFolder::open(folder.path()).unwrap();
    let plan = plan(&[], &["a/README.md", "a/x/reconciler.yaml"]);
    let work = output.compare(&plan).unwrap();
    // Comes in the way after it was looked at.
    fs::remove_file(folder.path().join("a/x/reconciler.yaml")).unwrap();
    fs::create_dir(folder.path().join("a/x/reconciler.yaml")).unwrap();
    let error = output.apply(output.begin().unwrap(), &work).unwrap_err();
    assert!(error.to_string().ends_with("a/x/reconciler.yaml` can't be deleted"), "{error}");
    assert!(folder.path().join("a/README.md").is_file());
}

#[test]
fn a_name_that_changes_only_its_case_is_deleted_before_it_is_written() {
    let folder = folder_with(&[("A/README.md", README_TEXT), ("A/x/reconciler.yaml", "same")]);
    let new = [("a/README.md", README_TEXT), ("a/x/reconciler.yaml", "same")];
    let plan = plan(&new, &["A/README.md", "A/x/reconciler.yaml"]);
    // Where case doesn't count the new path finds the old file, and isn't to be taken for unchanged.
    assert_eq!(OutputFolder::open(folder.path()).unwrap().compare(&plan).unwrap().write.len(), 2);
    render(folder.path(), &plan).unwrap();
    assert_eq!(names(folder.path()), ["a"]);
    assert_eq!(names(&folder.path().join("a/x")), ["reconciler.yaml"]);
}

#[test]
fn a_read_only_file_is_replaced() {
    let folder = folder_with(&[("a/README.md", README_TEXT), ("a/x/reconciler.yaml", "old")]);
    let file = folder.path().join("a/x/reconciler.yaml");
    let mut rights = fs::metadata(&file).unwrap().permissions();
    rights.set_readonly(true);
    fs::set_permissions(&file, rights).unwrap();
    render(folder.path(), &plan(&[("a/x/reconciler.yaml", "new")], &[])).unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), "new");
}

#[test]
fn a_link_to_nowhere_is_no_output_folder() {
    let folder = folder_with(&[]);
    let link = folder.path().join("out");
    symlink("nowhere", &link).unwrap();
    assert!(matches!(OutputFolder::open(&link), Err(FolderError::Symlink { .. })));
}
