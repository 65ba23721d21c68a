//! What a template may call: a name, Go's parameter types, and the code. The engine checks and converts arguments
//! against the types, as Go's reflection does, before the code sees them.

use crate::value::Value;

/// A function that templates can call.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    pub params: &'static [Param],
    /// The type of the rest, for a variadic one.
    pub variadic: Option<Param>,
    pub call: fn(&mut Meter, &[Value]) -> Result<Value, String>,
}

/// The Go type of a parameter. Arguments reach the code as the variant named here; `Any` takes every value, nil too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// `interface {}`
    Any,
    /// `string`
    Str,
    /// `int`
    Int,
    /// `float64`
    Float,
    /// `bool`
    Bool,
    /// `map[string]interface {}`
    Dict,
    /// `time.Time`
    Time,
    /// `time.Duration`
    Duration,
    /// `*semver.Version`, which may be nil.
    Version,
}

/// What is left of the budget of one rendering. Functions that can make much out of little charge it first.
#[derive(Debug)]
pub struct Meter {
    pub steps_left: u64,
    pub bytes_left: u64,
}

impl Meter {
    /// Pays for work that grows with an argument: one step an item.
    pub fn steps(&mut self, count: u64) -> Result<(), String> {
        self.steps_left = self
            .steps_left
            .checked_sub(count)
            .ok_or_else(|| "the template takes more steps than its budget allows".to_owned())?;
        Ok(())
    }

    /// Pays for bytes that are made: strings and output.
    pub fn bytes(&mut self, count: u64) -> Result<(), String> {
        self.bytes_left = self
            .bytes_left
            .checked_sub(count)
            .ok_or_else(|| "the template makes more text than its budget allows".to_owned())?;
        Ok(())
    }
}
