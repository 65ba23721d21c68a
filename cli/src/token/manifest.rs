//! What brings an agent into a Kubernetes cluster, as one text for `kubectl apply -f -`: the packaged manifests, the token as a Secret,
//! and what was asked for on the command line. Called by `kedge token create --manifest`.

use kedge_goyaml::{Key, Value};

/// Namespace, account, agent.
const BASE: [&str; 3] = [
    include_str!("../../../packaging/kubernetes/manifests/base/namespace.yaml"),
    include_str!("../../../packaging/kubernetes/manifests/base/account.yaml"),
    include_str!("../../../packaging/kubernetes/manifests/base/agent.yaml"),
];
const APPLY: &str = include_str!("../../../packaging/kubernetes/manifests/apply/rights.yaml");
/// The caches on its nodes.
const CACHES: &str = include_str!("../../../packaging/kubernetes/manifests/apply/caches.yaml");
const OBSERVE: &str = include_str!("../../../packaging/kubernetes/manifests/observe/rights.yaml");
/// As the packaged manifests name it.
const IMAGE: &str = concat!("kedge-agent:", env!("CARGO_PKG_VERSION"));

/// What the agent may do in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Apply what is assigned to the cluster
    Apply,
    /// Only report what Flux or Argo CD did
    Observe,
}

#[derive(Clone, Debug)]
pub struct Manifest<'a> {
    pub token: &'a str,
    pub mode: Mode,
    /// None: the packaged name.
    pub image: Option<&'a str>,
    /// What the cluster calls itself.
    pub name: Option<&'a str>,
}

impl Manifest<'_> {
    /// In the order in which a cluster takes them.
    pub fn to_text(&self) -> String {
        let [namespace, account, agent] = BASE;
        let rights = match self.mode {
            Mode::Apply => APPLY,
            Mode::Observe => OBSERVE,
        };
        let with_image = |text: &str| {
            text.replace(&format!("image: {IMAGE}\n"), &format!("image: {}\n", self.image.unwrap_or(IMAGE)))
        };
        let mut texts = vec![namespace.to_owned(), account.to_owned(), rights.to_owned(), self.secret()];
        texts.extend(self.settings());
        texts.push(with_image(agent));
        if self.mode == Mode::Apply {
            texts.push(with_image(CACHES));
        }
        texts.join("---\n")
    }

    fn secret(&self) -> String {
        object(
            "Secret",
            "kedge-join-token",
            [("type", text("Opaque")), ("stringData", map([("join-token", text(self.token))]))],
        )
    }

    fn settings(&self) -> Option<String> {
        let settings = format!("name = \"{}\"\n", self.name?);
        Some(object("ConfigMap", "kedge-agent", [("data", map([("agent.toml", text(&settings))]))]))
    }
}

/// An image's name is written into YAML as it is: what could mean something there is refused.
pub fn parse_image(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    match !text.is_empty() && text.len() <= 512 && text.chars().all(fits) && !text.starts_with(['-', ':', '@']) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is no name of an image", text.escape_debug())),
    }
}

/// As the agent's own settings take it.
pub fn parse_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !text.is_empty() && text.len() <= 63 && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err("write up to 63 letters, digits, `-`, `_` and `.`".to_owned()),
    }
}

fn object<const N: usize>(kind: &str, name: &str, rest: [(&str, Value); N]) -> String {
    let metadata = map([
        ("name", text(name)),
        ("namespace", text("kedge-system")),
        ("labels", map([("app.kubernetes.io/name", text("kedge-agent"))])),
    ]);
    let head = [("apiVersion", text("v1")), ("kind", text(kind)), ("metadata", metadata)];
    let entries = head.into_iter().chain(rest).map(|(key, value)| (Key::String(key.to_owned()), value));
    kedge_goyaml::encode(&Value::Map(entries.collect()), 4)
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(entries.into_iter().map(|(key, value)| (Key::String(key.to_owned()), value)).collect())
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

#[cfg(test)]
mod tests;
