//! The hub: reads Git, schedules, publishes, packs, signs, enrols agents, serves desired states and takes in status.
//! The modules follow the way of a change; `run` puts them together.

pub mod agents;
pub mod airgap;
pub mod api;
pub mod backup;
pub mod catalog;
pub mod command;
pub mod compare;
pub mod config;
pub mod connections;
pub mod events;
pub mod git;
pub mod history;
pub mod keys;
pub mod links;
pub mod metrics;
pub mod pack;
pub mod permits;
pub mod platform;
pub mod preview;
pub mod private;
pub mod promotion;
pub mod publish;
pub mod reconcile;
pub mod rollout;
pub mod run;
pub mod signal;
pub mod state;
pub mod status;
pub mod web;

pub use kedge_hub_store as store;
