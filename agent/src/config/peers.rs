//! The table `[peers]`: whether and how this agent shares with the others of its site.

use std::net::SocketAddr;

use toml::de::DeValue;

use super::reader::{Reader, kind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// None: when the membership names a site.
    pub enabled: Option<bool>,
    /// Where peers are let in; another port when it is taken.
    pub listen: SocketAddr,
    /// None: all but the loopback.
    pub interfaces: Option<Vec<String>>,
    pub mdns: bool,
    /// `host:port` of peers that multicast doesn't reach.
    pub fixed: Vec<String>,
    /// Whether it may carry for the others.
    pub uplink: bool,
}

pub(super) const KEYS: [&str; 6] = ["enabled", "listen", "interfaces", "mdns", "static", "uplink"];
const UPLINK: [(&str, bool); 2] = [("auto", true), ("never", false)];
/// Beside the hub's own port in the documentation; free on most hosts.
const LISTEN: &str = "[::]:7443";
/// A site has 256 agents at most.
const MAX_FIXED: usize = 256;
const MAX_INTERFACES: usize = 16;

impl Default for Peers {
    fn default() -> Peers {
        let listen = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 7443));
        Peers { enabled: None, listen, interfaces: None, mdns: true, fixed: Vec::new(), uplink: true }
    }
}

impl Reader<'_> {
    pub(super) fn peers(&mut self) -> Peers {
        let mut peers = Peers::default();
        let Some(mut table) = self.table("peers") else { return peers };
        peers.enabled = table.enabled();
        if let Some(text) = table.text("listen", "an address", LISTEN) {
            match text.value.parse() {
                Ok(address) => peers.listen = address,
                Err(_) => table.wrong(text.span, "`listen` is no address", format!("write \"{LISTEN}\"")),
            }
        }
        let is_interface = |name: &str| !name.is_empty() && name.len() < 16 && !name.contains(['/', ' ']);
        peers.interfaces = table.list("interfaces", MAX_INTERFACES, "[\"eth0\"]", is_interface);
        peers.mdns = table.flag("mdns").unwrap_or(peers.mdns);
        peers.fixed = table.list("static", MAX_FIXED, "[\"press-2:7443\"]", is_place).unwrap_or_default();
        peers.uplink = table.choice("uplink", &UPLINK).unwrap_or(peers.uplink);
        table.refuse_the_rest(&KEYS);
        self.join(table);
        peers
    }

    fn enabled(&mut self) -> Option<bool> {
        let value = self.take("enabled")?;
        let span = value.span();
        match value.into_inner() {
            DeValue::Boolean(flag) => Some(flag),
            DeValue::String(text) if text == "auto" => None,
            other => {
                let message = format!("`enabled` is {}, not \"auto\", true or false", kind(&other));
                self.wrong(span, message, "write enabled = \"auto\"");
                None
            }
        }
    }

    fn list(&mut self, key: &str, most: usize, example: &str, fits: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let value = self.take(key)?;
        let span = value.span();
        let DeValue::Array(items) = value.into_inner() else {
            self.wrong(span, format!("`{key}` is no list"), format!("write {key} = {example}"));
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            let place = item.span();
            match item.into_inner() {
                DeValue::String(text) if fits(&text) => texts.push(text.into_owned()),
                _ => self.wrong(place, format!("this can't be in `{key}`"), format!("write {key} = {example}")),
            }
        }
        if texts.len() > most {
            self.wrong(span, format!("`{key}` has more than {most} entries"), "write fewer");
            return None;
        }
        Some(texts)
    }
}

/// `host:port`, `[v6]:port`.
fn is_place(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    let known = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.len() <= 253 && host.chars().all(is_name),
    };
    known && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::{Config, ConfigError};

    #[test]
    fn the_table_is_read_and_what_is_wrong_in_it_is_said() {
        let text = "[peers]\nenabled = false\nlisten = \"10.0.0.1:9000\"\ninterfaces = [\"br0\"]\nmdns = false\n\
                    static = [\"press-2:7443\", \"[fd00::1]:7443\"]\nuplink = \"never\"\n";
        let peers = Config::of_text("agent.toml", text).unwrap().peers;
        assert_eq!((peers.enabled, peers.mdns, peers.uplink), (Some(false), false, false));
        assert_eq!((peers.listen.port(), peers.interfaces.unwrap().len(), peers.fixed.len()), (9000, 1, 2));
        let wrong = "[peers]\nenabled = 3\nlisten = \"here\"\nstatic = [\"press-2\"]\nuplnk = \"auto\"\n";
        let Err(ConfigError::Invalid { report }) = Config::of_text("agent.toml", wrong) else { unreachable!() };
        assert_eq!(report.matches(": error: ").count(), 4, "{report}");
        assert!(report.contains("did you mean `uplink`?"), "{report}");
    }
}
