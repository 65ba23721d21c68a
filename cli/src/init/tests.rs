//! What `create` makes, seen through the real `git` program, and what it refuses.

use std::process::Command;

use super::*;

fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    // A hook that runs the tests has its own repository in these.
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
    let output = command.arg("-C").arg(dir).args(args).output().expect("the git program");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn sample_in(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let created = create(&folder.path().join(name), Flavour::Whole).unwrap();
    (folder, created)
}

#[test]
fn a_sample_has_its_repositories_branches_and_nothing_else() {
    let (folder, created) = sample_in("demo");
    assert_eq!(names_in(folder.path()), ["demo"]);
    let mut expected: Vec<&str> = entries(Flavour::Whole).iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    assert_eq!(names_in(&created), expected);

    let branches = |name: &str| git(&created.join(name), &["branch", "--format=%(refname:short)"]);
    assert_eq!(branches(CONTROL_PLANE), "dev\nmain\nprod\nstage");
    assert_eq!(branches(HELLO), "main");
    assert_eq!(branches(HELLO_GITOPS), "dev\nprod\nstage");
    assert_eq!(branches(GITOPS), "dev\nprod\nstage");

    let head = |name: &str| git(&created.join(name), &["symbolic-ref", "HEAD"]);
    assert_eq!([head(CONTROL_PLANE), head(HELLO)], ["refs/heads/main", "refs/heads/main"]);
    assert_eq!([head(HELLO_GITOPS), head(GITOPS)], ["refs/heads/dev", "refs/heads/dev"]);
}

#[test]
fn git_finds_every_repository_sound_and_clones_it() {
    let (folder, created) = sample_in("demo");
    for name in [CONTROL_PLANE, HELLO, HELLO_GITOPS, GITOPS] {
        let repository = created.join(name);
        git(&repository, &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(git(&repository, &["log", "-1", "--format=%an <%ae> %cn"]), "Kedge <kedge@localhost> Kedge");
        let clone = folder.path().join(format!("clone of {name}"));
        git(folder.path(), &["clone", "-q", &file_url(&repository), clone.to_str().unwrap()]);
        assert!(clone.join("README.md").exists() || clone.join("functional-test/deployment.yaml").exists());
    }
}

#[test]
fn every_environment_uses_the_head_of_main() {
    let (_folder, created) = sample_in("demo");
    let repository = created.join(CONTROL_PLANE);
    let main = git(&repository, &["rev-parse", "main"]);
    for environment in ["dev", "stage", "prod"] {
        let base = git(&repository, &["show", &format!("{environment}:base-repo.yaml")]);
        assert!(base.contains(&format!("commit: \"{main}\"")), "{base}");
        let described = git(&repository, &["show", &format!("main:.environments/{environment}.yaml")]);
        assert!(described.contains(&format!("branch: {environment}")), "{described}");
    }
}

#[test]
fn the_sources_file_names_every_repository() {
    let (_folder, created) = sample_in("demo");
    let sources = fs::read_to_string(created.join("sources.yaml")).unwrap();
    for name in [CONTROL_PLANE, HELLO, HELLO_GITOPS, GITOPS] {
        let entry = format!("  - repo: {}\n    path: {name}\n", file_url(&created.join(name)));
        assert!(sources.contains(&entry), "{sources}");
    }
}

#[test]
fn the_last_commit_to_dev_adds_one_file() {
    let (_folder, created) = sample_in("demo");
    let changed = git(&created.join(CONTROL_PLANE), &["diff", "--name-status", "dev~1", "dev"]);
    assert_eq!(changed, "A\tconfigs/hello-line-test.yaml");
}

#[test]
fn manifests_stand_where_the_targets_say() {
    let (_folder, created) = sample_in("demo");
    let files = |branch: &str| git(&created.join(HELLO_GITOPS), &["ls-tree", "-r", "--name-only", branch]);
    for environment in &ENVIRONMENTS {
        let listed = files(environment.name);
        for folder in [environment.kubernetes_target, environment.host_target] {
            assert!(listed.contains(&format!("{folder}/")), "{listed}");
            assert!(
                sample::HELLO[1].text.contains(&format!("branch: {}\n        path: ./{folder}\n", environment.name))
            );
        }
    }
    let modes = git(&created.join(HELLO_GITOPS), &["ls-tree", "-r", "dev", "line-test/greet.sh"]);
    assert!(modes.starts_with("100755 "), "{modes}");
}

#[test]
fn a_folder_with_spaces_and_signs_works() {
    let (_folder, created) = sample_in("it's [my] demo: c# #1 100%25 {{x}} ä");
    let workload = git(&created.join(HELLO), &["show", "main:workload/hello.yaml"]);
    let url = workload.lines().find_map(|line| line.trim().strip_prefix("repo: ")).unwrap();
    assert!(url.ends_with("/it%27s %5Bmy%5D demo%3A c%23 %231 100%2525 %7B%7Bx%7D%7D ä/hello-gitops.git"), "{url}");
    let heads = git(&created, &["ls-remote", "--heads", url]);
    assert_eq!(heads.lines().count(), 3);
}

#[test]
fn two_samples_differ_in_places_and_times_only() {
    let (_one, first) = sample_in("demo");
    let (_two, second) = sample_in("demo");
    let tree = |created: &Path| git(&created.join(HELLO_GITOPS), &["rev-parse", "dev^{tree}"]);
    assert_eq!(tree(&first), tree(&second));
}

#[test]
fn an_empty_folder_is_filled_and_stays_the_same_folder() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let before = fs::metadata(folder.path()).unwrap().ino();
    let created = create(folder.path(), Flavour::Whole).unwrap();
    assert_eq!(fs::metadata(folder.path()).unwrap().ino(), before);
    assert_eq!(names_in(&created).len(), entries(Flavour::Whole).len());
}

#[test]
fn a_folder_that_is_not_empty_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine"), "x").unwrap();
    let error = create(folder.path(), Flavour::Whole).unwrap_err();
    assert!(matches!(error, InitError::NotEmpty { .. }), "{error}");
    assert!(error.to_string().ends_with("exists and isn't empty"));
    assert!(error.hint().unwrap().contains("folder that doesn't exist yet"));
    assert_eq!(names_in(folder.path()), ["mine"]);
}

#[test]
fn a_file_and_a_missing_parent_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(matches!(create(&file, Flavour::Whole).unwrap_err(), InitError::NotAFolder { .. }));
    assert!(create(&file.join("below"), Flavour::Whole).is_err());
    let error = create(&folder.path().join("no such/demo"), Flavour::Whole).unwrap_err();
    assert!(error.hint().unwrap().contains("mkdir -p '"), "{error}: {:?}", error.hint());
    assert_eq!(names_in(folder.path()), ["file"]);
}

#[test]
fn a_parent_that_cannot_be_written_is_refused() {
    // Even root can't make a folder there.
    let error = create(Path::new("/proc/kedge-demo"), Flavour::Whole).unwrap_err();
    assert!(matches!(error, InitError::ParentNotWritable { .. }), "{error}");
}

#[test]
fn a_failure_on_the_way_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("demo");
    let place = Place::prepare(&target).unwrap();
    fs::create_dir(place.staging().join("half")).unwrap();
    drop(place);
    assert_eq!(names_in(folder.path()), Vec::<String>::new());

    let place = Place::prepare(&target).unwrap();
    fs::write(place.staging().join("whole"), "x").unwrap();
    fs::create_dir_all(target.join("somebody else's")).unwrap();
    assert!(place.finish().is_err());
    assert_eq!(names_in(folder.path()), ["demo"]);
    assert_eq!(names_in(&target), ["somebody else's"]);
}

#[test]
fn the_readme_lists_the_commands_for_a_reader_inside() {
    let (_folder, created) = sample_in("demo");
    let readme = fs::read_to_string(created.join("README.md")).unwrap();
    assert!(readme.contains("\n    kedge validate --control-plane control-plane.git --sources sources.yaml\n"));
    assert!(!readme.contains('@'), "{readme}");
}

#[test]
fn with_files_only_every_type_is_a_host_and_every_workload_has_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let created = create(&folder.path().join("demo"), Flavour::FilesOnly).unwrap();
    let mut expected: Vec<&str> = entries(Flavour::FilesOnly).iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    assert_eq!(names_in(&created), expected);
    for environment in &ENVIRONMENTS {
        let types = git(&created.join(CONTROL_PLANE), &["grep", "-h", "reconciler: ", environment.name]);
        assert_eq!(types, ["  reconciler: kedge-host"; 3].join("\n"), "{}", environment.name);
        for repository in [HELLO_GITOPS, BEACON_GITOPS] {
            let listed = git(&created.join(repository), &["ls-tree", "-r", "--name-only", environment.name]);
            assert!(listed.contains("/host-workload.yaml") && !listed.contains("kustomization"), "{listed}");
            for file in listed.lines().filter(|file| file.ends_with("host-workload.yaml")) {
                let text = git(&created.join(repository), &["show", &format!("{}:{file}", environment.name)]);
                assert!(!text.contains("debs:") && !text.contains("units:") && !text.contains('@'), "{text}");
            }
        }
    }
    for name in [CONTROL_PLANE, HELLO, HELLO_GITOPS, BEACON, BEACON_GITOPS, GITOPS] {
        git(&created.join(name), &["fsck", "--strict", "--no-dangling"]);
    }
}
