//! What this hub's machine says at a scrape: room on its disks, and when its certificates end. Read in a thread of its own,
//! because a disk may take its time.

use std::path::{Path, PathBuf};

use kedge_model::wire::Timestamp;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::series::{Measure, Series};
use crate::keys::Keys;

/// Where to look.
#[derive(Clone, Debug)]
pub struct Own {
    pub data: PathBuf,
    pub packages: PathBuf,
    pub keys: Keys,
    /// The chain of the API's listener, if it does TLS itself.
    pub api_certificate: Option<PathBuf>,
}

/// What was found; what can't be read isn't there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub disks: Vec<(&'static str, Room)>,
    /// The moment at which each ends.
    pub certificates: Vec<(&'static str, Timestamp)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub free: i64,
    pub size: i64,
}

impl Own {
    pub fn look(&self) -> Found {
        let disks = [("data", &self.data), ("packages", &self.packages)];
        let mut certificates = vec![("authority", self.keys.authority().not_after())];
        let api = self.api_certificate.as_deref().and_then(ends);
        certificates.extend(api.map(|ends| ("api", ends)));
        Found { disks: disks.iter().filter_map(|(name, path)| Some((*name, room(path)?))).collect(), certificates }
    }
}

impl Found {
    pub fn series(&self, now: Timestamp) -> Vec<Series> {
        let mut free = Series::new("disk_free", Measure::Bytes, "Free space on the disk of a folder");
        let mut size = Series::new("disk_size", Measure::Bytes, "Size of the disk of a folder");
        for (folder, room) in &self.disks {
            free = free.with(&[("folder", folder)], room.free);
            size = size.with(&[("folder", folder)], room.size);
        }
        let mut left = Series::new(
            "certificate_left",
            Measure::Seconds,
            "Remaining lifetime of a certificate: the agents' authority, and the API's own; negative: it expired",
        );
        for (certificate, ends) in &self.certificates {
            left = left.with(&[("certificate", certificate)], (ends.0 - now.0) / 1000);
        }
        vec![free, size, left]
    }
}

fn room(folder: &Path) -> Option<Room> {
    let found = nix::sys::statvfs::statvfs(folder).ok()?;
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(found.fragment_size())).unwrap_or(i64::MAX);
    Some(Room { free: bytes(found.blocks_available()), size: bytes(found.blocks()) })
}

/// When the first certificate of a PEM file ends.
fn ends(file: &Path) -> Option<Timestamp> {
    let first = CertificateDer::pem_file_iter(file).ok()?.next()?.ok()?;
    let (_, certificate) = X509Certificate::from_der(&first).ok()?;
    Some(Timestamp(certificate.validity().not_after.timestamp().saturating_mul(1000)))
}
