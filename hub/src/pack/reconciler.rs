//! What an assignment's `reconciler.yaml` asks for: a Delivery is ours, anything else is another reconciler's and is
//! observed. Pure; called by the packer for each folder that it hasn't seen.

use kedge_goyaml::{Limits, Node, node};
use kedge_model::kinds::{Destination, SourceRef};
use kedge_model::wire::{ApplyParameters, ObjectRef};
use kedge_model::{Options, Origin, Problem, Spec, decode};
use serde::{Deserialize, Serialize};

/// Who brings the workload, and from where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    Deliver { source: SourceName, parameters: ApplyParameters },
    Observe { objects: Vec<ObjectRef>, source: Option<SourceName> },
}

/// A place in a repository, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceName {
    pub repo: String,
    pub reference: Reference,
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reference {
    Branch(String),
    Tag(String),
    Commit(String),
}

/// Kubernetes' limit for the name of a namespace.
pub(super) const MAX_NAMESPACE: usize = 63;

/// More objects than a reconciler's file has; a state lists them for every assignment.
const MAX_OBJECTS: usize = 100;

/// What Flux reads when nothing is said.
const FLUX_BRANCH: &str = "master";

pub fn read(bytes: &[u8], file: &Origin) -> Result<Purpose, Vec<Problem>> {
    let documents = node::parse_bytes(bytes, &Limits::default()).map_err(|error| {
        let problem = Problem::error("NotYaml", format!("reconciler.yaml can't be read as YAML: {}", error.message))
            .at(file.at(error.line, error.column));
        vec![match error.hint {
            Some(hint) => problem.hint(hint),
            None => problem.hint("fix the reconciler template of the cluster type"),
        }]
    })?;
    if documents.iter().any(is_delivery) {
        return delivery(bytes, &documents, file);
    }
    let mut objects: Vec<ObjectRef> = documents.iter().flat_map(references).collect();
    objects.sort();
    objects.dedup();
    if objects.len() > MAX_OBJECTS {
        let message =
            format!("reconciler.yaml has {} objects, more than the {MAX_OBJECTS} that are observed", objects.len());
        return Err(vec![Problem::error("TooManyObjects", message).at(file.clone())]);
    }
    Ok(Purpose::Observe { objects, source: observed_source(&documents) })
}

fn delivery(bytes: &[u8], documents: &[Node], file: &Origin) -> Result<Purpose, Vec<Problem>> {
    let decoded = decode::objects(bytes, file, &Options { rendered: true, ..Options::default() });
    let errors: Vec<Problem> = decoded.problems.into_iter().filter(Problem::is_error).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut found = decoded.objects.into_iter().filter_map(|object| match object.spec {
        Spec::Delivery(delivery) => Some((delivery, object.origin)),
        _ => None,
    });
    let (Some((delivery, origin)), None, 1) = (found.next(), found.next(), documents.len()) else {
        let problem = Problem::error("MixedReconciler", "reconciler.yaml holds a Delivery and other objects beside it")
            .at(file.clone())
            .hint("leave the Delivery alone in the reconciler template; what else is needed belongs into the namespace template");
        return Err(vec![problem]);
    };
    if let (Destination::Kubernetes, Some(namespace)) = (delivery.to, &delivery.namespace)
        && namespace.chars().count() > MAX_NAMESPACE
    {
        return Err(vec![namespace_too_long(namespace).at(origin)]);
    }
    let source = SourceName {
        repo: delivery.source.repo.clone(),
        reference: Reference::from(&delivery.source.reference),
        path: delivery.source.path.clone(),
    };
    Ok(Purpose::Deliver { source, parameters: ApplyParameters::from(&delivery) })
}

pub(super) fn namespace_too_long(namespace: &str) -> Problem {
    let message = format!(
        "the namespace `{namespace}` has {} characters and Kubernetes allows {MAX_NAMESPACE}",
        namespace.chars().count()
    );
    Problem::error("NamespaceTooLong", message)
        .hint("shorten the name of the environment, the cluster type, the workload or the target")
}

fn is_delivery(document: &Node) -> bool {
    text(document, &["kind"]) == Some("Delivery")
        && text(document, &["apiVersion"]).is_some_and(|version| version.starts_with("kedge.dev/"))
}

fn references(document: &Node) -> Vec<ObjectRef> {
    if text(document, &["kind"]) == Some("List") {
        let items = document.get("items").and_then(Node::items).unwrap_or_default();
        return items.iter().filter_map(reference).collect();
    }
    reference(document).into_iter().collect()
}

fn reference(document: &Node) -> Option<ObjectRef> {
    let given = |path: &[&str]| text(document, path).filter(|text| !text.is_empty()).map(str::to_owned);
    Some(ObjectRef {
        api_version: given(&["apiVersion"])?,
        kind: given(&["kind"])?,
        namespace: given(&["metadata", "namespace"]),
        name: given(&["metadata", "name"])?,
    })
}

/// Where Flux's GitRepository or Argo CD's Application reads the workload; none when those are several places.
fn observed_source(documents: &[Node]) -> Option<SourceName> {
    let unfolded = documents.iter().flat_map(|document| match text(document, &["kind"]) {
        Some("List") => document.get("items").and_then(Node::items).unwrap_or_default(),
        _ => std::slice::from_ref(document),
    });
    let mut found: Vec<SourceName> = Vec::new();
    for document in unfolded {
        let (Some(version), Some(kind)) = (text(document, &["apiVersion"]), text(document, &["kind"])) else {
            continue;
        };
        let git = match kind {
            "GitRepository" if version.starts_with("source.toolkit.fluxcd.io/") => vec![flux(document)],
            "Application" if version.starts_with("argoproj.io/") => argo_sources(document).map(argo).collect(),
            _ => continue,
        };
        // One that has no commit to know leaves nothing to expect of the whole.
        found.extend(git.into_iter().collect::<Option<Vec<SourceName>>>()?);
    }
    found.dedup();
    match found.as_slice() {
        [source] => Some(source.clone()),
        _ => None,
    }
}

/// In the order in which Flux prefers them. None: what it leads to only Flux can say.
fn flux(document: &Node) -> Option<SourceName> {
    let named = |key: &str| text(document, &["spec", "ref", key]).filter(|text| !text.is_empty());
    let reference = match (named("commit"), named("name"), named("semver"), named("tag"), named("branch")) {
        (Some(commit), ..) => Reference::Commit(commit.to_owned()),
        (_, Some(name), ..) => full_name(name)?,
        (_, _, Some(_), ..) => return None,
        (_, _, _, Some(tag), _) => Reference::Tag(tag.to_owned()),
        (_, _, _, _, branch) => Reference::Branch(branch.unwrap_or(FLUX_BRANCH).to_owned()),
    };
    Some(SourceName { repo: text(document, &["spec", "url"])?.to_owned(), reference, path: String::new() })
}

fn full_name(name: &str) -> Option<Reference> {
    let branch = name.strip_prefix("refs/heads/").map(|branch| Reference::Branch(branch.to_owned()));
    branch.or_else(|| name.strip_prefix("refs/tags/").map(|tag| Reference::Tag(tag.to_owned())))
}

/// Those of an Application that are in Git; a chart of a Helm repository has a version and no commit.
fn argo_sources(document: &Node) -> impl Iterator<Item = &Node> {
    let several = document.get("spec").and_then(|spec| spec.get("sources")).and_then(Node::items).unwrap_or_default();
    let one = document.get("spec").and_then(|spec| spec.get("source"));
    one.into_iter().chain(several).filter(|source| text(source, &["chart"]).is_none())
}

fn argo(source: &Node) -> Option<SourceName> {
    let repo = text(source, &["repoURL"])?.to_owned();
    let revision = text(source, &["targetRevision"]).filter(|revision| !matches!(*revision, "" | "HEAD"))?;
    let is_commit = revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    let reference = match is_commit {
        true => Reference::Commit(revision.to_owned()),
        // A range of versions: only Argo CD knows which one it is.
        false if revision.contains(['*', '<', '>', '=', '^', '~', ' ']) => return None,
        false if is_version(revision) => Reference::Tag(revision.to_owned()),
        false => full_name(revision).unwrap_or_else(|| Reference::Branch(revision.to_owned())),
    };
    Some(SourceName { repo, reference, path: String::new() })
}

/// `1.2.3` or `v1.2.3`, also with what may follow: nobody calls a branch so.
fn is_version(revision: &str) -> bool {
    let numbers: Vec<&str> = revision.trim_start_matches('v').splitn(3, '.').collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    matches!(numbers.as_slice(), [major, minor, patch] if is_number(major) && is_number(minor)
        && patch.starts_with(|letter: char| letter.is_ascii_digit()))
}

pub(super) fn text<'a>(document: &'a Node, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(document, |node, key| node.get(key))?.text()
}

impl From<&SourceName> for super::Origin {
    fn from(source: &SourceName) -> super::Origin {
        let reference = match &source.reference {
            Reference::Branch(name) | Reference::Commit(name) => name.clone(),
            Reference::Tag(name) => format!("refs/tags/{name}"),
        };
        super::Origin { repo: source.repo.clone(), reference, path: source.path.clone() }
    }
}

impl From<&SourceRef> for Reference {
    fn from(reference: &SourceRef) -> Reference {
        match reference {
            SourceRef::Branch(name) => Reference::Branch(name.clone()),
            SourceRef::Tag(name) => Reference::Tag(name.clone()),
            SourceRef::Commit(name) => Reference::Commit(name.clone()),
        }
    }
}

impl From<&Reference> for SourceRef {
    fn from(reference: &Reference) -> SourceRef {
        match reference {
            Reference::Branch(name) => SourceRef::Branch(name.clone()),
            Reference::Tag(name) => SourceRef::Tag(name.clone()),
            Reference::Commit(name) => SourceRef::Commit(name.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use proptest::prelude::*;

    fn origin() -> Origin {
        let source = Arc::new(kedge_model::Source { repo: "r".to_owned(), revision: None });
        Origin { source, file: "drone/hello/reconciler.yaml".into(), line: 0, column: 0 }
    }

    const DELIVERY: &str = "apiVersion: kedge.dev/v1alpha1\nkind: Delivery\nmetadata:\n  name: hello\nspec:\n  source:\n    repo: https://h/hello\n    ref:\n      branch: dev\n    path: hello\n  to: kubernetes\n  namespace: NS\n";

    #[test]
    fn a_delivery_is_ours() {
        let purpose = read(DELIVERY.as_bytes(), &origin()).unwrap();
        let Purpose::Deliver { source, parameters } = purpose else { panic!() };
        assert_eq!(source.reference, Reference::Branch("dev".to_owned()));
        assert_eq!((parameters.namespace.as_deref(), parameters.timeout_seconds), (Some("NS"), 300));
    }

    #[test]
    fn flux_objects_are_observed_with_their_source() {
        let yaml = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  name: hello\n  namespace: flux-system\nspec:\n  url: https://h/hello\n  ref:\n    branch: dev\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: hello\n  namespace: flux-system\nspec: {}\n";
        let Purpose::Observe { objects, source } = read(yaml.as_bytes(), &origin()).unwrap() else { panic!() };
        assert_eq!(objects.len(), 2);
        assert_eq!(objects[0].kind, "Kustomization");
        assert_eq!(source.unwrap().repo, "https://h/hello");
    }

    #[test]
    fn an_argo_application_is_observed_at_its_revision() {
        let yaml = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {source: {repoURL: https://h/a, targetRevision: v1, path: x}}\n";
        let Purpose::Observe { source, .. } = read(yaml.as_bytes(), &origin()).unwrap() else { panic!() };
        assert_eq!(source.unwrap().reference, Reference::Branch("v1".to_owned()));
    }

    fn source_of(yaml: &str) -> Option<SourceName> {
        match read(yaml.as_bytes(), &origin()).unwrap() {
            Purpose::Observe { source, .. } => source,
            other => panic!("{other:?}"),
        }
    }

    fn repository(name: &str, reference: &str) -> String {
        format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: {name}}}\nspec: {{url: https://h/hello{reference}}}\n---\n"
        )
    }

    #[test]
    fn a_source_of_flux_is_read_as_flux_reads_it() {
        let of = |reference: &str| source_of(&repository("a", reference)).map(|source| source.reference);
        assert_eq!(of(""), Some(Reference::Branch("master".to_owned())));
        assert_eq!(of(", ref: {name: refs/heads/prod, branch: dev}"), Some(Reference::Branch("prod".to_owned())));
        assert_eq!(of(", ref: {name: refs/tags/v1}"), Some(Reference::Tag("v1".to_owned())));
        assert_eq!(of(", ref: {tag: v1, branch: dev}"), Some(Reference::Tag("v1".to_owned())));
        assert_eq!(of(", ref: {semver: '>=1.0', tag: v1}"), None);
        assert_eq!(of(", ref: {name: refs/pull/4/head}"), None);
    }

    #[test]
    fn several_places_leave_no_commit_to_expect_and_one_place_twice_does() {
        let (dev, prod) = (", ref: {branch: dev}", ", ref: {branch: prod}");
        assert!(source_of(&(repository("a", dev) + &repository("b", dev))).is_some());
        assert_eq!(source_of(&(repository("a", dev) + &repository("b", prod))), None);
        assert_eq!(source_of(&(repository("a", dev) + &repository("b", ", ref: {semver: '1'}"))), None);
    }

    #[test]
    fn a_chart_is_no_commit_and_the_values_beside_it_are() {
        let application = |sources: &str| {
            source_of(&format!(
                "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: a}}\nspec: {{{sources}}}\n"
            ))
        };
        let chart = "{repoURL: https://charts/x, chart: x, targetRevision: 1.2.0}";
        assert_eq!(application(&format!("source: {chart}")), None);
        let values = "{repoURL: https://h/values, targetRevision: refs/heads/dev, ref: values}";
        let found = application(&format!("sources: [{chart}, {values}]")).unwrap();
        assert_eq!((found.repo.as_str(), found.reference), ("https://h/values", Reference::Branch("dev".to_owned())));
        let at = |revision: &str| {
            application(&format!("source: {{repoURL: https://h/a, targetRevision: {revision}}}"))
                .map(|source| source.reference)
        };
        assert_eq!(at("HEAD"), None);
        assert_eq!(at("'1.2.*'"), None);
        assert_eq!(at("v1.2.3"), Some(Reference::Tag("v1.2.3".to_owned())));
        assert_eq!(at("release-1.2"), Some(Reference::Branch("release-1.2".to_owned())));
    }

    #[test]
    fn a_delivery_with_other_objects_is_refused() {
        let mixed = format!("{DELIVERY}---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n");
        for yaml in [mixed, format!("{DELIVERY}---\n{DELIVERY}")] {
            assert_eq!(read(yaml.as_bytes(), &origin()).unwrap_err()[0].code, "MixedReconciler");
        }
    }

    #[test]
    fn a_namespace_over_63_characters_is_refused_with_its_length() {
        let yaml = DELIVERY.replace("NS", &"n".repeat(64));
        let problems = read(yaml.as_bytes(), &origin()).unwrap_err();
        assert_eq!(problems[0].code, "NamespaceTooLong");
        assert!(problems[0].message.contains("64 characters"));
        assert!(read(yaml.replace("to: kubernetes", "to: host").as_bytes(), &origin()).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in any::<Vec<u8>>(), cut in 0..DELIVERY.len()) {
            let _ = read(&bytes, &origin());
            let _ = read(&DELIVERY.as_bytes()[..cut], &origin());
        }
    }
}
