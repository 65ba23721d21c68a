//! What the engine tells: facts about assignments, as they become true. The reporter writes them into the status document and drops
//! what it already knows.

use kedge_model::wire::{Generation, PackagesKey, Timestamp};
use kedge_status::{Condition, Severity};

/// Something that became true of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    AssignmentStatus {
        assignment: String,
        /// None: nothing any more, and it still runs.
        desired: Option<PackagesKey>,
        generation: Generation,
        running: Option<PackagesKey>,
        /// Of what runs.
        version: Option<String>,
        condition: Condition,
        /// What differs from what was applied, in a sentence.
        drift: Option<String>,
        at: Timestamp,
    },
    /// It was removed, or is no longer ours.
    Gone {
        assignment: String,
        at: Timestamp,
    },
    Warning {
        code: String,
        severity: Severity,
        message: String,
    },
    WarningOver {
        code: String,
    },
    /// A full look at everything has ended.
    Looked {
        at: Timestamp,
    },
}
