//! One environment as the scheduler sees it: every object in force, what could not be read, and what is published.
//! Made by a reader (a checkout, or the hub from commits and its memory of last good objects), never changed in place
//! by the scheduler.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::kinds::Pin;
use crate::{Kind, Labels, Object, ObjectId, Problem, Spec};

/// All that `schedule` reads. Offline there are no last good objects and nothing is published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Platform {
    /// The environment's name: targets count when theirs is the same.
    pub environment: String,
    /// The objects in force. An object whose source broke stays here with `stale_since` set.
    pub objects: BTreeMap<ObjectId, Arc<Object>>,
    /// What is written somewhere but can't be used and has no last good version.
    pub broken: Vec<Broken>,
    /// Inputs that failed to load: while one of the platform's own is here, nothing may be deleted.
    pub failing: Vec<Failing>,
    /// Inputs that were read whole and hold no object. Whether one was emptied only somebody can say who knows what it
    /// held.
    pub empty: Vec<Empty>,
    /// Full target names that are published, and whose they are: of two tenants with one name this one keeps it.
    pub published: BTreeMap<String, Tenant>,
    /// What the reader found wrong, and what is worth a warning.
    pub problems: Vec<Problem>,
}

/// An object that is written but can't be used. As much of it as could be read says what it stops.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    pub kind: Option<Kind>,
    pub name: Option<String>,
    /// The registration, for an object of an application's repository.
    pub owner: Option<String>,
    /// Labels, when they could be read: a broken ConfigMap stops the assignments that it would apply to.
    pub labels: Option<Labels>,
    pub problem: Problem,
}

/// An input that could not be loaded whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Failing {
    /// The registration when it is an application's repository; none when it is the platform's own.
    pub registration: Option<String>,
    pub problem: Problem,
}

/// An input that is there, could be read, and holds no object: a README alone, a branch that only begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Empty {
    pub input: EmptyInput,
    /// The warning, which is among the platform's problems too.
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmptyInput {
    /// The environment's own branch or folder.
    Environment,
    /// What the BaseRepo of this name points at.
    BaseRepo(String),
    /// What the WorkloadRegistration of this name points at.
    Registration(String),
}

/// Whose a published target is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    pub registration: String,
    pub workload: String,
    pub target: String,
}

/// A deployment target on a cluster type: `<cluster type>/<workload>-<target>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssignmentId {
    pub cluster_type: Arc<str>,
    /// The target's full name, `<workload>-<target>`.
    pub target: Arc<str>,
}

impl fmt::Display for AssignmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster_type, self.target)
    }
}

impl Platform {
    /// The commit of the BaseRepo named `main`: what was promoted to this environment.
    pub fn promoted_commit(&self) -> Option<&str> {
        let main = ObjectId { kind: Kind::BaseRepo, owner: None, name: "main".to_owned() };
        match &self.objects.get(&main)?.spec {
            Spec::BaseRepo(base) => base.commit.as_deref().filter(|commit| !commit.is_empty()),
            _ => None,
        }
    }

    /// The Pins of the environment, by name. Whether they still hold is the clock's to say.
    pub fn pins(&self) -> impl Iterator<Item = (&Arc<Object>, &Pin)> {
        self.of_kind(Kind::Pin).filter_map(|object| match &object.spec {
            Spec::Pin(pin) => Some((object, pin)),
            _ => None,
        })
    }

    /// Objects of one kind, by name.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Arc<Object>> {
        let first = ObjectId { kind, owner: None, name: String::new() };
        self.objects.range(first..).take_while(move |(id, _)| id.kind == kind).map(|(_, object)| object)
    }
}
