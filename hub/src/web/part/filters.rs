//! The filters of a list: a form that asks the same address again, so that what is chosen stands in the address.

use askama::Template;
use askama::filters::HtmlSafe;

/// All filters of a list.
#[derive(Clone, Debug, Template)]
#[template(path = "part/filters.html")]
pub struct Filters {
    action: String,
    fields: Vec<Field>,
    /// Those that are seldom used stand behind a word.
    seldom: Vec<Field>,
    behind: bool,
}

#[derive(Clone, Debug)]
struct Field {
    name: &'static str,
    label: &'static str,
    value: String,
    /// Value and text; none: people write.
    choices: Vec<(String, String)>,
    example: &'static str,
}

impl HtmlSafe for Filters {}

impl Filters {
    pub fn of(action: impl Into<String>) -> Filters {
        Filters { action: action.into(), fields: Vec::new(), seldom: Vec::new(), behind: false }
    }

    /// What comes after this is seldom used.
    #[must_use]
    pub fn seldom(mut self) -> Filters {
        self.behind = true;
        self
    }

    fn put(&mut self, field: Field) {
        let fields = if self.behind { &mut self.seldom } else { &mut self.fields };
        fields.push(field);
    }

    /// One of several, or any. A value that isn't among them is shown too: it is what the list is narrowed by.
    #[must_use]
    pub fn choice<T: Into<String>>(
        mut self,
        name: &'static str,
        label: &'static str,
        value: &str,
        choices: impl IntoIterator<Item = T>,
    ) -> Filters {
        let mut choices: Vec<(String, String)> =
            choices.into_iter().map(Into::into).map(|one| (one.clone(), one)).collect();
        if !value.is_empty() && !choices.iter().any(|(known, _)| known == value) {
            choices.push((value.to_owned(), value.to_owned()));
        }
        choices.insert(0, (String::new(), "any".to_owned()));
        self.put(Field { name, label, value: value.to_owned(), choices, example: "" });
        self
    }

    #[must_use]
    pub fn text(mut self, name: &'static str, label: &'static str, value: &str, example: &'static str) -> Filters {
        self.put(Field { name, label, value: value.to_owned(), choices: Vec::new(), example });
        self
    }

    /// The list without any filter.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// Whether anything is narrowed.
    pub fn narrowed(&self) -> bool {
        self.fields.iter().any(Field::is_set) || self.opened()
    }

    /// Whether one that is seldom used is used now.
    fn opened(&self) -> bool {
        self.seldom.iter().any(Field::is_set)
    }
}

impl Field {
    fn is_set(&self) -> bool {
        !self.value.is_empty()
    }
}
