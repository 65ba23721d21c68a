//! Which configuration values of a workload differ. Cluster types that both sides have are compared with each other, and
//! so are targets of one name; where there are none, all places of one side with all of the other. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::comparisons::{KeyComparison, PlacedValue};

use super::{Place, Value, Values, Workload};

/// Places that should have the same.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// The cluster type of both sides, where they share one.
    cluster_type: Option<&'a str>,
    left: Vec<&'a Place>,
    right: Vec<&'a Place>,
}

/// A value of some targets and rings, with what is shown of it. None: the key isn't set there.
type Found<'a> = BTreeMap<Option<String>, (Option<&'a Value>, BTreeSet<&'a str>, BTreeSet<&'a str>)>;

pub(super) fn groups<'a>(left: &'a Workload, right: &'a Workload) -> Vec<Group<'a>> {
    let shared: Vec<&str> = left.cluster_types().intersection(&right.cluster_types()).copied().collect();
    if shared.is_empty() {
        return by_target(None, left.places.iter().collect(), right.places.iter().collect());
    }
    let of = |workload: &'a Workload, name: &str| -> Vec<&'a Place> {
        workload.places.iter().filter(|place| place.cluster_type == name).collect()
    };
    shared.into_iter().flat_map(|name| by_target(Some(name), of(left, name), of(right, name))).collect()
}

fn by_target<'a>(cluster_type: Option<&'a str>, left: Vec<&'a Place>, right: Vec<&'a Place>) -> Vec<Group<'a>> {
    let names =
        |places: &[&'a Place]| -> BTreeSet<&'a str> { places.iter().map(|place| place.target.as_str()).collect() };
    let shared: Vec<&str> = names(&left).intersection(&names(&right)).copied().collect();
    if shared.is_empty() {
        return vec![Group { cluster_type, left, right }];
    }
    let of = |places: &[&'a Place], name: &str| -> Vec<&'a Place> {
        places.iter().copied().filter(|place| place.target == name).collect()
    };
    shared.into_iter().map(|name| Group { cluster_type, left: of(&left, name), right: of(&right, name) }).collect()
}

/// What differs, and whether some of it can't be known.
pub(super) fn differences(groups: &[Group<'_>]) -> (Vec<KeyComparison>, bool) {
    let unknown = groups.iter().any(|group| !group.is_known());
    let mut rows: Vec<KeyComparison> = Vec::new();
    for group in groups.iter().filter(|group| group.is_known()) {
        for key in group.keys() {
            let (left, right) = (found(&group.left, key), found(&group.right, key));
            if left.keys().eq(right.keys()) {
                continue;
            }
            let (left, left_hidden) = shown(left);
            let (right, right_hidden) = shown(right);
            let types = group.cluster_type.map(str::to_owned);
            let redacted = left_hidden || right_hidden;
            let row = KeyComparison {
                key: key.to_owned(),
                cluster_types: types.into_iter().collect(),
                left,
                right,
                redacted,
            };
            add(&mut rows, row);
        }
    }
    rows.sort_by(|one, other| (&one.key, &one.cluster_types).cmp(&(&other.key, &other.cluster_types)));
    (rows, unknown)
}

/// Cluster types with the same difference share a row.
fn add(rows: &mut Vec<KeyComparison>, row: KeyComparison) {
    let same = rows.iter_mut().find(|other| {
        other.key == row.key && other.left == row.left && other.right == row.right && other.redacted == row.redacted
    });
    match same {
        // Values that are hidden look the same and aren't.
        Some(same) if !row.redacted => {
            for name in row.cluster_types {
                if !same.cluster_types.contains(&name) {
                    same.cluster_types.push(name);
                }
            }
        }
        _ => rows.push(row),
    }
}

impl Group<'_> {
    fn places(&self) -> impl Iterator<Item = &Place> {
        self.left.iter().chain(&self.right).copied()
    }

    fn is_known(&self) -> bool {
        self.places().all(|place| place.values.is_some())
    }

    fn keys(&self) -> BTreeSet<&str> {
        let values = self.places().filter_map(|place| place.values.as_deref()).flatten();
        values.flat_map(|values| values.keys().map(String::as_str)).collect()
    }
}

/// The different values of a key, as exact text, with the targets that have each.
fn found<'a>(places: &[&'a Place], key: &str) -> Found<'a> {
    let mut found = Found::new();
    for place in places {
        for (index, values) in place.values.iter().flatten().enumerate() {
            let values: &'a Values = values;
            let value = values.get(key);
            let exact = value.map(|value| canonical(&value.exact));
            let (_, targets, rings) = found.entry(exact).or_insert_with(|| (value, BTreeSet::new(), BTreeSet::new()));
            targets.insert(&place.target);
            rings.extend(place.runs.get(index).map(|run| run.ring.as_str()));
        }
    }
    found
}

/// Git has numbers and structures where a file that was made from it has text.
fn canonical(value: &serde_json::Value) -> String {
    let serde_json::Value::String(text) = value else { return value.to_string() };
    if !text.contains([':', '-', '{', '[']) {
        return text.clone();
    }
    let inside = kedge_goyaml::decode(text).ok().filter(kedge_goyaml::Value::is_collection);
    inside.map_or_else(|| text.clone(), |inside| kedge_scheduler::json::value_to_json(&inside).to_string())
}

/// As people see it, and whether something is hidden.
fn shown(found: Found<'_>) -> (Vec<PlacedValue>, bool) {
    let mut hidden = false;
    let names = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect();
    let set = found.into_values().filter_map(|(value, targets, rings)| {
        let value = value?;
        hidden |= value.exact != value.shown;
        Some(PlacedValue { value: value.shown.clone(), targets: names(targets), rings: names(rings) })
    });
    let values = set.collect();
    (values, hidden)
}
