//! Control planes that are Git repositories.

use std::fs;
use std::path::Path;

use super::*;
use crate::testing::TestRepo;

fn control_plane(root: &Path) -> TestRepo {
    let repo = TestRepo::new(root.join("cp"));
    repo.commit(
        "main",
        &[
            (".environments/dev.yaml", &environment("dev", "https://h/cp", "develop", ".")),
            (".environments/more/all.yml", &environment("stage", "https://h/cp", "stage", "./clusters")),
            ("config.yaml", &config("main", "1")),
        ],
    );
    repo.commit("develop", &[("dev.yaml", &config("dev", "1"))]);
    repo.commit("stage", &[("clusters/stage.yaml", &config("stage", "1")), ("other.yaml", &config("other", "1"))]);
    repo
}

#[test]
fn a_repository_is_read_at_the_branch_that_the_environment_names() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = control_plane(root.path());
    let plane = ControlPlane::at(&repo.path, None);
    assert!(matches!(plane, ControlPlane::Git { .. }));
    let platform = load(&plane, "dev", &Nowhere).unwrap();
    assert_eq!(names(&platform), ["ConfigMap dev"]);
    let source = &get(&platform, Kind::ConfigMap, "dev").origin.source;
    assert_eq!(source.repo, repo.path.display().to_string());
    assert!(source.revision.as_ref().unwrap().starts_with("develop@sha1:"));
    let platform = load(&plane, "stage", &Nowhere).unwrap();
    assert_eq!(names(&platform), ["ConfigMap stage"]);
    assert_eq!(environments(&repo.path).unwrap().names(), ["dev", "stage"]);

    let error = load(&plane, "prod", &Nowhere).unwrap_err();
    assert_eq!(error.to_string(), format!("there is no environment `prod` in `{}`", repo.path.display()));
    assert_eq!(error.hint().unwrap(), "the environments are dev, stage");
}

#[test]
fn a_declared_environment_without_an_object_is_a_warning() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = control_plane(root.path());
    for files in [&[("README.md", "soon")][..], &[]] {
        repo.commit("develop", files);
        let platform = load(&ControlPlane::at(&repo.path, None), "dev", &Nowhere).unwrap();
        let [problem] = platform.problems.as_slice() else { panic!("{:?}", platform.problems) };
        assert!(problem.message.starts_with("environment dev is empty: there is no YAML object in "), "{problem:?}");
        assert!(!problem.is_error());
        assert!(platform.failing.is_empty() && platform.broken.is_empty() && platform.objects.is_empty());
        assert_eq!(platform.empty[0].input, EmptyInput::Environment);
    }
}

#[test]
fn a_revision_is_a_branch_a_tag_head_or_a_commit() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = control_plane(root.path());
    let old = repo.commit("develop", &[("old.yaml", &config("old", "1"))]);
    repo.commit("develop", &[("new.yaml", &config("new", "1"))]);
    repo.tag("v1", &old);
    for (revision, name, shown) in [
        ("develop", "new", "develop@sha1:".to_owned()),
        ("v1", "old", format!("v1@sha1:{old}")),
        ("HEAD", "main", "main@sha1:".to_owned()),
        (&old, "old", format!("sha1:{old}")),
        (&old[..9], "old", format!("sha1:{old}")),
        ("develop~1", "old", format!("sha1:{old}")),
    ] {
        let plane = ControlPlane::Git { path: repo.path.clone(), revision: Some(revision.to_owned()) };
        let platform = load(&plane, "dev", &Nowhere).unwrap();
        assert_eq!(names(&platform), [format!("ConfigMap {name}")], "{revision}");
        let source = &get(&platform, Kind::ConfigMap, name).origin.source;
        assert!(source.revision.as_ref().unwrap().starts_with(&shown), "{source}");
    }
    let plane = ControlPlane::Git { path: repo.path.clone(), revision: Some("nope".to_owned()) };
    let error = load(&plane, "dev", &Nowhere).unwrap_err();
    assert!(error.to_string().starts_with("there is no branch, tag or commit `nope` in "), "{error}");
    assert_eq!(error.hint().unwrap(), "its branches are develop, main, stage");
}

#[test]
fn at_a_revision_a_misspelt_environment_is_refused_and_the_others_are_listed() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = control_plane(root.path());
    let plane = ControlPlane::Git { path: repo.path.clone(), revision: Some("develop".to_owned()) };
    let error = load(&plane, "dve", &Nowhere).unwrap_err();
    assert!(matches!(error, LoadError::NoEnvironment { .. }), "{error}");
    assert_eq!(error.hint().unwrap(), "the environments are dev, stage");
}

#[test]
fn at_a_revision_an_environment_is_a_name_only_where_none_is_declared() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("cp"));
    repo.commit("main", &[("c.yaml", &config("c", "1"))]);
    let plane = ControlPlane::Git { path: repo.path.clone(), revision: Some("main".to_owned()) };
    assert_eq!(load(&plane, "whatever", &Nowhere).unwrap().environment, "whatever");

    // Written, but wrongly: nobody knows where in the branch the environment is.
    repo.commit("main", &[("c.yaml", &config("c", "1")), (".environments/dev.yaml", "kind: Environment\n  x: [\n")]);
    let error = load(&plane, "dev", &Nowhere).unwrap_err();
    let LoadError::NoEnvironment { problems, .. } = &error else { panic!("{error}") };
    assert!(problems.iter().any(Problem::is_error));
}

#[test]
fn an_environment_of_another_repository_is_a_warning() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = control_plane(root.path());
    let plane = ControlPlane::at(&repo.path, None);
    repo.config("[remote \"origin\"]\n\turl = https://H/cp.git");
    assert_eq!(messages(&load(&plane, "dev", &Nowhere).unwrap()), [""; 0]);

    let root = tempfile::TempDir::new().unwrap();
    let repo = control_plane(root.path());
    let plane = ControlPlane::at(&repo.path, None);
    repo.config("[remote \"origin\"]\n\turl = https://h/fork");
    let platform = load(&plane, "dev", &Nowhere).unwrap();
    assert_eq!(names(&platform), ["ConfigMap dev"]);
    let [problem] = platform.problems.as_slice() else { panic!("{:?}", platform.problems) };
    assert_eq!((problem.code, problem.is_error()), ("OtherRepository", false));
    assert!(problem.message.contains("`develop` is read from here"), "{}", problem.message);
}

#[test]
fn a_base_that_leads_back_to_the_environment_is_a_ring() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("cp"));
    let dev = environment("dev", "https://h/cp", "dev", ".");
    let back = base("back", "https://h/cp", "").replace("branch: main", "branch: dev");
    repo.commit("main", &[(".environments/dev.yaml", &dev), ("back.yaml", &back), ("c.yaml", &config("c", "1"))]);
    repo.commit("dev", &[("base.yaml", &base("main", "https://h/cp", ""))]);
    let text = format!("sources: [{{repo: https://h/cp, path: {}}}]", repo.path.display());
    let sources = Sources::parse(text.as_bytes(), "s", Path::new("/")).unwrap();
    let platform = load(&ControlPlane::at(&repo.path, None), "dev", &sources).unwrap();
    assert_eq!(names(&platform), ["BaseRepo main", "ConfigMap c"]);
    assert_eq!(
        messages(&platform),
        [
            "BaseRepo back closes a ring: environment dev (https://h/cp@dev) → main (https://h/cp@main) → back (https://h/cp@dev)"
        ]
    );
}

#[test]
fn broken_environments_are_shown_when_the_wanted_one_is_missing() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("cp"));
    repo.commit("main", &[(".environments/dev.yaml", "kind: Environment\n  x: [\n"), ("c.yaml", "")]);
    let error = load(&ControlPlane::at(&repo.path, None), "dev", &Nowhere).unwrap_err();
    let LoadError::NoEnvironment { problems, known, .. } = &error else { panic!("{error}") };
    assert!(known.is_empty() && !problems.is_empty());
}

#[test]
fn a_checkout_is_read_from_its_commits_not_from_its_files() {
    let root = folder(&[("cp/dirty.yaml", &config("dirty", "1")), ("x/y", "")]);
    let bare = control_plane(root.path().join("x").as_path());
    let git = root.path().join("cp/.git");
    fs::rename(&bare.path, &git).unwrap();
    let settings = fs::read_to_string(git.join("config")).unwrap().replace("bare = true", "bare = false");
    fs::write(git.join("config"), settings).unwrap();
    let platform = load(&ControlPlane::at(root.path().join("cp"), None), "dev", &Nowhere).unwrap();
    assert_eq!(names(&platform), ["ConfigMap dev"]);
}

#[test]
fn a_branch_that_only_the_origin_has_is_found() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = control_plane(root.path());
    let (heads, remote) = (repo.path.join("refs/heads"), repo.path.join("refs/remotes/origin"));
    fs::create_dir_all(&remote).unwrap();
    fs::rename(heads.join("develop"), remote.join("develop")).unwrap();
    let platform = load(&ControlPlane::at(&repo.path, None), "dev", &Nowhere).unwrap();
    assert_eq!(names(&platform), ["ConfigMap dev"]);
}

#[test]
fn an_environment_defined_twice_is_refused_with_both_places() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("cp"));
    let dev = environment("dev", "https://h/cp", "main", ".");
    repo.commit("main", &[(".environments/a.yaml", &dev), (".environments/b.yaml", &dev), ("c.yaml", "")]);
    let error = load(&ControlPlane::at(&repo.path, None), "dev", &Nowhere).unwrap_err();
    let LoadError::NoEnvironment { problems, .. } = &error else { panic!("{error}") };
    assert_eq!(problems[0].message, "Environment dev is defined 2 times; none of them is used");
    assert_eq!(problems[0].related[0].to_string(), ".environments/b.yaml:1:1");
}

#[test]
fn a_branch_is_never_a_tag_or_a_commit_of_the_same_letters() {
    let root = tempfile::TempDir::new().unwrap();
    let repo = control_plane(root.path());
    let commit = repo.commit("other", &[("c.yaml", &config("c", "1"))]);
    repo.tag("develop", &commit);
    fs::remove_file(repo.path.join("refs/heads/develop")).unwrap();
    let error = load(&ControlPlane::at(&repo.path, None), "dev", &Nowhere).unwrap_err();
    assert!(error.to_string().starts_with("there is no branch `develop` in "), "{error}");
    let named = ", which Environment dev names (.environments/dev.yaml:1 on main)";
    assert!(error.to_string().ends_with(named), "{error}");
    assert_eq!(error.hint().unwrap(), "its branches are main, other, stage");

    // A branch with a commit's id for a name doesn't hide the commit.
    let opened = GitRepository::open(&repo.path).unwrap();
    repo.commit(&commit, &[("d.yaml", "")]);
    assert_eq!(opened.commit(&commit).unwrap().commit.to_string(), commit);
    assert_ne!(opened.branch(&commit).unwrap().commit.to_string(), commit);
    for odd in ["--upload-pack=x", "-x", "a..b", "", "/", "@{-1}", ":/c", "refs/heads/main"] {
        assert!(opened.branch(odd).is_err(), "{odd}");
    }
}
