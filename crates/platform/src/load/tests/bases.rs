//! BaseRepos: rings, repetitions, bounds, and those that can't be read.

use super::*;

#[test]
fn bases_that_form_a_ring_are_refused_by_name_and_the_rest_loads() {
    let platform = load_scene(&[
        ("env/base.yaml", &base("a", "https://h/a", "")),
        ("a/base.yaml", &base("b", "https://h/b", "")),
        ("a/config.yaml", &config("a", "1")),
        ("b/base.yaml", &base("a", "https://h/a/", "")),
        ("b/config.yaml", &config("b", "1")),
    ]);
    assert_eq!(names(&platform), ["BaseRepo a", "BaseRepo b", "ConfigMap a", "ConfigMap b"]);
    assert_eq!(
        messages(&platform),
        ["BaseRepo a closes a ring: a (https://h/a@main) → b (https://h/b@main) → a (https://h/a@main)"]
    );
    assert_eq!(failing(&platform), [(None, "BaseRepoCycle")]);
    assert!(platform.broken.is_empty(), "what the ring names is read already");
}

#[test]
fn a_base_reached_twice_is_loaded_once() {
    let platform = load_scene(&[
        ("env/base.yaml", &format!("{}---\n{}", base("a", "https://h/a", ""), base("b", "https://h/b", ""))),
        ("a/base.yaml", &base("c1", "https://h/c", "")),
        ("b/base.yaml", &base("c2", "https://h/c.git", "")),
        ("c/config.yaml", &config("c", "1")),
    ]);
    assert_eq!(messages(&platform), [""; 0]);
    assert_eq!(platform.of_kind(Kind::ConfigMap).count(), 1);
}

#[test]
fn a_base_without_an_object_is_a_warning_in_every_shape() {
    for (file, text) in [
        ("main/README.md", "the platform begins here"),
        ("main/.gitkeep", ""),
        ("main/notes.txt", "kind: ConfigMap"),
        ("main/comments.yaml", "# nothing yet\n"),
        ("main/separators.yaml", "---\n---\n# two documents of nothing\n"),
        ("main/empty.yaml", ""),
        ("main/null.yaml", "null\n"),
        ("main/foreign.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"),
        ("main/.github/workflows/ci.yaml", "on: push\n"),
    ] {
        let platform = load_scene(&[
            ("env/base.yaml", &base("main", "https://h/main", "")),
            ("env/config.yaml", &config("own", "1")),
            (file, text),
        ]);
        let found = platform.problems.iter().find(|problem| problem.code == "NothingFound");
        let problem = found.unwrap_or_else(|| panic!("{file}: {:?}", platform.problems));
        assert_eq!(problem.message, "BaseRepo main has no YAML object: https://h/main", "{file}");
        assert!(!platform.problems.iter().any(Problem::is_error), "{file}: {:?}", platform.problems);
        assert_eq!(failing(&platform), [], "{file}");
        assert!(platform.broken.is_empty(), "{file}");
        assert_eq!(
            platform.empty,
            [Empty { input: EmptyInput::BaseRepo("main".to_owned()), problem: problem.clone() }]
        );
    }
}

#[test]
fn an_empty_folder_or_tree_is_an_empty_base_and_a_missing_path_is_none() {
    let (root, sources) = scene(&[
        ("env/base.yaml", &base("main", "https://h/main", "").replace("path: .", "path: platform")),
        ("main/README.md", ""),
    ]);
    let plane = ControlPlane::Folder(root.path().join("env"));
    assert_eq!(broken_bases(&load(&plane, "dev", &sources).unwrap()), [("main", "PathMissing")]);
    fs::create_dir(root.path().join("main/platform")).unwrap();
    let platform = load(&plane, "dev", &sources).unwrap();
    assert!(platform.broken.is_empty() && platform.failing.is_empty(), "{:?}", platform.problems);
    assert_eq!(platform.problems.len(), 1);

    let root = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("main.git"));
    repo.commit("main", &[]);
    fs::create_dir(root.path().join("env")).unwrap();
    fs::write(root.path().join("env/base.yaml"), base("main", "https://h/main", "")).unwrap();
    let text = "sources:\n- {repo: https://h/main, path: main.git}\n";
    let sources = Sources::parse(text.as_bytes(), "sources.yaml", root.path()).unwrap();
    let platform = load(&ControlPlane::Folder(root.path().join("env")), "dev", &sources).unwrap();
    assert_eq!(names(&platform), ["BaseRepo main"], "an environment may hold nothing else");
    assert!(platform.broken.is_empty() && platform.failing.is_empty(), "{:?}", platform.problems);
    assert!(messages(&platform)[0].starts_with("BaseRepo main has no YAML object: https://h/main"));
}

#[test]
fn there_is_a_bound_on_bases() {
    let mut files = vec![("env/base.yaml".to_owned(), base("n0", "https://h/r0", ""))];
    for index in 0..105 {
        files.push((
            format!("r{index}/b.yaml"),
            base(&format!("n{}", index + 1), &format!("https://h/r{}", index + 1), ""),
        ));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let platform = load_scene(&files);
    assert!(names(&platform).contains(&"BaseRepo n100".to_owned()), "what was read before counts");
    assert_eq!(messages(&platform), ["there are more than 100 BaseRepos; BaseRepo n100 isn't read"]);
    assert_eq!(failing(&platform), [(None, "TooManyBaseRepos")]);
    assert_eq!(broken_bases(&platform), [("n100", "TooManyBaseRepos")]);
}

#[test]
fn a_base_that_cannot_be_reached_marks_the_platform() {
    let root =
        folder(&[("base.yaml", &base("main", "https://h/main", "  commit: abc\n")), ("c.yaml", &config("c", "1"))]);
    let platform = load(&ControlPlane::Folder(root.path().to_owned()), "dev", &Nowhere).unwrap();
    assert_eq!(names(&platform), ["BaseRepo main", "ConfigMap c"]);
    let [problem] = platform.problems.as_slice() else { panic!("{:?}", platform.problems) };
    assert_eq!(problem.message, "BaseRepo main can't be loaded: https://h/main at commit abc is out of reach");
    assert_eq!(problem.hint.as_deref(), Some("wait"));
    assert_eq!(problem.origin.as_ref().unwrap().source.repo, root.path().display().to_string());
    assert_eq!(failing(&platform), [(None, "RepositoryFailed")]);
    assert_eq!(broken_bases(&platform), [("main", "RepositoryFailed")]);
    assert_eq!(&platform.broken[0].problem, problem);
    assert_eq!(platform.promoted_commit(), Some("abc"));
}

#[test]
fn a_base_whose_path_cannot_be_read_is_broken_at_any_level() {
    let path = |name: &str, repo: &str, path: &str| base(name, repo, "").replace("path: .", &format!("path: {path}"));
    let platform = load_scene(&[
        ("env/1.yaml", &path("escapes", "https://h/main", "../x")),
        ("env/2.yaml", &path("main", "https://h/main", ".")),
        ("main/3.yaml", &path("gone", "https://h/far", "nope")),
        ("main/c.yaml", &config("c", "1")),
        ("far/c.yaml", &config("d", "1")),
    ]);
    assert_eq!(broken_bases(&platform), [("escapes", "PathInvalid"), ("gone", "PathMissing")]);
    assert_eq!(failing(&platform), [(None, "PathInvalid"), (None, "PathMissing")]);
    assert_eq!(platform.problems.len(), 2);
    assert_eq!(names(&platform), ["BaseRepo escapes", "BaseRepo gone", "BaseRepo main", "ConfigMap c"]);
}

#[test]
fn the_environments_own_object_wins_over_a_bases() {
    let platform = load_scene(&[
        ("env/base.yaml", &base("main", "https://h/main", "")),
        ("env/config.yaml", &config("c", "env")),
        ("main/config.yaml", &config("c", "main")),
    ]);
    let Spec::ConfigMap(map) = &get(&platform, Kind::ConfigMap, "c").spec else { panic!() };
    assert_eq!(map.data["KEY"].text, "env");
    let [problem] = platform.problems.as_slice() else { panic!("{:?}", platform.problems) };
    assert_eq!(problem.code, "Overridden");
    assert!(!problem.is_error());
    assert_eq!((problem.origin.as_ref().unwrap().source.repo.as_str(), problem.related.len()), ("https://h/main", 1));
    assert!(platform.failing.is_empty());
}
