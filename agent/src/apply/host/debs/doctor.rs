//! What stands in the way of installing debs on this host, each with the way out. `kedge-agent doctor` shows it; no network is used.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::Debs;
use super::apt::Apt;
use super::lock::Locks;
use super::status::Of;
use crate::command::run;

/// Something is wrong: what, in which way, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    pub problem: String,
    pub way_out: String,
}

/// An answer from the disk.
const ANSWER: Duration = Duration::from_secs(60);
/// How many names one sentence has.
const MAX_NAMED: usize = 10;

impl<A: Apt> Debs<A> {
    pub fn doctor(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for locks in [Locks::of_dpkg(&self.root), Locks::of_lists(&self.root)] {
            if let Some(holder) = locks.holder() {
                let problem = format!("process {} (`{}`) holds {}", holder.pid, holder.command, holder.file.display());
                let way_out = format!("wait until it ends, or look at it: ps -fp {}", holder.pid);
                findings.push(Finding::new("dpkg lock", problem, way_out));
            }
        }
        if self.apt.interrupted() {
            findings.push(Finding::new("dpkg", "dpkg was interrupted", "dpkg --configure -a"));
        }
        match self.apt.status(Of::Broken) {
            Ok(broken) if broken.debs.is_empty() => {}
            Ok(broken) => {
                let problem = format!("not whole: {}", some(broken.debs.keys()));
                findings.push(Finding::new("dpkg", problem, "dpkg --configure -a, then apt-get --fix-broken install"));
            }
            Err(failure) => findings.push(Finding::new("dpkg", failure.message, "is this a Debian host?")),
        }
        if let Ok(all) = self.apt.status(Of::Held)
            && !all.debs.is_empty()
        {
            let problem = format!("held, also by Kedge for its workloads: {}", some(all.debs.keys()));
            findings.push(Finding::new("held debs", problem, "fine if you know them; else apt-mark unhold NAME"));
        }
        findings.extend(sources(&self.root));
        findings
    }
}

/// What apt knows of its sources without asking them.
fn sources(root: &Path) -> Vec<Finding> {
    let format = "--format=$(REPO_URI) $(RELEASE)\t$(TRUSTED)\t$(FILENAME)";
    let output = match run("apt-get", &["indextargets", format, "Created-By: Packages"], &[], ANSWER) {
        Ok(output) => output,
        Err(error) => return vec![Finding::new("apt sources", error.to_string(), "is this a Debian host?")],
    };
    if !output.ok() {
        let way_out = "fix the files in /etc/apt/sources.list and /etc/apt/sources.list.d";
        return vec![Finding::new("apt sources", output.stderr.trim(), way_out)];
    }
    judge(&output.stdout, |file| there(&root.join(file.trim_start_matches('/'))))
}

fn judge(targets: &str, there: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut any = false;
    for line in targets.lines() {
        let mut words = line.split('\t');
        let (Some(source), Some(trusted), Some(file)) = (words.next(), words.next(), words.next()) else { continue };
        any = true;
        let finding = if !there(file) {
            Finding::new(
                "apt sources",
                format!("{source} has no index: it was never fetched, or it fails"),
                "apt-get update",
            )
        } else if trusted != "yes" {
            let way_out = "add the key that it is signed with (signed-by=), then apt-get update";
            Finding::new("apt sources", format!("{source} is not signed by a key that this host knows"), way_out)
        } else {
            continue;
        };
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    if !any {
        let way_out = "add one to /etc/apt/sources.list.d, or let workloads bring their debs as files";
        findings.push(Finding::new("apt sources", "there are none", way_out));
    }
    findings
}

/// An index is kept as it came: plain or compressed.
fn there(file: &Path) -> bool {
    let Some((folder, name)) = file.parent().zip(file.file_name().and_then(|name| name.to_str())) else { return false };
    let called = |entry: &fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|found| found.strip_prefix(name).is_some_and(is_compression))
    };
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| called(&entry))
}

fn is_compression(ending: &str) -> bool {
    matches!(ending, "" | ".lz4" | ".gz" | ".xz" | ".bz2" | ".zst" | ".lzma")
}

fn some<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let named = names.take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

impl Finding {
    fn new(what: &str, problem: impl Into<String>, way_out: impl Into<String>) -> Finding {
        Finding { what: what.to_owned(), problem: problem.into(), way_out: way_out.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_without_index_or_signature_are_named() {
        let targets = "http://a/ stable\tyes\t/lists/a\nhttp://b/ stable\tno\t/lists/b\nhttp://c/ ./\tyes\t/lists/c\nhttp://c/ ./\tyes\t/lists/c\n";
        let findings = judge(targets, |file| file != "/lists/c");
        let problems: Vec<_> = findings.iter().map(|finding| finding.problem.as_str()).collect();
        assert_eq!(
            problems,
            [
                "http://b/ stable is not signed by a key that this host knows",
                "http://c/ ./ has no index: it was never fetched, or it fails"
            ]
        );
        assert_eq!(judge("", |_| true)[0].problem, "there are none");
    }

    #[test]
    fn a_compressed_index_counts() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x_Packages.lz4"), "").unwrap();
        assert!(there(&folder.path().join("x_Packages")));
        assert!(!there(&folder.path().join("x_Pack")));
    }
}
