//! An apt for tests: it is told what it has and what it adds, does what it is asked at once, and remembers that it did.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{Apt, AptError, Archive, Ask, Broken, Exact, Free, Mark, Offer, Updated, World};
use crate::apply::host::debs::simulation::Simulation;
use crate::apply::host::debs::status::{Deb, Of, Status};
use crate::observed::DebState;
use crate::record::Failure;

#[derive(Debug, Default)]
pub struct FakeApt {
    pub debs: RefCell<BTreeMap<String, Deb>>,
    /// `name=version` with the conffiles it brings.
    pub offers: BTreeMap<String, Vec<String>>,
    /// Offered only after the indexes were refreshed.
    pub after_update: BTreeSet<String>,
    /// What apt adds to what is asked for, in its own words.
    pub says: String,
    pub altered: bool,
    pub full: bool,
    pub no_repack: bool,
    pub fails: bool,
    pub broken: bool,
    pub did: RefCell<Vec<String>>,
}

impl FakeApt {
    pub fn with(mut self, name: &str, version: &str) -> FakeApt {
        let state = DebState {
            version: Some(version.to_owned()),
            architecture: Some("amd64".to_owned()),
            whole: true,
            ..DebState::default()
        };
        self.debs.get_mut().insert(name.to_owned(), Deb { state, ..Deb::default() });
        self
    }

    pub fn change(mut self, name: &str, change: impl FnOnce(&mut Deb)) -> FakeApt {
        change(self.debs.get_mut().get_mut(name).unwrap());
        self
    }

    pub fn offering(mut self, debs: &[&str]) -> FakeApt {
        self.offers.extend(debs.iter().map(|deb| ((*deb).to_owned(), Vec::new())));
        self
    }

    pub fn saying(self, says: &str) -> FakeApt {
        FakeApt { says: says.to_owned(), ..self }
    }

    fn did(&self, what: impl Into<String>) -> String {
        self.did.borrow_mut().push(what.into());
        String::new()
    }

    fn offered(&self, spec: &str) -> bool {
        let updated = self.did.borrow().iter().any(|did| did == "update");
        self.offers.contains_key(spec) && (updated || !self.after_update.contains(spec))
    }
}

/// An archive of the tests is a text: `name version conffile…`.
fn archive(name: &str, version: &str, conffiles: &[String]) -> String {
    format!("{name} {version} {}", conffiles.join(" "))
}

impl Apt for FakeApt {
    fn native(&self) -> &str {
        "amd64"
    }

    fn status(&self, of: Of<'_>) -> Result<Status, Failure> {
        let all = self.debs.borrow().clone();
        let wanted = |(name, deb): &(String, Deb)| match of {
            Of::Names(names) => names.contains(name),
            Of::Broken => !deb.state.whole,
            Of::All | Of::Held => true,
        };
        Ok(Status { debs: all.into_iter().filter(wanted).collect() })
    }

    fn simulate(&self, world: World, asks: &[Ask]) -> Result<Simulation, AptError> {
        let mut text = String::new();
        for ask in asks {
            let now = self.debs.borrow().get(ask.name()).and_then(|deb| deb.state.version.clone());
            let old = now.as_ref().map_or(String::new(), |now| format!("[{now}] "));
            match ask {
                Ask::Version { name, version } if now.as_ref() != Some(version) => {
                    if !self.offered(&format!("{name}={version}")) {
                        return Err(AptError::Missing(format!("Version '{version}' for '{name}' was not found")));
                    }
                    text += &format!("Inst {name} {old}({version} source [amd64])\n");
                }
                Ask::Version { .. } => {}
                Ask::Archive { name, version, .. } if now.as_ref() != Some(version) => {
                    text += &format!("Inst {name} {old}({version} local-deb [amd64])\n");
                }
                Ask::Archive { .. } => {}
                Ask::Remove { name } => text += &format!("Remv {name} {old}\n"),
            }
        }
        if world == World::Sources {
            text += &self.says;
        }
        Ok(Simulation::parse(&text, "amd64"))
    }

    fn update(&self) -> Result<Updated, Failure> {
        self.did("update");
        Ok(Updated::default())
    }

    fn sources(&self) -> Vec<String> {
        vec!["file:/repo ./".to_owned()]
    }

    fn offer(&self, deb: &Exact) -> Option<Offer> {
        let spec = format!("{}={}", deb.name, deb.version);
        self.offered(&spec).then(|| Offer { uri: String::new(), file: deb.file(), size: 1000, digest: None })
    }

    fn download(&self, debs: &[(Exact, Offer)], into: &Path) -> Result<(), AptError> {
        for (deb, _) in debs {
            self.did(format!("download {}", deb.spec()));
            let conffiles = &self.offers[&format!("{}={}", deb.name, deb.version)];
            fs::write(into.join(deb.file()), archive(&deb.name, &deb.version, conffiles)).unwrap();
        }
        Ok(())
    }

    fn cached(&self, _: &Exact) -> Option<PathBuf> {
        None
    }

    fn inspect(&self, path: &Path) -> Result<Archive, Failure> {
        let text = fs::read_to_string(path).map_err(|error| Failure::new("BadPackage", error.to_string()))?;
        let mut words = text.split_whitespace().map(str::to_owned);
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        Ok(Archive { name, version, architecture: "amd64".to_owned(), installed_kib: 1, conffiles: words.collect() })
    }

    fn altered(&self, _: &str) -> bool {
        self.altered
    }

    fn repack(&self, name: &str, deb: &Deb, into: &Path) -> Result<(), Failure> {
        if self.no_repack {
            return Err(Failure::new("NoWayBack", format!("{name} can't be repacked: /usr/bin/{name} is missing")));
        }
        self.did(format!("repack {name}"));
        let version = deb.state.version.clone().or(deb.left.clone()).unwrap();
        fs::write(into, archive(name, &version, &["repacked".to_owned()])).unwrap();
        Ok(())
    }

    fn free(&self) -> Result<Free, Failure> {
        let free = if self.full { 1 << 20 } else { 1 << 30 };
        Ok(Free { archives: free, unpacked: free })
    }

    fn transact(&self, asks: &[Ask]) -> Result<String, Broken> {
        for ask in asks {
            let mut debs = self.debs.borrow_mut();
            let deb = debs.entry(ask.name().to_owned()).or_default();
            match ask {
                Ask::Version { name, .. } => panic!("{name} without an archive"),
                Ask::Archive { name, version, .. } => {
                    self.did(format!("install {name} {version}"));
                    let architecture = Some("amd64".to_owned());
                    deb.state = DebState {
                        version: Some(version.clone()),
                        architecture,
                        whole: !self.fails,
                        ..DebState::default()
                    };
                }
                Ask::Remove { name } => {
                    self.did(format!("remove {name}"));
                    deb.state = DebState { config_only: true, ..DebState::default() };
                }
            }
        }
        if self.fails || self.broken {
            return Err(Failure::new("DpkgFailed", "a script failed").into());
        }
        Ok(String::new())
    }

    fn unpack(&self, asks: &[Ask]) -> Result<String, Failure> {
        for ask in asks {
            let Ask::Archive { name, version, .. } = ask else { panic!("{} without an archive", ask.name()) };
            let mut debs = self.debs.borrow_mut();
            let deb = debs.get_mut(name).unwrap();
            (deb.torn, deb.state.version) = (false, Some(version.clone()));
            self.did(format!("unpack {name} {version}"));
        }
        Ok(String::new())
    }

    fn purge(&self, names: &[&str]) -> Result<String, Failure> {
        names.iter().for_each(|name| _ = self.debs.borrow_mut().remove(*name));
        Ok(self.did(format!("purge {}", names.join(" "))))
    }

    fn mark(&self, mark: Mark, names: &[&str]) -> Result<String, Failure> {
        for name in names {
            let mut debs = self.debs.borrow_mut();
            let deb = debs.get_mut(*name).unwrap();
            let state = &mut deb.state;
            match mark {
                Mark::Install => deb.leaving = false,
                Mark::Hold | Mark::Unhold => state.held = mark == Mark::Hold,
                Mark::Auto | Mark::Manual => state.auto = mark == Mark::Auto,
            }
        }
        Ok(self.did(format!("{} {}", mark.word(), names.join(" "))))
    }

    fn interrupted(&self) -> bool {
        false
    }

    fn resume(&self) -> Result<String, Failure> {
        Ok(self.did("resume"))
    }

    fn configure(&self, names: &[&str]) -> Result<String, Broken> {
        for name in names {
            self.debs.borrow_mut().get_mut(*name).unwrap().state.whole = true;
        }
        Ok(self.did(format!("configure {}", names.join(" ")).trim_end()))
    }

    fn fix_broken(&self, really: bool) -> Result<Simulation, Failure> {
        self.did(if really { "fix" } else { "would fix" });
        Ok(Simulation::parse(&self.says, "amd64"))
    }
}
