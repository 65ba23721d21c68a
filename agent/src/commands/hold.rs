//! `kedge-agent hold`: a technician on the spot says "don't touch this", here or on another cluster of the site. Called by `main`.

use std::time::Duration;

use kedge_model::quantity::parse_duration;
use kedge_model::wire::SiteHolds;

use super::elsewhere::{self, Target};
use super::error::{CommandError, Exit};
use super::output::print;
use super::person;
use crate::clock::{Clock as _, SystemClock};
use crate::holds::{HoldError, Holds};
use crate::overview::Overview;
use crate::paths::Paths;
use crate::peers::shown::Shown;

/// Hold an assignment: the agent doesn't change it.
///
/// While an assignment is held, the agent doesn't change, repair or remove it. Its status is still reported, and the hub shows
/// the hold with your name. It works without a network; the hub learns of it later. With --cluster, the assignment is held on
/// another cluster of the same site: the agents of the site carry the hold, with or without a hub. A hold made on the host itself
/// lasts until it is released. A hold made elsewhere ends by itself, and people at the hub can lift it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Prevent changes while you work on the camera:
    sudo kedge-agent hold camera-line --reason 'new lens, until noon'

  Hold it on another cluster of the site:
    sudo kedge-agent hold --cluster press-3 camera-line --reason 'new lens, until noon'

  See who holds what:
    sudo kedge-agent status

  Release it:
    sudo kedge-agent unhold camera-line")]
pub struct HoldArgs {
    /// Its name, as status shows it
    assignment: String,
    /// The reason, shown with the hold on the hub
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// On another cluster of the site: its name, or its id
    #[arg(long, value_name = "NAME|ID")]
    cluster: Option<String>,
    /// With --cluster: how long it is in force, at most 90d [default: 7d]
    #[arg(long = "for", value_name = "DURATION", requires = "cluster", value_parser = lasts)]
    lasts: Option<Duration>,
}

pub fn run(args: &HoldArgs, paths: &Paths) -> Result<Exit, CommandError> {
    let overview = Overview::read(paths)?;
    let identity = person::identity(paths)?;
    if let Some(cluster) = &args.cluster
        && let Target::Other(target) = elsewhere::find(&overview, Shown::read(paths).as_ref(), cluster)?
    {
        let lasts = args.lasts.unwrap_or(SiteHolds::LASTS);
        return elsewhere::hold(&target, &identity, paths, &args.assignment, &args.reason, lasts);
    }
    let name = &overview.find(&args.assignment)?.name;
    let by = person::name();
    Holds::of(paths).hold(identity.signing_key(), name, &by, &args.reason, SystemClock.now()).map_err(failed)?;
    print(&format!("{name} is held by {by}: it isn't changed, repaired or removed until kedge-agent unhold {name}\n"))?;
    Ok(Exit::Success)
}

fn lasts(text: &str) -> Result<Duration, String> {
    let lasts = parse_duration(text).map_err(|error| error.to_string())?;
    match lasts.as_secs() {
        0 => Err("is no time at all".to_owned()),
        _ if lasts > SiteHolds::LASTS_AT_MOST => Err("is more than 90d: hold it on the host itself".to_owned()),
        _ => Ok(lasts),
    }
}

pub fn failed(error: HoldError) -> CommandError {
    CommandError::failed("the hold can't be changed", error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::commands::sample;
    use crate::commands::unhold::{self, UnholdArgs};
    use crate::holds::Writer;
    use crate::link::fake::Authority;

    fn args(name: &str) -> HoldArgs {
        HoldArgs { assignment: name.to_owned(), reason: "new lens".to_owned(), cluster: None, lasts: None }
    }

    #[test]
    fn a_hold_is_shown_with_its_person_and_goes_again() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        sample::write(&paths, &sample::fine("camera"));
        assert!(matches!(run(&args("camera"), &paths), Err(CommandError::NotJoined)));
        sample::join(&paths, &Authority::new(), "https://127.0.0.1:1");
        assert_eq!(run(&args("drone/camera"), &paths).unwrap(), Exit::Success);
        let overview = Overview::read(&paths).unwrap();
        let [hold] = &overview.holds[..] else { unreachable!() };
        assert_eq!(
            (hold.by.as_str(), hold.writer, hold.reason.as_str()),
            (person::name().as_str(), Writer::Technician, "new lens")
        );
        assert!(overview.assignments[0].held);

        let back = UnholdArgs { assignment: "camera".to_owned(), cluster: None, peers: false };
        assert_eq!(unhold::run(&back, &paths).unwrap(), Exit::Success);
        assert!(Overview::read(&paths).unwrap().holds.is_empty());
    }

    #[test]
    fn what_isnt_here_cant_be_held() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        sample::join(&paths, &Authority::new(), "https://127.0.0.1:1");
        sample::write(&paths, &sample::fine("camera"));
        let error = run(&args("camra"), &paths).unwrap_err().to_text();
        assert!(
            error.contains("there is no assignment `camra`") && error.contains("did you mean `camera`?"),
            "{error}"
        );
    }
}
