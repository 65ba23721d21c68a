//! Floats as Go's strconv writes them: shortest digits, fixed precision, exponents of at least two digits.

/// More digits than any float has behind its point; beyond them come zeros.
const LONGEST: usize = 1100;

/// Decimal digits without trailing zeros, and where the point stands: `0.DIGITS × 10^point`.
struct Decimal {
    digits: Vec<u8>,
    point: i32,
}

/// Go's `FormatFloat(value, verb, precision, 64)`; no precision asks for as few digits as tell the value apart.
pub(crate) fn format_float(value: f64, verb: char, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let mut out = String::new();
    if value.is_sign_negative() {
        out.push('-');
    }
    let value = value.abs();
    match verb {
        'b' => binary(&mut out, value),
        'x' | 'X' => hexadecimal(&mut out, value, verb, precision),
        'f' => match precision {
            Some(precision) => {
                out.push_str(&format!("{value:.*}", precision.min(LONGEST)));
                zeros(&mut out, precision.saturating_sub(LONGEST));
            }
            None => out.push_str(&format!("{value}")),
        },
        'e' | 'E' => exponential(&mut out, value, verb, precision),
        _ => general(&mut out, value, if verb == 'G' { 'E' } else { 'e' }, precision),
    }
    out
}

fn zeros(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n('0', count));
}

fn exponential(out: &mut String, value: f64, mark: char, precision: Option<usize>) {
    let text = match precision {
        Some(precision) => format!("{value:.*e}", precision.min(LONGEST)),
        None => format!("{value:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    out.push_str(mantissa);
    zeros(out, precision.unwrap_or(0).saturating_sub(LONGEST));
    push_exponent(out, mark, exponent.parse().unwrap_or(0));
}

fn push_exponent(out: &mut String, mark: char, exponent: i32) {
    out.push(mark);
    out.push(if exponent < 0 { '-' } else { '+' });
    out.push_str(&format!("{:02}", exponent.unsigned_abs()));
}

fn decimal(value: f64, precision: Option<usize>) -> Decimal {
    if value == 0.0 {
        return Decimal { digits: Vec::new(), point: 0 };
    }
    let text = match precision {
        Some(precision) => format!("{value:.*e}", precision.saturating_sub(1).min(LONGEST)),
        None => format!("{value:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut digits: Vec<u8> = mantissa.bytes().filter(|&b| b != b'.').collect();
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    Decimal { digits, point: exponent.parse().unwrap_or(0) + 1 }
}

fn general(out: &mut String, value: f64, mark: char, precision: Option<usize>) {
    let precision = precision.map(|precision| precision.max(1));
    let decimal = decimal(value, precision);
    let count = decimal.digits.len();
    let threshold = match precision {
        None => 6,
        Some(precision) if precision > count && count as i64 >= i64::from(decimal.point) => count,
        Some(precision) => precision,
    };
    let exponent = decimal.point - 1;
    if exponent < -4 || i64::from(exponent) >= threshold as i64 {
        let digit = |at: usize| decimal.digits.get(at).map_or('0', |&b| char::from(b));
        out.push(digit(0));
        if count > 1 {
            out.push('.');
            out.extend((1..count).map(digit));
        }
        // Zero has no digits, and its exponent is nothing.
        push_exponent(out, mark, if count == 0 { 0 } else { exponent });
        return;
    }
    let point = usize::try_from(decimal.point).unwrap_or(0);
    let digit = |at: usize| decimal.digits.get(at).map_or('0', |&b| char::from(b));
    if decimal.point > 0 {
        out.extend((0..point).map(digit));
    } else {
        out.push('0');
    }
    if count > point {
        out.push('.');
        zeros(out, usize::try_from(-decimal.point).unwrap_or(0));
        out.extend((point..count).map(digit));
    }
}

/// Mantissa and binary exponent: `value = mantissa × 2^(exponent - 52)`.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let mantissa = bits & ((1 << 52) - 1);
    if exponent == 0 { (mantissa, -1022) } else { (mantissa | 1 << 52, exponent - 1023) }
}

fn binary(out: &mut String, value: f64) {
    let (mantissa, exponent) = parts(value);
    out.push_str(&format!("{mantissa}p{:+}", exponent - 52));
}

fn hexadecimal(out: &mut String, value: f64, verb: char, precision: Option<usize>) {
    let (mut mantissa, mut exponent) = parts(value);
    if mantissa == 0 {
        exponent = 0;
    }
    mantissa <<= 8;
    while mantissa != 0 && mantissa & 1 << 60 == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(precision) = precision
        && precision < 15
    {
        let shift = precision * 4;
        let extra = mantissa << shift & ((1 << 60) - 1);
        mantissa >>= 60 - shift;
        if extra | mantissa & 1 > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & 1 << 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    out.push('0');
    out.push(verb);
    out.push(if mantissa >> 60 & 1 == 1 { '1' } else { '0' });
    mantissa <<= 4;
    let hexit = |mantissa: u64| {
        let c = char::from_digit((mantissa >> 60) as u32, 16).unwrap_or('0');
        if verb == 'X' { c.to_ascii_uppercase() } else { c }
    };
    match precision {
        None if mantissa != 0 => {
            out.push('.');
            while mantissa != 0 {
                out.push(hexit(mantissa));
                mantissa <<= 4;
            }
        }
        Some(precision) if precision > 0 => {
            out.push('.');
            for _ in 0..precision {
                out.push(hexit(mantissa));
                mantissa <<= 4;
            }
        }
        _ => {}
    }
    push_exponent(out, if verb == 'X' { 'P' } else { 'p' }, exponent);
}

#[cfg(test)]
mod tests {
    use super::format_float;

    #[test]
    fn the_shortest_form_is_gos() {
        for (value, text) in [
            (1.0, "1"),
            (1.5, "1.5"),
            (1e6, "1e+06"),
            (123456.0, "123456"),
            (1234567.0, "1.234567e+06"),
            (1e21, "1e+21"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (0.0, "0"),
            (-2.5, "-2.5"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(format_float(value, 'g', None), text);
        }
    }

    #[test]
    fn precision_rounds_as_go_does() {
        assert_eq!(format_float(2.5, 'f', Some(0)), "2");
        assert_eq!(format_float(1234.5, 'e', Some(6)), "1.234500e+03");
        assert_eq!(format_float(1234.5678, 'g', Some(3)), "1.23e+03");
        assert_eq!(format_float(100.0, 'g', Some(3)), "100");
        assert_eq!(format_float(0.5, 'f', Some(2000)).len(), 2002);
        assert_eq!(format_float(1.0, 'x', None), "0x1p+00");
        assert_eq!(format_float(1.0, 'b', None), "4503599627370496p-52");
    }
}
