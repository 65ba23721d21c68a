//! An answer that goes on, line by line: what a watch reads. Nothing but the line under way is kept.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kube::client::Body;

use super::request::ApiError;

#[derive(Debug)]
pub struct Lines {
    body: Body,
    splitter: Splitter,
}

/// Bytes in, whole lines out.
#[derive(Debug, Default)]
struct Splitter {
    buffer: BytesMut,
    /// So much of it holds no end of a line.
    scanned: usize,
}

/// Metadata of one object: annotations have at most 256 KiB, and managed fields are of the size of the object.
const MAX_LINE: usize = 4 * 1024 * 1024;
/// A buffer that grew beyond that for one object is given back.
const KEEP: usize = 32 * 1024;

impl Lines {
    pub fn new(body: Body) -> Lines {
        Lines { body, splitter: Splitter::default() }
    }

    /// None: the server ended it, as it does every few minutes.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            if let Some(line) = self.splitter.line() {
                return Ok(Some(line));
            }
            let frame = match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => frame.map_err(|error| broke(format!("the watch broke off: {error}")))?,
            };
            if let Some(data) = frame.data_ref() {
                self.splitter.push(data)?;
            }
        }
    }
}

impl Splitter {
    fn push(&mut self, data: &[u8]) -> Result<(), ApiError> {
        if self.buffer.len() + data.len() > MAX_LINE {
            return Err(broke(format!("the API server sent a line of more than {MAX_LINE} bytes")));
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    fn line(&mut self) -> Option<Bytes> {
        let Some(end) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.buffer.len();
            if self.buffer.is_empty() && self.buffer.capacity() > KEEP {
                self.buffer = BytesMut::new();
            }
            return None;
        };
        let mut line = self.buffer.split_to(self.scanned + end + 1);
        line.truncate(self.scanned + end);
        self.scanned = 0;
        Some(line.freeze())
    }
}

fn broke(message: String) -> ApiError {
    ApiError::Passing { message, after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (mut splitter, mut found) = (Splitter::default(), Vec::new());
        for piece in pieces {
            splitter.push(piece).unwrap();
            found.extend(std::iter::from_fn(|| splitter.line()).map(|line| line.to_vec()));
        }
        found
    }

    #[test]
    fn a_line_without_an_end_does_not_grow_for_ever() {
        let (mut splitter, piece) = (Splitter::default(), vec![b'x'; 1024 * 1024]);
        let pushed = (0..10).take_while(|_| splitter.push(&piece).is_ok() && splitter.line().is_none()).count();
        assert_eq!(pushed, MAX_LINE / piece.len());
    }

    proptest::proptest! {
        #[test]
        fn pieces_make_no_difference(pieces: Vec<Vec<u8>>) {
            let whole = pieces.concat();
            let mut expected: Vec<Vec<u8>> = whole.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            expected.pop();
            proptest::prop_assert_eq!(lines(&pieces), expected);
        }
    }
}
