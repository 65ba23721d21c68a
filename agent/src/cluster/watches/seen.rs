//! What the watches have seen, and which of it was found to be as applied: a stamp for each object, and nothing of its content. Pure;
//! the tasks and the applier change it under one lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kedge_model::wire::Digest;

use crate::cluster::metadata::{Metadata, Stamp, digest};
use crate::goal::ObjectId;

/// What one watch is about: a kind, as the server addresses it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindKey {
    pub group: String,
    pub version: String,
    pub plural: String,
}

/// How a watch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not listed yet, and what keeps it from that.
    Syncing(Option<String>),
    Synced,
    /// The server knows no such kind.
    NotServed,
    /// The agent may not, or the server can't.
    Refused(String),
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Nobody looks, and why.
    Unknown(Standing),
    Absent,
    There(Stamp),
}

/// An object as it was when it was as applied, and which content that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Good {
    pub stamp: Stamp,
    content: u64,
}

#[derive(Debug, Default)]
pub struct Seen {
    kinds: BTreeMap<KindKey, Followed>,
    good: HashMap<u64, Good>,
    /// What is being applied just now, and the version in which it went meanwhile.
    expected: HashMap<u64, u64>,
    names: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
struct Followed {
    standing: Standing,
    /// By `namespace/name`.
    objects: HashMap<Box<str>, Known>,
}

#[derive(Clone, Debug)]
struct Known {
    stamp: Stamp,
    assignment: Arc<str>,
}

/// An object of a list.
#[derive(Debug)]
pub struct Listed {
    place: Box<str>,
    known: Known,
}

impl KindKey {
    pub fn of(id: &ObjectId) -> KindKey {
        KindKey { group: id.group.clone(), version: id.version.clone(), plural: id.plural.clone() }
    }
}

impl Good {
    pub fn is_of(&self, content: &Digest) -> bool {
        self.content == digest(content)
    }
}

impl Seen {
    pub fn follow(&mut self, key: &KindKey) {
        let new = || Followed { standing: Standing::Syncing(None), objects: HashMap::new() };
        self.kinds.entry(key.clone()).or_insert_with(new);
    }

    /// How many objects of this kind there are.
    pub fn count(&self, key: &KindKey) -> usize {
        self.kinds.get(key).map_or(0, |followed| followed.objects.len())
    }

    pub fn leave(&mut self, key: &KindKey) {
        self.kinds.remove(key);
        self.names.retain(|name| Arc::strong_count(name) > 1);
    }

    pub fn standing(&self, key: &KindKey) -> Option<&Standing> {
        self.kinds.get(key).map(|followed| &followed.standing)
    }

    /// A watch that was synced once stays so: what it knows is the best there is.
    pub fn hinder(&mut self, key: &KindKey, why: String) {
        if let Some(followed) = self.kinds.get_mut(key).filter(|followed| followed.standing != Standing::Synced) {
            followed.standing = Standing::Syncing(Some(why));
        }
    }

    /// It can't be watched any more; whose objects there were.
    pub fn stop(&mut self, key: &KindKey, standing: Standing) -> BTreeSet<Arc<str>> {
        let Some(followed) = self.kinds.get_mut(key) else { return BTreeSet::new() };
        followed.standing = standing;
        followed.objects.drain().map(|(_, known)| known.assignment).collect()
    }

    pub fn listed(&mut self, metadata: &Metadata) -> Option<Listed> {
        let assignment = self.name(metadata.assignment()?);
        Some(Listed { place: place(metadata), known: Known { stamp: metadata.stamp(), assignment } })
    }

    /// The whole list, as it was at this version. What we ourselves wrote since is newer. Whom it concerns is returned.
    pub fn relist(&mut self, key: &KindKey, list: Vec<Listed>, version: u64) -> BTreeSet<Arc<str>> {
        let Some(followed) = self.kinds.get_mut(key) else { return BTreeSet::new() };
        let first = followed.standing != Standing::Synced;
        followed.standing = Standing::Synced;
        let mut before = std::mem::take(&mut followed.objects);
        followed.objects.reserve(list.len());
        let mut concerned = BTreeSet::new();
        for Listed { place, known } in list {
            let old = before.remove(&place);
            let newer = old.filter(|old| old.stamp.version > known.stamp.version && old.stamp.version > version);
            let known = newer.unwrap_or(known);
            let good = self.good.get(&digest(&(&key.group, &key.plural, &place)));
            // Before the first list nobody could know; the full look comes anyway.
            if !first && !good.is_some_and(|good| good.stamp.is_same(&known.stamp)) {
                concerned.insert(Arc::clone(&known.assignment));
            }
            followed.objects.insert(place, known);
        }
        for (place, known) in before {
            match known.stamp.version > version {
                true => _ = followed.objects.insert(place, known),
                false => _ = concerned.insert(known.assignment),
            }
        }
        concerned
    }

    /// An object came or changed. Whom it concerns, if that isn't our own doing.
    pub fn note(&mut self, key: &KindKey, metadata: &Metadata) -> Option<Arc<str>> {
        let assignment = self.name(metadata.assignment()?);
        let (place, stamp) = (place(metadata), metadata.stamp());
        let explained = self.good.get(&digest(&(&key.group, &key.plural, &place)));
        let explained = !stamp.deleting && explained.is_some_and(|good| good.stamp.is_same(&stamp));
        let followed = self.kinds.get_mut(key)?;
        let before = followed.objects.get(&place).map(|known| known.stamp);
        if before.is_some_and(|before| before.version >= stamp.version) {
            return None;
        }
        let expected = self.expected.contains_key(&digest(&(&key.group, &key.plural, &place)));
        followed.objects.insert(place, Known { stamp, assignment: Arc::clone(&assignment) });
        let changed = before.is_none_or(|before| !before.is_same(&stamp) || before.deleting != stamp.deleting);
        (changed && !explained && !expected).then_some(assignment)
    }

    /// An object went, or carries our label no longer.
    pub fn gone(&mut self, key: &KindKey, metadata: &Metadata) -> Option<Arc<str>> {
        let (place, stamp) = (place(metadata), metadata.stamp());
        if let Some(went) = self.expected.get_mut(&digest(&(&key.group, &key.plural, &place))) {
            *went = stamp.version;
        }
        let objects = &mut self.kinds.get_mut(key)?.objects;
        if objects.get(&place)?.stamp.version > stamp.version {
            return None;
        }
        objects.remove(&place).map(|known| known.assignment)
    }

    pub fn sight(&self, id: &ObjectId) -> Sight {
        let Some(followed) = self.kinds.get(&KindKey::of(id)) else {
            return Sight::Unknown(Standing::Syncing(None));
        };
        match (followed.objects.get(place_of(id).as_str()), &followed.standing) {
            (Some(known), _) => Sight::There(known.stamp),
            (None, Standing::Synced | Standing::NotServed) => Sight::Absent,
            (None, standing) => Sight::Unknown(standing.clone()),
        }
    }

    pub fn good(&self, id: &ObjectId) -> Option<Good> {
        self.good.get(&digest(&(&id.group, &id.plural, place_of(id).as_str()))).copied()
    }

    /// It is about to be applied: what the watch says of it meanwhile is our own doing, unless `approve` finds otherwise.
    pub fn expect(&mut self, id: &ObjectId) {
        self.expected.insert(digest(&(&id.group, &id.plural, place_of(id).as_str())), 0);
    }

    /// It wasn't applied.
    pub fn give_up(&mut self, id: &ObjectId) {
        self.expected.remove(&digest(&(&id.group, &id.plural, place_of(id).as_str())));
    }

    /// The object is as applied with this content; the server just said so. Whom it concerns, if somebody touched it since.
    pub fn approve(&mut self, id: &ObjectId, metadata: &Metadata, content: &Digest) -> Option<Arc<str>> {
        let (place, stamp) = (place_of(id), metadata.stamp());
        let key = digest(&(&id.group, &id.plural, place.as_str()));
        self.good.insert(key, Good { stamp, content: digest(content) });
        let went = self.expected.remove(&key).unwrap_or(0);
        let assignment = self.name(metadata.assignment()?);
        let followed = self.kinds.get_mut(&KindKey::of(id))?;
        if went > stamp.version {
            return Some(assignment);
        }
        let known = followed.objects.get(place.as_str()).filter(|known| known.stamp.version >= stamp.version);
        match known {
            Some(known) => (!known.stamp.is_same(&stamp) || known.stamp.deleting).then_some(assignment),
            None => {
                followed.objects.insert(place.into(), Known { stamp, assignment });
                None
            }
        }
    }

    /// It is gone by our own doing, or no longer what was applied.
    pub fn disown(&mut self, id: &ObjectId) {
        self.good.remove(&digest(&(&id.group, &id.plural, place_of(id).as_str())));
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        self.names.insert(Arc::clone(&new));
        new
    }
}

fn place(metadata: &Metadata) -> Box<str> {
    format!("{}/{}", metadata.namespace, metadata.name).into()
}

fn place_of(id: &ObjectId) -> String {
    format!("{}/{}", id.namespace.as_deref().unwrap_or_default(), id.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::metadata::Partial;

    fn object(version: u64, fields: &str) -> Metadata {
        let partial = json!({"metadata": {
            "name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": version.to_string(),
            "labels": {"kedge.dev/assignment": "web-eu"},
            "managedFields": [{"manager": "kedge", "operation": "Apply", "fieldsV1": {fields: {}}}],
        }});
        serde_json::from_value::<Partial>(partial).unwrap().metadata
    }

    fn id() -> ObjectId {
        ObjectId {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            plural: "deployments".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        }
    }

    fn synced() -> (Seen, KindKey) {
        let (mut seen, key) = (Seen::default(), KindKey::of(&id()));
        seen.follow(&key);
        assert!(seen.relist(&key, Vec::new(), 1).is_empty());
        (seen, key)
    }

    #[test]
    fn our_own_change_concerns_nobody_and_an_edit_does() {
        let (mut seen, key) = synced();
        assert_eq!(seen.sight(&id()), Sight::Absent);
        seen.approve(&id(), &object(5, "f:a"), &Digest::of(b"1"));
        assert!(matches!(seen.sight(&id()), Sight::There(_)), "known before the watch says so");
        assert_eq!(seen.note(&key, &object(5, "f:a")), None);
        assert_eq!(seen.note(&key, &object(6, "f:a")), None, "a new status");
        assert_eq!(seen.note(&key, &object(7, "f:b")).as_deref(), Some("web-eu"));
        assert_eq!(seen.note(&key, &object(8, "f:b")), None, "told already");
        assert!(seen.good(&id()).unwrap().is_of(&Digest::of(b"1")));
    }

    #[test]
    fn what_is_being_applied_concerns_nobody_until_somebody_else_touches_it() {
        let (mut seen, key) = synced();
        seen.expect(&id());
        assert_eq!(seen.note(&key, &object(5, "f:a")), None, "our own, seen before the answer");
        assert_eq!(seen.approve(&id(), &object(5, "f:a"), &Digest::of(b"1")), None);
        seen.expect(&id());
        assert_eq!(seen.note(&key, &object(7, "f:b")), None);
        assert_eq!(seen.approve(&id(), &object(6, "f:a"), &Digest::of(b"2")).as_deref(), Some("web-eu"));
        seen.expect(&id());
        assert!(seen.gone(&key, &object(9, "f:a")).is_some());
        assert!(seen.approve(&id(), &object(8, "f:a"), &Digest::of(b"2")).is_some());
        assert_eq!(seen.sight(&id()), Sight::Absent, "it went right after it was applied");
    }

    #[test]
    fn a_late_event_does_not_undo_what_is_newer() {
        let (mut seen, key) = synced();
        seen.approve(&id(), &object(9, "f:a"), &Digest::of(b"1"));
        assert_eq!(seen.gone(&key, &object(8, "f:a")), None);
        assert!(seen.relist(&key, Vec::new(), 8).is_empty());
        assert!(matches!(seen.sight(&id()), Sight::There(_)));
        assert_eq!(seen.gone(&key, &object(10, "f:a")).as_deref(), Some("web-eu"));
        assert_eq!(seen.sight(&id()), Sight::Absent);
    }

    #[test]
    fn a_list_after_a_gap_tells_what_went_and_what_changed() {
        let (mut seen, key) = synced();
        seen.approve(&id(), &object(5, "f:a"), &Digest::of(b"1"));
        assert_eq!(seen.relist(&key, Vec::new(), 20).len(), 1);
        seen.approve(&id(), &object(21, "f:a"), &Digest::of(b"1"));
        let same = seen.listed(&object(25, "f:a")).unwrap();
        assert!(seen.relist(&key, vec![same], 30).is_empty());
        let edited = seen.listed(&object(31, "f:b")).unwrap();
        assert_eq!(seen.relist(&key, vec![edited], 32).len(), 1);
    }

    #[test]
    fn who_cannot_look_does_not_call_it_absent() {
        let (mut seen, key) = (Seen::default(), KindKey::of(&id()));
        assert!(matches!(seen.sight(&id()), Sight::Unknown(_)));
        seen.follow(&key);
        seen.hinder(&key, "away".to_owned());
        assert_eq!(seen.sight(&id()), Sight::Unknown(Standing::Syncing(Some("away".to_owned()))));
        seen.stop(&key, Standing::Refused("forbidden".to_owned()));
        assert!(matches!(seen.sight(&id()), Sight::Unknown(Standing::Refused(_))));
        seen.stop(&key, Standing::NotServed);
        assert_eq!(seen.sight(&id()), Sight::Absent);
    }
}
