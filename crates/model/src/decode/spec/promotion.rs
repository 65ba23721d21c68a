//! PromotionPolicies: the chain of environments and their rings. What an environment says of gate, soak, failure and
//! `maxUnavailable` is each ring's unless the ring says otherwise; its approval is asked for once, before its first ring.

use std::collections::BTreeSet;
use std::time::Duration;

use super::calendar::{freeze, window};
use super::delivery::{duration, word};
use super::each;
use super::gate::{approval, failure, gate, max_unavailable, override_people};
use crate::decode::fields::{Fields, Value};
use crate::decode::metadata::check_name;
use crate::decode::node::short;
use crate::decode::notes::Notes;
use crate::decode::selector::{self, Unknown};
use crate::decode::suggestion::nearest;
use crate::kinds::{
    Amount, Approval, Counted, EnvironmentPolicy, Failure, Gate, Late, Members, Offline, Promoter, PromotionPolicy,
    Ring, WHOLE,
};
use crate::quantity::parse_share;

/// The rules of a ring, or those that an environment has for its rings.
#[derive(Clone)]
struct Rules {
    gate: Gate,
    soak: Duration,
    /// Whether one is written, and what it asks for.
    approval: Option<Option<Approval>>,
    failure: Failure,
    max_unavailable: Amount,
}

/// A ring with its place, for what only the whole list shows.
struct Placed<'n> {
    ring: Ring,
    at: Value<'n>,
    /// `selector` or `share`, where written.
    members: Option<Value<'n>>,
}

pub(super) fn policy(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<PromotionPolicy> {
    let promoters = [("kedge", Promoter::Kedge), ("external", Promoter::External)];
    let promoter = word(fields.take("promoter"), &promoters, notes);
    let hint = "list the chain in order: `environments: [{name: dev}, {name: prod}]`";
    let list = fields.need("environments", notes, hint)?;
    let items = list.items(notes)?;
    if items.is_empty() {
        list.refuse(notes, "InvalidValue", "names no environment", Some(hint));
        return None;
    }
    let mut environments: Vec<Option<EnvironmentPolicy>> = Vec::new();
    let mut written: Vec<Option<Value<'_>>> = Vec::new();
    let mut before: Option<String> = None;
    for item in &items {
        let read = environment(item, before.as_deref(), notes);
        before = read.as_ref().and_then(|(environment, _)| environment.as_ref()).map(|found| found.name.clone());
        let (environment, after) = read.unwrap_or_default();
        environments.push(environment);
        written.push(after);
    }
    let environments: Vec<EnvironmentPolicy> = environments.into_iter().collect::<Option<_>>()?;
    check_chain(&environments, &items, &written, notes)?;
    Some(PromotionPolicy { promoter: promoter?.unwrap_or_default(), environments })
}

/// The environment, and where its `after` is written.
type ReadEnvironment<'n> = (Option<EnvironmentPolicy>, Option<Value<'n>>);

fn environment<'n>(value: &Value<'n>, before: Option<&str>, notes: &mut Notes<'_>) -> Option<ReadEnvironment<'n>> {
    let mut fields = value.fields(notes)?;
    let name = fields.need("name", notes, "name the environment: `name: dev`").and_then(|value| value.word(notes));
    let written = fields.take("after");
    let after = match &written {
        Some(value) => words(value, notes),
        None => Some(before.map(str::to_owned).into_iter().collect()),
    };
    let rules = rules(&mut fields, &Rules::careful(), notes);
    // Also where the environment's own rules have an error, those of its rings are looked at.
    let above = rules.clone().unwrap_or_else(Rules::careful);
    let rings = match fields.take("rings") {
        Some(value) => rings(&value, &above, notes),
        None => Some(vec![above.clone().ring(Ring::ALL.to_owned(), Members::Rest)]),
    };
    let windows = each(fields.take("windows"), notes, window);
    let freezes = each(fields.take("freezes"), notes, freeze);
    let counts = fields.take("counts").map_or(Some(Counted::default()), |value| counts(&value, notes));
    let offline = [("complete", Offline::Complete), ("incomplete", Offline::Incomplete)];
    let offline = word(fields.take("offline"), &offline, notes);
    let late = word(fields.take("late"), &[("show", Late::Show), ("reopen", Late::Reopen)], notes);
    let override_people = fields.take("override").map_or(Some(1), |value| override_people(&value, notes));
    fields.finish_strictly(notes);
    let read = || {
        rules?;
        Some(EnvironmentPolicy {
            name: name?,
            after: after?,
            rings: rings?,
            windows: windows?,
            freezes: freezes?,
            counts: counts?,
            offline: offline?.unwrap_or_default(),
            late: late?.unwrap_or_default(),
            override_people: override_people?,
        })
    };
    Some((read(), written))
}

fn rules(fields: &mut Fields<'_>, above: &Rules, notes: &mut Notes<'_>) -> Option<Rules> {
    let gate = match fields.take("gate") {
        Some(value) => gate(&value, &above.gate, notes),
        None => Some(above.gate.clone()),
    };
    let soak = duration(fields.take("soak"), notes);
    let approval = match fields.take("approval") {
        Some(value) => approval(&value, notes).map(Some),
        None => Some(None),
    };
    let failure = match fields.take("failure") {
        Some(value) => failure(&value, above.failure, notes),
        None => Some(above.failure),
    };
    let max_unavailable = match fields.take("maxUnavailable") {
        Some(value) => max_unavailable(&value, notes),
        None => Some(above.max_unavailable),
    };
    Some(Rules {
        gate: gate?,
        soak: soak?.unwrap_or(above.soak),
        approval: approval?,
        failure: failure?,
        max_unavailable: max_unavailable?,
    })
}

fn rings(value: &Value<'_>, above: &Rules, notes: &mut Notes<'_>) -> Option<Vec<Ring>> {
    let items = value.items(notes)?;
    if items.is_empty() {
        let hint = "leave `rings` out: there is one of all clusters then";
        value.refuse(notes, "InvalidValue", "names no ring", Some(hint));
        return None;
    }
    let mut first = true;
    let read: Vec<Option<Placed<'_>>> =
        items.iter().map(|item| ring(item, above, std::mem::take(&mut first), notes)).collect();
    let read: Vec<Placed<'_>> = read.into_iter().collect::<Option<_>>()?;
    check_rings(value, &read, notes)?;
    Some(read.into_iter().map(|placed| placed.ring).collect())
}

fn ring<'n>(value: &Value<'n>, above: &Rules, is_first: bool, notes: &mut Notes<'_>) -> Option<Placed<'n>> {
    let mut fields = value.fields(notes)?;
    let name = fields.need("name", notes, "name the ring: `name: canary`").and_then(|value| {
        let name = value.word(notes)?;
        check_name(&value, &name, false, notes).then_some(name)
    });
    let (selected, share) = (fields.take("selector"), fields.take("share"));
    let members = match (&selected, &share) {
        (Some(_), Some(share)) => {
            share.refuse(notes, "InvalidValue", "can't stand beside `selector`", Some("remove one of the two"));
            None
        }
        (Some(value), None) => selector::read(value, Unknown::Refuse, notes).map(Members::Selected),
        (None, Some(value)) => part(value, notes).map(Members::Share),
        (None, None) => Some(Members::Rest),
    };
    let rules = rules(&mut fields, above, notes);
    fields.finish_strictly(notes);
    let (name, members, mut rules) = (name?, members?, rules?);
    if rules.approval.is_none() && is_first {
        rules.approval = above.approval.clone();
    }
    Some(Placed { ring: rules.ring(name, members), at: value.clone(), members: selected.or(share) })
}

fn part(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<u32> {
    let share = value.amount(notes, parse_share)?;
    if share == 0 {
        value.refuse(notes, "InvalidValue", "is nobody", Some("for example `share: 10%`"));
        return None;
    }
    Some(share)
}

/// What no ring shows alone: names, who takes the rest, and how much all shares are.
fn check_rings(list: &Value<'_>, rings: &[Placed<'_>], notes: &mut Notes<'_>) -> Option<()> {
    let mut names = BTreeSet::new();
    let mut fine = true;
    for (index, placed) in rings.iter().enumerate() {
        let name = short(&placed.ring.name);
        if !names.insert(placed.ring.name.as_str()) {
            let why = format!("has the name `{name}`, which another ring of this environment has");
            placed.at.refuse(notes, "DuplicateName", &why, Some("give each ring a name of its own"));
            fine = false;
        }
        let is_last = index + 1 == rings.len();
        match &placed.members {
            Some(members) if is_last => {
                let why =
                    format!("can't be there: `{name}` is the last ring and takes every cluster that no other takes");
                let hint = "remove it, or add a last ring for the rest: `- name: rest`";
                members.refuse(notes, "RingOrder", &why, Some(hint));
                fine = false;
            }
            None if !is_last => {
                let why = "has neither `selector` nor `share`, so that the rings after it would have no cluster";
                placed.at.refuse(notes, "RingOrder", why, Some("say who is in it: `share: 10%`, or a `selector`"));
                fine = false;
            }
            _ => {}
        }
    }
    let shares = rings.iter().map(|placed| match placed.ring.members {
        Members::Share(share) => u64::from(share),
        _ => 0,
    });
    let total: u64 = shares.sum();
    if total > u64::from(WHOLE) {
        let why = format!("has shares of {}% in total, and there is only 100%", percent(total));
        list.refuse(notes, "TooMuch", &why, Some("lower one of them; the last ring takes the rest without a share"));
        fine = false;
    }
    fine.then_some(())
}

fn percent(hundredths: u64) -> String {
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn counts(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Counted> {
    let mut fields = value.fields(notes)?;
    let cluster_types = fields.take("clusterTypes").map_or(Some(Vec::new()), |value| words(&value, notes));
    let workloads = fields.take("workloads").map_or(Some(Vec::new()), |value| words(&value, notes));
    fields.finish_strictly(notes);
    Some(Counted { cluster_types: cluster_types?, workloads: workloads? })
}

/// A list of names, none of them empty.
pub(super) fn words(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Vec<String>> {
    each(Some(value.clone()), notes, |item, notes| item.word(notes))
}

/// Names are their own, `after` leads to environments of the policy, and never back.
fn check_chain(
    environments: &[EnvironmentPolicy],
    items: &[Value<'_>],
    written: &[Option<Value<'_>>],
    notes: &mut Notes<'_>,
) -> Option<()> {
    let mut names = BTreeSet::new();
    let mut fine = true;
    for (environment, item) in environments.iter().zip(items) {
        if !names.insert(environment.name.as_str()) {
            let why = format!("names `{}`, which the policy names already", short(&environment.name));
            item.refuse(notes, "DuplicateName", &why, Some("write each environment once"));
            fine = false;
        }
    }
    for ((environment, item), after) in environments.iter().zip(items).zip(written) {
        let at = after.as_ref().unwrap_or(item);
        for name in environment.after.iter().filter(|name| !names.contains(name.as_str())) {
            let why = format!("names `{}`, which isn't an environment of this policy", short(name));
            let hint = match nearest(name, names.iter().copied()) {
                Some(known) => format!("did you mean `{known}`?"),
                None => "list it above with a `name` of its own, or remove it here".to_owned(),
            };
            at.refuse(notes, "UnknownEnvironment", &why, Some(&hint));
            fine = false;
        }
    }
    if !fine {
        return None;
    }
    let circle = circle(environments)?;
    if let Some(start) = circle.first() {
        let at = written.get(*start).and_then(Option::as_ref).or_else(|| items.get(*start))?;
        let name = |index: &usize| environments.get(*index).map_or("", |environment| environment.name.as_str());
        let way: Vec<&str> = circle.iter().chain([start]).map(name).collect();
        let why = format!("closes a circle: {}", way.join(" after "));
        at.refuse(notes, "Circle", &why, Some("let one of them begin: `after: []`"));
        return None;
    }
    Some(())
}

/// Environments that wait for each other, each for the next; empty when there are none.
fn circle(environments: &[EnvironmentPolicy]) -> Option<Vec<usize>> {
    let place = |name: &str| environments.iter().position(|environment| environment.name == name);
    let mut left: BTreeSet<usize> = (0..environments.len()).collect();
    loop {
        let ready = left.iter().copied().find(|index| {
            let after = environments.get(*index).map(|environment| environment.after.as_slice()).unwrap_or_default();
            after.iter().filter_map(|name| place(name)).all(|before| !left.contains(&before))
        });
        match ready {
            Some(index) => left.remove(&index),
            None => break,
        };
    }
    let Some(mut here) = left.first().copied() else { return Some(Vec::new()) };
    // Whoever is left waits for one that is left: the way must come back to where it was.
    let mut way = Vec::new();
    while !way.contains(&here) {
        way.push(here);
        let after = &environments.get(here)?.after;
        here = after.iter().filter_map(|name| place(name)).find(|before| left.contains(before))?;
    }
    Some(way.into_iter().skip_while(|index| *index != here).collect())
}

impl Rules {
    fn careful() -> Rules {
        Rules {
            gate: Gate::default(),
            soak: Ring::SOAK,
            approval: None,
            failure: Failure::default(),
            max_unavailable: Ring::MAX_UNAVAILABLE,
        }
    }

    fn ring(self, name: String, members: Members) -> Ring {
        Ring {
            name,
            members,
            gate: self.gate,
            soak: self.soak,
            approval: self.approval.flatten(),
            failure: self.failure,
            max_unavailable: self.max_unavailable,
        }
    }
}
