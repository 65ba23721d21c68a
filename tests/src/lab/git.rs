//! A person's working clone, by the real `git` program: what application and platform teams do in the tests. The machine's own
//! Git settings play no part.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Who commits, unless a test says otherwise.
const AUTHOR: (&str, &str) = ("Ada Tester", "ada@example.com");

/// A working copy in a temporary folder, with the remote `origin` if it was cloned.
#[derive(Debug)]
pub struct Checkout {
    folder: TempDir,
    author: (String, String),
}

/// One commit of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub id: String,
    pub author: String,
    pub subject: String,
    pub body: String,
}

/// The `git` program in `folder`, deaf to the settings of the machine and of whoever runs the tests.
pub fn command(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder);
    for (name, value) in ENVIRONMENT {
        git.env(name, value);
    }
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_ASKPASS", "SSH_ASKPASS"] {
        git.env_remove(name);
    }
    git
}

const ENVIRONMENT: [(&str, &str); 4] =
    [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")];

impl Checkout {
    /// An empty repository whose first branch will be `main`, without a remote.
    pub fn init() -> Checkout {
        let checkout = Checkout::in_new_folder();
        checkout.git(["init", "--quiet", "--initial-branch=main"]);
        checkout
    }

    /// An empty repository that will be pushed to `url`.
    pub fn init_for(url: &str) -> Checkout {
        let checkout = Checkout::init();
        checkout.git(["remote", "add", "origin", url]);
        checkout
    }

    pub fn clone(url: &str) -> Checkout {
        let checkout = Checkout::in_new_folder();
        checkout.git(["clone", "--quiet", url, "."]);
        checkout
    }

    /// A clone, or what git said against it.
    pub fn try_clone(url: &str) -> Result<Checkout, String> {
        let checkout = Checkout::in_new_folder();
        checkout.try_git(["clone", "--quiet", url, "."]).map(|_| checkout)
    }

    fn in_new_folder() -> Checkout {
        let folder = tempfile::Builder::new().prefix("kedge-checkout-").tempdir().unwrap();
        Checkout { folder, author: (AUTHOR.0.to_owned(), AUTHOR.1.to_owned()) }
    }

    /// Lets somebody else make the commits from here on.
    pub fn commit_as(&mut self, name: &str, email: &str) {
        self.author = (name.to_owned(), email.to_owned());
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("inside the checkout")).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Copies what is in `from` into the checkout.
    pub fn copy_in(&self, from: &Path) {
        let copied = Command::new("cp").arg("-R").arg(from.join(".")).arg(self.folder()).status().unwrap();
        assert!(copied.success(), "cp of {}", from.display());
    }

    pub fn remove(&self, file: &str) {
        self.git(["rm", "--quiet", "-r", "--", file]);
    }

    /// Commits all that is in the folder, and returns the commit.
    pub fn commit(&self, message: &str) -> String {
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "--allow-empty", "-m", message]);
        self.head("HEAD")
    }

    /// Writes one file, commits it and pushes the branch that is checked out.
    pub fn change(&self, file: &str, text: &str) -> String {
        self.write(file, text);
        let commit = self.commit(&format!("Change {file}"));
        self.push(&self.branch());
        commit
    }

    pub fn push(&self, branch: &str) {
        self.try_push(branch).unwrap_or_else(|e| panic!("git push of {branch}: {e}"));
    }

    /// Pushes, or says what git said against it.
    pub fn try_push(&self, branch: &str) -> Result<(), String> {
        self.try_git(["push", "--quiet", "origin", &format!("{branch}:refs/heads/{branch}")]).map(drop)
    }

    pub fn force_push(&self, branch: &str) {
        self.git(["push", "--quiet", "--force", "origin", &format!("{branch}:refs/heads/{branch}")]);
    }

    pub fn delete_remote_branch(&self, branch: &str) {
        self.git(["push", "--quiet", "origin", &format!(":refs/heads/{branch}")]);
    }

    /// The branch that is checked out.
    pub fn branch(&self) -> String {
        self.git(["symbolic-ref", "--short", "HEAD"]).trim().to_owned()
    }

    /// Switches to a new branch that begins here.
    pub fn create_branch(&self, branch: &str) {
        self.git(["checkout", "--quiet", "-b", branch]);
    }

    /// Switches to a new branch without history or files.
    pub fn create_orphan(&self, branch: &str) {
        self.git(["checkout", "--quiet", "--orphan", branch]);
        self.git(["rm", "--quiet", "-r", "-f", "--ignore-unmatch", "."]);
    }

    /// Switches to a branch that exists here or on the remote.
    pub fn switch(&self, branch: &str) {
        self.git(["checkout", "--quiet", branch]);
    }

    /// Takes what the remote has, and forgets its branches that are gone.
    pub fn fetch(&self) {
        self.git(["fetch", "--quiet", "--prune", "origin"]);
    }

    /// Takes what the remote has and moves the branch that is checked out there, whatever it was.
    pub fn follow(&self) {
        self.fetch();
        self.git(["reset", "--quiet", "--hard", &format!("origin/{}", self.branch())]);
    }

    /// A file of the remote's branch, as it is there now; none if the branch or the file is missing.
    pub fn read_remote(&self, branch: &str, file: &str) -> Option<String> {
        self.fetch();
        self.try_git(["show", &format!("origin/{branch}:{file}")]).ok()
    }

    /// All files of a revision, sorted.
    pub fn files(&self, revision: &str) -> Vec<String> {
        self.git(["ls-tree", "-r", "--name-only", revision]).lines().map(str::to_owned).collect()
    }

    /// The commit of a revision.
    pub fn head(&self, revision: &str) -> String {
        self.git(["rev-parse", &format!("{revision}^{{commit}}")]).trim().to_owned()
    }

    /// The commits of a revision, newest first.
    pub fn log(&self, revision: &str) -> Vec<Commit> {
        let text = self.git(["log", "--format=%H%x1f%an%x1f%s%x1f%b%x1e", revision]);
        let commit = |entry: &str| {
            let mut fields = entry.trim_start().split('\u{1f}').map(str::to_owned);
            Some(Commit {
                id: fields.next().filter(|id| !id.is_empty())?,
                author: fields.next()?,
                subject: fields.next()?,
                body: fields.next()?.trim_end().to_owned(),
            })
        };
        text.split('\u{1e}').filter_map(commit).collect()
    }

    /// Any other command of git; its output.
    pub fn git<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        self.try_git(arguments).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Any other command of git; its output, or what it said when it failed.
    pub fn try_git<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<String, String> {
        let (name, email) = &self.author;
        let mut git = command(self.folder());
        git.args(arguments).env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", email);
        git.env("GIT_COMMITTER_NAME", name).env("GIT_COMMITTER_EMAIL", email);
        finish(&mut git)
    }
}

/// Runs git to its end.
pub fn finish(git: &mut Command) -> Result<String, String> {
    let Output { status, stdout, stderr } = git.output().unwrap_or_else(|e| panic!("git doesn't start: {e}"));
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let arguments: Vec<_> = git.get_args().map(OsStr::to_string_lossy).collect();
    Err(format!(
        "git {}: {}{}",
        arguments.join(" "),
        String::from_utf8_lossy(&stderr),
        String::from_utf8_lossy(&stdout)
    ))
}
