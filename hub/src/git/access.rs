//! What the hub fetches from where: the control plane's own server and those on the list; for the platform team any
//! server behind https that isn't this machine or its network's own, for a workspace what it was granted. Asked before a
//! repository is contacted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use kedge_platform::Grant;

use super::address::{Address, Refused, Scheme, Server};

/// Who wrote the address, and for whom it is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// The platform team, in the control plane.
    Platform,
    /// An application team, in its own repository.
    Application(Arc<Grant>),
}

/// The rules, made once from the configuration.
#[derive(Clone, Debug, Default)]
pub struct Access {
    control_plane: Option<Address>,
    listed: Vec<Listed>,
}

/// An entry of `hosts`: a host on its scheme's own port, or on the port that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    host: String,
    port: Option<u16>,
}

impl Access {
    pub fn new(control_plane: Option<&str>, hosts: &[String]) -> Result<Access, Refused> {
        let control_plane = control_plane.map(Address::parse).transpose()?;
        let listed = hosts.iter().map(|host| Listed::parse(host)).collect::<Result<_, _>>()?;
        Ok(Access { control_plane: control_plane.map(absolute), listed })
    }

    pub fn control_plane(&self) -> Option<&Address> {
        self.control_plane.as_ref()
    }

    /// An address as somebody wrote it, a relative one from the control plane's as Git means a submodule's.
    pub fn locate(&self, repo: &str) -> Result<Address, Refused> {
        match (Address::parse(repo)?, &self.control_plane) {
            (Address::Local(path), Some(Address::Local(base))) if path.is_relative() => {
                Ok(Address::Local(normal(&base.join(path))))
            }
            (Address::Local(path), Some(Address::Server(base))) if path.starts_with(".") || path.starts_with("..") => {
                beside(base, &path)
            }
            (Address::Local(path), _) if path.is_relative() => Err(Refused::new(
                format!("`{}` is a relative path, and it isn't known from where", path.display()),
                "write the repository's https address",
            )),
            (Address::Local(path), _) => Ok(Address::Local(normal(&path))),
            (address, _) => Ok(address),
        }
    }

    /// Whether an address may be contacted at all.
    pub fn allow(&self, address: &Address, trust: &Trust) -> Result<(), Refused> {
        let server = match address {
            Address::Local(path) => return self.allow_path(path),
            Address::Server(server) => server,
        };
        if let Trust::Application(grant) = trust {
            grant.allow(server)?;
        }
        if self.is_known(server) {
            return Ok(());
        }
        let named = format!("`{}`", server.host);
        match server.scheme {
            Scheme::Http => Err(Refused::new(
                format!("`{server}` is plain http, which anyone on the network can modify"),
                "write https",
            )),
            Scheme::Ssh => Err(Refused::new(
                format!("{named} is not among the hosts that are reached by ssh"),
                "write https, or list the host under `git.hosts` in the hub's configuration",
            )),
            Scheme::Https if matches!(trust, Trust::Application(_)) => Err(Refused::new(
                format!("{named} is not among the hosts from which applications are fetched"),
                match server.port == Scheme::Https.port() {
                    true => format!("list `{}` under `git.hosts` in the hub's configuration", server.host),
                    false => {
                        format!("list `{}:{}` under `git.hosts` in the hub's configuration", server.host, server.port)
                    }
                },
            )),
            Scheme::Https => match server.ip() {
                Some(ip) if is_private_to_hosts(ip) => Err(inside(server, ip)),
                _ => Ok(()),
            },
        }
    }

    /// Whether a host is the control plane's own or listed: then it may be anywhere.
    pub fn is_known(&self, server: &Server) -> bool {
        self.is_own(server) || self.is_listed(server)
    }

    /// What a name stands for, for hosts that nobody listed: a name can be made to lead to this machine.
    pub fn allow_addresses(&self, server: &Server, found: &[IpAddr]) -> Result<(), Refused> {
        match found.iter().find(|ip| is_private_to_hosts(**ip)) {
            Some(ip) if !self.is_known(server) => Err(inside(server, *ip)),
            _ => Ok(()),
        }
    }

    fn is_own(&self, server: &Server) -> bool {
        let Some(Address::Server(own)) = &self.control_plane else { return false };
        if own.host != server.host {
            return false;
        }
        match server.scheme {
            // As careful as the control plane itself.
            Scheme::Http => own.scheme == Scheme::Http && own.port == server.port,
            scheme => server.port == own.port || server.port == scheme.port(),
        }
    }

    fn is_listed(&self, server: &Server) -> bool {
        let plain = server.scheme == Scheme::Http;
        let loopback = server.host == "localhost" || server.ip().is_some_and(|ip| ip.is_loopback());
        (!plain || loopback)
            && self
                .listed
                .iter()
                .any(|listed| listed.host == server.host && listed.port.unwrap_or(server.scheme.port()) == server.port)
    }

    fn allow_path(&self, path: &Path) -> Result<(), Refused> {
        match &self.control_plane {
            Some(Address::Local(_)) => Ok(()),
            _ => Err(Refused::new(
                format!("`{}` is a path on the hub's machine", path.display()),
                "write the repository's https address; paths are for a control plane that is one itself",
            )),
        }
    }
}

impl Listed {
    fn parse(text: &str) -> Result<Listed, Refused> {
        let bad = || {
            Refused::new(format!("`{}` is not a host", text.escape_debug()), "write `git.example.com` or `host:port`")
        };
        let has_port = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(bad)?.1.starts_with(':'),
            None => text.contains(':'),
        };
        match Address::parse_prefix(&format!("https://{text}")).map_err(|_| bad())? {
            Address::Server(server) if server.path.is_empty() => {
                Ok(Listed { host: server.host, port: has_port.then_some(server.port) })
            }
            _ => Err(bad()),
        }
    }
}

/// This machine, the link, or the service that hands out a cloud machine's secrets.
fn is_private_to_hosts(ip: IpAddr) -> bool {
    const METADATA: [IpAddr; 3] = [
        IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
        IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    ];
    if METADATA.contains(&ip) {
        return true;
    }
    match ip {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_link_local() || v4.is_broadcast() || v4.is_multicast() || v4.octets()[0] == 0
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unicast_link_local()
                || inner_v4(v6).is_some_and(|v4| is_private_to_hosts(IpAddr::V4(v4)))
        }
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped, compatible, 6to4 or NAT64.
fn inner_v4(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = v6.segments();
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match parts {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

fn inside(server: &Server, ip: IpAddr) -> Refused {
    let named = if server.ip().is_some() { String::new() } else { format!(" leads to {ip}, which") };
    Refused::new(
        format!("`{}`{named} belongs to the hub's own machine or network", server.host),
        "write the repository's public address, or list the host under `git.hosts` in the hub's configuration",
    )
}

fn absolute(address: Address) -> Address {
    match address {
        Address::Local(path) => Address::Local(normal(&std::path::absolute(&path).unwrap_or(path))),
        server => server,
    }
}

/// Without `.` and `..`: so that one repository has one name.
fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

/// A relative address from a server's.
fn beside(base: &Server, path: &Path) -> Result<Address, Refused> {
    let mut parts: Vec<String> = base.path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    for part in path.components() {
        match part {
            Component::ParentDir if parts.pop().is_none() => {
                let reason = format!("`{}` leads above the control plane's server", path.display());
                return Err(Refused::new(reason, "write the repository's https address"));
            }
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    Address::parse(&Server { path: format!("/{}", parts.join("/")), ..base.clone() }.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::granted;

    fn access(control_plane: &str, hosts: &[&str]) -> Access {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Access::new(Some(control_plane), &hosts).unwrap()
    }

    fn check(access: &Access, repo: &str, trust: &Trust) -> Result<(), Refused> {
        access.allow(&access.locate(repo)?, trust)
    }

    /// Granted all that is tried here: hosts are looked at apart.
    fn everywhere() -> Trust {
        let mut prefixes = Vec::new();
        for host in
            ["git.example.com", "other.example.com", "evil.example.com", "git.example.com.evil", "lab", "lab:8443"]
        {
            prefixes.extend([format!("https://{host}"), format!("http://{host}"), format!("ssh://git@{host}")]);
        }
        prefixes.extend(
            ["https://git.example.com:8443", "https://169.254.169.254", "http://169.254.169.254"].map(str::to_owned),
        );
        prefixes.extend(["https://127.0.0.1", "https://[::1]", "http://localhost:3000"].map(str::to_owned));
        prefixes.extend((3000..3003).map(|port| format!("http://127.0.0.1:{port}")));
        granted("team", "https://git.example.com/team/app", &prefixes.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn a_workspace_reaches_what_it_was_granted_and_the_control_plane_is_not_part_of_it() {
        let access = access("https://git.example.com/org/control-plane", &[]);
        let team = granted("team", "https://git.example.com/team/app", &[]);
        for repo in ["https://git.example.com/team/app", "https://git.example.com/team/gitops.git", "../../team/x"] {
            assert_eq!(check(&access, repo, &team), Ok(()), "{repo}");
        }
        for repo in [
            "https://git.example.com/other/app",
            "https://git.example.com/org/control-plane",
            "https://git.example.com/team-b/app",
            "git@git.example.com:team/app",
            "../base",
            "../../other/app",
        ] {
            let refused = check(&access, repo, &team).unwrap_err();
            assert!(refused.hint.contains("spec.sources"), "{repo}: {refused:?}");
        }
    }

    #[test]
    fn an_application_reaches_the_control_planes_own_host_and_those_listed() {
        let access = access("https://git.example.com/org/control-plane", &["other.example.com", "lab:8443"]);
        for repo in [
            "https://git.example.com/team/app",
            "https://other.example.com/app",
            "https://lab:8443/app",
            "../app",
            "git@git.example.com:team/app",
            "ssh://git@other.example.com/app",
        ] {
            assert_eq!(check(&access, repo, &everywhere()), Ok(()), "{repo}");
        }
        for repo in [
            "https://evil.example.com/app",
            "https://git.example.com.evil/app",
            "https://git.example.com:8443/app",
            "https://lab/app",
            "http://git.example.com/team/app",
            "http://other.example.com/app",
            "ssh://git@evil.example.com/app",
            "/srv/app",
            "file:///srv/app",
            "https://169.254.169.254/latest",
            "http://169.254.169.254/latest",
            "https://127.0.0.1/app",
            "https://[::1]/app",
            "../../../../app",
        ] {
            assert!(check(&access, repo, &everywhere()).is_err(), "{repo}");
        }
    }

    #[test]
    fn the_platform_team_reaches_every_server_but_this_machine() {
        let access = access("https://git.example.com/org/control-plane", &[]);
        assert_eq!(check(&access, "https://github.com/org/base", &Trust::Platform), Ok(()));
        for repo in [
            "https://169.254.169.254/x",
            "https://127.0.0.1/x",
            "https://0.0.0.0/x",
            "https://[::ffff:169.254.169.254]/x",
            "https://[64:ff9b::a9fe:a9fe]/x",
            "https://[fd00:ec2::254]/x",
            "https://[fe80::1]/x",
            "https://100.100.100.200/x",
            "http://github.com/org/base",
            "ssh://git@github.com/org/base",
            "/srv/base",
        ] {
            assert!(check(&access, repo, &Trust::Platform).is_err(), "{repo}");
        }
    }

    #[test]
    fn a_name_that_leads_to_this_machine_is_refused_unless_it_is_listed() {
        let access = access("https://git.example.com/org/control-plane", &["inner.example.com"]);
        let server = |text: &str| match Address::parse(text).unwrap() {
            Address::Server(server) => server,
            Address::Local(_) => unreachable!(),
        };
        let (loopback, public) = ("127.0.0.1".parse().unwrap(), "192.0.2.7".parse().unwrap());
        let rebound = server("https://rebound.example.com/x");
        assert!(access.allow_addresses(&rebound, &[public, loopback]).is_err());
        assert_eq!(access.allow_addresses(&rebound, &[public]), Ok(()));
        assert_eq!(access.allow_addresses(&server("https://inner.example.com/x"), &[loopback]), Ok(()));
        assert_eq!(access.allow_addresses(&server("https://git.example.com/x"), &[loopback]), Ok(()));
    }

    #[test]
    fn paths_are_for_a_control_plane_that_is_one() {
        let access = access("/srv/platform/control-plane", &[]);
        assert_eq!(access.locate("../app").unwrap(), Address::Local("/srv/platform/app".into()));
        assert_eq!(check(&access, "/srv/app", &everywhere()), Ok(()));
        assert!(check(&access, "https://git.example.com/app", &everywhere()).is_err());
    }

    #[test]
    fn plain_http_is_as_good_as_the_control_plane_itself() {
        let access = access("http://127.0.0.1:3000/org/control-plane", &["127.0.0.1:3001"]);
        assert_eq!(check(&access, "http://127.0.0.1:3000/app", &everywhere()), Ok(()));
        assert_eq!(check(&access, "http://127.0.0.1:3001/app", &everywhere()), Ok(()));
        assert!(check(&access, "http://127.0.0.1:3002/app", &everywhere()).is_err());
        assert!(check(&access, "http://localhost:3000/app", &everywhere()).is_err());
    }

    #[test]
    fn an_odd_entry_of_the_list_is_said() {
        for host in ["https://h", "h/x", "*", "a b", "h:x", ""] {
            assert!(Access::new(None, &[host.to_owned()]).is_err(), "{host}");
        }
    }
}
