//! Units that a unit file starts, stops, stands before or stands for. Their names are the workload's own, and so must be what systemd
//! reads for them: another assignment may be called `<assignment>-x`.

use std::collections::BTreeSet;

use super::lines::{self, Line};
use super::settings::{Rule, rule};
use super::{Tenant, is_own};

/// By name; one whose instance systemd fills in is its template.
pub fn named(text: &str, tenant: &Tenant) -> BTreeSet<String> {
    let (mut found, mut section) = (BTreeSet::new(), String::new());
    for (_, line) in lines::read(text) {
        match line {
            Line::Section(name) => section = name,
            Line::Setting { key, value } => {
                if matches!(rule(&section, &key), Rule::Needs | Rule::WantedBy | Rule::Before | Rule::Own) {
                    let own = value.split_whitespace().filter(|word| is_own(word, tenant) && !tenant.names_unit(word));
                    found.extend(own.filter_map(plain));
                }
            }
            Line::Other(_) => {}
        }
    }
    found
}

fn plain(word: &str) -> Option<String> {
    if !word.contains('%') {
        return Some(word.to_owned());
    }
    let (stem, rest) = word.split_once('@').filter(|(stem, _)| !stem.contains('%'))?;
    let (_, kind) = rest.rsplit_once('.')?;
    Some(format!("{stem}@.{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tenant;

    #[test]
    fn units_that_it_would_change_are_named() {
        let text = "[Unit]\nAfter=hello-test-a.service\nConflicts=hello-test-b.service shutdown.target\nWants=nginx.service network.target\n\
            [Service]\nSockets=hello-test-c.socket\n[Install]\nWantedBy=multi-user.target hello-test@%i.service\nAlias=hello-test-%x.service\n";
        let found = named(text, &tenant());
        assert_eq!(
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            ["hello-test-b.service", "hello-test-c.socket", "hello-test@.service"]
        );
    }
}
