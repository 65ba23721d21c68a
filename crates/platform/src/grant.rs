//! What may be fetched for a workspace, as the platform team grants it: its registered repositories, and what begins with
//! `spec.sources` of its registrations or, where they list none, with the registered repository's owner. Asked by the hub
//! before it fetches what an application names, and by `kedge validate`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kedge_model::address::{Address, Prefix, Refused, Server};
use kedge_model::kinds::WorkloadRegistration;
use kedge_model::{Kind, Platform, Spec};

/// The grant of one workspace, or of one registration that names no workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    holder: Holder,
    /// One of the registrations, by name: where a source can be added.
    registration: String,
    /// The repositories that the platform team itself names.
    registered: Vec<Server>,
    sources: Vec<Prefix>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Holder {
    Workspace(String),
    /// Tenants without a workspace have nothing in common.
    Registration(String),
}

impl Grant {
    /// By registration. `locate` makes an address of what is written, also of a relative one.
    pub fn all(platform: &Platform, locate: &dyn Fn(&str) -> Option<Address>) -> BTreeMap<String, Arc<Grant>> {
        let mut grants: BTreeMap<Holder, Grant> = BTreeMap::new();
        let mut holders = BTreeMap::new();
        for object in platform.of_kind(Kind::WorkloadRegistration) {
            let Spec::WorkloadRegistration(registration) = &object.spec else { continue };
            let name = &object.meta.name;
            let holder = Holder::of(name, registration);
            let grant = grants.entry(holder.clone()).or_insert_with(|| Grant {
                holder: holder.clone(),
                registration: name.clone(),
                registered: Vec::new(),
                sources: Vec::new(),
            });
            grant.add(registration, locate);
            holders.insert(name.clone(), holder);
        }
        let grants: BTreeMap<Holder, Arc<Grant>> =
            grants.into_iter().map(|(holder, grant)| (holder, Arc::new(grant))).collect();
        let of = |holder: Holder| grants.get(&holder).map(Arc::clone);
        holders.into_iter().filter_map(|(name, holder)| Some((name, of(holder)?))).collect()
    }

    fn add(&mut self, registration: &WorkloadRegistration, locate: &dyn Fn(&str) -> Option<Address>) {
        let own = match locate(&registration.workload.repo) {
            Some(Address::Server(server)) => Some(server),
            // Paths are allowed or not as a whole.
            _ => None,
        };
        match registration.sources.is_empty() {
            true => self.sources.extend(own.as_ref().map(Prefix::owner_of)),
            false => self.sources.extend(registration.sources.iter().cloned()),
        }
        self.registered.extend(own);
        self.sources.sort();
        self.sources.dedup();
    }

    /// The workspace whose credentials serve; none: there are no such credentials.
    pub fn workspace(&self) -> Option<&str> {
        match &self.holder {
            Holder::Workspace(name) => Some(name),
            Holder::Registration(_) => None,
        }
    }

    /// Whether the platform team itself names this very repository for the workspace.
    pub fn is_registered(&self, server: &Server) -> bool {
        self.registered.iter().any(|own| own.is_same(server))
    }

    /// Whether a repository may be fetched for the workspace.
    pub fn allow(&self, server: &Server) -> Result<(), Refused> {
        if self.is_registered(server) || self.sources.iter().any(|prefix| prefix.covers(server)) {
            return Ok(());
        }
        let listed: Vec<String> = self.sources.iter().map(|prefix| format!("`{prefix}`")).collect();
        let listed = if listed.is_empty() { "it has none".to_owned() } else { listed.join(", ") };
        Err(Refused::new(
            format!("`{server}` isn't among the sources of {self} ({listed})"),
            format!(
                "the platform team adds its beginning to `spec.sources` of WorkloadRegistration `{}`",
                self.registration
            ),
        ))
    }
}

impl Holder {
    fn of(name: &str, registration: &WorkloadRegistration) -> Holder {
        match registration.workspace.as_deref().filter(|workspace| !workspace.is_empty()) {
            Some(workspace) => Holder::Workspace(workspace.to_owned()),
            None => Holder::Registration(name.to_owned()),
        }
    }
}

/// As it is called in messages; two grants never have the same name.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Holder::Workspace(name) => write!(f, "workspace {name}"),
            Holder::Registration(name) => write!(f, "registration {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use kedge_model::decode::{self, Options};
    use kedge_model::{Origin, Source};

    use super::*;

    fn grants(registrations: &[(&str, &str, &str)]) -> BTreeMap<String, Arc<Grant>> {
        let mut platform = Platform::default();
        for (name, repo, more) in registrations {
            let text = format!(
                "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {{name: {name}}}\nspec: {{workload: {{repo: '{repo}', branch: main, path: .}}{more}}}\n"
            );
            let source = Arc::new(Source { repo: "here".to_owned(), revision: None });
            let origin = Origin { source, file: "r.yaml".into(), line: 0, column: 0 };
            let decoded = decode::objects(text.as_bytes(), &origin, &Options::default());
            assert!(decoded.broken.is_empty(), "{:?}", decoded.problems);
            platform.objects.extend(decoded.objects.into_iter().map(|object| (object.id(), Arc::new(object))));
        }
        Grant::all(&platform, &|repo| Address::parse(repo).ok())
    }

    fn allows(grant: &Grant, repo: &str) -> bool {
        match Address::parse(repo).unwrap() {
            Address::Server(server) => grant.allow(&server).is_ok(),
            Address::Local(_) => unreachable!(),
        }
    }

    #[test]
    fn without_sources_the_owner_of_the_registered_repository_is_granted() {
        let grants = grants(&[("app", "https://h/team-a/app", ", workspace: a")]);
        let grant = &grants["app"];
        assert!(allows(grant, "https://h/team-a/app-gitops.git"));
        assert!(!allows(grant, "https://h/team-b/app"));
        let Ok(Address::Server(other)) = Address::parse("https://h/team-b/secret") else { unreachable!() };
        let refused = grant.allow(&other).unwrap_err();
        assert_eq!(
            refused.reason,
            "`https://h/team-b/secret` isn't among the sources of workspace a (`https://h/team-a`)"
        );
        assert!(refused.hint.contains("`spec.sources` of WorkloadRegistration `app`"), "{}", refused.hint);
    }

    #[test]
    fn listed_sources_replace_the_owner_but_never_the_registered_repository() {
        let grants = grants(&[("app", "https://h/team-a/app", ", workspace: a, sources: ['https://h/mirror/a']")]);
        let grant = &grants["app"];
        assert!(allows(grant, "https://h/mirror/a/x") && allows(grant, "https://h/team-a/app.git"));
        assert!(!allows(grant, "https://h/team-a/other") && !allows(grant, "https://h/mirror/ab/x"));
    }

    #[test]
    fn registrations_of_one_workspace_share_and_those_without_one_do_not() {
        let grants = grants(&[
            ("one", "https://h/team-a/one", ", workspace: a"),
            ("two", "https://h/elsewhere/two", ", workspace: a"),
            ("three", "https://h/team-c/three", ""),
            ("four", "https://h/team-d/four", ", workspace: ''"),
        ]);
        assert!(allows(&grants["one"], "https://h/elsewhere/x"));
        assert!(
            !allows(&grants["three"], "https://h/team-d/four") && !allows(&grants["four"], "https://h/team-c/three")
        );
        assert_eq!(grants["three"].workspace(), None);
    }

    #[test]
    fn a_repository_at_the_top_of_a_server_grants_itself_alone() {
        let grants = grants(&[("app", "https://h/app", ", workspace: a")]);
        assert!(allows(&grants["app"], "https://h/app.git") && !allows(&grants["app"], "https://h/control-plane"));
    }
}
