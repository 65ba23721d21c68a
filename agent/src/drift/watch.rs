//! Listens to places with inotify, in the runtime: no thread, no timer while nothing happens. Events that come together are told
//! together; when the kernel lost some, everything is told.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream as _;
use inotify::{EventMask, EventOwned, EventStream, Inotify, WatchDescriptor, WatchMask};
use tokio::time::Instant;

use super::{Places, Subject};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noticed {
    Some(BTreeSet<Subject>),
    /// Events were lost: anything may have changed.
    Everything,
}

#[derive(Debug)]
pub struct Watch {
    events: EventStream<Vec<u8>>,
    watched: HashMap<WatchDescriptor, Watched>,
    noticed: Noticed,
    /// When what was noticed is told.
    due: Option<Instant>,
}

/// Who wants to hear of one inode.
#[derive(Debug, Default)]
struct Watched {
    itself: BTreeSet<Subject>,
    entries: BTreeMap<OsString, BTreeSet<Subject>>,
}

/// An editor's save or `apt` makes many events; they are told as one.
const GATHER: Duration = Duration::from_millis(200);
/// The kernel of a small box allows 8192 for all programs; what is beyond is found by the full look.
const MAX_WATCHES: usize = 1024;
/// Room for the events of one read: each is 16 bytes and a name.
const BUFFER: usize = 4096;

impl Watch {
    /// Must be called in the runtime.
    pub fn new() -> io::Result<Watch> {
        let events = Inotify::init()?.into_event_stream(vec![0; BUFFER])?;
        Ok(Watch { events, watched: HashMap::new(), noticed: Noticed::Some(BTreeSet::new()), due: None })
    }

    /// From now on these places. What happened at the old ones until now is still told.
    pub fn follow(&mut self, places: &Places) -> io::Result<()> {
        let mut by_path: BTreeMap<PathBuf, Watched> = BTreeMap::new();
        for (path, subjects) in &places.things {
            by_path.entry(path.clone()).or_default().itself.extend(subjects.iter().cloned());
        }
        for ((folder, name), subjects) in &places.entries {
            let entries = &mut by_path.entry(folder.clone()).or_default().entries;
            entries.entry(name.clone()).or_default().extend(subjects.iter().cloned());
        }
        let asked = by_path.len();
        let mut fresh: HashMap<WatchDescriptor, Watched> = HashMap::new();
        let mut missing: BTreeMap<PathBuf, Watched> = BTreeMap::new();
        for (path, watched) in by_path {
            if fresh.len() < MAX_WATCHES && !self.add(&path, &watched, &mut fresh)? {
                let everybody = watched.everybody();
                if let Some((folder, name)) = nearest_above(&path) {
                    missing.entry(folder).or_default().entries.entry(name).or_default().extend(everybody);
                }
            }
        }
        for (path, watched) in missing {
            if fresh.len() < MAX_WATCHES {
                self.add(&path, &watched, &mut fresh)?;
            }
        }
        if asked > MAX_WATCHES {
            tracing::warn!(
                places = asked,
                watched = MAX_WATCHES,
                "too much to watch: the rest is found by the full look"
            );
        }
        for (old, watched) in std::mem::take(&mut self.watched) {
            if let Entry::Vacant(room) = fresh.entry(old) {
                // It may be gone already. What it still has to tell comes before the kernel's last word about it.
                _ = self.events.watches().remove(room.key().clone());
                room.insert(watched);
            }
        }
        self.watched = fresh;
        Ok(())
    }

    /// Waits until something happened, and a moment longer. May be dropped and called again.
    pub async fn next(&mut self) -> io::Result<Noticed> {
        loop {
            let Some(due) = self.due else {
                let event = self.event().await?;
                self.take_in(&event);
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(due) => {
                    self.due = None;
                    return Ok(std::mem::replace(&mut self.noticed, Noticed::Some(BTreeSet::new())));
                }
                event = self.event() => {
                    let event = event?;
                    self.take_in(&event);
                }
            }
        }
    }

    async fn event(&mut self) -> io::Result<EventOwned> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<EventOwned>> {
        let ended = || Err(io::Error::other("inotify ended"));
        Pin::new(&mut self.events).poll_next(cx).map(|event| event.unwrap_or_else(ended))
    }

    /// False: it isn't there.
    fn add(&self, path: &Path, watched: &Watched, fresh: &mut HashMap<WatchDescriptor, Watched>) -> io::Result<bool> {
        let mut mask = WatchMask::ATTRIB | WatchMask::DELETE_SELF | WatchMask::MOVE_SELF;
        if !watched.entries.is_empty() {
            mask |= WatchMask::CREATE | WatchMask::DELETE | WatchMask::MOVE;
        } else if !path.is_dir() {
            // Of a folder this would tell every write to its files.
            mask |= WatchMask::CLOSE_WRITE | WatchMask::DONT_FOLLOW;
        }
        let mut watches = self.events.watches();
        let descriptor = match watches.add(path, mask) {
            Ok(descriptor) => descriptor,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(false),
                    // The user's watches are used up, or a folder is closed to us: the full look remains.
                    io::ErrorKind::StorageFull | io::ErrorKind::PermissionDenied => Ok(true),
                    _ => Err(error),
                };
            }
        };
        if fresh.contains_key(&descriptor) {
            // Another path to the same inode: both want their events.
            watches.add(path, mask | WatchMask::MASK_ADD)?;
        }
        let known = fresh.entry(descriptor).or_default();
        known.itself.extend(watched.itself.iter().cloned());
        for (name, subjects) in &watched.entries {
            known.entries.entry(name.clone()).or_default().extend(subjects.iter().cloned());
        }
        Ok(true)
    }

    fn take_in(&mut self, event: &EventOwned) {
        let mut subjects = BTreeSet::new();
        if event.mask.contains(EventMask::Q_OVERFLOW) {
            self.noticed = Noticed::Everything;
        } else if event.mask.contains(EventMask::IGNORED) {
            self.watched.remove(&event.wd);
        } else if let Some(watched) = self.watched.get(&event.wd) {
            subjects = match &event.name {
                Some(name) => watched.entries.get(name).cloned().unwrap_or_default(),
                None if event.mask.intersects(EventMask::DELETE_SELF | EventMask::MOVE_SELF) => watched.everybody(),
                None => watched.itself.clone(),
            };
        }
        if !subjects.is_empty() || self.noticed == Noticed::Everything {
            if let Noticed::Some(noticed) = &mut self.noticed {
                noticed.extend(subjects);
            }
            self.due.get_or_insert_with(|| Instant::now() + GATHER);
        }
    }
}

impl Watched {
    fn everybody(&self) -> BTreeSet<Subject> {
        self.itself.iter().chain(self.entries.values().flatten()).cloned().collect()
    }
}

/// The nearest folder above a path that isn't there, and the name that must appear in it.
fn nearest_above(path: &Path) -> Option<(PathBuf, OsString)> {
    let (mut below, mut folder) = (path, path.parent()?);
    while !folder.is_dir() {
        (below, folder) = (folder, folder.parent()?);
    }
    Some((folder.to_owned(), below.file_name()?.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use kedge_model::wire::Digest;

    use super::*;
    use crate::goal::{ArtifactGoal, FileGoal, Goal, Owner, Part};
    use crate::paths::Paths;

    struct Host {
        folder: tempfile::TempDir,
        watch: Watch,
    }

    fn file(path: &str) -> FileGoal {
        let content = Digest::of(b"x");
        FileGoal { path: path.to_owned(), content, size: 1, owner: Owner::default(), mode: 0o644, part: Part::Workload }
    }

    fn goal(path: &str) -> Goal {
        Goal { files: vec![file(path)], ..Goal::default() }
    }

    impl Host {
        fn new(goals: &[(&str, Goal)]) -> Host {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("srv/app")).unwrap();
            fs::write(folder.path().join("srv/app/a.conf"), "a").unwrap();
            let mut host = Host { folder, watch: Watch::new().unwrap() };
            host.follow(goals);
            host
        }

        fn follow(&mut self, goals: &[(&str, Goal)]) {
            let paths = Paths::below(self.folder.path());
            let mut places = Places::doors(&paths);
            goals.iter().for_each(|(name, goal)| places.add_goal(name, goal, &paths));
            self.watch.follow(&places).unwrap();
        }

        fn at(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        async fn noticed(&mut self) -> Vec<String> {
            let next = tokio::time::timeout(Duration::from_secs(5), self.watch.next()).await;
            let Noticed::Some(subjects) = next.unwrap().unwrap() else { panic!("everything") };
            subjects.iter().map(|subject| format!("{subject:?}")).collect()
        }

        async fn is_quiet(&mut self) -> bool {
            tokio::time::timeout(Duration::from_millis(400), self.watch.next()).await.is_err()
        }
    }

    #[tokio::test]
    async fn edits_modes_deletions_and_replacements_of_a_file_are_noticed() {
        let goals = [("app", goal("/srv/app/a.conf"))];
        let mut host = Host::new(&goals);
        let path = host.at("srv/app/a.conf");
        fs::write(&path, "b").unwrap();
        assert_eq!(host.noticed().await, ["Assignment(\"app\")"]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(host.noticed().await, ["Assignment(\"app\")"]);
        fs::write(host.at("srv/app/new"), "c").unwrap();
        fs::rename(host.at("srv/app/new"), &path).unwrap();
        assert_eq!(host.noticed().await, ["Assignment(\"app\")"]);
        host.follow(&goals);
        fs::remove_file(&path).unwrap();
        assert_eq!(host.noticed().await, ["Assignment(\"app\")"]);
    }

    #[tokio::test]
    async fn neighbours_in_the_same_folder_wake_nobody() {
        let mut host = Host::new(&[("app", goal("/srv/app/a.conf"))]);
        fs::write(host.at("srv/app/app.log"), "line").unwrap();
        fs::remove_file(host.at("srv/app/app.log")).unwrap();
        assert!(host.is_quiet().await);
    }

    #[tokio::test]
    async fn a_moved_folder_and_a_file_that_appears_are_noticed() {
        let goals = [("app", goal("/srv/app/a.conf")), ("other", goal("/srv/other/deep/b.conf"))];
        let mut host = Host::new(&goals);
        fs::rename(host.at("srv/app"), host.at("srv/gone")).unwrap();
        assert_eq!(host.noticed().await, ["Assignment(\"app\")"]);
        host.follow(&goals);
        fs::create_dir(host.at("srv/other")).unwrap();
        assert_eq!(host.noticed().await, ["Assignment(\"other\")"]);
    }

    #[tokio::test]
    async fn a_switched_link_is_noticed_and_what_it_points_to_is_not() {
        let link = ArtifactGoal { path: "/srv/app/model".to_owned(), content: Digest::of(b"x"), size: 1 };
        let goals = [("app", Goal { artifacts: vec![link], ..Goal::default() })];
        let mut host = Host::new(&[]);
        symlink(host.at("srv/app/a.conf"), host.at("srv/app/model")).unwrap();
        host.follow(&goals);
        fs::write(host.at("srv/app/a.conf"), "other").unwrap();
        assert!(host.is_quiet().await);
        symlink("/nowhere", host.at("srv/app/next")).unwrap();
        fs::rename(host.at("srv/app/next"), host.at("srv/app/model")).unwrap();
        assert_eq!(host.noticed().await, ["Assignment(\"app\")"]);
    }

    #[tokio::test]
    async fn doors_are_heard_also_when_their_folders_come_later() {
        let mut host = Host::new(&[]);
        fs::create_dir_all(host.at("var/lib/kedge-agent")).unwrap();
        assert!(!host.noticed().await.is_empty());
        host.follow(&[]);
        fs::write(host.at("var/lib/kedge-agent/holds.new"), "").unwrap();
        fs::rename(host.at("var/lib/kedge-agent/holds.new"), host.at("var/lib/kedge-agent/holds.a")).unwrap();
        assert_eq!(host.noticed().await, ["Holds"]);
        fs::write(host.at("var/lib/kedge-agent/status.a"), "").unwrap();
        assert!(host.is_quiet().await);
    }

    #[tokio::test]
    async fn what_happened_before_other_places_were_followed_is_still_told() {
        let goals = [("app", goal("/srv/app/a.conf"))];
        let mut host = Host::new(&goals);
        fs::remove_file(host.at("srv/app/a.conf")).unwrap();
        host.follow(&goals);
        assert_eq!(host.noticed().await, ["Assignment(\"app\")"]);
    }
}
