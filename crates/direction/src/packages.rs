//! A family of packages and who of them depends on whom, from their manifests.

use std::io;
use std::path::Path;

use crate::{Edge, Graph};

/// Packages by name, each with its folder. Dependencies on others aren't looked at, nor those of tests and examples.
pub fn read_packages(packages: &[(&str, &Path)]) -> io::Result<Graph> {
    let mut graph = Graph { nodes: packages.iter().map(|(name, _)| (*name).to_owned()).collect(), edges: Vec::new() };
    for (name, folder) in packages {
        let file = folder.join("Cargo.toml");
        let manifest = std::fs::read_to_string(&file)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
        for (to, line) in dependencies(&manifest) {
            if graph.nodes.contains(to) {
                graph.edges.push(Edge { from: (*name).to_owned(), to: to.to_owned(), file: file.clone(), line });
            }
        }
    }
    Ok(graph)
}

/// Names of `[dependencies]` and those of targets, with their lines.
fn dependencies(manifest: &str) -> Vec<(&str, usize)> {
    let (mut found, mut counts) = (Vec::new(), false);
    for (at, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            counts = section.trim_end_matches(']').ends_with("dependencies") && !section.contains("-dependencies");
            continue;
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if counts && !name.is_empty() && !name.starts_with('#') {
            found.push((name, at + 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_tests_do_not_count() {
        let manifest = "[package]\nname = \"a\"\n\n[dependencies]\nb.workspace = true\n# c\nd = \"1\"\n\n\
            [dev-dependencies]\ne.workspace = true\n\n[target.'cfg(unix)'.dependencies]\nf = { path = \"f\" }\n";
        assert_eq!(dependencies(manifest), [("b", 5), ("d", 7), ("f", 13)]);
    }
}
