//! What every template gets: Kalypso's nine fields. The scheduler builds it per assignment; what no template touches costs nothing.

use std::borrow::Borrow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use crate::item::{Inner, Item};
use crate::uses::Reads;
use crate::value::{Key, MapKind, OrderedFloat, Struct, Value};

/// The Go type that error texts name.
pub(crate) const TYPE_NAME: &str = "scheduler.dataType";

/// How many values are searched for the one that an error came from: templates can make a few look like millions.
const MOST_SEARCHED: usize = 10_000;

/// One assignment, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub deployment_target_name: &'a str,
    pub namespace: &'a str,
    pub environment: &'a str,
    pub workspace: &'a str,
    pub workload: &'a str,
    pub labels: &'a BTreeMap<String, String>,
    pub manifests: &'a BTreeMap<String, String>,
    pub cluster_type: &'a str,
    pub config: &'a dyn Config,
}

/// The composed configuration, however the caller keeps it.
pub trait Config: fmt::Debug {
    fn get(&self, key: &str) -> Option<&kedge_goyaml::Value>;
    fn is_empty(&self) -> bool;
    /// Every value, ordered by key.
    fn entries(&self) -> Box<dyn Iterator<Item = (&str, &kedge_goyaml::Value)> + '_>;
}

impl<K, V> Config for BTreeMap<K, V>
where
    K: Borrow<str> + Ord + fmt::Debug,
    V: Borrow<kedge_goyaml::Value> + fmt::Debug,
{
    fn get(&self, key: &str) -> Option<&kedge_goyaml::Value> {
        BTreeMap::get(self, key).map(Borrow::borrow)
    }

    fn is_empty(&self) -> bool {
        BTreeMap::is_empty(self)
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, &kedge_goyaml::Value)> + '_> {
        Box::new(self.iter().map(|(key, value)| (key.borrow(), value.borrow())))
    }
}

/// The context while its templates are rendered. What `set` changes stays for the next template.
#[derive(Debug)]
pub struct Data<'a> {
    context: Context<'a>,
    labels: OnceCell<Value>,
    manifests: OnceCell<Value>,
    config: OnceCell<Value>,
    root: OnceCell<Value>,
    /// Labels that the platform gave; all others are the application's text.
    platform_labels: Option<&'a BTreeSet<String>>,
    pub(crate) reads: Reads,
}

/// The fields that are maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Labels,
    Manifests,
    Config,
}

impl<'a> Data<'a> {
    pub fn new(context: Context<'a>) -> Data<'a> {
        Data {
            context,
            labels: OnceCell::new(),
            manifests: OnceCell::new(),
            config: OnceCell::new(),
            root: OnceCell::new(),
            platform_labels: None,
            reads: Reads::default(),
        }
    }

    /// Says which labels aren't the application's.
    #[must_use]
    pub fn with_platform_labels(mut self, labels: &'a BTreeSet<String>) -> Data<'a> {
        self.platform_labels = Some(labels);
        self
    }

    pub(crate) fn field(&self, name: &str) -> Option<Item<'a>> {
        let context = &self.context;
        let text = match name {
            "DeploymentTargetName" => context.deployment_target_name,
            "Namespace" => context.namespace,
            "Environment" => context.environment,
            "Workspace" => context.workspace,
            "Workload" => context.workload,
            "ClusterType" => context.cluster_type,
            "Labels" => return Some(Item::plain(Inner::Part(Part::Labels))),
            "Manifests" => return Some(Item::plain(Inner::Part(Part::Manifests))),
            "ConfigData" => return Some(Item::plain(Inner::Part(Part::Config))),
            _ => return None,
        };
        if matches!(name, "DeploymentTargetName" | "Namespace" | "Workload") {
            Reads::count(&self.reads.names);
        }
        Some(Item::plain(Inner::Text(text)))
    }

    /// One entry of a map, without making the map.
    pub(crate) fn entry(&self, part: Part, key: &str) -> Option<Item<'a>> {
        let text = |map: &'a BTreeMap<String, String>, counter: Option<&std::cell::Cell<u32>>| {
            let text = map.get(key)?;
            counter.map(Reads::count);
            Some(Item::plain(Inner::Text(text)))
        };
        match part {
            Part::Labels => text(self.context.labels, self.counter(key)),
            Part::Manifests => text(self.context.manifests, Some(&self.reads.values)),
            Part::Config => match self.config.get() {
                Some(Value::Map(map)) => {
                    map.entries.borrow().get(&Key::Str(Rc::from(key))).map(|value| Item::boxed(value.clone()))
                }
                _ => self.context.config.get(key).map(|value| match value {
                    kedge_goyaml::Value::String(text) => Item { inner: Inner::Text(text), boxed: true },
                    value => Item::boxed(Value::from(value)),
                }),
            },
        }
    }

    /// Which text of the application a label is, if any.
    fn counter(&self, label: &str) -> Option<&std::cell::Cell<u32>> {
        match label {
            "workload" => Some(&self.reads.names),
            label if self.platform_labels.is_some_and(|given| given.contains(label)) => None,
            _ => Some(&self.reads.values),
        }
    }

    pub(crate) fn is_empty(&self, part: Part) -> bool {
        match part {
            Part::Labels => self.context.labels.is_empty(),
            Part::Manifests => self.context.manifests.is_empty(),
            Part::Config => match self.config.get() {
                Some(Value::Map(map)) => map.entries.borrow().is_empty(),
                _ => self.context.config.is_empty(),
            },
        }
    }

    /// The texts of labels or manifests, in order.
    pub(crate) fn texts(&self, part: Part) -> Option<&'a BTreeMap<String, String>> {
        self.note_whole(part);
        match part {
            Part::Labels => Some(self.context.labels),
            Part::Manifests => Some(self.context.manifests),
            Part::Config => None,
        }
    }

    /// The configuration as the caller gave it, while no template has asked for the whole map.
    pub(crate) fn untouched_config(&self) -> Option<&'a dyn Config> {
        self.config.get().is_none().then_some(self.context.config)
    }

    fn note_whole(&self, part: Part) {
        if part != Part::Config {
            self.reads.whole.set(true);
            // Never one read alone, which could pass for a text written as it is.
            Reads::count(&self.reads.values);
            Reads::count(&self.reads.values);
        }
    }

    pub(crate) fn part(&self, part: Part) -> Value {
        self.note_whole(part);
        let texts = |map: &BTreeMap<String, String>| {
            let entries = map.iter().map(|(key, text)| (Key::Str(Rc::from(&**key)), Value::str(text))).collect();
            Value::map(MapKind::StringString, entries)
        };
        match part {
            Part::Labels => self.labels.get_or_init(|| texts(self.context.labels)),
            Part::Manifests => self.manifests.get_or_init(|| texts(self.context.manifests)),
            Part::Config => self.config.get_or_init(|| {
                let entries = self.context.config.entries();
                Value::dict(entries.map(|(key, value)| (Key::Str(Rc::from(key)), Value::from(value))).collect())
            }),
        }
        .clone()
    }

    pub(crate) fn root(&self) -> Value {
        let text = |text: &str| Value::str(text);
        self.root
            .get_or_init(|| {
                let context = &self.context;
                Reads::count(&self.reads.names);
                Value::Struct(Rc::new(Struct {
                    type_name: TYPE_NAME,
                    fields: vec![
                        ("DeploymentTargetName", text(context.deployment_target_name)),
                        ("Namespace", text(context.namespace)),
                        ("Environment", text(context.environment)),
                        ("Workspace", text(context.workspace)),
                        ("Workload", text(context.workload)),
                        ("Labels", self.part(Part::Labels)),
                        ("Manifests", self.part(Part::Manifests)),
                        ("ClusterType", text(context.cluster_type)),
                        ("ConfigData", self.part(Part::Config)),
                    ],
                }))
            })
            .clone()
    }

    /// The configuration key whose text holds this piece of template, or any template at all.
    pub(crate) fn key_with(&self, action: &str) -> Option<String> {
        let Value::Map(map) = self.part(Part::Config) else {
            return None;
        };
        let entries = map.entries.borrow();
        let find = |wanted: &str| {
            let mut left = MOST_SEARCHED;
            let found = entries.iter().find(|(_, value)| contains(value, wanted, &mut left));
            found.and_then(|(key, _)| if let Key::Str(text) = key { Some(text.to_string()) } else { None })
        };
        find(action).or_else(|| find("{{"))
    }
}

/// Whether a text within the value holds the wanted one; no, when there are too many to look at.
fn contains(value: &Value, wanted: &str, left: &mut usize) -> bool {
    let mut open = vec![value.clone()];
    while let Some(value) = open.pop() {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        match value {
            Value::Str(text) if text.contains(wanted) => return true,
            Value::List(list) => open.extend(list.items.iter().take(rest).cloned()),
            Value::Map(map) => open.extend(map.entries.borrow().values().take(rest).cloned()),
            _ => {}
        }
    }
    false
}

impl From<&kedge_goyaml::Value> for Value {
    fn from(value: &kedge_goyaml::Value) -> Value {
        use kedge_goyaml::Value as Yaml;
        match value {
            Yaml::Null => Value::Nil,
            Yaml::Bool(truth) => Value::Bool(*truth),
            Yaml::Int(int) => Value::Int(*int),
            Yaml::Uint(int) => Value::Uint64(*int),
            Yaml::Float(float) => Value::Float(*float),
            Yaml::String(text) => Value::str(text),
            Yaml::List(items) => Value::list(items.iter().map(Value::from).collect()),
            Yaml::Map(entries) => Value::map(
                MapKind::AnyAny,
                entries.iter().map(|(key, value)| (Key::from(key), Value::from(value))).collect(),
            ),
        }
    }
}

impl From<&kedge_goyaml::Key> for Key {
    fn from(key: &kedge_goyaml::Key) -> Key {
        use kedge_goyaml::Key as Yaml;
        match key {
            Yaml::Null => Key::Nil,
            Yaml::Bool(truth) => Key::Bool(*truth),
            Yaml::Int(int) => Key::Int(*int),
            Yaml::Uint(int) => Key::Uint(*int),
            Yaml::Float(float) => Key::Float(OrderedFloat(float.0)),
            Yaml::String(text) => Key::Str(Rc::from(&**text)),
        }
    }
}
