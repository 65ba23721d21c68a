//! One assignment's files from its templates, its configuration and its target.

use std::fmt::Write as _;
use std::sync::Arc;

use kedge_goyaml::{Key, Value};
use kedge_model::{AssignmentId, Object, Origin, Problem, Source, Spec};
use kedge_template::{Context, Data, Limits};

use crate::compose::Values;
use crate::containment::{self, Case, File};
use crate::files::{ConfigFile, Files};
use crate::target::Target;
use crate::template::Compiled;

/// Kubernetes' limit for a namespace's name.
const MAX_NAMESPACE: usize = 63;

/// The templates of a cluster type, or why there are none.
#[derive(Debug)]
pub struct Writers {
    pub reconciler: Result<Arc<Compiled>, Box<Problem>>,
    pub namespace: Result<Arc<Compiled>, Box<Problem>>,
    pub config: Result<ConfigWriter, Box<Problem>>,
}

/// How the configuration is written.
#[derive(Debug)]
pub enum ConfigWriter {
    Template(Arc<Compiled>),
    /// From before config templates: a ConfigMap `platform-config`.
    ConfigMap,
    /// From before config templates: `export` lines.
    EnvFile,
}

impl Writers {
    /// Templates that are missing.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        [self.reconciler.as_ref().err(), self.namespace.as_ref().err(), self.config.as_ref().err()]
            .into_iter()
            .flatten()
            .map(|problem| &**problem)
    }
}

/// What rendering an assignment gave.
#[derive(Debug)]
pub struct Rendered {
    pub files: Result<Files, Vec<Problem>>,
    pub warnings: Vec<Problem>,
}

/// Renders one assignment. Every reason is collected, not just the first.
pub fn render(id: &AssignmentId, target: &Target, writers: &Writers, values: &Values, limits: &Limits) -> Rendered {
    let namespace_name = format!("{}-{}-{}", target.environment, id.cluster_type, id.target);
    let data = Data::new(Context {
        deployment_target_name: &target.name,
        namespace: &namespace_name,
        environment: &target.environment,
        workspace: &target.workspace,
        workload: &target.workload,
        labels: &target.labels,
        manifests: &target.manifests,
        cluster_type: &id.cluster_type,
        config: values,
    })
    .with_platform_labels(&target.platform_labels);
    let run = |compiled: &Result<Arc<Compiled>, Box<Problem>>| match compiled {
        Ok(template) => template.render(&data, limits),
        Err(problem) => Err(problem.clone()),
    };
    // Kalypso's order: a template may change the values that later ones see.
    let reconciler = run(&writers.reconciler);
    let namespace = run(&writers.namespace);
    let config = match &writers.config {
        Ok(ConfigWriter::Template(template)) => {
            template.render(&data, limits).map(|rendered| (template.config_file, rendered, Some(template)))
        }
        Ok(ConfigWriter::ConfigMap) => Ok((ConfigFile::Yaml, written(config_map(&namespace_name, values)), None)),
        Ok(ConfigWriter::EnvFile) => Ok((ConfigFile::Shell, written(env_file(values)), None)),
        Err(problem) => Err(problem.clone()),
    };
    let mut rendered = Rendered { files: Err(Vec::new()), warnings: Vec::new() };
    match (reconciler, namespace, config) {
        (Ok(reconciler), Ok(namespace), Ok((kind, config, config_template))) => {
            let templates = [
                (Files::RECONCILER, writers.reconciler.as_ref().ok(), &reconciler),
                (Files::NAMESPACE, writers.namespace.as_ref().ok(), &namespace),
                (kind.name(), config_template, &config),
            ];
            let files: Vec<File<'_>> = templates
                .into_iter()
                .filter_map(|(name, template, rendered)| Some(File { name, template: template?, rendered }))
                .collect();
            let case = Case { id, target, namespace: &namespace_name, values, limits, files: &files };
            let mut reasons = containment::check(case);
            // A cause hides its consequences: what became structure rarely makes sense.
            if reasons.is_empty() {
                reasons = check(id, &namespace_name, &reconciler.text, &namespace.text, &mut rendered.warnings);
            }
            rendered.files = if reasons.is_empty() {
                Ok(Files {
                    reconciler: Arc::from(reconciler.text),
                    namespace: Arc::from(namespace.text),
                    config: (!config.text.is_empty()).then(|| (kind, Arc::from(config.text))),
                })
            } else {
                Err(reasons)
            };
        }
        (reconciler, namespace, config) => {
            let failures = [reconciler.err(), namespace.err(), config.err()];
            rendered.files = Err(failures.into_iter().flatten().map(|problem| *problem).collect());
        }
    }
    rendered
}

/// A file that no template made.
fn written(text: String) -> kedge_template::Rendered {
    kedge_template::Rendered { text, ..kedge_template::Rendered::default() }
}

/// What Kedge itself will deliver is checked now; what others deliver is theirs to judge.
fn check(
    id: &AssignmentId,
    namespace_name: &str,
    reconciler: &str,
    namespace: &str,
    warnings: &mut Vec<Problem>,
) -> Vec<Problem> {
    let mut reasons = Vec::new();
    let mut to_kubernetes = false;
    if reconciler.contains("kedge.dev/") {
        for object in decode_own(id, Files::RECONCILER, reconciler, &mut reasons, warnings) {
            if let Spec::Delivery(delivery) = &object.spec {
                to_kubernetes |= delivery.to == kedge_model::kinds::Destination::Kubernetes;
            }
        }
    }
    if namespace.contains("kedge.dev/") {
        decode_own(id, Files::NAMESPACE, namespace, &mut reasons, warnings);
    } else if to_kubernetes && let Err(error) = kedge_goyaml::node::parse(namespace, &kedge_goyaml::Limits::default()) {
        let message = format!("{} can't be read as YAML: {}", Files::NAMESPACE, error.message);
        let at = origin(id, Files::NAMESPACE).at(error.line, error.column);
        reasons.push(Problem::error("NotYaml", message).at(at));
    }
    if namespace_name.len() > MAX_NAMESPACE {
        let message = format!(
            "namespace `{namespace_name}` has {} characters, Kubernetes allows {MAX_NAMESPACE}",
            namespace_name.len()
        );
        let hint = "shorten the name of the environment, the cluster type, the workload or the target";
        if to_kubernetes {
            reasons.push(Problem::error("NamespaceTooLong", message).hint(hint));
        } else {
            warnings.push(Problem::warning("NamespaceTooLong", message).hint(hint));
        }
    }
    reasons
}

/// Objects of our own kinds in a rendered file. What is wrong with them stops the assignment, also a field that we don't
/// know. What is written beside them is none of our business.
fn decode_own(
    id: &AssignmentId,
    file: &str,
    text: &str,
    reasons: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) -> Vec<Object> {
    let origin = origin(id, file);
    let options = kedge_model::decode::Options { rendered: true, ..kedge_model::decode::Options::default() };
    let decoded = kedge_model::decode::objects(text.as_bytes(), &origin, &options);
    for problem in decoded.problems {
        if problem.is_error() {
            reasons.push(problem);
        } else if problem.code == "UnknownField" {
            warnings.push(problem);
        }
    }
    decoded.objects
}

/// Of a rendered file.
fn origin(id: &AssignmentId, file: &str) -> Origin {
    let source = Source { repo: "rendered".to_owned(), revision: None };
    Origin { source: Arc::new(source), file: Arc::from(format!("{id}/{file}").as_str()), line: 0, column: 0 }
}

fn config_map(namespace: &str, values: &Values) -> String {
    let text = |text: &str| Value::String(text.to_owned());
    let map = |entries: Vec<(&str, Value)>| {
        Value::Map(entries.into_iter().map(|(key, value)| (Key::String(key.to_owned()), value)).collect())
    };
    let data = values.iter().map(|(key, value)| (Key::String(key.to_string()), (**value).clone())).collect();
    let object = map(vec![
        ("apiVersion", text("v1")),
        ("data", Value::Map(data)),
        ("kind", text("ConfigMap")),
        ("metadata", map(vec![("name", text("platform-config")), ("namespace", text(namespace))])),
    ]);
    kedge_goyaml::encode(&object, 2)
}

/// Kalypso quotes nothing inside a text, and neither do we; a structure is JSON that the shell hands on unchanged.
fn env_file(values: &Values) -> String {
    let mut text = String::new();
    for (key, value) in values {
        let _ = match &**value {
            Value::String(value) => writeln!(text, "export {key}=\"{value}\""),
            structure => {
                let json = crate::schema::json(structure).to_string().replace('\\', "\\\\").replace('"', "\\\"");
                writeln!(text, "export {key}=\"{json}\"")
            }
        };
    }
    text
}
