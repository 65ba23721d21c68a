//! CapabilityMaps: platform labels that a target gets from the labels its application chose, before any policy looks.

use std::sync::Arc;

use kedge_model::{Kind, Labels, Object, Origin, Platform, Spec};

/// A label that a rule gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub key: String,
    pub value: String,
    pub map: String,
    pub origin: Origin,
}

/// The maps of a platform, by name: the order in which they give.
#[derive(Debug)]
pub struct Capabilities<'a> {
    maps: Vec<&'a Arc<Object>>,
}

impl<'a> Capabilities<'a> {
    pub fn of(platform: &'a Platform) -> Capabilities<'a> {
        Capabilities { maps: platform.of_kind(Kind::CapabilityMap).collect() }
    }

    /// What the rules give to a target with these labels. A rule sees the application's labels only, never what
    /// another rule gave, so that the order of rules decides nothing but who wins.
    pub fn given(&self, labels: &Labels) -> Vec<Given> {
        let mut given = Vec::new();
        for map in &self.maps {
            let Spec::CapabilityMap(spec) = &map.spec else { continue };
            for rule in spec.rules.iter().filter(|rule| rule.when.matches(labels)) {
                given.extend(rule.add.iter().map(|(key, value)| Given {
                    key: key.clone(),
                    value: value.clone(),
                    map: map.meta.name.clone(),
                    origin: map.origin.at(rule.line, 0),
                }));
            }
        }
        given
    }
}
