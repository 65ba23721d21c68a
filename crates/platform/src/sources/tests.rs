//! Sources files: what is refused, which entry is taken, and what is opened.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::testing::{TestRepo, folder, write};
use crate::walk::Walk;

fn parse(text: &str) -> Result<Sources, Vec<String>> {
    Sources::parse(text.as_bytes(), "sources.yaml", Path::new("base")).map_err(|problems| {
        problems.iter().map(|problem| format!("{}: {}", problem.origin.as_ref().unwrap(), problem.message)).collect()
    })
}

fn found(sources: &Sources, repo: &str, branch: &str, commit: &str) -> Option<u32> {
    sources.find(&Request::new(repo, branch, Some(commit))).map(|entry| entry.line)
}

#[test]
fn entries_are_read_with_paths_relative_to_the_file() {
    let text = "# where\nsources:\n- repo: https://h/a\n  commit: \"0123456789\"\n  path: x/a\n- repo: https://h/b\n  branch: dev\n  path: /abs\n- {repo: c, commit: 1234567, path: .}\n";
    let sources = parse(text).unwrap();
    let entries = sources.entries();
    assert_eq!(entries[0].path, Path::new("base/x/a"));
    assert_eq!(entries[0].commit.as_deref(), Some("0123456789"));
    assert_eq!(entries[0].line, 3);
    assert_eq!(entries[1].path, Path::new("/abs"));
    assert_eq!(entries[1].branch.as_deref(), Some("dev"));
    assert_eq!(entries[2].commit.as_deref(), Some("1234567"));
    assert!(parse("sources: []").unwrap().entries().is_empty());
    assert!(parse("sources:").unwrap().entries().is_empty());
}

#[test]
fn every_error_is_reported_at_once_with_its_line() {
    let text = "source: 1\nsources:\n- repo: a\n  patch: x\n- just text\n- repo: [a]\n  path: \"\"\n- repo: https://h/r\n  path: p\n- repo: https://H/r.git\n  path: q\n";
    assert_eq!(
        parse(text).unwrap_err(),
        [
            "sources.yaml:1:1: `source` is not a key of a sources file; it has sources",
            "sources.yaml:4:3: `patch` is not a key of an entry of `sources`; it has repo, branch, commit, path",
            "sources.yaml:3:3: an entry needs `path`",
            "sources.yaml:5:3: an entry must be a map with `repo` and `path`",
            "sources.yaml:6:9: `repo` must be a string",
            "sources.yaml:7:9: `path` is empty",
            "sources.yaml:10:3: the same repository, branch and commit are in line 8 already",
        ]
    );
}

#[test]
fn a_file_that_is_something_else_is_refused() {
    assert_eq!(parse("").unwrap_err(), ["sources.yaml: the file is empty: it has no `sources`"]);
    assert_eq!(parse("- a").unwrap_err(), ["sources.yaml:1:1: the file must be a map with the key `sources`"]);
    assert_eq!(parse("{}").unwrap_err(), ["sources.yaml:1:1: the key `sources` is missing"]);
    assert_eq!(parse("sources: 5").unwrap_err(), ["sources.yaml:1:10: `sources` must be a list"]);
    assert!(parse("sources: [").unwrap_err()[0].contains("the file isn't YAML: "));
    assert_eq!(
        parse("sources: []\n---\nsources: []\n").unwrap_err(),
        ["sources.yaml:3:1: there is a second document; a sources file has one"]
    );
    let root = folder(&[("s.yaml", "sources: 5")]);
    let error = Sources::read(&root.path().join("s.yaml")).unwrap_err();
    assert!(error.to_string().ends_with("s.yaml` has 1 error"), "{error}");
    let error = Sources::read(&root.path().join("none.yaml")).unwrap_err();
    assert!(error.to_string().ends_with("none.yaml` can't be read"), "{error}");
}

#[test]
fn lookups_follow_the_commit_then_the_branch_then_the_only_entry() {
    let root = folder(&[("p/f.yaml", "")]);
    let repo = TestRepo::new(root.path().join("git"));
    let held = repo.commit("main", &[("one.yaml", "1")]);
    let text = "sources:
- {repo: https://h/only, path: p}
- {repo: https://h/pinned, commit: aaaa, path: p}
- {repo: https://h/many, commit: aaaa, path: p}
- {repo: https://h/many, branch: dev, path: p}
- {repo: https://h/many, branch: main, commit: BBBB, path: p}
- {repo: https://h/two, branch: dev, commit: aaaa, path: p}
- {repo: https://h/two, branch: dev, commit: bbbb, path: p}
- {repo: https://h/branch, branch: dev, path: p}
- {repo: https://h/git, path: git}
- {repo: https://h/git-pinned, commit: aaaa, path: git}
- {repo: https://h/git-both, commit: aaaa, path: git}
- {repo: https://h/git-both, branch: dev, path: git}
";
    let sources = Sources::parse(text.as_bytes(), "sources.yaml", root.path()).unwrap();
    for (repo, branch, commit, line) in [
        ("https://h/only", "main", "", Some(2)),
        ("https://H/only.git/", "", "", Some(2)),
        // A folder without a commit is not a match for one.
        ("https://h/only", "main", "aaaa", None),
        ("https://h/pinned", "main", "aaaa", Some(3)),
        ("https://h/pinned", "main", "AAAA", Some(3)),
        ("https://h/pinned", "main", "", Some(3)),
        ("https://h/pinned", "main", "cccc", None),
        ("https://h/many", "dev", "aaaa", Some(4)),
        ("https://h/many", "dev", "", Some(5)),
        ("https://h/many", "main", "", Some(6)),
        ("https://h/many", "main", "bbbb", Some(6)),
        ("https://h/many", "other", "", None),
        ("https://h/many", "", "", None),
        ("https://h/two", "dev", "", None),
        ("https://h/two", "dev", "bbbb", Some(8)),
        ("https://h/branch", "other", "", Some(9)),
        ("https://h/none", "", "", None),
        ("https://h/git", "main", &held, Some(10)),
        ("https://h/git", "main", &"1".repeat(40), None),
        // An entry with another commit was meant for that one, though its repository holds this one too.
        ("https://h/git-pinned", "main", &held, None),
        ("https://h/git-both", "main", &held, Some(13)),
        ("https://h/git-both", "main", "aaaa", Some(12)),
    ] {
        assert_eq!(found(&sources, repo, branch, commit), line, "{repo} {branch} {commit}");
    }
}

#[test]
fn a_tag_is_looked_for_in_the_git_repositories() {
    let root = folder(&[("p/f.yaml", "")]);
    let repo = TestRepo::new(root.path().join("git"));
    let first = repo.commit("main", &[("one.yaml", "1")]);
    repo.tag("v1", &first);
    repo.commit("main", &[("two.yaml", "2")]);
    let text = "sources:\n- {repo: https://h/a, branch: dev, path: p}\n- {repo: https://h/a, path: git}\n";
    let sources = Sources::parse(text.as_bytes(), "sources.yaml", root.path()).unwrap();
    let tagged = |tag: &str| Request { tag: Some(tag.to_owned()), ..Request::new("https://h/a", "", None) };
    assert_eq!(sources.find(&tagged("v1")).unwrap().line, 3);
    assert!(sources.open(&tagged("v1")).unwrap().entry("one.yaml").is_ok());
    let error = sources.open(&tagged("v9")).unwrap_err();
    assert!(error.to_string().contains("v9"), "{error}");
}

#[test]
fn a_repository_without_an_entry_says_which_lines_to_add() {
    let sources = parse("sources: []").unwrap();
    let error = sources.open(&Request::new("https://h/app", "main", None)).unwrap_err();
    assert_eq!(error.to_string(), "the sources file has no entry for https://h/app on branch main");
    assert_eq!(
        error.hint().unwrap(),
        "add an entry to sources.yaml:\nsources:\n- repo: https://h/app\n  branch: main\n  path: ./folder-or-git-repository"
    );
    let error = sources.open(&Request::new("it's: odd", "", Some("abc"))).unwrap_err();
    assert_eq!(
        error.hint().unwrap(),
        "add an entry to sources.yaml:\nsources:\n- repo: 'it''s: odd'\n  commit: \"abc\"\n  path: ./folder-or-git-repository"
    );
}

#[test]
fn a_path_that_does_not_exist_is_named() {
    let sources = parse("sources:\n- {repo: https://h/a, path: nowhere}").unwrap();
    let error = sources.open(&Request::new("https://h/a", "", None)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the folder `base/nowhere` that the sources file names for https://h/a does not exist"
    );
}

#[test]
fn folders_and_git_repositories_are_opened_at_the_right_revision() {
    let root = folder(&[("plain/f.yaml", "")]);
    let repo = TestRepo::new(root.path().join("repo"));
    let first = repo.commit("main", &[("one.yaml", "1")]);
    let second = repo.commit("main", &[("two.yaml", "2")]);
    let dev = repo.commit("dev", &[("dev.yaml", "d")]);
    write(
        root.path(),
        &[(
            "sources.yaml",
            &format!(
                "sources:\n- {{repo: https://h/plain, path: plain}}\n- {{repo: https://h/pin, commit: {first}, path: plain}}\n- {{repo: https://h/git, path: repo}}\n- {{repo: https://h/dev, branch: dev, path: repo}}\n- {{repo: https://h/first, commit: {first}, path: repo}}\n"
            ),
        )],
    );
    let sources = Sources::read(&root.path().join("sources.yaml")).unwrap();
    let open = |repo: &str, branch: &str, commit: &str| {
        let tree = sources.open(&Request::new(repo, branch, Some(commit))).unwrap();
        let files = Walk::below(tree.as_ref(), "", crate::ignore::Ignore::environment()).unwrap().files.join(" ");
        (files, tree.source().revision.clone().unwrap_or_default())
    };
    let at = |file: &str, revision: String| (file.to_owned(), revision);
    assert_eq!(open("https://h/plain", "main", ""), at("f.yaml", String::new()));
    assert_eq!(open("https://h/pin", "main", &first), at("f.yaml", format!("main@sha1:{first}")));
    assert_eq!(open("https://h/git", "", ""), at("two.yaml", format!("main@sha1:{second}")));
    assert_eq!(open("https://h/git", "dev", ""), at("dev.yaml", format!("dev@sha1:{dev}")));
    assert_eq!(open("https://h/git", "main", &first), at("one.yaml", format!("sha1:{first}")));
    assert_eq!(open("https://h/dev", "main", ""), at("dev.yaml", format!("dev@sha1:{dev}")));
    assert_eq!(open("https://h/first", "main", ""), at("one.yaml", format!("main@sha1:{first}")));

    let error = sources.open(&Request::new("https://h/git", "nope", None)).unwrap_err();
    assert!(error.to_string().starts_with("there is no branch `nope` in "), "{error}");
    assert_eq!(error.hint().unwrap(), "its branches are dev, main");
    let error = sources.open(&Request::new("https://h/git", "main", Some(&"1".repeat(40)))).unwrap_err();
    assert!(error.to_string().starts_with("the sources file has no entry for https://h/git at commit 111"), "{error}");
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Sources::parse(&bytes, "s", Path::new("."));
    }

    #[test]
    fn nothing_that_resembles_a_sources_file_makes_the_parser_panic(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("sources:"), Just("\n- "), Just("repo: "), Just("path: "), Just("\n  commit: "), Just("branch: "),
                Just("{"), Just("}"), Just("["), Just("]"), Just("&a "), Just("*a "), Just("<<: "), Just("\n"),
                Just("---\n"), Just("\t"), Just("'"), Just("\""), Just("x"), Just("!!binary "), Just("? "), Just(", "),
            ],
            0..40,
        )
    ) {
        if let Err(problems) = Sources::parse(parts.concat().as_bytes(), "s", Path::new(".")) {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn what_was_written_is_read_back(repo in "[a-z:/.' #]{1,20}", branch in "[a-z/0-9' ]{1,10}") {
        let text = entry_text(&repo, Some(&branch), None);
        let sources = Sources::parse(text.as_bytes(), "s", Path::new(".")).ok();
        if !repo.trim().is_empty() {
            let entry = sources.unwrap().entries()[0].clone();
            prop_assert_eq!(entry.repo.as_str(), repo.trim());
            prop_assert_eq!(entry.branch.as_deref().unwrap_or_default(), branch.trim());
        }
    }
}
