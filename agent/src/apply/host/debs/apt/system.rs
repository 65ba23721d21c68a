//! The host's own apt and dpkg, run without questions and with time limits. Archives reach apt through a folder of links
//! to objects, which this module owns: `debs/links` in the agent's state.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use kedge_model::wire::Digest;
use nix::sys::statvfs::statvfs;

use super::{Apt, AptError, Archive, Ask, Broken, Exact, Free, Mark, Offer, Updated, World, said};
use crate::apply::host::debs::lock::{Locks, locked};
use crate::apply::host::debs::repack;
use crate::apply::host::debs::simulation::Simulation;
use crate::apply::host::debs::stanza::Stanza;
use crate::apply::host::debs::status::{Deb, Of, Status, StatusFiles};
use crate::command::{CommandError, Output, run};
use crate::objects::Objects;
use crate::paths::Paths;
use crate::record::Failure;
use crate::trace::shorten;

#[derive(Debug)]
pub struct HostApt {
    root: PathBuf,
    /// Our own folder: links to archives, downloads, no indexes.
    work: PathBuf,
    objects: Objects,
    files: StatusFiles,
    native: OnceLock<String>,
    lock_wait: Duration,
}

/// No question is ever asked, and services that need a restart are the workload's own affair (`restartOn`), not needrestart's.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("DEBCONF_NONINTERACTIVE_SEEN", "true"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("APT_LISTBUGS_FRONTEND", "none"),
    ("NEEDRESTART_MODE", "l"),
    ("NEEDRESTART_SUSPEND", "1"),
];
/// The same for every run of apt-get. Root fetches, because our folders are root's only; nothing comes or goes that a deb
/// doesn't depend on; configuration files that somebody edited stay.
const OPTIONS: [&str; 15] = [
    "-q",
    "-y",
    "--no-install-recommends",
    "--allow-downgrades",
    "--allow-change-held-packages",
    "-oAPT::Install-Suggests=false",
    "-oAPT::Get::AutomaticRemove=false",
    "-oAPT::Sandbox::User=root",
    "-oAcquire::Retries=2",
    "-oAcquire::http::Timeout=30",
    "-oAcquire::https::Timeout=30",
    "-oDpkg::Use-Pty=0",
    "-oDpkg::Progress-Fancy=0",
    "-oDpkg::Options::=--force-confdef",
    "-oDpkg::Options::=--force-confold",
];
/// apt's own tool for single files, with its proxies and credentials.
const HELPER: &str = "usr/lib/apt/apt-helper";
/// Another program may install for a while; longer waits are the next try's.
const LOCK_WAIT: Duration = Duration::from_secs(120);
/// Questions that are answered from the disk; a slow card needs its time.
const ANSWER: Duration = Duration::from_secs(180);
/// Indexes of a whole release over a thin line.
const UPDATE: Duration = Duration::from_secs(10 * 60);
/// Hundreds of megabytes over a thin line.
const DOWNLOAD: Duration = Duration::from_secs(4 * 3600);
/// Stopping dpkg in the middle is worse than waiting; this is for scripts that hang.
const TRANSACTION: Duration = Duration::from_secs(3600);

impl HostApt {
    pub fn new(paths: &Paths, objects: &Objects) -> HostApt {
        HostApt {
            root: paths.root().to_owned(),
            work: paths.state().join("debs"),
            objects: objects.clone(),
            files: StatusFiles::below(paths.root()),
            native: OnceLock::new(),
            lock_wait: LOCK_WAIT,
        }
    }

    /// For a host on which nobody should wait so long.
    pub fn with_lock_wait(self, lock_wait: Duration) -> HostApt {
        HostApt { lock_wait, ..self }
    }

    /// apt-get with our options; an archive is given by its path.
    fn apt_get(&self, world: World, words: &[&str], asks: &[Ask], limit: Duration) -> Result<Output, Failure> {
        fs::create_dir_all(self.work.join("no-lists/partial")).map_err(|error| on_disk(&self.work, &error))?;
        let mut arguments: Vec<String> = OPTIONS.iter().chain(words).map(|word| (*word).to_owned()).collect();
        if world == World::Archives {
            // Sources, pins and indexes are out of reach: apt can choose from nothing but what is installed and what is given.
            for closed in
                ["Dir::Etc::SourceList=/dev/null", "Dir::Etc::SourceParts=/dev/null", "Dir::Etc::Preferences=/dev/null"]
            {
                arguments.push(format!("-o{closed}"));
            }
            arguments.push("-oDir::Etc::PreferencesParts=/dev/null".to_owned());
            // A power cut may have left a deb unpacked whose dependency is the one given here: apt refuses to touch a broken
            // system unless it is told that this mends it. What it would do besides is compared with the step.
            arguments.push("--fix-broken".to_owned());
            arguments.push(format!("-oDir::State::Lists={}", self.work.join("no-lists").display()));
            arguments.push("-oDir::Cache::pkgcache=".to_owned());
            arguments.push("-oDir::Cache::srcpkgcache=".to_owned());
        }
        for ask in asks {
            arguments.push(match ask {
                Ask::Version { name, version } => format!("{name}={version}"),
                Ask::Remove { name } => format!("{name}-"),
                Ask::Archive { name, version, digest } => self.link(name, version, digest)?.display().to_string(),
            });
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run("apt-get", &arguments, &ENVIRONMENT, limit).map_err(unfit)
    }

    /// A second name for an object that ends in `.deb`, as apt wants it; apt would see through a symlink.
    fn link(&self, name: &str, version: &str, digest: &Digest) -> Result<PathBuf, Failure> {
        let (object, folder) = (self.objects.path(digest), self.work.join("links"));
        let link = folder.join(format!("{name}_{version}.deb").replace(':', "-"));
        fs::create_dir_all(&folder).map_err(|error| on_disk(&folder, &error))?;
        // One that an interrupted run left may be of another object.
        _ = fs::remove_file(&link);
        match fs::hard_link(&object, &link) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                fs::copy(&object, &link).map_err(|error| on_disk(&link, &error))?;
            }
            linked => linked.map_err(|error| on_disk(&object, &error))?,
        }
        Ok(link)
    }

    /// A program that changes dpkg's state: once the locks are free, and again when somebody was faster.
    fn changing(&self, go: impl Fn() -> Result<Output, Failure>) -> Result<Output, Failure> {
        let locks = Locks::of_dpkg(&self.root);
        locks.wait(self.lock_wait)?;
        let output = go()?;
        if output.ok() || !said::is_locked(&output.text()) {
            return Ok(output);
        }
        locks.wait(self.lock_wait)?;
        let output = go()?;
        match locks.holder().filter(|_| !output.ok() && said::is_locked(&output.text())) {
            Some(holder) => Err(locked(&holder, self.lock_wait)),
            None => Ok(output),
        }
    }

    fn dpkg(&self, arguments: &[&str]) -> Result<String, Broken> {
        let keep = ["--force-confdef", "--force-confold"];
        let arguments: Vec<&str> = keep.iter().chain(arguments).copied().collect();
        let output = self.changing(|| run("dpkg", &arguments, &ENVIRONMENT, TRANSACTION).map_err(unfit))?;
        judge(&output)
    }

    /// Links are for one run: an object that nobody needs must not live on through them.
    fn clear_links(&self) {
        _ = fs::remove_dir_all(self.work.join("links"));
    }
}

impl Apt for HostApt {
    fn native(&self) -> &str {
        self.native.get_or_init(|| {
            let asked = run("dpkg", &["--print-architecture"], &ENVIRONMENT, ANSWER);
            asked
                .ok()
                .filter(Output::ok)
                .map_or_else(|| built_for().to_owned(), |output| output.stdout.trim().to_owned())
        })
    }

    fn status(&self, of: Of<'_>) -> Result<Status, Failure> {
        self.files.read(of, self.native()).map_err(|error| on_disk(&self.files.dpkg.join("status"), &error))
    }

    fn simulate(&self, world: World, asks: &[Ask]) -> Result<Simulation, AptError> {
        let output = self.apt_get(world, &["install", "--simulate"], asks, ANSWER);
        self.clear_links();
        let output = output.map_err(AptError::Other)?;
        if output.ok() {
            Ok(Simulation::parse(&said::plain(&output.text()), self.native()))
        } else {
            Err(said::refusal(&output.text()))
        }
    }

    fn update(&self) -> Result<Updated, Failure> {
        Locks::of_lists(&self.root).wait(self.lock_wait)?;
        let output = self.apt_get(World::Sources, &["update"], &[], UPDATE)?;
        Ok(said::updated(&output.text()))
    }

    fn sources(&self) -> Vec<String> {
        let format = "--format=$(REPO_URI) $(RELEASE)";
        let output = run("apt-get", &["indextargets", format, "Created-By: Packages"], &ENVIRONMENT, ANSWER);
        let text = output.map(|output| output.stdout).unwrap_or_default();
        let mut sources: Vec<String> =
            text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
        sources.dedup();
        sources
    }

    fn offer(&self, deb: &Exact) -> Option<Offer> {
        let words = ["download", "--print-uris", &deb.spec()];
        let output = self.apt_get(World::Sources, &words, &[], ANSWER).ok()?;
        output.stdout.lines().find_map(said::offer)
    }

    fn download(&self, debs: &[(Exact, Offer)], into: &Path) -> Result<(), AptError> {
        let helper = self.root.join(HELPER);
        let (remote, local): (Vec<_>, Vec<_>) =
            debs.iter().partition(|(_, offer)| offer.uri.starts_with("http") && helper.is_file());
        if !remote.is_empty() {
            // Goes on where an interrupted download ended, which `apt-get download` doesn't.
            let mut arguments = vec!["-oAPT::Sandbox::User=root".to_owned(), "download-file".to_owned()];
            for (_, offer) in remote {
                let hash = offer.digest.map(|digest| format!("SHA256:{}", digest.hex())).unwrap_or_default();
                arguments.extend([offer.uri.clone(), into.join(&offer.file).display().to_string(), hash]);
            }
            downloaded(&helper.display().to_string(), &arguments)?;
        }
        if !local.is_empty() {
            // It downloads into the folder it is started in.
            let mut arguments = vec!["-C".to_owned(), into.display().to_string(), "apt-get".to_owned()];
            arguments.extend(OPTIONS.map(str::to_owned));
            arguments.push("download".to_owned());
            arguments.extend(local.iter().map(|(deb, _)| deb.spec()));
            downloaded("env", &arguments)?;
        }
        Ok(())
    }

    fn cached(&self, deb: &Exact) -> Option<PathBuf> {
        let path = self.root.join("var/cache/apt/archives").join(deb.file());
        path.is_file().then_some(path)
    }

    fn inspect(&self, archive: &Path) -> Result<Archive, Failure> {
        let path = archive.display().to_string();
        let fields = run("dpkg-deb", &["--field", &path], &ENVIRONMENT, ANSWER).map_err(unfit)?;
        if !fields.ok() {
            return Err(Failure::new("BadPackage", format!("not a deb: {}", fields.stderr.trim())));
        }
        // It fails when there are none.
        let conffiles = run("dpkg-deb", &["--info", &path, "conffiles"], &ENVIRONMENT, ANSWER).map_err(unfit)?;
        let conffiles = if conffiles.ok() { conffiles.stdout } else { String::new() };
        Ok(Archive::parse(&fields.stdout, &conffiles))
    }

    fn altered(&self, name: &str) -> bool {
        let Ok(output) = run("dpkg", &["--verify", name], &ENVIRONMENT, DOWNLOAD) else { return true };
        // `??5?????? c /etc/…`: what is a configuration file is kept anyway.
        output.stdout.lines().any(|line| line.split_whitespace().nth(1) != Some("c"))
    }

    fn repack(&self, name: &str, deb: &Deb, into: &Path) -> Result<(), Failure> {
        repack::repack(&self.root, name, deb, into)
    }

    fn free(&self) -> Result<Free, Failure> {
        fs::create_dir_all(&self.work).map_err(|error| on_disk(&self.work, &error))?;
        Ok(Free { archives: free_at(&self.work)?, unpacked: free_at(&self.root.join("usr"))? })
    }

    fn transact(&self, asks: &[Ask]) -> Result<String, Broken> {
        let wait = format!("-oDPkg::Lock::Timeout={}", self.lock_wait.as_secs());
        let words = ["install", &wait];
        let output = self.changing(|| self.apt_get(World::Archives, &words, asks, TRANSACTION));
        self.clear_links();
        judge(&output?)
    }

    fn unpack(&self, asks: &[Ask]) -> Result<String, Failure> {
        let mut arguments = vec!["--unpack".to_owned(), "--auto-deconfigure".to_owned()];
        for ask in asks {
            if let Ask::Archive { name, version, digest } = ask {
                arguments.push(self.link(name, version, digest)?.display().to_string());
            }
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let done = self.dpkg(&arguments);
        self.clear_links();
        Ok(done?)
    }

    fn purge(&self, names: &[&str]) -> Result<String, Failure> {
        Ok(self.dpkg(&[&["--purge"], names].concat())?)
    }

    fn mark(&self, mark: Mark, names: &[&str]) -> Result<String, Failure> {
        let arguments = [&[mark.word()], names].concat();
        Ok(judge(&self.changing(|| run("apt-mark", &arguments, &ENVIRONMENT, ANSWER).map_err(unfit))?)?)
    }

    fn interrupted(&self) -> bool {
        self.files.interrupted()
    }

    fn resume(&self) -> Result<String, Failure> {
        // Opening its database for writing is enough for dpkg to take its journal in; an empty list changes nothing else.
        Ok(self.dpkg(&["--set-selections"])?)
    }

    fn configure(&self, names: &[&str]) -> Result<String, Broken> {
        let names = if names.is_empty() { &["--pending"] } else { names };
        self.dpkg(&[&["--configure"], names].concat())
    }

    fn fix_broken(&self, really: bool) -> Result<Simulation, Failure> {
        let words: &[&str] =
            if really { &["install", "--fix-broken"] } else { &["install", "--fix-broken", "--simulate"] };
        let output = match really {
            true => self.changing(|| self.apt_get(World::Sources, words, &[], TRANSACTION))?,
            false => self.apt_get(World::Sources, words, &[], ANSWER)?,
        };
        Ok(Simulation::parse(&judge(&output)?, self.native()))
    }
}

impl Archive {
    fn parse(fields: &str, conffiles: &str) -> Archive {
        let stanza = Stanza::new(fields);
        let field = |name: &str| stanza.field(name).unwrap_or_default().to_owned();
        // A line may begin with `remove-on-upgrade`: that file goes, it doesn't come.
        let paths = conffiles.lines().map(str::trim_end).filter(|line| line.starts_with('/'));
        Archive {
            name: field("Package"),
            version: field("Version"),
            architecture: field("Architecture"),
            installed_kib: field("Installed-Size").parse().unwrap_or(0),
            conffiles: paths.map(str::to_owned).collect(),
        }
    }
}

fn downloaded(program: &str, arguments: &[String]) -> Result<(), AptError> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = run(program, &arguments, &ENVIRONMENT, DOWNLOAD).map_err(|error| AptError::Other(unfit(error)))?;
    let text = output.text();
    match output.ok() {
        true => Ok(()),
        false if said::is_full(&text) => Err(AptError::Other(Failure::passing("DiskFull", said::errors(&text)))),
        // Nothing is decided in a download: what isn't missing may come the next time.
        false => Err(match said::refusal(&text) {
            AptError::Refused(_) => AptError::Network(said::errors(&text)),
            other => other,
        }),
    }
}

fn free_at(path: &Path) -> Result<u64, Failure> {
    let known = statvfs(path).map_err(|error| on_disk(path, &error.into()))?;
    Ok(wide(known.blocks_available()).saturating_mul(wide(known.fragment_size())))
}

/// The kernel's counts have 32 bits on a 32-bit host.
fn wide(count: impl Into<u64>) -> u64 {
    count.into()
}

/// The architecture that this program was built for, should dpkg not answer.
fn built_for() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "arm" => "armhf",
        other => other,
    }
}

fn judge(output: &Output) -> Result<String, Broken> {
    let text = said::plain(&output.text());
    let failure = match output.ok() {
        true => return Ok(text),
        false if said::is_full(&text) => Failure::passing("DiskFull", said::blame(&text)),
        false => Failure::new("DpkgFailed", shorten(&said::blame(&text))),
    };
    Err(Broken { failure, output: text })
}

fn unfit(error: CommandError) -> Failure {
    match &error {
        CommandError::Slow { output, .. } => Failure::new("DpkgFailed", format!("{error}: {}", shorten(output))),
        CommandError::Missing { .. } => Failure::new("Unsupported", format!("{error}: is this a Debian host?")),
        CommandError::Start { source, .. } => Failure::new("DpkgFailed", format!("{error}: {source}")),
    }
}

fn on_disk(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::StorageFull => Failure::passing("DiskFull", format!("{}: {error}", path.display())),
        _ => Failure::new("DpkgFailed", format!("{}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archives_own_words_are_read() {
        let fields = "Package: app\nVersion: 1:2.0-1\nArchitecture: amd64\nInstalled-Size: 40\nDescription: x\n y\n";
        let archive = Archive::parse(fields, "/etc/app.conf\nremove-on-upgrade /etc/gone.conf\n/etc/other.conf\n");
        assert_eq!((archive.name.as_str(), archive.version.as_str()), ("app", "1:2.0-1"));
        assert_eq!((archive.architecture.as_str(), archive.installed_kib), ("amd64", 40));
        assert_eq!(archive.conffiles.into_iter().collect::<Vec<_>>(), ["/etc/app.conf", "/etc/other.conf"]);
        assert_eq!(Archive::parse("", "").name, "");
    }
}
