//! From an assignment's two packages to its goal on a Kubernetes cluster: every object read, bound, confined to its namespace, and put
//! into the store as it will be sent. The applier's thread calls it once per pair of packages; it asks the API server for kinds only.

pub mod accounts;
mod confinement;
mod document;
pub mod earlier;
mod json;
pub mod kinds;
mod known;
pub mod marks;
mod notes;
mod settled;
mod stage;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kedge_model::kinds::{Conflicts, Destination};
use kedge_model::wire::{ApplyParameters, Digest, Packages};

use super::package::{Package, disk};
use super::{bounds, said};
use crate::goal::{Goal, HostFacts, ObjectId, ObjectTerms, Part};
use crate::objects::{Batch, Objects};
use crate::record::Failure;
use crate::store::index::PackageIndex;
use confinement::Confinement;
use document::Document;
pub use kinds::{KindInfo, Kinds};
use known::Known;
use marks::Marks;

/// What is known while a goal is made.
struct Making<'a> {
    parameters: &'a ApplyParameters,
    confinement: Confinement,
    known: Known<'a>,
    marks: Marks,
    batch: Batch<'a>,
    /// Where each object came from, to name both places of two namesakes.
    places: BTreeMap<(String, String, Option<String>, String), String>,
    goal: Goal,
    failures: Vec<Failure>,
}

/// More is several assignments. The whole inventory is kept in the cluster, in one record.
const MAX_OBJECTS: usize = 2_000;
/// etcd takes requests of 1.5 MiB, and the server adds the fields' managers to what we send.
const MAX_OBJECT: usize = 1 << 20;

/// What the packages mean here, or why they can't be applied. Nothing of them was applied either way.
pub fn goal_of(
    assignment: &str,
    packages: &Packages,
    restart: u64,
    objects: &Objects,
    index: &PackageIndex,
    facts: &HostFacts,
    kinds: &dyn Kinds,
) -> Result<Goal, Failure> {
    let parameters = &packages.parameters;
    if parameters.to != Destination::Kubernetes {
        return Err(Failure::new("Unsupported", "this is for a plain host, and here is a Kubernetes cluster"));
    }
    // The node that the agent happens to run on is none of the cluster's facts.
    let facts = HostFacts { arch: String::new(), ip: None, ..facts.clone() };
    let platform = Package::open(&packages.platform, "platform", objects, index)?;
    let workload = Package::open(&packages.workload, "workload", objects, index)?;
    let mut documents = document::of_platform(&platform, &facts)?;
    let of_platform = documents.len();
    document::of_workload(&workload, &mut documents)?;
    if documents.len() > MAX_OBJECTS {
        let message = format!("the packages hold {} objects, more than {MAX_OBJECTS}", documents.len());
        return Err(Failure::new("BadPackage", message));
    }
    // No object would mean to remove all that runs, and absence never deletes.
    if documents.len() == of_platform {
        return Err(Failure::new("BadPackage", "the workload package holds no object"));
    }
    let mut making = Making {
        parameters,
        confinement: Confinement::of(assignment, parameters, &documents)?,
        known: Known::new(kinds, &documents)?,
        marks: Marks::of(assignment, restart, &documents),
        batch: objects.batch(),
        places: BTreeMap::new(),
        goal: Goal { bounds: bounds::of_delivery(parameters), ..Goal::default() },
        failures: Vec::new(),
    };
    for document in documents {
        making.add(document)?;
    }
    making.finish()
}

impl Making<'_> {
    /// A failure of the document is noted; what comes back stops everything.
    fn add(&mut self, document: Document) -> Result<(), Failure> {
        let Some(info) = self.known.find(&document)? else {
            let (version, kind, place) = (&document.version, &document.kind, document.place());
            let message = format!(
                "{place}: the cluster has no kind {kind} of {version}; install its CustomResourceDefinition, or fix `apiVersion` and `kind`"
            );
            // Somebody may install it: another assignment, or a person.
            self.failures.push(Failure::passing("UnknownKind", message));
            return Ok(());
        };
        let namespace = match self.confinement.namespace_of(&document, info.namespaced) {
            Ok(namespace) => namespace,
            Err(failure) => {
                self.failures.push(failure);
                return Ok(());
            }
        };
        let id = ObjectId {
            group: info.group,
            version: info.version,
            kind: info.kind,
            plural: info.plural,
            namespace,
            name: document.name.clone(),
        };
        if let Err(failure) = self.check_twice(&id, &document) {
            self.failures.push(failure);
            return Ok(());
        }
        match self.content(&id, &document) {
            Ok(bytes) => {
                let content = self.batch.put(&bytes).map_err(|error| disk("made", &error))?;
                self.push(id, content, &document);
            }
            Err(failure) => self.failures.push(failure),
        }
        Ok(())
    }

    fn push(&mut self, id: ObjectId, content: Digest, document: &Document) {
        let account = match document.part {
            Part::Platform => None,
            Part::Workload => self.confinement.account.clone(),
        };
        let terms = ObjectTerms {
            stage: stage::of(&id.group, &id.kind),
            id,
            content,
            part: document.part,
            account,
            take: self.parameters.conflicts == Conflicts::Take,
            keep: document.notes.keep,
            recreate: document.notes.recreate,
            drift: bounds::of_object(self.parameters.drift, document.notes.drift),
        };
        self.goal.objects.push(terms.into());
    }

    /// The object as it is sent.
    fn content(&self, id: &ObjectId, document: &Document) -> Result<Vec<u8>, Failure> {
        let unreadable = |error: serde_json::Error| document.wrong(&format!("the object can't be written: {error}"));
        let mut object = serde_json::from_slice(&document.json).map_err(unreadable)?;
        self.marks.set(&mut object, id, document)?;
        settled::settle(&mut object, id, document)?;
        let bytes = serde_json::to_vec(&object).map_err(unreadable)?;
        if bytes.len() > MAX_OBJECT {
            let message = format!(
                "{}: {id} has {} bytes, and an object may have {MAX_OBJECT}; split it, or keep such data elsewhere",
                document.place(),
                bytes.len()
            );
            return Err(Failure::new("ObjectTooLarge", message));
        }
        Ok(bytes)
    }

    /// An object is one object, whatever version it is written in.
    fn check_twice(&mut self, id: &ObjectId, document: &Document) -> Result<(), Failure> {
        let key = (id.group.clone(), id.kind.clone(), id.namespace.clone(), id.name.clone());
        match self.places.insert(key, document.place()) {
            Some(first) => Err(document.wrong(&format!("{id} is here and at {first}"))),
            None => Ok(()),
        }
    }

    fn finish(self) -> Result<Goal, Failure> {
        let Some(first) = self.failures.first() else {
            self.batch.finish().map_err(|error| disk("made", &error))?;
            return Ok(self.goal);
        };
        let sentences: Vec<String> = self.failures.iter().map(|failure| failure.message.clone()).collect();
        let passes = self.failures.iter().all(|failure| failure.passes);
        // The word that stays true when the others have passed.
        let word = self.failures.iter().find(|failure| !failure.passes).unwrap_or(first);
        Err(Failure { passes, ..Failure::new(&word.reason, said(&sentences)) })
    }
}
