//! Late binding: `${cluster.name}`, `${cluster.labels.x}`, `${host.arch}` and `${host.ip}` become what this host knows; `$${` is a
//! plain `${`. Content calls it for the platform's files and for those that a workload marked `template: true`. Pure.

pub mod environment;
pub mod yaml;

use std::borrow::Cow;

use crate::goal::HostFacts;
use crate::record::Failure;

/// Which names between `${` and `}` are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// All: another name is an error.
    All,
    /// Those that begin with `cluster.` or `host.`; the others are a shell's.
    Ours,
}

/// Why a text can't be bound, and in which of its lines, from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unbound {
    pub message: String,
    pub line: u32,
    /// There may be a network later.
    pub passes: bool,
}

/// What is shown of a name that nobody closed.
const SHOWN: usize = 60;

impl Unbound {
    pub fn in_file(&self, file: &str, first_line: u32) -> Failure {
        let message = format!("{file}:{}: {}", first_line + self.line, self.message);
        Failure { passes: self.passes, ..Failure::new("Unbound", message) }
    }
}

/// The text with every name bound; borrowed when there was nothing to do.
pub fn bind<'t>(text: &'t str, facts: &HostFacts, names: Names) -> Result<Cow<'t, str>, Unbound> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let inside = &from[2..];
        let is_ours = names == Names::All || inside.starts_with("cluster.") || inside.starts_with("host.");
        if !is_ours {
            out.push_str(&rest[..at + 2]);
            rest = inside;
        } else if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = inside;
        } else {
            out.push_str(before);
            let line = u32::try_from(text[..text.len() - from.len()].matches('\n').count()).unwrap_or(u32::MAX);
            let (value, behind) = resolve(inside, facts).map_err(|unbound| Unbound { line, ..unbound })?;
            out.push_str(value);
            rest = behind;
        }
    }
    if rest.len() == text.len() {
        return Ok(Cow::Borrowed(text));
    }
    out.push_str(rest);
    Ok(if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) })
}

/// The value of the name that a text begins with, and what stands behind its `}`.
fn resolve<'a>(inside: &'a str, facts: &'a HostFacts) -> Result<(&'a str, &'a str), Unbound> {
    let unbound = |message: String, passes| Unbound { message, line: 0, passes };
    let Some((name, behind)) = inside.split_once('}') else {
        let start: String = inside.chars().take(SHOWN).flat_map(char::escape_debug).collect();
        return Err(unbound(format!("`${{{start}` is never closed by `}}`; write `$${{` for a plain `${{`"), false));
    };
    let shown = || -> String { name.chars().take(SHOWN).flat_map(char::escape_debug).collect() };
    let value = match name {
        "cluster.name" => Some(facts.cluster_name.as_str()),
        // Every host knows its own; a cluster has many hosts.
        "host.arch" | "host.ip" if facts.arch.is_empty() => {
            let message = format!("`{name}` isn't bound: here is a Kubernetes cluster, which has many hosts");
            return Err(unbound(message, false));
        }
        "host.arch" => Some(facts.arch.as_str()),
        "host.ip" => match &facts.ip {
            Some(ip) => Some(ip.as_str()),
            None => return Err(unbound("`host.ip` isn't known: the host has no default route".to_owned(), true)),
        },
        _ => match name.strip_prefix("cluster.labels.") {
            Some(label) => match facts.labels.get(label) {
                Some(value) => Some(value.as_str()),
                None => {
                    let message = format!("`{}` isn't bound: the cluster has no such label", shown());
                    return Err(unbound(message, false));
                }
            },
            None => None,
        },
    };
    match value {
        Some(value) => Ok((value, behind)),
        None => Err(unbound(
            format!(
                "`{}` isn't bound: there are cluster.name, cluster.labels.…{}; write `$${{` for a plain `${{`",
                shown(),
                if facts.arch.is_empty() { "" } else { ", host.arch and host.ip" }
            ),
            false,
        )),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn facts() -> HostFacts {
        HostFacts {
            cluster_name: "line-7".to_owned(),
            labels: [("region", "north"), ("acme.com/line-no", "7"), ("evil", "a\"\nb: [c")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            arch: "arm64".to_owned(),
            ip: Some("10.0.0.9".to_owned()),
        }
    }

    fn all(text: &str) -> Result<String, String> {
        bind(text, &facts(), Names::All).map(Cow::into_owned).map_err(|unbound| unbound.to_string())
    }

    #[test]
    fn every_name_is_bound() {
        let text =
            "${cluster.name} ${cluster.labels.region}/${cluster.labels.acme.com/line-no} ${host.arch}@${host.ip}";
        assert_eq!(all(text).unwrap(), "line-7 north/7 arm64@10.0.0.9");
    }

    #[test]
    fn two_dollars_escape() {
        assert_eq!(all("$${cluster.name} $5 $$ $${HOME} $").unwrap(), "${cluster.name} $5 $$ ${HOME} $");
        assert_eq!(all("$$${cluster.name}").unwrap(), "$${cluster.name}");
    }

    #[test]
    fn a_bound_value_is_not_bound_again() {
        let mut facts = facts();
        facts.labels.insert("nested".to_owned(), "${host.arch}$${".to_owned());
        assert_eq!(bind("${cluster.labels.nested}", &facts, Names::All).unwrap(), "${host.arch}$${");
    }

    #[test]
    fn an_unbound_name_is_named_with_its_line() {
        let unbound = bind("a\nb ${cluster.labels.nope}", &facts(), Names::All).unwrap_err();
        let failure = unbound.in_file("app.conf", 1);
        assert_eq!(failure.reason, "Unbound");
        assert_eq!(failure.message, "app.conf:2: `cluster.labels.nope` isn't bound: the cluster has no such label");
        for text in ["${HOME}", "${}", "${cluster}", "${cluster.labels}", "${host.arch", "${host.ip:-x}"] {
            assert!(all(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_that_may_come_later_passes() {
        let facts = HostFacts { ip: None, ..facts() };
        let failure = bind("${host.ip}", &facts, Names::All).unwrap_err().in_file("x", 1);
        assert!(failure.passes, "{failure:?}");
    }

    #[test]
    fn a_cluster_of_many_hosts_has_no_address_of_its_own() {
        let facts = HostFacts { arch: String::new(), ip: None, ..facts() };
        for text in ["${host.ip}", "${host.arch}"] {
            let failure = bind(text, &facts, Names::All).unwrap_err().in_file("x", 1);
            assert!(!failure.passes && failure.message.contains("many hosts"), "{failure:?}");
        }
        assert!(!bind("${nope}", &facts, Names::All).unwrap_err().message.contains("host."));
    }

    #[test]
    fn beside_a_shell_only_our_names_count() {
        let bind = |text: &str| bind(text, &facts(), Names::Ours).map(Cow::into_owned);
        assert_eq!(
            bind("${HOME} $${HOME} ${host.arch} $${host.arch} ${x").unwrap(),
            "${HOME} $${HOME} arm64 ${host.arch} ${x"
        );
        assert!(bind("${host.nope}").is_err());
    }

    proptest! {
        #[test]
        fn text_without_names_stays_as_it_is(text in "[^$]{0,80}") {
            prop_assert!(matches!(bind(&text, &facts(), Names::All).unwrap(), Cow::Borrowed(_)));
        }

        #[test]
        fn no_text_panics(text in "[$\\{\\}a-z.\n ]{0,60}", more in any::<String>()) {
            for names in [Names::All, Names::Ours] {
                let _ = bind(&text, &facts(), names);
                let _ = bind(&more, &facts(), names);
            }
        }
    }
}
