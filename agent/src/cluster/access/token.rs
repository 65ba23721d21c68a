//! The bearer token: fixed, or of a file that somebody renews. Asked for with every request.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderValue;

use super::{AccessError, read};

pub struct Token(Source);

enum Source {
    None,
    Fixed(HeaderValue),
    File { path: PathBuf, last: Mutex<(Instant, HeaderValue)> },
}

/// The kubelet renews it minutes before its end.
const READ_EVERY: Duration = Duration::from_secs(60);

impl Token {
    pub fn none() -> Token {
        Token(Source::None)
    }

    pub fn fixed(text: &str) -> Result<Token, AccessError> {
        header(text).map(|value| Token(Source::Fixed(value)))
    }

    pub fn of_file(path: &Path) -> Result<Token, AccessError> {
        let last = Mutex::new((Instant::now(), header(&read(path)?)?));
        Ok(Token(Source::File { path: path.to_owned(), last }))
    }

    /// The value of `Authorization`.
    pub fn header(&self) -> Option<HeaderValue> {
        match &self.0 {
            Source::None => None,
            Source::Fixed(value) => Some(value.clone()),
            Source::File { path, last } => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.0.elapsed() >= READ_EVERY {
                    last.0 = Instant::now();
                    // A file that is just being replaced is read the next time; the token before holds for a while.
                    if let Ok(value) = read(path).and_then(|text| header(&text)) {
                        last.1 = value;
                    }
                }
                Some(last.1.clone())
            }
        }
    }
}

fn header(token: &str) -> Result<HeaderValue, AccessError> {
    let wrong = || AccessError::Wrong("the token is empty or has characters that no token has".to_owned());
    let token = Some(token.trim()).filter(|token| !token.is_empty()).ok_or_else(wrong)?;
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}
