//! Base64, base32, checksums, and `decryptAES`. Decoders answer with Go's error text instead of failing, as sprig does.

use aes::Aes256;
use aes::cipher::{Array, BlockCipherDecrypt, KeyInit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};
use sha2::Sha256;

use crate::function::{Function, Meter, Param};
use crate::value::Value;

use super::arguments::{Answer, fixed, give, repair, text};

const STR: Param = Param::Str;
const BLOCK: usize = 16;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("b64enc", &[STR], |meter, args| give(meter, STANDARD.encode(text(args, 0)?))),
    fixed("b64dec", &[STR], |meter, args| {
        give(meter, decode64(text(args, 0)?).map_or_else(|error| error, |bytes| repair(&bytes)))
    }),
    fixed("b32enc", &[STR], |meter, args| give(meter, data_encoding::BASE32.encode(text(args, 0)?.as_bytes()))),
    fixed("b32dec", &[STR], |meter, args| {
        give(meter, decode32(text(args, 0)?).map_or_else(|error| error, |bytes| repair(&bytes)))
    }),
    fixed("sha1sum", &[STR], |meter, args| give(meter, hex(&Sha1::digest(text(args, 0)?)))),
    fixed("sha256sum", &[STR], |meter, args| give(meter, hex(&Sha256::digest(text(args, 0)?)))),
    fixed("adler32sum", &[STR], |meter, args| {
        give(meter, adler2::adler32_slice(text(args, 0)?.as_bytes()).to_string())
    }),
    fixed("decryptAES", &[STR, STR], decrypt),
];

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

fn corrupt64(at: usize) -> String {
    format!("illegal base64 data at input byte {at}")
}

fn decode64(text: &str) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    let mut at = 0;
    while at < bytes.len() {
        let (group, next, last) = group64(bytes, at)?;
        out.extend_from_slice(&group);
        if last {
            break;
        }
        at = next;
    }
    Ok(out)
}

/// Up to four digits from a place on, the place after them, and whether they were the last. Line ends don't count.
fn group64(bytes: &[u8], start: usize) -> Result<(Vec<u8>, usize, bool), String> {
    let line_end = |at: usize| matches!(bytes.get(at), Some(b'\n' | b'\r'));
    let after_lines = |mut at: usize| {
        while line_end(at) {
            at += 1;
        }
        at
    };
    let mut digits: Vec<u32> = Vec::with_capacity(4);
    let mut at = start;
    while digits.len() < 4 {
        at = after_lines(at);
        match bytes.get(at) {
            None if digits.is_empty() => return Ok((Vec::new(), at, true)),
            None => return Err(corrupt64(at - digits.len())),
            Some(b'=') if digits.len() < 2 => return Err(corrupt64(at)),
            Some(b'=') => {
                at += 1;
                if digits.len() == 2 {
                    at = after_lines(at);
                    match bytes.get(at) {
                        Some(b'=') => at += 1,
                        None => return Err(corrupt64(bytes.len())),
                        Some(_) => return Err(corrupt64(at - 1)),
                    }
                }
                at = after_lines(at);
                if at < bytes.len() {
                    return Err(corrupt64(at));
                }
                return Ok((unpack64(&digits), at, true));
            }
            Some(byte) => digits.push(digit64(*byte).ok_or_else(|| corrupt64(at))?),
        }
        at += 1;
    }
    Ok((unpack64(&digits), at, false))
}

fn digit64(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

fn unpack64(digits: &[u32]) -> Vec<u8> {
    let bits = (0..4).fold(0, |bits, at| bits << 6 | digits.get(at).copied().unwrap_or(0));
    bits.to_be_bytes()[1..digits.len().max(1)].to_vec()
}

fn decode32(text: &str) -> Result<Vec<u8>, String> {
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let corrupt = |at: usize| Err(format!("illegal base32 data at input byte {at}"));
    let mut out = Vec::with_capacity(bytes.len() / 8 * 5);
    let mut at = 0;
    while at < bytes.len() {
        let mut digits: Vec<u8> = Vec::with_capacity(8);
        let mut padded = false;
        while digits.len() < 8 {
            let count = digits.len();
            let Some(&byte) = bytes.get(at) else { return corrupt(at - count) };
            at += 1;
            let left = bytes.len() - at;
            if byte == b'=' && count >= 2 && left < 8 {
                if left + count < 7 {
                    return corrupt(bytes.len());
                }
                if let Some(wrong) = bytes[at..].iter().take(7 - count).position(|&byte| byte != b'=') {
                    return corrupt(at + wrong - 1);
                }
                if matches!(count, 3 | 6) {
                    return corrupt(at - 1);
                }
                padded = true;
                break;
            }
            match byte {
                b'A'..=b'Z' => digits.push(byte - b'A'),
                b'2'..=b'7' => digits.push(byte - b'2' + 26),
                _ => return corrupt(at - 1),
            }
        }
        let bits = (0..8).fold(0_u64, |bits, at| bits << 5 | u64::from(digits.get(at).copied().unwrap_or(0)));
        out.extend_from_slice(&bits.to_be_bytes()[3..3 + digits.len() * 5 / 8]);
        if padded {
            break;
        }
    }
    Ok(out)
}

/// The text that sprig's `encryptAES` made: an initial block, then AES-256 blocks chained to it, padded at the end.
fn decrypt(meter: &mut Meter, args: &[Value]) -> Answer {
    let (password, crypt) = (text(args, 0)?, text(args, 1)?);
    if crypt.is_empty() {
        return Ok(Value::str(""));
    }
    let crypt = decode64(crypt)?;
    let mut key = [0_u8; 32];
    for (slot, byte) in key.iter_mut().zip(password.bytes()) {
        *slot = byte;
    }
    let Some((first, blocks)) = crypt.split_at_checked(BLOCK) else {
        return Err(format!("runtime error: slice bounds out of range [:16] with capacity {}", crypt.len()));
    };
    if !blocks.len().is_multiple_of(BLOCK) {
        return Err("crypto/cipher: input not full blocks".to_owned());
    }
    let cipher = Aes256::new(&Array::from(key));
    let mut plain = Vec::with_capacity(blocks.len());
    let mut before = first;
    for block in blocks.chunks_exact(BLOCK) {
        let mut work = [0_u8; BLOCK];
        work.copy_from_slice(block);
        let mut work = Array::from(work);
        cipher.decrypt_block(&mut work);
        plain.extend(work.iter().zip(before).map(|(left, right)| left ^ right));
        before = block;
    }
    let Some(&padding) = plain.last() else { return Err("runtime error: index out of range [-1]".to_owned()) };
    let end = plain.len() as i64 - i64::from(padding);
    let text = usize::try_from(end).map_err(|_| format!("runtime error: slice bounds out of range [:{end}]"))?;
    give(meter, repair(&plain[..text]))
}
