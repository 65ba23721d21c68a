//! The head of a request, as far as it matters: is it a GET of `/metrics`? Bytes of anybody on this host, so it is bounded and
//! never believed.

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Metrics,
    Elsewhere,
    /// Another method.
    NotGet,
    NotHttp,
}

/// A scraper's head has a few hundred bytes.
pub const MAX_HEAD: usize = 4096;

/// None: the head hasn't ended yet.
pub fn read(head: &[u8]) -> Option<Asked> {
    if head.len() > MAX_HEAD {
        return Some(Asked::NotHttp);
    }
    let end = head.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(judge(head.get(..end).unwrap_or_default()))
}

fn judge(head: &[u8]) -> Asked {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else { return Asked::NotHttp };
    let mut words = line.split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(method), Some(target), Some(version), None) if version.starts_with("HTTP/1.") => {
            let path = target.split('?').next().unwrap_or_default();
            match (method, path) {
                ("GET", "/metrics") => Asked::Metrics,
                ("GET", _) => Asked::Elsewhere,
                _ => Asked::NotGet,
            }
        }
        _ => Asked::NotHttp,
    }
}
