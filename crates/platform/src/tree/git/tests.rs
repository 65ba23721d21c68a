//! Repositories as the git program leaves them.

use std::fs;

use super::*;
use crate::testing::{TestRepo, git};

fn open(path: &Path) -> GitRepository {
    GitRepository::open(path).unwrap()
}

fn files(path: &Path, revision: &str) -> Vec<String> {
    let repo = open(path);
    let tree = repo.tree(&repo.resolve(revision).unwrap(), "r").unwrap();
    tree.list("").unwrap().into_iter().map(|entry| entry.path).collect()
}

#[test]
fn packed_refs_annotated_tags_worktrees_and_alternates_are_read() {
    let root = tempfile::TempDir::new().unwrap();
    let bare = TestRepo::new(root.path().join("bare"));
    let commit = bare.commit("main", &[("one.yaml", "1")]);
    let clone = root.path().join("clone");
    if !git(root.path(), &["clone", "--quiet", "--shared", "bare", "clone"]) {
        return;
    }
    assert_eq!(files(&clone, "main"), ["one.yaml"], "its objects are in the other one");

    git(&bare.path, &["tag", "-a", "v1", "-m", "first", "main"]);
    git(&bare.path, &["pack-refs", "--all"]);
    git(&bare.path, &["gc", "--quiet"]);
    assert!(!bare.path.join("refs/heads/main").exists());
    for revision in ["main", "v1", "HEAD", &commit, &commit[..7]] {
        assert_eq!(files(&bare.path, revision), ["one.yaml"], "{revision}");
    }
    let tag = open(&bare.path).resolve("v1").unwrap();
    assert_eq!(tag.to_string(), format!("v1@sha1:{commit}"), "the commit, not the tag's own object");

    git(&clone, &["worktree", "add", "--quiet", "--detach", "../worktree"]);
    let worktree = root.path().join("worktree");
    assert!(worktree.join(".git").is_file());
    assert!(crate::is_git_repository(&worktree));
    assert_eq!(files(&worktree, "HEAD"), ["one.yaml"]);
    assert_eq!(open(&worktree).head().unwrap().to_string(), format!("sha1:{commit}"), "no branch leads there");
}

#[test]
fn a_repository_of_another_hash_is_refused_by_name() {
    let root = tempfile::TempDir::new().unwrap();
    if !git(root.path(), &["init", "--quiet", "--object-format=sha256", "new"]) {
        return;
    }
    let error = GitRepository::open(&root.path().join("new")).unwrap_err();
    assert!(error.to_string().ends_with("new` uses SHA-256, which isn't supported"), "{}", crate::tree::chain(&error));
    assert!(error.hint().unwrap().contains("SHA-1"), "{:?}", error.hint());
}

#[test]
fn a_damaged_repository_is_an_error_with_its_cause() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("r"));
    fs::write(repo.path.join("config"), "[core").unwrap();
    let error = GitRepository::open(&repo.path).unwrap_err();
    assert!(error.to_string().ends_with("r` can't be opened as a Git repository"), "{error}");
    assert!(crate::tree::chain(&error).len() > error.to_string().len());
}
