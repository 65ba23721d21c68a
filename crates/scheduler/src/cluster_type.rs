//! A cluster type that targets can be put on: its labels, and the templates that write its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::kinds::ClusterType;
use kedge_model::name::check_cluster_type_name;
use kedge_model::{Broken, Kind, Labels, Object, ObjectId, Problem, Spec};

use crate::render::{ConfigWriter, Writers};
use crate::template::Compiled;

#[derive(Debug)]
pub struct ClusterTypeState {
    pub labels: Labels,
    pub writers: Writers,
}

/// Where templates are looked up: those that were read, and those that are written and can't be.
#[derive(Clone, Copy, Debug)]
pub struct Library<'a> {
    pub templates: &'a BTreeMap<String, Arc<Compiled>>,
    pub broken: &'a [Broken],
}

impl ClusterTypeState {
    /// None when the name can't be a folder.
    pub fn of(object: &Object, library: Library<'_>) -> Option<ClusterTypeState> {
        let Spec::ClusterType(spec) = &object.spec else { return None };
        check_cluster_type_name(&object.meta.name).ok()?;
        Some(ClusterTypeState {
            labels: object.meta.labels.clone(),
            writers: Writers {
                reconciler: library.find(object, "reconciler", &spec.reconciler),
                namespace: library.find(object, "namespaceService", &spec.namespace_service),
                config: library.config_writer(object, spec),
            },
        })
    }
}

impl Library<'_> {
    fn find(self, cluster_type: &Object, field: &str, name: &str) -> Result<Arc<Compiled>, Box<Problem>> {
        match self.templates.get(name) {
            Some(compiled) => Ok(Arc::clone(compiled)),
            None => Err(missing(cluster_type, field, name, self.broken(name))),
        }
    }

    /// A built-in writer is meant only where no Template has the name.
    fn config_writer(self, object: &Object, spec: &ClusterType) -> Result<ConfigWriter, Box<Problem>> {
        let name = spec.config_type.as_deref().unwrap_or_default();
        if !self.templates.contains_key(name) && self.broken(name).is_none() {
            if name.is_empty() || name.eq_ignore_ascii_case("configmap") {
                return Ok(ConfigWriter::ConfigMap);
            }
            if name.eq_ignore_ascii_case("envfile") {
                return Ok(ConfigWriter::EnvFile);
            }
        }
        self.find(object, "configType", name).map(ConfigWriter::Template)
    }

    fn broken(&self, name: &str) -> Option<&Problem> {
        self.broken
            .iter()
            .find(|broken| broken.kind == Some(Kind::Template) && broken.name.as_deref() == Some(name))
            .map(|broken| &broken.problem)
    }
}

/// A template that a cluster type names and that isn't there, or is and can't be read.
fn missing(cluster_type: &Object, field: &str, name: &str, broken: Option<&Problem>) -> Box<Problem> {
    let id = ObjectId { kind: Kind::Template, owner: None, name: name.to_owned() };
    let who = &cluster_type.meta.name;
    let (message, place) = match broken {
        None => (format!("there is no {id}, which ClusterType {who} names in `{field}`"), None),
        Some(broken) => {
            (format!("{id}, which ClusterType {who} names in `{field}`, can't be read"), broken.origin.clone())
        }
    };
    let problem = Problem::error("TemplateMissing", message).at(cluster_type.origin.clone());
    Box::new(match place {
        Some(place) => problem.also_at(place),
        None => problem.hint(format!("add a Template named `{name}`, or change `{field}` of the cluster type")),
    })
}
