//! Whole platforms, from folders and sources, by what is in force and what is said.

mod bases;
mod repository;

use std::os::unix::fs::symlink;
use std::{env, fs};

use kedge_model::{Object, ObjectId};

use super::*;
use crate::sources::Sources;
use crate::testing::{Nowhere, TestRepo, folder};

fn config(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  labels:\n    platform-config: \"true\"\ndata:\n  KEY: \"{value}\"\n"
    )
}

fn base(name: &str, repo: &str, rest: &str) -> String {
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: BaseRepo\nmetadata:\n  name: {name}\nspec:\n  repo: {repo}\n  branch: main\n  path: .\n{rest}"
    )
}

fn registration(name: &str, repo: &str, path: &str) -> String {
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata:\n  name: {name}\nspec:\n  workload:\n    repo: {repo}\n    branch: main\n    path: {path}\n  workspace: team\n"
    )
}

fn workload(name: &str) -> String {
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata:\n  name: {name}\nspec:\n  deploymentTargets:\n  - name: test\n    environment: dev\n    manifests:\n      repo: https://h/x\n      branch: dev\n      path: .\n"
    )
}

fn environment(name: &str, repo: &str, branch: &str, path: &str) -> String {
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Environment\nmetadata:\n  name: {name}\nspec:\n  controlPlane:\n    repo: {repo}\n    branch: {branch}\n    path: {path}\n"
    )
}

/// A folder `env` with these files, and `https://h/<name>` for each other top-level folder.
fn scene(files: &[(&str, &str)]) -> (tempfile::TempDir, Sources) {
    let root = folder(files);
    let mut text = "sources:\n".to_owned();
    for entry in fs::read_dir(root.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        text.push_str(&format!("- {{repo: https://h/{name}, path: {name}}}\n"));
    }
    let sources = Sources::parse(text.as_bytes(), "sources.yaml", root.path()).unwrap();
    (root, sources)
}

fn load_scene(files: &[(&str, &str)]) -> Platform {
    let (root, sources) = scene(files);
    load(&ControlPlane::Folder(root.path().join("env")), "dev", &sources).unwrap()
}

fn names(platform: &Platform) -> Vec<String> {
    platform.objects.keys().map(ToString::to_string).collect()
}

fn messages(platform: &Platform) -> Vec<String> {
    platform.problems.iter().map(|problem| problem.message.clone()).collect()
}

fn get<'p>(platform: &'p Platform, kind: Kind, name: &str) -> &'p Object {
    &platform.objects[&ObjectId { kind, owner: None, name: name.to_owned() }]
}

fn failing(platform: &Platform) -> Vec<(Option<&str>, &str)> {
    platform.failing.iter().map(|failing| (failing.registration.as_deref(), failing.problem.code)).collect()
}

/// The BaseRepos that count as broken, and why.
fn broken_bases(platform: &Platform) -> Vec<(&str, &str)> {
    let bases = platform.broken.iter().filter(|broken| broken.kind == Some(Kind::BaseRepo));
    bases
        .map(|broken| {
            assert!(broken.owner.is_none() && broken.labels.is_none());
            (broken.name.as_deref().unwrap(), broken.problem.code)
        })
        .collect()
}

#[test]
fn a_folder_its_bases_and_its_applications_become_one_platform() {
    let platform = load_scene(&[
        ("env/base.yaml", &base("main", "https://h/main", "")),
        ("env/config.yaml", &config("own", "1")),
        ("env/.environments/dev.yaml", &environment("dev", "https://h/cp", "dev", ".")),
        ("main/.github/workflow.yaml", "not: ours"),
        ("main/config.yaml", &config("shared", "1")),
        ("main/apps.yaml", &registration("greeting", "https://h/app", "./workloads")),
        ("main/next.yaml", &base("global", "https://h/global.git", "")),
        ("global/config.yaml", &config("global", "1")),
        ("app/workloads/hello.yaml", &workload("hello")),
        ("app/other/elsewhere.yaml", "not below the path"),
    ]);
    assert_eq!(messages(&platform), [""; 0]);
    assert_eq!(
        names(&platform),
        [
            "BaseRepo global",
            "BaseRepo main",
            "WorkloadRegistration greeting",
            "Workload hello",
            "ConfigMap global",
            "ConfigMap own",
            "ConfigMap shared",
        ]
    );
    assert!(platform.failing.is_empty() && platform.broken.is_empty());
    assert_eq!(platform.environment, "dev");
    let hello = platform.of_kind(Kind::Workload).next().unwrap();
    assert_eq!(hello.owner.as_deref(), Some("greeting"));
    assert_eq!(hello.origin.source.repo, "https://h/app");
    assert_eq!(&*hello.origin.file, "workloads/hello.yaml");
}

#[test]
fn an_object_defined_twice_at_one_level_is_refused_and_the_platform_fails() {
    let platform = load_scene(&[
        ("env/a.yaml", &config("c", "1")),
        ("env/b.yaml", &config("c", "2")),
        ("env/d.yaml", &config("d", "2")),
    ]);
    assert_eq!(names(&platform), ["ConfigMap d"]);
    assert_eq!(platform.broken.len(), 1);
    assert_eq!(platform.broken[0].name.as_deref(), Some("c"));
    assert_eq!(failing(&platform), [(None, "DuplicateObject")]);
    assert!(
        messages(&platform)[0].starts_with("ConfigMap c is defined 2 times: in a.yaml:1"),
        "{:?}",
        platform.problems
    );
}

#[test]
fn a_broken_file_stops_itself_and_marks_the_platform() {
    let platform = load_scene(&[("env/a.yaml", "kind: [\n"), ("env/b.yaml", &config("d", "2"))]);
    assert_eq!(names(&platform), ["ConfigMap d"]);
    assert_eq!(platform.broken.len(), 1);
    assert_eq!(platform.failing.len(), 1);
    assert_eq!(platform.failing[0].registration, None);
    assert!(platform.problems.iter().any(Problem::is_error));
}

#[test]
fn a_failing_application_concerns_itself_only() {
    let platform = load_scene(&[
        ("env/c.yaml", &config("c", "1")),
        ("env/1.yaml", &registration("gone", "https://h/none", ".")),
        ("env/2.yaml", &registration("wrong-path", "https://h/app", "nope")),
        ("env/3.yaml", &registration("escapes", "https://h/app", "../x")),
        ("env/4.yaml", &registration("bad-file", "https://h/bad", ".")),
        ("env/5.yaml", &registration("good", "https://h/app", "w/hello.yaml")),
        ("env/6.yaml", &registration("empty", "https://h/empty", ".")),
        ("env/7.yaml", &registration("twice", "https://h/twice", ".")),
        ("app/w/hello.yaml", &workload("hello")),
        ("bad/x.yaml", "a: [\n"),
        ("bad/y.yaml", &workload("other")),
        ("empty/README.md", ""),
        ("twice/x.yaml", &workload("same")),
        ("twice/y.yaml", &workload("same")),
    ]);
    let workloads: Vec<_> = platform.of_kind(Kind::Workload).map(|object| object.meta.name.as_str()).collect();
    assert_eq!(workloads, ["other", "hello"]);
    let mut failed = failing(&platform);
    failed.sort();
    let codes: Vec<_> = failed.iter().map(|(name, code)| format!("{} {code}", name.unwrap_or("platform"))).collect();
    assert_eq!(codes.len(), 6, "{codes:?}");
    assert!(codes[0].starts_with("bad-file "));
    assert_eq!(
        codes[1..],
        [
            "empty NothingFound",
            "escapes PathInvalid",
            "gone RepositoryFailed",
            "twice DuplicateObject",
            "wrong-path PathMissing"
        ]
    );
    let all = messages(&platform).join("\n");
    assert!(all.contains(
        "WorkloadRegistration gone can't be loaded: the sources file has no entry for https://h/none on branch main"
    ));
    assert!(all.contains("WorkloadRegistration wrong-path can't be loaded: `nope` does not exist in https://h/app"));
    assert!(all.contains("WorkloadRegistration escapes can't be loaded: the path `../x` leaves the repository"));
    assert!(all.contains("WorkloadRegistration empty brings no Workload"));
    assert!(platform.broken.iter().all(|broken| broken.owner.is_some()), "{:?}", platform.broken);
}

#[test]
fn an_emptied_application_is_a_warning_that_keeps_what_is_published() {
    let platform =
        load_scene(&[("env/1.yaml", &registration("empty", "https://h/empty", ".")), ("empty/README.md", "")]);
    let [problem] = platform.problems.as_slice() else { panic!("{:?}", platform.problems) };
    assert_eq!((problem.code, problem.is_error()), ("NothingFound", false));
    assert_eq!(failing(&platform), [(Some("empty"), "NothingFound")]);
    assert_eq!(&platform.failing[0].problem, problem);
    assert!(platform.broken.is_empty());
}

#[test]
fn two_tenants_may_have_workloads_of_one_name() {
    let platform = load_scene(&[
        ("env/1.yaml", &registration("one", "https://h/one", ".")),
        ("env/2.yaml", &registration("two", "https://h/two", ".")),
        ("one/w.yaml", &workload("hello")),
        ("two/w.yaml", &workload("hello")),
    ]);
    let owners: Vec<_> = platform.of_kind(Kind::Workload).map(|object| object.owner.as_deref().unwrap()).collect();
    assert_eq!(owners, ["one", "two"]);
    assert_eq!(messages(&platform), [""; 0]);
}

#[test]
fn links_mark_the_platform_or_the_application() {
    let (root, sources) = scene(&[
        ("env/c.yaml", &config("c", "1")),
        ("env/1.yaml", &registration("app", "https://h/app", ".")),
        ("app/w.yaml", &workload("hello")),
    ]);
    symlink("c.yaml", root.path().join("env/l.yaml")).unwrap();
    symlink("w.yaml", root.path().join("app/m.yaml")).unwrap();
    let platform = load(&ControlPlane::Folder(root.path().join("env")), "dev", &sources).unwrap();
    assert_eq!(failing(&platform), [(None, "Symlink"), (Some("app"), "Symlink")]);
    assert_eq!(platform.of_kind(Kind::Workload).count(), 1);
}

#[test]
fn a_file_over_the_limit_is_broken_and_says_its_size() {
    let (root, sources) = scene(&[("env/c.yaml", &config("c", "1"))]);
    fs::File::create(root.path().join("env/big.yaml")).unwrap().set_len(100 << 20).unwrap();
    let platform = load(&ControlPlane::Folder(root.path().join("env")), "dev", &sources).unwrap();
    assert_eq!(messages(&platform), ["the file has 104857600 bytes, over the limit of 4194304"]);
    assert_eq!(&*platform.problems[0].origin.as_ref().unwrap().file, "big.yaml");
    assert_eq!(platform.broken.len(), 1);
    assert_eq!(failing(&platform), [(None, "FileTooLarge")]);
}

#[test]
fn a_config_map_that_grew_too_large_still_says_what_it_stops() {
    let big = config("big", &"x".repeat(5 << 20));
    let (root, sources) = scene(&[("env/big.yaml", &big)]);
    let repo = TestRepo::new(root.path().join("cp"));
    repo.commit("dev", &[("big.yaml", &big)]);
    let git = ControlPlane::Git { path: repo.path.clone(), revision: Some("dev".to_owned()) };
    for plane in [ControlPlane::Folder(root.path().join("env")), git] {
        let platform = load(&plane, "dev", &sources).unwrap();
        let [broken] = platform.broken.as_slice() else { panic!("{:?}", platform.broken) };
        assert_eq!((broken.kind, broken.name.as_deref()), (Some(Kind::ConfigMap), Some("big")));
        assert_eq!(broken.labels.as_ref().unwrap()["platform-config"], "true");
        assert_eq!(failing(&platform), [(None, "FileTooLarge")]);
    }
}

#[test]
fn two_of_one_name_in_one_line_are_two() {
    let item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {A: one}}";
    let list = format!("{{apiVersion: v1, kind: List, items: [{item}, {}]}}", item.replace("one", "two"));
    let platform = load_scene(&[("env/a.yaml", &list)]);
    assert_eq!(names(&platform), [""; 0]);
    assert_eq!(failing(&platform), [(None, "DuplicateObject")]);
}

#[test]
fn a_gitops_path_gives_a_warning() {
    let gitops = |path: &str| {
        format!(
            "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: GitOpsRepo\nmetadata:\n  name: g\nspec:\n  repo: https://h/g\n  branch: dev\n  path: {path}\n"
        )
    };
    for path in [".", "./", "/"] {
        assert_eq!(messages(&load_scene(&[("env/g.yaml", &gitops(path))])), [""; 0]);
    }
    let platform = load_scene(&[("env/g.yaml", &gitops("fleet"))]);
    assert_eq!(
        messages(&platform),
        ["GitOpsRepo g has the path `fleet`, which has no effect: files are written at the branch's root"]
    );
    assert!(!platform.problems[0].is_error() && platform.failing.is_empty());
}

#[test]
fn a_control_plane_that_is_not_there_is_an_error_with_a_hint() {
    let root = folder(&[("file.yaml", ""), ("empty/README.md", "")]);
    let open = |name: &str| load(&ControlPlane::at(root.path().join(name), None), "dev", &Nowhere).unwrap_err();
    let error = open("nowhere");
    assert!(error.to_string().ends_with("nowhere` does not exist"), "{error}");
    assert!(error.hint().is_some());
    let error = open("file.yaml");
    assert!(error.to_string().ends_with("file.yaml` is a file, not a folder or a Git repository"), "{error}");
    assert_eq!(error.hint().unwrap(), format!("name its folder: `{}`", root.path().display()));
    let error = open("empty");
    assert!(error.to_string().starts_with("there is no YAML object in "), "{error}");
    assert!(error.hint().unwrap().starts_with("an environment branch holds ClusterTypes"));
    let error =
        load(&ControlPlane::at(root.path().join("empty"), Some("dev".to_owned())), "dev", &Nowhere).unwrap_err();
    assert!(error.to_string().ends_with("empty` is not a Git repository"), "{error}");
}

#[test]
fn problems_are_sorted_by_place() {
    let platform = load_scene(&[("env/z.yaml", "a: [\n"), ("env/a.yaml", "a: [\n"), ("env/m.yaml", &config("d", "2"))]);
    let places: Vec<_> =
        platform.problems.iter().map(|problem| problem.origin.as_ref().unwrap().file.to_string()).collect();
    let mut sorted = places.clone();
    sorted.sort();
    assert_eq!(places, sorted);
    assert_eq!(places.first().map(String::as_str), Some("a.yaml"));
}

#[test]
fn a_sub_folder_of_a_checkout_is_a_folder() {
    let root = folder(&[(".git/HEAD", ""), ("sub/c.yaml", "")]);
    assert!(matches!(ControlPlane::at(root.path(), None), ControlPlane::Git { .. }));
    assert!(matches!(ControlPlane::at(root.path().join("sub"), None), ControlPlane::Folder(_)));
}

#[test]
fn kalypso_platforms_load_without_errors() {
    let Some(pairs) = env::var_os("KEDGE_KALYPSO") else {
        println!("KEDGE-SKIP kalypso_platforms_load_without_errors: KEDGE_KALYPSO is not set");
        return;
    };
    let mut count = 0;
    for pair in fs::read_dir(pairs).unwrap() {
        let input = pair.unwrap().path().join("input");
        if !input.join("sources.yaml").exists() {
            continue;
        }
        count += 1;
        let sources = Sources::read(&input.join("sources.yaml")).unwrap();
        let platform = load(&ControlPlane::Folder(input.join("control-plane-env")), "dev", &sources).unwrap();
        let errors: Vec<_> = platform.problems.iter().filter(|problem| problem.is_error()).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", input.display());
        assert!(platform.failing.is_empty() && platform.broken.is_empty());
        for kind in [Kind::BaseRepo, Kind::ClusterType, Kind::Template, Kind::Workload, Kind::SchedulingPolicy] {
            assert!(platform.of_kind(kind).count() > 0, "{}: no {kind}", input.display());
        }
        assert!(platform.promoted_commit().is_some());
    }
    assert!(count > 0, "no pair in the folder that KEDGE_KALYPSO names");
}
