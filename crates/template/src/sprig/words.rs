//! `snakecase` and `kebabcase`: cuts a text into words by the kinds of its characters and joins them.

use super::case::{LETTER, NUMBER, PUNCTUATION, UPPER, to_lower};

/// What a word is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Past the end, or nothing but replacement characters.
    Nothing,
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

pub(super) fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

/// A letter of an alphabet: Chinese, Japanese and Korean characters aren't.
fn is_alphabetic(c: char) -> bool {
    LETTER.has(c) && !matches!(c, '\u{4e00}'..='\u{9fcc}' | '\u{3400}'..='\u{4d85}' | '\u{20000}'..='\u{2b81d}')
}

/// The next character that isn't U+FFFD, with all the bytes up to its end; the previous one when there is none.
fn next_valid(text: &str, previous: char) -> (char, usize) {
    let mut size = 0;
    for c in text.chars() {
        size += c.len_utf8();
        if c != char::REPLACEMENT_CHARACTER {
            return (c, size);
        }
    }
    (previous, size)
}

/// Takes characters while they fit; gives the rest, the last character looked at and the size of the last one taken.
fn take_while(mut rest: &str, mut last: char, fits: impl Fn(char) -> bool) -> (&str, char, usize) {
    let mut taken = 0;
    while !rest.is_empty() {
        let (c, size) = next_valid(rest, last);
        last = c;
        if !fits(c) {
            break;
        }
        taken = size;
        rest = &rest[size..];
    }
    (rest, last, taken)
}

/// The first word, its kind, and what follows it.
fn next_word(text: &str) -> (Kind, &str, &str) {
    if text.is_empty() {
        return (Kind::Nothing, "", "");
    }
    let (first, size) = next_valid(text, char::REPLACEMENT_CHARACTER);
    let tail = &text[size..];
    let small = |c: char| is_alphabetic(c) && !UPPER.has(c);
    let (kind, rest) = if first == char::REPLACEMENT_CHARACTER {
        (Kind::Nothing, tail)
    } else if is_connector(first) {
        (Kind::Connector, take_while(tail, first, is_connector).0)
    } else if PUNCTUATION.has(first) {
        (Kind::Punctuation, take_while(tail, first, |c| PUNCTUATION.has(c)).0)
    } else if UPPER.has(first) {
        (Kind::Upper, after_capital(text, tail, first))
    } else if is_alphabetic(first) {
        (Kind::Letters, take_while(tail, first, small).0)
    } else if NUMBER.has(first) {
        (Kind::Number, take_while(tail, first, |c| NUMBER.has(c)).0)
    } else {
        let fits = |c: char| !is_connector(c) && !is_alphabetic(c) && !NUMBER.has(c) && !PUNCTUATION.has(c);
        (Kind::Other, take_while(tail, first, fits).0)
    };
    let (word, rest) = text.split_at(text.len() - rest.len());
    (kind, word, rest)
}

/// `HTTPStatus` is `HTTP` and `Status`: the last of several capitals belongs to the small letters that follow.
fn after_capital<'a>(text: &'a str, tail: &'a str, first: char) -> &'a str {
    if tail.is_empty() {
        return tail;
    }
    let (second, size) = next_valid(tail, first);
    if UPPER.has(second) {
        let (rest, last, taken) = take_while(&tail[size..], second, |c| UPPER.has(c));
        let taken = if taken == 0 { size } else { taken };
        if !rest.is_empty() && is_alphabetic(last) {
            return &text[text.len() - rest.len() - taken..];
        }
        return rest;
    }
    if is_alphabetic(second) {
        return take_while(&tail[size..], second, |c| is_alphabetic(c) && !UPPER.has(c)).0;
    }
    tail
}

fn write(out: &mut String, kind: Kind, word: &str, connector: char) {
    if !matches!(kind, Kind::Upper | Kind::Connector) {
        out.push_str(word);
        return;
    }
    out.extend(word.chars().map(|c| {
        if is_connector(c) {
            connector
        } else if UPPER.has(c) {
            to_lower(c)
        } else {
            c
        }
    }));
}

/// Writes words and numbers as long as they follow each other, then says what comes next.
fn write_run<'a>(out: &mut String, mut word: (Kind, &'a str, &'a str), connector: char) -> (Kind, &'a str, &'a str) {
    while matches!(word.0, Kind::Letters | Kind::Number) {
        write(out, word.0, word.1, connector);
        word = next_word(word.2);
    }
    if !matches!(word.0, Kind::Nothing | Kind::Punctuation | Kind::Connector) {
        out.push(connector);
    }
    word
}

/// `FirstName` to `first_name`: small letters, with the connector between the words.
pub(super) fn connect(text: &str, connector: char) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut word = next_word(text);
    while !word.2.is_empty() {
        if word.0 != Kind::Connector {
            write(&mut out, word.0, word.1, connector);
        }
        let (before, last, _) = word;
        word = next_word(word.2);
        match before {
            Kind::Number => word = write_run(&mut out, word, connector),
            Kind::Connector => write(&mut out, before, last, connector),
            Kind::Punctuation => {}
            _ => word = after_letters(&mut out, word, connector),
        }
    }
    write(&mut out, word.0, word.1, connector);
    out
}

/// A number after letters belongs to them (`Bld4Floor`: `bld4_floor`) unless small letters follow (`http2xx`: `http_2xx`).
fn after_letters<'a>(out: &mut String, word: (Kind, &'a str, &'a str), connector: char) -> (Kind, &'a str, &'a str) {
    if word.0 != Kind::Number {
        if !matches!(word.0, Kind::Connector | Kind::Punctuation) {
            out.push(connector);
        }
        return word;
    }
    if word.2.is_empty() {
        return word;
    }
    let number = word.1;
    let next = next_word(word.2);
    if next.0 != Kind::Letters {
        write(out, Kind::Number, number, connector);
        if !matches!(next.0, Kind::Connector | Kind::Punctuation) {
            out.push(connector);
        }
        return next;
    }
    out.push(connector);
    write(out, Kind::Number, number, connector);
    write_run(out, next, connector)
}
