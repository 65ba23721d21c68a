//! The last accepted generation of each stream: below it nothing is followed. The identity keeps them, so that they outlive the memory
//! of what the hub said, and `desired` raises them.

use kedge_model::wire::{Generation, Stream};
use serde::{Deserialize, Serialize};

/// The last accepted generation of a stream, also of those that it left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamGeneration {
    pub stream: Stream,
    pub generation: Generation,
}

/// The higher of both, for each stream.
pub fn raise(floors: &mut Vec<StreamGeneration>, accepted: &[StreamGeneration]) {
    for one in accepted {
        match floors.iter_mut().find(|known| known.stream == one.stream) {
            Some(known) => known.generation = known.generation.max(one.generation),
            None => floors.push(one.clone()),
        }
    }
}
