//! What the words of apt and dpkg mean: which failures pass, which newer indexes may mend, and which script is to blame.

use kedge_model::wire::Digest;
use kedge_model::wire::digest::unhex;

use super::{AptError, Offer, Updated};

/// Words that apt's methods use when a host or a way to it isn't there.
const NETWORK: [&str; 10] = [
    "Temporary failure resolving",
    "Could not resolve",
    "Could not connect",
    "Cannot initiate the connection",
    "Unable to connect",
    "Connection failed",
    "Connection timed out",
    "Connection refused",
    "Network is unreachable",
    "No route to host",
];
/// Words for what the indexes don't know, or know wrongly.
const MISSING: [&str; 8] = [
    "was not found",
    "Unable to locate package",
    "has no installation candidate",
    "is not installable",
    "Can't find a source to download",
    "404  Not Found",
    "File not found",
    "Hash Sum mismatch",
];
/// Words for a full disk, in dpkg's and apt's sentences.
const FULL: [&str; 2] = ["No space left on device", "don't have enough free space"];
/// Words for a lock that somebody else has.
const LOCKED: [&str; 3] =
    ["Could not get lock", "Unable to acquire the dpkg frontend lock", "is locked by another process"];
/// How dpkg begins its work on a deb; what its scripts print comes after it.
const WORKS: [&str; 4] = ["Setting up ", "Unpacking ", "Removing ", "Purging configuration files for "];
/// Lines that go with an error: what the failing script printed.
const LINES_BEFORE: usize = 12;

/// Without the lines that apt prints on its way to work.
pub fn plain(text: &str) -> String {
    let idle = ["Reading package lists...", "Building dependency tree...", "Reading state information..."];
    text.lines().filter(|line| !idle.contains(&line.trim_end())).collect::<Vec<_>>().join("\n")
}

/// Why `apt-get` ended badly.
pub fn refusal(text: &str) -> AptError {
    if NETWORK.iter().any(|word| text.contains(word)) {
        AptError::Network(errors(text))
    } else if MISSING.iter().any(|word| text.contains(word)) {
        AptError::Missing(errors(text))
    } else {
        AptError::Refused(plain(text))
    }
}

/// What an update said of each source.
pub fn updated(text: &str) -> Updated {
    let told = |line: &&str| line.starts_with("E:") || line.starts_with("W:") || line.starts_with("Err:");
    let mut failed: Vec<String> = text.lines().filter(told).map(|line| line.trim().to_owned()).collect();
    failed.dedup();
    failed.truncate(LINES_BEFORE);
    let network = NETWORK.iter().any(|word| text.contains(word));
    Updated { network, text: text.to_owned(), failed }
}

/// The lines in which apt says what is wrong.
pub fn errors(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("E:")).map(|line| line[2..].trim()).collect();
    if lines.is_empty() { text.trim().to_owned() } else { lines.join("; ") }
}

pub fn is_full(text: &str) -> bool {
    FULL.iter().any(|word| text.contains(word))
}

pub fn is_locked(text: &str) -> bool {
    LOCKED.iter().any(|word| text.contains(word))
}

/// What failed within a dpkg run: dpkg's sentence, and what the deb's scripts printed before it.
pub fn blame(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(error) = lines.iter().position(|line| line.starts_with("dpkg: error")) else {
        return errors(text);
    };
    let why = lines.get(error + 1).map_or("", |line| line.trim());
    let name =
        lines[error].strip_prefix("dpkg: error processing package ").and_then(|rest| rest.split_whitespace().next());
    let name = name.unwrap_or_default().split(':').next().unwrap_or_default();
    let works_on =
        |line: &&str| WORKS.iter().any(|work| line.strip_prefix(work).is_some_and(|rest| rest.starts_with(name)));
    let from = lines[..error].iter().rposition(works_on).map_or(0, |at| at + 1);
    let printed: Vec<&str> =
        lines[from..error].iter().copied().filter(|line| !line.starts_with("debconf: delaying")).collect();
    let printed = &printed[printed.len().saturating_sub(LINES_BEFORE)..];
    format!("{} {why}\n{}", lines[error], printed.join("\n")).trim().to_owned()
}

/// A line of `--print-uris`: `'uri' file size SHA256:digits`.
pub fn offer(line: &str) -> Option<Offer> {
    let (uri, rest) = line.strip_prefix('\'')?.split_once("' ")?;
    let mut words = rest.split_whitespace();
    let (file, size) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    let digits = words.find_map(|hash| hash.strip_prefix("SHA256:"));
    let plain = !file.contains('/') && !file.starts_with('.');
    plain.then(|| Offer { uri: uri.to_owned(), file, size, digest: digits.and_then(unhex).map(Digest::from_bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refusals_are_told_apart() {
        let missing = refusal("Reading…\nE: Version '9' for 'app' was not found\n");
        assert_eq!(missing, AptError::Missing("Version '9' for 'app' was not found".to_owned()));
        let network = refusal(
            "E: Failed to fetch http://x/a.deb  Could not connect to x:80 (1.2.3.4). - connect (111: Connection refused)",
        );
        assert!(matches!(network, AptError::Network(_)));
        assert!(
            matches!(refusal("app : Conflicts: other\nE: Unable to correct problems"), AptError::Refused(text) if text.contains("other"))
        );
    }

    #[test]
    fn a_failing_script_is_quoted_with_what_it_printed() {
        let said = "Setting up app (3.0) ...\ntrouble ahead\ndpkg: error processing package app (--configure):\n installed app package \
                    post-installation script subprocess returned error exit status 1\nErrors were encountered while processing:\n app\n\
                    E: Sub-process /usr/bin/dpkg returned an error code (1)\n";
        let blamed = blame(said);
        assert!(
            blamed.starts_with(
                "dpkg: error processing package app (--configure): installed app package post-installation"
            ),
            "{blamed}"
        );
        assert!(blamed.ends_with("trouble ahead"), "{blamed}");
        assert_eq!(blame("E: one\nE: two"), "one; two");
    }

    #[test]
    fn offers_are_read_and_paths_refused() {
        let digits = "6b8bff4cf7ec32857b831f771b758f375758d7558c29c02e087a7b6474816b3f";
        let read = offer(&format!("'file:/repo/./app_2.0_amd64.deb' app_2.0_amd64.deb 20672 SHA256:{digits}")).unwrap();
        assert_eq!((read.file.as_str(), read.size), ("app_2.0_amd64.deb", 20672));
        assert_eq!(read.digest.unwrap().hex(), digits);
        assert_eq!(offer("'http://x/a.deb' ../../etc/passwd 3 SHA256:00"), None);
        assert_eq!(offer("'http://x/a.deb' a.deb 3 MD5Sum:00").unwrap().digest, None);
    }

    proptest! {
        #[test]
        fn any_words_are_read_without_panic(text in "(E:|W:|dpkg: error|'| |\n|[a-zäé0-9]{1,4}){0,40}") {
            _ = (refusal(&text), updated(&text), blame(&text), offer(&text));
        }
    }
}
