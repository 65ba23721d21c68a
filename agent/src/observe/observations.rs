//! What the watches have seen: judgements by name, and how each watch fares. Written by the watches' tasks, read by the loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::judged::Judged;
use super::name::{Kind, Name};

#[derive(Debug, Default)]
pub struct Observations {
    facts: Mutex<Facts>,
    changed: Notify,
}

#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub objects: BTreeMap<Name, Judged>,
    pub watches: BTreeMap<Scope, Watched>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    pub fare: Fare,
    /// All of its objects were seen at some time.
    pub listed: bool,
}

/// What one watch covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    pub kind: Kind,
    /// Preferred where it is served.
    pub version: String,
    /// None: the whole cluster.
    pub namespace: Option<String>,
    /// None: all of them.
    pub only: Option<String>,
}

/// How a watch fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fare {
    /// Nothing is known yet.
    #[default]
    Begun,
    Synced,
    /// The API server doesn't serve the kind.
    NotServed,
    Forbidden(String),
    /// What was seen before still counts; nothing new comes.
    Broken(String),
}

/// Far more than a cluster has; a bound for one that makes them in a loop.
const MAX_OBJECTS: usize = 5_000;

impl Observations {
    pub fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when something differs from before.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    pub fn put(&self, name: Name, judged: Judged) {
        let mut facts = self.facts();
        let before = facts.objects.get(&name);
        if before.is_none() && facts.objects.len() >= MAX_OBJECTS {
            return;
        }
        let judged = judged.after(before);
        if before != Some(&judged) {
            facts.objects.insert(name, judged);
            self.changed.notify_one();
        }
    }

    pub fn remove(&self, name: &Name) {
        if self.facts().objects.remove(name).is_some() {
            self.changed.notify_one();
        }
    }

    /// A list is complete: what it lacks is gone.
    pub fn keep(&self, scope: &Scope, present: &BTreeSet<Name>) {
        let mut facts = self.facts();
        facts.objects.retain(|name, _| !scope.covers(name) || present.contains(name));
        facts.watches.insert(scope.clone(), Watched { fare: Fare::Synced, listed: true });
        self.changed.notify_one();
    }

    pub fn fare(&self, scope: &Scope, fare: Fare) {
        let mut facts = self.facts();
        let watched = facts.watches.entry(scope.clone()).or_default();
        if watched.fare != fare {
            watched.fare = fare;
            self.changed.notify_one();
        }
    }

    /// Only these are watched from now on.
    pub fn settle(&self, scopes: &BTreeSet<Scope>) {
        let mut facts = self.facts();
        facts.watches.retain(|scope, _| scopes.contains(scope));
        for scope in scopes {
            facts.watches.entry(scope.clone()).or_default();
        }
        facts.objects.retain(|name, _| scopes.iter().any(|scope| scope.covers(name)));
    }
}

impl Facts {
    /// The objects that a reference means: without a namespace, each that is called so.
    pub fn find(&self, wanted: &Name) -> Vec<(&Name, &Judged)> {
        let exact = |namespace: Option<&String>| {
            let name = Name { namespace: namespace.cloned(), ..wanted.clone() };
            self.objects.get_key_value(&name)
        };
        if wanted.namespace.is_some() {
            return exact(wanted.namespace.as_ref()).or_else(|| exact(None)).into_iter().collect();
        }
        let all = self.objects.iter();
        all.filter(|(name, _)| name.kind == wanted.kind && name.name == wanted.name).collect()
    }

    /// How the watch fares that would see it.
    pub fn watched(&self, wanted: &Name) -> Watched {
        let covering = self.watches.iter().filter(|(scope, _)| scope.covers(wanted));
        covering.map(|(_, watched)| watched.clone()).max_by_key(|watched| watched.fare.rank()).unwrap_or_default()
    }
}

impl Watched {
    /// Nothing is known yet, of whatever cause.
    pub fn is_begun(&self) -> bool {
        !self.listed && matches!(self.fare, Fare::Begun | Fare::Broken(_))
    }
}

impl Fare {
    fn rank(&self) -> u8 {
        match self {
            Fare::NotServed => 0,
            Fare::Forbidden(_) => 1,
            Fare::Begun => 2,
            Fare::Broken(_) => 3,
            Fare::Synced => 4,
        }
    }
}

impl Scope {
    pub fn is_wide(&self) -> bool {
        self.namespace.is_none() && self.only.is_none()
    }

    pub fn covers(&self, name: &Name) -> bool {
        self.kind == name.kind
            && self.only.as_ref().is_none_or(|only| *only == name.name)
            // A kind of the whole cluster has no namespace, whatever a file says.
            && (self.namespace.is_none() || name.namespace.is_none() || self.namespace == name.namespace)
    }
}
