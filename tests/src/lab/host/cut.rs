//! Power cuts at every write of chosen files: whoever makes one to write it waits (fanotify asks us first), the host is frozen,
//! and what its disk would hold after a power cut at this moment is kept. The host itself goes on as if nothing had been.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::fanotify::{EventFFlags, Fanotify, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response};

use super::DebianHost;
use crate::lab::image::{Delta, Image};

/// A disk as a power cut would have left it.
#[derive(Debug)]
pub struct Cut {
    /// Which write was next, counted from one.
    pub number: usize,
    pub file: String,
    delta: Delta,
}

/// Which new files are a moment to cut at, before anything is in them: those of a folder whose name ends so.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub folder: &'static str,
    pub ending: &'static str,
}

/// How often the end of the work is looked at.
const LOOK_AGAIN_MS: u16 = 20;

impl DebianHost {
    /// Does `work` and cuts the power, on copies, at each of these moments; of each file's moments only those that `wanted` says,
    /// by their number.
    pub fn cuts_during(
        &self,
        moments: &[Moment],
        wanted: &(dyn Fn(&str, usize) -> bool + Sync),
        work: impl FnOnce(&DebianHost),
    ) -> Vec<Cut> {
        let group = Fanotify::init(
            InitFlags::FAN_CLASS_CONTENT | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK,
            EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC,
        )
        .unwrap();
        for moment in moments {
            let folder = self.path(moment.folder);
            let mask = MaskFlags::FAN_OPEN_PERM | MaskFlags::FAN_EVENT_ON_CHILD;
            group
                .mark::<BorrowedFd<'_>, _>(MarkFlags::FAN_MARK_ADD, mask, nix::fcntl::AT_FDCWD, Some(&folder))
                .unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        }
        let host = self;
        let before = host.machine().while_frozen(|machine| machine.snapshot(host.image(), Image::copy));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            // It has the group: if it fails, whoever waits for its word goes on.
            let (before, done) = (&before, &done);
            let watcher = scope.spawn(move || watch(host, group, moments, wanted, before, done));
            work(host);
            done.store(true, Ordering::Release);
            watcher.join().unwrap()
        })
    }
}

fn watch(
    host: &DebianHost,
    group: Fanotify,
    moments: &[Moment],
    wanted: &(dyn Fn(&str, usize) -> bool + Sync),
    before: &Image,
    done: &AtomicBool,
) -> Vec<Cut> {
    let (mut cuts, mut counts) = (Vec::new(), BTreeMap::<PathBuf, usize>::new());
    loop {
        let mut waiting = [PollFd::new(group.as_fd(), PollFlags::POLLIN)];
        poll(&mut waiting, PollTimeout::from(LOOK_AGAIN_MS)).unwrap();
        let events = match group.read_events() {
            Ok(events) => events,
            Err(Errno::EAGAIN) if done.load(Ordering::Acquire) => return cuts,
            Err(Errno::EAGAIN) => continue,
            Err(why) => panic!("fanotify: {why}"),
        };
        for event in events {
            let Some(file) = event.fd() else { continue };
            let path = fs::read_link(path_of(file)).unwrap_or_default();
            let own = event.pid() == std::process::id().cast_signed();
            let name = path.file_name().unwrap_or(OsStr::new("")).as_bytes();
            let fits = |moment: &&Moment| {
                name.ends_with(moment.ending.as_bytes())
                    && path.parent().is_some_and(|parent| parent.ends_with(moment.folder.trim_start_matches('/')))
            };
            // One with content is only opened once more, to sync or to read it.
            let empty = fs::metadata(path_of(file)).is_ok_and(|meta| meta.len() == 0);
            if !own
                && empty
                && let Some(moment) = moments.iter().find(fits)
            {
                let count = counts.entry(PathBuf::from(moment.folder)).or_default();
                *count += 1;
                if wanted(moment.folder, *count) {
                    let delta = host
                        .machine()
                        .while_frozen(|machine| machine.snapshot(host.image(), |image| image.since(before)));
                    let file = format!("{}/{}", moment.folder, String::from_utf8_lossy(name));
                    cuts.push(Cut { number: *count, file, delta });
                }
            }
            group.write_response(FanotifyResponse::new(file, Response::FAN_ALLOW)).unwrap();
        }
    }
}

fn path_of(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

impl Cut {
    /// The disk that was left.
    pub fn image(&self) -> Image {
        self.delta.image()
    }

    /// How much of the disk had changed since the work began.
    pub fn bytes(&self) -> u64 {
        self.delta.bytes()
    }
}
