//! Number constants: Go's syntax for integers, floats, hexadecimal floats, complex numbers and characters.
//! The parser calls it; the sprig functions that read numbers from text may too.

use crate::quote::{Unit, quote, unquote_char};

/// A constant and everything that it can be, because the parameter that takes it decides.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    /// As it was written.
    pub text: String,
    pub int: Option<i64>,
    pub uint: Option<u64>,
    pub float: Option<f64>,
    pub complex: Option<(f64, f64)>,
}

/// Which token the constant was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    Char,
    Complex,
    Plain,
}

impl Number {
    pub(crate) fn parse(text: &str, spelling: Spelling) -> Result<Number, String> {
        match spelling {
            Spelling::Char => Number::character(text),
            Spelling::Complex => Number::sum(text),
            Spelling::Plain => Number::plain(text),
        }
    }

    fn bare(text: &str) -> Number {
        Number { text: text.to_owned(), int: None, uint: None, float: None, complex: None }
    }

    fn character(text: &str) -> Result<Number, String> {
        let (unit, tail) =
            text.get(1..).and_then(|inner| unquote_char(inner, '\'')).ok_or_else(|| "invalid syntax".to_owned())?;
        if tail != "'" {
            return Err(format!("malformed character constant: {text}"));
        }
        let code = match unit {
            Unit::Byte(byte) => u32::from(byte),
            Unit::Char(c) => u32::from(c),
        };
        Ok(Number {
            int: Some(i64::from(code)),
            uint: Some(u64::from(code)),
            float: Some(f64::from(code)),
            ..Number::bare(text)
        })
    }

    /// `1+2i`
    fn sum(text: &str) -> Result<Number, String> {
        let bad = || "syntax error scanning complex number".to_owned();
        let body = text.strip_suffix('i').ok_or_else(bad)?;
        let bytes = body.as_bytes();
        let split = (1..bytes.len())
            .rev()
            .find(|&at| matches!(bytes[at], b'+' | b'-') && !matches!(bytes[at - 1], b'e' | b'E' | b'p' | b'P'))
            .ok_or_else(bad)?;
        let real = parse_float(&body[..split]).ok_or_else(bad)?;
        let imaginary = parse_float(&body[split..]).ok_or_else(bad)?;
        Ok(Number::from_complex(text, real, imaginary))
    }

    fn from_complex(text: &str, real: f64, imaginary: f64) -> Number {
        let mut number = Number { complex: Some((real, imaginary)), ..Number::bare(text) };
        if imaginary == 0.0 {
            number.float = Some(real);
            number.int = whole(real);
            number.uint = whole_unsigned(real);
        }
        number
    }

    fn plain(text: &str) -> Result<Number, String> {
        if let Some(imaginary) = text.strip_suffix('i').and_then(parse_float) {
            return Ok(Number::from_complex(text, 0.0, imaginary));
        }
        let mut number = Number { uint: parse_uint(text), int: parse_int(text), ..Number::bare(text) };
        if number.int == Some(0) {
            number.uint = Some(0);
        }
        number.float = match (number.int, number.uint) {
            (Some(int), _) => Some(int as f64),
            (None, Some(uint)) => Some(uint as f64),
            (None, None) => {
                let float = parse_float(text).ok_or_else(|| format!("illegal number syntax: {}", quote(text)))?;
                if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                    return Err(format!("integer overflow: {}", quote(text)));
                }
                number.int = whole(float);
                number.uint = whole_unsigned(float);
                Some(float)
            }
        };
        Ok(number)
    }

    /// Whether the constant is a float where nothing says which type it has.
    pub(crate) fn reads_as_float(&self) -> bool {
        let bytes = self.text.as_bytes();
        let is_rune = bytes.first() == Some(&b'\'');
        let is_hex_int =
            bytes.len() > 2 && bytes[0] == b'0' && matches!(bytes[1], b'x' | b'X') && !self.text.contains(['p', 'P']);
        self.float.is_some() && !is_rune && !is_hex_int && self.text.contains(['.', 'e', 'E', 'p', 'P'])
    }
}

fn whole(float: f64) -> Option<i64> {
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
        .contains(&float)
        .then_some(float as i64)
        .filter(|&int| int as f64 == float)
}

fn whole_unsigned(float: f64) -> Option<u64> {
    (0.0..18_446_744_073_709_551_616.0).contains(&float).then_some(float as u64).filter(|&int| int as f64 == float)
}

/// Go's `ParseUint(text, 0, 64)`.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let first = *bytes.first()?;
    let (radix, digits) = match bytes.get(1).map(u8::to_ascii_lowercase) {
        Some(b'b') if first == b'0' && bytes.len() >= 3 => (2, &bytes[2..]),
        Some(b'o') if first == b'0' && bytes.len() >= 3 => (8, &bytes[2..]),
        Some(b'x') if first == b'0' && bytes.len() >= 3 => (16, &bytes[2..]),
        _ if first == b'0' => (8, &bytes[1..]),
        _ => (10, bytes),
    };
    let mut value: u64 = 0;
    for &digit in digits {
        if digit == b'_' {
            continue;
        }
        let digit = char::from(digit).to_digit(radix)?;
        value = value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))?;
    }
    underscores_fit(text).then_some(value)
}

/// Go's `ParseInt(text, 0, 64)`.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    if let Some(rest) = text.strip_prefix('-') {
        if rest.starts_with(['+', '-']) {
            return None;
        }
        return 0i64.checked_sub_unsigned(parse_uint(rest)?);
    }
    i64::try_from(parse_uint(text.strip_prefix('+').unwrap_or(text))?).ok()
}

/// Go's `ParseFloat(text, 64)` for what a constant can be: no infinity, no NaN; beyond the largest is an error.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let hexadecimal = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
    if !underscores_fit(text) {
        return None;
    }
    let value = match hexadecimal {
        Some(digits) => parse_hexadecimal(&digits.replace('_', ""))?,
        None => {
            let digits = unsigned.replace('_', "");
            if !digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-')) {
                return None;
            }
            digits.parse().ok()?
        }
    };
    let value = if text.starts_with('-') { -value } else { value };
    value.is_finite().then_some(value)
}

fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut exponent = exponent_value(exponent)?;
    let mut bits: u64 = 0;
    for (at, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(c.to_digit(16)?);
        let in_fraction = at >= whole.len();
        if bits >> 59 == 0 {
            bits = bits << 4 | digit;
            exponent -= if in_fraction { 4 } else { 0 };
        } else {
            // The lost digits only matter as "not exactly".
            bits |= u64::from(digit != 0);
            exponent += if in_fraction { 0 } else { 4 };
        }
    }
    let half = exponent / 2;
    Some(bits as f64 * 2f64.powi(half) * 2f64.powi(exponent - half))
}

fn exponent_value(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse::<i32>().unwrap_or(i32::MAX).min(5000);
    Some(if text.starts_with('-') { -value } else { value })
}

/// Underscores separate digits, and one may follow a base prefix.
fn underscores_fit(text: &str) -> bool {
    if !text.contains('_') {
        return true;
    }
    let bytes = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
    let prefix = bytes.len() >= 2 && bytes[0] == b'0' && matches!(bytes[1].to_ascii_lowercase(), b'b' | b'o' | b'x');
    let hexadecimal = prefix && bytes[1].eq_ignore_ascii_case(&b'x');
    let mut last = if prefix { b'0' } else { b'^' };
    for &byte in &bytes[if prefix { 2 } else { 0 }..] {
        let is_digit = byte.is_ascii_digit() || hexadecimal && byte.is_ascii_hexdigit();
        if is_digit {
            last = b'0';
        } else if byte == b'_' {
            if last != b'0' {
                return false;
            }
            last = b'_';
        } else {
            if last == b'_' {
                return false;
            }
            last = b'!';
        }
    }
    last != b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Number {
        Number::parse(text, Spelling::Plain).expect(text)
    }

    #[test]
    fn integers_come_in_every_base() {
        for (text, value) in
            [("0x1F", 31), ("0b101", 5), ("0o17", 15), ("017", 15), ("1_000", 1000), ("-0", 0), ("+3", 3)]
        {
            assert_eq!(plain(text).int, Some(value), "{text}");
        }
        assert_eq!(plain("18446744073709551615").int, None);
        assert_eq!(plain("18446744073709551615").uint, Some(u64::MAX));
        assert_eq!(
            Number::parse("99999999999999999999", Spelling::Plain),
            Err("integer overflow: \"99999999999999999999\"".to_owned())
        );
    }

    #[test]
    fn floats_and_complex_numbers_are_read() {
        assert_eq!(plain("0x1p4").float, Some(16.0));
        assert_eq!(plain("0x1.8p1").float, Some(3.0));
        assert_eq!(plain("1e3").int, Some(1000));
        assert!(plain("1e3").reads_as_float());
        assert!(!plain("0x1e").reads_as_float());
        assert_eq!(plain("1i").complex, Some((0.0, 1.0)));
        assert_eq!(Number::parse("1-2.5i", Spelling::Complex).expect("complex").complex, Some((1.0, -2.5)));
    }

    #[test]
    fn a_character_is_its_code() {
        assert_eq!(Number::parse(r"'\n'", Spelling::Char).expect("char").int, Some(10));
        assert!(Number::parse("'ab'", Spelling::Char).is_err());
        assert!(Number::parse("''", Spelling::Char).is_err());
    }
}
