//! The files of the keys folder: `signing/<key id>.pk8`, `authority/<id>.pem` and `.key`, and `authority/<id>.by-<older
//! id>.pem`, in which an older authority vouches for a newer one. Owner only; never replaced, never deleted.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use kedge_model::wire::{Digest, KeyId, SigningKey};
use nix::fcntl::{Flock, FlockArg};

use super::KeysError;
use super::authority::{self, Authority};
use crate::private;

#[derive(Clone, Debug)]
pub(super) struct KeyFolder {
    path: PathBuf,
}

/// So many digits of an authority's digest name its files.
const ID_DIGITS: usize = 32;
/// More authorities than this in a line have never vouched for each other.
const MAX_ANCESTORS: usize = 8;

impl KeyFolder {
    pub(super) fn open(path: &Path) -> Result<KeyFolder, KeysError> {
        let folder = KeyFolder { path: path.to_owned() };
        for path in [path.to_owned(), folder.signing(), folder.authorities()] {
            private::folder(&path).map_err(|source| KeysError::File { path, source })?;
        }
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for others that make keys here; the lock ends with the value.
    pub(super) fn lock(&self) -> Result<Flock<File>, KeysError> {
        let path = self.path.join("lock");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(|source| KeysError::File { path: path.clone(), source })?;
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, why)| KeysError::File { path, source: io::Error::from(why) })
    }

    pub(super) fn signing_key(&self, id: KeyId) -> Result<Option<SigningKey>, KeysError> {
        let path = self.signing().join(format!("{id}.pk8"));
        let Some(bytes) = read(&path)? else { return Ok(None) };
        let key = SigningKey::from_pkcs8(&bytes).map_err(|source| KeysError::Key { path, source })?;
        // A file under another key's name is not that key.
        Ok((key.id() == id).then_some(key))
    }

    pub(super) fn make_signing_key(&self) -> Result<SigningKey, KeysError> {
        let bytes = SigningKey::generate().map_err(KeysError::Sign)?;
        let key = SigningKey::from_pkcs8(&bytes).map_err(KeysError::Sign)?;
        let path = self.signing().join(format!("{}.pk8", key.id()));
        private::write_new(&path, &bytes).map_err(|source| KeysError::File { path, source })?;
        Ok(key)
    }

    /// The one in the folder, or a new one: before the database knows any.
    pub(super) fn only_signing_key(&self) -> Result<SigningKey, KeysError> {
        let ids: Vec<KeyId> = names(&self.signing(), ".pk8")?.iter().filter_map(|name| name.parse().ok()).collect();
        match ids.as_slice() {
            [] => self.make_signing_key(),
            [id] => self.signing_key(*id)?.ok_or_else(|| KeysError::Unknown(id.to_string())),
            more => Err(KeysError::Ambiguous { folder: self.signing(), found: more.len(), what: "signing keys" }),
        }
    }

    /// The authority with this certificate, if its key is here.
    pub(super) fn authority(&self, pem: &str) -> Result<Option<Authority>, KeysError> {
        let fingerprint = authority::fingerprint(pem);
        let fingerprint = fingerprint.map_err(|source| KeysError::Authority { path: self.authorities(), source })?;
        let path = self.authorities().join(format!("{}.key", id(fingerprint)));
        let Some(key) = read(&path)? else { return Ok(None) };
        let ancestors = self.ancestors(fingerprint)?;
        Authority::load(pem, &String::from_utf8_lossy(&key), &ancestors)
            .map(Some)
            .map_err(|source| KeysError::Authority { path, source })
    }

    /// A new authority's certificate (PEM); its files are written.
    pub(super) fn make_authority(&self) -> Result<String, KeysError> {
        let (pem, key) = Authority::generate().map_err(KeysError::NoAuthority)?;
        let id = id(authority::fingerprint(&pem).map_err(KeysError::NoAuthority)?);
        // The key first: a certificate without its key would be taken for one of another hub.
        for (ending, text) in [("key", key.as_str()), ("pem", pem.as_str())] {
            let path = self.authorities().join(format!("{id}.{ending}"));
            private::write_new(&path, text.as_bytes()).map_err(|source| KeysError::File { path, source })?;
        }
        Ok(pem)
    }

    /// The one in the folder, or a new one: before the database knows any.
    pub(super) fn only_authority(&self) -> Result<String, KeysError> {
        let mut names = names(&self.authorities(), ".pem")?;
        names.retain(|name| name.len() == ID_DIGITS);
        match names.as_slice() {
            [] => self.make_authority(),
            [name] => self.certificate(name)?.ok_or_else(|| KeysError::Unknown(name.clone())),
            more => Err(KeysError::Ambiguous {
                folder: self.authorities(),
                found: more.len(),
                what: "certificate authorities",
            }),
        }
    }

    /// Keeps what an older authority says for a newer one.
    pub(super) fn keep_voucher(&self, newer: Digest, older: Digest, pem: &str) -> Result<(), KeysError> {
        let path = self.authorities().join(format!("{}.by-{}.pem", id(newer), id(older)));
        match private::write_new(&path, pem.as_bytes()) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(KeysError::File { path, source }),
            _ => Ok(()),
        }
    }

    pub(super) fn holds_signing_key(&self, id: KeyId) -> bool {
        self.signing().join(format!("{id}.pk8")).is_file()
    }

    pub(super) fn holds_authority_key(&self, fingerprint: Digest) -> bool {
        self.authorities().join(format!("{}.key", id(fingerprint))).is_file()
    }

    /// The vouchers that lead from older authorities to this one, each with the older one's own certificate.
    fn ancestors(&self, fingerprint: Digest) -> Result<Vec<String>, KeysError> {
        let names = names(&self.authorities(), ".pem")?;
        let mut found = Vec::new();
        let mut newer = vec![id(fingerprint)];
        while let Some(of) = newer.pop() {
            for name in &names {
                let Some(older) = name.strip_prefix(&format!("{of}.by-")) else { continue };
                if found.len() >= 2 * MAX_ANCESTORS {
                    return Ok(found);
                }
                found.extend(self.certificate(name)?);
                found.extend(self.certificate(older)?);
                newer.push(older.to_owned());
            }
        }
        Ok(found)
    }

    fn certificate(&self, name: &str) -> Result<Option<String>, KeysError> {
        let bytes = read(&self.authorities().join(format!("{name}.pem")))?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn signing(&self) -> PathBuf {
        self.path.join("signing")
    }

    fn authorities(&self) -> PathBuf {
        self.path.join("authority")
    }
}

fn id(fingerprint: Digest) -> String {
    fingerprint.hex().chars().take(ID_DIGITS).collect()
}

/// `None`: there is no such file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, KeysError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(KeysError::File { path: path.to_owned(), source }),
    }
}

/// Names with this ending, without it, in order.
fn names(folder: &Path, ending: &str) -> Result<Vec<String>, KeysError> {
    let failed = |source| KeysError::File { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        if let Some(name) = name.strip_suffix(ending).filter(|name| !name.starts_with('.')) {
            found.push(name.to_owned());
        }
    }
    found.sort();
    Ok(found)
}
