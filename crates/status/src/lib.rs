//! Status documents: what is true on a cluster, as automerge documents in signed envelopes. An agent writes its own with
//! `StatusDocument`; whoever holds an envelope (the hub, a peer, a person with a USB stick) reads it with `read`.

mod bytes;
mod contents;
pub mod document;
pub mod event;
mod guard;
pub mod payload;
pub mod read;
pub mod report;

pub use document::{Change, StatusDocument, WriteError};
pub use event::{Event, EventLog};
pub use payload::{Header, Nonce, NonceError, PAYLOAD_TYPE};
pub use read::{Limits, ReadError, Status, header, read, read_all};
pub use report::{Condition, Hold, Report, Severity, Warning};
