//! The examples of the reference are read by the code that it describes.

use std::sync::Arc;
use std::{fs, path::Path};

use kedge_model::decode::{self, Options};
use kedge_model::{Kind, Origin, Source};

/// The text of each block of YAML.
fn examples(page: &str) -> Vec<&str> {
    page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Some examples are manifests of a template; any word stands for what it would give.
fn rendered(example: &str) -> String {
    let mut parts = example.split("{{");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "word" + part.split_once("}}").map_or("", |(_, rest)| rest))
}

#[test]
fn examples_of_the_reference_are_read_without_a_problem() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kinds.md");
    let page = fs::read_to_string(page).unwrap();
    let source = Arc::new(Source { repo: "docs".to_owned(), revision: None });
    let file = Origin { source, file: "kinds.md".into(), line: 0, column: 0 };
    let mut kinds = Vec::new();
    for example in examples(&page) {
        let decoded = decode::objects(rendered(example).as_bytes(), &file, &Options::default());
        assert!(decoded.problems.is_empty(), "{example}\n{:#?}", decoded.problems);
        kinds.extend(decoded.objects.iter().map(|object| object.spec.kind()));
    }
    let ours = Kind::ALL.into_iter().filter(|kind| kind.api_version().starts_with("kedge.dev/"));
    for kind in ours {
        assert!(kinds.contains(&kind), "there is no example of a {kind}");
    }
}
