//! Composition: the values that apply to a pair, merged in the order of their ConfigMaps' names.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kedge_goyaml::{Key, Value};
use kedge_model::Origin;

use crate::applies::{self, Place, Residual, Tenancy};
use crate::config::{Config, Entry, Scoped};

/// How many merges one value may take: lists whose items all have one name grow as the product of their lengths.
const MERGE_STEPS: usize = 200_000;

/// Composed values by key.
pub type Values = BTreeMap<Arc<str>, Arc<Value>>;

/// What may apply on one cluster type, with what is still asked of the target. In the order of merging.
#[derive(Debug)]
pub struct Candidates<'a> {
    items: Vec<(Residual<'a>, Item<'a>)>,
}

/// One contribution: a whole ConfigMap, or one scoped value of it.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    Map(&'a Config, &'a BTreeMap<Arc<str>, Entry>),
    Value(&'a Config, &'a Scoped),
}

impl<'a> Candidates<'a> {
    /// Configs come sorted by name.
    pub fn on(place: Place<'_>, configs: impl Iterator<Item = &'a Config> + Clone) -> Candidates<'a> {
        let mut items = Vec::new();
        for config in configs.clone() {
            if let Some(values) = &config.values
                && let Some(rest) = applies::residual(&config.labels, place)
            {
                items.push((rest, Item::Map(config, values)));
            }
        }
        for config in configs {
            for scoped in config.scoped.iter().flatten() {
                if let Some(rest) = applies::residual(&scoped.labels, place) {
                    items.push((rest, Item::Value(config, scoped)));
                }
            }
        }
        Candidates { items }
    }

    /// Which of them apply to a target, by their place in the order.
    pub fn chosen(&self, tenancy: Tenancy<'_>) -> Vec<u32> {
        (0u32..).zip(&self.items).filter(|(_, (rest, _))| applies::satisfied(rest, tenancy)).map(|(i, _)| i).collect()
    }

    pub fn item(&self, index: u32) -> Option<Item<'a>> {
        self.items.get(index as usize).map(|(_, item)| *item)
    }

    /// Merges the chosen ones.
    pub fn compose(&self, chosen: &[u32]) -> Result<Values, TooMuch> {
        let mut values = Values::new();
        for item in chosen.iter().filter_map(|index| self.item(*index)) {
            let mut outcome = Ok(());
            item.each(|key, entry| {
                if outcome.is_ok() {
                    outcome = merge_entry(&mut values, key, &entry.value);
                }
            });
            outcome?;
        }
        Ok(values)
    }

    /// Where the last of the chosen ones wrote a key.
    pub fn last_place(&self, chosen: &[u32], key: &str) -> Option<Origin> {
        chosen.iter().rev().filter_map(|index| self.item(*index)).find_map(|item| {
            let mut line = None;
            item.each(|name, entry| {
                if &**name == key {
                    line = Some(entry.line);
                }
            });
            line.map(|line| item.config().origin.at(line, 0))
        })
    }
}

/// A value whose merging has no end worth waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMuch {
    pub key: Arc<str>,
}

impl<'a> Item<'a> {
    pub fn config(self) -> &'a Config {
        match self {
            Item::Map(config, _) | Item::Value(config, _) => config,
        }
    }

    /// Every key that it contributes.
    pub fn each(self, mut give: impl FnMut(&'a Arc<str>, &'a Entry)) {
        match self {
            Item::Map(_, values) => values.iter().for_each(|(key, entry)| give(key, entry)),
            Item::Value(_, scoped) => give(&scoped.key, &scoped.entry),
        }
    }
}

fn merge_entry(values: &mut Values, key: &Arc<str>, new: &Arc<Value>) -> Result<(), TooMuch> {
    match values.get_mut(key) {
        None => {
            values.insert(Arc::clone(key), Arc::clone(new));
        }
        Some(old) if mergeable(old, new) => {
            let mut steps = MERGE_STEPS;
            if !merge(Arc::make_mut(old), new, &mut steps) {
                return Err(TooMuch { key: Arc::clone(key) });
            }
        }
        Some(old) => *old = Arc::clone(new),
    }
    Ok(())
}

/// Whether the later value goes into the earlier one instead of replacing it.
pub fn mergeable(old: &Value, new: &Value) -> bool {
    matches!((old, new), (Value::Map(_), Value::Map(_)) | (Value::List(_), Value::List(_)))
}

/// Map into map recursively, list onto list; otherwise the later one wins. False when the steps are used up.
pub fn merge(old: &mut Value, new: &Value, steps: &mut usize) -> bool {
    if *steps == 0 {
        return false;
    }
    *steps -= 1;
    match (old, new) {
        (Value::Map(old), Value::Map(new)) => new.iter().all(|(key, value)| match old.get_mut(key) {
            Some(existing) => merge(existing, value, steps),
            None => {
                old.insert(key.clone(), value.clone());
                true
            }
        }),
        (Value::List(old), Value::List(new)) => merge_lists(old, new, steps),
        (old, new) => {
            *old = new.clone();
            true
        }
    }
}

/// A map merges into every earlier map of the same `name`, also one that was just appended; anything else is appended.
fn merge_lists(old: &mut Vec<Value>, new: &[Value], steps: &mut usize) -> bool {
    let mut named: HashMap<Name, Vec<usize>> = HashMap::new();
    for (at, item) in old.iter().enumerate() {
        if let Some(name) = Name::of(item) {
            named.entry(name).or_default().push(at);
        }
    }
    for item in new {
        let name = Name::of(item);
        let places = name.as_ref().and_then(|name| named.get(name)).cloned().unwrap_or_default();
        if places.is_empty() {
            if let Some(name) = name {
                named.insert(name, vec![old.len()]);
            }
            old.push(item.clone());
        } else if !places.iter().all(|at| merge(&mut old[*at], item, steps)) {
            return false;
        }
    }
    true
}

/// The `name` of a map in a list, as Go compares interfaces: type and value; a missing one and a null one are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(u64),
    Text(String),
}

impl Name {
    /// None for what isn't a map, and for a name that equals nothing: a map, a list, NaN.
    fn of(item: &Value) -> Option<Name> {
        let Value::Map(map) = item else { return None };
        match map.get(&Key::String("name".to_owned())).unwrap_or(&Value::Null) {
            Value::Null => Some(Name::Null),
            Value::Bool(bool) => Some(Name::Bool(*bool)),
            Value::Int(int) => Some(Name::Int(*int)),
            Value::Uint(uint) => Some(Name::Uint(*uint)),
            Value::Float(float) if float.is_nan() => None,
            // Adding zero makes one of the two zeros.
            Value::Float(float) => Some(Name::Float((float + 0.0).to_bits())),
            Value::String(text) => Some(Name::Text(text.clone())),
            Value::Map(_) | Value::List(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::interpret;

    fn merged(texts: &[&str]) -> Value {
        let mut values = texts.iter().map(|text| interpret(text));
        let mut first = values.next().unwrap();
        values.for_each(|value| assert!(merge(&mut first, &value, &mut MERGE_STEPS.clone())));
        first
    }

    #[test]
    fn maps_merge_and_lists_inside_append() {
        assert_eq!(
            merged(&["{x: 1, s: {z: 2}, l: [a]}", "{s: {q: 3}, x: 9, l: [b]}"]),
            interpret("{x: 9, s: {z: 2, q: 3}, l: [a, b]}")
        );
    }

    #[test]
    fn list_items_merge_by_name_and_nameless_maps_count_as_one() {
        assert_eq!(
            merged(&[
                "[{name: n1, v: 1}, {name: n2}, plain, {k: 1}]",
                "[{name: n1, w: 2}, plain, {k2: 2}, {name: n3}]"
            ]),
            interpret("[{name: n1, v: 1, w: 2}, {name: n2}, plain, {k: 1, k2: 2}, plain, {name: n3}]")
        );
    }

    #[test]
    fn an_item_that_was_just_appended_is_an_earlier_one_for_the_next() {
        assert_eq!(merged(&["[]", "[{a: 1}, {b: 2}]"]), interpret("[{a: 1, b: 2}]"));
    }

    #[test]
    fn when_types_differ_the_later_wins() {
        assert_eq!(merged(&["[a]", "text"]), interpret("text"));
        assert_eq!(merged(&["{a: b}", "[x]"]), interpret("[x]"));
    }

    #[test]
    fn lists_that_multiply_end_in_an_error() {
        let list = interpret(&format!("[{}]", "{name: x, a: 1}, ".repeat(2000)));
        assert!(!merge(&mut list.clone(), &list, &mut MERGE_STEPS.clone()));
    }

    #[test]
    fn names_of_another_type_are_other_names() {
        assert_eq!(merged(&["[{name: 1}]", "[{name: '1'}]"]), interpret("[{name: 1}, {name: '1'}]"));
    }
}
