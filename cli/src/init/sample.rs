//! The files of the sample platform, as they stand in `cli/sample/`, and the words in them that only the place where
//! it is made knows. Read by `init`.

/// A file of a branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleFile {
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
        let mut texts = vec![README, SOURCES, ENVIRONMENT];
        let lists = [CONTROL_PLANE_MAIN, CONTROL_PLANE_ENVIRONMENT, HELLO, HELLO_KUBERNETES, HELLO_HOST, GITOPS];
        let environments = ENVIRONMENTS.iter().flat_map(|environment| [environment.files, environment.later]);
        texts.extend(lists.into_iter().chain(environments).flatten().map(|file| file.text));
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
        for text in every_text().into_iter().filter(|text| *text != README) {
            assert!(!words.fill(text).contains('@'), "{text}");
        }
    }
}
