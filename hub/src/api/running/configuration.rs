//! A configuration that was delivered, key by key, beside what Git says now. Pure, but for who may see what.

use std::collections::BTreeMap;

use kedge_api::assignments::{ConfigurationValue, PublishedFile, RunningConfiguration};
use kedge_model::wire::Digest;
use kedge_scheduler::REDACTED;

use super::hides;
use crate::api::caller::Caller;
use crate::catalog::StoredValue;
use crate::compare::Value;
use crate::compare::rendered::{self, Hidden};
use crate::pack::Delivered;
use crate::pack::configurations::Rendered;

/// What Git says of an assignment: its composed values, and the digests of the files that they become.
#[derive(Clone, Debug, Default)]
pub(crate) struct Git {
    pub values: Vec<StoredValue>,
    pub files: Vec<PublishedFile>,
}

impl Git {
    pub fn hidden(&self, caller: &Caller) -> Hidden {
        hides(&self.values, caller)
    }

    pub fn view(
        &self,
        id: String,
        commit: Option<String>,
        content: Delivered,
        hidden: &Hidden,
    ) -> RunningConfiguration {
        let empty = RunningConfiguration { id, commit, ..RunningConfiguration::default() };
        let unknown = |why: String| RunningConfiguration { unknown: Some(why), ..empty.clone() };
        let file = match content {
            Delivered::Read(file) => file,
            Delivered::Gone => return unknown("its package isn't kept any more".to_owned()),
            Delivered::Unreadable(why) => return unknown(format!("its package can't be read: {why}")),
        };
        if self.is_same_file(file.as_deref()) {
            let values = self.values.iter().map(|value| self.same(value, hidden)).collect();
            return RunningConfiguration { as_in_git: true, values, ..empty };
        }
        let Some(found) = rendered::values(file.as_deref(), hidden) else {
            let name = file.map_or("its file", |file| file.file.name());
            return unknown(format!(
                "{name} is neither a ConfigMap, a map, nor lines of `export KEY=\"value\"`, so it can't be told by key"
            ));
        };
        let mut values: BTreeMap<String, ConfigurationValue> = BTreeMap::new();
        for (key, value) in found {
            let git = self.values.iter().find(|git| git.key() == key);
            let differs = git.is_none_or(|git| !is_same(&value.exact, git.both().0));
            // Whether a schema called it a secret isn't known any more once Git doesn't set it.
            let value = match git {
                None if !hidden.nothing => Value { shown: REDACTED.into(), ..value },
                _ => value,
            };
            let shown = ConfigurationValue {
                secret: git.is_some_and(StoredValue::is_secret) || value.exact != value.shown,
                value: Some(value.shown),
                git: git.filter(|_| differs).map(|git| shown(git, hidden)),
                differs,
                key: key.clone(),
            };
            values.insert(key, shown);
        }
        for git in &self.values {
            values.entry(git.key().to_owned()).or_insert_with(|| ConfigurationValue {
                key: git.key().to_owned(),
                value: None,
                secret: git.is_secret(),
                differs: true,
                git: Some(shown(git, hidden)),
            });
        }
        let values: Vec<ConfigurationValue> = values.into_values().collect();
        RunningConfiguration { as_in_git: values.iter().all(|value| !value.differs), values, ..empty }
    }

    /// Whether the file that is in force was made from what Git says now, whatever its shape.
    fn is_same_file(&self, file: Option<&Rendered>) -> bool {
        let of = |name: &str| self.files.iter().find(|one| one.path.rsplit('/').next() == Some(name));
        match file {
            Some(file) => {
                of(file.file.name()).is_some_and(|one| one.digest == Digest::of(file.text.as_bytes()).to_string())
            }
            None => {
                !self.files.is_empty() && of("platform-config.yaml").is_none() && of("platform-config.sh").is_none()
            }
        }
    }

    fn same(&self, value: &StoredValue, hidden: &Hidden) -> ConfigurationValue {
        ConfigurationValue {
            key: value.key().to_owned(),
            value: Some(shown(value, hidden)),
            secret: value.is_secret(),
            differs: false,
            git: None,
        }
    }
}

fn shown(value: &StoredValue, hidden: &Hidden) -> serde_json::Value {
    let (exact, shown) = value.both();
    if hidden.nothing { exact.clone() } else { shown.clone() }
}

/// Files hold text where Git has numbers and structures.
fn is_same(delivered: &serde_json::Value, git: &serde_json::Value) -> bool {
    if delivered == git {
        return true;
    }
    let serde_json::Value::String(text) = delivered else { return false };
    let plain = match git {
        serde_json::Value::String(other) => return text == other,
        other => other.to_string(),
    };
    let inside = || kedge_goyaml::decode(text).ok().filter(kedge_goyaml::Value::is_collection);
    *text == plain || inside().is_some_and(|value| kedge_scheduler::json::value_to_json(&value) == *git)
}
