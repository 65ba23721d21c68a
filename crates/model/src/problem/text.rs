//! A problem as plain text, the way compilers show them. Printed by the CLI; colours are its own affair.

use std::fmt::Write as _;

use super::{Excerpt, Problem, Severity};
use crate::Source;

/// Lines are shown up to this many characters; a longer one is cut around the caret.
const MAX_LINE: usize = 160;

impl Problem {
    /// `error[Code]: message`, the place, the line with a caret, further places, and the hint. Ends with a newline.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}[{}]: {}\n", self.severity.as_str(), self.code, self.message);
        // Writing to a String can't fail.
        let _ = self.write_place(&mut text);
        text
    }

    fn write_place(&self, text: &mut String) -> std::fmt::Result {
        let number = match &self.origin {
            Some(origin) if origin.line > 0 => origin.line.to_string(),
            _ => String::new(),
        };
        let gutter = " ".repeat(number.len());
        if let Some(origin) = &self.origin {
            writeln!(text, "{gutter}--> {origin}{}", elsewhere(&origin.source))?;
        }
        if let (Some(excerpt), false) = (&self.excerpt, number.is_empty()) {
            let margin = " ".repeat(excerpt.start);
            writeln!(text, "{gutter} |")?;
            writeln!(text, "{}", format!("{number} | {}", excerpt.text).trim_end())?;
            writeln!(text, "{gutter} | {margin}{}", "^".repeat(excerpt.width.max(1)))?;
        }
        for origin in &self.related {
            writeln!(text, "{gutter} = also: {origin}{}", elsewhere(&origin.source))?;
        }
        if let Some(assignment) = &self.assignment {
            let word = match self.severity {
                Severity::Error => "stops",
                Severity::Warning => "concerns",
            };
            writeln!(text, "{gutter} = {word}: {assignment}")?;
        }
        if let Some(hint) = &self.hint {
            writeln!(text, "{gutter} = hint: {hint}")?;
        }
        Ok(())
    }
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl Excerpt {
    /// The line with a caret under `width` characters from `column`, which counts from 1. What a terminal would act on
    /// is replaced, and a long line is cut.
    pub fn of_line(line: &str, column: usize, width: usize) -> Excerpt {
        let shown = |c: char| match c {
            '\t' => '→',
            c if c.is_control() => '\u{fffd}',
            c => c,
        };
        let caret = column.saturating_sub(1);
        let skip = caret.saturating_sub(MAX_LINE / 2);
        let mut text: String = line.chars().skip(skip).take(MAX_LINE).map(shown).collect();
        let mut start = caret - skip;
        if skip > 0 {
            text.insert(0, '…');
            start += 1;
        }
        if line.chars().nth(skip + MAX_LINE).is_some() {
            text.push('…');
        }
        let length = text.trim_end().chars().count();
        text.truncate(text.trim_end().len());
        let start = start.min(length);
        Excerpt { text, start, width: width.min(length - start).max(1) }
    }
}

/// ` (repo at revision)`, or nothing for a folder of this machine: there the path says it all.
fn elsewhere(source: &Source) -> String {
    if source.is_elsewhere() { format!(" ({})", source.short()) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Origin;

    fn origin(repo: &str, revision: Option<&str>, line: u32, column: u32) -> Origin {
        let source = Source { repo: repo.into(), revision: revision.map(Into::into) };
        Origin { source: Arc::new(source), file: "types/drone.yaml".into(), line, column }
    }

    #[test]
    fn problem_shows_place_line_caret_and_hint() {
        let problem = Problem::error("NotAString", "the label `edge` of ClusterType `drone` is the boolean `true`")
            .at(origin("https://git.example/cp", Some("dev@sha1:1e8f01513f0a1b2c3d4e"), 12, 11))
            .excerpt(Excerpt::of_line("    edge: true", 11, 4))
            .hint("write `edge: \"true\"`");
        assert_eq!(
            problem.to_text(),
            "\
error[NotAString]: the label `edge` of ClusterType `drone` is the boolean `true`
  --> types/drone.yaml:12:11 (https://git.example/cp at dev@1e8f01513f)
   |
12 |     edge: true
   |           ^^^^
   = hint: write `edge: \"true\"`
"
        );
    }

    #[test]
    fn problem_of_a_whole_file_shows_no_line() {
        let problem = Problem::warning("OtherKind", "Secret `x` isn't read by Kedge")
            .at(origin("./cp", None, 0, 0))
            .also_at(origin("./cp", None, 3, 1));
        assert_eq!(
            problem.to_text(),
            "\
warning[OtherKind]: Secret `x` isn't read by Kedge
--> types/drone.yaml
 = also: types/drone.yaml:3:1
"
        );
    }

    #[test]
    fn a_file_of_a_url_is_shown_with_it_also_without_a_revision() {
        let problem = Problem::error("X", "m").at(origin("https://git.example/cp", None, 2, 1)).also_at(origin(
            "https://git.example/app",
            None,
            3,
            0,
        ));
        assert_eq!(
            problem.to_text(),
            "error[X]: m\n --> types/drone.yaml:2:1 (https://git.example/cp)\n  = also: types/drone.yaml:3 (https://git.example/app)\n"
        );
    }

    #[test]
    fn a_file_name_cannot_add_lines() {
        let mut place = origin("./cp", None, 2, 1);
        place.file = "a\nerror[Y]: b\u{202e}.yaml".into();
        let problem = Problem::error("X", "m").at(place);
        assert_eq!(problem.to_text(), "error[X]: m\n --> a\\nerror[Y]: b\\u{202e}.yaml:2:1\n");
    }

    #[test]
    fn problem_without_a_place_is_one_line() {
        assert_eq!(Problem::error("NoEnvironment", "there is none").to_text(), "error[NoEnvironment]: there is none\n");
    }

    #[test]
    fn stopped_assignment_is_named() {
        let mut problem = Problem::error("TemplateMissing", "no Template `x`");
        problem.assignment = Some("drone/hello-test".into());
        assert_eq!(problem.to_text(), "error[TemplateMissing]: no Template `x`\n = stops: drone/hello-test\n");
    }

    #[test]
    fn a_warning_concerns_its_assignment_and_stops_nothing() {
        let mut problem = Problem::warning("NotRendered", "no value `x`");
        problem.assignment = Some("drone/hello-test".into());
        assert_eq!(problem.to_text(), "warning[NotRendered]: no value `x`\n = concerns: drone/hello-test\n");
    }

    #[test]
    fn excerpt_keeps_the_caret_in_place() {
        let tab = Excerpt::of_line("\tname: x  ", 1, 1);
        assert_eq!((tab.text.as_str(), tab.start, tab.width), ("→name: x", 0, 1));
        let escape = Excerpt::of_line("a: \u{1b}[31mred", 4, 1);
        assert_eq!(escape.text, "a: \u{fffd}[31mred");
        let behind = Excerpt::of_line("a:", 40, 3);
        assert_eq!((behind.start, behind.width), (2, 1));
        let wide = Excerpt::of_line("a: b", 4, 40);
        assert_eq!((wide.start, wide.width), (3, 1));
    }

    #[test]
    fn long_line_is_cut_around_the_caret() {
        let line = format!("{}X{}", "a".repeat(1000), "b".repeat(1000));
        let excerpt = Excerpt::of_line(&line, 1001, 1);
        assert_eq!(excerpt.text.chars().nth(excerpt.start), Some('X'));
        assert!(excerpt.text.starts_with('…') && excerpt.text.ends_with('…'));
        assert_eq!(excerpt.text.chars().count(), MAX_LINE + 2);
    }
}
