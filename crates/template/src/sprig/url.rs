//! `urlParse` and `urlJoin`, by the rules of Go's net/url.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::rc::Rc;

use crate::function::{Function, Meter, Param};
use crate::quote::quote;
use crate::value::{Key, Value};

use super::arguments::{Answer, NIL_DEREFERENCE, fixed, give, map, repair, text};

pub(super) const FUNCTIONS: &[Function] =
    &[fixed("urlParse", &[Param::Str], parse_url), fixed("urlJoin", &[Param::Dict], join_url)];

/// A part of a URL; each leaves other characters as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Fragment,
}

/// What `urlParse` takes apart. Texts are unescaped.
#[derive(Debug, Default)]
struct Url {
    scheme: String,
    opaque: String,
    user: Option<User>,
    host: String,
    path: String,
    query: String,
    fragment: String,
}

#[derive(Debug)]
struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

impl Part {
    /// Whether the part keeps this byte unescaped.
    fn keeps(self, byte: u8) -> bool {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => true,
            b'$' | b'&' | b'+' | b'=' | b',' | b';' => true,
            b'!' | b'(' | b')' | b'*' => matches!(self, Part::Fragment | Part::Host | Part::Zone),
            b':' => self != Part::User,
            b'/' => matches!(self, Part::Path | Part::Fragment),
            b'@' => matches!(self, Part::Path | Part::Fragment),
            b'?' => self == Part::Fragment,
            b'[' | b']' | b'<' | b'>' | b'"' | b'\'' => matches!(self, Part::Host | Part::Zone),
            _ => false,
        }
    }

    fn escape(self, bytes: &[u8]) -> String {
        let mut out = String::with_capacity(bytes.len());
        for &byte in bytes {
            if self.keeps(byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    }

    fn unescape(self, text: &str) -> Result<Vec<u8>, String> {
        let bytes = text.as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let in_host = matches!(self, Part::Host | Part::Zone);
            if byte != b'%' {
                if in_host && byte < 0x80 && !self.keeps(byte) {
                    return Err(format!(
                        "invalid character {} in host name",
                        quote(char::from(byte).encode_utf8(&mut [0; 4]))
                    ));
                }
                out.push(byte);
                at += 1;
                continue;
            }
            let escape = &bytes[at..bytes.len().min(at + 3)];
            let refuse = || Err(format!("invalid URL escape {}", quote(&repair(escape))));
            let digits = (hex(escape.get(1)), hex(escape.get(2)));
            let (Some(high), Some(low)) = digits else { return refuse() };
            let value = high << 4 | low;
            let percent = escape == b"%25";
            if self == Part::Host && high < 8 && !percent {
                return refuse();
            }
            if self == Part::Zone && !percent && value != b' ' && !Part::Host.keeps(value) {
                return refuse();
            }
            out.push(value);
            at += 3;
        }
        Ok(out)
    }
}

fn hex(byte: Option<&u8>) -> Option<u8> {
    char::from(*byte?).to_digit(16).map(|digit| digit as u8)
}

impl User {
    fn parse(text: &str) -> Result<User, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !text.chars().all(allowed) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = match text.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (text, None),
        };
        let name = Part::User.unescape(name)?;
        Ok(User { name, password: password.map(|password| Part::User.unescape(password)).transpose()? })
    }

    fn text(&self) -> String {
        let mut text = Part::User.escape(&self.name);
        if let Some(password) = &self.password {
            text.push(':');
            text.push_str(&Part::User.escape(password));
        }
        text
    }
}

impl Url {
    fn parse(text: &str) -> Result<Url, String> {
        let (address, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Url::parse_address(address).map_err(|reason| format!("parse {}: {reason}", quote(address)))?;
        url.fragment =
            repair(&Part::Fragment.unescape(fragment).map_err(|reason| format!("parse {}: {reason}", quote(text)))?);
        Ok(url)
    }

    fn parse_address(text: &str) -> Result<Url, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text == "*" {
            return Ok(Url { path: text.to_owned(), ..Url::default() });
        }
        let (scheme, rest) = split_scheme(text)?;
        let mut url = Url { scheme: scheme.to_ascii_lowercase(), ..Url::default() };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query.to_owned();
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.opaque = rest.to_owned();
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let mut path = rest;
        if let Some(after) = rest.strip_prefix("//").filter(|after| !scheme.is_empty() || !after.starts_with('/')) {
            let (authority, tail) = after.split_at(after.find('/').unwrap_or(after.len()));
            url.take_authority(authority)?;
            path = tail;
        }
        url.path = repair(&Part::Path.unescape(path)?);
        Ok(url)
    }

    fn take_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = parse_host(&self.scheme, host)?;
        self.user = user.map(User::parse).transpose()?;
        Ok(())
    }

    /// The host without port and brackets.
    fn hostname(&self) -> &str {
        let host = match self.host.rfind(':').filter(|&colon| is_port(&self.host[colon..])) {
            Some(colon) => &self.host[..colon],
            None => &self.host,
        };
        host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host)
    }

    fn join(&self) -> String {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out.push_str(&self.scheme);
            out.push(':');
        }
        if self.opaque.is_empty() {
            if !self.host.is_empty() || self.user.is_some() || !self.scheme.is_empty() && !self.path.is_empty() {
                out.push_str("//");
            }
            if let Some(user) = &self.user {
                out.push_str(&user.text());
                out.push('@');
            }
            out.push_str(&Part::Host.escape(self.host.as_bytes()));
            let path = if self.path == "*" { "*".to_owned() } else { Part::Path.escape(self.path.as_bytes()) };
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                out.push('/');
            }
            if out.is_empty() && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
                out.push_str("./");
            }
            out.push_str(&path);
        } else {
            out.push_str(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push('?');
            out.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push('#');
            out.push_str(&Part::Fragment.escape(self.fragment.as_bytes()));
        }
        out
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// Nothing, or a colon and digits, which may be none.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return parse_address_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Only web addresses must have a single colon; databases list several hosts with theirs.
    let web = matches!(scheme, "http" | "https");
    if let Some(colon) = if web { host.find(':') } else { host.rfind(':') } {
        let port = &host[colon..];
        if !is_port(port) {
            return Err(format!("invalid port {} after host", quote(port)));
        }
    }
    Ok(repair(&Part::Host.unescape(host)?))
}

/// `[address]:port`, where the address may name a zone after `%25`.
fn parse_address_literal(host: &str) -> Result<String, String> {
    let close = host.rfind(']').ok_or_else(|| "missing ']' in host".to_owned())?;
    let port = &host[close + 1..];
    if !is_port(port) {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    let inner = &host[1..close];
    let address = match inner.find("%25") {
        Some(zone) => {
            let mut address = Part::Host.unescape(&inner[..zone])?;
            address.extend(Part::Zone.unescape(&inner[zone..])?);
            repair(&address)
        }
        None => repair(&Part::Host.unescape(inner)?),
    };
    check_address(&address)?;
    Ok(format!("[{address}]{port}"))
}

fn check_address(address: &str) -> Result<(), String> {
    let refuse = |reason: &str| Err(format!("invalid host: ParseAddr({}): {reason}", quote(address)));
    if !address.contains(':') {
        if address.parse::<std::net::Ipv4Addr>().is_ok() {
            return Err("invalid IP-literal".to_owned());
        }
        return refuse("unable to parse IP");
    }
    let (number, zone) = match address.split_once('%') {
        Some((number, zone)) => (number, Some(zone)),
        None => (address, None),
    };
    if zone == Some("") {
        return refuse("zone must be a non-empty string");
    }
    if number.parse::<Ipv6Addr>().is_err() {
        return refuse("unexpected character");
    }
    Ok(())
}

fn parse_url(meter: &mut Meter, args: &[Value]) -> Answer {
    let text = text(args, 0)?;
    meter.bytes(text.len() as u64 * 2)?;
    let url = Url::parse(text).map_err(|reason| format!("unable to parse url: {reason}"))?;
    let entries = [
        ("scheme", url.scheme.clone()),
        ("host", url.host.clone()),
        ("hostname", url.hostname().to_owned()),
        ("path", url.path.clone()),
        ("query", url.query.clone()),
        ("opaque", url.opaque.clone()),
        ("fragment", url.fragment.clone()),
        ("userinfo", url.user.as_ref().map(User::text).unwrap_or_default()),
    ];
    let entries: BTreeMap<Key, Value> =
        entries.into_iter().map(|(key, value)| (Key::Str(Rc::from(key)), Value::str(value))).collect();
    Ok(Value::dict(entries))
}

fn join_url(meter: &mut Meter, args: &[Value]) -> Answer {
    let map = map(args, 0)?;
    let part = |key: &str| match map.and_then(|map| map.entries.borrow().get(&Key::Str(Rc::from(key))).cloned()) {
        None => Ok(String::new()),
        Some(Value::Str(text)) => Ok(text.to_string()),
        Some(Value::Nil) => Err(NIL_DEREFERENCE.to_owned()),
        Some(other) => Err(format!("unable to parse {key} key, must be of type string, but {} found", other.kind())),
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        user: None,
    };
    let user = part("userinfo")?;
    if !user.is_empty() {
        url.user = Url::parse(&format!("proto://{user}@host"))
            .map_err(|reason| format!("unable to parse userinfo in dict: {reason}"))?
            .user;
    }
    give(meter, url.join())
}
