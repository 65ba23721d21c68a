//! A sentence of the hub in which moments stand as people say them, with the exact one in the element.

use askama::Template;
use askama::filters::HtmlSafe;

use super::When;

#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"{% for piece in pieces %}{% match piece %}{% when Piece::Words with (words) %}{{ words }}{% when Piece::Moment with (when) %}{{ when }}{% endmatch %}{% endfor %}"#
)]
pub struct Text {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Words(String),
    Moment(When),
}

impl HtmlSafe for Text {}

impl Text {
    pub fn of(sentence: &str) -> Text {
        let mut pieces = Vec::new();
        let mut words = String::new();
        for part in sentence.split_inclusive(' ') {
            let word = part.trim_end_matches([' ', ',', ';', '.', ')']);
            // The shortest is `2026-11-16T16:55Z`; a number alone isn't a moment.
            let is_moment = word.len() >= 17 && word.contains('T') && word.parse::<jiff::Timestamp>().is_ok();
            if !is_moment {
                words.push_str(part);
                continue;
            }
            pieces.push(Piece::Words(std::mem::take(&mut words)));
            pieces.push(Piece::Moment(When::of(word)));
            words.push_str(part.strip_prefix(word).unwrap_or_default());
        }
        pieces.push(Piece::Words(words));
        Text { pieces }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_are_said_as_people_say_them() {
        let text = Text::of("soaks 5s: it holds since 2020-11-16T16:55:02Z, until <soon>").to_string();
        assert!(text.starts_with("soaks 5s: it holds since <time datetime=\"2020-11-16T16:55:02Z\""), "{text}");
        assert!(text.ends_with(">2020-11-16</time>, until &#60;soon&#62;"), "{text}");
    }

    proptest! {
        #[test]
        fn no_sentence_becomes_markup(sentence in ".{0,120}") {
            prop_assert!(!Text::of(&sentence).to_string().replace("<time ", "").replace("</time>", "").contains('<'));
        }
    }
}
