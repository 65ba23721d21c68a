//! Composition: the values that apply to a pair, merged in the order of their ConfigMaps' names.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_goyaml::{Key, Value};

use crate::applies::{self, Place, Residual, Tenancy};
use crate::config::{Config, Entry, Scoped};

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
    pub fn compose(&self, chosen: &[u32]) -> Values {
        let mut values = Values::new();
        for item in chosen.iter().filter_map(|index| self.item(*index)) {
            item.each(|key, entry| merge_entry(&mut values, key, &entry.value));
        }
        values
    }
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

fn merge_entry(values: &mut Values, key: &Arc<str>, new: &Arc<Value>) {
    match values.get_mut(key) {
        None => {
            values.insert(Arc::clone(key), Arc::clone(new));
        }
        Some(old) if mergeable(old, new) => merge(Arc::make_mut(old), new),
        Some(old) => *old = Arc::clone(new),
    }
}

fn mergeable(old: &Value, new: &Value) -> bool {
    matches!((old, new), (Value::Map(_), Value::Map(_)) | (Value::List(_), Value::List(_)))
}

/// Map into map recursively, list onto list; otherwise the later one wins.
pub fn merge(old: &mut Value, new: &Value) {
    match (old, new) {
        (Value::Map(old), Value::Map(new)) => {
            for (key, value) in new {
                match old.get_mut(key) {
                    Some(existing) => merge(existing, value),
                    None => {
                        old.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::List(old), Value::List(new)) => new.iter().for_each(|item| merge_item(old, item)),
        (old, new) => *old = new.clone(),
    }
}

/// A map merges into every earlier map of the same `name`; anything else is appended.
fn merge_item(list: &mut Vec<Value>, item: &Value) {
    let mut merged = false;
    if let Value::Map(new) = item {
        let name = Key::String("name".to_owned());
        for existing in list.iter_mut() {
            if let Value::Map(old) = existing
                && same_name(old.get(&name), new.get(&name))
            {
                merge(existing, item);
                merged = true;
            }
        }
    }
    if !merged {
        list.push(item.clone());
    }
}

/// Go compares the two interfaces: a missing name and a null one are the same, maps and lists aren't comparable.
fn same_name(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null)) {
        (Value::Map(_) | Value::List(_), _) | (_, Value::Map(_) | Value::List(_)) => false,
        (old, new) => old == new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::interpret;

    fn merged(texts: &[&str]) -> Value {
        let mut values = texts.iter().map(|text| interpret(text));
        let mut first = values.next().unwrap();
        values.for_each(|value| merge(&mut first, &value));
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
    fn names_of_another_type_are_other_names() {
        assert_eq!(merged(&["[{name: 1}]", "[{name: '1'}]"]), interpret("[{name: 1}, {name: '1'}]"));
    }
}
