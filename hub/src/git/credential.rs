//! Credentials of the configuration: found by the address they belong to, read from their files each time they are
//! used, so that a renewed token needs no restart. Asked by whoever contacts a server.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::address::{Address, Refused, Server};
use crate::config;

/// A token is never near this.
const FILE_LIMIT: u64 = 64 * 1024;

/// The name that goes with a token alone: servers look at the token only.
const TOKEN_USER: &str = "x-access-token";

/// What a server asks for. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    pub username: Option<String>,
    pub secret: String,
}

#[derive(Clone, Debug, Default)]
pub struct Credentials {
    known: Vec<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    prefix: Server,
    username: Option<String>,
    secret_file: Option<PathBuf>,
    ssh_key_file: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
#[error("the secret in `{path}` can't be read")]
pub struct SecretError {
    pub path: String,
    pub source: io::Error,
}

impl Credentials {
    pub fn new(configured: &[config::Credential]) -> Result<Credentials, Refused> {
        let mut known = Vec::new();
        for credential in configured {
            let Address::Server(prefix) = Address::parse_prefix(&credential.prefix)? else {
                let reason = format!("`{}` is a path, and paths need no credential", credential.prefix);
                return Err(Refused::new(reason, "write the beginning of a URL"));
            };
            known.push(Known {
                prefix,
                username: credential.username.clone(),
                secret_file: credential.secret_file.clone(),
                ssh_key_file: credential.ssh_key_file.clone(),
            });
        }
        // The longest prefix is the one that was meant.
        known.sort_by_key(|known| std::cmp::Reverse(known.prefix.segments().len()));
        Ok(Credentials { known })
    }

    /// The secret for an address, when one belongs to it.
    pub fn secret(&self, server: &Server) -> Result<Option<Secret>, SecretError> {
        let known = self.known.iter().find(|known| known.prefix.begins(server) && known.secret_file.is_some());
        let Some((known, path)) = known.and_then(|known| Some((known, known.secret_file.as_deref()?))) else {
            return Ok(None);
        };
        let secret = read(path).map_err(|source| SecretError { path: path.display().to_string(), source })?;
        Ok(Some(Secret { username: known.username.clone(), secret }))
    }

    /// Whether one entry, or none, is for both addresses.
    pub fn are_same(&self, one: &Server, other: &Server) -> bool {
        let entry = |server: &Server| self.known.iter().position(|known| known.prefix.begins(server));
        entry(one) == entry(other)
    }

    /// The private key's file for an ssh address.
    pub fn ssh_key(&self, server: &Server) -> Option<&Path> {
        let known = self.known.iter().find(|known| known.prefix.begins(server) && known.ssh_key_file.is_some());
        known.and_then(|known| known.ssh_key_file.as_deref())
    }
}

impl Secret {
    /// The value of the header `Authorization`.
    pub fn basic(&self) -> String {
        let user = self.username.as_deref().unwrap_or(TOKEN_USER);
        format!("Basic {}", STANDARD.encode(format!("{user}:{}", self.secret)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("username", &self.username).field("secret", &"…").finish()
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_LIMIT).read_to_string(&mut text)?;
    let text = text.trim();
    match text.is_empty() || text.contains(char::is_control) {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "the file must hold one line with the secret")),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn server(text: &str) -> Server {
        match Address::parse(text).unwrap() {
            Address::Server(server) => server,
            Address::Local(_) => unreachable!(),
        }
    }

    #[test]
    fn the_longest_prefix_decides_and_the_file_is_read_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).unwrap();
            Some(folder.path().join(name))
        };
        let credential = |prefix: &str, secret_file| config::Credential {
            prefix: prefix.to_owned(),
            username: None,
            secret_file,
            ssh_key_file: None,
        };
        let credentials = Credentials::new(&[
            credential("https://h", file("all", "wide\n")),
            credential("https://h/team", file("team", "narrow")),
        ])
        .unwrap();
        let secret = |url: &str| credentials.secret(&server(url)).unwrap().map(|secret| secret.secret);
        assert_eq!(secret("https://h/team/x").as_deref(), Some("narrow"));
        assert_eq!(secret("https://h/team-evil/x").as_deref(), Some("wide"));
        assert_eq!(secret("https://other/x"), None);
        file("team", "renewed");
        assert_eq!(secret("https://h/team/x").as_deref(), Some("renewed"));
        fs::remove_file(folder.path().join("team")).unwrap();
        assert!(credentials.secret(&server("https://h/team/x")).is_err());
    }

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret { username: Some("me".to_owned()), secret: "s3cret".to_owned() };
        assert!(!format!("{secret:?}").contains("s3cret"));
        assert_eq!(secret.basic(), "Basic bWU6czNjcmV0");
    }
}
