//! How agents of a site share signed documents: a protocol without sockets, clock or chance of its own. The agent drives a `Node` over its
//! connections, the simulation drives thousands; `docs/wire.md` spells out the bytes.

mod chance;
pub mod document_store;
#[cfg(test)]
mod fixture;
pub mod message;
mod misbehavior;
mod name;
pub mod node;
pub mod pace;

pub use document_store::DocumentStore;
pub use message::{Message, MessageError};
pub use misbehavior::{Misbehavior, Taken};
pub use name::{Name, NameError, Version};
pub use node::{Action, Node, PeerView, Settings, Told};
