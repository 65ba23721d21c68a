//! Configuration: the values, the schemas that hold for them, and the labels that the platform gives to targets.

use std::collections::BTreeMap;

use crate::{Labels, Selector};

/// A core ConfigMap: its labels say where it applies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigMap {
    pub data: BTreeMap<String, ConfigValue>,
}

/// A value and the line of the file that its key is on.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigValue {
    pub text: String,
    pub line: u32,
}

/// A JSON Schema as text; its labels say where it applies.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigSchema {
    pub schema: String,
}

/// Rules that give deployment targets platform labels from the labels the application chose.
#[derive(Clone, Debug, PartialEq)]
pub struct CapabilityMap {
    pub rules: Vec<CapabilityRule>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CapabilityRule {
    pub when: Selector,
    pub add: Labels,
    /// The line of the file that the rule begins on.
    pub line: u32,
}
