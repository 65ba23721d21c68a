//! Where a join's token comes from: the command line, a file, or the file that an image was given.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use kedge_model::wire::JoinToken;

use super::JoinError;
use crate::paths::Paths;

#[derive(Clone, Default, PartialEq, Eq)]
pub enum TokenSource {
    Text(String),
    /// `--token-file`; `-` is what is piped in.
    File(PathBuf),
    /// `/etc/kedge/join-token`, taken away once it was used.
    #[default]
    Image,
}

/// A token is a few hundred bytes.
const MOST: u64 = 16 * 1024;

impl TokenSource {
    pub fn read(&self, paths: &Paths) -> Result<JoinToken, JoinError> {
        let text = match self {
            TokenSource::Text(text) => text.clone(),
            TokenSource::File(path) if path == Path::new("-") => {
                read(io::stdin().lock()).map_err(|source| JoinError::TokenFile { path: path.clone(), source })?
            }
            TokenSource::File(path) => of_file(path)?,
            TokenSource::Image => match of_file(&image(paths)) {
                Err(JoinError::TokenFile { path, source }) if source.kind() == io::ErrorKind::NotFound => {
                    return Err(JoinError::NoToken { path });
                }
                other => other?,
            },
        };
        Ok(text.trim().parse()?)
    }

    /// Whether the image brought one that isn't used up.
    pub fn is_there(&self, paths: &Paths) -> bool {
        match self {
            TokenSource::Image => fs::metadata(image(paths)).is_ok_and(|file| file.len() > 0),
            _ => true,
        }
    }

    /// After success only. A file that can't be removed is emptied; the token has been used anyway.
    pub(super) fn use_up(&self, paths: &Paths) {
        if *self != TokenSource::Image {
            return;
        }
        let path = image(paths);
        if let Err(error) = fs::remove_file(&path).or_else(|_| fs::write(&path, [])) {
            tracing::warn!(path = %path.display(), %error, "the used token can't be removed");
        }
    }
}

fn image(paths: &Paths) -> PathBuf {
    paths.settings().join("join-token")
}

fn of_file(path: &Path) -> Result<String, JoinError> {
    let text = File::open(path).and_then(read);
    text.map_err(|source| JoinError::TokenFile { path: path.to_owned(), source })
}

fn read(from: impl io::Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}

/// A token is a secret.
impl std::fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TokenSource::Text(_) => f.write_str("Text"),
            TokenSource::File(path) => write!(f, "File({})", path.display()),
            TokenSource::Image => f.write_str("Image"),
        }
    }
}
