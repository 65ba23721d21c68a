//! Bounds what templates build: how deep and how large, circles included. Calls, `set` and `merge` ask here before a value
//! is used; whatever recurses over a value counts its levels against the same limit.
//!
//! A chain of maps can still grow from its top, one `set` at a time, so a walk must expect values deeper than the limit.

use std::rc::Rc;

use crate::function::Meter;
use crate::value::{Element, Key, Map, MapKind, Value};

/// Above what a configuration value can have (YAML is read 100 levels deep), below what hurts the stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// So many items of a value cost one step.
const ITEMS_PER_STEP: u64 = 8;

/// A walk through a value that pays as it goes.
struct Walk<'a> {
    meter: &'a mut Meter,
    /// Items that aren't paid yet.
    seen: u64,
    /// The map that must not be met.
    holder: Option<&'a Map>,
}

/// Refuses a level beyond the limit.
pub(crate) fn check_depth(depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("the value is nested deeper than {MAX_DEPTH} levels"));
    }
    Ok(())
}

/// Charges for a value's size and refuses one that is too deep.
pub(crate) fn bound(meter: &mut Meter, value: &Value) -> Result<(), String> {
    Walk { meter, seen: 0, holder: None }.run(value)
}

/// Puts a value into a map, but never the map into itself: a circle would neither print nor be freed.
pub(crate) fn insert(meter: &mut Meter, map: &Rc<Map>, key: Key, value: Value) -> Result<(), String> {
    Walk { meter, seen: 0, holder: Some(map) }.run(&value)?;
    map.entries.borrow_mut().insert(key, value);
    Ok(())
}

impl Walk<'_> {
    fn run(mut self, value: &Value) -> Result<(), String> {
        self.visit(value, 0)?;
        self.meter.steps(self.seen / ITEMS_PER_STEP)
    }

    fn visit(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        check_depth(depth)?;
        match value {
            Value::List(list) => {
                self.count(list.items.len())?;
                if list.element == Element::Any {
                    list.items.iter().try_for_each(|item| self.visit(item, depth + 1))?;
                }
            }
            Value::Map(map) => {
                if self.holder.is_some_and(|holder| std::ptr::eq(holder, &**map)) {
                    return Err("the map would hold itself".to_owned());
                }
                let entries = map.entries.borrow();
                self.count(entries.len())?;
                if map.kind != MapKind::StringString {
                    entries.values().try_for_each(|item| self.visit(item, depth + 1))?;
                }
            }
            Value::Struct(data) => data.fields.iter().try_for_each(|(_, item)| self.visit(item, depth + 1))?,
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, items: usize) -> Result<(), String> {
        self.seen += items as u64 + 1;
        self.meter.steps(self.seen / ITEMS_PER_STEP)?;
        self.seen %= ITEMS_PER_STEP;
        Ok(())
    }
}
