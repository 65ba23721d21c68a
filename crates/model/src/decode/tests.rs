//! Each rule by its message: what a person would read.

mod file;
mod header;
mod host;
mod pin;
mod promotion;
mod spec;
mod tenant;

use std::sync::Arc;

use super::{Decoded, Options, objects};
use crate::{Object, Origin, Problem, Source, Spec};

fn file() -> Origin {
    let source = Source { repo: "folder".into(), revision: None };
    Origin { source: Arc::new(source), file: "a.yaml".into(), line: 0, column: 0 }
}

fn decode(text: &str) -> Decoded {
    objects(text.as_bytes(), &file(), &Options::default())
}

fn decode_application(text: &str) -> Decoded {
    objects(text.as_bytes(), &file(), &Options { application: Some("hello".into()), ..Options::default() })
}

/// The only object of a text without problems.
fn only(text: &str) -> Object {
    let decoded = decode(text);
    assert_eq!(said(&decoded.problems), Vec::<String>::new());
    assert_eq!(decoded.objects.len(), 1);
    decoded.objects.into_iter().next().unwrap()
}

/// `line:column code: message | hint` of each problem, errors marked.
fn said(problems: &[Problem]) -> Vec<String> {
    let say = |problem: &Problem| {
        let origin = problem.origin.as_ref().unwrap();
        let mark = if problem.is_error() { "!" } else { "" };
        let hint = problem.hint.as_ref().map(|hint| format!(" | {hint}")).unwrap_or_default();
        format!("{}:{} {mark}{}: {}{hint}", origin.line, origin.column, problem.code, problem.message)
    };
    problems.iter().map(say).collect()
}

/// Problems of a text that makes one broken object and nothing else.
fn broken(text: &str) -> Vec<String> {
    let decoded = decode(text);
    assert_eq!(decoded.objects, Vec::new());
    assert_eq!(decoded.broken.len(), 1, "{:#?}", decoded.broken);
    assert!(decoded.broken[0].problem.is_error());
    said(&decoded.problems)
}

/// An object of a kind with this spec, whose first line is the fifth.
fn kalypso(kind: &str, spec: &str) -> String {
    format!("apiVersion: scheduler.kalypso.io/v1alpha1\nkind: {kind}\nmetadata: {{name: x}}\nspec:\n{spec}")
}

fn kedge(kind: &str, spec: &str) -> String {
    kalypso(kind, spec).replace("scheduler.kalypso.io", "kedge.dev")
}

fn spec_of(text: &str) -> Spec {
    only(text).spec
}
