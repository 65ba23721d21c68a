//! From a `Platform` to a `Schedule`: which target runs on which cluster type, with which configuration, and the files
//! that say so. Pure: no clock, no I/O, no randomness, no async. `schedule` does it from scratch; a `Scheduler` lives
//! long, takes changes and recomputes only what depends on them. Called by the CLI and by the hub.

mod applies;
mod batch;
mod broken;
mod capability;
mod cluster_type;
mod compose;
mod config;
mod containment;
mod diff;
mod explain;
mod files;
pub mod json;
mod output;
mod pairs;
mod redaction;
mod render;
mod schedule;
mod scheduler;
mod schema;
mod target;
mod template;

pub use diff::{AssignmentChange, Change as PlanChange, FileChange, KeyChange, Plan, diff, plan};
pub use explain::{
    Candidate, CandidateEffect, ConfigExplanation, ConfigOrigins, Explanation, KeyExplanation, LabelOrigin,
    LabelSource, PolicyVerdict, Skipped, explain,
};
pub use files::{ConfigFile, Files, PROMOTED_COMMIT, README, README_TEXT};
pub use output::{Existing, Kept, OutputPlan, plan_output};
pub use redaction::{REDACTED, Redaction};
pub use schedule::{Assignment, Configuration, Disputed, Outcome, Schedule};
pub use scheduler::{Change, Delta, Scheduler, schedule};
pub use target::Target;
