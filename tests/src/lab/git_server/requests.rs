//! What clients asked of one repository: counted for the tests that say what must not be asked.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::Request;

/// Counts of one repository.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Requests {
    /// All of them, also those that were refused or failed on purpose.
    pub total: u64,
    /// Refused for want of a login.
    pub unauthorized: u64,
    /// The first request of every fetch and push: `info/refs`.
    pub greetings: u64,
    /// Lists of refs (protocol version 2).
    pub listings: u64,
    /// Requests for objects.
    pub fetches: u64,
    /// Pushes that reached `git receive-pack`.
    pub pushes: u64,
    /// Those whose body was compressed.
    pub gzipped: u64,
    /// The ids that fetches wanted, in order.
    pub wanted: Vec<String>,
}

impl Requests {
    /// Counts a request that is let through.
    pub(super) fn count(&mut self, service: &str, request: &Request<Bytes>) {
        self.gzipped += u64::from(is_gzipped(request));
        match service {
            "info/refs" => self.greetings += 1,
            "git-receive-pack" => self.pushes += 1,
            "git-upload-pack" => self.count_upload(&plain_body(request)),
            _ => {}
        }
    }

    fn count_upload(&mut self, body: &[u8]) {
        let lines = packet_lines(body);
        if lines.iter().any(|line| line == "command=ls-refs") {
            self.listings += 1;
            return;
        }
        self.fetches += 1;
        let wants = lines.iter().filter_map(|line| line.strip_prefix("want "));
        self.wanted.extend(wants.map(|want| want.split(' ').next().unwrap_or_default().to_owned()));
    }
}

fn is_gzipped(request: &Request<Bytes>) -> bool {
    request.headers().get("content-encoding").is_some_and(|value| value == "gzip" || value == "x-gzip")
}

fn plain_body(request: &Request<Bytes>) -> Vec<u8> {
    let mut plain = Vec::new();
    if !is_gzipped(request) || GzDecoder::new(&request.body()[..]).read_to_end(&mut plain).is_err() {
        return request.body().to_vec();
    }
    plain
}

/// The text lines of Git's packet format; a length below 4 is a mark without content.
fn packet_lines(mut body: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(digits) = body.get(..4) {
        let length = std::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some(length) = length else { break };
        if length < 4 {
            body = &body[4..];
            continue;
        }
        let Some(line) = body.get(4..length) else { break };
        lines.push(String::from_utf8_lossy(line).trim_end().to_owned());
        body = &body[length..];
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_ids_are_read_from_packet_lines() {
        let mut requests = Requests::default();
        requests.count_upload(b"0012command=fetch\n0001000dwant abc\n0000");
        requests.count_upload(b"0014command=ls-refs\n0000");
        assert_eq!((requests.fetches, requests.listings, requests.wanted), (1, 1, vec!["abc".to_owned()]));
    }

    #[test]
    fn a_packet_longer_than_the_body_ends_the_list() {
        assert_eq!(packet_lines(b"0008done00ffx"), ["done"]);
    }
}
