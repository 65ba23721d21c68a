//! The files of the sample platform, as they stand in `cli/sample/`, and the words in them that only the place where
//! it is made knows. Read by `init`.

/// A file of a branch.
#[derive(Clone, Copy, Debug)]
pub struct SampleFile {
    pub path: &'static str,
    pub text: &'static str,
}

/// An environment and what differs in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Environment {
    pub name: &'static str,
    /// Files of its control-plane branch that the other environments don't have.
    pub files: &'static [SampleFile],
    /// What its second commit adds, so that there is a change to look at.
    pub later: &'static [SampleFile],
    pub kubernetes_target: &'static str,
    pub host_target: &'static str,
}

/// Which sample is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Kubernetes clusters, and Debian hosts with debs and units.
    Whole,
    /// Plain hosts with files only, and a second application: agents below folders can play all of it without root.
    FilesOnly,
}

/// What the words between `@` stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    /// The URL of the folder that holds the repositories.
    pub url: String,
    /// The head of the control plane's `main`.
    pub main: String,
    pub environment: &'static str,
    pub target: &'static str,
}

macro_rules! files {
    ($folder:literal: $($path:literal),+ $(,)?) => {
        &[$(SampleFile { path: $path, text: include_str!(concat!("../../sample/", $folder, "/", $path)) }),+]
    };
}

pub(super) const README: &str = include_str!("../../sample/README.md");
pub(super) const SOURCES: &str = include_str!("../../sample/sources.yaml");
/// On main, once for each environment.
pub(super) const ENVIRONMENT: &str = include_str!("../../sample/control-plane/environment.yaml");

pub(super) const CONTROL_PLANE_MAIN: &[SampleFile] = files!("control-plane/main":
    "README.md",
    "capabilities/accelerators.yaml",
    "configs/common.yaml",
    "configs/hello-host.yaml",
    "configs/hello-schema.yaml",
    "configs/hello.yaml",
    "promotion-policy.yaml",
    "templates/configmap.yaml",
    "templates/env.yaml",
    "templates/kedge-host-namespace.yaml",
    "templates/kedge-host.yaml",
    "templates/kedge-namespace.yaml",
    "templates/kedge.yaml",
    "workloads/hello.yaml",
);

/// On the branch of every environment.
pub(super) const CONTROL_PLANE_ENVIRONMENT: &[SampleFile] = files!("control-plane/environment":
    "base-repo.yaml",
    "cluster-types/north/drone/cluster-type.yaml",
    "cluster-types/north/drone/config.yaml",
    "cluster-types/north/region.yaml",
    "cluster-types/south/factory-line/cluster-type.yaml",
    "cluster-types/south/factory-line/config.yaml",
    "cluster-types/south/large/cluster-type.yaml",
    "cluster-types/south/large/config.yaml",
    "cluster-types/south/region.yaml",
    "gitops-repo.yaml",
    "scheduling/lines.yaml",
);

pub(super) const ENVIRONMENTS: [Environment; 3] = [
    Environment {
        name: "dev",
        files: files!("control-plane/dev": "configs/environment.yaml", "scheduling/functional-test.yaml"),
        later: files!("control-plane/dev-later": "configs/hello-line-test.yaml"),
        kubernetes_target: "functional-test",
        host_target: "line-test",
    },
    Environment {
        name: "stage",
        files: files!("control-plane/stage": "configs/environment.yaml", "scheduling/uat.yaml"),
        later: &[],
        kubernetes_target: "uat",
        host_target: "line-uat",
    },
    Environment {
        name: "prod",
        files: files!("control-plane/prod": "configs/environment.yaml", "scheduling/edge.yaml"),
        later: &[],
        kubernetes_target: "edge",
        host_target: "line",
    },
];

pub(super) const HELLO: &[SampleFile] = files!("hello": "README.md", "workload/hello.yaml");
pub(super) const HELLO_KUBERNETES: &[SampleFile] =
    files!("hello-gitops/kubernetes": "deployment.yaml", "kustomization.yaml", "service.yaml");
pub(super) const HELLO_HOST: &[SampleFile] =
    files!("hello-gitops/host": "greet.sh", "hello.service", "host-workload.yaml");
pub(super) const GITOPS: &[SampleFile] = files!("gitops": "README.md");

/// What is other with files only, by the same paths; and what is there only then.
pub(super) mod files_only {
    use super::SampleFile;

    pub const README: &str = include_str!("../../sample/files-only/README.md");
    pub const SOURCES: &str = include_str!("../../sample/files-only/sources.yaml");
    pub const MAIN: &[SampleFile] = files!("files-only/main":
        "configs/beacon.yaml",
        "promotion-policy.yaml",
        "templates/kedge-host.yaml",
        "workloads/beacon.yaml",
    );
    pub const ENVIRONMENT: &[SampleFile] = files!("files-only/environment":
        "cluster-types/north/drone/cluster-type.yaml",
        "cluster-types/south/large/cluster-type.yaml",
        "scheduling/everywhere.yaml",
    );
    /// In the order of the environments.
    pub const OF_EACH: [&[SampleFile]; 3] = [
        files!("files-only/dev": "scheduling/functional-test.yaml"),
        files!("files-only/stage": "scheduling/uat.yaml"),
        files!("files-only/prod": "scheduling/edge.yaml"),
    ];
    pub const HELLO: &[SampleFile] = files!("files-only/hello": "workload/hello.yaml");
    pub const HELLO_HOST: &[SampleFile] =
        files!("files-only/hello-gitops/host": "check.sh", "greeting", "host-workload.yaml");
    pub const BEACON: &[SampleFile] = files!("files-only/beacon": "README.md", "workload/beacon.yaml");
    pub const BEACON_HOST: &[SampleFile] = files!("files-only/beacon-gitops/host": "beacon.conf", "host-workload.yaml");
}

impl Flavour {
    pub(super) fn readme(self) -> &'static str {
        match self {
            Flavour::Whole => README,
            Flavour::FilesOnly => files_only::README,
        }
    }

    pub(super) fn sources(self) -> &'static str {
        match self {
            Flavour::Whole => SOURCES,
            Flavour::FilesOnly => files_only::SOURCES,
        }
    }

    pub fn control_plane_main(self) -> Vec<SampleFile> {
        self.laid_over(CONTROL_PLANE_MAIN, files_only::MAIN)
    }

    /// The files of an environment's branch, by its place in `ENVIRONMENTS`.
    pub fn control_plane_environment(self, at: usize) -> Vec<SampleFile> {
        let mut files = self.laid_over(CONTROL_PLANE_ENVIRONMENT, files_only::ENVIRONMENT);
        let of_it = ENVIRONMENTS.get(at).map_or(&[][..], |environment| environment.files);
        files.extend(self.laid_over(of_it, files_only::OF_EACH.get(at).copied().unwrap_or_default()));
        files
    }

    pub fn hello(self) -> Vec<SampleFile> {
        self.laid_over(HELLO, files_only::HELLO)
    }

    /// The manifests of a target that is for Kubernetes in the whole sample.
    pub fn hello_kubernetes(self) -> &'static [SampleFile] {
        match self {
            Flavour::Whole => HELLO_KUBERNETES,
            Flavour::FilesOnly => files_only::HELLO_HOST,
        }
    }

    pub fn hello_host(self) -> &'static [SampleFile] {
        match self {
            Flavour::Whole => HELLO_HOST,
            Flavour::FilesOnly => files_only::HELLO_HOST,
        }
    }

    /// The files with those of the same path replaced, and the further ones.
    fn laid_over(self, files: &[SampleFile], over: &[SampleFile]) -> Vec<SampleFile> {
        let over = match self {
            Flavour::Whole => &[],
            Flavour::FilesOnly => over,
        };
        let kept = files.iter().filter(|file| over.iter().all(|other| other.path != file.path));
        kept.chain(over).copied().collect()
    }
}

impl Words {
    pub fn fill(&self, text: &str) -> String {
        text.replace("@URL@", &self.url)
            .replace("@MAIN@", &self.main)
            .replace("@ENVIRONMENT@", self.environment)
            .replace("@TARGET@", self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    fn every_text() -> Vec<&'static str> {
        let mut texts = vec![README, SOURCES, ENVIRONMENT, files_only::README, files_only::SOURCES];
        let lists = [CONTROL_PLANE_MAIN, CONTROL_PLANE_ENVIRONMENT, HELLO, HELLO_KUBERNETES, HELLO_HOST, GITOPS]
            .into_iter()
            .chain([files_only::MAIN, files_only::ENVIRONMENT, files_only::HELLO, files_only::HELLO_HOST])
            .chain([files_only::BEACON, files_only::BEACON_HOST])
            .chain(files_only::OF_EACH);
        let environments = ENVIRONMENTS.iter().flat_map(|environment| [environment.files, environment.later]);
        texts.extend(lists.chain(environments).flatten().map(|file| file.text));
        texts
    }

    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }

    #[test]
    fn every_file_of_the_sample_folder_is_embedded() {
        let mut found = Vec::new();
        walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("sample"), &mut found);
        let embedded: BTreeSet<&str> = every_text().into_iter().collect();
        for path in &found {
            assert!(embedded.contains(std::fs::read_to_string(path).unwrap().as_str()), "{} isn't", path.display());
        }
        assert_eq!(found.len(), every_text().len());
    }

    #[test]
    fn every_yaml_file_begins_with_what_it_is_for() {
        for text in every_text().into_iter().filter(|text| text.contains("\nkind: ") || text.contains("\nsources:")) {
            let first = text.lines().next().unwrap();
            assert!(first.starts_with("# ") && first.ends_with('.') && first.len() <= 120, "{first}");
        }
    }

    #[test]
    fn no_word_is_left_unfilled() {
        let words = Words { url: "file:///x".into(), main: "0".repeat(40), environment: "dev", target: "line-test" };
        for text in every_text().into_iter().filter(|text| ![README, files_only::README].contains(text)) {
            assert!(!words.fill(text).contains('@'), "{text}");
        }
    }
}
