//! What goes over the renderer's socket: one question and one answer a connection, each a head (its length in four bytes, then
//! JSON) and, where the head says how long, bytes. Whoever reads bounds both.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::pack::archive::{MAX_BYTES, MAX_FILES};
use crate::pack::workload::request::Program;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Question {
    /// Followed by the files as a tar.
    Render {
        program: Program,
        path: String,
        release: String,
        namespace: String,
        bytes: u64,
    },
    Programs {},
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Answer {
    /// Followed by the output.
    Rendered {
        bytes: u64,
    },
    /// The program's complaint.
    Failed {
        why: String,
    },
    /// The program isn't installed.
    Missing {
        path: String,
    },
    /// The question can't be answered by anybody.
    Refused {
        why: String,
    },
    /// The renderer itself can't work.
    Faulty {
        why: String,
    },
    Programs {
        kustomize: String,
        helm: String,
    },
}

const MAX_HEAD: u32 = 64 << 10;
/// Of a request: a file's header takes a block, one more or two for a long path, and its last block is filled up.
pub(super) const MAX_TAR: u64 = MAX_BYTES + 4096 * (MAX_FILES as u64 + 1);

pub(super) async fn send(to: &mut (impl AsyncWrite + Unpin), head: &impl Serialize, body: &[u8]) -> io::Result<()> {
    let json = serde_json::to_vec(head)?;
    let length = u32::try_from(json.len()).ok().filter(|length| *length <= MAX_HEAD);
    let length = length.ok_or_else(|| io::Error::other("the head is longer than 64 KiB"))?;
    to.write_all(&length.to_be_bytes()).await?;
    to.write_all(&json).await?;
    to.write_all(body).await?;
    to.flush().await
}

pub(super) async fn head<T: DeserializeOwned>(from: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let length = from.read_u32().await?;
    if length > MAX_HEAD {
        return Err(io::Error::other("the head is longer than 64 KiB"));
    }
    let json = body(from, u64::from(length), u64::from(MAX_HEAD)).await?;
    serde_json::from_slice(&json).map_err(|error| io::Error::other(format!("the head can't be read: {error}")))
}

/// Memory grows with what arrives, not with what is promised.
pub(super) async fn body(from: &mut (impl AsyncRead + Unpin), bytes: u64, most: u64) -> io::Result<Vec<u8>> {
    if bytes > most {
        return Err(io::Error::other(format!("{bytes} bytes are more than the {most} that there may be")));
    }
    let mut body = Vec::new();
    from.take(bytes).read_to_end(&mut body).await?;
    if body.len() as u64 != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}
