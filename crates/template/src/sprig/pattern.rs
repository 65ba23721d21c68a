//! Go's regular expressions in the syntax of the regex crate. Both come from RE2, but `\d`, `\w`, `\s` and `\b` are ASCII
//! in Go, and classes, braces, flags and names are read by other rules; so a pattern is read as Go reads it, refused
//! with Go's words, and written anew.

mod class;

use regex::Regex;

use crate::quote::{can_backquote, quote};

/// A compiled pattern and the names of its groups, which Go allows to begin with a digit.
#[derive(Debug)]
pub(super) struct Pattern {
    pub regex: Regex,
    pub names: Vec<Option<String>>,
}

/// The flags that a part of a pattern is under.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_all: bool,
    lazy: bool,
}

/// A group that is open: the flags to return to, and how often the most repeated thing in it repeats.
#[derive(Debug)]
struct Open {
    flags: Flags,
    repeats: u64,
}

/// A pattern in the syntax of the regex crate, not yet compiled.
#[derive(Debug)]
pub(super) struct Translation<'p> {
    text: &'p str,
    written: String,
    names: Vec<Option<String>>,
    /// How often the most repeated thing in it repeats.
    repeats: u64,
}

struct Translator<'p> {
    whole: &'p str,
    rest: &'p str,
    out: String,
    flags: Flags,
    open: Vec<Open>,
    names: Vec<Option<String>>,
    /// There is something before this place that can be repeated, and how often it repeats already.
    atom: Option<u64>,
    /// Where that ends in what is written; flags may follow it.
    atom_end: usize,
    repeats: u64,
}

impl<'p> Translation<'p> {
    /// The first half of Go's `regexp.Compile`, with its errors.
    pub(super) fn read(text: &'p str) -> Result<Translation<'p>, String> {
        let mut translator = Translator {
            whole: text,
            rest: text,
            out: String::with_capacity(text.len() + 16),
            flags: Flags::default(),
            open: Vec::new(),
            names: vec![None],
            atom: None,
            atom_end: 0,
            repeats: 1,
        };
        translator.run()?;
        let Translator { out: written, names, repeats, .. } = translator;
        Ok(Translation { text, written, names, repeats })
    }

    /// About how long the pattern is with its repetitions written out, when a Unicode class counts for so many bytes.
    pub(super) fn weight(&self, unicode_class: u64) -> u64 {
        let classes = self.written.matches(r"\p").count() + self.written.matches(r"\P").count();
        (self.written.len() as u64 + unicode_class * classes as u64).saturating_mul(self.repeats.max(1))
    }

    /// The second half.
    pub(super) fn compile(self) -> Result<Pattern, String> {
        let regex = Regex::new(&self.written).map_err(|_| problem("expression too large", self.text))?;
        Ok(Pattern { regex, names: self.names })
    }
}

/// What Go's `regexp.MustCompile` panics with.
pub(super) fn panic_text(pattern: &str, reason: &str) -> String {
    let shown = if can_backquote(pattern) { format!("`{pattern}`") } else { quote(pattern) };
    format!("regexp: Compile({shown}): {reason}")
}

fn problem(code: &str, part: &str) -> String {
    format!("error parsing regexp: {code}: `{part}`")
}

impl<'p> Translator<'p> {
    fn run(&mut self) -> Result<(), String> {
        // Where the last repetition began, as long as it was the last thing read.
        let mut last_repeat: Option<&'p str> = None;
        while let Some(c) = self.rest.chars().next() {
            let before = self.rest;
            let mut repeated = None;
            match c {
                '(' if before.starts_with("(?") => self.flags_or_group()?,
                '(' => {
                    self.open_group("(");
                    self.names.push(None);
                    self.rest = &before[1..];
                }
                '|' => {
                    self.out.push('|');
                    self.atom = None;
                    self.rest = &before[1..];
                }
                ')' => self.close_group()?,
                '^' | '$' | '.' => {
                    self.out.push(c);
                    self.push_atom();
                    self.rest = &before[1..];
                }
                '[' => {
                    let (class, rest) = class::bracket(before)?;
                    self.out.push_str(&class);
                    self.push_atom();
                    self.rest = rest;
                }
                '*' | '+' | '?' => {
                    self.repeat(before, &before[1..], None, last_repeat)?;
                    repeated = Some(before);
                }
                '{' => match counts(before) {
                    Some((low, high, after)) => {
                        let high_value = high.unwrap_or(low);
                        if low > 1000 || high_value > 1000 || high_value < low {
                            return Err(problem("invalid repeat count", consumed(before, after)));
                        }
                        self.repeat(before, after, Some((low, high)), last_repeat)?;
                        repeated = Some(before);
                    }
                    None => self.literal('{', &before[1..]),
                },
                '\\' => self.escape()?,
                _ => self.literal(c, &before[c.len_utf8()..]),
            }
            last_repeat = repeated;
        }
        if self.open.is_empty() { Ok(()) } else { Err(problem("missing closing )", self.whole)) }
    }

    fn literal(&mut self, c: char, rest: &'p str) {
        self.out.push_str(&class::literal(c));
        self.push_atom();
        self.rest = rest;
    }

    fn push_atom(&mut self) {
        self.atom = Some(1);
        self.atom_end = self.out.len();
    }

    fn open_group(&mut self, written: &str) {
        self.out.push_str(written);
        self.open.push(Open { flags: self.flags, repeats: self.repeats });
        self.repeats = 1;
        self.atom = None;
    }

    fn close_group(&mut self) -> Result<(), String> {
        let open = self.open.pop().ok_or_else(|| problem("unexpected )", self.whole))?;
        self.out.push(')');
        self.atom = Some(self.repeats);
        self.atom_end = self.out.len();
        self.flags = open.flags;
        self.repeats = self.repeats.max(open.repeats);
        self.rest = &self.rest[1..];
        Ok(())
    }

    /// A repetition operator that ends where `after` begins; a question mark there makes it lazy.
    fn repeat(
        &mut self,
        before: &'p str,
        after: &'p str,
        counts: Option<(u64, Option<u64>)>,
        last_repeat: Option<&'p str>,
    ) -> Result<(), String> {
        let after = after.strip_prefix('?').unwrap_or(after);
        if let Some(last) = last_repeat {
            return Err(problem("invalid nested repetition operator", consumed(last, after)));
        }
        let written = consumed(before, after);
        let inner = self.atom.ok_or_else(|| problem("missing argument to repetition operator", written))?;
        let mut total = inner;
        if let Some((low, high)) = counts {
            match high.unwrap_or(low) {
                0 if high.is_some() => total = 0,
                0 => {}
                times => total = inner.saturating_mul(times),
            }
            if (low >= 2 || high.is_some_and(|high| high >= 2)) && total > 1000 {
                return Err(problem("invalid repeat count", written));
            }
        }
        self.atom = Some(total);
        self.repeats = self.repeats.max(total);
        // In `a(?i)*` the star belongs to the letter.
        self.out.insert_str(self.atom_end, written);
        self.atom_end += written.len();
        self.rest = after;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let before = self.rest;
        let fixed = match before.as_bytes().get(1) {
            Some(b'A') => Some(r"\A"),
            Some(b'z') => Some(r"\z"),
            Some(b'b') => Some(r"(?-u:\b)"),
            Some(b'B') => Some(r"(?-u:\B)"),
            Some(b'C') => return Err(problem("invalid escape sequence", r"\C")),
            _ => None,
        };
        if let Some(written) = fixed {
            self.out.push_str(written);
            self.push_atom();
            self.rest = &before[2..];
            return Ok(());
        }
        if let Some(quoted) = before.strip_prefix(r"\Q") {
            let (literal, rest) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            for c in literal.chars() {
                self.literal(c, rest);
            }
            self.rest = rest;
            return Ok(());
        }
        if let Some((class, rest)) = class::named_escape(before)? {
            self.out.push_str(&class);
            self.push_atom();
            self.rest = rest;
            return Ok(());
        }
        let (code, rest) = class::escaped(before)?;
        self.out.push_str(&class::code_point(code).unwrap_or_else(|| class::NOTHING.to_owned()));
        self.push_atom();
        self.rest = rest;
        Ok(())
    }

    /// `(?P<name>`, `(?<name>`, `(?flags)` or `(?flags:`.
    fn flags_or_group(&mut self) -> Result<(), String> {
        let before = self.rest;
        let named = if before.len() > 4 && before.starts_with("(?P<") {
            before.get(4..)
        } else if before.len() > 3 && before.starts_with("(?<") {
            before.get(3..)
        } else {
            None
        };
        if let Some(name) = named {
            let end = name.find('>').ok_or_else(|| problem("invalid named capture", before))?;
            let (name, rest) = (&name[..end], &name[end + 1..]);
            if name.is_empty() || !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
                return Err(problem("invalid named capture", consumed(before, rest)));
            }
            self.open_group("(");
            self.names.push(Some(name.to_owned()));
            self.rest = rest;
            return Ok(());
        }
        let mut flags = self.flags;
        let (mut set, mut seen) = (true, false);
        let mut read = 2;
        for c in before.chars().skip(2) {
            read += c.len_utf8();
            match c {
                'i' => flags.fold = set,
                'm' => flags.multi_line = set,
                's' => flags.dot_all = set,
                'U' => flags.lazy = set,
                '-' if set => set = false,
                ':' | ')' if set || seen => {
                    if c == ':' {
                        self.open_group("(?:");
                    }
                    self.flags = flags;
                    self.out.push_str(&flags.written());
                    self.rest = &before[read..];
                    return Ok(());
                }
                _ => break,
            }
            seen = c != '-';
        }
        Err(problem("invalid or unsupported Perl syntax", &before[..read]))
    }
}

impl Flags {
    fn written(self) -> String {
        let flags = [('i', self.fold), ('m', self.multi_line), ('s', self.dot_all), ('U', self.lazy)];
        let chosen = |wanted: bool| flags.iter().filter(move |flag| flag.1 == wanted).map(|flag| flag.0);
        let (on, off): (String, String) = (chosen(true).collect(), chosen(false).collect());
        if off.is_empty() { format!("(?{on})") } else { format!("(?{on}-{off})") }
    }
}

/// The part of `before` that ends where `after` begins.
fn consumed<'p>(before: &'p str, after: &str) -> &'p str {
    &before[..before.len() - after.len()]
}

/// `{low}`, `{low,}` or `{low,high}`; anything else in braces is plain text.
fn counts(text: &str) -> Option<(u64, Option<u64>, &str)> {
    let (low, rest) = count(text.strip_prefix('{')?)?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((low, Some(low), rest));
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((low, None, rest));
    }
    let (high, rest) = count(rest)?;
    Some((low, Some(high), rest.strip_prefix('}')?))
}

fn count(text: &str) -> Option<(u64, &str)> {
    let size = text.bytes().take_while(u8::is_ascii_digit).count();
    let digits = &text[..size];
    if size == 0 || size > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u64::MAX), &text[size..]))
}
