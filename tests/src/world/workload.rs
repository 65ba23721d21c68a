//! A HostWorkload that a test writes: its YAML and the files of its folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::lab::apt_repository::Deb;
use crate::lab::git::Checkout;

/// What an application team has in its manifests folder. Lines are inline YAML: `{name: tool, version: "1"}`.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    pub debs: Vec<String>,
    pub files: Vec<String>,
    pub artifacts: Vec<String>,
    pub units: Vec<String>,
    pub health: Vec<String>,
    /// Further lines of the spec, such as `drift: report`.
    pub more: Vec<String>,
    /// The folder's files.
    pub content: BTreeMap<String, Vec<u8>>,
}

impl Workload {
    /// A deb `tool` in this version and a service that runs as the namespace's user; healthy when the unit runs and the tool
    /// says so.
    pub fn tool(assignment: &str, version: &str) -> Workload {
        let unit = format!(
            "[Unit]\nDescription=a test's service\n\n[Service]\nEnvironmentFile=/etc/kedge/workloads/{assignment}/platform-config.env\n\
             ExecStart=/srv/{assignment}/serve.sh\n\n[Install]\nWantedBy=multi-user.target\n"
        );
        let mut workload = Workload::default()
            .deb("tool", version)
            .deb("toollib", version)
            .file(
                &format!("/srv/{assignment}/serve.sh"),
                "serve.sh",
                "#!/bin/sh\nexec sleep infinity\n",
                "mode: \"0755\"",
            )
            .file(
                &format!("/etc/systemd/system/{assignment}.service"),
                "unit.service",
                &unit,
                "owner: \"root:root\", mode: \"0644\"",
            );
        workload.units.push(format!(
            "{{name: {assignment}.service, restartOn: [tool, /srv/{assignment}/serve.sh, /etc/systemd/system/{assignment}.service]}}"
        ));
        workload.health.push(format!("{{unit: {assignment}.service, timeout: 5s}}"));
        workload.health.push("{exec: [/usr/bin/tool, healthy], timeout: 5s}".to_owned());
        workload
    }

    #[must_use]
    pub fn deb(mut self, name: &str, version: &str) -> Workload {
        self.debs.push(format!("{{name: {name}, version: \"{version}\"}}"));
        self
    }

    /// A file with its content; `more` are further fields of the entry, or nothing.
    #[must_use]
    pub fn file(mut self, path: &str, name: &str, content: &str, more: &str) -> Workload {
        let gap = if more.is_empty() { "" } else { ", " };
        self.files.push(format!("{{path: {path}, file: {name}{gap}{more}}}"));
        self.content.insert(name.to_owned(), content.as_bytes().to_vec());
        self
    }

    /// Replaces what the folder has by this, and pushes; the commit.
    pub fn push(&self, checkout: &Checkout, folder: &str) -> String {
        if checkout.path(folder).exists() {
            checkout.remove(folder);
        }
        for (name, content) in &self.content {
            let path = checkout.path(&format!("{folder}/{name}"));
            std::fs::create_dir_all(path.parent().expect("inside the checkout")).unwrap();
            std::fs::write(path, content).unwrap();
        }
        checkout.write(&format!("{folder}/host-workload.yaml"), &self.yaml());
        let commit = checkout.commit(&format!("Change {folder}"));
        checkout.push(&checkout.branch());
        commit
    }

    fn yaml(&self) -> String {
        let mut text =
            "apiVersion: kedge.dev/v1alpha1\nkind: HostWorkload\nmetadata:\n  name: test\nspec:\n".to_owned();
        let lists = [
            ("debs", &self.debs),
            ("files", &self.files),
            ("artifacts", &self.artifacts),
            ("units", &self.units),
            ("health", &self.health),
        ];
        for (name, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            _ = writeln!(text, "  {name}:");
            lines.iter().for_each(|line| _ = writeln!(text, "    - {line}"));
        }
        self.more.iter().for_each(|line| _ = writeln!(text, "  {line}"));
        text
    }
}

/// What `Workload::tool` installs: a program with a configuration file, its library in the same version, and a base that comes by
/// itself.
pub fn tool(version: &str, healthy: bool) -> [Deb; 3] {
    let code = u8::from(!healthy);
    let program = format!("#!/bin/sh\necho tool {version}\nexit {code}\n");
    let tool = Deb::new("tool", version)
        .field("Depends", &format!("toollib (= {version}), toolbase"))
        .file("/usr/bin/tool", program, 0o755)
        .conffile("/etc/tool.conf", &format!("version {version}\n"));
    let library = Deb::new("toollib", version).file("/usr/lib/toollib/library", format!("{version}\n"), 0o644);
    [tool, library, Deb::new("toolbase", "1").file("/usr/lib/toolbase/base", "base\n", 0o644)]
}
