//! What is read below a path, of a folder and of a commit.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::{ffi, fs};

use kedge_model::Source;

use super::*;
use crate::testing::{Item, TestRepo, folder, write};
use crate::tree::folder::FolderTree;
use crate::tree::git::{GitRepository, GitTree};

fn open(path: &Path) -> FolderTree {
    FolderTree::new(path, Source { repo: "cp".to_owned(), revision: None })
}

fn commit(repo: &TestRepo, branch: &str) -> GitTree {
    let opened = GitRepository::open(&repo.path).unwrap();
    let revision = opened.resolve(branch).unwrap();
    opened.tree(&revision, "cp").unwrap()
}

fn messages(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| problem.message.as_str()).collect()
}

const FILES: [(&str, &str); 12] = [
    ("a.yaml", "a"),
    ("b.yml", "b"),
    ("C.YAML", "upper case isn't YAML"),
    ("README.md", "text"),
    (".github/workflows/ci.yaml", "ci"),
    (".environments/dev.yaml", "dev"),
    (".onboard/app.yaml", "app"),
    ("deep/.github/kept.yaml", "kept"),
    (".sourceignore", "docs/\n*.bak.yaml\n!keep.bak.yaml\n"),
    ("docs/example.yaml", "example"),
    ("deep/x.bak.yaml", "old"),
    ("deep/keep.bak.yaml", "kept"),
];

const READ: [&str; 4] = ["a.yaml", "b.yml", "deep/.github/kept.yaml", "deep/keep.bak.yaml"];

#[test]
fn a_folder_and_a_commit_give_the_same_files() {
    let root = folder(&FILES);
    write(root.path(), &[(".git/config.yaml", "not ours")]);
    let walk = Walk::below(&open(root.path()), "", Ignore::environment()).unwrap();
    assert_eq!(walk.files, READ);
    assert!(walk.failures.is_empty() && walk.warnings.is_empty());

    let scratch = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(scratch.path().join("r"));
    repo.commit("main", &FILES);
    let walk = Walk::below(&commit(&repo, "main"), "", Ignore::environment()).unwrap();
    assert_eq!(walk.files, READ);
}

#[test]
fn a_path_may_be_a_folder_or_a_file_and_the_roots_rules_hold_below_it() {
    let root = folder(&FILES);
    let tree = open(root.path());
    let below = |path: &str| Walk::below(&tree, path, Ignore::environment());
    assert_eq!(below("deep").unwrap().files, READ[2..]);
    assert_eq!(below("b.yml").unwrap().files, ["b.yml"]);
    assert_eq!(
        below("docs").unwrap_err().to_string(),
        "`docs` is among the files that are ignored (`docs/` in .sourceignore)"
    );
    assert_eq!(
        below("docs/example.yaml").unwrap_err().to_string(),
        "`docs/example.yaml` is among the files that are ignored (`docs/` in .sourceignore)"
    );
    assert_eq!(
        below(".github/workflows").unwrap_err().to_string(),
        "`.github/workflows` is among the files that are ignored (`.github/` is never read)"
    );
    assert_eq!(below("README.md").unwrap_err().to_string(), "`README.md` is a file, not a folder or a .yaml file");
    assert_eq!(below("nowhere/x").unwrap_err().to_string(), "`nowhere/x` does not exist in cp");
    assert_eq!(below("a.yaml/x").unwrap_err().to_string(), "`a.yaml/x` does not exist in cp");
}

#[test]
fn nested_ignore_files_hold_for_their_folder() {
    let files = [
        ("a/.sourceignore", "/x.yaml\n"),
        ("a/x.yaml", ""),
        ("a/b/x.yaml", ""),
        ("x.yaml", ""),
        ("b/.sourceignore", "[z-a]\n"),
    ];
    let root = folder(&files);
    let walk = Walk::below(&open(root.path()), "", Ignore::environment()).unwrap();
    assert_eq!(walk.files, ["a/b/x.yaml", "x.yaml"]);
    assert_eq!(walk.warnings[0].origin.as_ref().unwrap().to_string(), "b/.sourceignore:1");
    let walk = Walk::below(&open(root.path()), "a", Ignore::environment()).unwrap();
    assert_eq!(walk.files, ["a/b/x.yaml"]);
}

#[test]
fn a_link_is_named_and_never_followed() {
    let outside = folder(&[("secret.yaml", "s"), ("sub/secret.yaml", "s")]);
    let root = folder(&[("a.yaml", ""), ("docs/x.yaml", ""), (".sourceignore", "ignored-link\n")]);
    symlink(outside.path().join("secret.yaml"), root.path().join("link.yaml")).unwrap();
    symlink(outside.path().join("sub"), root.path().join("docs/folder")).unwrap();
    symlink(outside.path(), root.path().join("ignored-link")).unwrap();
    let tree = open(root.path());
    let walk = Walk::below(&tree, "", Ignore::environment()).unwrap();
    assert_eq!(walk.files, ["a.yaml", "docs/x.yaml"]);
    assert_eq!(
        messages(&walk.failures),
        [
            "`link.yaml` is a symbolic link; links are never followed",
            "`docs/folder` is a symbolic link; links are never followed",
        ]
    );
    assert_eq!(walk.failures[0].code, "Symlink");
    assert_eq!(walk.failures[0].origin.as_ref().unwrap().to_string(), "link.yaml");

    // Not as a path either, and not on the way to one.
    for path in ["docs/folder", "docs/folder/secret.yaml", "link.yaml"] {
        let error = Walk::below(&tree, path, Ignore::environment()).unwrap_err();
        assert!(matches!(error, TreeError::Symlink { .. }), "{path}: {error}");
    }
}

#[test]
fn links_and_submodules_of_a_commit_are_named() {
    let scratch = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(scratch.path().join("r"));
    repo.commit_items(
        "main",
        &[("a.yaml", Item::File("")), ("l/x", Item::Link("../a.yaml")), ("sub", Item::Submodule)],
    );
    let tree = commit(&repo, "main");
    let walk = Walk::below(&tree, "", Ignore::environment()).unwrap();
    assert_eq!(walk.files, ["a.yaml"]);
    assert_eq!(messages(&walk.failures), ["`l/x` is a symbolic link; links are never followed"]);
    assert_eq!(messages(&walk.warnings), ["`sub` is a Git submodule; what is in it isn't read"]);
    let error = Walk::below(&tree, "l/x/y", Ignore::environment()).unwrap_err();
    assert_eq!(error.to_string(), "`l/x` is a symbolic link; links are never followed");
}

#[test]
fn another_repository_inside_a_folder_is_not_read() {
    let root = folder(&[("a.yaml", ""), ("sub/.git/HEAD", ""), ("sub/b.yaml", "")]);
    let walk = Walk::below(&open(root.path()), "", Ignore::environment()).unwrap();
    assert_eq!(walk.files, ["a.yaml"]);
    assert_eq!(messages(&walk.warnings), ["`sub` is a Git submodule; what is in it isn't read"]);
}

#[test]
fn too_many_and_too_deep_are_clear_errors() {
    let root = folder(&[("a.yaml", ""), ("b.yaml", ""), ("c.yaml", "")]);
    let error = Walk::limited(&open(root.path()), "", Ignore::environment(), 2).unwrap_err();
    assert_eq!(error.to_string(), "there are more than 2 files and folders below `.`");
    assert!(error.hint().unwrap().contains(".sourceignore"));

    let deep = format!("{}x.yaml", "d/".repeat(120));
    let root = folder(&[(deep.as_str(), "")]);
    let error = Walk::below(&open(root.path()), "", Ignore::environment()).unwrap_err();
    assert!(matches!(error, TreeError::TooDeep { limit: 100, .. }), "{error}");
}

#[test]
fn a_large_file_is_not_read() {
    let root = folder(&[]);
    let file = fs::File::create(root.path().join("big.yaml")).unwrap();
    file.set_len(100 * 1024 * 1024).unwrap();
    let error = open(root.path()).read("big.yaml", FILE_LIMIT).unwrap_err();
    assert_eq!(error.to_string(), "`big.yaml` has 104857600 bytes, over the limit of 4194304");

    let scratch = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(scratch.path().join("r"));
    repo.commit("main", &[("big.yaml", &" ".repeat(4194305))]);
    let error = commit(&repo, "main").read("big.yaml", FILE_LIMIT).unwrap_err();
    assert_eq!(error.to_string(), "`big.yaml` has 4194305 bytes, over the limit of 4194304");
}

#[test]
fn a_name_that_is_not_utf8_is_a_failure() {
    let root = folder(&[]);
    fs::write(root.path().join(ffi::OsStr::from_bytes(b"\xff.yaml")), "").unwrap();
    let walk = Walk::below(&open(root.path()), "", Ignore::environment()).unwrap();
    assert!(walk.files.is_empty());
    assert_eq!(walk.failures[0].code, "BadName");
}

#[test]
fn names_that_no_folder_could_hold_are_failures_and_hide_nothing() {
    let scratch = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(scratch.path().join("r"));
    let items =
        [("a", Some("b.yaml")), ("..", None), ("a/b.yaml", None), ("c.yaml", None), ("c.yaml", None), (".git", None)];
    repo.commit_hostile("main", &items);
    let tree = commit(&repo, "main");
    let walk = Walk::below(&tree, "", Ignore::environment()).unwrap();
    assert_eq!(walk.files, ["a/b.yaml"]);
    assert_eq!(tree.read("a/b.yaml", FILE_LIMIT).unwrap(), b"inside", "not the one that only looks like it");
    let message =
        |name: &str| format!("the name of `{name}` can't be read: it isn't UTF-8, or no folder could hold it");
    assert_eq!(messages(&walk.failures), [message(".."), message("a/b.yaml"), message("c.yaml")]);
}
