//! Real repositories and a real server for tests: the `git` program makes the ones, `git http-backend` is the other.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use kedge_model::decode::{self, Options};
use kedge_model::{Origin, Platform, Source};
use kedge_platform::Grant;

use super::access::Trust;
use super::address::Address;
use crate::config;
use crate::store::Store;

/// For a workspace with one registration that lists these sources.
pub fn granted(workspace: &str, repo: &str, sources: &[&str]) -> Trust {
    let sources: Vec<String> = sources.iter().map(|source| format!("'{source}'")).collect();
    let text = format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {{name: app}}\nspec: {{workload: {{repo: '{repo}', branch: main, path: .}}, workspace: {workspace}, sources: [{}]}}\n",
        sources.join(", ")
    );
    let source = Arc::new(Source { repo: "control-plane".to_owned(), revision: None });
    let origin = Origin { source, file: "app.yaml".into(), line: 0, column: 0 };
    let decoded = decode::objects(text.as_bytes(), &origin, &Options::default());
    assert!(decoded.broken.is_empty(), "{:?}", decoded.problems);
    let objects = decoded.objects.into_iter().map(|object| (object.id(), Arc::new(object))).collect();
    let platform = Platform { objects, ..Platform::default() };
    let grants = Grant::all(&platform, &|repo| Address::parse(repo).ok());
    Trust::Application(Arc::clone(&grants["app"]))
}

/// A bare repository with a work tree beside it.
#[derive(Debug)]
pub struct Remote {
    pub bare: PathBuf,
    work: PathBuf,
}

impl Remote {
    pub fn new(root: &Path, name: &str) -> Remote {
        let (bare, work) = (root.join(format!("{name}.git")), root.join(format!("{name}-work")));
        fs::create_dir_all(&bare).unwrap();
        git(&bare, &["init", "--quiet", "--bare", "--initial-branch=main", "."]);
        git(&bare, &["config", "http.receivepack", "true"]);
        fs::create_dir_all(&work).unwrap();
        git(&work, &["init", "--quiet", "--initial-branch=main", "."]);
        git(&work, &["remote", "add", "origin", bare.to_str().unwrap()]);
        Remote { bare, work }
    }

    pub fn path(&self) -> String {
        self.bare.display().to_string()
    }

    /// A commit on a branch that holds exactly these files, pushed.
    pub fn commit(&self, branch: &str, files: &[(&str, &str)]) -> String {
        if git(&self.work, &["branch", "--list", branch]).is_empty() {
            git(&self.work, &["checkout", "--quiet", "--orphan", branch]);
        } else {
            git(&self.work, &["checkout", "--quiet", "--force", branch]);
        }
        git(&self.work, &["rm", "-r", "-f", "--quiet", "--ignore-unmatch", "."]);
        for (path, text) in files {
            let path = self.work.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        git(&self.work, &["add", "--all", "--force", "."]);
        git(&self.work, &["commit", "--quiet", "--allow-empty", "-m", "change"]);
        git(&self.work, &["push", "--quiet", "--force", "origin", branch]);
        git(&self.work, &["rev-parse", "HEAD"])
    }

    /// Throws the branch's last commit away, here and there.
    pub fn rewind(&self, branch: &str) {
        git(&self.work, &["checkout", "--quiet", branch]);
        git(&self.work, &["reset", "--quiet", "--hard", "HEAD~1"]);
    }

    /// The branch begins anew with its next commit.
    pub fn rewind_all(&self, branch: &str) {
        git(&self.work, &["checkout", "--quiet", "--detach"]);
        git(&self.work, &["branch", "--quiet", "-D", branch]);
    }

    pub fn delete(&self, branch: &str) {
        git(&self.bare, &["update-ref", "-d", &format!("refs/heads/{branch}")]);
    }

    pub fn tag(&self, name: &str, commit: &str) {
        git(&self.bare, &["tag", "--force", "-a", "-m", "tag", name, commit]);
    }

    pub fn head(&self, branch: &str) -> String {
        git(&self.bare, &["rev-parse", &format!("refs/heads/{branch}")])
    }
}

pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "safe.directory=*", "-c", "user.name=t", "-c", "user.email=t@example.com"]);
    let output = command.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Git over http for one folder of repositories.
#[derive(Clone, Debug)]
pub struct Server {
    pub address: String,
    requests: Arc<AtomicUsize>,
    /// Requests whose path begins so are answered 401 without this header.
    pub password: Arc<Mutex<Option<String>>>,
    /// Requests are taken and never answered.
    pub hangs: Arc<AtomicBool>,
    pub down: Arc<AtomicBool>,
    /// From a path to where it leads.
    pub moved: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    pub fn start(root: &Path) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            address: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
            password: Arc::default(),
            hangs: Arc::default(),
            down: Arc::default(),
            moved: Arc::default(),
        };
        let (shared, root) = (server.clone(), root.to_owned());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, root) = (shared.clone(), root.clone());
                thread::spawn(move || {
                    let _ = shared.answer(stream, &root);
                });
            }
        });
        server
    }

    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}.git", self.address)
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn answer(&self, mut stream: TcpStream, root: &Path) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            match header.trim().split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None => break,
            }
        }
        let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let mut body = Vec::new();
        if let Some(length) = header("content-length") {
            body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body)?;
        } else if header("transfer-encoding").is_some() {
            loop {
                let mut size = String::new();
                reader.read_line(&mut size)?;
                let size = usize::from_str_radix(size.trim(), 16).unwrap();
                let mut chunk = vec![0; size + 2];
                reader.read_exact(&mut chunk)?;
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
            }
        }
        while self.hangs.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(20));
        }
        let mut say = |status: &str, more: &str| {
            write!(stream, "HTTP/1.1 {status}\r\n{more}content-length: 0\r\nconnection: close\r\n\r\n")
        };
        if self.down.load(Ordering::SeqCst) {
            return say("503 Away", "");
        }
        if let Some(password) = &*self.password.lock().unwrap()
            && header("authorization").as_ref() != Some(password)
        {
            return say("401 Who", "www-authenticate: Basic realm=\"git\"\r\n");
        }
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        for (from, to) in self.moved.lock().unwrap().iter() {
            if let Some(tail) = target.strip_prefix(from.as_str()) {
                return say("301 Moved", &format!("location: {to}{tail}\r\n"));
            }
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut backend = Command::new("git");
        backend
            .args(["-c", "safe.directory=*", "http-backend"])
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "safe.directory")
            .env("GIT_CONFIG_VALUE_0", "*")
            .env("GIT_PROJECT_ROOT", root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REQUEST_METHOD", method)
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REMOTE_ADDR", "127.0.0.1")
            .env("CONTENT_LENGTH", body.len().to_string())
            .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
            .env("HTTP_CONTENT_ENCODING", header("content-encoding").unwrap_or_default())
            .env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut backend = backend.spawn()?;
        let mut input = backend.stdin.take().unwrap();
        let feeder = thread::spawn(move || input.write_all(&body));
        let output = backend.wait_with_output()?.stdout;
        let _ = feeder.join();
        let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(0);
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
        let kept: String =
            head.lines().filter(|line| !line.starts_with("Status:")).map(|line| format!("{line}\r\n")).collect();
        let content = output.get(end + 4..).unwrap_or_default();
        write!(stream, "HTTP/1.1 {status}\r\n{kept}content-length: {}\r\nconnection: close\r\n\r\n", content.len())?;
        stream.write_all(content)
    }
}

/// The settings of a hub whose control plane is there.
pub fn settings(control_plane: &str) -> config::Git {
    config::Git {
        control_plane: Some(control_plane.to_owned()),
        branch: "main".to_owned(),
        poll: Duration::from_secs(3600),
        poll_of: Default::default(),
        hosts: Vec::new(),
        credentials: Vec::new(),
        forges: Vec::new(),
        webhook_secret_file: None,
        author_name: "Kedge".to_owned(),
        author_email: "kedge@example.com".to_owned(),
    }
}

pub async fn store(folder: &Path) -> Store {
    Store::open(&format!("sqlite:{}", folder.join("hub.db").display())).await.unwrap()
}
