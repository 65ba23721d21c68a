//! The top-level modules of a package and who of them uses whom, from its `src` folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::source::{SourceFile, read_source};
use crate::{Edge, Graph};

/// Follows the modules from `lib.rs`. The root itself may use them all.
pub fn read_modules(src: &Path) -> io::Result<Graph> {
    let root = read(&src.join("lib.rs"), 0)?;
    let mut graph =
        Graph { nodes: root.declared.iter().filter_map(|path| path.first().cloned()).collect(), edges: Vec::new() };
    // What the root exports belongs to the module that it comes from.
    let exports: BTreeMap<&str, &str> =
        root.used.iter().map(|(module, name)| (name.as_str(), module.as_str())).collect();
    for module in graph.nodes.clone() {
        let mut waiting = vec![vec![module.clone()]];
        while let Some(path) = waiting.pop() {
            let file = file_of(src, &path);
            let source = read(&file, path.len())?;
            for (name, line) in source.named {
                let to = match graph.nodes.contains(&name) {
                    true => name.as_str(),
                    false => exports.get(name.as_str()).copied().unwrap_or_default(),
                };
                if to != module && graph.nodes.contains(to) {
                    graph.edges.push(Edge { from: module.clone(), to: to.to_owned(), file: file.clone(), line });
                }
            }
            waiting.extend(source.declared.into_iter().map(|below| path.iter().cloned().chain(below).collect()));
        }
    }
    graph.edges.sort();
    Ok(graph)
}

fn file_of(src: &Path, path: &[String]) -> PathBuf {
    let folder = path.iter().fold(src.to_owned(), |folder, name| folder.join(name));
    let file = folder.with_extension("rs");
    if file.exists() { file } else { folder.join("mod.rs") }
}

fn read(file: &Path, depth: usize) -> io::Result<SourceFile> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    Ok(read_source(&text, depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This package is small and has one direction.
    #[test]
    fn a_package_is_read_from_its_root() {
        let graph = read_modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
        assert_eq!(graph.nodes.iter().collect::<Vec<_>>(), ["modules", "packages", "source", "tokens"]);
        let edges: Vec<(&str, &str)> = graph.edges.iter().map(|edge| (&*edge.from, &*edge.to)).collect();
        assert_eq!(edges, [("modules", "source"), ("source", "tokens")]);
    }
}
