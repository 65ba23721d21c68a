//! yaml.v3's natural order of keys: numbers before strings, `a2` before `a10`, letters after everything else.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::value::Key;

/// The entries in the order in which yaml.v3 writes them.
pub(super) fn sorted<K: Copy, V>(mut entries: Vec<(K, V)>, less: impl Fn(K, K) -> bool + Copy) -> Vec<(K, V)> {
    if !entries.windows(2).all(|pair| less(pair[0].0, pair[1].0)) {
        merge_sort(&mut entries, less);
    }
    entries
}

/// The relation isn't transitive for every set of keys, and the standard sort may panic on one that isn't.
fn merge_sort<K: Copy, V>(entries: &mut Vec<(K, V)>, less: impl Fn(K, K) -> bool + Copy) {
    if entries.len() < 2 {
        return;
    }
    let mut right = entries.split_off(entries.len() / 2);
    let mut left = std::mem::take(entries);
    merge_sort(&mut left, less);
    merge_sort(&mut right, less);
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) if less(*b, *a) => right.next(),
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        };
        match next {
            Some(entry) => entries.push(entry),
            None => return,
        }
    }
}

/// Whether one string key comes before another.
pub(super) fn less_text(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return less_chars(&Ascii(a.as_bytes()), &Ascii(b.as_bytes()));
    }
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    less_chars(&Chars(&a), &Chars(&b))
}

/// Whether one key comes before another.
pub(super) fn less(a: &Key, b: &Key) -> bool {
    if let (Key::String(a), Key::String(b)) = (a, b) {
        return less_text(a, b);
    }
    match (number(a), number(b)) {
        (Some(x), Some(y)) if x != y => x < y,
        (Some(_), Some(_)) if kind(a) == kind(b) => match (a, b) {
            (Key::Int(a), Key::Int(b)) => a < b,
            (Key::Uint(a), Key::Uint(b)) => a < b,
            _ => false,
        },
        _ => kind(a) < kind(b),
    }
}

/// The rank of the Go kinds behind the keys: bool, int, uint64, float64, interface (nil), string.
fn kind(key: &Key) -> u8 {
    match key {
        Key::Bool(_) => 1,
        Key::Int(_) => 2,
        Key::Uint(_) => 11,
        Key::Float(_) => 14,
        Key::Null => 20,
        Key::String(_) => 24,
    }
}

#[expect(clippy::cast_precision_loss, reason = "yaml.v3 compares as floats first")]
fn number(key: &Key) -> Option<f64> {
    match key {
        Key::Bool(value) => Some(f64::from(u8::from(*value))),
        Key::Int(value) => Some(*value as f64),
        Key::Uint(value) => Some(*value as f64),
        Key::Float(value) => Some(value.0),
        Key::Null | Key::String(_) => None,
    }
}

/// A string by characters, without a copy where it is ASCII.
trait Text {
    fn get(&self, index: usize) -> Option<char>;
}

struct Ascii<'a>(&'a [u8]);
struct Chars<'a>(&'a [char]);

impl Text for Ascii<'_> {
    fn get(&self, index: usize) -> Option<char> {
        self.0.get(index).copied().map(char::from)
    }
}

impl Text for Chars<'_> {
    fn get(&self, index: usize) -> Option<char> {
        self.0.get(index).copied()
    }
}

fn less_chars(a: &impl Text, b: &impl Text) -> bool {
    let mut digits = false;
    let mut index = 0;
    loop {
        let (x, y) = match (a.get(index), b.get(index)) {
            (Some(x), Some(y)) => (x, y),
            (x, y) => return x.is_none() && y.is_some(),
        };
        if x == y {
            digits = is_digit(x);
            index += 1;
            continue;
        }
        match (is_letter(x), is_letter(y)) {
            (true, true) => return x < y,
            (false, false) => {}
            // After a digit a letter comes first, elsewhere last.
            (letter, _) => return letter == digits,
        }
        let mut start = 0;
        if x == '0' || y == '0' {
            // A zero inside a number isn't a leading one.
            let mut before = (0..index).rev().map_while(|at| a.get(at).filter(|char| is_digit(*char)));
            if before.any(|char| char != '0') {
                start = 1;
            }
        }
        let (x_number, x_end) = read_number(a, index, start);
        let (y_number, y_end) = read_number(b, index, start);
        if x_number != y_number {
            return x_number < y_number;
        }
        if x_end != y_end {
            return x_end < y_end;
        }
        return x < y;
    }
}

fn read_number(text: &impl Text, mut index: usize, start: i64) -> (i64, usize) {
    let mut number = start;
    while let Some(char) = text.get(index).filter(|char| is_digit(*char)) {
        let digit = i64::from(u32::from(char)) - i64::from(u32::from('0'));
        number = number.wrapping_mul(10).wrapping_add(digit);
        index += 1;
    }
    (number, index)
}

fn is_digit(char: char) -> bool {
    char.is_ascii_digit() || !char.is_ascii() && char.general_category() == GeneralCategory::DecimalNumber
}

fn is_letter(char: char) -> bool {
    char.is_ascii_alphabetic() || !char.is_ascii() && char.general_category_group() == GeneralCategoryGroup::Letter
}
