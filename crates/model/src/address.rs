//! The address of a repository, taken apart strictly: what two programs could read in two ways is refused, so that
//! what was checked is what is contacted. Asked by whoever contacts a server, and by whoever judges what is asked for.

mod prefix;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

pub use prefix::Prefix;

/// Longer than any real address.
const LENGTH_LIMIT: usize = 2048;

/// The longest name that DNS knows.
const HOST_LIMIT: usize = 253;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A path on this machine, perhaps relative.
    Local(PathBuf),
    Server(Server),
}

/// A repository behind a server, or with an empty path the server itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Server {
    pub scheme: Scheme,
    /// For ssh only.
    pub user: Option<String>,
    /// Lower case; an IPv6 address without its brackets.
    pub host: String,
    pub port: u16,
    /// Begins with `/`, or `~` for ssh, or is empty.
    pub path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    Https,
    Http,
    Ssh,
}

/// Why an address isn't used, and what to do. Never repeats what may be a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    pub reason: String,
    pub hint: String,
}

impl Refused {
    pub fn new(reason: impl Into<String>, hint: impl Into<String>) -> Refused {
        Refused { reason: reason.into(), hint: hint.into() }
    }
}

impl Scheme {
    pub fn port(self) -> u16 {
        match self {
            Scheme::Https => 443,
            Scheme::Http => 80,
            Scheme::Ssh => 22,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Https => "https",
            Scheme::Http => "http",
            Scheme::Ssh => "ssh",
        }
    }
}

impl Address {
    /// The address of a repository.
    pub fn parse(text: &str) -> Result<Address, Refused> {
        let address = Address::parse_prefix(text)?;
        match &address {
            Address::Server(server) if server.path.trim_matches('/').is_empty() => {
                Err(Refused::new(format!("{server} names a server, not a repository"), "add the repository's path"))
            }
            _ => Ok(address),
        }
    }

    /// The beginning of addresses: the path may be missing.
    pub fn parse_prefix(text: &str) -> Result<Address, Refused> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Refused::new("the repository's address is empty", "write `repo: https://…`"));
        }
        if text.len() > LENGTH_LIMIT {
            return Err(Refused::new(
                format!("the repository's address is {} bytes long", text.len()),
                format!("write at most {LENGTH_LIMIT}"),
            ));
        }
        if text.chars().any(char::is_control) {
            return Err(Refused::new("the repository's address contains control characters", "write it without"));
        }
        if text.starts_with('-') {
            return Err(refused_text(text, "looks like an option of a program"));
        }
        if let Some((helper, _)) = text.split_once("::")
            && !helper.contains('/')
            && !helper.contains('[')
        {
            return Err(refused_text(text, "would run a program on this machine"));
        }
        match text.split_once("://") {
            Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
                "file" => local(text),
                "https" => Server::web(Scheme::Https, rest, text),
                "http" => Server::web(Scheme::Http, rest, text),
                "ssh" => Server::ssh(rest, text),
                other => Err(Refused::new(
                    format!("`{}` can't be fetched: `{}` isn't supported", shown(text), shown(other)),
                    "write the repository's https address",
                )),
            },
            None => match local_path(text) {
                Some(_) => local(text),
                None => Server::ssh_short(text),
            },
        }
    }

    /// The form that is handed to programs: it begins with a scheme or a `/` and can't be taken for an option.
    pub fn url(&self) -> String {
        match self {
            Address::Local(path) => path.display().to_string(),
            Address::Server(server) => server.to_string(),
        }
    }
}

impl Server {
    /// `https://host[:port]/path`.
    fn web(scheme: Scheme, rest: &str, text: &str) -> Result<Address, Refused> {
        let (authority, path) = split_authority(rest);
        no_user(authority)?;
        // A browser's rules make `/` of a backslash, Git's don't.
        if text.contains(|c: char| c == '\\' || c.is_whitespace()) || path.contains(['?', '#']) {
            return Err(refused_text(text, "contains characters that a repository's address doesn't have"));
        }
        let (host, port) = host_and_port(authority, scheme, text)?;
        check_path(path, text)?;
        Ok(Address::Server(Server { scheme, user: None, host, port, path: single_slashes(path) }))
    }

    /// `ssh://[user@]host[:port]/path`.
    fn ssh(rest: &str, text: &str) -> Result<Address, Refused> {
        let (authority, path) = split_authority(rest);
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let (host, port) = host_and_port(authority, Scheme::Ssh, text)?;
        Server::ssh_checked(user, host, port, path, text)
    }

    /// `[user@]host:path`.
    fn ssh_short(text: &str) -> Result<Address, Refused> {
        let (authority, path) = text.split_once(':').unwrap_or((text, ""));
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let (host, port) = host_and_port(authority, Scheme::Ssh, text)?;
        let path = match path.starts_with(['/', '~']) || path.is_empty() {
            true => path.to_owned(),
            // From the user's home, which is what the short form means.
            false => format!("/~/{path}"),
        };
        Server::ssh_checked(user, host, port, &path, text)
    }

    fn ssh_checked(user: Option<&str>, host: String, port: u16, path: &str, text: &str) -> Result<Address, Refused> {
        if let Some(user) = user {
            if user.contains(':') {
                return Err(with_password());
            }
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            if user.is_empty() || user.starts_with('-') || !user.chars().all(plain) {
                return Err(refused_text(text, "has a user that ssh could take for an option"));
            }
        }
        let odd = |c: char| c.is_whitespace() || matches!(c, '\\' | '\'' | '"' | '`' | '$' | ';' | '&' | '|' | '!');
        if path.contains(odd) || path.split('/').any(|part| part.starts_with('-')) {
            return Err(refused_text(text, "has a path that a program could take for an option or a command"));
        }
        check_path(path, text)?;
        let user = user.map(str::to_owned);
        Ok(Address::Server(Server { scheme: Scheme::Ssh, user, host, port, path: path.to_owned() }))
    }

    /// An address instead of a name.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// The path's parts, without the `.git` at the end.
    pub fn segments(&self) -> Vec<&str> {
        let path = self.path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
        path.split('/').filter(|part| !part.is_empty()).collect()
    }

    /// The same repository, in whatever spelling.
    pub fn is_same(&self, other: &Server) -> bool {
        self.begins(other) && other.begins(self)
    }

    /// Whether this is where `other` begins: the same server, and each part of the path. `Prefix` is who asks.
    fn begins(&self, other: &Server) -> bool {
        let (own, theirs) = (self.segments(), other.segments());
        self.scheme == other.scheme
            && self.host == other.host
            && self.port == other.port
            && (self.user.is_none() || self.user == other.user)
            && theirs.starts_with(&own)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.as_str())?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        if self.port != self.scheme.port() {
            write!(f, ":{}", self.port)?;
        }
        match self.path.starts_with('~') {
            true => write!(f, "/{}", self.path),
            false => f.write_str(&self.path),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url())
    }
}

/// The path of a repository on this machine: `file://` or no scheme at all. A relative one is meant from the control
/// plane's repository, as Git means the relative address of a submodule.
pub fn local_path(repo: &str) -> Option<PathBuf> {
    let repo = repo.trim();
    match repo.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => {
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            Some(PathBuf::from(percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned()))
        }
        Some(_) => None,
        None if repo.split('/').next().is_some_and(|first| first.contains(':')) => None,
        None => Some(PathBuf::from(repo)),
    }
}

fn local(text: &str) -> Result<Address, Refused> {
    match local_path(text) {
        Some(path) if !path.as_os_str().is_empty() && !path.to_string_lossy().starts_with('-') => {
            Ok(Address::Local(path))
        }
        _ => Err(refused_text(text, "isn't a path")),
    }
}

fn split_authority(rest: &str) -> (&str, &str) {
    match rest.find(['/', '?', '#', '\\']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    }
}

fn no_user(authority: &str) -> Result<(), Refused> {
    if authority.contains('@') { Err(with_password()) } else { Ok(()) }
}

fn with_password() -> Refused {
    // The address isn't repeated: it may hold a password.
    Refused::new(
        "the repository's address contains a user or a password",
        "write it without: credentials are set in the hub's configuration",
    )
}

fn host_and_port(authority: &str, scheme: Scheme, text: &str) -> Result<(String, u16), Refused> {
    let bad = || refused_text(text, "has a host that can't be read");
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(bad)?;
            let address: std::net::Ipv6Addr = host.parse().map_err(|_| bad())?;
            let port = match after.strip_prefix(':') {
                Some(port) => Some(port),
                None if after.is_empty() => None,
                None => return Err(bad()),
            };
            (address.to_string(), port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host.to_ascii_lowercase(), Some(port)),
            None => (authority.to_ascii_lowercase(), None),
        },
    };
    if !is_host(&host) {
        return Err(bad());
    }
    let port = match port {
        None => scheme.port(),
        Some(port) if port.chars().all(|c| c.is_ascii_digit()) => {
            port.parse().ok().filter(|port| *port != 0).ok_or_else(bad)?
        }
        Some(_) => return Err(bad()),
    };
    Ok((host, port))
}

/// A DNS name or an address in its one plain form: `127.1` and `0x7f000001` mean an address to some programs and a
/// name to others.
fn is_host(host: &str) -> bool {
    if host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    let last = name.rsplit('.').next().unwrap_or_default();
    let numeric = last.starts_with(|c: char| c.is_ascii_digit())
        && last.strip_prefix("0x").unwrap_or(last).chars().all(|c| c.is_ascii_hexdigit());
    name.len() <= HOST_LIMIT && !host.ends_with('.') && name.split('.').all(label) && !numeric
}

/// Servers disagree about what an empty part of a path means.
fn single_slashes(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if c != '/' || !out.ends_with('/') {
            out.push(c);
        }
    }
    out
}

fn check_path(path: &str, text: &str) -> Result<(), Refused> {
    for part in path.split('/') {
        let decoded = percent_encoding::percent_decode_str(part).decode_utf8_lossy();
        // A `%` that is left would be decoded once more by a server behind a server.
        let hidden = |c: char| matches!(c, '/' | '\\' | '%') || c.is_control();
        // Some servers drop what follows a `;` before they look at the name.
        let name = decoded.split(';').next().unwrap_or_default();
        if matches!(name, "." | "..") || decoded.contains(hidden) {
            return Err(refused_text(text, "has a path that leads elsewhere"));
        }
    }
    Ok(())
}

fn refused_text(text: &str, why: &str) -> Refused {
    // What stands before an `@` may be a password.
    match text.contains('@') && text.contains("://") {
        true => Refused::new(format!("the repository's address {why}"), "write the repository's https address"),
        false => Refused::new(format!("`{}` {why}", shown(text)), "write the repository's https address"),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(200).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests;
