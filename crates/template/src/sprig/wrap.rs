//! Shortening and wrapping: `abbrev`, `abbrevboth`, `wrap`, `wrapWith`. Widths count bytes, as in sprig.

use super::arguments::{Answer, fixed, give, int, repair, text};
use crate::function::{Function, Meter, Param};

const STR: Param = Param::Str;
const INT: Param = Param::Int;
const MARK: &[u8] = b"...";

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("abbrev", &[INT, STR], |meter, args| {
        let (width, text) = (int(args, 0)?, text(args, 1)?);
        give(meter, if width < 4 { text.to_owned() } else { shorten(text, 0, width)? })
    }),
    fixed("abbrevboth", &[INT, INT, STR], |meter, args| {
        let (left, right, text) = (int(args, 0)?, int(args, 1)?, text(args, 2)?);
        let plain = right < 4 || left > 0 && right < 7;
        give(meter, if plain { text.to_owned() } else { shorten(text, left, right)? })
    }),
    fixed("wrap", &[INT, STR], |meter, args| wrap(meter, text(args, 1)?, int(args, 0)?, "", false)),
    fixed("wrapWith", &[INT, STR, STR], |meter, args| wrap(meter, text(args, 2)?, int(args, 0)?, text(args, 1)?, true)),
];

/// At most `width` bytes of the text, around `offset`, with dots where something is missing.
fn shorten(text: &str, offset: i64, width: i64) -> Result<String, String> {
    let bytes = text.as_bytes();
    let length = bytes.len() as i64;
    if length <= width {
        return Ok(text.to_owned());
    }
    let mut offset = offset.min(length);
    if length.saturating_sub(offset) < width - 3 {
        offset = length - (width - 3);
    }
    if offset <= 4 {
        return Ok(repair(&[&bytes[..(width - 3) as usize], MARK].concat()));
    }
    if width < 7 {
        return Ok(String::new());
    }
    if offset + width - 3 < length {
        // Go cuts the rest down once more, as a text of its own.
        let rest = &bytes[offset as usize..];
        return Ok(repair(&[MARK, &rest[..(width - 6) as usize], MARK].concat()));
    }
    Ok(repair(&[MARK, &bytes[(length - (width - 3)) as usize..]].concat()))
}

/// Breaks at spaces so that lines hold at most `width` bytes; longer words stay whole or are cut.
fn wrap(meter: &mut Meter, text: &str, width: i64, line_break: &str, cut_words: bool) -> Answer {
    let bytes = text.as_bytes();
    let line_break = if line_break.is_empty() { "\n" } else { line_break }.as_bytes();
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    let mut out = Vec::with_capacity(bytes.len());
    let mut offset = 0;
    let mut push = |meter: &mut Meter, line: &[u8]| {
        meter.bytes((line.len() + line_break.len()) as u64)?;
        out.extend_from_slice(line);
        out.extend_from_slice(line_break);
        Ok::<(), String>(())
    };
    while bytes.len() - offset > width {
        if bytes[offset] == b' ' {
            offset += 1;
            continue;
        }
        let window = &bytes[offset..=offset + width];
        if let Some(space) = window.iter().rposition(|&byte| byte == b' ') {
            push(meter, &window[..space])?;
            offset += space + 1;
        } else if cut_words {
            push(meter, &window[..width])?;
            offset += width;
        } else if let Some(space) = bytes[offset + width..].iter().position(|&byte| byte == b' ') {
            push(meter, &bytes[offset..offset + width + space])?;
            offset += width + space + 1;
        } else {
            break;
        }
    }
    out.extend_from_slice(&bytes[offset..]);
    give(meter, repair(&out))
}
