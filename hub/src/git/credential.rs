//! Credentials of the configuration: found by the address they belong to and by whom they serve, read from their files each
//! time they are used, so that a renewed token needs no restart. Asked by whoever contacts a server.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use kedge_model::wire::Digest;

use super::access::Trust;
use super::address::{Address, Prefix, Refused, Scheme, Server};
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

/// Whose credential a mirror is fetched with. What came with one is never shown to those whom another serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reader {
    /// The platform's, or none where it has none.
    Platform,
    /// None: what everybody may read, for workspaces.
    Public,
    /// One of workspaces, by its id.
    Workspaces(String),
}

#[derive(Clone, Debug)]
struct Known {
    /// Of its place in the configuration: the same prefix and file.
    id: String,
    prefix: Prefix,
    platform: bool,
    workspaces: Vec<String>,
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
            let Address::Server(server) = Address::parse_prefix(&credential.prefix)? else {
                let reason = format!("`{}` is a path, and paths need no credential", credential.prefix);
                return Err(Refused::new(reason, "write the beginning of a URL"));
            };
            known.push(Known {
                id: id(credential),
                prefix: Prefix::of(server),
                platform: credential.platform,
                workspaces: credential.workspaces.clone(),
                username: credential.username.clone(),
                secret_file: credential.secret_file.clone(),
                ssh_key_file: credential.ssh_key_file.clone(),
            });
        }
        // The longest prefix is the one that was meant.
        known.sort_by_key(|known| std::cmp::Reverse(known.prefix.depth()));
        Ok(Credentials { known })
    }

    /// With whose credential an address is read. The platform's fetches for a workspace only what the platform team itself
    /// registered for it.
    pub fn reader(&self, address: &Address, trust: &Trust) -> Reader {
        let (Address::Server(server), Trust::Application(grant)) = (address, trust) else { return Reader::Platform };
        let usable = |known: &&Known| match server.scheme {
            Scheme::Ssh => known.ssh_key_file.is_some(),
            Scheme::Https | Scheme::Http => known.secret_file.is_some(),
        };
        let mut here = self.known.iter().filter(|known| known.prefix.covers(server)).filter(usable);
        let of_platform = here.clone().find(|known| known.platform);
        let own =
            here.find(|known| grant.workspace().is_some_and(|name| known.workspaces.iter().any(|one| one == name)));
        match own {
            Some(own) if of_platform.is_some_and(|known| known.id == own.id) => Reader::Platform,
            Some(own) => Reader::Workspaces(own.id.clone()),
            None if grant.is_registered(server) => Reader::Platform,
            None => Reader::Public,
        }
    }

    /// The secret for an address, when one belongs to it and serves that reader.
    pub fn secret(&self, server: &Server, reader: &Reader) -> Result<Option<Secret>, SecretError> {
        let mut of_reader = self.of(server, reader);
        let known = of_reader.find(|known| known.secret_file.is_some());
        let Some((known, path)) = known.and_then(|known| Some((known, known.secret_file.as_deref()?))) else {
            return Ok(None);
        };
        let secret = read(path).map_err(|source| SecretError { path: path.display().to_string(), source })?;
        Ok(Some(Secret { username: known.username.clone(), secret }))
    }

    /// Whether one entry, or none, is for both addresses.
    pub fn are_same(&self, one: &Server, other: &Server, reader: &Reader) -> bool {
        let entry = |server: &Server| self.of(server, reader).next().map(|known| known.id.as_str());
        entry(one) == entry(other)
    }

    /// The private key's file for an ssh address.
    pub fn ssh_key(&self, server: &Server, reader: &Reader) -> Option<&Path> {
        self.of(server, reader).find_map(|known| known.ssh_key_file.as_deref())
    }

    /// What a reader may use for an address, the longest prefix first.
    fn of<'c, 'a>(&'c self, server: &'a Server, reader: &'a Reader) -> impl Iterator<Item = &'c Known> {
        let serves = move |known: &&Known| match reader {
            Reader::Platform => known.platform,
            Reader::Public => false,
            Reader::Workspaces(id) => known.id == *id,
        };
        self.known.iter().filter(serves).filter(move |known| known.prefix.covers(server))
    }
}

fn id(credential: &config::Credential) -> String {
    let file = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let (secret, key) = (file(&credential.secret_file), file(&credential.ssh_key_file));
    let text = format!("{}\0{secret}\0{key}", credential.prefix);
    let digest = Digest::of(text.as_bytes()).to_string();
    let hex = digest.rsplit(':').next().unwrap_or_default();
    hex.chars().take(16).collect()
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
    use crate::git::testing::granted;

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
            platform: true,
            workspaces: Vec::new(),
            username: None,
            secret_file,
            ssh_key_file: None,
        };
        let credentials = Credentials::new(&[
            credential("https://h", file("all", "wide\n")),
            credential("https://h/team", file("team", "narrow")),
        ])
        .unwrap();
        let secret =
            |url: &str| credentials.secret(&server(url), &Reader::Platform).unwrap().map(|secret| secret.secret);
        assert_eq!(secret("https://h/team/x").as_deref(), Some("narrow"));
        assert_eq!(secret("https://h/team-evil/x").as_deref(), Some("wide"));
        assert_eq!(secret("https://other/x"), None);
        file("team", "renewed");
        assert_eq!(secret("https://h/team/x").as_deref(), Some("renewed"));
        fs::remove_file(folder.path().join("team")).unwrap();
        assert!(credentials.secret(&server("https://h/team/x"), &Reader::Platform).is_err());
    }

    #[test]
    fn a_credential_serves_whom_it_names_and_the_platforms_only_what_it_registered() {
        let credential = |prefix: &str, file: &str, platform, workspaces: &[&str]| config::Credential {
            prefix: prefix.to_owned(),
            platform,
            workspaces: workspaces.iter().map(|name| (*name).to_owned()).collect(),
            username: None,
            secret_file: Some(file.into()),
            ssh_key_file: None,
        };
        let credentials = Credentials::new(&[
            credential("https://h", "/all", true, &[]),
            credential("https://h/a", "/a", false, &["a"]),
            credential("https://h/shared", "/shared", true, &["a", "b"]),
        ])
        .unwrap();
        let (a, b) = (granted("a", "https://h/team-a/app", &[]), granted("b", "https://h/team-b/app", &[]));
        let reader = |url: &str, trust: &Trust| credentials.reader(&Address::parse(url).unwrap(), trust);
        assert_eq!(reader("https://h/team-a/app", &Trust::Platform), Reader::Platform);
        // What a tenant named, and nobody registered.
        assert_eq!(reader("https://h/team-a/other", &a), Reader::Public);
        assert_eq!(reader("https://h/team-b/app", &a), Reader::Public);
        assert_eq!(reader("https://h/team-a/app.git", &a), Reader::Platform);
        assert!(matches!(reader("https://h/a/x", &a), Reader::Workspaces(_)));
        assert_eq!(reader("https://h/a/x", &b), Reader::Public);
        // One entry that serves both is one mirror.
        assert_eq!(reader("https://h/shared/x", &a), Reader::Platform);
        let (url, own) = (server("https://h/a/x"), reader("https://h/a/x", &a));
        assert!(credentials.secret(&url, &Reader::Public).unwrap().is_none());
        assert!(credentials.secret(&url, &own).unwrap_err().path.ends_with("/a"));
        assert!(credentials.secret(&url, &Reader::Platform).unwrap_err().path.ends_with("/all"));
        assert!(!credentials.are_same(&url, &server("https://h/b/x"), &own));
    }

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret { username: Some("me".to_owned()), secret: "s3cret".to_owned() };
        assert!(!format!("{secret:?}").contains("s3cret"));
        assert_eq!(secret.basic(), "Basic bWU6czNjcmV0");
    }
}
