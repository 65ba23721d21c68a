//! `kedge up`: a whole fleet on one machine, to look at: a hub, a sample platform in local Git repositories and a dozen real agents,
//! each below a folder of its own. Called by `main`; it owns the folder it is given or makes, and every process it starts.

mod agents;
mod error;
mod fleet;
mod guard;
mod hub;
mod place;
mod program;
mod screen;
mod signals;
mod tries;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use kedge_api::client::Client;
use serde_json::json;

use crate::error::Exit;
use crate::open;
use agents::Agents;
pub use error::UpError;
use fleet::{Picture, Way};
use hub::LocalHub;
use place::Place;
use screen::Screen;
use signals::Signals;

/// Start a whole fleet on this machine to try Kedge.
///
/// A hub on loopback with its page, the sample platform of `kedge init --files-only` in local Git repositories, and a dozen real
/// agents of three cluster types in dev, stage and prod, each below a folder of its own. It needs neither root nor a network, and
/// picks free ports. Ctrl-C stops it and removes its files, unless you use --keep.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Start a fleet, and remove it with Ctrl-C:
    kedge up --open

  Use a folder that is kept, and continue it the next day:
    kedge up demo --keep
    kedge up demo")]
pub struct UpArgs {
    /// The folder for everything; a folder that `kedge up --keep` left is continued and kept [default: a new temporary one]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Open the page in a browser
    #[arg(long)]
    open: bool,

    /// Keep the folder at the end
    #[arg(long)]
    keep: bool,

    /// How many agents [default: 12, or as many as the folder has]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=200))]
    agents: Option<u16>,

    /// How to print progress: `text`, or `json` with one document per line
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Form,

    /// Become a program that ends when its parent does: how the parts are started
    #[arg(long, hide = true, num_args = 2.., allow_hyphen_values = true, value_names = ["PARENT", "PROGRAM"])]
    guard: Option<Vec<std::ffi::OsString>>,
}

/// How it tells what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    Text,
    Json,
}

/// A summary is a handful of small requests to loopback.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Everything that was started, in the order in which it ends: agents, then the hub.
#[derive(Debug)]
struct Fleet {
    agents: Agents,
    hub: LocalHub,
}

pub fn run(args: &UpArgs) -> Result<Exit> {
    if let Some(words) = &args.guard {
        return guard::become_program(words);
    }
    let signals = Signals::listen()?;
    let programs = program::Programs::find()?;
    let mut place = Place::open(args.folder.as_deref(), args.keep)?;
    let mut screen = Screen::new(args.output);
    let outcome = serve(args, &signals, &programs, &mut place, &mut screen);
    // Whatever happened: first the programs have ended (`serve` dropped them), then their files go.
    let left = place.close()?;
    screen.farewell(&left);
    outcome
}

fn serve(
    args: &UpArgs,
    signals: &Signals,
    programs: &program::Programs,
    place: &mut Place,
    screen: &mut Screen,
) -> Result<Exit> {
    let begun = Instant::now();
    let wanted = args.agents.map(usize::from);
    screen.say(&match place.is_new() {
        true => format!("Making a fleet in {}", place.path().display()),
        false => format!("Going on in {}", place.path().display()),
    });
    place.make_platform()?;
    tries::check_out(place)?;
    let Some(hub) = LocalHub::start(programs, place, signals)? else { return Ok(Exit::Success) };
    let api = hub.api()?;
    tries::write_environment(place, programs, &hub)?;
    let could_open = !args.open || program::start_apart("xdg-open", &open::login_link(&api)?);
    screen.ready(place, &hub, &open::login_link(&api)?, could_open);

    let mut fleet = Fleet { agents: Agents::plan(place, wanted), hub };
    let mut told = false;
    while !signals.came(LOOK_EVERY) {
        fleet.hub.check()?;
        if !fleet.agents.is_started() && fleet::knows_the_platform(&api) {
            fleet.agents.start(programs, place, &api, &fleet.hub)?;
            screen.say(&format!("{} agents are starting", fleet.agents.count()));
        }
        for remark in fleet.agents.look(programs)? {
            screen.say(&remark);
        }
        // A hub that is busy for a moment is asked again.
        let Ok(picture) = Picture::take(&api, &fleet.agents) else { continue };
        screen.show(&picture, begun.elapsed());
        if let Err(error) = approve(&api, &picture, place) {
            screen.say(&format!("not approved yet: {error}"));
        }
        if !told && picture.is_converged() {
            told = true;
            screen.settled(&picture, begun.elapsed(), place, &tries::list(&fleet.agents));
            if !place.made().settled {
                show_the_way(place, screen, &picture)?;
            }
        }
        let change = place.made().change.clone().filter(|_| !place.made().arrived);
        if change.is_some_and(|commit| picture.has_arrived(&commit)) {
            place.change(|made| made.arrived = true)?;
            screen.arrived(begun.elapsed());
        }
    }
    screen.clear();
    screen.say("Ending…");
    fleet.end();
    Ok(Exit::Success)
}

impl Fleet {
    /// Agents first: each tells its last to a hub that still listens.
    fn end(self) {
        self.agents.end();
        self.hub.end();
    }
}

/// Pushes a first change. One that can't be pushed (somebody is at work there already) is told, and missed by nobody.
fn show_the_way(place: &mut Place, screen: &mut Screen, picture: &Picture) -> Result<(), UpError> {
    let pushed = tries::push_first_change(place);
    screen.say(&match &pushed {
        Ok(_) => "A first change was pushed to main: watch it move from dev to stage to prod.".to_owned(),
        Err(error) => format!("There is no first change to watch: {error}"),
    });
    place.change(|made| {
        (made.settled, made.change) = (true, pushed.ok());
        made.before = picture.in_production();
    })
}

/// The sample asks for a person's word before production. For what it begins with `up` gives it, and says so; so it does for the
/// change that it pushed itself, once. All else is people's.
fn approve(api: &Client, picture: &Picture, place: &mut Place) -> Result<()> {
    if !place.made().settled {
        return fleet::approve_first_content(api, picture);
    }
    let Some(change) = place.made().change.clone().filter(|_| !place.made().decided) else { return Ok(()) };
    match picture.way_of(&change, place.made().before.as_deref()) {
        Way::Wait => return Ok(()),
        Way::Approve => fleet::approve_change(api, &change)?,
        Way::Leave => {}
    }
    place.change(|made| made.decided = true)?;
    Ok(())
}

/// A document for programs that follow: one a line.
fn line(event: &str, detail: serde_json::Value) -> String {
    let mut document = json!({"event": event});
    if let (Some(document), serde_json::Value::Object(detail)) = (document.as_object_mut(), detail) {
        document.extend(detail);
    }
    format!("{document}\n")
}
