//! Where a server says that a repository is now. gix refuses redirects for us, because it would follow them to any
//! host; here one is followed that stays on the server, and within what the credential is for.

use std::time::Duration;

use kedge_hub_types::causes::chain;
use kedge_platform::Link;
use reqwest::header::{AUTHORIZATION, LOCATION};

use super::super::address::{Address, Prefix, Server};
use super::super::credential::{Credentials, Reader};
use super::Fault;

/// What gix says when it refuses one.
pub(super) const SIGN: &str = "refusing to follow redirect";

/// Servers add `.git`, or tell a renamed repository's new place; more than this is a loop.
const HOPS: usize = 3;

const TIMEOUT: Duration = Duration::from_secs(20);

/// What is asked first of every repository.
const TAIL: &str = "/info/refs?service=git-upload-pack";

/// The address after its redirects.
pub(super) async fn destination(
    server: &Server,
    link: &Link,
    credentials: &Credentials,
    reader: &Reader,
) -> Result<String, Fault> {
    let failed = |error: reqwest::Error| Fault::passing(chain(&error), "check the address and the network");
    let mut client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(TIMEOUT);
    if !link.addresses.is_empty() {
        client = client.no_proxy().resolve_to_addrs(&server.host, &link.addresses);
    }
    let client = client.build().map_err(failed)?;
    let mut here = server.clone();
    for _ in 0..HOPS {
        let mut request = client.get(format!("{here}{TAIL}"));
        if let Some(value) = &link.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let answer = request.send().await.map_err(failed)?;
        if !answer.status().is_redirection() {
            return Ok(here.to_string());
        }
        let to = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        here = next(server, &here, to, credentials, reader)?;
    }
    Err(Fault::firm(format!("{server} leads from one place to the next"), "write the address where it ends"))
}

/// One step: the same server, and a repository that the same credential is for. For a workspace the same repository, in
/// another spelling: where else it may read the platform team says, and not a server.
fn next(first: &Server, here: &Server, to: &str, credentials: &Credentials, reader: &Reader) -> Result<Server, Fault> {
    let elsewhere = || {
        let shown: String = to.chars().filter(|c| !c.is_control()).take(200).collect();
        let shown = if shown.contains('@') { "another address".to_owned() } else { format!("`{shown}`") };
        Fault::firm(format!("{first} redirects to {shown}, which isn't followed"), "write the address where it is now")
    };
    let whole = match to.starts_with('/') && !to.starts_with("//") {
        true => format!("{}{to}", Server { path: String::new(), ..here.clone() }),
        false => to.to_owned(),
    };
    let base = whole.strip_suffix(TAIL).ok_or_else(elsewhere)?;
    let Ok(Address::Server(there)) = Address::parse(base) else { return Err(elsewhere()) };
    let within = match reader {
        Reader::Platform => Prefix::server_of(first).covers(&there) && credentials.are_same(first, &there, reader),
        Reader::Public | Reader::Workspaces(_) => first.is_same(&there),
    };
    match within {
        true => Ok(there),
        false => Err(elsewhere()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn server(text: &str) -> Server {
        match Address::parse(text).unwrap() {
            Address::Server(server) => server,
            Address::Local(_) => unreachable!(),
        }
    }

    #[test]
    fn a_redirect_stays_on_the_server_and_within_the_credential() {
        let credentials = Credentials::new(&[config::Credential {
            prefix: "https://h/team".to_owned(),
            platform: true,
            workspaces: vec!["a".to_owned()],
            username: None,
            secret_file: Some("/secret".into()),
            ssh_key_file: None,
        }])
        .unwrap();
        let first = server("https://h/team/app");
        let step = |to: &str| next(&first, &first, &format!("{to}{TAIL}"), &credentials, &Reader::Platform);
        assert_eq!(step("https://h/team/app.git").unwrap(), server("https://h/team/app.git"));
        assert_eq!(step("/team/renamed").unwrap(), server("https://h/team/renamed"));
        for to in [
            "https://evil/team/app",
            "http://h/team/app",
            "https://h:8443/team/app",
            "https://h@evil/team/app",
            "https://h/other/app",
            "//evil/team/app",
            "file:///etc",
            "",
        ] {
            assert!(step(to).is_err(), "{to}");
        }
        assert!(next(&first, &first, "https://h/team/app.git/login", &credentials, &Reader::Platform).is_err());
        for reader in [Reader::Public, Reader::Workspaces("x".to_owned())] {
            let step = |to: &str| next(&first, &first, &format!("{to}{TAIL}"), &credentials, &reader);
            assert_eq!(step("/team/app.git").unwrap(), server("https://h/team/app.git"));
            for to in ["/team/renamed", "/other/app", "https://evil/team/app"] {
                assert!(step(to).is_err(), "{to}");
            }
        }
    }
}
