//! What dpkg and apt remember of each deb: `/var/lib/dpkg/status`, the journal of an interrupted dpkg beside it, and apt's marks.
//! Read directly, because a look comes every few minutes and starts no program; dpkg alone writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::simulation::called;
use super::stanza::{Stanza, each_stanza};
use crate::observed::DebState;

/// The debs that were asked for, by name; a foreign architecture's is called `name:architecture`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub debs: BTreeMap<String, Deb>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deb {
    pub state: DebState,
    /// Half unpacked: only another unpacking mends it, and apt does nothing else before.
    pub torn: bool,
    /// Installed, but selected for removal: an apt that was to remove it was cut off before dpkg began.
    pub leaving: bool,
    /// Of a deb that is removed: the version whose configuration files are left.
    pub left: Option<String>,
    pub conffiles: Vec<Conffile>,
    /// The paragraph, where it was asked for by name: what a repacked archive's control file is made of.
    pub paragraph: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conffile {
    pub path: String,
    /// Of the file as the deb brought it.
    pub md5: String,
    /// Of an earlier version; the present one doesn't bring it.
    pub obsolete: bool,
}

/// Whose paragraphs are of interest.
#[derive(Clone, Copy, Debug)]
pub enum Of<'n> {
    Names(&'n BTreeSet<String>),
    All,
    /// Those that aren't installed whole.
    Broken,
    /// Those that are kept from upgrades.
    Held,
}

/// Where dpkg and apt keep what they know.
#[derive(Clone, Debug)]
pub struct StatusFiles {
    pub dpkg: PathBuf,
    pub marks: PathBuf,
}

impl StatusFiles {
    pub fn below(root: &Path) -> StatusFiles {
        StatusFiles { dpkg: root.join("var/lib/dpkg"), marks: root.join("var/lib/apt/extended_states") }
    }

    /// Whether a dpkg was cut off: what it did since is in its journal, and apt refuses to work.
    pub fn interrupted(&self) -> bool {
        !self.journal().unwrap_or_default().is_empty()
    }

    pub fn read(&self, of: Of<'_>, native: &str) -> io::Result<Status> {
        let mut status = Status::default();
        let mut paths = vec![self.dpkg.join("status")];
        paths.extend(self.journal()?);
        for path in paths {
            let mut reader = BufReader::new(File::open(&path)?);
            each_stanza(&mut reader, |stanza| status.take(stanza, of, native))?;
        }
        match File::open(&self.marks) {
            Ok(marks) => each_stanza(&mut BufReader::new(marks), |stanza| status.mark(stanza, native))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(status)
    }

    /// The numbered files that dpkg writes before it changes `status`, in order.
    fn journal(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let entries = match fs::read_dir(self.dpkg.join("updates")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            if name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }
}

impl Status {
    /// How a deb is; one that dpkg never heard of is simply not there.
    pub fn state(&self, name: &str) -> DebState {
        self.debs.get(name).map(|deb| deb.state.clone()).unwrap_or_default()
    }

    fn take(&mut self, stanza: Stanza<'_>, of: Of<'_>, native: &str) {
        let Some(package) = stanza.field("Package") else { return };
        let architecture = stanza.field("Architecture").unwrap_or(native);
        let name = called(package, architecture, native);
        if let Of::Names(names) = of
            && !names.contains(&name)
        {
            return;
        }
        let mut deb = Deb::of(stanza, architecture);
        if matches!(of, Of::Names(_)) {
            deb.paragraph = stanza.fields().map(|(name, value)| format!("{name}: {value}\n")).collect();
        }
        let wanted = match of {
            Of::Names(_) | Of::All => true,
            Of::Broken => !deb.state.whole && deb.state.version.is_some(),
            Of::Held => deb.state.held,
        };
        if !wanted {
            // The journal may say better than the status before it.
            self.debs.remove(&name);
            return;
        }
        self.debs.insert(name, deb);
    }

    fn mark(&mut self, stanza: Stanza<'_>, native: &str) {
        let Some(package) = stanza.field("Package") else { return };
        let name = called(package, stanza.field("Architecture").unwrap_or(native), native);
        if let Some(deb) = self.debs.get_mut(&name) {
            deb.state.auto = deb.state.version.is_some() && stanza.field("Auto-Installed") == Some("1");
        }
    }
}

impl Deb {
    fn of(stanza: Stanza<'_>, architecture: &str) -> Deb {
        let mut words = stanza.field("Status").unwrap_or_default().split_whitespace();
        let (want, error, is) = (words.next(), words.next(), words.next());
        let there = !matches!(is, None | Some("not-installed" | "config-files"));
        let version = stanza.field("Version").filter(|_| there).map(str::to_owned);
        let state = DebState {
            architecture: there.then(|| architecture.to_owned()),
            whole: is == Some("installed") && error == Some("ok"),
            config_only: is == Some("config-files"),
            held: want == Some("hold"),
            auto: false,
            version,
        };
        let conffiles = stanza.field("Conffiles").unwrap_or_default().lines().filter_map(Conffile::parse).collect();
        let left = stanza.field("Version").filter(|_| state.config_only).map(str::to_owned);
        let torn = there && (error == Some("reinstreq") || is == Some("half-installed"));
        let leaving = there && matches!(want, Some("deinstall" | "purge"));
        Deb { state, torn, leaving, left, conffiles, paragraph: String::new() }
    }
}

impl Conffile {
    /// ` /etc/a.conf 0123… obsolete remove-on-upgrade`
    fn parse(line: &str) -> Option<Conffile> {
        let mut words: Vec<&str> = line.trim().split(' ').collect();
        let obsolete = words.iter().rev().take(2).any(|word| *word == "obsolete");
        while matches!(words.last(), Some(&("obsolete" | "remove-on-upgrade"))) {
            words.pop();
        }
        let md5 = words.pop()?.to_owned();
        let path = words.join(" ");
        path.starts_with('/').then_some(Conffile { path, md5, obsolete })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATUS: &str = "Package: app
Status: hold ok installed
Architecture: amd64
Version: 1:1.0-1
Conffiles:
 /etc/app.conf 0123456789abcdef0123456789abcdef
 /etc/with space.conf 1123456789abcdef0123456789abcdef
 /etc/app-old.conf 2123456789abcdef0123456789abcdef obsolete
Description: a program
 that does
 .
 nothing

Package: half
Status: install ok half-configured
Architecture: all
Version: 2

Package: left
Status: deinstall ok config-files
Architecture: amd64
Version: 3

Package: gone
Status: purge ok not-installed
Architecture: amd64

Package: going
Status: deinstall ok installed
Architecture: amd64
Version: 1

Package: libc6
Status: install reinstreq installed
Architecture: i386
Version: 2.36
";

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, StatusFiles) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let files = StatusFiles::below(root.path());
        (root, files)
    }

    #[test]
    fn states_marks_and_conffiles_are_read() {
        let marks = "Package: half\nArchitecture: amd64\nAuto-Installed: 1\n\nPackage: app\nArchitecture: amd64\nAuto-Installed: 0\n";
        let (_root, files) = host(&[("var/lib/dpkg/status", STATUS), ("var/lib/apt/extended_states", marks)]);
        let status = files.read(Of::All, "amd64").unwrap();
        let app = &status.debs["app"];
        assert_eq!(app.state.version.as_deref(), Some("1:1.0-1"));
        assert!(app.state.held && app.state.whole && !app.state.auto);
        let conffiles: Vec<_> =
            app.conffiles.iter().map(|conffile| (conffile.path.as_str(), conffile.obsolete)).collect();
        assert_eq!(conffiles, [("/etc/app.conf", false), ("/etc/with space.conf", false), ("/etc/app-old.conf", true)]);
        let half = status.state("half");
        assert!(!half.whole && half.auto && half.version.is_some());
        assert!(status.state("left").config_only && status.state("left").version.is_none());
        assert_eq!(status.debs["left"].left.as_deref(), Some("3"));
        assert_eq!(status.state("gone"), DebState::default());
        assert_eq!(status.state("never-heard-of"), DebState::default());
        assert!(!status.state("libc6:i386").whole && status.state("libc6").version.is_none());
        assert!(status.debs["libc6:i386"].torn && !status.debs["half"].torn);
        assert!(!status.debs["left"].leaving && status.debs["going"].leaving);
    }

    #[test]
    fn the_journal_of_an_interrupted_dpkg_counts() {
        let later = "Package: app\nStatus: install ok unpacked\nArchitecture: amd64\nVersion: 1:2.0-1\n";
        let (_root, files) = host(&[
            ("var/lib/dpkg/status", STATUS),
            (
                "var/lib/dpkg/updates/0000",
                "Package: app\nStatus: install ok half-installed\nArchitecture: amd64\nVersion: 1\n",
            ),
            ("var/lib/dpkg/updates/0001", later),
            ("var/lib/dpkg/updates/tmp.i", "not yet"),
        ]);
        assert!(files.interrupted());
        let names = BTreeSet::from(["app".to_owned()]);
        let status = files.read(Of::Names(&names), "amd64").unwrap();
        assert_eq!(status.debs.len(), 1);
        assert_eq!(status.state("app").version.as_deref(), Some("1:2.0-1"));
        assert!(!status.state("app").whole);
    }

    #[test]
    fn only_the_broken_ones_are_kept_when_asked() {
        let (_root, files) = host(&[("var/lib/dpkg/status", STATUS)]);
        let status = files.read(Of::Broken, "amd64").unwrap();
        assert_eq!(status.debs.keys().collect::<Vec<_>>(), ["half", "libc6:i386"]);
        assert!(!files.interrupted());
    }

    proptest! {
        #[test]
        fn any_status_line_is_read_without_panic(line in ".{0,60}", status in "[a-z ]{0,30}") {
            let text = format!("Package: a\nStatus: {status}\nConffiles:\n {line}\n");
            let mut read = Status::default();
            each_stanza(&mut text.as_bytes(), |stanza| read.take(stanza, Of::All, "amd64")).unwrap();
            prop_assert!(read.debs.len() <= 1);
        }
    }
}
