//! What `up` shows: lines that stay, and on a terminal a summary below them that is drawn anew. Owns stdout while `up` runs.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde_json::json;

use super::fleet::{Counts, Environment, Next, Picture, short};
use super::hub::LocalHub;
use super::place::{Left, Place};
use super::tries::{self, Try};
use super::{Form, line};
use crate::init::commands::quote;
use crate::output::harmless;

/// Where it is shown, and what is shown now.
#[derive(Debug)]
pub(super) struct Screen {
    form: Form,
    /// Drawn anew; else a line is printed for each change.
    redraws: bool,
    /// How many lines of the summary are on the screen.
    drawn: usize,
    last: Option<Picture>,
}

/// Where a terminal doesn't tell its width.
const USUAL_WIDTH: usize = 80;

impl Screen {
    pub fn new(form: Form) -> Screen {
        let redraws = form == Form::Text && io::stdout().is_terminal();
        Screen { form, redraws, drawn: 0, last: None }
    }

    /// A line that stays.
    pub fn say(&mut self, text: &str) {
        self.clear();
        match self.form {
            Form::Text => print(&format!("{}\n", harmless(text))),
            Form::Json => print(&line("note", json!({"text": text}))),
        }
        self.draw_last();
    }

    /// The page can be opened.
    pub fn ready(&mut self, place: &Place, hub: &LocalHub, link: &str, could_open: bool) {
        self.clear();
        if self.form == Form::Json {
            let folder = place.path().display().to_string();
            let token_file = hub.token_file().display().to_string();
            let told = json!({"page": link, "api": hub.address(), "tokenFile": token_file, "folder": folder});
            return print(&line("ready", told));
        }
        let bold = Style::new().bold();
        print(&format!("\n  {bold}{link}{bold:#}\n"));
        print(
            "  This link logs a browser in, once, within ten minutes; `kedge open` makes another (after `. ./env`, see below).\n",
        );
        if !could_open {
            print("  There is no xdg-open here: open it yourself.\n");
        }
        let end = match place.stays() {
            true => format!(
                "Ctrl-C ends it; the folder stays. Again: kedge up {}",
                quote(&place.path().display().to_string())
            ),
            false => "Ctrl-C stops it and removes the folder (use --keep to keep it)".to_owned(),
        };
        print(&format!("  {end}\n\n"));
    }

    /// The fleet as it is now.
    pub fn show(&mut self, picture: &Picture, since: Duration) {
        let news = self.last.as_ref() != Some(picture);
        self.last = Some(picture.clone());
        match (self.form, self.redraws) {
            (Form::Text, true) if news => {
                self.clear();
                self.draw_last();
            }
            (Form::Text, false) if news => print(&format!("{:>4} s  {}\n", since.as_secs(), in_line(picture))),
            (Form::Json, _) if news => print(&line("fleet", picture.to_json())),
            _ => {}
        }
    }

    /// Everything is there for the first time in this run.
    pub fn settled(&mut self, picture: &Picture, since: Duration, place: &Place, tries: &[Try]) {
        let placements: u64 = picture.environments.iter().map(|environment| environment.counts.converged).sum();
        if self.form == Form::Json {
            let tries: Vec<_> = tries.iter().map(|one| json!({"title": one.title, "commands": one.commands})).collect();
            let told =
                json!({"seconds": since.as_secs(), "placements": placements, "folder": place.path(), "try": tries});
            return print(&line("converged", told));
        }
        self.clear();
        print(&format!("Everything is Converged, {} s after the start: {placements} placements.\n\n", since.as_secs()));
        print(&tries::text(place, tries));
        self.draw_last();
    }

    /// The first change is everywhere.
    pub fn arrived(&mut self, since: Duration) {
        match self.form {
            Form::Text => self.say(&format!("The first change is everywhere, {} s after the start.", since.as_secs())),
            Form::Json => print(&line("arrived", json!({"seconds": since.as_secs()}))),
        }
    }

    /// What stays behind.
    pub fn farewell(&mut self, left: &Left) {
        self.clear();
        match left {
            Left::Nothing => self.say("Everything has ended, and nothing is left."),
            Left::Folder(path) => {
                self.say(&format!("Everything has ended. Again: kedge up {}", quote(&path.display().to_string())));
            }
            Left::Strangers(path) => {
                self.say(&format!("Everything has ended; what isn't ours is still in {}", path.display()));
            }
        }
        self.last = None;
    }

    /// Takes the summary off the screen.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            // To the first of its lines, then everything below goes.
            print(&format!("\u{1b}[{}F\u{1b}[0J", self.drawn));
            self.drawn = 0;
        }
    }

    fn draw_last(&mut self) {
        let Some(picture) = self.last.as_ref().filter(|_| self.redraws) else { return };
        let lines = summary(picture, width());
        self.drawn = lines.len();
        print(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }
}

/// A terminal that is gone doesn't stop what must be ended in order.
fn print(text: &str) {
    let mut out = anstream::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn width() -> usize {
    terminal_size::terminal_size().map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0)).max(20)
}

/// Shape, word and colour, as on the page.
fn parts(counts: &Counts) -> [(char, &'static str, AnsiColor, u64); 4] {
    [
        ('●', "converged", AnsiColor::Green, counts.converged),
        ('◐', "converging", AnsiColor::Blue, counts.converging),
        ('▲', "failed", AnsiColor::Red, counts.failed),
        ('○', "unknown", AnsiColor::BrightBlack, counts.unknown),
    ]
}

/// A line for each environment, and one for each rollout on its way; none wider than the terminal, or it couldn't be taken back.
fn summary(picture: &Picture, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for environment in &picture.environments {
        let mut row = Row::new(width);
        row.add(&format!("  {:<6}", environment.name), Style::new().bold());
        for (shape, word, colour, count) in parts(&environment.counts) {
            let style = if count > 0 { colour.on_default() } else { Style::new().dimmed() };
            row.add(&format!("{shape} {count} {word}"), style);
            row.add("  ", Style::new());
        }
        row.add(&format!("{} ", environment.runs()), Style::new().bold());
        if let [only] = environment.running.as_slice() {
            let in_force = only.commit == environment.commit && only.subject.is_empty();
            row.add(if in_force { &environment.subject } else { &only.subject }, Style::new());
        }
        lines.push(row.text);
        if environment.is_elsewhere() {
            let mut row = Row::new(width);
            row.add(&format!("         → {} {} ", short(&environment.commit), environment.subject), Style::new());
            row.add(&said_of_in_force(environment), Style::new().dimmed());
            lines.push(row.text);
        }
        for notice in &environment.notices {
            let mut row = Row::new(width);
            row.add(&format!("         ▲ {notice}"), AnsiColor::Red.on_default());
            lines.push(row.text);
        }
        if let Some(next) = &environment.next {
            let mut row = Row::new(width);
            row.add(&format!("         → {} {} ", short(&next.commit), next.subject), Style::new());
            row.add(said_of_next(next), Style::new().dimmed());
            lines.push(row.text);
        }
        for rollout in &environment.rollouts {
            let mut row = Row::new(width);
            row.add(&format!("         → {} ", rollout.subject), Style::new());
            row.add(&said_of(rollout), Style::new().dimmed());
            lines.push(row.text);
        }
    }
    lines
}

/// How the commit in force is, which not all clusters run.
fn said_of_in_force(environment: &Environment) -> String {
    match &environment.failed {
        Some(why) => format!("failed: {why}"),
        None => "is on its way".to_owned(),
    }
}

fn said_of_next(next: &Next) -> &'static str {
    if next.waits_for_approval { "waits for an approval" } else { "waits" }
}

fn said_of(rollout: &super::fleet::Rollout) -> String {
    let waits = if rollout.waits_for_approval { "; waits for an approval" } else { "" };
    let state = if rollout.state == "Active" { String::new() } else { format!("{}, ", rollout.state.to_lowercase()) };
    format!("(rollout {}: {state}{}{waits})", rollout.id, rollout.rings)
}

/// Everything in one line, for logs.
fn in_line(picture: &Picture) -> String {
    let of = |environment: &Environment| {
        let counts = parts(&environment.counts).into_iter().filter(|part| part.3 > 0);
        let mut shown: Vec<String> = counts.map(|(_, word, _, count)| format!("{count} {word}")).collect();
        if shown.is_empty() {
            shown.push("nothing yet".to_owned());
        }
        let at = if environment.running.is_empty() { String::new() } else { format!(" runs {}", environment.runs()) };
        let way = match environment.is_elsewhere() {
            true => format!("; {} {}", short(&environment.commit), said_of_in_force(environment)),
            false => String::new(),
        };
        let at = environment.notices.iter().fold(at, |at, notice| format!("{at} ({notice})"));
        let moving: String = environment.rollouts.iter().map(|rollout| format!(" {}", said_of(rollout))).collect();
        let next = environment.next.as_ref();
        let next = next.map(|next| format!(" ({} {})", short(&next.commit), said_of_next(next))).unwrap_or_default();
        format!("{}{at}: {}{way}{moving}{next}", environment.name, shown.join(", "))
    };
    // A reason may be of several lines.
    let told = picture.environments.iter().map(of).collect::<Vec<_>>().join(" | ").replace(['\n', '\t'], " ");
    harmless(&told).into_owned()
}

/// A line that ends at the terminal's edge.
struct Row {
    text: String,
    left: usize,
}

impl Row {
    fn new(width: usize) -> Row {
        Row { text: String::new(), left: width }
    }

    fn add(&mut self, text: &str, style: Style) {
        let shown: String = harmless(text).chars().filter(|c| *c != '\n' && *c != '\t').take(self.left).collect();
        self.left -= shown.chars().count();
        self.text.push_str(&format!("{style}{shown}{style:#}"));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use super::super::fleet::{Rollout, Runs};
    use super::*;

    fn picture() -> Picture {
        let counts = Counts { converged: 4, converging: 1, failed: 0, unknown: 2 };
        let rollout = Rollout {
            id: 7,
            subject: "Say ahoy".to_owned(),
            rings: "canary passed, rest rolling".to_owned(),
            waits_for_approval: false,
            state: "Active".to_owned(),
        };
        let next = Next { commit: "b".repeat(40), subject: "Say moin".to_owned(), waits_for_approval: true };
        let environment = Environment {
            name: "prod".to_owned(),
            clusters: 6,
            counts,
            expected: 7,
            commit: "a".repeat(40),
            subject: "Describe the platform".to_owned(),
            running: vec![Runs { commit: "a".repeat(40), ..Runs::default() }],
            failed: None,
            state: "Passed".to_owned(),
            rollouts: vec![rollout],
            notices: Vec::new(),
            next: Some(next),
            passed: Vec::new(),
        };
        Picture { environments: vec![environment] }
    }

    fn plain(lines: &[String]) -> String {
        anstream::adapter::strip_str(&lines.join("\n")).to_string()
    }

    #[test]
    fn the_summary_says_each_condition_by_shape_and_word() {
        insta::assert_snapshot!(plain(&summary(&picture(), 120)), @r"
          prod  ● 4 converged  ◐ 1 converging  ▲ 0 failed  ○ 2 unknown  aaaaaaa Describe the platform
                 → bbbbbbb Say moin waits for an approval
                 → Say ahoy (rollout 7: canary passed, rest rolling)
        ");
    }

    #[test]
    fn an_environment_that_was_rolled_back_says_so() {
        let mut picture = picture();
        picture.environments[0].notices = vec!["aaaaaaaaaa “Say ahoy” was rolled back: no; ccccccc runs".to_owned()];
        let text = plain(&summary(&picture, 120));
        assert!(text.contains("▲ aaaaaaaaaa “Say ahoy” was rolled back: no; ccccccc runs"), "{text}");
        assert!(in_line(&picture).contains("was rolled back"));
    }

    #[test]
    fn a_commit_that_nobody_runs_is_said_apart_from_what_runs() {
        let mut picture = picture();
        let prod = &mut picture.environments[0];
        (prod.next, prod.commit) = (None, "c".repeat(40));
        assert_eq!(
            in_line(&picture),
            "prod runs aaaaaaa: 4 converged, 1 converging, 2 unknown; ccccccc is on its way (rollout 7: canary passed, rest rolling)"
        );
        let prod = &mut picture.environments[0];
        prod.rollouts.clear();
        prod.failed = Some("the schema says no".to_owned());
        assert!(in_line(&picture).ends_with("2 unknown; ccccccc failed: the schema says no"));
        assert!(plain(&summary(&picture, 120)).contains("→ ccccccc Describe the platform failed: the schema says no"));
    }

    #[test]
    fn no_line_of_the_summary_is_wider_than_the_terminal() {
        for width in 0..150 {
            for line in summary(&picture(), width) {
                assert!(anstream::adapter::strip_str(&line).to_string().chars().count() <= width);
            }
        }
    }

    #[test]
    fn a_subject_from_git_cannot_move_the_cursor() {
        let mut picture = picture();
        picture.environments[0].subject = "\u{1b}[2J\n\tboo".to_owned();
        let text = plain(&summary(&picture, 120));
        assert!(text.contains("\u{fffd}[2Jboo") && !text.contains('\u{1b}'), "{text}");
        assert!(!in_line(&picture).contains('\u{1b}'));
    }

    #[test]
    fn one_line_says_everything_for_a_log() {
        insta::assert_snapshot!(in_line(&picture()), @"prod runs aaaaaaa: 4 converged, 1 converging, 2 unknown (rollout 7: canary passed, rest rolling) (bbbbbbb waits for an approval)");
    }
}
