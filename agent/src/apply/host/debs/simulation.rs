//! What `apt-get --simulate` says it would do, as data. Prepare compares it with what was asked; execute with its step.

use std::collections::BTreeMap;

/// The outcome of a simulation, by name; a foreign architecture's deb is called `name:architecture`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulation {
    pub install: BTreeMap<String, Arrival>,
    /// With the version that goes.
    pub remove: BTreeMap<String, String>,
    /// What apt printed, for people.
    pub text: String,
}

/// A deb that would be unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub version: String,
    pub architecture: String,
    /// The version that is there now.
    pub instead_of: Option<String>,
}

/// More lines than any change has: a whole release has under 100,000 packages.
const MAX_LINES: usize = 200_000;

impl Simulation {
    pub fn parse(text: &str, native: &str) -> Simulation {
        let mut simulation = Simulation { text: text.to_owned(), ..Simulation::default() };
        for line in text.lines().take(MAX_LINES) {
            if let Some((name, arrival)) = line.strip_prefix("Inst ").and_then(arrival) {
                simulation.install.insert(called(name, &arrival.architecture, native), arrival);
            } else if let Some(rest) = line.strip_prefix("Remv ").or_else(|| line.strip_prefix("Purg ")) {
                let (name, version) = departure(rest);
                let architecture = name.split_once(':').map_or(native, |(_, architecture)| architecture);
                simulation.remove.insert(called(name, architecture, native), version.to_owned());
            }
        }
        // A deb that is removed only to be unpacked again in the same run isn't gone.
        simulation.remove.retain(|name, _| !simulation.install.contains_key(name));
        simulation
    }

    pub fn is_empty(&self) -> bool {
        self.install.is_empty() && self.remove.is_empty()
    }
}

/// The name under which a deb is known: apt and dpkg leave the host's own architecture out.
pub fn called(name: &str, architecture: &str, native: &str) -> String {
    let bare = name.split_once(':').map_or(name, |(bare, _)| bare);
    if architecture == native || architecture == "all" { bare.to_owned() } else { format!("{bare}:{architecture}") }
}

/// `name [old] (new origin [architecture]) […]`
fn arrival(rest: &str) -> Option<(&str, Arrival)> {
    let (name, rest) = rest.split_once(' ')?;
    let (before, new) = rest.split_once('(')?;
    let instead_of = before.trim().strip_prefix('[').and_then(|old| old.strip_suffix(']')).map(str::to_owned);
    let (inside, _) = new.split_once("])")?;
    let (offer, architecture) = inside.rsplit_once('[')?;
    let version = offer.split_whitespace().next()?;
    let filled = !name.is_empty() && !architecture.is_empty();
    filled.then(|| (name, Arrival { version: version.to_owned(), architecture: architecture.to_owned(), instead_of }))
}

/// `name [version] […]`
fn departure(rest: &str) -> (&str, &str) {
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let version = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or("", |(version, _)| version);
    (name, version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAID: &str = "Reading package lists...
The following packages will be REMOVED:
  gone
Remv gone [1:0.9-1] [other:amd64 ]
Purg gone [1:0.9-1]
Inst appextra (1.0 localhost [amd64])
Inst app [1.0] (2.0 localhost, local-deb [amd64]) [user:amd64 ]
Inst libc6:i386 (2.36-9 Debian:12.1/stable (main) [i386])
Inst docs [1] (2 Debian:12/stable [all]) []
Remv swapped [3]
Inst swapped (4 x [amd64])
Inst broken line
Conf app (2.0 localhost [amd64])
";

    #[test]
    fn what_comes_and_goes_is_read() {
        let simulation = Simulation::parse(SAID, "amd64");
        let come: Vec<_> =
            simulation.install.iter().map(|(name, arrival)| format!("{name}={}", arrival.version)).collect();
        assert_eq!(come, ["app=2.0", "appextra=1.0", "docs=2", "libc6:i386=2.36-9", "swapped=4"]);
        assert_eq!(simulation.install["app"].instead_of.as_deref(), Some("1.0"));
        assert_eq!(simulation.install["appextra"].instead_of, None);
        assert_eq!(simulation.install["docs"].architecture, "all");
        assert_eq!(simulation.remove, BTreeMap::from([("gone".to_owned(), "1:0.9-1".to_owned())]));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "((Inst|Remv|Purg|Conf) [a-z:. ()\\[\\]\n]{0,40}){0,6}") {
            let simulation = Simulation::parse(&text, "amd64");
            prop_assert!(simulation.install.len() + simulation.remove.len() <= text.lines().count());
        }
    }
}
