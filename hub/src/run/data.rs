//! The data folder: private, used by one hub at a time, and holding the first administrator's token.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use crate::private;
use crate::store::tokens::{NewToken, Role};
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
    #[error("the administrator's token can't be kept in {path}")]
    Token { path: PathBuf, source: io::Error },
    #[error("{0} holds something else than a token")]
    NoToken(PathBuf),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The administrator's token is text of some 90 bytes.
const MAX_TOKEN: u64 = 1024;
/// What the first token is called in the list of tokens.
const FIRST: &str = "first administrator";

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

    /// Where the first administrator's token is.
    pub fn token_path(&self) -> PathBuf {
        self.path.join("admin-token")
    }

    /// Makes the first administrator's token if there is no token at all. The file comes first: after a power cut in
    /// between it is there and is used.
    pub async fn first_token(&self, store: &Store) -> Result<Option<PathBuf>, DataError> {
        if store.has_api_tokens().await? {
            return Ok(None);
        }
        let path = self.token_path();
        let found = read_token(&path)?;
        let made = found.is_none();
        let token = match found {
            Some(token) => token,
            None => {
                let token = NewToken::generate();
                let text = format!("{}\n", token.text());
                private::write_new(&path, text.as_bytes())
                    .map_err(|source| DataError::Token { path: path.clone(), source })?;
                token
            }
        };
        let mut tx = store.write().await?;
        // Hubs that start together come here one after the other, and the first one's token is the one.
        tx.tick().await?;
        if tx.has_api_tokens().await? {
            if made {
                fs::remove_file(&path).map_err(|source| DataError::Token { path, source })?;
            }
            return Ok(None);
        }
        tx.insert_api_token(&token, FIRST, Role::Platform, &[], None).await?;
        tx.commit().await?;
        Ok(Some(path))
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
    async fn hubs_that_start_together_on_postgres_make_one_first_token() {
        let Some(store) = crate::store::trial::postgres().await else { return };
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| DataFolder::open(&folder.path().join(name)).unwrap());
        let (first, second) = tokio::join!(one.first_token(&store), other.first_token(&store));
        let paths: Vec<PathBuf> = [first.unwrap(), second.unwrap()].into_iter().flatten().collect();
        assert_eq!(paths.len(), 1);
        assert_eq!([one, other].iter().filter(|data| data.token_path().exists()).count(), 1);
        assert!(paths[0].exists());
    }

    #[tokio::test]
    async fn the_first_token_is_made_once_also_after_a_crash_in_between() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(folder.path()).unwrap();
        // The crash left the file and no row.
        let left = NewToken::generate();
        private::write_new(&data.token_path(), left.text().as_bytes()).unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        assert_eq!(data.first_token(&store).await.unwrap(), Some(data.token_path()));
        assert_eq!(data.first_token(&store).await.unwrap(), None);
        let id: String = sqlx::query_scalar("SELECT id FROM api_tokens").fetch_one(store.pool()).await.unwrap();
        assert_eq!(id, left.id);
        assert!(!private::is_open_to_others(&data.token_path()).unwrap());
    }
}
