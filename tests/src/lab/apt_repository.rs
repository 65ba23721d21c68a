//! Debs of the tests' own, and an apt repository that offers them over HTTP on loopback or from a folder of the host. Versions
//! come and go as in a real one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use ring::digest::{SHA256, digest};
use tempfile::TempDir;

use super::host::DebianHost;
use super::http::{self as lab_http, Server};

/// A deb that is to be made.
#[derive(Debug, Clone)]
pub struct Deb {
    name: String,
    version: String,
    fields: Vec<(String, String)>,
    files: BTreeMap<String, (Vec<u8>, u32)>,
    conffiles: Vec<String>,
    scripts: BTreeMap<String, String>,
}

/// What it offers now, behind a server that can be closed.
#[derive(Debug)]
pub struct AptRepository {
    folder: TempDir,
    offered: Mutex<BTreeMap<(String, String), Offer>>,
    server: Server,
}

#[derive(Debug)]
struct Offer {
    file: String,
    entry: String,
}

/// Where a host has its copy of a repository that is reached without a network.
const INSIDE: &str = "/var/lib/test-apt";
/// The host's source of our debs, and nothing else.
const SOURCE: &str = "/etc/apt/sources.list.d/test.list";

impl Deb {
    /// For every architecture, with nothing in it.
    pub fn new(name: &str, version: &str) -> Deb {
        Deb {
            name: name.to_owned(),
            version: version.to_owned(),
            fields: Vec::new(),
            files: BTreeMap::new(),
            conffiles: Vec::new(),
            scripts: BTreeMap::new(),
        }
    }

    /// A line of its control file: `Depends`, `Conflicts`, `Essential`.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Deb {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>, mode: u32) -> Deb {
        self.files.insert(path.to_owned(), (content.into(), mode));
        self
    }

    /// A configuration file, which dpkg keeps when somebody changed it.
    #[must_use]
    pub fn conffile(mut self, path: &str, text: &str) -> Deb {
        self.conffiles.push(path.to_owned());
        self.file(path, text, 0o644)
    }

    /// A maintainer script: `preinst`, `postinst`, `prerm`, `postrm`.
    #[must_use]
    pub fn script(mut self, name: &str, lines: &str) -> Deb {
        self.scripts.insert(name.to_owned(), format!("#!/bin/sh\nset -e\n{lines}\n"));
        self
    }

    /// Makes it in a folder; the file.
    pub fn build(&self, folder: &Path) -> PathBuf {
        let tree = tempfile::Builder::new().prefix("kedge-deb-").tempdir().unwrap();
        let write = |path: &str, content: &[u8], mode: u32| {
            let path = tree.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().expect("below the tree")).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o755)).unwrap();
        write("DEBIAN/control", self.control().as_bytes(), 0o644);
        if !self.conffiles.is_empty() {
            write("DEBIAN/conffiles", (self.conffiles.join("\n") + "\n").as_bytes(), 0o644);
        }
        for (name, text) in &self.scripts {
            write(&format!("DEBIAN/{name}"), text.as_bytes(), 0o755);
        }
        for (path, (content, mode)) in &self.files {
            write(path, content, *mode);
        }
        let path = folder.join(format!("{}_{}_all.deb", self.name, self.version.replace(':', "%3a")));
        let mut build = Command::new("dpkg-deb");
        // Not for the size: what is big is random.
        build.args(["--root-owner-group", "-Znone", "--build"]).arg(tree.path()).arg(&path);
        let done = build.output().unwrap_or_else(|e| panic!("dpkg-deb: {e}"));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        path
    }

    fn control(&self) -> String {
        let mut text = format!(
            "Package: {}\nVersion: {}\nArchitecture: all\nMaintainer: Tests <tests@example.com>\n",
            self.name, self.version
        );
        for (name, value) in &self.fields {
            _ = writeln!(text, "{name}: {value}");
        }
        text + "Description: made by a test\n"
    }
}

impl AptRepository {
    pub fn start() -> AptRepository {
        let folder = tempfile::Builder::new().prefix("kedge-apt-").tempdir().unwrap();
        let served = folder.path().to_owned();
        let handler = move |request: Request<Bytes>| -> lab_http::Answer {
            let path = served.join(request.uri().path().trim_start_matches(['.', '/']));
            Box::pin(async move {
                match fs::read(path) {
                    Ok(bytes) => Response::new(Bytes::from(bytes)),
                    Err(_) => lab_http::plain(404, "there is no such file"),
                }
            })
        };
        let repository =
            AptRepository { folder, offered: Mutex::new(BTreeMap::new()), server: Server::start(Arc::new(handler)) };
        repository.index();
        repository
    }

    /// Offers a deb from now on.
    pub fn add(&self, deb: &Deb) {
        let path = deb.build(self.folder.path());
        let bytes = fs::read(&path).unwrap();
        let file = path.file_name().expect("a file").to_string_lossy().into_owned();
        let sum: String = digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let entry = format!("{}Filename: ./{file}\nSize: {}\nSHA256: {sum}\n", deb.control(), bytes.len());
        self.offered.lock().unwrap().insert((deb.name.clone(), deb.version.clone()), Offer { file, entry });
        self.index();
    }

    /// Offers it no longer.
    pub fn drop_version(&self, name: &str, version: &str) {
        let gone = self.offered.lock().unwrap().remove(&(name.to_owned(), version.to_owned()));
        fs::remove_file(self.folder.path().join(gone.expect("it is offered").file)).unwrap();
        self.index();
    }

    /// Nobody answers any more; `open` ends that.
    pub fn close(&self) {
        self.server.close();
    }

    pub fn open(&self) {
        self.server.open();
    }

    /// Makes it the host's only source of debs, over HTTP.
    pub fn connect(&self, host: &DebianHost) {
        host.write(SOURCE, format!("deb [trusted=yes] {}/ ./\n", self.server.url()));
        host.ok(&["apt-get", "-q", "update"]);
    }

    /// The same from a folder inside, for a host without a network.
    pub fn copy_into(&self, host: &DebianHost) {
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            host.copy_in(&path, &format!("{INSIDE}/{name}"), 0o644);
        }
        host.write(SOURCE, format!("deb [trusted=yes] file:{INSIDE} ./\n"));
        host.ok(&["apt-get", "-q", "update"]);
    }

    /// Where a deb that is offered lies.
    pub fn path(&self, name: &str, version: &str) -> PathBuf {
        let offered = self.offered.lock().unwrap();
        self.folder.path().join(&offered[&(name.to_owned(), version.to_owned())].file)
    }

    fn index(&self) {
        let entries: Vec<String> = self.offered.lock().unwrap().values().map(|offer| offer.entry.clone()).collect();
        fs::write(self.folder.path().join("Packages"), entries.join("\n")).unwrap();
    }
}
