//! What prepare and execute ask of apt and dpkg, behind a trait: `system` runs the real programs, tests have a fake.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use kedge_model::wire::Digest;

use super::simulation::Simulation;
use super::status::{Deb, Of, Status};
use crate::record::Failure;

#[cfg(test)]
pub mod fake;
pub mod said;
pub mod system;

pub trait Apt: Debug + Send {
    /// The host's architecture, as Debian calls it.
    fn native(&self) -> &str;
    fn status(&self, of: Of<'_>) -> Result<Status, Failure>;
    /// What apt would do.
    fn simulate(&self, world: World, asks: &[Ask]) -> Result<Simulation, AptError>;
    /// Fetches the indexes anew; an answer says which sources failed.
    fn update(&self) -> Result<Updated, Failure>;
    /// The sources that apt looks at, as a person knows them.
    fn sources(&self) -> Vec<String>;
    /// Where an exact version can be had, if its source is known.
    fn offer(&self, deb: &Exact) -> Option<Offer>;
    /// Into a folder, under the offer's file name.
    fn download(&self, debs: &[(Exact, Offer)], into: &Path) -> Result<(), AptError>;
    /// The archive of an exact version that apt left in its own cache.
    fn cached(&self, deb: &Exact) -> Option<PathBuf>;
    /// What an archive says of itself.
    fn inspect(&self, archive: &Path) -> Result<Archive, Failure>;
    /// Whether installed files, other than configuration, differ from what the deb brought.
    fn altered(&self, name: &str) -> bool;
    /// Makes an archive of what is installed.
    fn repack(&self, name: &str, deb: &Deb, into: &Path) -> Result<(), Failure>;
    /// Bytes that are free where archives are kept and where debs are unpacked.
    fn free(&self) -> Result<Free, Failure>;
    /// Does what was asked, from archives on the disk only. Answers what apt and dpkg printed.
    fn transact(&self, asks: &[Ask]) -> Result<String, Broken>;
    /// Unpacks archives over whatever is there, without configuring them.
    fn unpack(&self, asks: &[Ask]) -> Result<String, Failure>;
    /// Removes the configuration files of debs that are removed.
    fn purge(&self, names: &[&str]) -> Result<String, Failure>;
    fn mark(&self, mark: Mark, names: &[&str]) -> Result<String, Failure>;
    /// Whether a dpkg was cut off.
    fn interrupted(&self) -> bool;
    /// Takes what an interrupted dpkg noted into its status, without running a script.
    fn resume(&self) -> Result<String, Failure>;
    /// Configures these, or all that is unpacked.
    fn configure(&self, names: &[&str]) -> Result<String, Broken>;
    /// What `apt-get --fix-broken` would do; done if `really`.
    fn fix_broken(&self, really: bool) -> Result<Simulation, Failure>;
}

/// What apt may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// All that its sources offer.
    Sources,
    /// What is installed and the archives that are asked for; nothing else can come in.
    Archives,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Selected to be installed: not for removal.
    Install,
    Hold,
    Unhold,
    Auto,
    Manual,
}

/// One thing that apt is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `name=version`.
    Version { name: String, version: String },
    /// An archive that is on the disk.
    Archive { name: String, version: String, digest: Digest },
    /// `name-`.
    Remove { name: String },
}

/// A deb in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exact {
    pub name: String,
    pub architecture: String,
    pub version: String,
}

/// Where apt would fetch an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub uri: String,
    pub file: String,
    pub size: u64,
    pub digest: Option<Digest>,
}

/// A `.deb` file's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archive {
    pub name: String,
    pub version: String,
    pub architecture: String,
    pub installed_kib: u64,
    pub conffiles: BTreeSet<String>,
}

/// How an update of the indexes went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    pub failed: Vec<String>,
    /// A source could not be reached: this passes.
    pub network: bool,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub archives: u64,
    pub unpacked: u64,
}

/// A run that failed, with all that was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub failure: Failure,
    pub output: String,
}

/// Why apt said no, by what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AptError {
    /// No source offers it, or the index names an archive that is gone: newer indexes may help.
    Missing(String),
    /// A source can't be reached.
    Network(String),
    /// The change isn't possible.
    Refused(String),
    /// Nothing that apt decided.
    Other(Failure),
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Failure {
        broken.failure
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Broken {
        Broken { failure, output: String::new() }
    }
}

impl Mark {
    pub fn word(self) -> &'static str {
        match self {
            Mark::Install => "install",
            Mark::Hold => "hold",
            Mark::Unhold => "unhold",
            Mark::Auto => "auto",
            Mark::Manual => "manual",
        }
    }
}

impl Ask {
    pub fn name(&self) -> &str {
        let (Ask::Version { name, .. } | Ask::Archive { name, .. } | Ask::Remove { name }) = self;
        name
    }
}

impl Exact {
    /// `name:architecture=version`, as apt takes it. `all` isn't an architecture of a host.
    pub fn spec(&self) -> String {
        let bare = self.name.split_once(':').map_or(self.name.as_str(), |(bare, _)| bare);
        match self.architecture.as_str() {
            "all" => format!("{bare}={}", self.version),
            architecture => format!("{bare}:{architecture}={}", self.version),
        }
    }

    /// The name of its archive in apt's cache.
    pub fn file(&self) -> String {
        let bare = self.name.split_once(':').map_or(self.name.as_str(), |(bare, _)| bare);
        format!("{bare}_{}_{}.deb", self.version.replace(':', "%3a"), self.architecture)
    }
}

/// Whether a string can be a deb's name: what may be given to apt as an argument.
pub fn is_name(text: &str) -> bool {
    let (bare, architecture) = text.split_once(':').unwrap_or((text, "all"));
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+.-".contains(&byte);
    let word = |word: &str| word.len() >= 2 && word.len() <= 128 && word.bytes().all(allowed);
    // A trailing `+` or `-` is apt's word for installing or removing; no deb of Debian but `g++` and its kin ends so.
    let mild = !bare.ends_with('-') && (!bare.ends_with('+') || bare.ends_with("++"));
    word(bare) && word(architecture) && mild && bare.starts_with(|first: char| first.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_paths_are_no_names() {
        for right in ["app", "libstdc++6", "g++", "libc6:i386", "0ad", "a.b-c"] {
            assert!(is_name(right), "{right}");
        }
        for wrong in ["", "a", "-y", "--purge", "../x", "App", "a b", "app=1", "app-", "app+", "app:"] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn an_exact_deb_is_written_as_apt_takes_it() {
        let exact = |name: &str, architecture: &str| Exact {
            name: name.to_owned(),
            architecture: architecture.to_owned(),
            version: "1:2-3".to_owned(),
        };
        assert_eq!(exact("app", "amd64").spec(), "app:amd64=1:2-3");
        assert_eq!(exact("docs", "all").spec(), "docs=1:2-3");
        assert_eq!(exact("libc6:i386", "i386").spec(), "libc6:i386=1:2-3");
        assert_eq!(exact("libc6:i386", "i386").file(), "libc6_1%3a2-3_i386.deb");
    }
}
