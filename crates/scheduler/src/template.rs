//! A Template object, parsed once. Its errors are placed in the file that it was written in.

use kedge_model::{Excerpt, Object, Problem, Spec};
use kedge_template::{Data, Limits, Template};

use crate::files::ConfigFile;

/// A template ready to run many times.
#[derive(Debug)]
pub struct Compiled {
    name: String,
    manifests: Vec<Template>,
    /// What its configuration file is called, when it is a config template.
    pub config_file: ConfigFile,
    /// Set when a manifest doesn't parse.
    broken: Option<Problem>,
    object: std::sync::Arc<Object>,
}

impl Compiled {
    pub fn of(object: &std::sync::Arc<Object>) -> Option<Compiled> {
        let Spec::Template(spec) = &object.spec else { return None };
        let mut compiled = Compiled {
            name: object.meta.name.clone(),
            manifests: Vec::with_capacity(spec.manifests.len()),
            config_file: match spec.content_type.as_deref() {
                Some("sh") => ConfigFile::Shell,
                _ => ConfigFile::Yaml,
            },
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

    /// Renders every manifest and joins what isn't empty.
    pub fn render(&self, data: &Data<'_>, limits: &Limits) -> Result<String, Box<Problem>> {
        if let Some(problem) = &self.broken {
            return Err(Box::new(problem.clone()));
        }
        let mut joined = String::new();
        for (index, template) in self.manifests.iter().enumerate() {
            let text = template.render(data, limits).map_err(|error| Box::new(self.problem(index, &error)))?;
            if !joined.is_empty() && !text.is_empty() {
                joined.push_str("---\n");
            }
            joined.push_str(&text);
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

/// The line of the template with a caret. A later pass renders other text, whose lines aren't the template's.
fn excerpt(text: &str, error: &kedge_template::Error) -> Option<Excerpt> {
    let line = text.lines().nth(error.line?.checked_sub(1)? as usize).filter(|_| error.config_key.is_none())?;
    let column = line.get(..error.column.unwrap_or(0) as usize).map_or(1, |before| before.chars().count() + 1);
    Some(Excerpt::of_line(line, column, 1))
}
