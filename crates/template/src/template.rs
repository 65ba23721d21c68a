//! A parsed template and its rendering: passes until no action is left. The scheduler parses once and renders per assignment.

use crate::context::Data;
use crate::error::Error;
use crate::execution::{self, Output};
use crate::function::Meter;
use crate::parser::{self, Trees};
use crate::uses::{self, Rendered, Uses};

/// A template, ready to render. It can be shared between threads.
#[derive(Debug)]
pub struct Template {
    pub(crate) source: Box<str>,
    pub(crate) trees: Trees,
}

/// What one rendering may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes and function arguments that are evaluated, items that functions make.
    pub steps: u64,
    /// Output and the strings made on the way.
    pub bytes: u64,
    /// Templates that call templates.
    pub depth: usize,
    /// How often output that still holds actions is rendered again.
    pub passes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 200_000, bytes: 4 << 20, depth: 100, passes: 10 }
    }
}

impl Template {
    pub fn parse(source: &str) -> Result<Template, Error> {
        Ok(Template { source: source.into(), trees: parser::parse(source)? })
    }

    /// Executes the template, and again what it wrote while that holds `{{`: configuration values may be templates.
    pub fn render(&self, data: &Data<'_>, limits: &Limits) -> Result<String, Error> {
        self.render_noting(data, limits).map(|rendered| rendered.text)
    }

    /// As `render`, and says what was done with the application's text.
    pub fn render_noting(&self, data: &Data<'_>, limits: &Limits) -> Result<Rendered, Error> {
        let (reads, values) = (data.reads.total(), data.reads.values.get());
        data.reads.whole.set(false);
        let mut meter = Meter { steps_left: limits.steps, bytes_left: limits.bytes };
        let Output { text, mut places, direct } = execution::run(self, data, limits, &mut meter)?;
        let mut output = text;
        let mut actions = String::new();
        let mut passes = 0;
        while let Some(start) = first_action(&output) {
            let action = action_at(&output, start);
            if passes == limits.passes {
                return Err(endless(data, action, limits.passes));
            }
            passes += 1;
            let again = Template::parse(&output).and_then(|next| {
                uses::note_actions(&next.trees, &mut actions);
                execution::run(&next, data, limits, &mut meter)
            });
            output = match again {
                Ok(output) => output.text,
                Err(mut error) => {
                    error.config_key = data.key_with(action);
                    return Err(error);
                }
            };
        }
        let read = data.reads.total().wrapping_sub(reads);
        let computed = data.reads.spread.get() || read != direct || (passes > 0 && read > 0);
        data.reads.spread.set(computed);
        if passes > 0 {
            places.clear();
        }
        let uses = Uses { places, computed, values: data.reads.values.get() != values, whole: data.reads.whole.get() };
        Ok(Rendered { text: output, uses, actions })
    }
}

/// Usually there is none: `contains` looks at many bytes at once, `find` at one after the other.
fn first_action(output: &str) -> Option<usize> {
    if output.contains("{{") { output.find("{{") } else { None }
}

fn action_at(output: &str, start: usize) -> &str {
    let rest = &output[start..];
    let end = rest.find("}}").map_or(rest.len(), |end| end + 2);
    &rest[..end]
}

fn endless(data: &Data<'_>, action: &str, passes: usize) -> Error {
    let key = data.key_with(action);
    let short: String = action.chars().take(80).collect();
    let source = match &key {
        Some(key) => format!("the configuration value {key:?} keeps producing it"),
        None => "the template keeps producing it".to_owned(),
    };
    let mut error =
        Error::plain(format!("{short} is still in the output after it was rendered {passes} times again: {source}"));
    error.config_key = key;
    error
}

#[cfg(test)]
mod tests;
