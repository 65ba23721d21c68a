//! The agent for ARM, as the packages bring it, under qemu's user emulation: it starts, prints, reads and writes its files. One
//! process a test; `./tests/run arm` builds the packages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "all of this is test code")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kedge_tests::lab::skip;

/// One of Debian's architectures, and how its programs are started here.
struct Arm {
    program: PathBuf,
    qemu: &'static str,
    /// Where its C library is.
    libraries: &'static str,
}

impl Arm {
    /// Unpacked from the package that `variable` names.
    fn unpack(variable: &str, qemu: &'static str, libraries: &'static str, into: &Path) -> Option<Arm> {
        let Some(deb) = env::var_os(variable).map(PathBuf::from) else {
            skip(&format!("{variable} names no package (./tests/run arm builds it)"));
            return None;
        };
        let unpacked = Command::new("dpkg-deb").arg("-x").arg(&deb).arg(into).status().unwrap();
        assert!(unpacked.success(), "there is no package, see {}", deb.display());
        Some(Arm { program: into.join("usr/bin/kedge-agent"), qemu, libraries })
    }

    fn run(&self, root: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.qemu);
        command.args(["-L", self.libraries]).arg(&self.program).args(arguments).arg("--root").arg(root);
        command.output().unwrap_or_else(|error| panic!("{}: {error}", self.qemu))
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// What a host needs of the program before there is a hub: all of it without a network.
fn starts(variable: &str, qemu: &'static str, libraries: &'static str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(arm) = Arm::unpack(variable, qemu, libraries, &folder.path().join("deb")) else { return };
    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();

    let version = arm.run(&root, &["--version"]);
    assert_eq!(text(&version), format!("kedge-agent {}\n", env!("CARGO_PKG_VERSION")));

    // 3: this host hasn't joined.
    let status = arm.run(&root, &["status"]);
    assert_eq!(status.status.code(), Some(3), "{}", text(&status));
    assert!(text(&status).contains("This host hasn't joined a hub"), "{}", text(&status));
    let document: serde_json::Value =
        serde_json::from_slice(&arm.run(&root, &["status", "-o", "json"]).stdout).unwrap();
    assert_eq!(document["assignments"], serde_json::json!([]));

    let doctor = arm.run(&root, &["doctor", "-o", "json"]);
    assert_eq!(doctor.status.code(), Some(3), "{}", text(&doctor));
    let findings: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let clock = findings.as_array().unwrap().iter().find(|finding| finding["what"] == "clock").unwrap();
    assert_eq!(clock["problem"], false, "64-bit times on a 32-bit machine: {clock}");

    let unknown = arm.run(&root, &["why", "nothing"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", text(&unknown));

    // Keys are made and ledgers are written: the hub isn't there, and the key for the next try is.
    let token = kedge_model::wire::JoinToken {
        hub: "https://127.0.0.1:1".to_owned(),
        id: "t".to_owned(),
        secret: "s".to_owned(),
        authority: kedge_model::wire::Digest::of(b"nobody"),
    };
    let join = arm.run(&root, &["join", "--token", &token.to_string()]);
    assert_eq!(join.status.code(), Some(1), "{}", text(&join));
    for copy in ["identity.a", "identity.b"] {
        assert!(root.join("var/lib/kedge-agent").join(copy).is_file(), "{}", text(&join));
    }
}

#[test]
fn the_agent_for_arm64_starts() {
    starts("KEDGE_ARM64_DEB", "qemu-aarch64-static", "/usr/aarch64-linux-gnu");
}

#[test]
fn the_agent_for_armhf_starts() {
    starts("KEDGE_ARMHF_DEB", "qemu-arm-static", "/usr/arm-linux-gnueabihf");
}
