//! A host on an island: a plant's hub, a box that no network reaches, and the stick that a person carries between them.

use std::path::{Path, PathBuf};

use kedge_tests::lab::root_agent::RootAgent;
use kedge_tests::world::kedge::Run;
use kedge_tests::world::plant::{LINE, Plant, assignment};
use tempfile::TempDir;

/// Its environment is the first word.
pub const BOX: &str = "dev-island-1";

/// The parts, in the order in which they end.
pub struct Island {
    pub host: RootAgent,
    pub plant: Plant,
    pub stick: TempDir,
}

impl Island {
    /// A hub that has published version 1, and a box that has nothing but its program.
    pub fn start() -> Option<Island> {
        let plant = Plant::start(None)?;
        let host = RootAgent::without_network(BOX)?;
        let stick = tempfile::Builder::new().prefix("kedge-stick-").tempdir().unwrap();
        let island = Island { host, plant, stick };
        // Its text is in the first desired state.
        island.plant.world.await_generation("dev", LINE, 1);
        Some(island)
    }

    /// The same with the box a member, running, and with version 1 by file.
    pub fn settled() -> Option<Island> {
        let mut island = Island::start()?;
        island.enrol();
        island.host.start_again();
        let bundle = island.bundle("first.kedge", &[]);
        island.host_ok(&["import", &bundle]);
        island.await_text("version 1");
        Some(island)
    }

    /// Request, signature, answer; the authority that the person was told.
    #[track_caller]
    pub fn enrol(&self) -> String {
        let (request, answer) = (self.on_stick("request.kedge"), self.on_stick("answer.kedge"));
        self.host_ok(&["request", "--name", BOX, "-o", &request]);
        let signed = self.kedge(&["token", "sign", &request, "-e", "dev", "-t", LINE, "-o", &answer]);
        assert_eq!(signed.code, 0, "{signed:?}");
        let said = format!("{}{}", signed.stdout, signed.stderr);
        let authority =
            said.split_whitespace().find(|word| word.starts_with("sha256:")).expect("the authority is said");
        self.host_ok(&["import", &answer, "--authority", authority]);
        authority.to_owned()
    }

    /// A bundle for the box on the stick.
    #[track_caller]
    pub fn bundle(&self, name: &str, more: &[&str]) -> String {
        let file = self.on_stick(name);
        let made = self.kedge(&[&["bundle", "export", "-e", "dev", "--cluster", BOX, "-o", &file], more].concat());
        assert_eq!(made.code, 0, "{made:?}");
        file
    }

    /// The box tells, and a person brings it in.
    #[track_caller]
    pub fn tell(&self) -> Run {
        let file = self.on_stick("status.kedge");
        self.host_ok(&["export", "-o", &file]);
        let brought = self.kedge(&["status", "import", &file]);
        assert_eq!(brought.code, 0, "{brought:?}");
        brought
    }

    pub fn on_stick(&self, name: &str) -> String {
        self.stick.path().join(name).display().to_string()
    }

    pub fn kedge(&self, arguments: &[&str]) -> Run {
        self.plant.world.kedge.try_run(arguments)
    }

    pub fn host(&self, arguments: &[&str]) -> Run {
        let output = self.host.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Run { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    #[track_caller]
    pub fn host_ok(&self, arguments: &[&str]) -> String {
        let run = self.host(arguments);
        assert_eq!(run.code, 0, "kedge-agent {arguments:?}: {run:?}\n{}", self.host.log());
        run.stdout
    }

    /// The application's text on the box.
    pub fn text(&self) -> Option<String> {
        self.host.read(&format!("srv/{}/app.txt", assignment("dev"))).map(|text| text.trim_end().to_owned())
    }

    #[track_caller]
    pub fn await_text(&self, text: &str) {
        self.plant.await_so(&format!("the box runs {text}"), kedge_tests::world::plant::MOVED_WITHIN, |_| {
            self.text().as_deref() == Some(text) && self.is_converged()
        });
    }

    /// By its own word.
    pub fn is_converged(&self) -> bool {
        let status = self.host.status().unwrap_or_default();
        let all = status["assignments"].as_array().cloned().unwrap_or_default();
        !all.is_empty() && all.iter().all(|one| one["condition"] == "Converged" && one["underWay"].is_null())
    }

    /// Every file that the agent keeps and applied, with its length; but for what a running agent writes by itself.
    pub fn picture(&self) -> Vec<(PathBuf, u64)> {
        let (mut all, root) = (Vec::new(), self.host.root());
        let mut folders =
            vec![root.join("var/lib/kedge-agent/objects"), root.join("var/lib/kedge-agent/inbox"), root.join("srv")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.metadata().unwrap() {
                    known if known.is_dir() => folders.push(entry.path()),
                    known => all.push((entry.path(), known.len())),
                }
            }
        }
        all.sort();
        all
    }
}

/// A copy of a file with its bytes changed.
pub fn altered(from: &str, to: &Path, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = std::fs::read(from).unwrap();
    change(&mut bytes);
    std::fs::write(to, bytes).unwrap();
    to.display().to_string()
}
