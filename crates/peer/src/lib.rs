//! How agents of a site share signed documents: a protocol without sockets, clock or chance of its own. The agent drives a `Node` over its
//! connections, the simulation drives thousands; `docs/wire.md` spells out the bytes.

mod chance;
#[cfg(test)]
mod fixture;
mod lie;
pub mod message;
mod name;
pub mod node;
pub mod pace;
pub mod shelf;

pub use lie::{Lie, Taken};
pub use message::{Message, MessageError};
pub use name::{Name, NameError, Version};
pub use node::{Action, Node, PeerView, Settings, Told};
pub use shelf::Shelf;
