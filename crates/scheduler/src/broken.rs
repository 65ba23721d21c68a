//! How far an object that can't be read reaches.

use kedge_model::{Broken, Kind, Labels};

use crate::applies::PLATFORM_CONFIG;
use crate::config::is_app_config;

/// What a broken object stops.
pub enum Scope<'a> {
    Nowhere,
    /// It can't be told, so it may be anywhere.
    Everywhere,
    Labels(&'a Labels),
}

/// A ConfigMap or ConfigSchema that can't be read stops the assignments that it would apply to: without it they would
/// be published with values missing or unchecked. What a BaseRepo or a CapabilityMap would have changed nobody knows.
pub fn scope_of(broken: &Broken) -> Scope<'_> {
    let app_config = broken.name.as_deref().is_some_and(is_app_config);
    if broken.owner.is_some() {
        return Scope::Nowhere;
    }
    match (broken.kind, &broken.labels) {
        (Some(Kind::BaseRepo | Kind::CapabilityMap), _) => Scope::Everywhere,
        (Some(Kind::ConfigMap), _) if app_config => Scope::Everywhere,
        (Some(Kind::ConfigMap), Some(labels)) => match labels.get(PLATFORM_CONFIG) {
            Some(value) if value == "true" => Scope::Labels(labels),
            _ => Scope::Nowhere,
        },
        (Some(Kind::ConfigSchema), Some(labels)) => Scope::Labels(labels),
        (Some(Kind::ConfigMap | Kind::ConfigSchema), None) => Scope::Everywhere,
        _ => Scope::Nowhere,
    }
}
