//! How ledgers are called as Secrets: names and the word of their label. Pure; both directions are needed, so the ledger's own name
//! is an annotation.

use kedge_model::wire::Digest;

/// On every Secret of the secret ledger: what kind of thing it holds.
pub const LABEL: &str = "kedge.dev/ledger";
/// Which ledger: `memory`, `records/web-prod`.
pub const LEDGER: &str = "kedge.dev/ledger-name";
/// Which process wrote it last, in which term.
pub const WRITER: &str = "kedge.dev/writer";
/// The names of the Secrets that hold the rest of the value, in their order.
pub const PARTS: &str = "kedge.dev/parts";
/// The SHA-256 of the whole value as it was before it was compressed.
pub const DIGEST: &str = "kedge.dev/digest";

/// The one key of a Secret.
pub const KEY: &str = "ledger";
/// A Secret may have 1 MiB.
pub const MOST: usize = 900_000;
/// More than any ledger can need; a bundle of contents that has more isn't kept.
pub const MOST_PARTS: usize = 8;

/// Single ledgers of the state folder.
const SINGLE: [&str; 6] = ["identity", "memory", "status", "epoch", "holds", "external"];
const RECORDS: &str = "records/";
const CONTENTS: &str = "contents/";

/// Whether it is one of the agent's ledgers.
pub fn is_ledger(stem: &str) -> bool {
    SINGLE.contains(&stem) || stem.strip_prefix(RECORDS).is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// The contents that a record's goals name are kept beside it; none: it is no record.
pub fn contents_of(stem: &str) -> Option<String> {
    stem.strip_prefix(RECORDS).map(|name| format!("{CONTENTS}{name}"))
}

pub fn is_contents(stem: &str) -> bool {
    stem.starts_with(CONTENTS)
}

/// The Secret's name.
pub fn secret(stem: &str) -> String {
    let hashed = |name: &str| Digest::of(name.as_bytes()).hex()[..16].to_owned();
    if let Some(name) = stem.strip_prefix(RECORDS) {
        format!("kedge-record-{}", hashed(name))
    } else if let Some(name) = stem.strip_prefix(CONTENTS) {
        format!("kedge-contents-{}", hashed(name))
    } else if stem == "identity" {
        "kedge-agent".to_owned()
    } else {
        format!("kedge-agent-{stem}")
    }
}

/// The label's value.
pub fn word(stem: &str) -> &str {
    if stem.starts_with(RECORDS) {
        "record"
    } else if stem.starts_with(CONTENTS) {
        "contents"
    } else {
        stem
    }
}

/// The label of a Secret that holds a further part.
pub const PART: &str = "part";

/// Named by its content, so that the parts of the value before stay until nobody names them any more.
pub fn part(secret: &str, digest: &str, number: usize) -> String {
    let short: String = digest.chars().take(10).collect();
    format!("{secret}-{short}-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledgers_and_only_ledgers_are_kept() {
        for (stem, name) in [("identity", "kedge-agent"), ("memory", "kedge-agent-memory")] {
            assert!(is_ledger(stem));
            assert_eq!(secret(stem), name);
        }
        assert!(is_ledger("records/web-prod") && secret("records/web-prod").starts_with("kedge-record-"));
        for other in ["lock", "objects/ab", "records/", "records/a/b", "cache/x", "contents/x", "partial/x"] {
            assert!(!is_ledger(other), "{other}");
        }
        assert_ne!(secret("records/a"), secret("contents/a"));
    }
}
