//! Which watches a desired state asks for: the kinds of the objects that it names, in their namespaces, what those read from, and, for
//! the cluster's own source of the platform's branch, that reconciler's kinds in the whole cluster. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::{DesiredState, Mode, Observation};

use super::name::{ARGO, KUSTOMIZE, Kind, Name, SOURCES};
use super::observations::{Facts, Fare, Scope};

/// What a state names, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    names: BTreeSet<Name>,
    /// By kind, as the newest file spells it.
    versions: BTreeMap<Kind, String>,
    /// Kinds among which the platform's own source is looked for.
    wide: BTreeSet<Kind>,
}

/// Served by every Flux and Argo CD of the last years; another one is found where it isn't.
const FLUX_VERSION: &str = "v1";
const ARGO_VERSION: &str = "v1alpha1";
/// Names in one namespace from which on all of a kind are watched there.
const MAX_SINGLE: usize = 1;

/// Those that another reconciler brings.
pub fn observed(state: &DesiredState) -> impl Iterator<Item = (&str, &Observation)> {
    state.entries.iter().filter_map(|entry| match &entry.mode {
        Mode::Observe(observation) => Some((entry.assignment.as_str(), observation)),
        Mode::Apply(_) => None,
    })
}

impl Wanted {
    pub fn of(state: &DesiredState) -> Wanted {
        let mut wanted = Wanted::default();
        for object in observed(state).flat_map(|(_, observation)| &observation.objects) {
            let name = Name::of(object);
            if name.kind.is_silent() {
                continue;
            }
            let version = object.api_version.rsplit('/').next().unwrap_or_default();
            wanted.versions.insert(name.kind.clone(), version.to_owned());
            wanted.names.insert(name);
        }
        if state.source.is_some() {
            let has = |is: fn(&Kind) -> bool| wanted.names.iter().any(|name| is(&name.kind));
            if has(Kind::is_flux) {
                wanted.wide.extend([Kind::new(SOURCES, "GitRepository"), Kind::new(KUSTOMIZE, "Kustomization")]);
            }
            if has(Kind::is_argo) {
                wanted.wide.insert(Kind::new(ARGO, "Application"));
            }
        }
        wanted
    }

    pub fn wide(&self) -> &BTreeSet<Kind> {
        &self.wide
    }

    /// With what the objects seen so far read from. A look at the whole cluster that isn't allowed is one at the namespaces instead.
    pub fn scopes(&self, facts: &Facts) -> BTreeSet<Scope> {
        let mut scopes = BTreeSet::new();
        let mut places: BTreeMap<(&Kind, Option<&str>), BTreeSet<&str>> = BTreeMap::new();
        let sources = self.names.iter().flat_map(|name| facts.find(name)).flat_map(|(_, judged)| &judged.sources);
        // A chart's own source is one step further.
        let sources: Vec<&Name> = sources.collect();
        let further = sources.iter().flat_map(|name| facts.find(name)).flat_map(|(_, judged)| &judged.sources);
        for name in self.names.iter().chain(further).chain(sources.iter().copied()) {
            places.entry((&name.kind, name.namespace.as_deref())).or_default().insert(&name.name);
        }
        let mut forbidden = BTreeSet::new();
        for kind in &self.wide {
            let scope = self.scope(kind, None, None);
            let allowed = facts.watches.get(&scope).is_none_or(|one| !matches!(one.fare, Fare::Forbidden(_)));
            if !allowed {
                forbidden.insert(kind);
            }
            // It stays wanted, so that a right that is given later is noticed.
            scopes.insert(scope);
        }
        for ((kind, namespace), names) in places {
            if self.wide.contains(kind) && !forbidden.contains(kind) {
                continue;
            }
            let single = names.len() <= MAX_SINGLE || namespace.is_none();
            match single {
                true => scopes.extend(names.into_iter().map(|name| self.scope(kind, namespace, Some(name)))),
                false => _ = scopes.insert(self.scope(kind, namespace, None)),
            }
        }
        scopes
    }

    fn scope(&self, kind: &Kind, namespace: Option<&str>, only: Option<&str>) -> Scope {
        let usual = if kind.is_argo() { ARGO_VERSION } else { FLUX_VERSION };
        Scope {
            kind: kind.clone(),
            version: self.versions.get(kind).map_or(usual, String::as_str).to_owned(),
            namespace: namespace.map(str::to_owned),
            only: only.map(str::to_owned),
        }
    }
}
