//! Fetching, from a server of ours on this machine and from places that don't answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::ignore::Ignore;
use crate::testing::{TestRepo, folder};
use crate::tree::chain;
use crate::walk::Walk;

fn files(tree: &dyn Tree) -> Vec<String> {
    Walk::below(tree, "", Ignore::environment()).unwrap().files
}

/// Git's smart protocol over http on this machine, for one folder of repositories. Counts what it is asked.
struct Server {
    address: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn start(root: PathBuf) -> Server {
        Server::speaking(root, true)
    }

    /// An old server knows nothing of version 2 and gives away only the heads of branches.
    fn speaking(root: PathBuf, modern: bool) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, counted) = (root.clone(), Arc::clone(&counted));
                thread::spawn(move || {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let _ = answer(stream, &root, modern);
                });
            }
        });
        Server { address, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn answer(mut stream: TcpStream, root: &Path, modern: bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let (mut length, mut protocol) = (0usize, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "git-protocol" if modern => protocol = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let target = line.split(' ').nth(1).unwrap_or_default();
    let (path, advertise) = match target.split_once("/info/refs") {
        Some((path, _)) => (path, true),
        None => (target.strip_suffix("/git-upload-pack").unwrap_or(target), false),
    };
    let repo = root.join(path.trim_start_matches('/'));
    // A file in place of a repository says where it has moved to.
    if let Ok(to) = fs::read_to_string(&repo) {
        let tail = &target[path.len()..];
        return write!(
            stream,
            "HTTP/1.1 301 Moved\r\nlocation: {to}{tail}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
    }
    if !repo.exists() {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "upload-pack", "--stateless-rpc"]).env("GIT_PROTOCOL", protocol);
    if advertise {
        git.arg("--advertise-refs");
    }
    let mut git = git.arg(&repo).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    git.stdin.take().unwrap().write_all(&body)?;
    let output = git.wait_with_output()?.stdout;
    let kind = if advertise { "advertisement" } else { "result" };
    let prefix: &[u8] = if advertise { b"001e# service=git-upload-pack\n0000" } else { b"" };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-{kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        prefix.len() + output.len()
    )?;
    stream.write_all(prefix)?;
    stream.write_all(&output)
}

fn mirror_in(cache: &Path) -> PathBuf {
    let mut found = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    found.find(|path| path.extension().is_some_and(|ending| ending == "git")).unwrap()
}

fn has_git() -> bool {
    let found = Command::new("git").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("KEDGE-SKIP {}: there is no git program to serve with", thread::current().name().unwrap_or("fetch"));
    }
    found
}

#[test]
fn only_what_is_needed_is_fetched_and_a_known_commit_is_not_asked_for_again() {
    if !has_git() {
        return;
    }
    let root = TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("app.git"));
    let first = repo.commit("main", &[("one.yaml", "1")]);
    let second = repo.commit("main", &[("two.yaml", "2")]);
    let dev = repo.commit("dev", &[("dev.yaml", "d")]);
    let server = Server::start(root.path().to_owned());
    let url = format!("{}/app.git", server.address);
    let cache = root.path().join("cache");
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&said);
    let fetch = Fetch::new(&cache).on_progress(move |text| heard.lock().unwrap().push(text.to_owned()));

    let tree = fetch.open(&Request::new(&url, "main", Some(&first))).unwrap();
    assert_eq!(files(tree.as_ref()), ["one.yaml"]);
    assert_eq!(tree.source().repo, url);
    assert_eq!(tree.source().revision.as_deref(), Some(format!("main@sha1:{first}").as_str()));
    assert_eq!(*said.lock().unwrap(), [format!("fetching {url} at {first}")]);

    let before = server.requests();
    let tree = fetch.open(&Request::new(&url, "main", Some(&first))).unwrap();
    assert_eq!(files(tree.as_ref()), ["one.yaml"]);
    assert_eq!(server.requests(), before, "the mirror has it");

    let tree = fetch.open(&Request::new(&url, "dev", None)).unwrap();
    assert_eq!(files(tree.as_ref()), ["dev.yaml"]);
    assert_eq!(tree.source().revision.as_deref(), Some(format!("dev@sha1:{dev}").as_str()));
    let mirror = mirror_in(&cache);
    assert!(!GitRepository::open(&mirror).unwrap().has_commit(&second), "nobody asked for main");

    let tree = fetch.open(&Request::new(&url, "", None)).unwrap();
    assert_eq!(files(tree.as_ref()), ["two.yaml"]);

    // A branch that moves is followed, also backwards.
    let third = repo.commit("dev", &[("moved.yaml", "m")]);
    let tree = fetch.open(&Request::new(&url, "dev", None)).unwrap();
    assert_eq!(files(tree.as_ref()), ["moved.yaml"]);
    assert_eq!(tree.source().revision.as_deref(), Some(format!("dev@sha1:{third}").as_str()));
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 2, "one mirror with its lock, and no leftovers");
}

#[test]
fn a_damaged_mirror_is_fetched_again() {
    if !has_git() {
        return;
    }
    let root = TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("app.git"));
    let first = repo.commit("main", &[("one.yaml", "1")]);
    let server = Server::start(root.path().to_owned());
    let url = format!("{}/app.git", server.address);
    let cache = root.path().join("cache");
    let fetch = Fetch::new(&cache);
    let damage: [&dyn Fn(&Path); 3] = [
        &|mirror| fs::remove_file(mirror.join("HEAD")).unwrap(),
        &|mirror| fs::write(mirror.join("config"), "[core").unwrap(),
        &|mirror| {
            for pack in fs::read_dir(mirror.join("objects/pack")).unwrap().flatten() {
                if pack.path().extension().is_some_and(|ending| ending == "pack") {
                    let zeros = vec![0; usize::try_from(pack.metadata().unwrap().len()).unwrap()];
                    fs::remove_file(pack.path()).unwrap();
                    fs::write(pack.path(), zeros).unwrap();
                }
            }
        },
    ];
    for damage in damage {
        fetch.open(&Request::new(&url, "main", Some(&first))).unwrap();
        damage(&mirror_in(&cache));
        for commit in [None, Some(first.as_str())] {
            let tree = fetch.open(&Request::new(&url, "main", commit)).unwrap();
            assert_eq!(files(tree.as_ref()), ["one.yaml"]);
        }
    }
}

#[test]
fn many_at_once_share_one_mirror() {
    if !has_git() {
        return;
    }
    let root = TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("app.git"));
    let branches: Vec<String> = (0..4).map(|number| format!("b{number}")).collect();
    for branch in &branches {
        repo.commit(branch, &[(&format!("{branch}.yaml"), branch)]);
    }
    let server = Server::start(root.path().to_owned());
    let url = format!("{}/app.git", server.address);
    let cache = root.path().join("cache");
    thread::scope(|scope| {
        for branch in branches.iter().chain(&branches) {
            let (url, cache) = (&url, &cache);
            scope.spawn(move || {
                // Each of its own, as in two processes.
                let tree = Fetch::new(cache).open(&Request::new(url, branch, None)).unwrap();
                assert_eq!(files(tree.as_ref()), [format!("{branch}.yaml")]);
            });
        }
    });
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 2);
}

fn tagged(repo: &str, tag: &str) -> Request {
    Request { tag: Some(tag.to_owned()), ..Request::new(repo, "", None) }
}

#[test]
fn a_tag_is_fetched_or_read_where_it_is() {
    let root = TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("app.git"));
    let first = repo.commit("main", &[("one.yaml", "1")]);
    repo.tag("v1", &first);
    repo.commit("main", &[("two.yaml", "2")]);
    let fetch = Fetch::new(root.path().join("cache"));
    let local = root.path().join("app.git").display().to_string();
    assert_eq!(files(fetch.open(&tagged(&local, "v1")).unwrap().as_ref()), ["one.yaml"]);
    assert!(fetch.open(&tagged(&local, "main")).is_err(), "a branch is no tag");
    if has_git() {
        let server = Server::start(root.path().to_owned());
        let tree = fetch.open(&tagged(&format!("{}/app.git", server.address), "v1")).unwrap();
        assert_eq!(files(tree.as_ref()), ["one.yaml"]);
    }
}

#[test]
fn what_the_server_does_not_have_is_said() {
    if !has_git() {
        return;
    }
    let root = TempDir::new().unwrap();
    TestRepo::new(root.path().join("app.git")).commit("main", &[("one.yaml", "1")]);
    let server = Server::start(root.path().to_owned());
    let fetch = Fetch::new(root.path().join("cache"));
    let url = format!("{}/app.git", server.address);

    let error = fetch.open(&Request::new(&url, "nope", None)).unwrap_err();
    assert_eq!(error.to_string(), format!("{url} could not be fetched"));
    assert_eq!(error.hint().unwrap(), "there is no branch `nope` there");
    let error = fetch.open(&tagged(&url, "v9")).unwrap_err();
    assert_eq!(error.hint().unwrap(), "there is no tag `v9` there");

    let url = format!("{}/none.git", server.address);
    let error = fetch.open(&Request::new(&url, "main", None)).unwrap_err();
    assert!(chain(&error).contains("404"), "{}", chain(&error));
    assert!(error.hint().unwrap().starts_with("it doesn't exist or isn't public"), "{:?}", error.hint());
}

#[test]
fn a_repository_that_moved_is_followed_but_never_to_another_scheme() {
    if !has_git() {
        return;
    }
    let root = TempDir::new().unwrap();
    TestRepo::new(root.path().join("app.git")).commit("main", &[("one.yaml", "1")]);
    let server = Server::start(root.path().to_owned());
    let local = format!("file://{}/app.git", root.path().display());
    for (name, to) in [
        ("moved", format!("{}/app.git", server.address)),
        ("file", local),
        ("ssh", "ssh://localhost/app.git".to_owned()),
        ("loop", format!("{}/loop", server.address)),
    ] {
        fs::write(root.path().join(name), to).unwrap();
    }
    let fetch = Fetch::new(root.path().join("cache"));
    let open = |name: &str| fetch.open(&Request::new(&format!("{}/{name}", server.address), "main", None));
    assert_eq!(files(open("moved").unwrap().as_ref()), ["one.yaml"]);
    for name in ["file", "ssh", "loop"] {
        assert!(matches!(open(name).unwrap_err(), RepoError::Fetch { .. }), "{name}");
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error_with_a_hint() {
    let root = TempDir::new().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}/app.git");
    let error = Fetch::new(root.path().join("cache")).open(&Request::new(&url, "main", None)).unwrap_err();
    assert_eq!(error.to_string(), format!("{url} could not be fetched"));
    assert!(error.hint().unwrap().starts_with("check the address and the network"), "{:?}", error.hint());
}

#[test]
fn odd_commits_and_branches_never_reach_a_server() {
    let root = TempDir::new().unwrap();
    let fetch = Fetch::new(root.path().join("cache"));
    let open = |branch: &str, commit: &str| {
        fetch.open(&Request::new("https://localhost:1/x", branch, Some(commit))).unwrap_err().to_string()
    };
    assert_eq!(open("main", "abc123"), "`abc123` is not a full commit id, and others can't be fetched");
    assert_eq!(open("a:b", ""), "`a:b` can't be the name of a branch");
    assert_eq!(open("a..b", ""), "`a..b` can't be the name of a branch");
    assert_eq!(open("*", ""), "`*` can't be the name of a branch");
}

#[test]
fn repositories_on_this_machine_are_read_where_they_are() {
    let root = folder(&[("plain/f.yaml", "")]);
    let repo = TestRepo::new(root.path().join("repo"));
    let first = repo.commit("main", &[("one.yaml", "1")]);
    repo.commit("main", &[("two.yaml", "2")]);
    let cache = root.path().join("cache");
    let fetch = Fetch::new(&cache).relative_to(root.path().join("plain"));
    let path = root.path().join("repo").display().to_string();
    for address in [path.clone(), format!("file://{path}"), "../repo".to_owned()] {
        let tree = fetch.open(&Request::new(&address, "main", None)).unwrap();
        assert_eq!(files(tree.as_ref()), ["two.yaml"]);
        assert_eq!(tree.source().repo, address);
        let tree = fetch.open(&Request::new(&address, "main", Some(&first[..8]))).unwrap();
        assert_eq!(files(tree.as_ref()), ["one.yaml"]);
    }
    let plain = root.path().join("plain").display().to_string();
    assert_eq!(files(fetch.open(&Request::new(&plain, "main", None)).unwrap().as_ref()), ["f.yaml"]);
    let error = fetch.open(&Request::new(&plain, "main", Some("abc"))).unwrap_err();
    assert!(error.to_string().ends_with("is a plain folder, and commit abc is wanted of it"), "{error}");
    let error = fetch.open(&Request::new("/nowhere/x", "main", None)).unwrap_err();
    assert_eq!(error.to_string(), "there is no repository at `/nowhere/x`");
    let error = Fetch::new(&cache).open(&Request::new("../repo", "main", None)).unwrap_err();
    assert_eq!(error.to_string(), "`../repo` is a relative path, and it isn't known from where");
    assert!(!cache.exists(), "nothing was copied");
}

#[test]
fn an_old_server_gives_a_commit_behind_its_branch() {
    if !has_git() {
        return;
    }
    let root = TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("app.git"));
    let first = repo.commit("main", &[("one.yaml", "1")]);
    repo.commit("main", &[("two.yaml", "2")]);
    let server = Server::speaking(root.path().to_owned(), false);
    let url = format!("{}/app.git", server.address);
    let fetch = Fetch::new(root.path().join("cache"));
    let tree = fetch.open(&Request::new(&url, "main", None)).unwrap();
    assert_eq!(files(tree.as_ref()), ["two.yaml"]);
    let tree = fetch.open(&Request::new(&url, "main", Some(&first))).unwrap();
    assert_eq!(files(tree.as_ref()), ["one.yaml"]);
    let error = fetch.open(&Request::new(&url, "main", Some(&"1".repeat(40)))).unwrap_err();
    assert_eq!(error.hint().unwrap(), format!("is there a commit {} on that branch?", "1".repeat(40)));
}

#[test]
fn a_branch_that_became_a_folder_of_branches_is_followed() {
    if !has_git() {
        return;
    }
    let root = TempDir::new().unwrap();
    let repo = TestRepo::new(root.path().join("app.git"));
    repo.commit("env", &[("one.yaml", "1")]);
    let server = Server::start(root.path().to_owned());
    let url = format!("{}/app.git", server.address);
    let fetch = Fetch::new(root.path().join("cache"));
    fetch.open(&Request::new(&url, "env", None)).unwrap();
    fs::remove_file(repo.path.join("refs/heads/env")).unwrap();
    repo.commit("env/dev", &[("two.yaml", "2")]);
    let tree = fetch.open(&Request::new(&url, "env/dev", None)).unwrap();
    assert_eq!(files(tree.as_ref()), ["two.yaml"]);
}
