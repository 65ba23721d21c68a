//! The data folder: private, used by one hub at a time, and holding the first tokens: an administrator's and one of the
//! platform team.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use crate::private;
use crate::store::people::PersonRow;
use crate::store::tokens::{Grant, NewToken, Role};
use crate::store::{Store, StoreError};

/// This process' own folder, until the value is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    _lock: Flock<File>,
}

#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("the data folder {path} can't be used")]
    Folder { path: PathBuf, source: io::Error },
    #[error("another hub (process {process}) uses the data folder {path}")]
    InUse { path: PathBuf, process: String },
    #[error("the first token can't be kept in {path}")]
    Token { path: PathBuf, source: io::Error },
    #[error("{0} holds something else than a token")]
    NoToken(PathBuf),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A token is text of some 90 bytes.
const MAX_TOKEN: u64 = 1024;
/// The first persons: their names, what they may do, and where their tokens are. Who makes tokens can't approve, so there
/// are two.
const FIRST: [(&str, Role, &str); 2] =
    [("first administrator", Role::Administrator, "admin-token"), ("platform team", Role::Platform, "platform-token")];

/// The files with the first tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstTokens {
    pub administrator: PathBuf,
    pub platform: PathBuf,
}

impl DataFolder {
    pub fn open(path: &Path) -> Result<DataFolder, DataError> {
        let failed = |source| DataError::Folder { path: path.to_owned(), source };
        private::folder(path).map_err(failed)?;
        let mut file = File::options().create(true).truncate(false).read(true).write(true).open(path.join("lock"));
        let file = file.as_mut().map_err(|error| failed(io::Error::from(error.kind())))?.try_clone().map_err(failed)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => {
                lock.set_len(0).map_err(failed)?;
                fs::write(path.join("lock"), format!("{}\n", std::process::id())).map_err(failed)?;
                Ok(DataFolder { path: path.to_owned(), _lock: lock })
            }
            Err((mut file, nix::errno::Errno::EWOULDBLOCK)) => {
                let mut process = String::new();
                // Only for the message; a file that can't be read gives an empty number.
                let _ = file.read_to_string(&mut process);
                Err(DataError::InUse { path: path.to_owned(), process: process.trim().to_owned() })
            }
            Err((_, errno)) => Err(failed(io::Error::from(errno))),
        }
    }

    /// Where the first tokens are.
    pub fn token_paths(&self) -> FirstTokens {
        let [administrator, platform] = FIRST.map(|(_, _, file)| self.path.join(file));
        FirstTokens { administrator, platform }
    }

    /// Makes the first tokens if there is no token at all. The files come first: after a power cut in between they are
    /// there and are used.
    pub async fn first_tokens(&self, store: &Store) -> Result<Option<FirstTokens>, DataError> {
        if store.has_api_tokens().await? {
            return Ok(None);
        }
        let mut tokens = Vec::new();
        for (name, role, file) in FIRST {
            let path = self.path.join(file);
            let (token, made) = match read_token(&path)? {
                Some(token) => (token, false),
                None => {
                    let token = NewToken::generate();
                    let text = format!("{}\n", token.text());
                    private::write_new(&path, text.as_bytes())
                        .map_err(|source| DataError::Token { path: path.clone(), source })?;
                    (token, true)
                }
            };
            tokens.push((name, role, path, token, made));
        }
        let mut tx = store.write().await?;
        // Hubs that start together come here one after the other, and the first one's tokens are the ones.
        tx.tick().await?;
        if tx.has_api_tokens().await? {
            for (_, _, path, _, _) in tokens.into_iter().filter(|(_, _, _, _, made)| *made) {
                fs::remove_file(&path).map_err(|source| DataError::Token { path, source })?;
            }
            return Ok(None);
        }
        for (name, role, _, token, _) in &tokens {
            let person = PersonRow::new(name, &[], "");
            tx.insert_person(&person).await?;
            let grant = Grant { person: &person.id, name, role: *role, workspaces: &[], expires: None, created_by: "" };
            tx.insert_api_token(token, &grant).await?;
        }
        tx.commit().await?;
        Ok(Some(self.token_paths()))
    }
}

impl DataError {
    /// The way out.
    pub fn hint(&self) -> Option<String> {
        match self {
            DataError::InUse { .. } => {
                Some("stop the other hub first, or give this one another folder with --data DIR".to_owned())
            }
            DataError::NoToken(path) => Some(format!("remove {} and start again", path.display())),
            DataError::Folder { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("choose a folder of your own with --data DIR".to_owned())
            }
            _ => None,
        }
    }
}

fn read_token(path: &Path) -> Result<Option<NewToken>, DataError> {
    let failed = |source| DataError::Token { path: path.to_owned(), source };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    let mut text = String::new();
    file.take(MAX_TOKEN).read_to_string(&mut text).map_err(failed)?;
    NewToken::parse(text.trim()).map(Some).ok_or_else(|| DataError::NoToken(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hubs_on_one_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataFolder::open(folder.path()).unwrap();
        let error = DataFolder::open(folder.path()).unwrap_err();
        assert!(matches!(&error, DataError::InUse { process, .. } if *process == std::process::id().to_string()));
        assert!(error.hint().unwrap().contains("--data"));
        drop(first);
        assert!(DataFolder::open(folder.path()).is_ok());
    }

    #[tokio::test]
    async fn hubs_that_start_together_on_postgres_make_one_pair_of_first_tokens() {
        let Some(store) = crate::store::test_database::postgres().await else { return };
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| DataFolder::open(&folder.path().join(name)).unwrap());
        let (first, second) = tokio::join!(one.first_tokens(&store), other.first_tokens(&store));
        let made: Vec<FirstTokens> = [first.unwrap(), second.unwrap()].into_iter().flatten().collect();
        assert_eq!(made.len(), 1);
        let there = |data: &&DataFolder| data.token_paths().administrator.exists();
        assert_eq!([&one, &other].into_iter().filter(there).count(), 1);
        assert!(made[0].administrator.exists() && made[0].platform.exists());
    }

    #[tokio::test]
    async fn the_first_tokens_are_made_once_also_after_a_crash_in_between() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(folder.path()).unwrap();
        // The crash left one file and no row.
        let left = NewToken::generate();
        let paths = data.token_paths();
        private::write_new(&paths.administrator, left.text().as_bytes()).unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        assert_eq!(data.first_tokens(&store).await.unwrap(), Some(paths.clone()));
        assert_eq!(data.first_tokens(&store).await.unwrap(), None);
        let tokens = store.access_tokens("", 10).await.unwrap();
        let of = |role| tokens.iter().find(|token| token.role == role).unwrap();
        assert_eq!(of(Role::Administrator).id, left.id);
        // Who makes tokens isn't who approves.
        assert_ne!(of(Role::Administrator).person, of(Role::Platform).person);
        assert!(!private::is_open_to_others(&paths.administrator).unwrap());
        assert!(!private::is_open_to_others(&paths.platform).unwrap());
    }
}
