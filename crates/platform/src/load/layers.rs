//! Objects of several levels become one set: the nearer level wins over a farther one, and of two at the same level
//! neither is used. Filled by `load`, level by level from the environment outwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::{Broken, Object, ObjectId, Origin, Problem};

#[derive(Debug, Default)]
pub struct Layers {
    pub objects: BTreeMap<ObjectId, Arc<Object>>,
    pub broken: Vec<Broken>,
    pub problems: Vec<Problem>,
    /// Those that mean that something written isn't in force.
    pub failures: Vec<Problem>,
    /// Where each name was first met, in force or not: a broken object isn't silently replaced by a farther one.
    taken: BTreeMap<ObjectId, Origin>,
}

/// All that one level says about one name.
#[derive(Debug, Default)]
struct Claims {
    good: Vec<Arc<Object>>,
    broken: Vec<Broken>,
}

impl Layers {
    /// Adds a level, the next one outwards. Gives back the names that came into force with it.
    pub fn add(&mut self, objects: Vec<Arc<Object>>, broken: Vec<Broken>) -> Vec<ObjectId> {
        let mut claims: BTreeMap<ObjectId, Claims> = BTreeMap::new();
        for object in objects {
            let good = &mut claims.entry(object.id()).or_default().good;
            // One file reached by two paths says the same thing, not another one.
            if !good.iter().any(|other| other.origin == object.origin) {
                good.push(object);
            }
        }
        for broken in broken {
            match (broken.kind, &broken.name, &broken.problem.origin) {
                (Some(kind), Some(name), Some(_)) => {
                    let id = ObjectId { kind, owner: broken.owner.clone(), name: name.clone() };
                    let known = &mut claims.entry(id).or_default().broken;
                    if !known.iter().any(|other| other.problem == broken.problem) {
                        known.push(broken);
                    }
                }
                _ => self.broken.push(broken),
            }
        }
        claims.into_iter().filter_map(|(id, claims)| self.settle(id, claims)).collect()
    }

    fn settle(&mut self, id: ObjectId, mut claims: Claims) -> Option<ObjectId> {
        let places = claims.places();
        if let Some(nearer) = self.taken.get(&id) {
            for place in places {
                let message = format!(
                    "{id} is defined in {} too, which is nearer and wins; the one here has no effect",
                    full(nearer)
                );
                let problem = Problem::warning("Overridden", message).at(place).also_at(nearer.clone());
                self.problems.push(problem.hint("delete one of the two, or rename it"));
            }
            return None;
        }
        self.taken.insert(id.clone(), places.first()?.clone());
        if places.len() > 1 {
            self.refuse(&id, &claims, places);
            return None;
        }
        self.broken.append(&mut claims.broken);
        let object = claims.good.pop()?;
        self.objects.insert(id.clone(), object);
        Some(id)
    }

    fn refuse(&mut self, id: &ObjectId, claims: &Claims, places: Vec<Origin>) {
        let listed: Vec<String> = places.iter().map(full).collect();
        let message =
            format!("{id} is defined {} times: in {}; none of them is used", places.len(), listed.join(" and in "));
        let mut problem = Problem::error("DuplicateObject", message).hint("delete all but one, or rename them");
        problem.origin = places.first().cloned();
        problem.related = places.into_iter().skip(1).collect();

        // Labels tell what a name would have applied to; when the two disagree nobody knows.
        let mut labels = claims.good.iter().map(|object| Some(&object.meta.labels));
        let mut broken_labels = claims.broken.iter().map(|broken| broken.labels.as_ref());
        let first = labels.next().or_else(|| broken_labels.next()).flatten();
        let agreed = first.filter(|first| labels.chain(broken_labels).all(|other| other == Some(first)));
        self.broken.push(Broken {
            kind: Some(id.kind),
            name: Some(id.name.clone()),
            owner: id.owner.clone(),
            labels: agreed.cloned(),
            problem: problem.clone(),
        });
        self.problems.push(problem.clone());
        self.failures.push(problem);
    }
}

impl Claims {
    fn places(&self) -> Vec<Origin> {
        let good = self.good.iter().map(|object| object.origin.clone());
        good.chain(self.broken.iter().filter_map(|broken| broken.problem.origin.clone())).collect()
    }
}

/// The place with its repository: two of them are rarely in the same one.
fn full(origin: &Origin) -> String {
    format!("{origin} of {}", origin.source)
}

#[cfg(test)]
mod tests;
