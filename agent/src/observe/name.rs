//! How an observed object is called: its kind by group, since the version that a file names may no longer be served. Used by every
//! part of the observer.

use std::fmt;

use kedge_model::wire::ObjectRef;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Empty: the core group.
    pub group: String,
    pub kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub kind: Kind,
    pub namespace: Option<String>,
    pub name: String,
}

pub const SOURCES: &str = "source.toolkit.fluxcd.io";
pub const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io";
pub const HELM: &str = "helm.toolkit.fluxcd.io";
pub const ARGO: &str = "argoproj.io";

/// Every group of Flux ends so.
const FLUX: &str = ".toolkit.fluxcd.io";

/// There is nothing to observe in them, and an observer shouldn't read Secrets.
const SILENT: [&str; 4] = ["Secret", "ConfigMap", "ServiceAccount", "Namespace"];

impl Kind {
    pub fn new(group: &str, kind: &str) -> Kind {
        Kind { group: group.to_owned(), kind: kind.to_owned() }
    }

    pub fn of(object: &ObjectRef) -> Kind {
        Kind::new(object.api_version.rsplit_once('/').map_or("", |(group, _)| group), &object.kind)
    }

    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    pub fn is_flux(&self) -> bool {
        self.group.ends_with(FLUX)
    }

    pub fn is_argo(&self) -> bool {
        self.group == ARGO
    }

    /// Where Flux fetches from; what fails there fails everything that reads it.
    pub fn is_source(&self) -> bool {
        self.group == SOURCES
    }

    pub fn is_silent(&self) -> bool {
        (self.group.is_empty() && SILENT.contains(&self.kind.as_str())) || self.group == "rbac.authorization.k8s.io"
    }
}

impl Name {
    pub fn new(kind: Kind, namespace: Option<&str>, name: &str) -> Name {
        Name { kind, namespace: namespace.map(str::to_owned), name: name.to_owned() }
    }

    pub fn of(object: &ObjectRef) -> Name {
        Name::new(Kind::of(object), object.namespace.as_deref(), &object.name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.kind)?;
        match &self.namespace {
            Some(namespace) => write!(f, " {namespace}/{}", self.name),
            None => write!(f, " {}", self.name),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.kind),
            group => write!(f, "{} ({group})", self.kind),
        }
    }
}
