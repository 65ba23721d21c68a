//! The sample platform of the real `kedge init`, moved to a Git server: every URL in it names the server. The platform team
//! and the application team change it through their checkouts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::kedge::Kedge;
use crate::lab::git::Checkout;
use crate::lab::git_server::GitServer;

pub const REPOSITORIES: [&str; 4] = ["control-plane", "hello", "hello-gitops", "gitops"];
pub const ENVIRONMENTS: [&str; 3] = ["dev", "stage", "prod"];
pub const CLUSTER_TYPES: [&str; 3] = ["drone", "factory-line", "large"];

/// The teams' checkouts of the sample.
#[derive(Debug)]
pub struct Sample {
    /// The platform team's: `main` and a branch for each environment.
    pub control_plane: Checkout,
    /// The application team's Workload.
    pub hello: Checkout,
    /// The application's manifests.
    pub hello_gitops: Checkout,
    /// A reader's clone of what the hub publishes.
    pub gitops: Checkout,
    _folder: TempDir,
}

impl Sample {
    /// Creates the repositories and pushes the sample to them.
    pub fn on_server(git: &GitServer) -> Option<Sample> {
        for name in REPOSITORIES {
            git.create(name);
        }
        // Through the folder: that is quicker, and no webhook hears of it.
        let sample = Sample::pushed_to(&|name| git.path(name).display().to_string(), &|name| git.url(name))?;
        let checkouts = [&sample.control_plane, &sample.hello, &sample.hello_gitops, &sample.gitops];
        for (checkout, name) in checkouts.into_iter().zip(REPOSITORIES) {
            checkout.git(["remote", "set-url", "origin", &git.url_with_login(name)]);
        }
        Some(sample)
    }

    /// Pushes the sample to `push_url` of each repository, with `url` of each in its YAML.
    pub fn pushed_to(push_url: &dyn Fn(&str) -> String, url: &dyn Fn(&str) -> String) -> Option<Sample> {
        let folder = tempfile::Builder::new().prefix("kedge-sample-").tempdir().unwrap();
        let made = folder.path().join("demo");
        Kedge::new("")?.run(["init", made.to_str().expect("a plain path")]);
        let sources = fs::read_to_string(made.join("sources.yaml")).unwrap();
        let first = sources.lines().find_map(|line| line.trim().strip_prefix("- repo: ")).expect("it names one");
        let old = first.trim_end_matches("/control-plane.git").to_owned();
        let moved = |text: String| {
            let text =
                REPOSITORIES.iter().fold(text, |text, name| text.replace(&format!("{old}/{name}.git"), &url(name)));
            // The repositories of the lab have no owner in common.
            match text.contains("kind: WorkloadRegistration") {
                true => text.replacen("\nspec:\n", &format!("\nspec:\n  sources: [{:?}]\n", url("hello-gitops")), 1),
                false => text,
            }
        };
        let control_plane = clone_all(&made, "control-plane", &push_url("control-plane"));
        let was = control_plane.head("main");
        rewrite(&control_plane, "main", &moved);
        let main = control_plane.head("main");
        for environment in ENVIRONMENTS {
            rewrite(&control_plane, environment, &|text| moved(text).replace(&was, &main));
        }
        let hello = clone_all(&made, "hello", &push_url("hello"));
        rewrite(&hello, "main", &moved);
        let (hello_gitops, gitops) = (
            clone_all(&made, "hello-gitops", &push_url("hello-gitops")),
            clone_all(&made, "gitops", &push_url("gitops")),
        );
        for environment in ENVIRONMENTS {
            hello_gitops.switch(environment);
            hello_gitops.push(environment);
            gitops.switch(environment);
            gitops.push(environment);
        }
        for checkout in [&control_plane, &hello_gitops, &gitops] {
            checkout.switch("dev");
        }
        Some(Sample { control_plane, hello, hello_gitops, gitops, _folder: folder })
    }

    /// Replaces a text of the control plane's branch that is there exactly once, and pushes; the commit.
    pub fn edit(&self, branch: &str, file: &str, old: &str, new: &str) -> String {
        self.control_plane.switch(branch);
        edit(&self.control_plane, file, old, new)
    }

    /// One value of the drones in dev: it touches one assignment, `drone/hello-functional-test`.
    pub fn change_drones(&self, name: &str) -> String {
        self.control_plane.switch("dev");
        let file = "cluster-types/north/drone/config.yaml";
        let text = fs::read_to_string(self.control_plane.path(file)).unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with("CLUSTER_NAME:")).expect("it has a name");
        edit(&self.control_plane, file, line, &format!("  CLUSTER_NAME: {name}"))
    }

    /// What `kedge render` writes for the environment's branch as it is on the server.
    pub fn render(&self, kedge: &Kedge, git: &GitServer, environment: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let sources: String = REPOSITORIES
            .iter()
            .map(|name| format!("  - repo: {}\n    path: {}\n", git.url(name), git.path(name).display()))
            .collect();
        let (file, out) = (folder.path().join("sources.yaml"), folder.path().join("out"));
        fs::write(&file, format!("sources:\n{sources}")).unwrap();
        let control_plane = git.path("control-plane");
        let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
        kedge.run(["render", "-e", environment, "-c", &text(&control_plane), "-s", &text(&file), "--out", &text(&out)]);
        let mut files = BTreeMap::new();
        read_folder(&out, &out, &mut files);
        files
    }

    /// Every file of the published branch, and its bytes.
    pub fn published(&self, environment: &str) -> BTreeMap<String, Vec<u8>> {
        self.gitops.fetch();
        let revision = format!("origin/{environment}");
        let read = |file: String| {
            let text = self.gitops.git(["show", &format!("{revision}:{file}")]);
            (file, text.into_bytes())
        };
        self.gitops.files(&revision).into_iter().map(read).collect()
    }
}

/// A checkout of a bare repository with all its branches, that pushes to `url`.
fn clone_all(made: &Path, name: &str, url: &str) -> Checkout {
    let checkout = Checkout::clone(made.join(format!("{name}.git")).to_str().expect("a plain path"));
    let current = checkout.branch();
    for branch in checkout.git(["for-each-ref", "--format=%(refname:lstrip=3)", "refs/remotes/origin"]).lines() {
        if branch != "HEAD" && branch != current {
            checkout.git(["branch", "--quiet", "--no-track", branch, &format!("origin/{branch}")]);
        }
    }
    checkout.git(["remote", "set-url", "origin", url]);
    checkout
}

/// Changes every file of a branch and pushes it. The policy stays behind: environments follow their head, unless a test brings
/// its own.
fn rewrite(checkout: &Checkout, branch: &str, change: &dyn Fn(String) -> String) {
    checkout.switch(branch);
    for file in checkout.files("HEAD") {
        let text = fs::read_to_string(checkout.path(&file)).unwrap();
        if text.lines().any(|line| line == "kind: PromotionPolicy") {
            checkout.remove(&file);
        } else {
            fs::write(checkout.path(&file), change(text)).unwrap();
        }
    }
    checkout.commit("Move to the server");
    checkout.push(branch);
}

/// Replaces a text that is there exactly once, and pushes; the commit.
pub fn edit(checkout: &Checkout, file: &str, old: &str, new: &str) -> String {
    let text = fs::read_to_string(checkout.path(file)).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{file}: {old}");
    checkout.change(file, &text.replace(old, new))
}

fn read_folder(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_folder(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("below it").to_str().expect("a plain path").to_owned();
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}
