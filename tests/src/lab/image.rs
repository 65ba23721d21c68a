//! The disk of a Debian host: a file that holds an ext4 file system, copied for each test from one that is kept, and snapshots of
//! it as small deltas. The file has no name from the moment it is made, so nothing is left however a test ends.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;
use nix::unistd::{Whence, lseek};

use super::skip;

/// Which of the kept disks: `./tests/run debian` makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Debian 12 with systemd and little else.
    Plain,
    /// The same with Ansible.
    Ansible,
}

/// A disk of a test's own.
#[derive(Debug, Clone)]
pub struct Image(Arc<File>);

/// What differs between a disk and an earlier copy of it.
#[derive(Debug)]
pub struct Delta {
    before: Image,
    blocks: BTreeMap<u64, Vec<u8>>,
}

/// What is compared and kept at a time.
const BLOCK: u64 = 64 * 1024;

/// Memory is quicker than a disk that has to keep everything; it is used where there is plenty.
const MEMORY: &str = "/dev/shm";
const PLENTY: u64 = 6 << 30;

impl Flavour {
    /// The kept disk, or the test is marked as skipped.
    fn kept(self) -> Option<PathBuf> {
        let name = match self {
            Flavour::Plain => "plain.img",
            Flavour::Ansible => "ansible.img",
        };
        let found = env::var_os("KEDGE_DEBIAN").map(|home| Path::new(&home).join(name)).filter(|path| path.is_file());
        if found.is_none() {
            skip("KEDGE_DEBIAN names no folder with the disks of a Debian host (./tests/run debian makes them)");
        }
        found
    }
}

impl Image {
    /// A copy of a kept disk.
    pub fn new(flavour: Flavour) -> Option<Image> {
        Some(Image::copy_from(&flavour.kept()?))
    }

    /// The same content once more.
    pub fn copy(&self) -> Image {
        Image::copy_from(&self.path())
    }

    fn copy_from(source: &Path) -> Image {
        let folder = tempfile::Builder::new().prefix("kedge-disk-").tempdir_in(place()).unwrap();
        let path = folder.path().join("disk.img");
        let done = Command::new("cp").arg("--sparse=always").arg(source).arg(&path).output().unwrap();
        assert!(done.status.success(), "cp of a disk: {}", String::from_utf8_lossy(&done.stderr));
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        // The folder goes, and the name with it; the content stays while somebody has the file open.
        Image(Arc::new(file))
    }

    /// By which other programs open it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd()))
    }

    /// What differs from an earlier copy.
    pub fn since(&self, before: &Image) -> Delta {
        let mut blocks = BTreeMap::new();
        let (mut now, mut then) = (vec![0; BLOCK as usize], vec![0; BLOCK as usize]);
        let (mut touched, others) = (self.data(), before.data());
        touched.extend(others);
        for block in touched {
            read(&self.0, &mut now, block);
            read(&before.0, &mut then, block);
            if now != then {
                blocks.insert(block, now.clone());
            }
        }
        Delta { before: before.clone(), blocks }
    }

    /// Blocks that aren't holes.
    fn data(&self) -> BTreeSet<u64> {
        let (mut blocks, mut offset) = (BTreeSet::new(), 0);
        while let Some(begin) = seek(&self.0, offset, Whence::SeekData) {
            offset = seek(&self.0, begin, Whence::SeekHole).expect("a hole at the end");
            blocks.extend(begin / BLOCK..offset.div_ceil(BLOCK));
        }
        blocks
    }
}

impl Delta {
    /// The disk as it was.
    pub fn image(&self) -> Image {
        let image = self.before.copy();
        for (block, bytes) in &self.blocks {
            image.0.write_all_at(bytes, block * BLOCK).unwrap();
        }
        image
    }

    pub fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK
    }
}

fn place() -> PathBuf {
    let free = statvfs(MEMORY).map(|found| found.blocks_available() * found.fragment_size());
    if free.is_ok_and(|free| free > PLENTY) && fs::metadata(MEMORY).is_ok_and(|found| found.is_dir()) {
        PathBuf::from(MEMORY)
    } else {
        env::temp_dir()
    }
}

fn seek(file: &File, offset: u64, whence: Whence) -> Option<u64> {
    match lseek(file, offset.cast_signed(), whence) {
        Ok(found) => Some(found.cast_unsigned()),
        // Nothing more.
        Err(Errno::ENXIO) => None,
        Err(why) => panic!("seek in a disk: {why}"),
    }
}

/// A whole block; what is behind the file's end is zero.
fn read(file: &File, block: &mut [u8], number: u64) {
    let mut done = 0;
    while done < block.len() {
        match file.read_at(&mut block[done..], number * BLOCK + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => panic!("read of a disk: {why}"),
        }
    }
    block[done..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_gives_back_the_disk_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let file = File::create(&path).unwrap();
        file.set_len(10 * BLOCK).unwrap();
        file.write_all_at(b"first", 3 * BLOCK).unwrap();
        let before = Image::copy_from(&path);
        let now = before.copy();
        now.0.write_all_at(b"second", 7 * BLOCK + 5).unwrap();
        let delta = now.since(&before);
        now.0.write_all_at(b"later", 0).unwrap();
        assert_eq!(delta.bytes(), BLOCK);
        let found = delta.image();
        let read = |offset| {
            let mut text = [0; 6];
            found.0.read_exact_at(&mut text, offset).unwrap();
            text
        };
        assert_eq!((&read(0), &read(3 * BLOCK), &read(7 * BLOCK + 5)), (&[0; 6], b"first\0", b"second"));
    }
}
