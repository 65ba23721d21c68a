//! From an assignment's two packages to its goal, on a host (`host`) or in a cluster (`kubernetes`); what both read is here.

mod bounds;
#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
mod package;

/// So many refusals are said; a status message is short.
const SAID: usize = 4;

/// Several sentences as one message.
fn said(sentences: &[String]) -> String {
    let mut message = sentences.iter().take(SAID).cloned().collect::<Vec<_>>().join(". ");
    let more = sentences.len().saturating_sub(SAID);
    if more > 0 {
        message.push_str(&format!(". And {more} more"));
    }
    message
}
