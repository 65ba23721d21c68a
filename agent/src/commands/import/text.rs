//! What a person reads of an import.

use std::fmt::Write as _;
use std::path::Path;

use kedge_model::shown::cell;

use super::Taken;
use crate::airgap::enrol::Enrolled;
use crate::airgap::import::Brought;
use crate::commands::output::time;
use crate::commands::progress::bytes;
use crate::join::Welcome;

/// A path isn't longer.
pub const LONGEST: usize = 4096;

/// Something was refused, or is missing.
pub fn has_findings(taken: &Taken) -> bool {
    matches!(taken, Taken::Bundle(brought) if !brought.refused.is_empty() || !brought.missing.is_empty())
}

pub fn of(taken: &Taken, path: &Path) -> String {
    let file = name(path);
    match taken {
        Taken::Joined(enrolled) => format!("{file}: {}", joined(enrolled)),
        Taken::Bundle(brought) => format!("{file}: {}", bundle(brought)),
        Taken::Passed(what) => format!("{file}: passed over, it is {what}\n"),
    }
}

/// A stick brings the names of its files too: one with a line break in it doesn't begin a line of ours.
pub fn name(path: &Path) -> String {
    cell(&path.display().to_string(), LONGEST)
}

fn joined(enrolled: &Enrolled) -> String {
    let Welcome { cluster, name, hub, stream } = &enrolled.welcome;
    let mut text = match enrolled.known {
        true => format!("this host is {name} ({cluster}) already\n"),
        false => format!("joined {hub} as {name} ({cluster}), stream {stream}\n"),
    };
    for authority in &enrolled.authorities {
        _ = writeln!(text, "  authority {authority}");
    }
    text
}

fn bundle(brought: &Brought) -> String {
    let environment = brought.environment.as_ref().map(|name| format!(" for {name}")).unwrap_or_default();
    let mut text = format!("bundle of {}{environment}\n", time(brought.created_at));
    let mut line = |what: String| _ = writeln!(text, "  {what}");
    if let Some(version) = brought.keys {
        line(format!("key set {version} of the hub"));
    }
    if let Some(sequence) = brought.membership {
        line(format!("membership {sequence}"));
    }
    if let Some((stream, generation)) = &brought.state {
        line(format!("desired state {generation} of {stream}"));
    }
    if brought.holds {
        line("holds of people at the hub".to_owned());
    }
    if brought.copied + brought.present > 0 {
        let (copied, size, present) = (brought.copied, bytes(brought.copied_bytes), brought.present);
        line(format!("{copied} blobs copied ({size}), {present} were here"));
    }
    if brought.site > 0 {
        line(format!("{} documents for others of the site", brought.site));
    }
    if !brought.missing.is_empty() {
        let size = bytes(brought.missing.iter().fold(0, |sum, blob| sum + blob.size));
        let count = brought.missing.len();
        line(format!("missing: {count} blobs ({size}) are neither here nor in the bundle; export it without --since"));
    }
    for why in &brought.refused {
        line(format!("refused: {why}"));
    }
    if !brought.is_news() && brought.refused.is_empty() {
        let what = if brought.ours { "nothing new" } else { "nothing in it is for this host" };
        line(what.to_owned());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_with_a_line_break_begins_no_line_of_its_own() {
        let path = Path::new("/media/stick/x.kedge: joined\nbundle of 2026\u{1b}[2K.kedge");
        let said = of(&Taken::Passed("for others".to_owned()), path);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("joined\u{fffd}bundle"), "{said}");
        assert_eq!(name(Path::new("/media/stick/plant.kedge")), "/media/stick/plant.kedge");
    }
}
