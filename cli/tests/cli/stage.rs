//! A platform in a temporary folder, and the program that is run on it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The platform of `tests/fixtures/small`, copied so that it can be changed.
pub struct Stage {
    folder: TempDir,
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Stage {
    pub fn small() -> Stage {
        let stage = Stage::empty();
        copy(&fixture("small"), stage.path());
        stage
    }

    pub fn empty() -> Stage {
        Stage { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.file(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Replaces a text that is there exactly once.
    pub fn edit(&self, path: &str, old: &str, new: &str) {
        let text = self.read(path);
        assert_eq!(text.matches(old).count(), 1, "{path}: {old}");
        self.write(path, text.replace(old, new));
    }

    pub fn remove(&self, path: &str) {
        let path = self.file(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    /// `kedge ARGS` in the platform's folder.
    pub fn kedge<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Run {
        run(self.command().args(args))
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kedge"));
        command.current_dir(self.path()).stdin(Stdio::null());
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env("COLUMNS", "100");
        command.env("XDG_CACHE_HOME", self.file(".cache")).env("HOME", self.file(".home"));
        for name in
            ["KEDGE_HUB", "KEDGE_TOKEN", "XDG_CONFIG_HOME", "http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"]
        {
            command.env_remove(name);
        }
        command
    }

    /// Renders dev into `out`.
    pub fn render(&self) -> Run {
        self.kedge(["render", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml", "--out", "out"])
    }

    pub fn validate(&self) -> Run {
        self.kedge(["validate", "control-plane", "-e", "dev", "-s", "sources.yaml"])
    }

    /// Every file of the output, by path.
    pub fn output(&self) -> BTreeMap<String, String> {
        let files = if self.file("out").exists() { tree(&self.file("out")) } else { BTreeMap::new() };
        files.into_iter().map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap())).collect()
    }

    /// A file that isn't right, beside those that are.
    pub fn with_bad_file(bytes: impl AsRef<[u8]>) -> Stage {
        let stage = Stage::small();
        stage.write("control-plane/bad.yaml", bytes);
        stage
    }
}

impl Run {
    #[track_caller]
    pub fn exits(self, code: i32) -> Run {
        assert_eq!(self.code, code, "\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Each of these is on stderr.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Run {
        for text in texts {
            assert!(self.stderr.contains(text), "`{text}` isn't in stderr:\n{}", self.stderr);
        }
        self
    }

    /// Each of these is on stdout.
    #[track_caller]
    pub fn shows(self, texts: &[&str]) -> Run {
        for text in texts {
            assert!(self.stdout.contains(text), "`{text}` isn't in stdout:\n{}", self.stdout);
        }
        self
    }
}

pub fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub fn copy(from: &Path, to: &Path) {
    for (path, bytes) in tree(from) {
        let path = to.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Every file below a folder, by path with `/`.
pub fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

/// A skipped test says so, by name and with its reason.
pub fn skip(test: &str, reason: &str) {
    println!("KEDGE-SKIP {test}: {reason}");
}
