//! Text of an application stays text: what templates made of it has the same structure as with harmless text in its
//! place. Asked for every assignment that was rendered. Where a template writes the texts as they are and they are plain
//! words, a look at the lines is enough; else the file is compared with one of harmless texts.

mod compare;
mod harmless;
mod shell;
mod word;

use std::ops::Range;
use std::sync::Arc;

use kedge_model::{AssignmentId, Problem};
use kedge_template::{Context, Data, Limits, Rendered};

use crate::compose::Values;
use crate::target::Target;
use crate::template::Compiled;
use compare::{Mismatch, Rules};
use harmless::{Form, Harmless, Text};

/// A key that nobody writes: where it turns up, a template takes all keys.
const PROBE: &str = "kedge-probe-qjwkgv";

/// How a script begins.
const SCRIPT: &str = "#!";

/// How many texts are looked at one by one to find the one that an error names.
const MOST_BLAMED: usize = 100;

/// A file as a template made it.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    pub name: &'static str,
    pub template: &'a Arc<Compiled>,
    pub rendered: &'a Rendered,
}

/// An assignment whose files are looked at, in the order in which they were rendered.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub id: &'a AssignmentId,
    pub target: &'a Target,
    pub namespace: &'a str,
    pub values: &'a Values,
    pub limits: &'a Limits,
    pub files: &'a [File<'a>],
}

/// The reasons why text of the application isn't contained; none, usually.
pub fn check(case: Case<'_>) -> Vec<Problem> {
    let failed = |index: usize, file: &File<'_>| match file.look(case.namespace) {
        Look::Contained => None,
        Look::Places => case.places(file).err().map(|mismatch| case.problem(index, file, &mismatch)),
        Look::Again => case.again(index).err().map(|mismatch| case.problem(index, file, &mismatch)),
    };
    // A cause hides its consequences: later files are made of what an earlier template left.
    case.files.iter().enumerate().find_map(|(index, file)| failed(index, file)).into_iter().collect()
}

/// How a file has to be looked at.
enum Look {
    Contained,
    /// The harmless file is this one with other text at the places.
    Places,
    /// The harmless file has to be rendered.
    Again,
}

impl File<'_> {
    /// A script says so by itself, whatever the file is called.
    fn is_shell(&self) -> bool {
        self.name.ends_with(".sh") || self.rendered.text.starts_with(SCRIPT)
    }

    fn is_own(&self) -> bool {
        self.rendered.text.contains("kedge.dev/")
    }

    /// One object of ours, whose fields outside of the source have names of their own.
    fn is_one_delivery(&self) -> bool {
        let text = &self.rendered.text;
        text.matches("kedge.dev/").count() == 1 && text.contains("\nkind: Delivery\n")
    }

    fn look(&self, namespace: &str) -> Look {
        let (text, uses) = (&self.rendered.text, &self.rendered.uses);
        if uses.computed {
            return Look::Again;
        }
        let is_word = |place: &Range<usize>| shell::is_word(&text[place.clone()]);
        let fits = match self.is_shell() {
            _ if uses.places.is_empty() => true,
            // In a here-document even a word can be the one that ends it.
            true => uses.places.iter().all(is_word) && !text.contains("<<") && !self.is_own(),
            false if !self.is_own() => word::fits_yaml(text, &uses.places, |_, _| true),
            false => {
                let allows = |key: &str, scalar: &str| reaches(key, scalar, namespace);
                self.is_one_delivery() && word::fits_yaml(text, &uses.places, allows)
            }
        };
        match fits {
            true => Look::Contained,
            false if self.template.branches() => Look::Again,
            false => Look::Places,
        }
    }

    /// Whether names and other texts have to be told apart in it.
    fn is_host_namespace(&self) -> bool {
        self.rendered.uses.values && self.rendered.text.contains("HostNamespace")
    }

    fn compare(&self, harmless: &str, rules: Rules<'_>) -> Result<(), Mismatch> {
        let text = &self.rendered.text;
        let is_shell = self.is_shell() || harmless.starts_with(SCRIPT);
        if is_shell {
            compare::shell(text, harmless)?;
        }
        // What Kedge itself applies is YAML, also behind a first line that looks like a script's.
        match is_shell && (self.name.ends_with(".sh") || !self.is_own()) {
            true => Ok(()),
            false => compare::yaml(text, harmless, rules),
        }
    }
}

impl Case<'_> {
    /// All that was done with the texts is that they were written, at places that are known.
    fn places(&self, file: &File<'_>) -> Result<(), Mismatch> {
        let text = &file.rendered.text;
        let letters = &harmless::LETTERS[0];
        let neutral = self.harmless(file.template, Form::Alike(*letters), |_| true);
        let mut harmless = String::with_capacity(text.len());
        let mut end = 0;
        for place in &file.rendered.uses.places {
            harmless.push_str(&text[end..place.start]);
            let written = &text[place.clone()];
            // Names have one harmless form, also where they are part of a longer one.
            harmless.push_str(&match written {
                written if written == self.namespace => neutral.namespace.clone(),
                written if *written == *self.target.name => neutral.name.clone(),
                written if *written == *self.target.workload => neutral.workload.clone(),
                written => harmless::harmless(written, letters),
            });
            end = place.end;
        }
        harmless.push_str(&text[end..]);
        file.compare(&harmless, self.rules(&neutral, false))?;
        match file.is_host_namespace() {
            true => self.again_with(file, self.index_of(file), Form::Alike(*letters), |text| !is_name(text), true),
            false => Ok(()),
        }
    }

    /// Renders the file with harmless texts.
    fn again(&self, index: usize) -> Result<(), Mismatch> {
        let Some(file) = self.files.get(index) else { return Ok(()) };
        for (text, value) in harmless::texts(self.target) {
            if file.template.branches_on(&text.to_string()) && !value.is_empty() && !word::is_word(value) {
                let why = format!(
                    "`kedge.dev/branches-on` names `.{text}`, which then has to be a word without spaces and signs"
                );
                return Err(Mismatch { line: 1, why });
            }
        }
        // What a template asks of a text, such as whether it holds a letter, is true of one harmless text and false of another.
        let first = Form::Alike(harmless::LETTERS[0]);
        for letters in harmless::LETTERS {
            self.again_with(file, index, Form::Alike(letters), |_| true, false)?;
        }
        if file.is_host_namespace() {
            self.again_with(file, index, first, |text| !is_name(text), true)?;
        }
        if file.is_own() {
            for form in harmless::UNLIKE {
                self.unlike(file, index, form)?;
            }
        }
        if file.is_own() && file.rendered.uses.whole {
            let mut harmless = self.harmless(file.template, first, |_| true);
            harmless.labels.insert(PROBE.to_owned(), PROBE.to_owned());
            harmless.manifests.insert(PROBE.to_owned(), PROBE.to_owned());
            let rendered = self.render(index, &harmless)?;
            if let Some(line) = compare::own_line_with(&rendered.text, PROBE) {
                let why = "all labels or all fields of `manifests` are written into an object that Kedge applies";
                return Err(Mismatch { line, why: why.to_owned() });
            }
        }
        Ok(())
    }

    /// With texts that have another length and other parts, names as they are written. A template that takes a text to pieces fails with
    /// those, which says nothing of the text that is there.
    fn unlike(&self, file: &File<'_>, index: usize, form: Form) -> Result<(), Mismatch> {
        let harmless = self.harmless(file.template, form, |text| !is_name(text));
        match self.render(index, &harmless) {
            Ok(rendered) => file.compare(&rendered.text, self.rules(&harmless, true)),
            Err(_) => Ok(()),
        }
    }

    fn again_with(
        &self,
        file: &File<'_>,
        index: usize,
        form: Form,
        chosen: impl Fn(Text<'_>) -> bool,
        names_kept: bool,
    ) -> Result<(), Mismatch> {
        let harmless = self.harmless(file.template, form, chosen);
        let rendered = self.render(index, &harmless)?;
        if rendered.actions != file.rendered.actions {
            let why = "the text becomes part of a template that is rendered again";
            return Err(Mismatch { line: 1, why: why.to_owned() });
        }
        file.compare(&rendered.text, self.rules(&harmless, names_kept))
    }

    /// One file from harmless texts, after those before it: a template may change the values that later ones see.
    fn render(&self, index: usize, harmless: &Harmless) -> Result<Rendered, Mismatch> {
        let data = Data::new(Context {
            deployment_target_name: &harmless.name,
            namespace: &harmless.namespace,
            environment: &self.target.environment,
            workspace: &self.target.workspace,
            workload: &harmless.workload,
            labels: &harmless.labels,
            manifests: &harmless.manifests,
            cluster_type: &self.id.cluster_type,
            config: self.values,
        });
        let mut last = Rendered::default();
        for file in self.files.iter().take(index + 1) {
            last = file.template.render(&data, self.limits).map_err(|problem| Mismatch {
                line: 1,
                why: format!("with another text in its place the template fails: {}", problem.message),
            })?;
        }
        Ok(last)
    }

    fn harmless(&self, template: &Compiled, form: Form, chosen: impl Fn(Text<'_>) -> bool) -> Harmless {
        Harmless::of(self.id, self.target, form, |text| chosen(text) && !template.branches_on(&text.to_string()))
    }

    fn rules<'r>(&'r self, harmless: &'r Harmless, names_kept: bool) -> Rules<'r> {
        let mut rules = Rules {
            namespace: self.namespace,
            harmless_namespace: &harmless.namespace,
            names_kept,
            may_comment: false,
            longest: 0,
        };
        for (_, text) in harmless::texts(self.target) {
            rules.may_comment |= text.starts_with('#') || text.contains(" #");
            rules.longest = rules.longest.max(text.chars().count());
        }
        rules
    }

    fn index_of(&self, file: &File<'_>) -> usize {
        self.files.iter().position(|other| other.name == file.name).unwrap_or_default()
    }

    /// The first text that does it alone.
    fn blame(&self, index: usize) -> Option<Text<'_>> {
        let file = self.files.get(index)?;
        let texts = harmless::texts(self.target).into_iter().take(MOST_BLAMED).map(|(text, _)| text);
        let breaks = |text: &Text<'_>| {
            let broken = |form| self.again_with(file, index, form, |other| other == *text, !is_name(*text)).is_err();
            harmless::LETTERS.into_iter().map(Form::Alike).any(broken)
        };
        texts.into_iter().find(breaks)
    }

    fn problem(&self, index: usize, file: &File<'_>, mismatch: &Mismatch) -> Problem {
        let (name, template) = (file.name, file.template.name());
        let blamed = self.blame(index);
        let whose = match blamed {
            Some(Text::Label(key)) => format!("`{}` (`{key}` of the labels)", shown(blamed)),
            Some(Text::Manifest(key)) => format!("`{}` (`manifests.{key}`)", shown(blamed)),
            Some(_) => format!("`{}`", shown(blamed)),
            None => "text".to_owned(),
        };
        let message = format!(
            "template `{template}` makes more than text of {whose} of the application: {name}:{}: {}",
            mismatch.line, mismatch.why
        );
        let field = blamed.map_or_else(|| "Labels.tier".to_owned(), |text| text.to_string());
        let read = match blamed {
            Some(Text::Label(key)) => format!("index .Labels \"{key}\""),
            _ => format!(".{field}"),
        };
        let way = if file.is_shell() {
            format!(
                "in a line such as `export NAME='{{{{ {read} }}}}'` any text without `'` is a value, if each line of the file closes its \
                 quotes and none has `$(`, a backtick, `<<` or `${{…}}` with more than a name; elsewhere change the text to letters, \
                 digits and `._/:@%+,=-`"
            )
        } else if mismatch.why == compare::UNKNOWN_LANGUAGE {
            "the file isn't YAML, so quotes can't be checked: change the text to letters, digits and `._-/@+`"
                .to_owned()
        } else {
            format!("write `{{{{ {read} | quote }}}}` in the template, or change the text")
        };
        let hint = format!(
            "{way}; a template that branches on it says so: `{}: {field}` among its annotations",
            Compiled::BRANCHES_ON
        );
        Problem::error("TextBecomesStructure", message)
            .at(file.template.origin())
            .also_at(self.target.origin.clone())
            .hint(hint)
    }
}

/// Whether an application's text may stand in this field of a Delivery. The fields of the source are nowhere else: a
/// Delivery is decoded strictly.
fn reaches(key: &str, scalar: &str, namespace: &str) -> bool {
    match key {
        "name" | "repo" | "branch" | "tag" | "commit" | "path" => true,
        "namespace" => scalar == namespace,
        _ => false,
    }
}

fn shown(text: Option<Text<'_>>) -> String {
    text.map(|text| format!(".{text}")).unwrap_or_default()
}

fn is_name(text: Text<'_>) -> bool {
    matches!(text, Text::Workload | Text::Target)
}
