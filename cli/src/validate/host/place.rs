//! Where the entries of a HostWorkload stand in its file.

use kedge_goyaml::Node;
use kedge_host_policy::judge::Entry;

use crate::validate::folder::Document;

pub(super) struct Place(Document);

impl Place {
    pub fn new(document: Document) -> Place {
        Place(document)
    }

    /// Line and column, from 1.
    pub fn of(&self, entry: Entry) -> (u32, u32) {
        let (list, at) = match entry {
            Entry::File(at) => ("files", at),
            Entry::Artifact(at) => ("artifacts", at),
            Entry::Deb(at) => ("debs", at),
            Entry::Unit(at) => ("units", at),
            Entry::Health(at) => ("health", at),
        };
        let Document { node, first_line } = &self.0;
        let items = node.get("spec").and_then(|spec| spec.get(list)).and_then(Node::items);
        let found = items.and_then(|items| items.get(at)).unwrap_or(node);
        (first_line + found.line, found.column)
    }
}
