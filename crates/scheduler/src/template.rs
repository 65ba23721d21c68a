//! A Template object, parsed once. Its errors are placed in the file that it was written in.

use std::collections::BTreeSet;

use kedge_model::{Excerpt, Object, Origin, Problem, Spec};
use kedge_template::{Data, Limits, Rendered, Template};

use crate::files::ConfigFile;

/// A template ready to run many times.
#[derive(Debug)]
pub struct Compiled {
    name: String,
    manifests: Vec<Template>,
    /// What its configuration file is called, when it is a config template.
    pub config_file: ConfigFile,
    /// The application's texts that it decides by, as its annotation names them: `Labels.tier`, `Manifests.chart`.
    branches_on: BTreeSet<String>,
    /// Set when a manifest doesn't parse.
    broken: Option<Problem>,
    object: std::sync::Arc<Object>,
}

impl Compiled {
    /// The annotation in which a template names the application's texts that it branches on.
    pub const BRANCHES_ON: &str = "kedge.dev/branches-on";

    pub fn of(object: &std::sync::Arc<Object>) -> Option<Compiled> {
        let Spec::Template(spec) = &object.spec else { return None };
        let mut compiled = Compiled {
            name: object.meta.name.clone(),
            manifests: Vec::with_capacity(spec.manifests.len()),
            config_file: match spec.content_type.as_deref() {
                Some("sh") => ConfigFile::Shell,
                _ => ConfigFile::Yaml,
            },
            branches_on: branches(object.meta.annotations.get(Compiled::BRANCHES_ON)),
            broken: None,
            object: std::sync::Arc::clone(object),
        };
        for (index, manifest) in spec.manifests.iter().enumerate() {
            match Template::parse(&manifest.text) {
                Ok(template) => compiled.manifests.push(template),
                Err(error) => {
                    compiled.broken = Some(compiled.problem(index, &error));
                    break;
                }
            }
        }
        Some(compiled)
    }

    /// Why it can't be rendered by anybody.
    pub fn fault(&self) -> Option<&Problem> {
        self.broken.as_ref()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn origin(&self) -> Origin {
        self.object.origin.clone()
    }

    /// Whether it says of any text that it branches on it.
    pub fn branches(&self) -> bool {
        !self.branches_on.is_empty()
    }

    /// Whether it says so of this one, or of a longer name that it is part of.
    pub fn branches_on(&self, text: &str) -> bool {
        let wholes: &[&str] = match text {
            "Workload" => &["Labels.workload", "DeploymentTargetName", "Namespace"],
            "DeploymentTargetName" => &["Namespace"],
            _ => &[],
        };
        self.branches()
            && (self.branches_on.contains(text) || wholes.iter().any(|whole| self.branches_on.contains(*whole)))
    }

    /// Renders every manifest and joins what isn't empty.
    pub fn render(&self, data: &Data<'_>, limits: &Limits) -> Result<Rendered, Box<Problem>> {
        if let Some(problem) = &self.broken {
            return Err(Box::new(problem.clone()));
        }
        let mut joined = Rendered::default();
        for (index, template) in self.manifests.iter().enumerate() {
            let next = template.render_noting(data, limits).map_err(|error| Box::new(self.problem(index, &error)))?;
            joined = match index {
                0 => next,
                _ => join(joined, next),
            };
        }
        Ok(joined)
    }

    fn problem(&self, index: usize, error: &kedge_template::Error) -> Problem {
        let Spec::Template(spec) = &self.object.spec else {
            return Problem::error("TemplateFailed", error.to_string());
        };
        let first = spec.manifests.get(index).map_or(0, |manifest| manifest.line);
        let manifest = match spec.manifests.len() {
            1 => String::new(),
            _ => format!(", manifest {}", index + 1),
        };
        let place = match error.line {
            Some(line) => format!(" line {line}"),
            None => String::new(),
        };
        let line = if first == 0 { self.object.origin.line } else { first + error.line.unwrap_or(1).saturating_sub(1) };
        let expression = match error.expression() {
            Some(expression) => format!(" at <{expression}>"),
            None => String::new(),
        };
        let cause = error.cause();
        let message = format!("template `{}`{manifest}{place}{expression}: {cause}", self.name);
        let mut problem = Problem::error("TemplateFailed", message).at(self.object.origin.at(line, 0));
        problem.excerpt = spec.manifests.get(index).and_then(|manifest| excerpt(&manifest.text, error));
        problem
    }
}

/// One manifest behind another.
fn join(mut joined: Rendered, next: Rendered) -> Rendered {
    if !joined.text.is_empty() && !next.text.is_empty() {
        joined.text.push_str("---\n");
    }
    let before = joined.text.len();
    let moved = next.uses.places.into_iter().map(|place| place.start + before..place.end + before);
    joined.uses.places.extend(moved);
    joined.uses.computed |= next.uses.computed;
    joined.uses.values |= next.uses.values;
    joined.uses.whole |= next.uses.whole;
    joined.text.push_str(&next.text);
    joined.actions.push_str(&next.actions);
    joined
}

/// `Labels.tier, .Manifests.chart`: names with or without the dot that templates write.
fn branches(annotation: Option<&String>) -> BTreeSet<String> {
    let names = annotation.map(String::as_str).unwrap_or_default().split([',', ' ']);
    names.map(|name| name.trim_start_matches('.')).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The line of the template with a caret. A later pass renders other text, whose lines aren't the template's.
fn excerpt(text: &str, error: &kedge_template::Error) -> Option<Excerpt> {
    let line = text.lines().nth(error.line?.checked_sub(1)? as usize).filter(|_| error.config_key.is_none())?;
    let column = line.get(..error.column.unwrap_or(0) as usize).map_or(1, |before| before.chars().count() + 1);
    Some(Excerpt::of_line(line, column, 1))
}
