//! Go's fmt for our values: `print`, `println`, `printf`, and what an action writes. Builtins and sprig call it.

mod format;
mod text;

use crate::depth::MAX_DEPTH;
use crate::quote::{can_backquote, is_print, quote, quote_ascii, quote_char};
use crate::value::{Key, Map, MapKind, Opaque, Struct, Value};

pub(crate) use text::opaque_text;

/// The flags, width and precision of one verb.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    width: Option<usize>,
    precision: Option<usize>,
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    plus_v: bool,
    sharp_v: bool,
}

/// Writes values into one string under the current flags.
#[derive(Debug)]
struct Printer<'o> {
    out: &'o mut String,
    flags: Flags,
    /// Within `%!v(…)`, where Go ignores String methods.
    erroring: bool,
    /// Output beyond this length is left out; the caller's budget then fails.
    limit: usize,
    /// The collections that are open.
    depth: usize,
}

/// What a text may grow to where no budget says less: padding makes much out of little.
const LARGEST_TEXT: usize = 16 << 20;

/// Go's `Sprint`: spaces between operands when neither is a string.
pub(crate) fn sprint(values: &[Value]) -> String {
    let mut out = String::new();
    print_within(&mut out, values, LARGEST_TEXT);
    out
}

/// Go's `Sprint`; none when it would have taken more than so many bytes.
pub(crate) fn sprint_within(values: &[Value], limit: usize) -> Option<String> {
    let mut out = String::new();
    print_within(&mut out, values, limit).then_some(out)
}

/// Go's `Fprint`; false when it would have taken more than so many bytes.
pub(crate) fn print_within(out: &mut String, values: &[Value], limit: usize) -> bool {
    let mut printer = Printer::new(out);
    printer.limit = printer.out.len().saturating_add(limit);
    let mut after_string = true;
    for (at, value) in values.iter().enumerate() {
        let is_string = matches!(value, Value::Str(_));
        if at > 0 && !is_string && !after_string {
            printer.out.push(' ');
        }
        printer.argument(value, 'v');
        after_string = is_string;
    }
    printer.fits()
}

/// Go's `Sprintln`; none when it would have taken more than so many bytes.
pub(crate) fn sprintln_within(values: &[Value], limit: usize) -> Option<String> {
    let mut out = String::new();
    let mut printer = Printer::new(&mut out);
    printer.limit = limit;
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            printer.out.push(' ');
        }
        printer.argument(value, 'v');
    }
    printer.out.push('\n');
    printer.fits().then_some(out)
}

/// Go's `Sprintf`; none when it would have taken more than so many bytes.
pub(crate) fn sprintf_within(layout: &str, values: &[Value], limit: usize) -> Option<String> {
    let mut out = String::with_capacity(layout.len() + 16 * values.len());
    let mut printer = Printer::new(&mut out);
    printer.limit = limit;
    format::print_formatted(&mut printer, layout, values);
    printer.fits().then_some(out)
}

/// A value within an error's text.
pub(crate) fn excerpt(layout: &str, value: &Value) -> String {
    const LONGEST: usize = 64 << 10;
    sprintf_within(layout, std::slice::from_ref(value), LONGEST).unwrap_or_else(|| "…".to_owned())
}

impl<'o> Printer<'o> {
    fn new(out: &'o mut String) -> Printer<'o> {
        Printer { out, flags: Flags::default(), erroring: false, limit: LARGEST_TEXT, depth: 0 }
    }

    /// An operand of a verb.
    fn argument(&mut self, value: &Value, verb: char) {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.pad("<nil>"),
            (Value::Nil, _) => self.bad_verb(value, verb),
            (_, 'T') => self.string(value.type_name(), 's'),
            (_, 'p') => self.bad_verb(value, 'p'),
            _ => self.value(value, verb),
        }
    }

    /// `%!d(string=a)`
    fn bad_verb(&mut self, value: &Value, verb: char) {
        self.erroring = true;
        self.out.push_str("%!");
        self.out.push(verb);
        self.out.push('(');
        if let Value::Nil = value {
            self.out.push_str("<nil>");
        } else {
            self.out.push_str(value.type_name());
            self.out.push('=');
            self.value(value, 'v');
        }
        self.out.push(')');
        self.erroring = false;
    }

    fn value(&mut self, value: &Value, verb: char) {
        if !self.fits() {
            return;
        }
        match value {
            Value::List(_) | Value::Map(_) | Value::Struct(_) if verb == 'w' => self.bad_verb(value, verb),
            Value::Nil => self.bad_verb(value, verb),
            Value::Bool(truth) => match verb {
                't' | 'v' => self.pad(if *truth { "true" } else { "false" }),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(int) | Value::Int64(int) => self.integer(value, int.unsigned_abs(), *int < 0, true, verb),
            Value::Uint64(int) => self.integer(value, *int, false, false, verb),
            Value::Float(float) => self.float(value, *float, verb),
            Value::Complex(real, imaginary) => self.complex(value, *real, *imaginary, verb),
            Value::Str(text) => match verb {
                'v' | 's' | 'x' | 'X' | 'q' => self.string(text, verb),
                _ => self.bad_verb(value, verb),
            },
            Value::List(_) | Value::Map(_) | Value::Struct(_) => self.collection(value, verb),
            Value::Opaque(opaque) => self.opaque(value, opaque, verb),
        }
    }

    fn collection(&mut self, value: &Value, verb: char) {
        if self.depth > MAX_DEPTH {
            self.overfill();
            return;
        }
        self.depth += 1;
        match value {
            Value::List(list) => self.sequence(value.type_name(), &list.items, verb),
            Value::Map(map) => self.map(value.type_name(), map, verb),
            Value::Struct(data) => self.fields(data, verb),
            _ => {}
        }
        self.depth -= 1;
    }

    fn fields(&mut self, data: &Struct, verb: char) {
        if self.flags.sharp_v {
            self.out.push_str(data.type_name);
        }
        self.out.push('{');
        for (at, (name, field)) in data.fields.iter().enumerate() {
            self.separate(at);
            if self.flags.plus_v || self.flags.sharp_v {
                self.out.push_str(name);
                self.out.push(':');
            }
            self.element(field, verb);
        }
        self.out.push('}');
    }

    /// An element of a list, a map or a struct: an interface, which may be nil.
    fn element(&mut self, value: &Value, verb: char) {
        match value {
            Value::Nil if self.flags.sharp_v => self.out.push_str("interface {}(nil)"),
            Value::Nil => self.out.push_str("<nil>"),
            value => self.value(value, verb),
        }
    }

    fn separate(&mut self, at: usize) {
        if at > 0 {
            self.out.push_str(if self.flags.sharp_v { ", " } else { " " });
        }
    }

    fn sequence(&mut self, type_name: &str, items: &[Value], verb: char) {
        let (open, close) = if self.flags.sharp_v { ('{', '}') } else { ('[', ']') };
        if self.flags.sharp_v {
            self.out.push_str(type_name);
        }
        self.out.push(open);
        for (at, item) in items.iter().enumerate() {
            self.separate(at);
            self.element(item, verb);
        }
        self.out.push(close);
    }

    fn map(&mut self, type_name: &str, map: &Map, verb: char) {
        self.out.push_str(if self.flags.sharp_v { type_name } else { "map" });
        self.out.push(if self.flags.sharp_v { '{' } else { '[' });
        for (at, (key, value)) in map.entries.borrow().iter().enumerate() {
            self.separate(at);
            match key {
                Key::Str(text) if matches!(verb, 'v' | 's' | 'q' | 'x' | 'X') => self.string(text, verb),
                key => self.element(&Value::from(key), verb),
            }
            self.out.push(':');
            match value {
                // A nil in map[string]string is an empty string.
                Value::Nil if map.kind == MapKind::StringString => self.string("", verb),
                value => self.element(value, verb),
            }
        }
        self.out.push(if self.flags.sharp_v { '}' } else { ']' });
    }

    fn opaque(&mut self, value: &Value, opaque: &Opaque, verb: char) {
        let named = !matches!(opaque, Opaque::Byte(_));
        if named && !self.erroring && !self.flags.sharp_v && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') {
            self.string(&opaque_text(opaque), verb);
            return;
        }
        match opaque {
            Opaque::Duration(int) | Opaque::Month(int) | Opaque::Weekday(int) => {
                self.integer(value, int.unsigned_abs(), *int < 0, true, verb);
            }
            Opaque::Byte(byte) => self.integer(value, u64::from(*byte), false, false, verb),
            Opaque::Time(_) | Opaque::Version(_) => self.string(&opaque_text(opaque), 'v'),
        }
    }

    fn string(&mut self, text: &str, verb: char) {
        match verb {
            'x' => self.hexadecimal(text, false),
            'X' => self.hexadecimal(text, true),
            'q' => self.quoted(text),
            'v' if self.flags.sharp_v => self.quoted(text),
            _ => {
                let text = self.truncate(text);
                self.pad(text);
            }
        }
    }

    fn truncate<'t>(&self, text: &'t str) -> &'t str {
        match self.flags.precision.and_then(|precision| text.char_indices().nth(precision)) {
            Some((end, _)) => &text[..end],
            None => text,
        }
    }

    fn quoted(&mut self, text: &str) {
        let text = self.truncate(text);
        if self.flags.sharp && can_backquote(text) {
            self.pad(&format!("`{text}`"));
        } else if self.flags.plus {
            self.pad(&quote_ascii(text));
        } else {
            self.pad(&quote(text));
        }
    }

    fn hexadecimal(&mut self, text: &str, upper: bool) {
        let flags = self.flags;
        let bytes = text.as_bytes();
        let bytes = &bytes[..flags.precision.unwrap_or(bytes.len()).min(bytes.len())];
        if bytes.is_empty() {
            self.padding(flags.width.unwrap_or(0));
            return;
        }
        let mut digits = String::with_capacity(2 * bytes.len());
        let prefix = if upper { "0X" } else { "0x" };
        for (at, byte) in bytes.iter().enumerate() {
            if flags.space && at > 0 {
                digits.push(' ');
            }
            if flags.sharp && (at == 0 || flags.space) {
                digits.push_str(prefix);
            }
            digits.push_str(&if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        }
        self.pad(&digits);
    }

    fn padding(&mut self, count: usize) {
        let pad = if self.flags.zero && !self.flags.minus { '0' } else { ' ' };
        if self.has_room(count) {
            self.out.extend(std::iter::repeat_n(pad, count));
        }
    }

    fn fits(&self) -> bool {
        self.out.len() <= self.limit
    }

    /// Whether so much more may be made; if not, the output is overfull from here on.
    fn has_room(&mut self, count: usize) -> bool {
        let room = self.out.len().saturating_add(count) <= self.limit;
        if !room {
            self.overfill();
        }
        room
    }

    /// Nothing fits from here on.
    fn overfill(&mut self) {
        self.limit = 0;
        self.out.push(' ');
    }

    fn pad(&mut self, text: &str) {
        let Some(width) = self.flags.width else {
            self.out.push_str(text);
            return;
        };
        let missing = width.saturating_sub(text.chars().count());
        if self.flags.minus {
            self.out.push_str(text);
            self.padding(missing);
        } else {
            self.padding(missing);
            self.out.push_str(text);
        }
    }

    /// Pads with spaces, whatever the flags say.
    fn pad_spaces(&mut self, text: &str) {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(text);
        self.flags.zero = zero;
    }

    fn character(&mut self, code: u64) {
        self.pad(to_char(code).encode_utf8(&mut [0; 4]));
    }

    fn quoted_character(&mut self, code: u64) {
        let text = quote_char(to_char(code), self.flags.plus);
        self.pad(&text);
    }

    fn unicode(&mut self, code: u64) {
        let digits = self.flags.precision.filter(|&precision| precision > 4).unwrap_or(4);
        if !self.has_room(digits) {
            return;
        }
        let mut text = format!("{code:X}");
        if text.len() < digits {
            text.insert_str(0, &"0".repeat(digits - text.len()));
        }
        text.insert_str(0, "U+");
        if self.flags.sharp
            && let Some(c) = u32::try_from(code).ok().and_then(char::from_u32)
            && is_print(c)
        {
            text.push_str(" '");
            text.push(c);
            text.push('\'');
        }
        self.pad_spaces(&text);
    }
}

fn to_char(code: u64) -> char {
    u32::try_from(code).ok().and_then(char::from_u32).unwrap_or('\u{fffd}')
}

#[cfg(test)]
mod tests;
