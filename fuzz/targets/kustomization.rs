//! A kustomization of a tenant, with one beside it that it may lead to. What is accepted lists no address and no path out of the
//! source, however the YAML around it is written.

#![no_main]

use kedge_goyaml::{Limits, node};
use kedge_hub::pack::archive::Contents;
use kedge_hub::pack::loads;
use kedge_model::{Origin, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The second file begins after a NUL byte, which no YAML holds.
    let mut files = bytes.splitn(2, |byte| *byte == 0);
    let first = files.next().unwrap_or_default();
    let mut source = Contents::default();
    source.add("app/kustomization.yaml", first.to_vec(), false).expect("a path");
    source.add("base/Kustomization", files.next().unwrap_or_default().to_vec(), false).expect("a path");
    let repository = Source { repo: "https://example.com/app.git".to_owned(), revision: None };
    let origin = Origin { source: repository.into(), file: "app".into(), line: 0, column: 0 };
    if !loads::problems(&source, "app", &origin).is_empty() {
        return;
    }
    let documents = node::parse_bytes(first, &Limits::default()).expect("what is accepted is YAML");
    for document in &documents {
        for (key, value) in document.entries().unwrap_or_default() {
            if !matches!(key.text(), Some("resources" | "components" | "bases" | "crds" | "transformers")) {
                continue;
            }
            for path in value.items().unwrap_or_default().iter().filter_map(|item| item.text()) {
                // A text of several lines is an object in its place.
                let outside = path.starts_with('/') || path.starts_with("../../") || path.contains("://");
                assert!(!outside || path.contains('\n'), "accepted: {path:?}");
            }
        }
    }
});
