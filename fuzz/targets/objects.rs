//! A file of a control plane or of an application repository, as objects.

#![no_main]

use std::sync::Arc;

use kedge_model::decode::{Options, objects};
use kedge_model::{Origin, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let source = Arc::new(Source { repo: "platform".to_owned(), revision: None });
    let file = Origin { source, file: "objects.yaml".into(), line: 0, column: 0 };
    for options in [Options::default(), Options { application: Some("team".to_owned()), ..Options::default() }] {
        let decoded = objects(bytes, &file, &options);
        assert!(decoded.broken.is_empty() || !decoded.problems.is_empty(), "an object is broken and nothing says why");
    }
});
