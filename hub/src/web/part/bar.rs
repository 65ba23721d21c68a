//! The only chart for a group: a bar of four parts, each a link to the list behind it, with its numbers in words.

use askama::Template;
use askama::filters::HtmlSafe;

use super::tone::Tone;
use crate::web::links;

/// How many are in which condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Four {
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    pub unknown: u64,
}

/// The bar and its numbers.
#[derive(Clone, Debug, Template)]
#[template(path = "part/bar.html")]
pub struct Bar {
    four: Four,
    parts: Vec<Part>,
    /// Of a change on its way: those that haven't got it. The bar stays empty there.
    rest: u64,
    rest_link: String,
}

#[derive(Clone, Debug)]
struct Part {
    tone: Tone,
    count: u64,
    /// In hundredths of the bar.
    from: f64,
    width: f64,
    link: String,
}

/// A single cluster among a hundred thousand is still seen.
const LEAST: f64 = 1.5;

impl HtmlSafe for Bar {}

impl Four {
    pub fn of(self, tone: Tone) -> u64 {
        match tone {
            Tone::Converged => self.converged,
            Tone::Converging => self.converging,
            Tone::Failed => self.failed,
            Tone::Unknown => self.unknown,
        }
    }

    pub fn add(&mut self, tone: Tone, count: u64) {
        match tone {
            Tone::Converged => self.converged += count,
            Tone::Converging => self.converging += count,
            Tone::Failed => self.failed += count,
            Tone::Unknown => self.unknown += count,
        }
    }

    pub fn total(self) -> u64 {
        self.converged + self.converging + self.failed + self.unknown
    }

    /// With links to the list at `path`, narrowed by the pairs and by the condition.
    pub fn bar(self, path: &str, pairs: &[(&str, &str)]) -> Bar {
        let link = |tone: Tone| {
            let narrowed: Vec<(&str, &str)> =
                pairs.iter().copied().chain(std::iter::once(("condition", tone.word()))).collect();
            links::query(path, &narrowed)
        };
        self.bar_among(0, String::new(), link)
    }

    /// The same for a change that `rest` haven't got yet.
    pub fn bar_among(self, rest: u64, rest_link: String, link: impl Fn(Tone) -> String) -> Bar {
        let shown: Vec<Tone> = Tone::ALL.into_iter().filter(|tone| self.of(*tone) > 0).collect();
        let total = self.total().saturating_add(rest).max(1);
        let wide = |count: u64| (count as f64 * 100.0 / total as f64).max(LEAST);
        let raw: Vec<f64> = shown.iter().map(|tone| wide(self.of(*tone))).collect();
        let empty = if rest > 0 { wide(rest) } else { 0.0 };
        let scale = 100.0 / (raw.iter().sum::<f64>() + empty).max(1.0);
        let mut from = 0.0;
        let parts = shown.into_iter().zip(raw).map(|(tone, width)| {
            let part = Part { tone, count: self.of(tone), from, width: width * scale, link: link(tone) };
            from += width * scale;
            part
        });
        Bar { four: self, parts: parts.collect(), rest, rest_link }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_parts_fill_the_bar_and_none_is_lost(counts in prop::array::uniform4(0u64..1_000_000)) {
            let [converged, converging, failed, unknown] = counts;
            let four = Four { converged, converging, failed, unknown };
            let bar = four.bar("/conditions", &[("environment", "dev")]);
            prop_assert_eq!(bar.parts.len(), counts.iter().filter(|count| **count > 0).count());
            if four.total() > 0 {
                let filled: f64 = bar.parts.iter().map(|part| part.width).sum();
                prop_assert!((filled - 100.0).abs() < 0.001);
                prop_assert!(bar.parts.iter().all(|part| part.width >= 1.0));
            }
        }
    }
}
