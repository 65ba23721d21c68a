//! In a temporary folder as `--root`, without privileges.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use super::*;
use crate::clock::SystemClock;
use crate::goal::Owner;

struct World {
    folder: tempfile::TempDir,
    objects: Objects,
    files: Files,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let objects = Objects::open(&paths.objects()).unwrap();
        World { files: Files::new(paths, objects.clone()), folder, objects }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn run(&self, step: &Step) -> Result<(), Failure> {
        self.files.execute(step, &mut Tracer::new(&SystemClock))
    }

    fn put(&self, path: &str, text: &str, mode: u32) -> Result<(), Failure> {
        let content = self.objects.put(text.as_bytes()).unwrap();
        self.run(&Step::PutFile { path: path.to_owned(), content, owner: Owner::default(), mode })
    }

    fn state(&self, path: &str) -> PathState {
        self.files.look(&[path.to_owned()].into()).unwrap().remove(path).unwrap()
    }
}

fn file(text: &str, mode: u32) -> PathState {
    let (content, size) = (Digest::of(text.as_bytes()), text.len() as u64);
    PathState::File { content, size, owner: Owner::default(), mode }
}

#[test]
fn a_file_is_put_with_its_mode_and_put_again() {
    let world = World::new();
    for text in ["one", "two", "two"] {
        world.put("/srv/app/conf", text, 0o640).unwrap();
        assert_eq!(world.state("/srv/app/conf"), file(text, 0o640));
    }
    world.put("/srv/app/conf", "two", 0o755).unwrap();
    assert_eq!(world.state("/srv/app/conf"), file("two", 0o755));
    assert_eq!(fs::read_dir(world.place("srv/app")).unwrap().count(), 1);
}

#[test]
fn an_edited_file_is_seen_at_once_and_again() {
    let world = World::new();
    world.put("/a", "one", 0o644).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::options().write(true).open(world.place("a")).unwrap().set_modified(old).unwrap();
    assert_eq!(world.state("/a"), file("one", 0o644));
    fs::write(world.place("a"), "two").unwrap();
    fs::File::options().write(true).open(world.place("a")).unwrap().set_modified(old).unwrap();
    assert_eq!(world.state("/a"), file("two", 0o644));
}

#[test]
fn what_a_cut_left_is_cleared_by_the_same_step() {
    let world = World::new();
    world.put("/srv/x", "one", 0o644).unwrap();
    let name = format!(".kedge-new-{}", &Digest::of(b"x").hex()[..16]);
    let leftover = world.place(&format!("srv/{name}"));
    fs::write(&leftover, "half").unwrap();
    world.put("/srv/x", "two", 0o644).unwrap();
    assert!(!leftover.exists());
    fs::write(&leftover, "half").unwrap();
    world.run(&Step::RemovePath { path: "/srv/x".to_owned() }).unwrap();
    assert_eq!(fs::read_dir(world.place("srv")).unwrap().count(), 0);
}

#[test]
fn a_symlink_on_the_way_is_never_followed() {
    let world = World::new();
    fs::create_dir_all(world.place("srv/app")).unwrap();
    fs::create_dir_all(world.place("etc")).unwrap();
    symlink(world.place("etc"), world.place("srv/app/conf")).unwrap();
    let path = "/srv/app/conf/passwd".to_owned();
    let content = world.objects.put(b"evil").unwrap();
    let owner = Owner::default();
    for step in [
        Step::PutFile { path: path.clone(), content, owner: owner.clone(), mode: 0o644 },
        Step::PutLink { path: path.clone(), target: "/etc/shadow".to_owned(), owner: owner.clone() },
        Step::MakeFolder { path: path.clone(), owner, mode: 0o755 },
        Step::RemovePath { path: path.clone() },
        Step::RemoveFolder { path: path.clone() },
    ] {
        let failure = world.run(&step).unwrap_err();
        assert_eq!(failure.reason, "NotAllowed", "{step:?}");
        assert!(failure.message.contains("/srv/app/conf` on the way is a symlink"), "{}", failure.message);
    }
    assert!(world.files.keep(&path).is_err());
    assert_eq!(world.state(&path), PathState::Other);
    assert_eq!(fs::read_dir(world.place("etc")).unwrap().count(), 0);
}

#[test]
fn a_symlink_in_the_place_of_a_file_is_replaced_and_not_written_through() {
    let world = World::new();
    fs::create_dir_all(world.place("srv")).unwrap();
    fs::write(world.place("victim"), "safe").unwrap();
    symlink(world.place("victim"), world.place("srv/a")).unwrap();
    assert!(matches!(world.state("/srv/a"), PathState::Link { .. }));
    assert!(world.files.keep("/srv/a").is_err());
    world.put("/srv/a", "ours", 0o644).unwrap();
    assert_eq!(fs::read_to_string(world.place("victim")).unwrap(), "safe");
    assert_eq!(world.state("/srv/a"), file("ours", 0o644));
}

#[test]
fn a_symlink_planted_at_the_name_of_the_new_file_is_not_written_through() {
    let world = World::new();
    fs::create_dir_all(world.place("srv")).unwrap();
    fs::write(world.place("victim"), "safe").unwrap();
    let name = format!("srv/.kedge-new-{}", &Digest::of(b"a").hex()[..16]);
    symlink(world.place("victim"), world.place(&name)).unwrap();
    world.put("/srv/a", "ours", 0o644).unwrap();
    assert_eq!(fs::read_to_string(world.place("victim")).unwrap(), "safe");
}

#[test]
fn folders_have_their_mode_and_go_only_when_empty() {
    let world = World::new();
    let make = Step::MakeFolder { path: "/srv/deep/app".to_owned(), owner: Owner::default(), mode: 0o2750 };
    world.run(&make).unwrap();
    world.run(&make).unwrap();
    assert_eq!(world.state("/srv/deep/app"), PathState::Folder { owner: Owner::default(), mode: 0o2750 });
    assert_eq!(fs::metadata(world.place("srv/deep")).unwrap().permissions().mode() & 0o7777, 0o755);
    let remove = Step::RemoveFolder { path: "/srv/deep/app".to_owned() };
    world.put("/srv/deep/app/x", "data", 0o644).unwrap();
    world.run(&remove).unwrap();
    assert!(world.place("srv/deep/app/x").exists());
    world.run(&Step::RemovePath { path: "/srv/deep/app/x".to_owned() }).unwrap();
    world.run(&remove).unwrap();
    world.run(&remove).unwrap();
    assert_eq!(world.state("/srv/deep/app"), PathState::Absent);
    assert_eq!(world.state("/srv/deep/app/x"), PathState::Absent);
}

#[test]
fn an_artifact_is_switched_by_its_link_and_readable() {
    let world = World::new();
    for text in ["model 1", "model 2", "model 2"] {
        let digest = world.objects.put(text.as_bytes()).unwrap();
        let target = world.objects.path(&digest);
        let target = target.to_str().unwrap().to_owned();
        let step = Step::PutLink { path: "/srv/app/model".to_owned(), target: target.clone(), owner: Owner::default() };
        world.run(&step).unwrap();
        assert_eq!(fs::read_to_string(world.place("srv/app/model")).unwrap(), text);
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(world.state("/srv/app/model"), PathState::Link { target, owner: Owner::default() });
    }
    assert!(world.objects.has(&Digest::of(b"model 1")));
}

#[test]
fn an_artifact_of_two_gigabytes_is_neither_read_nor_copied() {
    let world = World::new();
    // Sparse, and taken over under a name that nobody checks: reading it would take seconds and give another digest.
    let download = world.place("download");
    fs::File::create(&download).unwrap().set_len(2 << 30).unwrap();
    let digest = Digest::of(b"two gigabytes");
    world.objects.adopt(&download, &digest).unwrap();
    let target = world.objects.path(&digest).to_str().unwrap().to_owned();
    let step = Step::PutLink { path: "/srv/model".to_owned(), target: target.clone(), owner: Owner::default() };
    world.run(&step).unwrap();
    assert_eq!(world.state("/srv/model"), PathState::Link { target, owner: Owner::default() });
    assert_eq!(fs::metadata(world.place("srv/model")).unwrap().len(), 2 << 30);
    assert_eq!(world.files.usage(&["/srv".to_owned()]) >> 20, 0);
}

#[test]
fn what_is_no_file_is_left_alone() {
    let world = World::new();
    fs::create_dir_all(world.place("srv/folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.place("srv/socket")).unwrap();
    for name in ["/srv/folder", "/srv/socket"] {
        assert_eq!(world.put(name, "x", 0o644).unwrap_err().reason, "ConflictingFile");
        assert_eq!(world.run(&Step::RemovePath { path: name.to_owned() }).unwrap_err().reason, "ConflictingFile");
    }
    assert_eq!(world.state("/srv/socket"), PathState::Other);
    world.put("/srv/file", "x", 0o644).unwrap();
    let make = Step::MakeFolder { path: "/srv/file".to_owned(), owner: Owner::default(), mode: 0o755 };
    assert_eq!(world.run(&make).unwrap_err().reason, "ConflictingFile");
    assert_eq!(world.state("/srv/file/below"), PathState::Absent);
}

#[test]
fn a_damaged_or_missing_object_leaves_the_file_as_it_was() {
    let world = World::new();
    world.put("/srv/a", "old", 0o644).unwrap();
    let content = world.objects.put(b"new").unwrap();
    fs::write(world.objects.path(&content), "rotten").unwrap();
    let step = Step::PutFile { path: "/srv/a".to_owned(), content, owner: Owner::default(), mode: 0o644 };
    for word in ["damaged", "can't be read"] {
        let failure = world.run(&step).unwrap_err();
        assert!(failure.message.contains(word), "{}", failure.message);
        assert_eq!(world.state("/srv/a"), file("old", 0o644));
    }
    assert_eq!(fs::read_dir(world.place("srv")).unwrap().count(), 1);
}

#[test]
fn a_kept_file_is_an_object() {
    let world = World::new();
    world.put("/srv/a", "content", 0o600).unwrap();
    let digest = world.files.keep("/srv/a").unwrap();
    assert_eq!(world.objects.read_small(&digest, 100).unwrap(), b"content");
    assert_eq!(world.files.usage(&["/srv".to_owned()]), 7);
}

#[test]
fn a_full_disk_is_a_cause_that_passes() {
    let failure = failed("written", "/srv/a", &io::Error::from_raw_os_error(Errno::ENOSPC as i32));
    assert!(failure.passes && failure.reason == "DiskFull", "{failure:?}");
}

#[test]
fn each_step_leaves_a_line_with_what_was_done() {
    let world = World::new();
    let mut trace = Tracer::new(&SystemClock);
    let step = Step::MakeFolder { path: "/srv".to_owned(), owner: Owner::default(), mode: 0o755 };
    world.files.execute(&step, &mut trace).unwrap();
    world.files.execute(&step, &mut trace).unwrap();
    let lines = trace.take();
    assert_eq!(lines.iter().map(|line| line.what.as_str()).collect::<Vec<_>>(), ["make folder /srv"; 2]);
    assert_eq!(lines[1].output, "already so");
}

/// What only root can try: owners, and whose symlinks are followed. The folder is on the host itself, below a temporary one.
#[test]
fn as_root_owners_are_set_and_only_roots_symlinks_are_followed() {
    use nix::unistd::{Gid, Uid, chown, geteuid};
    if !geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let objects = Objects::open(&folder.path().join("objects")).unwrap();
    let files = Files::new(Paths::host(), objects.clone());
    let run = |step: &Step| files.execute(step, &mut Tracer::new(&SystemClock));
    let base = fs::canonicalize(folder.path()).unwrap().to_str().unwrap().to_owned();
    let tenant = owner::names(65_534, 65_534);
    let look = |path: &str| files.look(&[path.to_owned()].into()).unwrap().remove(path).unwrap();

    let home = format!("{base}/srv/app");
    run(&Step::MakeFolder { path: home.clone(), owner: tenant.clone(), mode: 0o750 }).unwrap();
    assert_eq!(look(&home), PathState::Folder { owner: tenant.clone(), mode: 0o750 });
    assert_eq!(look(&format!("{base}/srv")), PathState::Folder { owner: Owner::root(), mode: 0o755 });
    let content = objects.put(b"x").unwrap();
    let put = |path: String| Step::PutFile { path, content, owner: tenant.clone(), mode: 0o600 };
    let path = format!("{home}/x");
    run(&put(path.clone())).unwrap();
    assert_eq!(look(&path), PathState::File { content, size: 1, owner: tenant.clone(), mode: 0o600 });
    let link = Step::PutLink { path: format!("{home}/link"), target: "x".to_owned(), owner: tenant.clone() };
    run(&link).unwrap();
    assert_eq!(look(&format!("{home}/link")), PathState::Link { target: "x".to_owned(), owner: tenant.clone() });

    // An administrator moved `srv`; the tenant can't have.
    symlink("srv", format!("{base}/moved")).unwrap();
    run(&put(format!("{base}/moved/app/y"))).unwrap();
    assert!(matches!(look(&format!("{home}/y")), PathState::File { .. }));
    symlink(format!("{base}/srv"), format!("{base}/absolute")).unwrap();
    run(&put(format!("{base}/absolute/app/z"))).unwrap();
    symlink("loop", format!("{base}/loop")).unwrap();
    assert_eq!(run(&put(format!("{base}/loop/z"))).unwrap_err().reason, "NotAllowed");
    // In the tenant's folder even a symlink of root's isn't followed: the tenant may have moved it there.
    fs::create_dir(format!("{base}/secret")).unwrap();
    symlink(format!("{base}/secret"), format!("{home}/evil")).unwrap();
    assert_eq!(run(&put(format!("{home}/evil/z"))).unwrap_err().reason, "NotAllowed");
    let (uid, gid) = (Uid::from_raw(65_534), Gid::from_raw(65_534));
    nix::unistd::fchownat(
        nix::fcntl::AT_FDCWD,
        format!("{base}/moved").as_str(),
        Some(uid),
        Some(gid),
        nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW,
    )
    .unwrap();
    assert_eq!(run(&put(format!("{base}/moved/app/y"))).unwrap_err().reason, "NotAllowed");
    chown(folder.path(), Some(uid), None).unwrap();
    assert_eq!(run(&put(format!("{base}/absolute/app/z"))).unwrap_err().reason, "NotAllowed");
    assert_eq!(fs::read_dir(format!("{base}/secret")).unwrap().count(), 0);
}
