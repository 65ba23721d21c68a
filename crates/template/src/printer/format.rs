//! Layouts of `printf`: flags, width, precision, `*`, argument indexes, and the texts that stand for their errors.

use super::{Flags, Printer};
use crate::value::Value;

/// Go refuses widths and precisions beyond this.
const LARGEST: i64 = 1_000_000;

/// A walk through a layout and its operands.
struct Layout<'a> {
    text: &'a str,
    at: usize,
    values: &'a [Value],
    /// The next operand.
    next: usize,
    reordered: bool,
    good_index: bool,
}

pub(super) fn print_formatted(printer: &mut Printer<'_>, text: &str, values: &[Value]) {
    let mut layout = Layout { text, at: 0, values, next: 0, reordered: false, good_index: true };
    while layout.at < text.len() {
        let rest = &text[layout.at..];
        let Some(plain) = rest.find('%') else {
            printer.out.push_str(rest);
            break;
        };
        printer.out.push_str(&rest[..plain]);
        layout.at += plain + 1;
        printer.flags = Flags::default();
        layout.good_index = true;
        if !layout.verb(printer) {
            break;
        }
    }
    if !layout.reordered && layout.next < values.len() {
        printer.flags = Flags::default();
        printer.out.push_str("%!(EXTRA ");
        for (at, value) in values[layout.next..].iter().enumerate() {
            if at > 0 {
                printer.out.push_str(", ");
            }
            if let Value::Nil = value {
                printer.out.push_str("<nil>");
            } else {
                printer.out.push_str(value.type_name());
                printer.out.push('=');
                printer.argument(value, 'v');
            }
        }
        printer.out.push(')');
    }
}

impl Layout<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// One verb with all that stands before it; false at the layout's end.
    fn verb(&mut self, printer: &mut Printer<'_>) -> bool {
        self.flags(printer);
        let mut after_index = self.index();
        if self.byte() == Some(b'*') {
            self.at += 1;
            match self.star() {
                Some(width) => {
                    if width < 0 {
                        printer.flags.minus = true;
                        printer.flags.zero = false;
                    }
                    printer.flags.width = usize::try_from(width.abs()).ok();
                }
                None => printer.out.push_str("%!(BADWIDTH)"),
            }
            after_index = false;
        } else {
            printer.flags.width = self.number();
            if after_index && printer.flags.width.is_some() {
                self.good_index = false;
            }
        }
        if self.byte() == Some(b'.') && self.at + 1 < self.text.len() {
            self.at += 1;
            if after_index {
                self.good_index = false;
            }
            after_index = self.index();
            if self.byte() == Some(b'*') {
                self.at += 1;
                printer.flags.precision = self.star().and_then(|precision| usize::try_from(precision).ok());
                if printer.flags.precision.is_none() {
                    printer.out.push_str("%!(BADPREC)");
                }
                after_index = false;
            } else {
                printer.flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !after_index {
            self.index();
        }
        let Some(verb) = self.text.get(self.at..).and_then(|rest| rest.chars().next()) else {
            printer.out.push_str("%!(NOVERB)");
            return false;
        };
        self.at += verb.len_utf8();
        if verb == '%' {
            printer.out.push('%');
        } else if !self.good_index {
            printer.out.push_str("%!");
            printer.out.push(verb);
            printer.out.push_str("(BADINDEX)");
        } else if let Some(value) = self.values.get(self.next) {
            if matches!(verb, 'v' | 'w') {
                printer.flags.sharp_v = std::mem::replace(&mut printer.flags.sharp, false);
                printer.flags.plus_v = std::mem::replace(&mut printer.flags.plus, false);
            }
            self.next += 1;
            printer.argument(value, verb);
        } else {
            printer.out.push_str("%!");
            printer.out.push(verb);
            printer.out.push_str("(MISSING)");
        }
        true
    }

    fn flags(&mut self, printer: &mut Printer<'_>) {
        while let Some(byte) = self.byte() {
            match byte {
                b'#' => printer.flags.sharp = true,
                b'0' => printer.flags.zero = true,
                b'+' => printer.flags.plus = true,
                b'-' => printer.flags.minus = true,
                b' ' => printer.flags.space = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    /// `[3]`: the operand that comes next. True when there was a well-formed index.
    fn index(&mut self) -> bool {
        if self.byte() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = &self.text[self.at..];
        let close = if rest.len() < 3 { None } else { rest.find(']') };
        let Some(close) = close else {
            self.good_index = false;
            self.at += 1;
            return false;
        };
        let digits = &rest[1..close];
        self.at += close + 1;
        let number = if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            None
        } else {
            digits.parse::<i64>().ok().filter(|&number| number <= LARGEST * 10)
        };
        let operand = number.and_then(|number| usize::try_from(number - 1).ok());
        match operand {
            Some(operand) if operand < self.values.len() => {
                self.next = operand;
                true
            }
            _ => {
                self.good_index = false;
                number.is_some()
            }
        }
    }

    fn number(&mut self) -> Option<usize> {
        let mut value: Option<i64> = None;
        while let Some(byte) = self.byte().filter(u8::is_ascii_digit) {
            let so_far = value.unwrap_or(0);
            if so_far > LARGEST {
                // As Go does: the rest of the layout is given up.
                self.at = self.text.len();
                return None;
            }
            value = Some(so_far * 10 + i64::from(byte - b'0'));
            self.at += 1;
        }
        value.and_then(|value| usize::try_from(value).ok())
    }

    /// The operand that gives a width or a precision.
    fn star(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        let number = match value {
            Value::Int(int) | Value::Int64(int) => *int,
            Value::Uint64(int) => i64::try_from(*int).ok()?,
            Value::Opaque(opaque) => opaque.as_int()?,
            _ => return None,
        };
        (-LARGEST..=LARGEST).contains(&number).then_some(number)
    }
}
