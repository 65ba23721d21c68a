//! What a kustomization makes kustomize load: only files and folders of the same source. Everything that the rendered folder
//! leads to is looked at, as kustomize would read it. Pure; the sandbox is the wall behind it, this says what is wrong.

use std::collections::BTreeSet;

use kedge_goyaml::{Limits, Node, NodeValue, node};
use kedge_model::{Origin, Problem};

use super::kustomization;
use crate::pack::archive::Contents;
use crate::pack::fault::Fault;

/// Lists of references, or of texts in their place.
const LISTS: [&str; 9] = [
    "resources",
    "components",
    "bases",
    "crds",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "patchesstrategicmerge",
];

/// Fields with keys inside that are references.
const INNER: [(&str, &[&str]); 9] = [
    ("patches", &["path"]),
    ("patchesjson6902", &["path"]),
    ("replacements", &["path"]),
    ("configmapgenerator", &["files", "envs", "env"]),
    ("secretgenerator", &["files", "envs", "env"]),
    ("openapi", &["path"]),
    ("helmglobals", &["charthome", "confighome"]),
    ("helmcharts", &["repo", "valuesfile", "additionalvaluesfiles", "charthome", "name"]),
    ("helmchartinflationgenerator", &["chartrepourl", "values", "charthome", "helmbin", "helmhome", "chartname"]),
];

/// The same in the configuration of a builtin generator or transformer.
const PLUGIN: [&str; 16] = [
    "path",
    "paths",
    "files",
    "envs",
    "env",
    "repo",
    "valuesfile",
    "additionalvaluesfiles",
    "charthome",
    "confighome",
    "chartrepourl",
    "values",
    "helmbin",
    "helmhome",
    "resources",
    "bases",
];

/// More kustomizations than one source leads through.
const MAX_FOLDERS: usize = 1000;

/// What one file refers to.
#[derive(Debug, Default)]
struct References<'n> {
    found: Vec<&'n Node>,
    /// YAML in place of a reference.
    inline: Vec<&'n Node>,
}

/// Why the packer wouldn't give this folder to kustomize; none when all that it leads to is in the source.
pub fn problems(files: &Contents, folder: &str, origin: &Origin) -> Vec<Problem> {
    match check(files, folder, origin) {
        Err(Fault::Quarantine(problems)) => problems,
        Ok(()) | Err(Fault::Failed(_)) => Vec::new(),
    }
}

/// Whether all that the folder leads to is in the source.
pub(in crate::pack) fn check(files: &Contents, folder: &str, origin: &Origin) -> Result<(), Fault> {
    let folders: BTreeSet<&str> = files.files().keys().flat_map(|path| parents(path)).collect();
    let mut left = vec![folder.trim_matches('/').to_owned()];
    let mut seen: BTreeSet<String> = BTreeSet::new();
    while let Some(folder) = left.pop() {
        if !seen.insert(folder.clone()) {
            continue;
        }
        if seen.len() > MAX_FOLDERS {
            let message = format!("the kustomization leads through more than {MAX_FOLDERS} folders");
            return Err(Fault::of(Problem::error("PackageTooLarge", message).at(origin.clone())));
        }
        for name in kustomization::NAMES {
            let path = join(&folder, name);
            let Some(file) = files.files().get(&path) else { continue };
            let origin = Origin { file: path.as_str().into(), ..origin.clone() };
            for document in parse(&file.bytes, &origin)? {
                let mut references = References::default();
                references.read(&document);
                references.check(&folder, &origin)?;
                for node in &references.found {
                    let Some(target) = node.text().and_then(|text| resolve(&folder, text)) else { continue };
                    if folders.contains(target.as_str()) || target.is_empty() {
                        left.push(target);
                    } else if let Some(file) = files.files().get(&target) {
                        check_plugins(
                            &file.bytes,
                            &folder,
                            &Origin { file: target.as_str().into(), ..origin.clone() },
                        )?;
                    }
                }
                for node in references.inline {
                    check_plugins(node.text().unwrap_or_default().as_bytes(), &folder, &origin)?;
                }
            }
        }
    }
    Ok(())
}

fn parse(bytes: &[u8], origin: &Origin) -> Result<Vec<Node>, Fault> {
    node::parse_bytes(bytes, &Limits::default()).map_err(|error| {
        let message = format!("the kustomization can't be read as YAML: {}", error.message);
        Fault::of(Problem::error("NotYaml", message).at(origin.at(error.line, error.column)))
    })
}

/// Objects that make kustomize load something. What can't be read here is no such object, or kustomize says so.
fn check_plugins(bytes: &[u8], folder: &str, origin: &Origin) -> Result<(), Fault> {
    let Ok(documents) = node::parse_bytes(bytes, &Limits::default()) else { return Ok(()) };
    for document in &documents {
        let is_plugin =
            entries(document).iter().any(|(key, value)| key == "apiversion" && value.text() == Some("builtin"));
        if is_plugin {
            let mut references = References::default();
            references.gather(document, &PLUGIN, true);
            references.check(folder, origin)?;
        }
    }
    Ok(())
}

impl<'n> References<'n> {
    fn read(&mut self, document: &'n Node) {
        for (key, value) in entries(document) {
            if LISTS.contains(&key.as_str()) {
                self.take(value);
            }
            for (_, keys) in INNER.iter().filter(|(field, _)| *field == key) {
                self.gather(value, keys, false);
            }
        }
    }

    /// The values of these keys, in a map or a list of maps; `deep`: wherever they are.
    fn gather(&mut self, node: &'n Node, keys: &[&str], deep: bool) {
        for item in node.items().unwrap_or_default() {
            self.gather(item, keys, deep);
        }
        for (key, value) in entries(node) {
            if keys.contains(&key.as_str()) {
                self.take(value);
            } else if deep {
                self.gather(value, keys, deep);
            }
        }
    }

    fn take(&mut self, node: &'n Node) {
        match &node.value {
            NodeValue::Scalar { text, .. } if text.contains('\n') => self.inline.push(node),
            NodeValue::Scalar { .. } => self.found.push(node),
            NodeValue::List(items) => items.iter().for_each(|item| self.take(item)),
            NodeValue::Map(_) => {}
        }
    }

    fn check(&self, folder: &str, origin: &Origin) -> Result<(), Fault> {
        for node in &self.found {
            let text = node.text().unwrap_or_default();
            let at = origin.at(node.line, node.column);
            if readings(text).any(is_remote) {
                let message =
                    format!("`{}` is an address, and kustomize loads from the source alone", text.escape_debug());
                let problem = Problem::error("RemoteResource", message).at(at);
                return Err(Fault::of(problem.hint("copy it into the repository: packages are made without network")));
            }
            if readings(text).any(|path| path.starts_with('/')) || leaves(text, folder) {
                let message = format!("`{}` leads out of the repository", text.escape_debug());
                let problem = Problem::error("PathInvalid", message).at(at);
                return Err(Fault::of(
                    problem.hint("name a file or a folder of the same repository, relative to this file"),
                ));
            }
        }
        Ok(())
    }
}

/// Addresses as kustomize knows them: with a scheme, ssh's short form, a query, or a forge's name first.
pub(in crate::pack) fn is_remote(path: &str) -> bool {
    let lower = path.trim().to_lowercase();
    let first = lower.split('/').next().unwrap_or_default();
    lower.contains("://")
        || lower.contains("::")
        || lower.contains('?')
        || first.contains(':')
        || ["github.com", "gitlab.com", "bitbucket.org", "git@"].iter().any(|known| first.starts_with(known))
}

/// A text as a path; and what stands behind each `=`, because `key=path` of a generator is a path too.
fn readings(text: &str) -> impl Iterator<Item = &str> {
    std::iter::once(text).chain(text.match_indices('=').map(|(at, _)| &text[at + 1..]))
}

/// Whether a text, taken as a path from a folder, climbs above the root.
pub(super) fn leaves(text: &str, folder: &str) -> bool {
    readings(text).any(|path| climbs(path, folder))
}

fn climbs(path: &str, folder: &str) -> bool {
    let mut depth = folder.split('/').filter(|part| !part.is_empty()).count();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

/// The path from the root that a text stands for.
fn resolve(folder: &str, text: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The entries of a map by their names as kustomize compares them; what is merged into it is part of it.
fn entries(node: &Node) -> Vec<(String, &Node)> {
    let mut out = Vec::new();
    for (key, value) in node.entries().unwrap_or_default() {
        match key.text().map(folded) {
            Some(key) if key == "<<" => {
                let merged = value.items().map_or(vec![value], |items| items.iter().collect());
                out.extend(merged.into_iter().flat_map(entries));
            }
            Some(key) => out.push((key, value)),
            None => {}
        }
    }
    out
}

/// Go finds a field whatever the case of its key, with the two letters outside of ASCII that fold into it.
fn folded(key: &str) -> String {
    let plain = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    key.chars().map(plain).collect()
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Every folder above a file.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pack::platform::origin;

    fn contents(files: &[(&str, &str)]) -> Contents {
        let mut contents = Contents::default();
        for (path, text) in files {
            contents.add(path, text.as_bytes().to_vec(), false).unwrap();
        }
        contents
    }

    fn code(files: &[(&str, &str)]) -> Option<&'static str> {
        match check(&contents(files), "app", &origin("https://h/r", "main", "c", "app")) {
            Ok(()) => None,
            Err(Fault::Quarantine(problems)) => Some(problems[0].code),
            Err(Fault::Failed(error)) => panic!("{error}"),
        }
    }

    const EVIL: &str = "file:///var/lib/kedge-hub/mirrors/other.git//deploy";

    #[test]
    fn no_field_loads_from_an_address_or_outside_of_the_source() {
        for field in [
            "resources: [X]",
            "components: [X]",
            "bases: [X]",
            "crds: [X]",
            "configurations: [X]",
            "generators: [X]",
            "transformers: [X]",
            "validators: [X]",
            "patchesStrategicMerge: [X]",
            "patches: [{path: X}]",
            "patchesJson6902: [{target: {kind: Pod, name: x}, path: X}]",
            "replacements: [{path: X}]",
            "configMapGenerator: [{name: a, files: [X]}]",
            "configMapGenerator: [{name: a, files: [k=X]}]",
            "configMapGenerator: [{name: a, envs: [X]}]",
            "secretGenerator: [{name: a, env: X}]",
            "openapi: {path: X}",
            "helmCharts: [{name: a, repo: X}]",
            "helmCharts: [{name: a, valuesFile: X}]",
            "helmCharts: [{name: a, additionalValuesFiles: [X]}]",
            "helmGlobals: {chartHome: X}",
            "helmChartInflationGenerator: [{chartName: a, chartRepoUrl: X}]",
            "RESOURCES: [X]",
            "re\u{17f}ources: [X]",
            "resources: [a.yaml]\nResources: [X]",
            "<<: {resources: [X]}",
            "x: &x [X]\nresources: *x",
            "generators: [\"apiVersion: builtin\\nkind: ConfigMapGenerator\\nmetadata: {name: a}\\nfiles: [X]\\n\"]",
        ] {
            for (bad, wanted) in [
                (EVIL, "RemoteResource"),
                ("https://evil.example/x", "RemoteResource"),
                ("git@h:o/r", "RemoteResource"),
                ("github.com/o/r//x", "RemoteResource"),
                ("/etc/shadow", "PathInvalid"),
                ("../../other", "PathInvalid"),
                // Not `key=path` where kustomize reads a path alone.
                ("../../other/a=b", "PathInvalid"),
            ] {
                let text = format!("namePrefix: x-\n{}\n", field.replace('X', bad));
                assert_eq!(code(&[("app/kustomization.yaml", &text)]), Some(wanted), "{text}");
            }
        }
    }

    #[test]
    fn every_file_name_and_every_folder_on_the_way_is_looked_at() {
        let evil = format!("resources: ['{EVIL}']\n");
        for name in kustomization::NAMES {
            assert_eq!(code(&[(&format!("app/{name}"), &evil)]), Some("RemoteResource"), "{name}");
            let files =
                [("app/kustomization.yaml", "components: [../base/./deep]\n"), (&format!("base/deep/{name}"), &evil)];
            assert_eq!(code(&files), Some("RemoteResource"), "{name}");
        }
        let plugin =
            format!("apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: a}}\nenvs: ['{EVIL}']\n");
        let files = [
            ("app/kustomization.yaml", "generators: [gen]\n"),
            ("app/gen/kustomization.yaml", "resources: [g.yaml]\n"),
            ("app/gen/g.yaml", &plugin),
        ];
        assert_eq!(code(&files), Some("RemoteResource"));
        // What nobody leads to is nobody's concern, and what can't be read here isn't given to another reader.
        assert_eq!(code(&[("app/kustomization.yaml", "namePrefix: a\n"), ("other/kustomization.yaml", &evil)]), None);
        assert_eq!(code(&[("app/kustomization.yaml", "a: [\n")]), Some("NotYaml"));
    }

    #[test]
    fn literals_and_texts_are_free() {
        let text = "namePrefix: x-\nresources: [../base, a.yaml]\ncommonAnnotations: {see: 'https://docs.example/../../x'}\nconfigMapGenerator:\n- name: a\n  literals: ['URL=https://h/x', 'UP=../../../x', ROOT=/etc]\n  files: [k=conf/a.txt]\npatches:\n- patch: |-\n    - op: add\n      path: /metadata/annotations/x\n      value: https://h/x\nimages: [{name: x, newName: 'h:5000/x'}]\n";
        let files = [("app/kustomization.yaml", text), ("base/kustomization.yaml", "resources: [b.yaml]\n")];
        assert_eq!(code(&files), None);
    }

    #[test]
    fn a_path_that_climbs_above_the_root_leaves() {
        for (folder, text, out) in [
            ("overlays/dev", "../../base", false),
            ("overlays/dev", "../../../etc", true),
            ("", "..", true),
            ("a", "name=../../x", true),
            ("a", "../b/../../c", true),
            ("a/b", "x/../../../d", false),
        ] {
            assert_eq!(leaves(text, folder), out, "{folder} {text}");
        }
    }

    proptest! {
        #[test]
        fn no_kustomization_panics(text in "\\PC{0,200}", path in "[a-z./=:@?\\n-]{0,30}") {
            let _ = code(&[("app/kustomization.yaml", &text)]);
            let _ = code(&[("app/kustomization.yaml", &format!("resources: [{path:?}]\npatches: [{{path: {path:?}}}]\n"))]);
        }
    }
}
