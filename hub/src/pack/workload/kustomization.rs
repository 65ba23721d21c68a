//! A `kustomization.yaml` that only lists resources, which needs no program. Pure.

use kedge_goyaml::{Limits, Node, node};
use kedge_model::{Origin, Problem};

use super::loads::is_remote;
use crate::pack::fault::Fault;

/// Names under which kustomize finds the file, in its order.
pub const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// What a file asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kustomization {
    /// Files and folders below it, in order.
    Resources(Vec<String>),
    /// Anything else: for the program.
    Other,
}

/// More than anybody lists.
const MAX_RESOURCES: usize = 10_000;

pub(in crate::pack) fn read(bytes: &[u8], file: &Origin) -> Result<Kustomization, Fault> {
    let documents = node::parse_bytes(bytes, &Limits::default()).map_err(|error| {
        let message = format!("the kustomization can't be read as YAML: {}", error.message);
        Fault::of(Problem::error("NotYaml", message).at(file.at(error.line, error.column)))
    })?;
    let [document] = documents.as_slice() else { return Ok(Kustomization::Other) };
    let Some(entries) = document.entries() else { return Ok(Kustomization::Other) };
    let only_lists = entries
        .iter()
        .all(|(key, _)| key.text().is_some_and(|key| matches!(key, "apiVersion" | "kind" | "metadata" | "resources")));
    let Some(resources) = document.get("resources").and_then(Node::items).filter(|_| only_lists) else {
        return Ok(Kustomization::Other);
    };
    if resources.len() > MAX_RESOURCES {
        let message = format!("the kustomization lists {} resources, more than {MAX_RESOURCES}", resources.len());
        return Err(Fault::of(Problem::error("PackageTooLarge", message).at(file.clone())));
    }
    let mut paths = Vec::new();
    for resource in resources {
        let Some(path) = resource.text() else { return Ok(Kustomization::Other) };
        if is_remote(path) {
            let message = format!("the resource `{}` is not in the repository", path.escape_debug());
            return Err(Fault::of(
                Problem::error("RemoteResource", message)
                    .at(file.at(resource.line, resource.column))
                    .hint("copy it into the repository: packages are made without network"),
            ));
        }
        match inside(path) {
            Some(path) => paths.push(path),
            // `../base` is kustomize's own way; it is for the program.
            None => return Ok(Kustomization::Other),
        }
    }
    Ok(Kustomization::Resources(paths))
}

/// The path without `.`; none when it leaves the folder.
fn inside(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let fits = !path.starts_with('/') && !parts.is_empty() && !parts.contains(&"..");
    fits.then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::platform::origin;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Kustomization, Vec<Problem>> {
        read(text.as_bytes(), &origin("r", "b", "c", "kustomization.yaml")).map_err(|fault| match fault {
            Fault::Quarantine(problems) => problems,
            Fault::Failed(error) => panic!("{error}"),
        })
    }

    #[test]
    fn a_list_of_resources_is_read_natively() {
        let text =
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - a.yaml\n  - ./b/\n";
        assert_eq!(parse(text).unwrap(), Kustomization::Resources(vec!["a.yaml".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn anything_else_is_for_the_program() {
        for text in [
            "resources: [a.yaml]\nnamePrefix: x-\n",
            "resources: [../base]\n",
            "resources: [/etc]\n",
            "bases: [a]\n",
            "",
            "resources: [{a: b}]",
        ] {
            assert_eq!(parse(text).unwrap(), Kustomization::Other, "{text}");
        }
    }

    #[test]
    fn a_remote_resource_is_refused_by_name() {
        for path in [
            "https://evil.example/x.yaml",
            "github.com/o/r//x",
            "git@h:o/r",
            "git::ssh://h/r",
            "h.example/o/r?ref=main",
        ] {
            let problem = parse(&format!("resources: [\"{path}\"]\n")).unwrap_err().remove(0);
            assert_eq!(problem.code, "RemoteResource");
            assert!(problem.message.contains(path));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in any::<Vec<u8>>(), path in "\\PC{0,60}") {
            let file = origin("r", "b", "c", "k");
            let _ = read(&bytes, &file);
            if let Ok(Kustomization::Resources(paths)) = read(format!("resources:\n- {path:?}\n").as_bytes(), &file) {
                prop_assert!(paths.iter().all(|path| !path.starts_with('/') && !path.split('/').any(|part| part == "..")));
            }
        }
    }
}
